// Elementwise functions of one input, of any shape.
#pragma once
#include "engine/tape.hpp"

namespace lookback {

// y = e^x.   x̄ += ȳ ⊙ y      saves y
Tensor exp(const Tensor& x);
// y = ln x; −∞ at 0, NaN below.   x̄ += ȳ / x, and 0 where ȳ = 0      saves x
Tensor log(const Tensor& x);
// y = √x; NaN below 0.   x̄ += ȳ / 2y, and 0 where ȳ = 0: so ±∞ at x = 0      saves y
// For a length use norm, whose gradient at 0 is 0.
Tensor sqrt(const Tensor& x);
// y = |x|.   x̄ += ȳ ⊙ sign(x), with sign(0) = 0      saves x
Tensor abs(const Tensor& x);
// y = tanh x.   x̄ += ȳ ⊙ (1 − y²)      saves y
Tensor tanh(const Tensor& x);
// y = 1 / (1 + e^−x), which does not overflow.   x̄ += ȳ ⊙ y ⊙ (1 − y)      saves y
Tensor sigmoid(const Tensor& x);
// y = max(x, 0); NaN stays.   x̄ += ȳ where x > 0; the slope at 0 is 0      saves y
Tensor relu(const Tensor& x);
// y = x Φ(x), Φ(x) = (1 + erf(x/√2)) / 2: the exact form, not the one by tanh.   x̄ += ȳ ⊙ (Φ(x) + x φ(x))      saves x
// φ(x) = e^(−x²/2) / √2π.   Hendrycks & Gimpel 2016
Tensor gelu(const Tensor& x);
// y = ln(1 + e^x), as max(x, 0) + ln(1 + e^−|x|).   x̄ += ȳ ⊙ sigmoid(x)      saves x
Tensor softplus(const Tensor& x);

}  // namespace lookback
