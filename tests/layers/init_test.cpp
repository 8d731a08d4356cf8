// Weights before training.
#include "layers/init.hpp"
#include <cmath>
#include "engine/blas.hpp"
#include "engine/kernels.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

TEST_CASE("an orthogonal matrix has orthonormal rows or columns, whichever are fewer, times gain") {
    for (const Shape& shape : {Shape{5, 5}, {1, 1}, {3, 7}, {7, 3}, {1, 4}, {4, 1}, {40, 40}}) {
        INFO(text(shape));
        Generator generator(3);
        const Array w = init::orthogonal(generator, shape, 0.9);
        const bool tall = shape[0] > shape[1];
        const Array gram = tall ? product(w, Op::transposed, w, Op::plain) : product(w, Op::plain, w, Op::transposed);
        CHECK(close(gram, init::identity(std::min(shape[0], shape[1]), 0.81), 1e-13, 1e-13));
    }
}

TEST_CASE("orthogonal matrices of odd size are rotations and reflections about equally often") {
    Generator generator(1);
    int rotations = 0;
    for (int i = 0; i < 1000; ++i) {
        const Array q = init::orthogonal(generator, {2, 2});
        rotations += q(0, 0) * q(1, 1) - q(0, 1) * q(1, 0) > 0;
    }
    CHECK(std::abs(rotations - 500) < 80);  // five deviations
}

TEST_CASE("uniform weights fill their bound, and no more") {
    Generator generator(1);
    const auto widest = [](const Array& w) {
        double most = 0;
        for (Real v : w) most = std::max(most, std::abs(double(v)));
        return most;
    };
    const auto check = [&](const Array& w, double bound) {
        CHECK(widest(w) <= bound);
        CHECK(widest(w) > 0.99 * bound);
        CHECK(std::abs(sum_of(w.size(), [&](std::size_t i) { return w.data()[i]; })) <
              5 * bound * std::sqrt(double(w.size()) / 3));
        CHECK(std::abs(sum_of_squares(w) / double(w.size()) / (bound * bound / 3) - 1) < 0.05);
    };
    check(init::uniform(generator, {100, 100}, 0.3), 0.3);
    check(init::uniform_by_fan(generator, {100, 100}, 16), 0.25);
    check(init::glorot_uniform(generator, {50, 100}), 0.2);
    CHECK(close(init::uniform(generator, {3}, 0), filled({3}, 0), 0, 0));
}

TEST_CASE("the identity is scaled, and of size 0 empty") {
    CHECK(close(init::identity(2, 0.5), Array{{0.5, 0}, {0, 0.5}}, 0, 0));
    CHECK_THROWS_AS(init::identity(2, std::nan("")), ValueError);
    CHECK(init::identity(0).shape() == Shape{0, 0});
    Generator generator(1);
    CHECK(init::orthogonal(generator, {0, 3}).shape() == Shape{0, 3});
    CHECK(init::glorot_uniform(generator, {0, 0}).shape() == Shape{0, 0});
}

TEST_CASE("the same seed gives the same weights, which reading does not change") {
    Generator a(5), b(5);
    const Array w = init::orthogonal(a, {4, 4});
    CHECK(same_bits(w, init::orthogonal(b, {4, 4})));
    CHECK(!same_bits(w, init::orthogonal(a, {4, 4})));
}

TEST_CASE("initial weights of an impossible kind are errors") {
    Generator generator(1);
    using Catch::Matchers::Message;
    CHECK_THROWS_MATCHES(init::orthogonal(generator, {3}), ShapeError,
                         Message("[orthogonal] a matrix (in,out) is wanted, not (3)"));
    CHECK_THROWS_AS(init::glorot_uniform(generator, {3, 4, 5}), ShapeError);
    CHECK_THROWS_AS(init::uniform(generator, {3}, -1), ValueError);
    CHECK_THROWS_AS(init::uniform(generator, {3}, std::nan("")), ValueError);
    CHECK_THROWS_AS(init::uniform_by_fan(generator, {3}, 0), ValueError);
}
