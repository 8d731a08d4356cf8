// Numbers derived by hand that no single op or layer owns: products of Jacobians, and attention's power law.
#include <cmath>
#include "engine/ops.hpp"
#include "engine/spectrum.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

static constexpr double exact = sizeof(Real) == 8 ? 1e-12 : 1e-5;

// The Jacobian of x ↦ x Aᵏ by the tape, one row an output.
static Array power(const Array& A, int k) {
    Tape tape;
    const Tensor a = tape.constant(A);
    const std::size_t n = A.shape(0);
    const Tensor x = tape.leaf(filled({1, n}, 1));
    Tensor y = x;
    for (int i = 0; i < k; ++i) y = matmul(y, a);
    Array J = Array::from_shape({n, n});
    for (std::size_t i = 0; i < n; ++i) {
        Array seed = filled({1, n}, 0);
        seed(0, i) = 1;
        const Gradients g = tape.backward(y, {x}, {.seed = seed});
        for (std::size_t j = 0; j < n; ++j) J(i, j) = g[x](0, j);
    }
    return J;
}

TEST_CASE("factors below 1 need not vanish: the product of 1 − 1/k² settles at a half (O04)") {
    for (int n : {10, 1000}) {
        Tape tape;
        const Tensor h0 = tape.leaf(Array(Real(1)));
        Tensor h = h0;
        for (int k = 2; k <= n + 1; ++k) h = Real(1 - 1.0 / (double(k) * k)) * h;
        CHECK(close(double(tape.backward(h, {h0})[h0]()), (n + 2.0) / (2.0 * n + 2.0), exact, 0));
    }
}

TEST_CASE("a norm above 1 need not explode: a rotation with stretches 1.25 and 0.5 shrinks by √0.625 a step (O05)") {
    const Array A{{0, -0.5}, {1.25, 0}};
    CHECK(close(spectral_norm(A), 1.25, exact, 0));
    CHECK(close(spectral_radius(A), std::sqrt(0.625), exact, 0));
    CHECK(close(power(A, 2), Array{{-0.625, 0}, {0, -0.625}}, exact, exact));
}

TEST_CASE("a matrix that is not normal lets gradients grow before they die (O06)") {
    const Array A{{0.5, 10}, {0, 0.5}};
    const std::vector<std::pair<int, double>> norms{{1, 10.024938}, {2, 10.006246}, {7, 1.093806},
                                                    {10, .195317},  {14, .017090},  {20, 3.81472e-4}};
    for (const auto& [k, expected] : norms)
        CHECK(close(spectral_norm(power(A, k)), expected, sizeof(Real) == 8 ? 3e-5 : 1e-4, 0));
    CHECK(close(spectral_radius(A), 0.5, 1e-5, 0));
}

// h_t = w s_{t−1}, s_t = h_t + mean(h_1 … h_t); L = s_T; ∂L/∂h_1.
static double attentive(double w, int T) {
    Tape tape;
    const Tensor h1 = tape.leaf(Array(Real(1)));
    Tensor total = h1, s = h1 + h1;
    for (int t = 2; t <= T; ++t) {
        const Tensor h = Real(w) * s;
        total = total + h;
        s = h + Real(1.0 / t) * total;
    }
    return double(tape.backward(s, {h1})[h1]());
}

TEST_CASE("uniform attention turns exponential decay into a power law (O13)") {
    CHECK(close(attentive(0.25, 2), 5.0 / 4, exact, 0));
    CHECK(close(attentive(0.25, 3), 11.0 / 12, exact, 0));
    CHECK(close(attentive(0.25, 4), .7395833333333, 1e-6, 0));
    CHECK(close(attentive(0.2, 2), 1.1, exact, 0));
    CHECK(close(attentive(0.2, 64), .0721057589, 1e-5, 0));
    CHECK(close(attentive(0.2, 1024), .0090067148, 1e-4, 0));
    CHECK(close(attentive(0.4, 1024), .2171621352, 1e-4, 0));
    for (int T : {2, 10, 1000}) {
        CHECK(close(attentive(0.5, T), 2, sizeof(Real) == 8 ? 1e-12 : 1e-3, 0));
        CHECK(close(attentive(0, T), 1.0 / T, exact, 0));
    }
}

TEST_CASE("lengths are right far beyond where squares are, so that a vanishing gradient is seen to its end") {
    if (sizeof(Real) != 8) return;
    CHECK(close(norm(Array{Real(3e-200), Real(4e-200)}), 5e-200, 1e-14, 0));
    CHECK(close(norm(Array{Real(3e200), Real(4e200)}), 5e200, 1e-14, 0));
    CHECK(close(norm(Array{Real(5e-324)}), 5e-324, 0, 0));
    CHECK(norm(Array{0, 0}) == 0);
    CHECK(norm(filled({0}, 1)) == 0);
    CHECK(std::isnan(norm(Array{1, Real(std::nan(""))})));
    CHECK(std::isinf(norm(Array{1, Real(-INFINITY)})));
}

TEST_CASE("a NaN in maximum or minimum is the winner, of value and of gradient") {
    Tape tape;
    const Real nan = std::numeric_limits<Real>::quiet_NaN();
    const Tensor a = tape.leaf(Array{nan, 1}), b = tape.leaf(Array{1, nan});
    for (const Tensor& y : {maximum(a, b), minimum(a, b)}) {
        CHECK(close(y.value(), Array{nan, nan}));
        const Gradients g = tape.backward(y, {a, b}, {.seed = Array{2, 3}});
        CHECK(close(g[a], Array{2, 0}));
        CHECK(close(g[b], Array{0, 3}));
    }
}
