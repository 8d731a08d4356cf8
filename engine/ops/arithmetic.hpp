// Elementwise arithmetic. Two inputs broadcast as in NumPy, and what was repeated is summed back: x̄ always has x's
// shape. A number may stand for either input: 2 * x, x + 1, maximum(x, 0). All throw ShapeError if shapes do not
// broadcast, TapeError if no input is of a tape (or two are of different ones).
#pragma once
#include "engine/indices.hpp"
#include "engine/tape.hpp"

namespace lookback {

// y = a + b.   ā += ȳ   b̄ += ȳ      saves nothing
Tensor add(const Tensor& a, const Tensor& b);
// y = a − b.   ā += ȳ   b̄ −= ȳ      saves nothing
Tensor sub(const Tensor& a, const Tensor& b);
// y = a ⊙ b.   ā += ȳ ⊙ b   b̄ += ȳ ⊙ a      saves a, b (each only if the other needs a gradient)
Tensor mul(const Tensor& a, const Tensor& b);
// y = a / b.   ā += ȳ / b   b̄ −= ȳ ⊙ y / b      saves b, and y if b needs a gradient
Tensor div(const Tensor& a, const Tensor& b);
// y = −x.   x̄ −= ȳ      saves nothing
Tensor neg(const Tensor& x);
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& x) { return neg(x); }

// y = x^p, a constant power.   x̄ += ȳ ⊙ p x^(p−1), and 0 where ȳ = 0      saves x
// x^0 is 1 with slope 0 everywhere. A negative x needs a whole p; else y is NaN. At x = 0 a power below 1 has slope ±∞.
Tensor pow(const Tensor& x, Real exponent);

// y = the larger (smaller) of a and b; NaN if either is.   The winner gets ȳ, a tie gives half to each.      saves a, b
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);

// y = a where chosen, b elsewhere; all three broadcast.   ā += ȳ where chosen, b̄ += ȳ elsewhere      saves the mask
// The branch not taken gets exactly 0, and 0 it stays: see chain() in kernels.hpp.
Tensor where(const Mask& chosen, const Tensor& a, const Tensor& b);

// y = x where visible, `value` elsewhere; the mask broadcasts to x.   x̄ += ȳ where visible, else 0      saves the mask
Tensor masked_fill(const Tensor& x, const Mask& visible, Real value);

// y = x held to low … high; NaN stays.   x̄ += ȳ where low ≤ x ≤ high (both bounds included), else 0      saves x
// throws ValueError unless low ≤ high
Tensor clamp(const Tensor& x, Real low, Real high);

}  // namespace lookback
