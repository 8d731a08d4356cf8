#include "layers/position.hpp"
#include "engine/ops/reduce.hpp"
#include "tests/support/array.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

static double dot(const Array& P, std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t i = 0; i < P.shape()[1]; ++i) sum += P(a, i) * P(b, i);
    return sum;
}

TEST_CASE("sinusoidal positions interleave sines and cosines, at even and odd widths", "[layers][position]") {
    CHECK(close(sinusoidal(1, 4, 1), array({1, 4}, {0.8414709848, 0.5403023059, 0.0099998333, 0.9999500004})));
    CHECK(close(sinusoidal(1, 5, 1),
                array({1, 5}, {0.8414709848, 0.5403023059, 0.0251162229, 0.9996845379, 0.0006309573})));
    CHECK(close(sinusoidal(2, 1), array({2, 1}, {0, 0.8414709848})));
    CHECK(close(sinusoidal(1, 4), array({1, 4}, {0, 1, 0, 1})));
    CHECK(sinusoidal(0, 4).shape() == Shape{0, 4});
    CHECK(sinusoidal(3, 0).shape() == Shape{3, 0});
}

TEST_CASE("sinusoidal positions have one length, and products that depend on the distance", "[layers][position]") {
    const Array P = sinusoidal(90, 4), Q = sinusoidal(90, 64);
    CHECK(close(dot(P, 5, 8), std::cos(3.) + std::cos(0.03)));
    CHECK(close(dot(P, 5, 8), 0.0095575371));
    for (const std::size_t t : {0, 1, 17, 89}) {
        CHECK(close(dot(P, t, t), 2));
        CHECK(close(dot(Q, t, t), 32));
    }
    for (const std::size_t t : {0, 3, 25}) {
        CHECK(close(dot(Q, t, t + 1), 30.91683, 0, 1e-5));
        CHECK(close(dot(Q, t, t + 8), 22.41391, 0, 1e-5));
        CHECK(close(dot(Q, t, t + 64), 13.90609, 0, 1e-5));
    }
}

TEST_CASE("a shift turns each pair of a sinusoidal position by one angle", "[layers][position]") {
    const std::size_t E = 6, shift = 7;
    const Array P = sinusoidal(40, E);
    for (std::size_t k = 0; k < E; k += 2) {
        const double angle = double(shift) / std::pow(10000., double(k) / double(E));
        for (std::size_t t = 0; t + shift < 40; ++t) {
            CHECK(close(double(P(t + shift, k)), std::cos(angle) * P(t, k) + std::sin(angle) * P(t, k + 1), 1e-12,
                        1e-12));
            CHECK(close(double(P(t + shift, k + 1)), std::cos(angle) * P(t, k + 1) - std::sin(angle) * P(t, k), 1e-12,
                        1e-12));
        }
    }
}

TEST_CASE("positions are added, counted from the first one given", "[layers][position]") {
    Generator generator(1);
    Tape tape;
    const Tensor x = tape.leaf(filled({2, 3, 4}, 1));
    const Array P = sinusoidal(5, 4), y = SinusoidalPosition{}(x, 2).value();
    LearnedPosition learned(5, 4, generator);
    const Tensor z = learned(x, 2);
    for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t t = 0; t < 3; ++t)
            for (std::size_t e = 0; e < 4; ++e) {
                CHECK(close(double(y(b, t, e)), 1 + P(t + 2, e)));
                CHECK(close(double(z.value()(b, t, e)), 1 + learned.table.value()(t + 2, e)));
            }
    const Gradients g = tape.backward(sum(z), {x});
    CHECK(close(g[x], filled({2, 3, 4}, 1)));
    CHECK(close(g[learned.table], array({5, 4}, {0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2})));
    CHECK(same_bits(NoPosition{}(x, 2).value(), x.value()));
    CHECK(parameter_count(learned) == 20);
}

TEST_CASE("a first position so far that the last one wraps is not taken for a small one", "[layers][position]") {
    Tape tape;
    Generator generator(1);
    const Tensor x = tape.leaf(filled({1, 3, 4}, 0));
    const std::size_t last = std::numeric_limits<std::size_t>::max();
    CHECK_THROWS_AS(LearnedPosition(8, 4, generator)(x, last), IndexError);
    CHECK_FALSE(close(sinusoidal(2, 4, last)(1, 1), 1));  // not position 0 again, whose cosine is 1
}

TEST_CASE("positions beyond a learned table are refused", "[layers][position]") {
    Generator generator(1);
    const LearnedPosition learned(4, 8, generator);
    Tape tape;
    CHECK_NOTHROW(learned(tape.leaf(filled({1, 4, 8}, 0))));
    CHECK_THROWS_WITH(learned(tape.leaf(filled({1, 6, 8}, 0))),
                      "[LearnedPosition] 6 positions from 0 are beyond the table (4,8)");
    CHECK_THROWS_AS(learned(tape.leaf(filled({1, 1, 8}, 0)), 4), IndexError);
    CHECK_THROWS_AS(learned(tape.leaf(filled({1, 4, 7}, 0))), ShapeError);
    CHECK_THROWS_AS(SinusoidalPosition{}(tape.leaf(filled({4, 8}, 0))), ShapeError);
    CHECK_THROWS_AS(LearnedPosition(0, 8, generator), ValueError);
}
