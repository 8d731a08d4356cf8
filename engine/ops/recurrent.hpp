// One step of a recurrent cell as one record. The caller computes a = x W + b, for all times in one product if it
// likes, and each step reads its own; U and the state are here. Each step equals its composition from other ops, which
// layers/ has for reading.
#pragma once
#include "engine/tape.hpp"

namespace lookback {

// a for one step: a tensor (B,nH), or {a, t} for the time t of a tensor (B,T,nH). A step that reads its slice itself
// spares a copy of a and one of ā: with H = 128, a third of all that a sequence of RNN steps keeps.
struct StepInput {
    static constexpr std::int32_t all = -1;
    const Tensor& a;
    std::int32_t time = all;
    StepInput(const Tensor& a_) : a(a_) {}
    StepInput(const Tensor& a_, std::size_t t);  // throws IndexError from 2³¹ on
};

enum class Nonlinearity { tanh, relu };

// h' = tanh(a + h U), or relu.   a, h: (B,H)   U: (H,H) → (B,H)
// ā += s, h̄ += s Uᵀ, Ū += hᵀ s with s = h̄' ⊙ (1 − h'²), or h̄' where h' > 0      saves h, U, h'
// throws ShapeError, IndexError      Elman 1990
Tensor rnn_step(const StepInput& a, const Tensor& h, const Tensor& U, Nonlinearity nonlinearity = Nonlinearity::tanh);

struct LSTMState {
    Tensor h, c;  // (B,H)
};

// [i f g o] = a + h U     c' = σ(f) ⊙ c + σ(i) ⊙ tanh(g)     h' = σ(o) ⊙ tanh(c')
// a: (B,4H)   h, c: (B,H)   U: (H,4H) → h', c': (B,H), siblings
// Below, letters are activated gates and d = c̄' + h̄' ⊙ o ⊙ (1 − tanh²c'):
//   ā += s, h̄ += s Uᵀ, Ū += hᵀ s, c̄ += d ⊙ f
//   s = [d g i(1−i)   d c f(1−f)   d i (1−g²)   h̄' tanh(c') o(1−o)]      saves h, c, U, the gates, c'
// throws ShapeError, IndexError      Hochreiter & Schmidhuber 1997; forget gate: Gers et al. 2000
LSTMState lstm_step(const StepInput& a, const Tensor& h, const Tensor& c, const Tensor& U);

// r = σ(a_r + h U_r)     z = σ(a_z + h U_z)     n = tanh(a_n + r ⊙ (h U_n + b_n))     h' = (1 − z) ⊙ n + z ⊙ h
// The reset gate acts after the product, and z is what is kept of the old state: both as in PyTorch.
// a: (B,3H), gates r z n   h: (B,H)   U: (H,3H)   b_n: (H) → (B,H)
// With q = h U_n + b_n, ā_n = h̄' (1−z)(1−n²), ā_r = ā_n q r(1−r), ā_z = h̄' (h−n) z(1−z) and s = [ā_r ā_z ā_n r]:
//   ā += [ā_r ā_z ā_n], h̄ += h̄' ⊙ z + s Uᵀ, Ū += hᵀ s, b̄_n += Σ_B ā_n r      saves h, U, the gates, q
// throws ShapeError, IndexError      Cho et al. 2014
Tensor gru_step(const StepInput& a, const Tensor& h, const Tensor& U, const Tensor& b_n);

}  // namespace lookback
