#include "arithmetic.hpp"
#include <cmath>
#include "engine/kernels.hpp"
#include "engine/pullback.hpp"

namespace lookback {

// f(a, b) with both in the shape they broadcast to. A copy costs less than xtensor's own broadcasting, which takes 10
// times as long with a 0-d array and, without xsimd, with any.
static Array elementwise(const char* op, const Array& a, const Array& b, Array (*f)(const Array&, const Array&)) {
    if (a.shape() == b.shape()) return f(a, b);
    const Shape shape = broadcast_shape(op, a.shape(), b.shape());
    if (a.shape() == shape) return f(a, broadcast_to(op, b, shape));
    if (b.shape() == shape) return f(broadcast_to(op, a, shape), b);
    return f(broadcast_to(op, a, shape), broadcast_to(op, b, shape));
}

static Saves saves_if(bool condition, Saves saves) { return condition ? saves : saves::nothing; }

// x + b for a bias: b (N) onto every row of x (…,N), in one pass.
static Array add_to_rows(const Array& x, const Array& b) {
    Array y = Array::from_shape(x.shape());
    const std::size_t n = b.size();
    const Real* add = b.data();
    for (std::size_t at = 0; at < x.size(); at += n) {
        const Real* from = x.data() + at;
        Real* to = y.data() + at;
        for (std::size_t j = 0; j < n; ++j) to[j] = from[j] + add[j];
    }
    return y;
}

Tensor add(const Tensor& a, const Tensor& b) {
    const bool bias = b.rank() == 1 && a.rank() > 1 && a.shape().back() == b.size();
    Array y =
        bias ? add_to_rows(a.value(), b.value())
             : elementwise("add", a.value(), b.value(), [](const Array& a, const Array& b) -> Array { return a + b; });
    return record("add", {a, b}, std::move(y), saves::nothing, [](Pullback& p) {
        p.x_bar(0) += p.y_bar();
        p.x_bar(1) += p.y_bar();
    });
}

Tensor sub(const Tensor& a, const Tensor& b) {
    Array y = elementwise("sub", a.value(), b.value(), [](const Array& a, const Array& b) -> Array { return a - b; });
    return record("sub", {a, b}, std::move(y), saves::nothing, [](Pullback& p) {
        p.x_bar(0) += p.y_bar();
        p.x_bar(1) += -p.y_bar();
    });
}

// ȳ ⊙ the other factor, where that may have been broadcast.
static Array chain_with(Pullback& p, std::size_t other) {
    const Array& factor = p.x(other);
    if (factor.shape() == p.y_shape()) return chain(p.y_bar(), factor);
    if (factor.size() == 1 && std::isfinite(*factor.data())) return p.y_bar() * *factor.data();  // 0 stays 0
    return chain(p.y_bar(), broadcast_to("mul", factor, p.y_shape()));
}

Tensor mul(const Tensor& a, const Tensor& b) {
    Array y = elementwise("mul", a.value(), b.value(), [](const Array& a, const Array& b) -> Array { return a * b; });
    const Saves saves = saves_if(!b.is_constant(), saves::input(0)) | saves_if(!a.is_constant(), saves::input(1));
    return record("mul", {a, b}, std::move(y), saves, [](Pullback& p) {
        if (p.needs(0)) p.x_bar(0) += chain_with(p, 1);
        if (p.needs(1)) p.x_bar(1) += chain_with(p, 0);
    });
}

Tensor div(const Tensor& a, const Tensor& b) {
    Array y = elementwise("div", a.value(), b.value(), [](const Array& a, const Array& b) -> Array { return a / b; });
    const Saves saves = saves::input(1) | saves_if(!b.is_constant(), saves::output);
    return record("div", {a, b}, std::move(y), saves, [](Pullback& p) {
        const Array b = broadcast_to("div", p.x(1), p.y_shape());
        if (p.needs(0)) p.x_bar(0) += chain_quotient(p.y_bar(), b);
        if (p.needs(1)) p.x_bar(1) += chain(p.y_bar(), -p.y() / b);
    });
}

Tensor neg(const Tensor& x) {
    return record("neg", {x}, -x.value(), saves::nothing, [](Pullback& p) { p.x_bar(0) += -p.y_bar(); });
}

// A plain loop: xsimd's pow is not twice as fast, and differs at 0, ∞ and negative bases.
static Array power(const Array& x, Real exponent) {
    if (exponent == 1) return x;
    if (exponent == 2) return x * x;
    Array y = Array::from_shape(x.shape());
    std::transform(x.begin(), x.end(), y.begin(), [exponent](Real x) { return std::pow(x, exponent); });
    return y;
}

Tensor pow(const Tensor& x, Real exponent) {
    return record(
        "pow", {x}, power(x.value(), exponent), saves::inputs,
        [](Pullback& p) {
            const Real exponent = p.attributes<Real>();
            Array slope = exponent == 0   ? filled(p.y_shape(), 0)
                          : exponent == 2 ? Array(2 * p.x(0))
                                          : Array(exponent * power(p.x(0), exponent - 1));
            p.x_bar(0) += chain(p.y_bar(), std::move(slope));
        },
        exponent);
}

// f(a, b) element by element, for what chooses: g++ vectorises that better than xtensor does.
template <class F> static Array chosen(const Array& a, const Array& b, F f) {
    Array y = Array::from_shape(a.shape());
    std::transform(a.data(), a.data() + a.size(), b.data(), y.data(), f);
    return y;
}

// The share of a where the winner is the larger (the smaller) of a and b: half of a tie; all of it if a is NaN.
static Array share_of_larger(const Array& a, const Array& b) {
    return chosen(a, b, [](Real a, Real b) -> Real { return a > b || a != a ? 1 : a == b ? Real(0.5) : 0; });
}
static Array share_of_smaller(const Array& a, const Array& b) {
    return chosen(a, b, [](Real a, Real b) -> Real { return a < b || a != a ? 1 : a == b ? Real(0.5) : 0; });
}

static void pull_shares(Pullback& p, Array (*share_of)(const Array&, const Array&)) {
    const Array share = elementwise(p.op(), p.x(0), p.x(1), share_of);
    if (p.needs(0)) p.x_bar(0) += chain(p.y_bar(), share);
    if (p.needs(1)) p.x_bar(1) += chain(p.y_bar(), 1 - share);
}

Tensor maximum(const Tensor& a, const Tensor& b) {
    Array y = elementwise("maximum", a.value(), b.value(), [](const Array& a, const Array& b) {
        return chosen(a, b, [](Real a, Real b) { return a > b || a != a ? a : b; });
    });
    return record("maximum", {a, b}, std::move(y), saves::inputs, [](Pullback& p) { pull_shares(p, share_of_larger); });
}

Tensor minimum(const Tensor& a, const Tensor& b) {
    Array y = elementwise("minimum", a.value(), b.value(), [](const Array& a, const Array& b) {
        return chosen(a, b, [](Real a, Real b) { return a < b || a != a ? a : b; });
    });
    return record("minimum", {a, b}, std::move(y), saves::inputs,
                  [](Pullback& p) { pull_shares(p, share_of_smaller); });
}

Tensor clamp(const Tensor& x, Real low, Real high) {
    if (!(low <= high))
        fail<ValueError>("clamp", "low " + std::to_string(low) + " is not at most high " + std::to_string(high));
    Array y = x.value();
    for (Real& v : y) v = v < low ? low : v > high ? high : v;
    return record(
        "clamp", {x}, std::move(y), saves::inputs,
        [](Pullback& p) {
            const std::pair<Real, Real> bounds = p.attributes<std::pair<Real, Real>>();
            p.x_bar(0) += chosen(p.x(0), p.y_bar(), [bounds](Real x, Real y_bar) {
                return x < bounds.first || x > bounds.second ? 0 : y_bar;
            });
        },
        std::pair(low, high));
}

// x where the mask is `side`, `other` elsewhere.
static Array kept_where(const Mask& mask, bool side, Array x, Real other) {
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = mask[i] == side ? x.data()[i] : other;
    return x;
}

Tensor where(const Mask& chosen, const Tensor& a, const Tensor& b) {
    const Shape shape = broadcast_shape("where", chosen.shape(), broadcast_shape("where", a.shape(), b.shape()));
    const Mask mask = chosen.broadcast_to(shape);
    Array y = broadcast_to("where", a.value(), shape);
    const Array other = broadcast_to("where", b.value(), shape);
    for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] = mask[i] ? y.data()[i] : other.data()[i];
    return record(
        "where", {a, b}, std::move(y), saves::nothing,
        [](Pullback& p) {
            const Mask& mask = p.attributes<Mask>();
            if (p.needs(0)) p.x_bar(0) += kept_where(mask, true, p.y_bar(), 0);
            if (p.needs(1)) p.x_bar(1) += kept_where(mask, false, p.y_bar(), 0);
        },
        mask);
}

Tensor masked_fill(const Tensor& x, const Mask& visible, Real value) {
    if (!broadcasts_to(visible.shape(), x.shape()))
        fail<ShapeError>("masked_fill", "mask " + text(visible.shape()) + " does not broadcast to " + text(x.shape()));
    const Mask mask = visible.broadcast_to(x.shape());
    return record(
        "masked_fill", {x}, kept_where(mask, true, x.value(), value), saves::nothing,
        [](Pullback& p) { p.x_bar(0) += kept_where(p.attributes<Mask>(), true, p.take_y_bar(), 0); }, mask);
}

}  // namespace lookback
