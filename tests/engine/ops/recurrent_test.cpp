// The fused recurrent steps equal their compositions from other ops, forwards and backwards.
#include "engine/ops/recurrent.hpp"
#include "engine/gradcheck.hpp"
#include "engine/kernels.hpp"
#include "engine/ops/activation.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/movement.hpp"
#include "engine/ops/reduce.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"
#include "tests/support/rows.hpp"

using namespace lookback;
using namespace lookback::test;

using Tensors = std::vector<Tensor>;

// a (B,nH), h (B,H), c (B,H), U (H,nH): what the steps take, at random.
static std::vector<Array> random_inputs(std::size_t n, std::size_t B, std::size_t H) {
    return {uniform({B, n * H}, -2, 2, 1), uniform({B, H}, -1, 1, 2), uniform({B, H}, -1, 1, 3),
            uniform({H, n * H}, -1, 1, 4)};
}

static Tensors rnn(const Tensors& x) { return {rnn_step(x[0], x[1], x[3])}; }
static Tensors lstm(const Tensors& x) {
    const LSTMState y = lstm_step(x[0], x[1], x[2], x[3]);
    return {y.h, y.c};
}
static Tensors gru(const Tensors& x) { return {gru_step(x[0], x[1], x[3], select(x[2], 0, 0))}; }  // b_n: a row of c

std::vector<Row> lookback::test::recurrent_rows() {
    std::vector<Row> rows;
    const auto row = [&](const char* op, const char* shapes, std::function<Tensors(const Tensors&)> f,
                         std::vector<Array> inputs) {
        rows.push_back({op, shapes, f, std::move(inputs)});
    };
    const std::vector<Array> r = random_inputs(1, 3, 2), l = random_inputs(4, 3, 2), g = random_inputs(3, 3, 2);
    const Array square = uniform({3, 3}, -1, 1);

    row("rnn_step", "(3,2)", [](const Tensors& x) { return Tensors{rnn_step(x[0], x[1], x[2])}; }, {r[0], r[1], r[3]});
    row("rnn_step", "size 1", [](const Tensors& x) { return Tensors{rnn_step(x[0], x[1], x[2])}; },
        {filled({1, 1}, Real(0.3)), filled({1, 1}, Real(-0.4)), filled({1, 1}, Real(1.5))});
    row("rnn_step", "relu, both sides of the kink",
        [](const Tensors& x) { return Tensors{rnn_step(x[0], x[1], x[2], Nonlinearity::relu)}; },
        {Array{{2, -2}, {-2, 2}, {2, 2}}, uniform({3, 2}, -0.5, 0.5, 2), uniform({2, 2}, -0.5, 0.5, 4)});
    row("rnn_step", "same input", [](const Tensors& x) { return Tensors{rnn_step(x[0], x[0], x[0])}; }, {square});
    row("rnn_step", "two steps",
        [](const Tensors& x) { return Tensors{rnn_step(x[0], rnn_step(x[0], x[1], x[2]), x[2])}; }, {r[0], r[1], r[3]});
    const auto times = [](std::size_t n) { return uniform({3, 2, n}, -1, 1, 7); };  // (B,T,nH)
    row("rnn_step", "two times of one a",
        [](const Tensors& x) {
            return Tensors{rnn_step({x[0], 1}, rnn_step({x[0], 0}, x[1], x[2]), x[2])};
        },
        {times(2), r[1], r[3]});
    row("lstm_step", "two times of one a",
        [](const Tensors& x) {
            const LSTMState y = lstm_step({x[0], 0}, x[1], x[2], x[3]), z = lstm_step({x[0], 1}, y.h, y.c, x[3]);
            return Tensors{z.h, z.c};
        },
        {times(8), l[1], l[2], l[3]});
    row("gru_step", "two times of one a",
        [](const Tensors& x) {
            return Tensors{gru_step({x[0], 1}, gru_step({x[0], 0}, x[1], x[2], x[3]), x[2], x[3])};
        },
        {times(6), g[1], g[3], uniform({2}, -1, 1, 5)});

    row("lstm_step", "(3,2)", lstm, l);
    row("lstm_step", "size 1", lstm, random_inputs(4, 1, 1));
    row("lstm_step", "width 17", lstm, random_inputs(4, 2, 17));
    row(
        "lstm_step", "only h used", [](const Tensors& x) { return Tensors{lstm_step(x[0], x[1], x[2], x[3]).h}; }, l);
    row(
        "lstm_step", "only c used", [](const Tensors& x) { return Tensors{lstm_step(x[0], x[1], x[2], x[3]).c}; }, l);
    row("lstm_step", "same input",
        [](const Tensors& x) {
            const LSTMState y = lstm_step(x[0], x[1], x[1], x[2]);
            return Tensors{y.h, y.c};
        },
        {l[0], l[1], l[3]});
    row(
        "lstm_step", "two steps",
        [](const Tensors& x) {
            const LSTMState y = lstm_step(x[0], x[1], x[2], x[3]);
            return lstm({x[0], y.h, y.c, x[3]});
        },
        l);

    const auto gru_of = [](const Tensors& x) { return Tensors{gru_step(x[0], x[1], x[2], x[3])}; };
    row("gru_step", "(3,2)", gru_of, {g[0], g[1], g[3], uniform({2}, -1, 1, 5)});
    row("gru_step", "size 1", gru_of,
        {uniform({1, 3}, -1, 1), filled({1, 1}, Real(0.5)), uniform({1, 3}, -1, 1, 2), filled({1}, Real(0.25))});
    row("gru_step", "width 17", gru, random_inputs(3, 2, 17));
    row("gru_step", "two steps",
        [](const Tensors& x) { return Tensors{gru_step(x[0], gru_step(x[0], x[1], x[2], x[3]), x[2], x[3])}; },
        {g[0], g[1], g[3], uniform({2}, -1, 1, 5)});
    return rows;
}

// The same from other ops: what the doc comments say.
static Tensors composed_rnn(const Tensors& x) { return {tanh(x[0] + matmul(x[1], x[3]))}; }
static Tensors composed_lstm(const Tensors& x) {
    const std::size_t H = x[1].shape(1);
    const Tensors s = split(x[0] + matmul(x[1], x[3]), 1, {H, H, H, H});
    const Tensor i = sigmoid(s[0]), f = sigmoid(s[1]), g = tanh(s[2]), o = sigmoid(s[3]);
    const Tensor c = f * x[2] + i * g;
    return {o * tanh(c), c};
}
static Tensors composed_gru(const Tensors& x) {
    const std::size_t H = x[1].shape(1);
    const Tensors a = split(x[0], 1, {H, H, H}), m = split(matmul(x[1], x[3]), 1, {H, H, H});
    const Tensor r = sigmoid(a[0] + m[0]), z = sigmoid(a[1] + m[1]);
    const Tensor n = tanh(a[2] + r * (m[2] + select(x[2], 0, 0)));
    return {(1 - z) * n + z * x[1]};
}

struct Cell {
    const char* name;
    std::size_t gates;
    Tensors (*fused)(const Tensors&);
    Tensors (*composed)(const Tensors&);
};
static const Cell cells[] = {
    {"rnn", 1, rnn, composed_rnn}, {"lstm", 4, lstm, composed_lstm}, {"gru", 3, gru, composed_gru}};

TEST_CASE("a fused step equals its composition, and so do its gradients") {
    for (const Cell& cell : cells)
        for (const auto& [B, H] : {std::pair(3, 2), {1, 1}, {2, 7}, {5, 16}, {4, 33}}) {
            INFO(cell.name << " B " << B << " H " << H);
            Tape tape;
            Tensors x;
            for (const Array& array : random_inputs(cell.gates, std::size_t(B), std::size_t(H)))
                x.push_back(tape.leaf(array));
            const Tensors fused = cell.fused(x), composed = cell.composed(x);
            for (std::size_t k = 0; k < fused.size(); ++k) {
                CHECK(close(fused[k].value(), composed[k].value()));
                const Shared seed = uniform(fused[k].shape(), -1, 1, 9);
                const Gradients g = tape.backward(fused[k], x, {.seed = seed});
                const Gradients expected = tape.backward(composed[k], x, {.seed = seed});
                for (const Tensor& input : x) CHECK(close(g[input], expected[input]));
            }
        }
}

TEST_CASE("a row that the loss leaves out sends back exactly 0, though it be NaN") {
    for (const Cell& cell : cells) {
        INFO(cell.name);
        Tape tape;
        Tensors x;
        for (Array array : random_inputs(cell.gates, 2, 3)) {
            if (x.empty()) std::fill(array.data() + array.size() / 2, array.data() + array.size(), std::nan(""));
            x.push_back(tape.leaf(array));
        }
        for (std::size_t k = 0; k < cell.fused(x).size(); ++k) {
            const Gradients g = tape.backward(sum(select(cell.fused(x)[k], 0, 0)), x),
                            expected = tape.backward(sum(select(cell.composed(x)[k], 0, 0)), x);
            for (const Tensor& input : x) {
                CHECK(close(g[input], expected[input]));
                for (const Real v : g[input]) CHECK(std::isfinite(v));
            }
        }
    }
}

TEST_CASE("gradients of both outputs of an LSTM step add") {
    Tape tape;
    Tensors x;
    for (const Array& array : random_inputs(4, 3, 5)) x.push_back(tape.leaf(array));
    const auto gradients = [&](const Tensors& y) {
        return tape.backward(y[0] * y[0] + 3 * y[1], x, {.seed = uniform({3, 5}, -1, 1)});
    };
    const Gradients g = gradients(lstm(x)), expected = gradients(composed_lstm(x));
    for (const Tensor& input : x) CHECK(close(g[input], expected[input]));
}

TEST_CASE("a relu step has slope 0 at 0 and keeps NaN") {
    Tape tape;
    const Tensor a = tape.leaf(Array{{0, -1, 2}}), h = tape.constant(filled({1, 3}, 0)),
                 U = tape.constant(filled({3, 3}, 1));
    const Tensor y = rnn_step(a, h, U, Nonlinearity::relu);
    CHECK(close(y.value(), Array{{0, 0, 2}}));
    CHECK(close(tape.backward(y, {a}, {.seed = Array{{5, 6, 7}}})[a], Array{{0, 0, 7}}));
    const Tensor nan = tape.leaf(filled({1, 3}, std::numeric_limits<Real>::quiet_NaN()));
    CHECK(std::isnan(rnn_step(nan, h, U, Nonlinearity::relu).value()(0, 1)));
}

TEST_CASE("gates saturate exactly at ±800, without NaN in value or gradient") {
    for (const Cell& cell : cells)
        for (const Real at : {Real(800), Real(-800)}) {
            INFO(cell.name << " at " << at);
            Tape tape;
            const Tensor a = tape.leaf(filled({2, cell.gates * 3}, at)), h = tape.leaf(uniform({2, 3}, -1, 1)),
                         c = tape.leaf(uniform({2, 3}, -1, 1, 2)), U = tape.leaf(filled({3, cell.gates * 3}, 0));
            const Tensors y = cell.fused({a, h, c, U});
            const Gradients g = tape.backward(y.back(), {a, h, c, U}, {.seed = filled({2, 3}, 1)});
            CHECK(close(g[a], filled(a.shape(), 0), 0, 0));
            for (const Tensor& x : {h, c, U}) CHECK(close(sum_of_squares(g[x]) < 1e9, true));
        }
    Tape tape;
    const Tensor h = tape.leaf(uniform({2, 3}, -1, 1)), U = tape.constant(filled({3, 9}, 0));
    const Tensor kept = gru_step(tape.constant(filled({2, 9}, 800)), h, U, tape.constant(filled({3}, 0)));
    CHECK(same_bits(kept.value(), h.value()));  // z = 1
    const Array ones = filled({2, 3}, 1);
    CHECK(same_bits(tape.backward(kept, {h}, {.seed = ones})[h], ones));
}

TEST_CASE("steps of no rows and of no width are empty, forwards and backwards") {
    for (const Cell& cell : cells)
        for (const auto& [B, H] : {std::pair(0, 3), {2, 0}, {0, 0}}) {
            INFO(cell.name << " B " << B << " H " << H);
            if (B == 0 && cell.gates == 3) continue;  // its b_n is a row here; below
            Tape tape;
            Tensors x;
            for (const Array& array : random_inputs(cell.gates, std::size_t(B), std::size_t(H)))
                x.push_back(tape.leaf(array));
            const Tensors y = cell.fused(x);
            CHECK(y[0].shape() == x[1].shape());
            const Gradients g = tape.backward(y[0], x, {.seed = y[0].value()});
            CHECK(close(g[x[3]], filled(x[3].shape(), 0), 0, 0));
            CHECK(g[x[0]].shape() == x[0].shape());
        }
    Tape tape;
    const Tensor h = tape.leaf(filled({0, 2}, 0)), b_n = tape.leaf(filled({2}, 1));
    const Tensor y = gru_step(tape.constant(filled({0, 6}, 0)), h, tape.constant(filled({2, 6}, 1)), b_n);
    CHECK(close(tape.backward(y, {b_n}, {.seed = y.value()})[b_n], filled({2}, 0), 0, 0));
}

TEST_CASE("a step computes the same bits while recording is paused, and keeps nothing") {
    for (const Cell& cell : cells) {
        INFO(cell.name);
        Tape tape;
        Tensors x;
        for (const Array& array : random_inputs(cell.gates, 3, 5)) x.push_back(tape.leaf(array));
        const Tensors recorded = cell.fused(x);
        const std::size_t size = tape.size();
        const NoGrad guard(tape);
        const Tensors paused = cell.fused(x);
        CHECK(tape.size() == size);
        for (std::size_t k = 0; k < recorded.size(); ++k) CHECK(same_bits(paused[k].value(), recorded[k].value()));
    }
}

TEST_CASE("an LSTM's fused steps take one record pair each, and release values that nobody saved") {
    const Live before = Recycler::live;
    {
        Tape tape;
        const Tensor U = tape.leaf(uniform({4, 16}, -1, 1)), a = tape.constant(uniform({2, 16}, -1, 1));
        LSTMState s{tape.constant(filled({2, 4}, 0)), tape.constant(filled({2, 4}, 0))};
        for (int t = 0; t < 10; ++t) s = lstm_step(a, s.h, s.c, U);
        CHECK(tape.size() == 1 + 2 * 10);
        CHECK(std::string(tape[s.h.id()].op) == "lstm_step");
    }
    CHECK(Recycler::live == before);
}

TEST_CASE("steps refuse shapes that do not fit, and say all of them") {
    Tape tape;
    const auto of = [&](const Shape& shape) { return tape.leaf(filled(shape, 1)); };
    using Catch::Matchers::Message;
    CHECK_THROWS_MATCHES(rnn_step(of({2, 3}), of({2, 4}), of({4, 4})), ShapeError,
                         Message("[rnn_step] a (B,H), h (B,H) and U (H,H) do not fit: (2,3), (2,4) and (4,4)"));
    CHECK_THROWS_AS(rnn_step(of({3}), of({3}), of({3, 3})), ShapeError);        // no batch
    CHECK_THROWS_AS(rnn_step(of({2, 3}), of({1, 3}), of({3, 3})), ShapeError);  // a state is never broadcast
    CHECK_THROWS_AS(rnn_step(of({2, 3}), of({2, 3}), of({3})), ShapeError);
    CHECK_THROWS_AS(rnn_step(of({}), of({}), of({})), ShapeError);
    CHECK_THROWS_MATCHES(lstm_step(of({2, 9}), of({2, 3}), of({2, 3}), of({3, 12})), ShapeError,
                         Message("[lstm_step] a (B,4H), h (B,H) and U (H,4H) do not fit: (2,9), (2,3) and (3,12)"));
    CHECK_THROWS_MATCHES(lstm_step(of({2, 12}), of({2, 3}), of({1, 3}), of({3, 12})), ShapeError,
                         Message("[lstm_step] h and c differ: (2,3) and (1,3)"));
    CHECK_THROWS_AS(gru_step(of({2, 12}), of({2, 3}), of({3, 9}), of({3})), ShapeError);
    CHECK_THROWS_MATCHES(gru_step(of({2, 9}), of({2, 3}), of({3, 9}), of({1, 3})), ShapeError,
                         Message("[gru_step] b_n is one number for each of h's: (1,3) and (2,3)"));
    CHECK(tape.size() == 31);                                              // the leaves: nothing else was recorded
    for (const std::size_t far : {std::size_t(1) << 32, std::size_t(-1)})  // as 32 bits: time 0, and all times
        CHECK_THROWS_AS(rnn_step({of({2, 5, 3}), far}, of({2, 3}), of({3, 3})), IndexError);
    CHECK_THROWS_MATCHES(rnn_step({of({2, 5, 3}), 5}, of({2, 3}), of({3, 3})), IndexError,
                         Message("[rnn_step] time 5 is outside a (2,5,3)"));
    CHECK_THROWS_MATCHES(gru_step({of({2, 9}), 0}, of({2, 3}), of({3, 9}), of({3})), ShapeError,
                         Message("[gru_step] a (B,T,3H), h (B,H) and U (H,3H) do not fit: (2,9), (2,3) and (3,9)"));
    CHECK_THROWS_AS(lstm_step(of({2, 5, 12}), of({2, 3}), of({2, 3}), of({3, 12})), ShapeError);
}
