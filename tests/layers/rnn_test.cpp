// The plain recurrent cell. Oracles O07 and O08: gradients through time against Jacobians found by hand.
#include "layers/rnn.hpp"
#include <cmath>
#include "engine/kernels.hpp"
#include "engine/ops/movement.hpp"
#include "layers/init.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

static RNN rnn_of(Array W, Array U, Array b, Nonlinearity nonlinearity = Nonlinearity::tanh) {
    return RNN(Parameter(std::move(W)), Parameter(std::move(U)), Parameter(std::move(b)), {nonlinearity});
}

// h_0 as a leaf, and h_k after k steps of input 0.
static std::vector<Tensor> steps(const RNN& rnn, Tape& tape, const Array& h0, int k) {
    std::vector<Tensor> h{tape.leaf(h0)};
    const Tensor x = tape.constant(filled({h0.shape(0), rnn.W.shape()[0]}, 0));
    for (int t = 0; t < k; ++t) h.push_back(rnn(x, {h.back()}).h);
    return h;
}

TEST_CASE("an RNN step is tanh(x W + h U + b), with x and h from the left") {
    const RNN rnn = rnn_of(Array{{1, 2}}, Array{{3, 4}, {5, 6}}, Array{0.5, -0.5});
    Tape tape;
    Array column(Shape{2, 1});
    column(0, 0) = Real(0.1);
    column(1, 0) = Real(0.2);
    const Tensor h = rnn(tape.leaf(column), {tape.leaf(Array{{0.1, 0}, {0, 0.1}})}).h;
    CHECK(close(h.value(), Array{{std::tanh(0.9), std::tanh(0.1)}, {std::tanh(1.2), std::tanh(0.5)}}));
}

TEST_CASE("a scalar RNN at its fixed point multiplies the gradient by w(1 − h²) each step (O08)") {
    struct Case {
        double w, h, J;
    };
    for (const auto& [w, h, J] :
         {Case{1.25, .71041178, .61914387}, {2, .95750402, .16637209}, {3, .99490153, .03051285}}) {
        Tape tape;
        const RNN rnn = rnn_of(filled({1, 1}, 0), filled({1, 1}, Real(w)), filled({1}, 0));
        double fixed = 1;
        for (int i = 0; i < 200; ++i) fixed = std::tanh(w * fixed);
        CHECK(close(fixed, h, 0, 1e-8));
        const auto path = steps(rnn, tape, filled({1, 1}, Real(fixed)), 20);
        const Gradients g = tape.backward(path.back(), path);
        CHECK(close(double(g[path[19]](0, 0)), J, 0, 1e-8));
        CHECK(close(double(g[path[0]](0, 0)), std::pow(w * (1 - fixed * fixed), 20), 1e-9, 0));
    }
    Tape tape;  // at h = 0 the slope is w itself
    const auto path = steps(rnn_of(filled({1, 1}, 0), filled({1, 1}, 3), filled({1}, 0)), tape, filled({1, 1}, 0), 5);
    CHECK(close(double(tape.backward(path.back(), path)[path[0]](0, 0)), 243, 0, 0));
}

TEST_CASE("gradients can explode although every eigenvalue of U is 0 (O07)") {
    // W = [[8,8],[−8,−8]] in h' = tanh(W h + b), so U is its transpose; J = [[8,8],[−6,−6]] at the fixed point (0, ½)
    const RNN rnn = rnn_of(filled({1, 2}, 0), Array{{8, -8}, {8, -8}}, Array{-4, 4 + std::atanh(0.5)});
    Tape tape;
    const auto h = steps(rnn, tape, Array{{0, 0.5}}, 10);
    CHECK(close(h[10].value(), Array{{0, 0.5}}));
    const Array row = tape.backward(select(select(h[10], 0, 0), 0, 0), {h[0]})[h[0]];
    CHECK(close(lookback::norm(row), 512 * 8 * std::sqrt(2.0)));  // 5792.6188
    const Array second = tape.backward(select(select(h[10], 0, 0), 0, 1), {h[0]})[h[0]];
    CHECK(close(std::hypot(lookback::norm(row), lookback::norm(second)), 512 * std::sqrt(200.0)));  // ‖J^10‖, of rank 1
}

TEST_CASE("a relu RNN with identity weights copies its state, and its gradient, for ever (IRNN)") {
    const RNN rnn = rnn_of(filled({1, 3}, 0), init::identity(3), filled({3}, 0), Nonlinearity::relu);
    Tape tape;
    const Array h0{{1, 2, 3}, {4, 5, 6}};
    const auto h = steps(rnn, tape, h0, 300);
    CHECK(same_bits(h.back().value(), h0));
    const Array seed{{1, -1, 2}, {3, 0.5, 7}};
    CHECK(same_bits(tape.backward(h.back(), {h[0]}, {.seed = seed})[h[0]], seed));
}
