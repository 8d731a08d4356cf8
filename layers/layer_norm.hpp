// Rows brought to mean 0 and variance 1, then scaled and moved as learned.
#pragma once
#include "parameters.hpp"

namespace lookback {

// y = (x − mean) / √(variance + eps) ⊙ gain + bias over the last axis, with the population's variance.   x (…,D) → same
// From the start gain is 1 and bias 0.
// throws ShapeError if x's last axis is not D; ValueError if D is 0 or eps < 0      Ba, Kiros & Hinton 2016
struct LayerNorm {
    Parameter gain, bias;  // (D)
    Real eps;

    explicit LayerNorm(std::size_t width, Real eps = Real(1e-5));

    Tensor operator()(const Tensor& x) const;
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

}  // namespace lookback
