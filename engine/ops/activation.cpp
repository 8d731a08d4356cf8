#include "activation.hpp"
#include <limits>
#include <numbers>
#include "engine/kernels.hpp"
#include "engine/pullback.hpp"

namespace lookback {

Tensor exp(const Tensor& x) {
    return record("exp", {x}, xt::exp(x.value()), saves::output,
                  [](Pullback& p) { p.x_bar(0) += chain(p.y_bar(), p.y()); });
}

Tensor log(const Tensor& x) {
    Array y = xt::log(x.value());
    for (std::size_t i = 0; i < y.size(); ++i)  // of denormal numbers, which vector instructions get wrong
        if (const Real v = x.value().data()[i]; v > 0 && v < std::numeric_limits<Real>::min())
            y.data()[i] = std::log(v);
    return record("log", {x}, std::move(y), saves::inputs,
                  [](Pullback& p) { p.x_bar(0) += chain_quotient(p.y_bar(), p.x(0)); });
}

Tensor sqrt(const Tensor& x) {
    return record("sqrt", {x}, xt::sqrt(x.value()), saves::output,
                  [](Pullback& p) { p.x_bar(0) += chain(p.y_bar(), Real(0.5) / p.y()); });
}

Tensor abs(const Tensor& x) {
    return record("abs", {x}, xt::abs(x.value()), saves::inputs, [](Pullback& p) {
        Array sign = p.x(0);
        for (Real& v : sign) v = v > 0 ? 1 : v < 0 ? -1 : v;  // 0 and NaN stay
        p.x_bar(0) += chain(p.y_bar(), std::move(sign));
    });
}

Tensor tanh(const Tensor& x) {
    return record("tanh", {x}, xt::tanh(x.value()), saves::output,
                  [](Pullback& p) { p.x_bar(0) += chain(p.y_bar(), 1 - p.y() * p.y()); });
}

// With e = e^−|x| ≤ 1 it is 1 / (1 + e) for x ≥ 0 and e / (1 + e) below.
static Array logistic(const Array& x) {
    const Array e = xt::exp(-xt::abs(x));
    return xt::where(x >= Real(0), Real(1), e) / (1 + e);
}

Tensor sigmoid(const Tensor& x) {
    return record("sigmoid", {x}, logistic(x.value()), saves::output,
                  [](Pullback& p) { p.x_bar(0) += chain(p.y_bar(), p.y() * (1 - p.y())); });
}

Tensor relu(const Tensor& x) {
    Array y = x.value();
    for (Real& v : y) v = v <= 0 ? 0 : v;  // NaN stays
    return record("relu", {x}, std::move(y), saves::output, [](Pullback& p) {
        Array x_bar = p.take_y_bar();
        const Real* y = p.y().data();
        for (std::size_t i = 0; i < x_bar.size(); ++i) x_bar.data()[i] = y[i] > 0 ? x_bar.data()[i] : 0;
        p.x_bar(0) += std::move(x_bar);
    });
}

// Φ(x), the normal distribution function. By erfc, since 1 + erf cancels far below 0.
static Array normal_cdf(const Array& x) { return Real(0.5) * xt::erfc(-std::numbers::sqrt2_v<Real> / 2 * x); }

// Beyond ±100, Φ is 0 or 1 to the last bit; vectorised erfc makes NaN of larger numbers. NaN stays.
static Array within_100(Array x) {
    for (Real& v : x) v = v > 100 ? 100 : v < -100 ? -100 : v;
    return x;
}

Tensor gelu(const Tensor& x) {
    Array y = normal_cdf(within_100(x.value()));
    for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] *= y.data()[i] == 0 ? 0 : x.value().data()[i];  // −∞ · 0
    return record("gelu", {x}, std::move(y), saves::inputs, [](Pullback& p) {
        if (!p.needs(0)) return;
        constexpr Real inv_sqrt_2pi = std::numbers::inv_sqrtpi_v<Real> * std::numbers::sqrt2_v<Real> / 2;
        const Array x = within_100(p.x(0));
        p.x_bar(0) += chain(p.y_bar(), normal_cdf(x) + x * inv_sqrt_2pi * xt::exp(Real(-0.5) * x * x));
    });
}

Tensor softplus(const Tensor& x) {
    const Array& v = x.value();
    return record("softplus", {x}, xt::maximum(v, Real(0)) + xt::log1p(xt::exp(-xt::abs(v))), saves::inputs,
                  [](Pullback& p) {
                      if (p.needs(0)) p.x_bar(0) += chain(p.y_bar(), logistic(p.x(0)));
                  });
}

}  // namespace lookback
