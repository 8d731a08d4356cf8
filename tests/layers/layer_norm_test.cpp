#include "layers/layer_norm.hpp"
#include "engine/ops/arithmetic.hpp"
#include "tests/support/array.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

TEST_CASE("LayerNorm uses the population's variance, and eps under the root", "[layers][layer_norm]") {
    LayerNorm norm(4);
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 0, 0, 0});
    const Tensor y = norm(x);
    CHECK(close(y.value(), {1.7320046214, -0.5773348738, -0.5773348738, -0.5773348738}));
    const Gradients g = tape.backward(y, {x}, {.seed = Array{1, 2, 3, 4}});
    CHECK(close(g[x], {-0.0001847373, -2.3092779161, 0.0000615791, 2.3094010743}));
    CHECK(close(g[norm.bias], {1, 2, 3, 4}));
    CHECK(close(g[norm.gain], {1.7320046214, 2 * -0.5773348738, 3 * -0.5773348738, 4 * -0.5773348738}));
}

TEST_CASE("LayerNorm's Jacobian has no room for a shift or a stretch", "[layers][layer_norm]") {
    const LayerNorm norm(4, 0);
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 2, 3, 6});
    const Tensor y = norm(x);
    const Array x_hat = y.value();
    CHECK(close(x_hat, {-1.06904497, -0.53452248, 0, 1.60356745}, 0, 1e-8));
    const Real J[4][4] = {{26, -22, -14, 10}, {-22, 38, -14, -2}, {-14, -14, 42, -14}, {10, -2, -14, 6}};
    for (std::size_t i = 0; i < 4; ++i) {
        Array seed = filled({4}, 0);
        seed(i) = Real(56 * std::sqrt(3.5));
        const Array row = tape.backward(y, {x}, {.seed = seed})[x];
        CHECK(close(row, {J[i][0], J[i][1], J[i][2], J[i][3]}));
        CHECK(close(double(row(0) + row(1) + row(2) + row(3)), 0, 0, 1e-12));
        CHECK(
            close(double(row(0) * x_hat(0) + row(1) * x_hat(1) + row(2) * x_hat(2) + row(3) * x_hat(3)), 0, 0, 1e-12));
    }
}

TEST_CASE("LayerNorm treats each row alone and starts as x̂", "[layers][layer_norm]") {
    LayerNorm norm(2);
    CHECK(parameter_count(norm) == 4);
    Tape tape;
    const Array y = norm(tape.leaf(array({2, 1, 2}, {1, 3, 100, 300}))).value();
    CHECK(close(y, array({2, 1, 2}, {-1, 1, -1, 1}), 1e-4, 1e-4));
    CHECK(norm(tape.leaf(filled({0, 2}, 1))).shape() == Shape{0, 2});
}

TEST_CASE("LayerNorm refuses what doesn't fit", "[layers][layer_norm]") {
    const LayerNorm norm(4);
    Tape tape;
    CHECK_THROWS_WITH(norm(tape.leaf(filled({2, 3}, 1))), "[LayerNorm] x (2,3) does not match gain (4)");
    CHECK_THROWS_AS(LayerNorm(0), ValueError);
    CHECK_THROWS_AS(LayerNorm(4, -1), ValueError);
}
