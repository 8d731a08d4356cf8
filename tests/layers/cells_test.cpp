// What holds for RNN, LSTM and GRU alike.
#include "cells.hpp"
#include "engine/kernels.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/reduce.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;
using Catch::Matchers::Message;

template <class Cell> static const char* name;
template <> const char* name<RNN> = "RNN";
template <> const char* name<LSTM> = "LSTM";
template <> const char* name<GRU> = "GRU";

TEMPLATE_TEST_CASE("a cell's call equals its composed form, in value and in every gradient", "", RNN, LSTM, GRU) {
    for (const auto& [B, I, H] : {std::tuple(3, 2, 4), {1, 1, 1}, {2, 5, 17}, {7, 3, 2}}) {
        Generator generator(1);
        TestType cell(std::size_t(I), std::size_t(H), generator);
        Tape tape;
        const Tensor x = tape.leaf(uniform({std::size_t(B), std::size_t(I)}, -1, 1));
        const auto state = random_state(cell, tape, std::size_t(B));
        const auto fused = parts(cell(x, state)), composed = parts(cell.composed(x, state));
        std::vector<Tensor> wanted = parameters(cell);
        wanted.push_back(x);
        for (const Tensor& part : parts(state)) wanted.push_back(part);
        for (std::size_t k = 0; k < fused.size(); ++k) {
            CHECK(close(fused[k].value(), composed[k].value()));
            const BackwardOptions seed{.seed = uniform(fused[k].shape(), -1, 1, 9)};
            const Gradients g = tape.backward(fused[k], wanted, seed), h = tape.backward(composed[k], wanted, seed);
            for (const Tensor& w : wanted) {
                CHECK(close(g[w], h[w]));
                CHECK(norm(h[w]) > 0);
            }
        }
    }
}

TEMPLATE_TEST_CASE("a cell starts at zeros, with weights uniform in ±1/√H that the seed decides", "", RNN, LSTM, GRU) {
    Generator a(1), b(1);
    TestType cell(30, 25, a), same(30, 25, b), other(30, 25, a);
    const auto p = parameters(cell), q = parameters(same), r = parameters(other);
    for (std::size_t k = 0; k < p.size(); ++k) {
        CHECK(same_bits(p[k].value(), q[k].value()));
        CHECK(!same_bits(p[k].value(), r[k].value()));
        Real most = 0;
        for (Real v : p[k].value()) most = std::max(most, std::abs(v));
        CHECK(most <= 0.2);
        CHECK(most > 0.15);
    }
    Tape tape;
    for (const Tensor& part : parts(cell.start(tape, 3))) CHECK(close(part.value(), filled({3, 25}, 0), 0, 0));
    CHECK_THROWS_AS(TestType(3, 0, a), ValueError);
}

TEST_CASE("cells have d_h (d_x + d_h + 1) numbers a gate, and a GRU d_h more (O29)") {
    Generator generator(1);
    RNN rnn(3, 4, generator);
    LSTM lstm(3, 4, generator);
    GRU gru(3, 4, generator);
    CHECK(parameter_count(rnn) == 32);
    CHECK(parameter_count(lstm) == 128);
    CHECK(parameter_count(gru) == 100);
}

TEMPLATE_TEST_CASE("parameters are named by their path", "", RNN, LSTM, GRU) {
    Generator generator(1);
    TestType cell(2, 3, generator);
    std::string paths;
    cell.for_each_parameter("encoder",
                            [&](const std::string& path, Parameter& p) { paths += path + text(p.shape()) + " "; });
    CHECK(paths.starts_with("encoder.W(2,"));
    CHECK(paths.find("encoder.U(3,") != std::string::npos);
    name_parameters(cell);
    CHECK(cell.U.name() == "U");
}

TEMPLATE_TEST_CASE("weights go to PyTorch and back unchanged, with both of its biases used", "", RNN, LSTM, GRU) {
    Generator generator(1);
    TestType cell(2, 3, generator), other(2, 3, generator);
    const PyTorchWeights theirs = cell.to_pytorch();
    const std::size_t nH = cell.U.shape()[1];
    CHECK(theirs.weight_ih.shape() == Shape{nH, 2});
    CHECK(theirs.weight_hh.shape() == Shape{nH, 3});
    CHECK(theirs.weight_ih(1, 0) == cell.W.value()(0, 1));
    CHECK(theirs.weight_hh(nH - 1, 2) == cell.U.value()(2, nH - 1));
    other.from_pytorch(theirs);
    const auto p = parameters(cell), q = parameters(other);
    for (std::size_t k = 0; k < p.size(); ++k) CHECK(same_bits(p[k].value(), q[k].value()));

    // Bias of one gate moved from one of their vectors to the other changes nothing outside the reset.
    PyTorchWeights moved = theirs;
    moved.bias_hh(0) = theirs.bias_ih(0);
    moved.bias_ih(0) = 0;
    other.from_pytorch(moved);
    CHECK(close(other.b.value(), cell.b.value()));

    PyTorchWeights wrong = theirs;
    wrong.bias_hh = filled({nH + 1}, 0);
    const Array before = other.W.value();
    CHECK_THROWS_MATCHES(
        other.from_pytorch(wrong), ShapeError,
        Message(std::string("[") + name<TestType> + "] bias_hh is " + text({nH + 1}) + ", not " + text({nH})));
    wrong = theirs;
    wrong.weight_ih = Array(Shape{2, nH});  // not transposed
    CHECK_THROWS_AS(other.from_pytorch(wrong), ShapeError);
    CHECK(same_bits(other.W.value(), before));
}

TEMPLATE_TEST_CASE("what does not fit a cell is an error that names it", "", RNN, LSTM, GRU) {
    Generator generator(1);
    TestType cell(2, 3, generator);
    Tape tape;
    const auto state = cell.start(tape, 4);
    const std::string layer = std::string("[") + name<TestType> + "] ", W = text(cell.W.shape());
    const auto of = [&](const Shape& shape) { return tape.leaf(filled(shape, 1)); };
    CHECK_THROWS_MATCHES(cell(of({4, 5}), state), ShapeError, Message(layer + "x (4,5) does not match W " + W));
    CHECK_THROWS_MATCHES(cell(of({2}), state), ShapeError, Message(layer + "x is (B,I), not (2)"));
    CHECK_THROWS_MATCHES(cell(of({1, 2}), state), ShapeError, Message(layer + "state h is (4,3), not (B,H) = (1,3)"));
    CHECK_THROWS_MATCHES(cell.composed(of({1, 2}), state), ShapeError,
                         Message(layer + "state h is (4,3), not (B,H) = (1,3)"));
    CHECK_THROWS_AS(cell(of({4, 2}), TestType(2, 2, generator).start(tape, 4)), ShapeError);
    CHECK_THROWS_AS(cell(of({}), state), ShapeError);
    CHECK(cell(of({4, 2}), state).h.shape() == Shape{4, 3});
    CHECK(cell(of({0, 2}), cell.start(tape, 0)).h.shape() == Shape{0, 3});
}

TEST_CASE("parameters that do not fit each other are an error") {
    const auto p = [](const Shape& shape) { return Parameter(filled(shape, 1)); };
    CHECK_THROWS_MATCHES(LSTM(p({2, 12}), p({3, 9}), p({12})), ShapeError,
                         Message("[LSTM] W (I,4H), U (H,4H) and b (4H) do not fit: (2,12), (3,9) and (12)"));
    CHECK_THROWS_AS(RNN(p({2, 3}), p({3, 3}), p({1, 3})), ShapeError);
    CHECK_THROWS_AS(GRU(p({2, 8}), p({3, 9}), p({9}), p({3})), ShapeError);
    CHECK_THROWS_MATCHES(GRU(p({2, 9}), p({3, 9}), p({9}), p({9})), ShapeError,
                         Message("[GRU] b_n is (9), not (H) = (3)"));
    CHECK(RNN(p({2, 3}), p({3, 3}), p({3})).hidden() == 3);
}
