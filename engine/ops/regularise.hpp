// What keeps activations in bounds and networks from relying on single ones.
#pragma once
#include "engine/random.hpp"
#include "engine/tape.hpp"

namespace lookback {

// y = x̂ ⊙ gain + bias, x̂ = (x − mean) / √(variance + eps), over the last axis; the variance is the population's (÷ D).
// x: (…,D)   gain, bias: (D) → (…,D)
// x̄ += (g − mean(g) − x̂ mean(g ⊙ x̂)) / √(variance + eps) with g = ȳ ⊙ gain
// gain̅ += Σ ȳ ⊙ x̂   bias̅ += Σ ȳ      saves x, gain, each row's mean and 1/√(variance + eps)
// A row without spread and eps = 0 has x̂ = 0 and x̄ = 0.
// throws ShapeError if gain or bias is not (D) or D = 0, ValueError if eps < 0      Ba, Kiros & Hinton 2016
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, Real eps = Real(1e-5));

// y = m ⊙ x, each m either 0, with probability p, or 1/(1−p), so that the mean stays.   any → same
// x̄ += ȳ ⊙ m      saves m, drawn once and kept as numbers
// p = 0 returns x itself and draws nothing; p = 1 gives zeros. It always drops: a layer asks it in training only.
// throws ValueError unless 0 ≤ p ≤ 1      Srivastava et al. 2014
Tensor dropout(const Tensor& x, Real p, Generator& generator);

}  // namespace lookback
