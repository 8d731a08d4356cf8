#include "engine/ops/softmax.hpp"
#include <cmath>
#include <limits>
#include "engine/gradcheck.hpp"
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

static constexpr Real infinity = std::numeric_limits<Real>::infinity(),
                      not_a_number = std::numeric_limits<Real>::quiet_NaN();

static Array column(std::initializer_list<Real> values) {
    Array x = Array::from_shape({values.size(), 1});
    std::copy(values.begin(), values.end(), x.data());
    return x;
}

// True up to the query's own place.
static Mask causal(std::size_t T) {
    std::vector<bool> visible(T * T);
    for (std::size_t q = 0; q < T; ++q) std::fill_n(visible.begin() + std::ptrdiff_t(q * T), q + 1, true);
    return Mask({T, T}, std::move(visible));
}

std::vector<Row> lookback::test::softmax_rows() {
    using Op = Tensor (*)(const Tensor&, int);
    std::vector<Row> rows;
    for (auto& [name, op] :
         std::initializer_list<std::pair<const char*, Op>>{{"softmax", softmax}, {"log_softmax", log_softmax}}) {
        const auto row = [&, op = op, name = name](const char* shapes, const Shape& shape, int axis, double size = 2) {
            rows.push_back({name,
                            shapes,
                            [op, axis](const Tensors& x) -> Tensors { return {op(x[0], axis)}; },
                            {uniform(shape, -size, size)}});
        };
        row("one row", {5}, 0);
        row("(2,3) last axis", {2, 3}, -1);
        row("(3,2) first axis", {3, 2}, 0);
        row("(2,3,4) middle axis", {2, 3, 4}, 1);
        row("(2,3,19) middle axis, negative", {2, 3, 19}, -2);
        row("(2,3,1) beside an axis of 1", {2, 3, 1}, 1);
        row("(2,19) longer than a vector", {2, 19}, 1);
        row("large numbers", {4}, 0, 30);
    }

    const auto masked = [&](const char* shapes, const Shape& shape, int axis, const Mask& visible) {
        rows.push_back({"masked_softmax",
                        shapes,
                        [visible, axis](const Tensors& x) -> Tensors { return {masked_softmax(x[0], visible, axis)}; },
                        {uniform(shape, -2, 2)}});
    };
    masked("causal (T,T) with (B,T,T)", {2, 4, 4}, -1, causal(4));
    masked("(B,1,T) with (B,T,T)", {2, 3, 3}, -1, Mask({2, 1, 3}, {true, true, false, false, true, true}));
    masked("(B,1,1,T) with (B,N,T,T)", {2, 2, 2, 3}, 3, Mask({2, 1, 1, 3}, {true, true, false, true, true, true}));
    masked("holes", {2, 5}, 1, Mask({5}, {false, true, false, true, true}));
    masked("an empty row", {2, 2}, 1, Mask({2, 2}, {false, false, true, true}));
    masked("(B,1) hides whole rows", {2, 3}, 1, Mask({2, 1}, {false, true}));
    masked("a mask of one value", {2, 3}, 1, Mask({}, {true}));
    masked("first axis", {3, 2}, 0, Mask({3, 2}, {true, false, true, true, false, true}));
    masked("middle axis, (T,1)", {2, 3, 4}, 1, Mask({3, 1}, {true, false, true}));

    const auto attended = [&](const char* shapes, const Shape& q, const Shape& k, const Shape& v,
                              const std::optional<Mask>& visible) {
        rows.push_back({"attend",
                        shapes,
                        [visible](const Tensors& x) -> Tensors {
                            const Attended y = attend(x[0], x[1], x[2], visible);
                            return {y.context, y.weights};
                        },
                        {uniform(q, -1, 1), uniform(k, -1, 1, 2), uniform(v, -1, 1, 3)}});
    };
    attended("one head", {3, 2}, {4, 2}, {4, 5}, {});
    attended("(B,N,T,D), causal", {2, 2, 3, 2}, {2, 2, 3, 2}, {2, 2, 3, 2}, causal(3));
    attended("(B,T,D), padding", {2, 3, 2}, {2, 4, 2}, {2, 4, 1},
             Mask({2, 1, 4}, {true, true, false, false, true, true, true, false}));
    attended("an empty row and a hole", {2, 1}, {3, 1}, {3, 2}, Mask({2, 3}, {false, false, false, true, false, true}));
    attended("one query, one key", {1, 2}, {1, 2}, {1, 2}, {});

    const auto additive = [&](const char* shapes, const Shape& q, const Shape& k) {
        rows.push_back({"additive_scores",
                        shapes,
                        [](const Tensors& x) -> Tensors { return {additive_scores(x[0], x[1], x[2])}; },
                        {uniform(q, -1, 1), uniform(k, -1, 1, 2), uniform({q.back()}, -1, 1, 3)}});
    };
    additive("(T_q,A) with (T_k,A)", {2, 3}, {4, 3});
    additive("(B,T_q,A) with (B,T_k,A)", {2, 2, 3}, {2, 3, 3});
    additive("(B,N,T,A)", {2, 2, 1, 2}, {2, 2, 2, 2});
    additive("one query, one key", {1, 1}, {1, 1});

    const auto entropy = [&](const char* shapes, const Shape& shape, const Indices& targets,
                             const CrossEntropy& options = {}) {
        rows.push_back({"cross_entropy",
                        shapes,
                        [=](const Tensors& x) -> Tensors { return {cross_entropy(x[0], targets, options)}; },
                        {uniform(shape, -2, 2)}});
    };
    entropy("(V) with ()", {3}, Indices(Shape{}, {1}));
    entropy("(N,V)", {3, 4}, {0, 3, 1});
    entropy("(B,T,V)", {2, 2, 3}, Indices({2, 2}, {0, 1, 2, 1}));
    entropy("ignored rows", {3, 4}, {0, -100, 1});
    entropy("another mark", {3, 4}, {0, 2, 0}, {.ignore_index = 0});
    entropy("smoothed", {3, 4}, {0, -100, 1}, {.label_smoothing = Real(0.1)});
    entropy("sum", {3, 4}, {0, -100, 1}, {.reduction = Reduction::sum});
    entropy("not reduced", {3, 4}, {0, -100, 1}, {.label_smoothing = Real(0.3), .reduction = Reduction::none});

    for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none})
        for (const Shape& shape : {Shape{}, Shape{2, 3}}) {
            const std::string name = text(shape) + ", " + std::array{"mean", "sum", "none"}[std::size_t(reduction)];
            rows.push_back(
                {"binary_cross_entropy_with_logits",
                 name,
                 [=](const Tensors& x) -> Tensors { return {binary_cross_entropy_with_logits(x[0], x[1], reduction)}; },
                 {uniform(shape, -3, 3, 1), uniform(shape, 0.1, 0.9, 2)}});
            rows.push_back({"mse",
                            name,
                            [=](const Tensors& x) -> Tensors { return {mse(x[0], x[1], reduction)}; },
                            {uniform(shape, -1, 1, 1), uniform(shape, -1, 1, 2)}});
        }
    rows.push_back({"binary_cross_entropy_with_logits",
                    "constant targets",
                    [](const Tensors& x) -> Tensors {
                        return {binary_cross_entropy_with_logits(x[0], Array{0, 1, 1})};
                    },
                    {uniform({3}, -3, 3)}});
    return rows;
}

static Array gradient(const Tape& tape, const Tensor& y, const Tensor& x, const Array& seed) {
    return tape.backward(y, {x}, {.seed = seed})[x];
}

static bool all_zero(const Array& x) {
    return std::all_of(x.begin(), x.end(), [](Real value) { return value == 0; });
}

TEST_CASE("softmax does not overflow, whatever the shape and axis (C29)") {
    const Array wide{1000, 0, -1000};
    const auto check = [&](const Shape& shape, int axis) {
        Tape tape;
        Array scores = filled(shape, 0), right = filled(shape, 0), seed = filled(shape, 0);
        const std::size_t rows = scores.size() / 3,
                          step = shape[std::size_t(axis)] == 3 && axis + 1 < int(shape.size()) ? shape.back() : 1;
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t j = 0; j < 3; ++j) {
                const std::size_t at = step == 1 ? r * 3 + j : (r / step * 3 + j) * step + r % step;
                scores.data()[at] = wide(j);
                right.data()[at] = j == 0;
                seed.data()[at] = Real(j + 1);
            }
        const Tensor x = tape.leaf(scores), y = softmax(x, axis);
        CHECK(close(y.value(), right, 0, 0));
        CHECK(close(gradient(tape, y, x, seed), filled(shape, 0), 0, 0));
    };
    check({3}, 0);
    check({1, 3}, 1);
    check({3, 1}, 0);
    check({2, 3, 1}, 1);
    check({2, 3, 5}, 1);
}

TEST_CASE("log_softmax is exact where probabilities are 0 (C29), and a value, not an expression (C62)") {
    Tape tape;
    const Tensor x = tape.leaf(Array{1000, 0, -1000}), y = log_softmax(x, 0);
    CHECK(close(y.value(), Array{0, -1000, -2000}));
    CHECK(close(gradient(tape, y, x, Array{0, 0, 1}), Array{-1, 0, 1}));

    const Tensor z = log_softmax(tape.leaf(Array{{1, 2, 3}, {0, 0, 0}}), 1);
    const Real third = Real(-std::log(3.0));
    CHECK(close(z.value(), Array{{Real(-2.4076059644443806), Real(-1.4076059644443806), Real(-0.4076059644443806)},
                                 {third, third, third}}));
}

TEST_CASE("The axis is the one that is named (C38)") {
    Tape tape;
    const Real log3 = Real(std::log(3.0));
    const Tensor x = tape.leaf(Array{{0, log3}, {0, 0}});
    CHECK(close(softmax(x, 1).value(), Array{{0.25, 0.75}, {0.5, 0.5}}));
    CHECK(close(softmax(x, -1).value(), Array{{0.25, 0.75}, {0.5, 0.5}}));
    CHECK(close(softmax(x, 0).value(), Array{{0.5, 0.75}, {0.5, 0.25}}));
    const Tensor batch = tape.leaf(Array{{{0, log3}, {0, 0}}});
    CHECK(close(softmax(batch, 0).value(), filled({1, 2, 2}, 1)));
    CHECK(close(softmax(batch, 2).value(), Array{{{0.25, 0.75}, {0.5, 0.5}}}));
}

TEST_CASE("A row has the same bits in any shape, along any axis") {
    Tape tape;
    const std::size_t rows = 21, n = 13;
    const Array scores = uniform({rows, n}, -5, 5, 3);
    Array turned = Array::from_shape({n, rows});
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t j = 0; j < n; ++j) turned(j, r) = scores(r, j);
    const Mask visible({n}, {false, true, true, false, true, true, true, true, true, true, true, false, false});
    const auto check = [&](auto op) {
        const Array all = op(tape.leaf(scores), 1).value(), columns = op(tape.leaf(turned), 0).value();
        for (std::size_t r = 0; r < rows; ++r) {
            Array row = Array::from_shape({n}), from_all = row, from_columns = row;
            for (std::size_t j = 0; j < n; ++j) {
                row(j) = scores(r, j);
                from_all(j) = all(r, j);
                from_columns(j) = columns(j, r);
            }
            const Array alone = op(tape.leaf(row), 0).value();
            CHECK(same_bits(alone, from_all));
            CHECK(same_bits(alone, from_columns));
        }
    };
    check([](const Tensor& x, int axis) { return softmax(x, axis); });
    check([](const Tensor& x, int axis) { return log_softmax(x, axis); });
    check([&](const Tensor& x, int axis) {
        return masked_softmax(x, axis + 1 == int(x.rank()) ? visible : visible.reshape({n, 1}), axis);
    });
}

TEST_CASE("The Jacobian of softmax at (0, ln 2, ln 4) (O09)") {
    Tape tape;
    const Tensor x = tape.leaf(Array{0, Real(std::log(2.0)), Real(std::log(4.0))}), y = softmax(x, 0);
    CHECK(close(y.value(), Array{1, 2, 4} / Real(7), 1e-12, standard_tolerance));
    const Array J = jacobian(y, x);
    CHECK(close(J, Array{{6, -2, -4}, {-2, 10, -8}, {-4, -8, 12}} / Real(49)));
    double square = 0;
    for (Real entry : J) square += double(entry) * entry;
    CHECK(close(std::sqrt(square), 0.4319593977248311, 1e-9, standard_tolerance));

    const Tensor u = tape.leaf(filled({10}, 3));  // uniform over T: ‖J‖_F = √(T−1)/T
    square = 0;
    for (Real entry : jacobian(softmax(u, 0), u)) square += double(entry) * entry;
    CHECK(close(std::sqrt(square), 3.0 / 10));
}

TEST_CASE("A step of attention, by hand (O14)") {
    Tape tape;
    const Real log2 = Real(std::log(2.0));
    const Tensor q = tape.leaf(Array{log2, 0}), K = tape.leaf(Array{{0, 0}, {1, 0}, {2, 0}}),
                 V = tape.leaf(Array{{1, 0}, {0, 1}, {1, 1}});
    const Tensor scores = matmul(K, q), context = matmul(softmax(scores, 0), V);
    CHECK(close(context.value(), Array{5, 6} / Real(7)));
    const Gradients g = tape.backward(context, {q, K, V, scores}, {.seed = Array{1, 2}});
    CHECK(close(g[V], Array{{1, 2}, {2, 4}, {4, 8}} / Real(7)));
    CHECK(close(g[scores], Array{-10, -6, 16} / Real(49)));
    CHECK(close(g[q], Array{Real(26) / 49, 0}));
    CHECK(close(g[K], Array{{-10 * log2, 0}, {-6 * log2, 0}, {16 * log2, 0}} / Real(49)));
}

TEST_CASE("Through a hidden position nothing flows, to the bit (O17)") {
    Tape tape;
    const Tensor q = tape.leaf(Array{Real(0.3), -2}), K = tape.leaf(uniform({4, 2}, -1, 1, 1)),
                 V = tape.leaf(uniform({4, 2}, -1, 1, 2));
    const Tensor scores = matmul(K, q), alpha = masked_softmax(scores, Mask({4}, {true, true, false, true}), 0);
    const Gradients g = tape.backward(matmul(alpha, V), {K, V, scores, alpha}, {.seed = Array{1, -2}});
    CHECK(alpha.value()(2) == 0);
    CHECK(g[scores](2) == 0);
    CHECK(g[K](2, 0) == 0);
    CHECK(g[K](2, 1) == 0);
    CHECK(g[V](2, 0) == 0);
    CHECK(g[V](2, 1) == 0);
    for (std::size_t j : {0u, 1u, 3u}) CHECK(g[scores](j) != 0);
}

TEST_CASE("What a hidden entry holds does not matter: huge, infinite or not a number") {
    Tape tape;
    const Mask visible({2, 4}, {true, false, true, true, false, true, true, false});
    const Array scores = uniform({2, 4}, -1, 1), seed = uniform({2, 4}, -1, 1, 2);
    const auto both = [&](const Array& x_value, const Array& y_bar) {
        const Tensor x = tape.leaf(x_value), y = masked_softmax(x, visible, 1);
        return std::pair(y.value(), gradient(tape, y, x, y_bar));
    };
    const auto [y, x_bar] = both(scores, seed);
    for (const Real hidden : {Real(1e30), infinity, -infinity, not_a_number}) {
        Array other = scores, other_seed = seed;
        for (std::size_t i = 0; i < 8; ++i)
            if (!visible[i]) other.data()[i] = other_seed.data()[i] = hidden;
        const auto [other_y, other_x_bar] = both(other, other_seed);
        CHECK(same_bits(y, other_y));
        CHECK(same_bits(x_bar, other_x_bar));
    }
    Array bad = scores;
    bad(0, 0) = not_a_number;  // visible: not lost, but it stays in its row, among what is visible
    const Array spoilt = both(bad, seed).first;
    CHECK(std::isnan(spoilt(0, 0)));
    CHECK(std::isnan(spoilt(0, 3)));
    CHECK(spoilt(0, 1) == 0);
    CHECK(spoilt(1, 1) == y(1, 1));
}

TEST_CASE("A query with nothing to see has output 0 and gradient 0 (C30, O27)") {
    const Mask visible({2, 2}, {false, false, true, true});
    for (const bool first_row_in_loss : {true, false}) {
        Tape tape;
        const Tensor scores = tape.leaf(Array{{1, 2}, {3, 4}}), V = tape.leaf(column({1, 3}));
        const Tensor context = matmul(masked_softmax(scores, visible, 1), V);
        CHECK(close(context.value(), column({0, Real(2.4621171572600096)})));
        const Gradients g = tape.backward(context, {scores, V}, {.seed = column({Real(first_row_in_loss), 1})});
        CHECK(close(g[scores], Array{{0, 0}, {Real(-0.3932238664829637), Real(0.3932238664829637)}}));
        CHECK(close(g[V], column({Real(0.2689414213699951), Real(0.7310585786300049)})));
    }
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 2, 3}), y = masked_softmax(x, Mask({3}, {false, false, false}), 0);
    CHECK(close(y.value(), Array{0, 0, 0}, 0, 0));
    CHECK(close(gradient(tape, y, x, Array{1, 2, 3}), Array{0, 0, 0}, 0, 0));
    CHECK(std::isnan(softmax(tape.leaf(filled({3}, -infinity)), 0).value()(0)));  // the unsafe way to hide all
}

TEST_CASE("What other policies make of a query with nothing to see (O27)") {
    Tape tape;
    const Tensor scores = tape.leaf(Array{1, 2, 3}), hidden = tape.constant(filled({3}, Real(-1e9)));
    const Mask nothing({3}, {false, false, false});
    const Array third = filled({3}, Real(1) / 3);
    CHECK(close(softmax(masked_fill(scores, nothing, Real(-1e9)), 0).value(), third));
    // Added to, a float score is lost in the last place of 1e9; a double keeps it, and attends as if nothing were
    // hidden.
    const Array as_if_visible{Real(.09003057), Real(.24472847), Real(.66524096)};
    CHECK(close(softmax(scores + hidden, 0).value(), sizeof(Real) == 4 ? third : as_if_visible, 0, 1e-8));
    CHECK(std::isnan(softmax(masked_fill(scores, nothing, -infinity), 0).value()(0)));
    CHECK(float(1) + float(-1e9) == float(-1e9));
    CHECK(float(33) + float(-1e9) == float(-999999936));
}

TEST_CASE("attend is matmul, masked_softmax and matmul, with their gradients") {
    struct Case {
        Shape q, k, v;
        std::optional<Mask> visible;
    };
    std::vector<bool> holes(70 * 90);
    for (std::size_t i = 0; i < holes.size(); ++i) holes[i] = i * i % 7 < 3 && i / 90 != 40;  // row 40 sees nothing
    const std::vector<Case> cases = {
        {{2, 3, 70, 8}, {2, 3, 70, 8}, {2, 3, 70, 8}, causal(70)},  // more than two blocks of queries
        {{2, 70, 5}, {2, 90, 5}, {2, 90, 3}, Mask({70, 90}, holes)},
        {{2, 70, 5}, {2, 90, 5}, {2, 90, 3}, {}},
        {{33, 4}, {1, 4}, {1, 4}, {}},
        {{3, 4}, {0, 4}, {0, 5}, Mask({3, 0}, {})},  // …, masked
        {{2, 3, 4}, {2, 0, 4}, {2, 0, 5}, {}},       // nothing to look at
        {{2, 0, 4}, {2, 3, 4}, {2, 3, 5}, {}},       // nobody looks
        {{3, 0}, {2, 0}, {2, 4}, {}},                // equal scores
        {{3, 4}, {2, 4}, {2, 0}, Mask({}, {false})}};
    for (const Case& c : cases) {
        CAPTURE(text(c.q), text(c.k), bool(c.visible));
        Tape tape;
        const Tensor q = tape.leaf(uniform(c.q, -1, 1, 1)), k = tape.leaf(uniform(c.k, -1, 1, 2)),
                     v = tape.leaf(uniform(c.v, -1, 1, 3));
        const Attended fused = attend(q, k, v, c.visible);
        const Tensor scores = matmul_transposed(q, k);
        const Tensor weights = c.visible ? masked_softmax(scores, *c.visible, -1) : softmax(scores, -1);
        const Tensor context = matmul(weights, v);
        CHECK(close(fused.context.value(), context.value(), 0, 1e-6));
        CHECK(close(fused.weights.value(), weights.value(), 0, 1e-6));
        const Shared c_bar = uniform(context.shape(), -1, 1, 4), w_bar = uniform(weights.shape(), -1, 1, 5);
        for (const auto& [ours, theirs, seed] :
             {std::tuple{fused.context, context, c_bar}, std::tuple{fused.weights, weights, w_bar}}) {
            const Gradients a = tape.backward(ours, {q, k, v}, {.seed = seed}),
                            b = tape.backward(theirs, {q, k, v}, {.seed = seed});
            for (const Tensor& x : {q, k, v}) CHECK(close(a[x], b[x], 0, 1e-5));
        }
        const Tensor constant = tape.constant(k.shared());  // an operand that needs no gradient
        CHECK(close(tape.backward(attend(q, constant, v, c.visible).context, {q}, {.seed = c_bar})[q],
                    tape.backward(context, {q}, {.seed = c_bar})[q], 0, 1e-5));
    }
    Tape tape;
    const Tensor x = tape.leaf(uniform({2, 3, 4}, -1, 1));  // all three operands at once
    CHECK(close(tape.backward(sum(attend(x, x, x).context), {x})[x],
                tape.backward(sum(matmul(softmax(matmul_transposed(x, x), -1), x)), {x})[x], 0, 1e-6));
    const auto leaf = [&](const Shape& shape) { return tape.leaf(filled(shape, 0)); };
    CHECK_THROWS_WITH(attend(x, leaf({2, 3, 5}), x), contains("[attend]") && contains("(2,3,5)"));
    CHECK_THROWS_AS(attend(x, leaf({1, 3, 4}), leaf({1, 3, 4})), ShapeError);
    CHECK_THROWS_AS(attend(x, x, leaf({2, 4, 4})), ShapeError);
    CHECK_THROWS_AS(attend(leaf({4}), leaf({4}), leaf({4})), ShapeError);
    CHECK_THROWS_WITH(attend(x, x, x, Mask({2}, {true, true})), contains("does not broadcast"));
}

TEST_CASE("additive_scores are sums, tanh and a product, with their gradients") {
    for (const auto& [q_shape, k_shape] : {std::pair{Shape{2, 3, 5}, Shape{2, 4, 5}},
                                           {{7, 33}, {9, 33}},
                                           {{2, 1, 3, 4}, {2, 1, 1, 4}},
                                           {{2, 0, 3}, {2, 4, 3}},
                                           {{2, 3, 3}, {2, 0, 3}},
                                           {{3, 0}, {2, 0}}}) {
        CAPTURE(text(q_shape), text(k_shape));
        Tape tape;
        const Tensor q = tape.leaf(uniform(q_shape, -1, 1, 1)), k = tape.leaf(uniform(k_shape, -1, 1, 2)),
                     v = tape.leaf(uniform({q_shape.back()}, -1, 1, 3));
        const Tensor ours = additive_scores(q, k, v), theirs = matmul(tanh(unsqueeze(q, -2) + unsqueeze(k, -3)), v);
        CHECK(close(ours.value(), theirs.value(), 0, 1e-6));
        const Shared bar = uniform(ours.shape(), -1, 1, 4);
        const Gradients a = tape.backward(ours, {q, k, v}, {.seed = bar}),
                        b = tape.backward(theirs, {q, k, v}, {.seed = bar});
        for (const Tensor& x : {q, k, v}) CHECK(close(a[x], b[x], 0, 1e-5));
        const Tensor fixed = tape.constant(k.shared());  // an operand that needs no gradient
        CHECK(close(tape.backward(additive_scores(q, fixed, v), {q}, {.seed = bar})[q], b[q], 0, 1e-5));
    }
    Tape tape;
    const auto leaf = [&](const Shape& shape) { return tape.leaf(filled(shape, 1)); };
    const Tensor x = leaf({3, 3});  // all operands at once: x as queries, keys and, a row of it, as v
    const Tensor v = select(x, 0, 1);
    CHECK(close(tape.backward(sum(additive_scores(x, x, v)), {x})[x],
                tape.backward(sum(matmul(tanh(unsqueeze(x, 1) + unsqueeze(x, 0)), v)), {x})[x], 0, 1e-6));
    CHECK_THROWS_WITH(additive_scores(leaf({2, 3}), leaf({2, 4}), leaf({3})),
                      "[additive_scores] q (…,T_q,A), k (…,T_k,A) and v (A) do not fit: (2,3), (2,4) and (3)");
    CHECK_THROWS_AS(additive_scores(leaf({3}), leaf({3}), leaf({3})), ShapeError);
    CHECK_THROWS_AS(additive_scores(leaf({2, 3}), leaf({2, 3}), leaf({1, 3})), ShapeError);
    CHECK_THROWS_AS(additive_scores(leaf({1, 2, 3}), leaf({2, 2, 3}), leaf({3})), ShapeError);
    CHECK_THROWS_AS(additive_scores(leaf({1, 1, 1, 1, 2, 3}), leaf({1, 1, 1, 1, 2, 3}), leaf({3})), ShapeError);
    // The keys' row whose score nothing flows into keeps a gradient of 0, whatever it holds.
    const Tensor keys = tape.leaf(Array{{infinity, 1}, {1, 2}}), s = additive_scores(leaf({1, 2}), keys, leaf({2}));
    const Array bar = tape.backward(select(reshape(s, {-1}), 0, 1), {keys})[keys];
    CHECK(bar(0, 0) == 0);
    CHECK(bar(0, 1) == 0);
}

TEST_CASE("A row that nothing flows into has gradient 0, whatever stands in it (C27)") {
    for (const Real bad : {not_a_number, infinity}) {
        const Array x_value{{bad, 1, 2}, {1, 2, 4}};
        const Mask second({2, 1}, {false, true});
        const auto spared = [&](const char* what, const std::function<Tensor(const Tensor&)>& f) {
            CAPTURE(what, bad);
            Tape tape;
            const Tensor x = tape.leaf(x_value), y = f(x);
            const Gradients g =
                tape.backward(sum(masked_fill(y, y.rank() == 2 ? second : second.reshape({2}), 0)), {x});
            for (std::size_t j = 0; j < 3; ++j) CHECK(g[x](0, j) == 0);
            CHECK(norm(g[x]) == norm(g[x]));
        };
        spared("log_softmax", [](const Tensor& x) { return log_softmax(x, 1); });
        spared("masked_softmax", [](const Tensor& x) { return masked_softmax(x, Mask({}, {true}), 1) * x; });
        spared("cross_entropy", [](const Tensor& x) {
            return cross_entropy(x, Indices{1, 2}, {.reduction = Reduction::none});
        });
        spared("mse", [](const Tensor& x) { return mse(x, 2 * x, Reduction::none); });
        spared("binary_cross_entropy", [](const Tensor& x) {
            return binary_cross_entropy_with_logits(x, filled({2, 3}, 1), Reduction::none);
        });
        spared("attend", [](const Tensor& x) {
            const Tensor ones = x.tape().constant(filled({2, 3}, 1));
            return attend(x, ones, ones).context;
        });
    }
}

TEST_CASE("True means visible (C34)") {
    Tape tape;
    const Tensor scores = tape.leaf(filled({2, 3}, 0)), V = tape.constant(Array{10, 20, 30});
    const Mask lengths_3_and_1({2, 3}, {true, true, true, true, false, false});
    CHECK(close(matmul(masked_softmax(scores, lengths_3_and_1, 1), V).value(), Array{20, 10}));
    CHECK(close(matmul(masked_softmax(scores, !lengths_3_and_1, 1), V).value(), Array{0, 25}));
    STATIC_REQUIRE_FALSE(std::is_constructible_v<Mask, Shape, std::vector<int>>);
    STATIC_REQUIRE_FALSE(std::is_constructible_v<Mask, Array>);
}

TEST_CASE("masked_softmax is softmax of the visible entries alone, to the bit") {
    Tape tape;
    const std::size_t T = 37;
    const Array scores = uniform({2, T, T}, -3, 3);
    const Array y = masked_softmax(tape.leaf(scores), causal(T), -1).value();
    const Array full = masked_softmax(tape.leaf(scores), Mask({1}, {true}), -1).value();
    CHECK(same_bits(full, softmax(tape.leaf(scores), -1).value()));
    for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t q = 0; q < T; ++q) {
            Array prefix = Array::from_shape({q + 1}), seen = prefix;
            for (std::size_t k = 0; k <= q; ++k) prefix(k) = scores(b, q, k), seen(k) = y(b, q, k);
            CHECK(same_bits(seen, softmax(tape.leaf(prefix), 0).value()));
            for (std::size_t k = q + 1; k < T; ++k) CHECK(y(b, q, k) == 0);
        }
}

TEST_CASE("A mask broadcasts by its shape") {
    Tape tape;
    const Tensor x = tape.leaf(uniform({2, 3, 4, 5}, -2, 2));
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{1}, Shape{4, 5}, Shape{4, 1}, Shape{2, 1, 1, 5},
                               Shape{2, 1, 4, 5}, Shape{3, 1, 1}, Shape{1, 3, 4, 1}, Shape{2, 3, 4, 5}}) {
        std::vector<bool> values(checked_size("test", shape));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = i * 7 % 5 < 3;
        const Mask mask(shape, values), whole = mask.broadcast_to(x.shape());
        for (int axis = 0; axis < 4; ++axis) {
            INFO("mask " << text(shape) << ", axis " << axis);
            CHECK(same_bits(masked_softmax(x, mask, axis).value(), masked_softmax(x, whole, axis).value()));
        }
    }
}

TEST_CASE("Softmax of nothing is nothing, of one value 1") {
    Tape tape;
    for (const Shape& shape : {Shape{0}, Shape{2, 0}, Shape{0, 2}, Shape{2, 0, 3}})
        for (int axis = 0; axis < int(shape.size()); ++axis) {
            const Tensor x = tape.leaf(filled(shape, 1));
            for (const Tensor& y :
                 {softmax(x, axis), log_softmax(x, axis), masked_softmax(x, Mask({}, {true}), axis)}) {
                CHECK(y.shape() == shape);
                CHECK(gradient(tape, y, x, filled(shape, 1)).shape() == shape);
            }
        }
    const Tensor one = tape.leaf(filled({2, 1}, 5));
    CHECK(close(softmax(one, 1).value(), filled({2, 1}, 1), 0, 0));
    CHECK(close(log_softmax(one, 1).value(), filled({2, 1}, 0), 0, 0));
    CHECK(all_zero(gradient(tape, softmax(one, 1), one, filled({2, 1}, 3))));
}

TEST_CASE("A not-a-number spreads to its row and no further") {
    Tape tape;
    const Tensor x = tape.leaf(Array{{1, not_a_number, 2}, {1, 2, 3}});
    for (const Array& y : {softmax(x, 1).value(), log_softmax(x, 1).value()})
        for (std::size_t j = 0; j < 3; ++j) {
            CHECK(std::isnan(y(0, j)));
            CHECK(std::isfinite(y(1, j)));
        }
}

TEST_CASE("Cross-entropy divides by the rows it kept (C53)") {
    Tape tape;
    const Tensor x = tape.leaf(Array{{2, 0}, {0, 1}});
    const Indices second_ignored{0, -100};
    const Array right{{Real(-0.11920292202211755), Real(0.11920292202211755)}, {0, 0}};
    for (const Reduction reduction : {Reduction::mean, Reduction::sum}) {  // one row kept: the same
        const Tensor loss = cross_entropy(x, second_ignored, {.reduction = reduction});
        CHECK(close(loss.item(), 0.12692801104297252));
        CHECK(close(tape.backward(loss, {x})[x], right));
    }
    const Tensor each = cross_entropy(x, second_ignored, {.reduction = Reduction::none});
    CHECK(close(each.value(), Array{Real(0.12692801104297252), 0}));
    CHECK(close(gradient(tape, each, x, Array{1, 1}), right));

    const Tensor nothing = cross_entropy(x, Indices{-100, -100}),
                 empty = cross_entropy(tape.leaf(filled({0, 2}, 0)), Indices{});
    CHECK(nothing.item() == 0);
    CHECK(all_zero(tape.backward(nothing, {x})[x]));
    CHECK(empty.item() == 0);

    CHECK_THROWS_WITH(cross_entropy(x, Indices{0, -4}),
                      "[cross_entropy] target -4 at place 1 is outside logits of (2,2)");
    CHECK_THROWS_AS(cross_entropy(x, Indices{0, 2}), IndexError);
    CHECK_THROWS_AS(cross_entropy(x, Indices{-100, 0}, {.ignore_index = -1}), IndexError);
}

TEST_CASE("A uniform target meets an impossible token with an infinite loss, not NaN") {
    Tape tape;
    const Tensor x = tape.leaf(Array{{0, -infinity}});
    for (const std::int64_t target : {0, 1})
        CHECK(cross_entropy(x, Indices{target}, {.label_smoothing = 1}).item() == infinity);
}

TEST_CASE("An ignored row may hold anything") {
    Tape tape;
    const Tensor x = tape.leaf(Array{{2, 0}, {not_a_number, infinity}}),
                 loss = cross_entropy(x, Indices{0, -100}, {.label_smoothing = Real(0.1)});
    CHECK(std::isfinite(loss.item()));
    const Array x_bar = tape.backward(loss, {x})[x];
    CHECK(x_bar(1, 0) == 0);
    CHECK(x_bar(1, 1) == 0);
}

TEST_CASE("Cross-entropy is the target's part of log_softmax, smoothed or not") {
    Tape tape;
    const std::size_t N = 3, V = 5;
    const Tensor x = tape.leaf(uniform({N, V}, -4, 4)), log_p = log_softmax(x, 1);
    const Indices targets{4, 0, 2};
    for (const double smoothing : {0.0, 0.1, 1.0}) {
        double mean = 0;
        Array seed = filled({N, V}, 0);
        for (std::size_t r = 0; r < N; ++r)
            for (std::size_t v = 0; v < V; ++v) {
                const double t = (std::int64_t(v) == targets[r] ? 1 - smoothing : 0) + smoothing / double(V);
                mean -= t * log_p.value()(r, v) / double(N);
                seed(r, v) = Real(-t / double(N));
            }
        const Tensor loss = cross_entropy(x, targets, {.label_smoothing = Real(smoothing)});
        CHECK(close(loss.item(), mean));
        CHECK(close(tape.backward(loss, {x})[x], gradient(tape, log_p, x, seed)));
    }
}

TEST_CASE("Cross-entropy does not overflow, and a forbidden class costs nothing where it is not the target") {
    Tape tape;
    const Tensor x = tape.leaf(Array{{1000, 0, -1000}, {0, 0, -infinity}});
    const Tensor loss = cross_entropy(x, Indices{2, 0}, {.reduction = Reduction::none});
    CHECK(close(loss.value(), Array{2000, Real(std::log(2.0))}));
    CHECK(close(gradient(tape, loss, x, Array{1, 1}), Array{{1, 0, -1}, {-0.5, 0.5, 0}}));
}

TEST_CASE("The mean of many equal losses is that loss: sums are in double") {
    Tape tape;
    const std::size_t rows = std::size_t(1) << 22;
    const Tensor x = tape.leaf(filled({rows, 1}, 3)), y = tape.constant(filled({rows, 1}, 1));
    CHECK(close(mse(x, y).item(), 4, 1e-12, 0));
    CHECK(close(mse(x, y, Reduction::sum).item(), 4.0 * double(rows), 1e-12, 0));
}

TEST_CASE("The logistic loss is exact far from 0 (C29)") {
    Tape tape;
    const Tensor x = tape.leaf(Array{-800, 800, 800, -800, 0});
    const Tensor loss = binary_cross_entropy_with_logits(x, Array{1, 0, 1, 0, 1}, Reduction::none);
    CHECK(close(loss.value(), Array{800, 800, 0, 0, Real(std::log(2.0))}));
    CHECK(close(gradient(tape, loss, x, filled({5}, 1)), Array{-1, 1, 0, 0, -0.5}));
    const Tensor certain = tape.leaf(Array{infinity, -infinity, infinity});
    const Tensor ends = binary_cross_entropy_with_logits(certain, Array{1, 0, 0}, Reduction::none);
    CHECK((ends.value() == Array{0, 0, infinity}));
    CHECK((gradient(tape, ends, certain, filled({3}, 1)) == Array{0, 0, 1}));
    const Tensor soft = tape.leaf(Array{0.5, 0.5}), logits = tape.leaf(Array{2, -1});
    const Tensor mean = binary_cross_entropy_with_logits(logits, soft);
    CHECK(close(tape.backward(mean, {soft})[soft], Array{-1, 0.5}));  // t̄ = −x / 2
}

TEST_CASE("Losses demand equal shapes (C16)") {
    Tape tape;
    const Tensor stood = tape.leaf(column({1, 2, 3})), row = tape.leaf(Array{1, 2, 3});
    CHECK_THROWS_WITH(mse(stood, row), "[mse] shapes must be equal: (3,1) and (3)");
    CHECK_THROWS_WITH(mse(stood, 1), "[mse] shapes must be equal: (3,1) and ()");
    CHECK_THROWS_WITH(binary_cross_entropy_with_logits(stood, row),
                      "[binary_cross_entropy_with_logits] shapes must be equal: (3,1) and (3)");
    CHECK_THROWS_WITH(cross_entropy(stood, Indices({3, 1}, {0, 0, 0})),
                      "[cross_entropy] needs a target for each row of logits: (3,1) and (3,1)");
    CHECK_THROWS_AS(cross_entropy(row, Indices{0}), ShapeError);
    CHECK_THROWS_AS(cross_entropy(tape.leaf(filled({}, 1)), Indices(Shape{}, {0})), ShapeError);
    CHECK(close(mse(row, tape.constant(Array{1, 4, 6})).item(), 13.0 / 3));
}

TEST_CASE("A loss's other arguments are checked") {
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 2}), none = tape.leaf(filled({0, 2}, 0));
    CHECK_THROWS_WITH(binary_cross_entropy_with_logits(x, Array{1, -1}), contains("at place 1 is outside 0 … 1"));
    CHECK_THROWS_AS(binary_cross_entropy_with_logits(x, Array{not_a_number, 1}), ValueError);
    CHECK_THROWS_AS(cross_entropy(x, Indices(Shape{}, {0}), {.label_smoothing = Real(1.5)}), ValueError);
    CHECK_THROWS_AS(cross_entropy(x, Indices(Shape{}, {0}), {.label_smoothing = not_a_number}), ValueError);
    CHECK_THROWS_WITH(mse(none, none), "[mse] the mean of nothing: (0,2)");
    CHECK(mse(none, none, Reduction::sum).item() == 0);
    CHECK(mse(none, none, Reduction::none).shape() == Shape{0, 2});
}

TEST_CASE("An axis or a mask that does not fit is an error that says so") {
    Tape tape;
    const Tensor x = tape.leaf(filled({2, 3}, 1)), number = tape.leaf(filled({}, 1));
    CHECK_THROWS_AS(softmax(x, 2), ShapeError);
    CHECK_THROWS_AS(log_softmax(x, -3), ShapeError);
    CHECK_THROWS_AS(softmax(number, 0), ShapeError);
    CHECK_THROWS_WITH(softmax(x, 2), contains("[softmax] axis 2"));
    CHECK_THROWS_AS(masked_softmax(x, Mask({3}, {true, true, true}), 2), ShapeError);
    CHECK_THROWS_WITH(masked_softmax(x, Mask({2}, {true, true}), 1),
                      "[masked_softmax] the mask does not broadcast to the scores: (2) and (2,3)");
    CHECK_THROWS_AS(masked_softmax(x, Mask({1, 2, 3}, std::vector<bool>(6, true)), 1), ShapeError);
}
