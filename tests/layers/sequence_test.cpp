// Cells over time: field cases C03, C47, C49, padding that cannot leak, and oracles O01–O03 on linear cells.
#include "layers/sequence.hpp"
#include <cmath>
#include "cells.hpp"
#include "engine/kernels.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/reduce.hpp"
#include "layers/init.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;
using Catch::Matchers::Message;

// h' = x + h U + b, without a nonlinearity: its gradients are powers of U. It also shows that a cell need not be one of
// ours.
struct Linear {
    Parameter U, b;
    struct State {
        Tensor h;
        template <class F, class... States> State map(const F& f, const States&... others) const {
            return {f(h, others.h...)};
        }
    };
    explicit Linear(Array u, Real bias = 0) : U(std::move(u)), b(filled({U.shape()[0]}, bias)) {}
    Tensor project(const Tensor& x) const { return x + b; }
    State step(const StepInput& a, const State& s) const { return {cell::alone(a) + matmul(s.h, U)}; }
    State start(Tape& tape, std::size_t B) const { return {tape.constant(filled({B, U.shape()[0]}, 0))}; }
};

static Array column(std::initializer_list<Real> values) {
    Array x(Shape{values.size(), 1});
    std::copy(values.begin(), values.end(), x.data());
    return x;
}

static Array part(const Array& x, std::size_t b, std::size_t t) {  // x[b, t, :]
    const std::size_t n = x.shape(2);
    Array y(Shape{n});
    std::copy_n(x.data() + (b * x.shape(1) + t) * n, n, y.data());
    return y;
}

static Mask mask_of(const std::vector<std::size_t>& lengths, std::size_t T) {
    std::vector<bool> visible;
    for (std::size_t length : lengths)
        for (std::size_t t = 0; t < T; ++t) visible.push_back(t < length);
    return Mask({lengths.size(), T}, std::move(visible));
}

TEMPLATE_TEST_CASE("unrolling equals calling the cell at each time, either way", "", RNN, LSTM, GRU) {
    Generator generator(1);
    TestType cell(2, 3, generator);
    Tape tape;
    const std::size_t B = 4, T = 5;
    const Tensor x = tape.leaf(uniform({B, T, 2}, -1, 1));
    const auto start = random_state(cell, tape, B);
    for (const Direction direction : {Direction::forward, Direction::backward}) {
        const auto y = unroll(cell, x, start, {.direction = direction});
        CHECK(y.outputs.shape() == Shape{B, T, 3});
        REQUIRE(y.states.size() == T);
        auto s = start;
        std::vector<Tensor> h(T);
        for (std::size_t k = 0; k < T; ++k) {
            const std::size_t t = direction == Direction::forward ? k : T - 1 - k;
            s = cell(select(x, 1, std::int64_t(t)), s);
            h[t] = s.h;
            CHECK(close(y.states[t].h.value(), s.h.value(), 1e-13, 1e-13));
        }
        CHECK(same_bits(y.outputs.value(), stack(y.hidden(), 1).value()));
        CHECK(y.last.h.id() == y.states[direction == Direction::forward ? T - 1 : 0].h.id());
        std::vector<Tensor> wanted = parameters(cell);
        wanted.push_back(x);
        for (const Tensor& p : parts(start)) wanted.push_back(p);
        const BackwardOptions seed{.seed = uniform({B, T, 3}, -1, 1, 7)};
        const Gradients g = tape.backward(y.outputs, wanted, seed), e = tape.backward(stack(h, 1), wanted, seed);
        for (const Tensor& w : wanted) CHECK(close(g[w], e[w], 1e-12, 1e-12));
    }
}

TEMPLATE_TEST_CASE("one step of time is exactly the cell's call; none is the start (C49)", "", RNN, LSTM, GRU) {
    Generator generator(1);
    TestType cell(2, 3, generator);
    Tape tape;
    const auto start = random_state(cell, tape, 2);
    const Tensor x = tape.leaf(uniform({2, 1, 2}, -1, 1));
    for (const Direction direction : {Direction::forward, Direction::backward}) {
        const auto one = unroll(cell, x, start, {.direction = direction});
        const auto called = parts(cell(select(x, 1, 0), start)), last = parts(one.last);
        for (std::size_t k = 0; k < last.size(); ++k) CHECK(same_bits(last[k].value(), called[k].value()));

        const auto none = unroll(cell, tape.leaf(filled({2, 0, 2}, 0)), start, {.direction = direction});
        CHECK(none.outputs.shape() == Shape{2, 0, 3});
        CHECK(none.states.empty());
        for (std::size_t k = 0; k < last.size(); ++k) CHECK(parts(none.last)[k].id() == parts(start)[k].id());
    }
    const auto empty_row = unroll(cell, tape.leaf(uniform({2, 2, 2}, -1, 1)), start, {.visible = mask_of({2, 0}, 2)});
    for (std::size_t k = 0; k < parts(start).size(); ++k) {
        const Array &last = parts(empty_row.last)[k].value(), &first = parts(start)[k].value();
        CHECK(std::equal(last.data() + 3, last.data() + 6, first.data() + 3));
        CHECK(!std::equal(last.data(), last.data() + 3, first.data()));
    }
    CHECK(close(part(empty_row.outputs.value(), 1, 0), filled({3}, 0), 0, 0));
    CHECK(close(part(empty_row.outputs.value(), 1, 1), filled({3}, 0), 0, 0));
}

TEST_CASE("the backward direction starts at the last valid token, not in the padding (C47)") {
    const Linear cell(filled({1, 1}, Real(0.5)), 1);
    Tape tape;
    Array tokens(Shape{2, 3, 1});
    std::copy_n(std::initializer_list<Real>{1, 2, 3, 4, 1e9, -7}.begin(), 6, tokens.data());
    const Tensor x = tape.leaf(tokens);
    const std::optional<Mask> visible = mask_of({3, 1}, 3);
    const auto forward = unroll(cell, x, cell.start(tape, 2), {.visible = visible});
    const auto backward = unroll(cell, x, cell.start(tape, 2), {.direction = Direction::backward, .visible = visible});
    CHECK(close(forward.last.h.value(), column({6, 5})));
    CHECK(close(backward.last.h.value(), column({4.5, 5})));
    CHECK(close(backward.states[0].h.value(), column({4.5, 5})));
    for (const auto* y : {&forward, &backward}) {
        CHECK(y->outputs.value()(1, 1, 0) == 0);
        CHECK(y->outputs.value()(1, 2, 0) == 0);
        const Array g = tape.backward(y->outputs, {x}, {.seed = filled({2, 3, 1}, 1)})[x];
        CHECK(g(1, 0, 0) == 1);  // only the output of the one valid token: those past it send no gradient
        CHECK(g(1, 1, 0) == 0);
        CHECK(g(1, 2, 0) == 0);
    }
}

TEMPLATE_TEST_CASE("what stands in the padding changes no bit, and gets no gradient", "", RNN, LSTM, GRU) {
    const std::size_t B = 3, T = 5;
    Generator generator(1);
    TestType cell(2, 3, generator);
    const std::vector<std::size_t> lengths{5, 2, 0};
    const Array clean = uniform({B, T, 2}, -1, 1);
    for (const Real poison : {Real(0), Real(1e30), Real(-1e30), std::numeric_limits<Real>::quiet_NaN()})
        for (const Direction direction : {Direction::forward, Direction::backward}) {
            Array poisoned = clean;
            for (std::size_t b = 0; b < B; ++b)
                for (std::size_t t = lengths[b]; t < T; ++t) poisoned(b, t, 0) = poisoned(b, t, 1) = poison;
            Tape tape;
            const auto start = random_state(cell, tape, B);
            const auto run = [&](const Tensor& x) {
                return unroll(cell, x, start, {.direction = direction, .visible = mask_of(lengths, T)});
            };
            const Tensor x = tape.leaf(clean), z = tape.leaf(poisoned);
            const auto a = run(x), b = run(z);
            CHECK(same_bits(a.outputs.value(), b.outputs.value()));
            std::vector<Tensor> wanted = parameters(cell), with_x = wanted, with_z = wanted;
            with_x.push_back(x);
            with_z.push_back(z);
            const BackwardOptions seed{.seed = uniform({B, T, 3}, -1, 1, 3)};
            const Gradients g = tape.backward(a.outputs, with_x, seed), e = tape.backward(b.outputs, with_z, seed);
            for (const Tensor& w : wanted) CHECK(same_bits(g[w], e[w]));
            for (std::size_t row = 0; row < B; ++row)
                for (std::size_t t = 0; t < T; ++t)
                    CHECK((lookback::norm(part(e[z], row, t)) > 0) == (t < lengths[row]));
        }
}

TEMPLATE_TEST_CASE("a padded row gives what it gives alone, without its batch", "", RNN, LSTM, GRU) {
    Generator generator(4);
    TestType cell(3, 5, generator);
    for (unsigned round = 0; round < 40; ++round) {
        const std::size_t B = std::size_t(generator.integer(1, 6)), T = std::size_t(generator.integer(1, 8));
        std::vector<std::size_t> lengths(B);
        for (std::size_t& length : lengths) length = std::size_t(generator.integer(0, std::int64_t(T) + 1));
        const Direction direction = round % 2 ? Direction::backward : Direction::forward;
        Tape tape;
        const Tensor x = tape.leaf(uniform({B, T, 3}, -1, 1, round));
        const auto start = random_state(cell, tape, B);
        const auto y = unroll(cell, x, start, {.direction = direction, .visible = mask_of(lengths, T)});
        for (std::size_t b = 0; b < B; ++b) {
            const auto row = std::int64_t(b);
            const auto own = start.map([&](const Tensor& p) { return slice(p, 0, row, row + 1); });
            const Tensor valid = slice(slice(x, 0, row, row + 1), 1, 0, std::int64_t(lengths[b]));
            const auto alone = unroll(cell, valid, own, {.direction = direction});
            const auto last = parts(y.last), expected = parts(alone.last);
            for (std::size_t k = 0; k < last.size(); ++k)
                CHECK(close(slice(last[k], 0, row, row + 1).value(), expected[k].value(), 1e-12, 1e-12));
            for (std::size_t t = 0; t < lengths[b]; ++t)
                CHECK(close(part(y.outputs.value(), b, t), part(alone.outputs.value(), 0, t), 1e-12, 1e-12));
        }
    }
}

TEST_CASE("a mask may be (B,T) or (B,1,T), and may have holes") {
    const Linear cell(filled({1, 1}, 1));
    Tape tape;
    const Tensor x = tape.leaf(filled({1, 3, 1}, 1));
    for (const Shape& shape : {Shape{1, 3}, Shape{1, 1, 3}}) {
        const auto y = unroll(cell, x, cell.start(tape, 1), {.visible = Mask(shape, {true, false, true})});
        CHECK(y.last.h.item() == 2);
        CHECK(y.outputs.value()(0, 1, 0) == 0);
        CHECK(y.states[1].h.item() == 1);
    }
}

TEST_CASE("a state cut between windows keeps its value and stops the gradient (C03)") {
    const Linear cell(filled({1, 1}, Real(0.5)), 1);
    const Array zeros = filled({1, 4, 1}, 0);
    {
        Tape tape;
        const auto whole = unroll(cell, tape.constant(zeros), cell.start(tape, 1));
        CHECK(close(double(whole.last.h.item()), 1.875));
        CHECK(close(double(tape.backward(whole.last.h)[cell.U](0, 0)), 2.75));
        const auto cut = unroll(cell, tape.constant(zeros), cell.start(tape, 1), {.window = 2});
        CHECK(close(double(cut.last.h.item()), 1.875));
        CHECK(close(double(tape.backward(cut.last.h)[cell.U](0, 0)), 2.5));
    }
    {  // the same with a tape that forgets each window: its length does not grow
        Tape tape;
        const Tape::Mark mark = tape.mark();
        auto state = cell.start(tape, 1);
        std::vector<std::size_t> sizes;
        double gradient = 0;
        for (const auto& [begin, stop] : windows(4, 2)) {
            tape.rewind(mark);
            const Tensor x = tape.constant(zeros);
            const auto y = unroll(cell, slice(x, 1, std::int64_t(begin), std::int64_t(stop)), state);
            state = carry(tape, y.last);
            gradient = double(tape.backward(y.last.h)[cell.U](0, 0));
            sizes.push_back(tape.size());
        }
        CHECK(close(double(state.h.item()), 1.875));
        CHECK(close(gradient, 2.5));
        CHECK(sizes[0] == sizes[1]);
        Tape other;
        CHECK(carry(other, state).h.value()(0, 0) == state.h.value()(0, 0));
    }
}

TEST_CASE("windows cover the time once, in order") {
    const auto text_of = [](std::size_t T, std::size_t n) {
        std::string all;
        for (const auto& [begin, stop] : windows(T, n)) all += std::to_string(begin) + "-" + std::to_string(stop) + " ";
        return all;
    };
    CHECK(text_of(7, 3) == "0-3 3-6 6-7 ");
    CHECK(text_of(2, 5) == "0-2 ");
    CHECK(text_of(0, 5).empty());
    CHECK_THROWS_AS(windows(3, 0), ValueError);
}

TEST_CASE("through an orthogonal U times c a gradient shrinks by c each step, whatever its direction (O01)") {
    Generator generator(1);
    for (const double c : {1.0, 0.9}) {
        const Linear cell(init::orthogonal(generator, {6, 6}, c));
        Tape tape;
        const auto y = unroll(cell, tape.constant(uniform({1, 51, 6}, -1, 1)), {tape.leaf(filled({1, 6}, 0))});
        const Gradients g = tape.backward(y.last.h, y.hidden(), {.seed = uniform({1, 6}, -1, 1, 2)});
        const double last = lookback::norm(g[y.states[50].h]);
        for (std::size_t t = 0; t <= 50; ++t)
            CHECK(close(lookback::norm(g[y.states[t].h]) / last, std::pow(c, 50 - double(t)), 1e-12, 0));
        if (c < 1) CHECK(close(lookback::norm(g[y.states[0].h]) / last, 5.153775e-3, 1e-6, 0));
    }
}

TEST_CASE("through a diagonal U each coordinate's gradient is a power of its own (O02)") {
    const Linear cell(Array{{0.5, 0, 0}, {0, 1, 0}, {0, 0, 2}});
    Tape tape;
    const auto y = unroll(cell, tape.constant(filled({1, 21, 3}, 0)), {tape.leaf(filled({1, 3}, 0))});
    const Gradients g = tape.backward(y.last.h, y.hidden(), {.seed = filled({1, 3}, 1)});
    for (int k = 0; k <= 20; ++k)
        CHECK(same_bits(g[y.states[std::size_t(20 - k)].h], Array{{std::ldexp(1.0, -k), 1.0, std::ldexp(1.0, k)}}));
}

TEST_CASE("through a nilpotent U the gradient ends, exactly (O03)") {
    const auto norms = [](const Array& U, const Array& seed) {  // of ∂L/∂h_T, ∂L/∂h_{T−1} …
        const Linear cell(U);
        Tape tape;
        const auto y = unroll(cell, tape.constant(filled({1, 7, U.shape(0)}, 0)), cell.start(tape, 1));
        const Gradients g = tape.backward(y.last.h, y.hidden(), {.seed = seed});
        std::vector<double> all;
        for (std::size_t t = 7; t-- > 0;) all.push_back(lookback::norm(g[y.states[t].h]));
        return all;
    };
    CHECK(norms(Array{{0, 0}, {3, 0}}, Array{{1, 0}}) == std::vector<double>{1, 3, 0, 0, 0, 0, 0});
    const Array shift{{0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}, {0, 0, 0, 0}};  // a register of 4 places
    CHECK(norms(shift, Array{{0, 0, 0, 1}}) == std::vector<double>{1, 1, 1, 1, 0, 0, 0});
}

TEST_CASE("what does not fit an unrolling is an error that says what does") {
    Generator generator(1);
    const GRU gru(2, 3, generator);
    Tape tape;
    const auto of = [&](const Shape& shape) { return tape.leaf(filled(shape, 1)); };
    CHECK_THROWS_MATCHES(unroll(gru, of({4, 2}), gru.start(tape, 4)), ShapeError,
                         Message("[unroll] x is (B,T,I), not (4,2)"));
    CHECK_THROWS_MATCHES(unroll(gru, of({4, 5, 2}), gru.start(tape, 1)), ShapeError,
                         Message("[unroll] state part is (1,3), not (B,H) = (4,3)"));
    CHECK_THROWS_MATCHES(
        unroll(gru, of({4, 5, 2}), gru.start(tape, 4), {.visible = Mask({5, 4}, std::vector<bool>(20))}), ShapeError,
        Message("[unroll] a mask (5,4) for x (4,5,2): (B,T) or (B,1,T) is wanted"));
    CHECK_THROWS_MATCHES(unroll(gru, of({4, 5, 3}), gru.start(tape, 4)), ShapeError,
                         Message("[GRU] x (4,5,3) does not match W (2,9)"));
}

TEMPLATE_TEST_CASE("layers run over each other's outputs, both directions side by side", "", RNN, LSTM, GRU) {
    Generator generator(1);
    const Recurrent<TestType> layers(2, 3, generator, {.layers = 2, .bidirectional = true});
    REQUIRE(layers.cells.size() == 4);
    Tape tape;
    const Tensor x = tape.leaf(uniform({2, 4, 2}, -1, 1));
    const std::optional<Mask> visible = mask_of({4, 2}, 4);
    const auto y = layers(x, {}, {.visible = visible});
    CHECK(y.outputs.shape() == Shape{2, 4, 6});

    const auto run = [&](const TestType& cell, const Tensor& below, Direction direction) {
        return unroll(cell, below, cell.start(tape, 2), {.direction = direction, .visible = visible});
    };
    const auto a = run(layers.cells[0], x, Direction::forward), b = run(layers.cells[1], x, Direction::backward);
    const Tensor between = concat({a.outputs, b.outputs}, 2);
    const auto c = run(layers.cells[2], between, Direction::forward),
               d = run(layers.cells[3], between, Direction::backward);
    CHECK(same_bits(y.outputs.value(), concat({c.outputs, d.outputs}, 2).value()));
    CHECK(same_bits(y.last()[3].h.value(), d.last.h.value()));
    CHECK(same_bits(y.last()[0].h.value(), a.last.h.value()));
}

TEST_CASE("layers take initial states one a cell, and something between them") {
    Generator generator(1);
    Recurrent<RNN> layers(2, 3, generator, {.layers = 3});
    Tape tape;
    const Tensor x = tape.leaf(uniform({2, 4, 2}, -1, 1));
    int calls = 0;
    const auto doubled = [&](const Tensor& y) { return ++calls, 2 * y; };
    const auto y = layers(x, {}, {.between = doubled});
    CHECK(calls == 2);
    CHECK(!same_bits(y.outputs.value(), layers(x).outputs.value()));
    std::vector<RNN::State> starts(3, layers.cells[0].start(tape, 2));
    CHECK(same_bits(layers(x, starts).outputs.value(), layers(x).outputs.value()));
    starts[2] = {tape.leaf(filled({2, 3}, 1))};
    CHECK(!same_bits(layers(x, starts).outputs.value(), layers(x).outputs.value()));
    starts.pop_back();
    CHECK_THROWS_MATCHES(layers(x, starts), ValueError, Message("[Recurrent] 2 initial states for 3 cells"));
    CHECK_THROWS_AS(layers(tape.leaf(filled({4, 2}, 1))), ShapeError);
    CHECK_THROWS_AS(layers(tape.leaf(filled({}, 1))), ShapeError);
    CHECK_THROWS_AS(Recurrent<RNN>(2, 3, generator, {.layers = 0}), ValueError);
}

TEST_CASE("a layer's parameters are named by layer and side") {
    Generator generator(1);
    const auto paths = [&](bool bidirectional) {
        Recurrent<RNN> layers(2, 3, generator, {.layers = 2, .bidirectional = bidirectional});
        std::vector<std::string> all;
        layers.for_each_parameter("encoder", [&](const std::string& path, Parameter&) { all.push_back(path); });
        return all;
    };
    CHECK(paths(false) == std::vector<std::string>{"encoder.0.W", "encoder.0.U", "encoder.0.b", "encoder.1.W",
                                                   "encoder.1.U", "encoder.1.b"});
    CHECK(paths(true)[4] == "encoder.0.backward.U");
    Recurrent<LSTM> set(2, 3, generator, {.layers = 2}, LSTMOptions{.forget_bias = 2});
    CHECK(set.cells[1].b.value()(3) == 2);
}
