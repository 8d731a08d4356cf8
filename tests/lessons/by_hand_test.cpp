// The lesson's own Jacobians are a second route; a third, central differences, checks them here.
#include "lessons/by_hand.hpp"
#include <cmath>
#include "engine/random.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::by_hand;

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Central differences of f, a map of rows.
template <class F> static std::vector<std::vector<double>> differences(const std::vector<double>& at, F f) {
    std::vector<std::vector<double>> J;
    for (std::size_t i = 0; i < at.size(); ++i) {
        std::vector<double> up = at, down = at;
        up[i] += 1e-6, down[i] -= 1e-6;
        const std::vector<double> y = f(up), z = f(down);
        std::vector<double>& row = J.emplace_back();
        for (std::size_t j = 0; j < y.size(); ++j) row.push_back((y[j] - z[j]) / 2e-6);
    }
    return J;
}
static void check_equal(const Array& J, const std::vector<std::vector<double>>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i)
        for (std::size_t j = 0; j < expected[i].size(); ++j)
            CHECK(test::close(double(J(i, j)), expected[i][j], 0, 1e-7));
}

TEST_CASE("the Jacobians by hand agree with central differences of the cells' equations") {
    constexpr std::size_t H = 3;
    Generator g(5);
    const Array h = g.uniform({1, H}, -1, 1), c = g.uniform({1, H}, -1, 1), a3 = g.uniform({1, 3 * H}, -1, 1),
                a4 = g.uniform({1, 4 * H}, -1, 1);
    const Array U1 = g.uniform({H, H}, -1, 1), U3 = g.uniform({H, 3 * H}, -1, 1), U4 = g.uniform({H, 4 * H}, -1, 1),
                b = g.uniform({H}, -1, 1);
    const auto product = [&](const std::vector<double>& x, const Array& U, std::size_t j) {
        double s = 0;
        for (std::size_t i = 0; i < H; ++i) s += x[i] * U(i, j);
        return s;
    };
    const auto row = [](const Array& x) { return std::vector<double>(x.begin(), x.end()); };

    const auto rnn = [&](const std::vector<double>& x) {
        std::vector<double> y;
        for (std::size_t j = 0; j < H; ++j) y.push_back(std::tanh(a3(0, j) + product(x, U1, j)));
        return y;
    };
    Array h_new = Array::from_shape({1, H});
    const std::vector<double> y = rnn(row(h));
    std::copy(y.begin(), y.end(), h_new.begin());
    check_equal(rnn_jacobian(U1, h_new), differences(row(h), rnn));

    check_equal(gru_jacobian(a3, h, U3, b), differences(row(h), [&](const std::vector<double>& x) {
                    std::vector<double> out;
                    for (std::size_t j = 0; j < H; ++j) {
                        const double r = sigmoid(a3(0, j) + product(x, U3, j)),
                                     z = sigmoid(a3(0, H + j) + product(x, U3, H + j));
                        const double n = std::tanh(a3(0, 2 * H + j) + r * (product(x, U3, 2 * H + j) + b(j)));
                        out.push_back((1 - z) * n + z * x[j]);
                    }
                    return out;
                }));

    std::vector<double> hc = row(h);
    hc.insert(hc.end(), c.begin(), c.end());
    check_equal(lstm_jacobian(a4, h, c, U4), differences(hc, [&](const std::vector<double>& x) {
                    std::vector<double> out(2 * H);
                    for (std::size_t j = 0; j < H; ++j) {
                        const auto gate = [&](std::size_t k) { return a4(0, k * H + j) + product(x, U4, k * H + j); };
                        out[H + j] = sigmoid(gate(1)) * x[H + j] + sigmoid(gate(0)) * std::tanh(gate(2));
                        out[j] = sigmoid(gate(3)) * std::tanh(out[H + j]);
                    }
                    return out;
                }));
    CHECK(times(U1, {1, 0, 0}) == std::vector<double>{U1(0, 0), U1(1, 0), U1(2, 0)});
    CHECK(test::close(affine(h, U3, a3)(0, 1), a3(0, 1) + product(row(h), U3, 1)));
}
