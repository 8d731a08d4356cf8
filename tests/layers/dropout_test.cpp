#include "layers/dropout.hpp"
#include "engine/ops/reduce.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

TEST_CASE("dropout drops in training only", "[layers][dropout]") {
    const Dropout dropout(Real(0.25));
    Generator generator(1);
    Tape tape;
    const Tensor x = tape.leaf(filled({1000}, 3));
    CHECK(same_bits(dropout(x, evaluation).value(), x.value()));
    CHECK(dropout(x, evaluation).id() == x.id());

    const Tensor y = dropout(x, training(generator));
    std::size_t dropped = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
        if (y.value()(i) == 0)
            ++dropped;
        else
            REQUIRE(close(double(y.value()(i)), 4));  // 3 / (1 − p)
    }
    CHECK(dropped > 180);  // 250 expected, give or take 14
    CHECK(dropped < 320);
    const Array slope = tape.backward(sum(y), {x})[x];
    CHECK(close(slope, Array(y.value() / 3)));
}

TEST_CASE("dropout draws anew at each call, and the same from the same seed", "[layers][dropout]") {
    const Dropout dropout(Real(0.5));
    Tape tape;
    const Tensor x = tape.leaf(filled({100}, 1));
    Generator a(7), b(7);
    const Array first = dropout(x, training(a)).value(), second = dropout(x, training(a)).value();
    CHECK_FALSE(same_bits(first, second));
    CHECK(same_bits(first, dropout(x, training(b)).value()));
}

TEST_CASE("dropping nothing is the identity, dropping everything gives zeros, and more is refused",
          "[layers][dropout]") {
    Generator generator(1);
    Tape tape;
    const Tensor x = tape.leaf(filled({5}, 2));
    CHECK(same_bits(Dropout(0)(x, training(generator)).value(), x.value()));
    CHECK(same_bits(Dropout(1)(x, training(generator)).value(), filled({5}, 0)));
    CHECK_THROWS_AS(Dropout(Real(1.5)), ValueError);
    CHECK_THROWS_AS(Dropout(Real(-0.1)), ValueError);
    CHECK_THROWS_AS(Dropout(std::numeric_limits<Real>::quiet_NaN()), ValueError);
}
