// Long short-term memory: a cell state c that gates write, forget and read.
#pragma once
#include <optional>
#include "cell.hpp"

namespace lookback {

struct LSTMOptions {
    std::optional<Real> forget_bias = {};  // of all of b_f from the start: 1 or more remembers (Jozefowicz et al. 2015)
};

// [i f g o] = x W + h U + b     c' = σ(f) ⊙ c + σ(i) ⊙ tanh(g)     h' = σ(o) ⊙ tanh(c')
// x (B,I), h and c (B,H) → h', c' (B,H). Gates are stacked in this order, which is PyTorch's.
// From the start all are uniform in ±1/√H, but see forget_bias.
// throws ShapeError if x, h or c does not fit, ValueError if H is 0
// Hochreiter & Schmidhuber 1997; forget gate: Gers, Schmidhuber & Cummins 2000
struct LSTM {
    Parameter W, U, b;  // (I,4H)   (H,4H)   (4H)

    struct State {
        Tensor h, c;
        template <class F, class... States> State map(const F& f, const States&... others) const {
            return {f(h, others.h...), f(c, others.c...)};
        }
    };
    LSTM(std::size_t inputs, std::size_t hidden, Generator& generator, const LSTMOptions& options = {});
    LSTM(Parameter W, Parameter U, Parameter b);

    State operator()(const Tensor& x, const State& s) const;
    State composed(const Tensor& x, const State& s) const;
    Tensor project(const Tensor& x) const;
    State step(const StepInput& a, const State& s) const;
    State start(Tape& tape, std::size_t B) const {
        return {cell::zeros(tape, B, hidden()), cell::zeros(tape, B, hidden())};
    }

    std::size_t hidden() const { return U.shape()[0]; }
    void for_each_parameter(const std::string& prefix, const Visitor& f);
    void from_pytorch(const PyTorchWeights& weights);  // of nn.LSTM      throws ShapeError
    PyTorchWeights to_pytorch() const;
};

}  // namespace lookback
