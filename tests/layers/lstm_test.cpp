// Long short-term memory. Oracle O12: what its gates keep, in value and in gradient.
#include "layers/lstm.hpp"
#include <cmath>
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

// One unit without weights: gates are what the bias [i f g o] says.
static LSTM of_bias(Real i, Real f, Real g, Real o) {
    return LSTM(Parameter(filled({1, 4}, 0)), Parameter(filled({1, 4}, 0)), Parameter(Array{i, f, g, o}));
}
// c_0 and c_T
static std::pair<Tensor, Tensor> cells(const LSTM& lstm, Tape& tape, Real c0, int T) {
    const Tensor first = tape.leaf(filled({1, 1}, c0)), x = tape.constant(filled({1, 1}, 0));
    LSTM::State s{tape.constant(filled({1, 1}, 0)), first};
    for (int t = 0; t < T; ++t) s = lstm(x, s);
    return {first, s.c};
}

TEST_CASE("an LSTM whose forget gate is open and input gate shut keeps c and its gradient exactly (O12)") {
    const LSTM lstm = of_bias(-800, 800, 1, 1);
    Tape tape;
    const auto [first, last] = cells(lstm, tape, Real(0.3), 100);
    CHECK(last.value()(0, 0) == Real(0.3));
    CHECK(tape.backward(last, {first})[first](0, 0) == 1);
}

TEST_CASE("an LSTM's cell decays by σ(b_f) each step, as does its gradient (O12)") {
    {
        Tape tape;
        const auto [first, last] = cells(of_bias(0, 1, Real(std::atanh(0.5)), 0), tape, 1, 10);
        CHECK(close(double(last.item()), .9326414347, 0, 1e-10));
        CHECK(close(double(tape.backward(last, {first})[first](0, 0)), .0436035428, 0, 1e-10));
    }
    struct Case {
        Real b;
        double kept;
    };
    for (const auto& [b, kept] :
         {Case{0, 8.8818e-16}, {1, 1.57619e-7}, {2, 1.75305e-3}, {3, 8.80926e-2}, {5, .714789}}) {
        Tape tape;
        const auto [first, last] = cells(of_bias(-800, b, 0, 0), tape, 1, 50);
        CHECK(close(double(tape.backward(last, {first})[first](0, 0)), kept, 1e-5, 0));
    }
}

TEST_CASE("an LSTM step is what its equations say, gates in the order i f g o") {
    const Array a{{0.1, 0.2, 0.3, 0.4}};
    const LSTM lstm(Parameter(a), Parameter(filled({1, 4}, 0)), Parameter(filled({4}, 0)));
    Tape tape;
    const LSTM::State s =
        lstm(tape.leaf(filled({1, 1}, 1)), {tape.constant(filled({1, 1}, 0)), tape.constant(filled({1, 1}, 2))});
    const auto sigma = [](double v) { return 1 / (1 + std::exp(-v)); };
    const double c = sigma(0.2) * 2 + sigma(0.1) * std::tanh(0.3);
    CHECK(close(double(s.c.item()), c));
    CHECK(close(double(s.h.item()), sigma(0.4) * std::tanh(c)));
}

TEST_CASE("the forget bias fills b_f and nothing else; without it b_f is drawn as the others are") {
    Generator a(1), b(1);
    const LSTM drawn(2, 3, a), set(2, 3, b, {.forget_bias = 1});
    for (std::size_t j = 0; j < 12; ++j) CHECK(set.b.value()(j) == (j / 3 == 1 ? Real(1) : drawn.b.value()(j)));
    CHECK(drawn.b.value()(3) != drawn.b.value()(4));
    CHECK(same_bits(set.W.value(), drawn.W.value()));
}

TEST_CASE("an LSTM refuses a cell state of another shape") {
    Generator generator(1);
    const LSTM lstm(2, 3, generator);
    Tape tape;
    CHECK_THROWS_MATCHES(
        lstm(tape.leaf(filled({4, 2}, 1)), {tape.constant(filled({4, 3}, 0)), tape.constant(filled({1, 3}, 0))}),
        ShapeError, Catch::Matchers::Message("[LSTM] state c is (1,3), not (B,H) = (4,3)"));
}
