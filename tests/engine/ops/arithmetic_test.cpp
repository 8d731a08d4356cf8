// Elementwise arithmetic: broadcasting both ways, powers, ties, and branches not taken.
// Field cases C12, C22, C27, C59, C65.
#include "engine/ops/arithmetic.hpp"
#include <cmath>
#include <limits>
#include "engine/ops/activation.hpp"
#include "engine/ops/reduce.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"
#include "tests/support/rows.hpp"

using namespace lookback;
using namespace lookback::test;

using Tensors = std::vector<Tensor>;
using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

static constexpr Real infinity = std::numeric_limits<Real>::infinity(),
                      not_a_number = std::numeric_limits<Real>::quiet_NaN();

// Halves in a mixed order, plus an offset: what differs in offset by a quarter nowhere ties.
static Array halves(const Shape& shape, Real offset = 0) {
    Array x = Array::from_shape(shape);
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = Real(0.5) * Real(i * 7 % 9) - 2 + offset;
    return x;
}

// By shape, since the braces of nested rows are ambiguous where a row has one element.
static Array array(const Shape& shape, std::initializer_list<Real> values) {
    REQUIRE(checked_size("test", shape) == values.size());
    Array x = Array::from_shape(shape);
    std::copy(values.begin(), values.end(), x.data());
    return x;
}

std::vector<Row> lookback::test::arithmetic_rows() {
    std::vector<Row> rows;
    const auto row = [&](const char* op, const std::string& shapes, std::function<Tensor(const Tensors&)> f,
                         std::vector<Array> inputs) {
        rows.push_back({op, shapes, [f](const Tensors& x) { return Tensors{f(x)}; }, std::move(inputs)});
    };

    const std::pair<Shape, Shape> pairs[] = {{{2, 3}, {2, 3}},
                                             {{2, 1}, {2, 3}},
                                             {{2, 3}, {3}},
                                             {{3, 1}, {1, 4}},
                                             {{3, 1}, {2, 3, 4}},
                                             {{1}, {2, 2}},
                                             {{}, {2, 3}},
                                             {{2, 3}, {}},
                                             {{}, {}},
                                             {{1, 1}, {}},
                                             {{0, 3}, {0, 1}},
                                             {{0}, {0}},
                                             {{1, 2, 1, 2}, {3, 1, 2, 1}}};
    for (auto& [name, op] : std::initializer_list<std::pair<const char*, Binary>>{
             {"add", add}, {"sub", sub}, {"mul", mul}, {"div", div}, {"maximum", maximum}, {"minimum", minimum}}) {
        const bool chooses = op == maximum || op == minimum;
        for (auto& [a, b] : pairs)
            row(
                name, text(a) + " with " + text(b), [op = op](const Tensors& x) { return op(x[0], x[1]); },
                chooses ? std::vector{halves(a), halves(b, Real(0.25))}
                        : std::vector{uniform(a, -2, 2, 1), uniform(b, 0.5, 2, 2)});
        row(name, "a number second", [op = op](const Tensors& x) { return op(x[0], Real(0.75)); }, {halves({2, 3})});
        row(name, "a number first", [op = op](const Tensors& x) { return op(Real(0.75), x[0]); },
            {chooses ? halves({2, 3}) : uniform({2, 3}, 0.5, 2)});
        row(name, "a constant",
            [op = op](const Tensors& x) {
                return op(x[0], x[0].tape().constant(filled({2, 3}, Real(1.4))));
            },
            {Array{1, Real(1.8), Real(1.2)}});
        if (op == add || op == mul)
            row(name, "same input", [op = op](const Tensors& x) { return op(x[0], x[0]); }, {uniform({2, 3}, 0.5, 2)});
    }
    row("add", "operators", [](const Tensors& x) { return (2 * x[0] + x[1] / x[0] - 1) * -x[1]; },
        {uniform({2, 3}, 0.5, 2), uniform({3}, 0.5, 2, 2)});

    for (const Shape& shape : {Shape{2, 3}, Shape{}, Shape{1}, Shape{0, 2}}) {
        row("neg", text(shape), [](const Tensors& x) { return neg(x[0]); }, {uniform(shape, -2, 2)});
        row("clamp", text(shape), [](const Tensors& x) { return clamp(x[0], Real(-0.75), Real(0.75)); },
            {halves(shape, Real(1.5))});
        for (Real exponent : {-2, -1, 1, 2, 3})  // whole powers of negative numbers
            row("pow", text(shape) + " to " + std::to_string(int(exponent)),
                [exponent](const Tensors& x) { return pow(x[0], exponent); }, {halves(shape, Real(0.25))});
        row("pow", text(shape) + " to 2.5", [](const Tensors& x) { return pow(x[0], Real(2.5)); },
            {uniform(shape, 0.5, 2)});
    }

    const Mask mask({2, 3}, {true, false, true, false, false, true}), column({2, 1}, {false, true}), one({}, {true});
    const auto select = [&](const std::string& shapes, const Mask& m, const Shape& a, const Shape& b) {
        row("where", shapes, [m](const Tensors& x) { return where(m, x[0], x[1]); },
            {uniform(a, -2, 2, 1), uniform(b, -2, 2, 2)});
    };
    select("(2,3)", mask, {2, 3}, {2, 3});
    select("mask (2,1)", column, {2, 3}, {3});
    select("mask larger than both", mask, {3}, {});
    select("mask smaller than both", one, {1, 3}, {2, 1});
    select("zero size", Mask({0, 1}, std::vector<bool>{}), {0, 3}, {0, 1});
    row("where", "same input", [mask](const Tensors& x) { return where(mask, x[0], 2 * x[0]); },
        {uniform({2, 3}, -2, 2)});
    row("where", "a number", [mask](const Tensors& x) { return where(mask, x[0], 7); }, {uniform({2, 3}, -2, 2)});
    for (auto& [shapes, m, shape] : std::initializer_list<std::tuple<const char*, Mask, Shape>>{
             {"(2,3)", mask, {2, 3}}, {"mask (2,1)", column, {4, 2, 3}}, {"0-d", one, {}}, {"zero size", one, {0, 2}}})
        row("masked_fill", shapes, [m = m](const Tensors& x) { return masked_fill(x[0], m, -3); },
            {uniform(shape, -2, 2)});
    return rows;
}

TEST_CASE("Numbers stand for either operand", "[arithmetic]") {
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 2, 4});
    CHECK(close((2 * x + 1).value(), {3, 5, 9}));
    CHECK(close((x - 1).value(), {0, 1, 3}));
    CHECK(close((1 - x).value(), {0, -1, -3}));
    CHECK(close((4 / x).value(), {4, 2, 1}));
    CHECK(close((x / 2).value(), {0.5, 1, 2}));
    CHECK(close(maximum(x, 2).value(), {2, 2, 4}));
    CHECK(close(minimum(3, x).value(), {1, 2, 3}));
    CHECK(tape.backward(sum(4 / x), {x})[x].shape() == Shape{3});
}

TEST_CASE("A broadcast operand's gradient is summed back to its own shape", "[arithmetic][C12]") {
    Tape tape;
    Array c_value = Array::from_shape({2, 3, 4});
    for (std::size_t k = 0; k < 2; ++k)
        for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t j = 0; j < 4; ++j) c_value(k, i, j) = Real((k + 1) * (i + 1) + j);
    const Tensor a = tape.leaf(array({3, 1}, {1, 2, 3})), b = tape.leaf(array({1, 4}, {1, 2, 3, 4})),
                 c = tape.leaf(c_value);
    Gradients g = tape.backward(sum((a + b) * c), {a, b});
    CHECK(close(g[a], array({3, 1}, {24, 36, 48})));
    CHECK(close(g[b], array({1, 4}, {18, 24, 30, 36})));

    const Tensor s = tape.leaf(filled({}, 2));
    g = tape.backward(sum(s * c), {s});
    CHECK(close(g[s], filled({}, 108)));
}

TEST_CASE("An empty batch leaves the bias a gradient of zeros", "[arithmetic]") {
    Tape tape;
    const Tensor x = tape.leaf(filled({0, 3}, 0)), bias = tape.leaf(filled({3}, 1)), y = x + bias;
    CHECK(y.shape() == Shape{0, 3});
    CHECK(close(tape.backward(sum(y), {bias})[bias], {0, 0, 0}));
}

TEST_CASE("What cancels has no gradient", "[arithmetic]") {
    Tape tape;
    const Tensor x = tape.leaf(Array{2, 3, -7});
    CHECK(close(tape.backward(sum(x - x), {x})[x], {0, 0, 0}));
    CHECK(close(tape.backward(sum(x / x), {x})[x], {0, 0, 0}));
}

TEST_CASE("A bias gradient over a large batch does not stall at 2^24", "[arithmetic][C59]") {
    Tape tape;  // 2^24 + 1 is no float
    const Tensor x = tape.leaf(filled({5, 1}, 0)), bias = tape.leaf(filled({1}, 0));
    const Array seed = array({5, 1}, {16777216, 1, 1, 1, 1});
    CHECK(close(tape.backward(x + bias, {bias}, {.seed = seed})[bias], filled({1}, 16777220), 0, 0));
}

TEST_CASE("A product saves only what somebody's gradient needs", "[arithmetic]") {
    Tape tape;
    const Tensor x = tape.leaf(filled({3}, 2)), k = tape.constant(filled({3}, 5));
    const auto saves_input = [&](const Tensor& y, std::size_t i) { return bool(tape.inputs(tape[y.id()])[i].saved); };
    CHECK_FALSE(saves_input(x * k, 0));
    CHECK(saves_input(x * k, 1));
    CHECK_FALSE(saves_input(x / k, 0));
    CHECK_FALSE(bool(tape[(x / k).id()].output));
    CHECK(saves_input(x * x, 0));
}

TEST_CASE("Shapes that do not broadcast are refused by name", "[arithmetic]") {
    Tape tape;
    const Tensor x = tape.leaf(filled({2, 3}, 1)), y = tape.leaf(filled({4}, 1));
    const Mask mask({4}, {true, true, true, true});
    const std::size_t records = tape.size();
    CHECK_THROWS_WITH(add(x, y), "[add] shapes do not broadcast: (2,3) and (4)");
    CHECK_THROWS_AS(add(x, y), ShapeError);
    CHECK_THROWS_WITH(sub(x, y), contains("[sub]"));
    CHECK_THROWS_WITH(mul(x, y), contains("[mul]"));
    CHECK_THROWS_WITH(div(x, y), contains("[div]"));
    CHECK_THROWS_WITH(maximum(x, y), contains("[maximum]"));
    CHECK_THROWS_WITH(minimum(x, y), contains("[minimum]"));
    CHECK_THROWS_WITH(where(mask, x, x), contains("[where]"));
    CHECK_THROWS_WITH(where(mask, x, y), contains("[where]"));
    CHECK_THROWS_WITH(masked_fill(x, mask, 0), "[masked_fill] mask (4) does not broadcast to (2,3)");
    CHECK_THROWS_AS(masked_fill(y, Mask({2, 4}, std::vector<bool>(8)), 0), ShapeError);  // x does not grow
    CHECK(tape.size() == records);
}

TEST_CASE("Numbers alone have no tape to be recorded on", "[arithmetic]") {
    CHECK_THROWS_AS(Tensor(1) + Tensor(2), TapeError);
    CHECK_THROWS_AS(neg(Tensor(1)), TapeError);
}

TEST_CASE("Whole powers are right at negative and zero bases", "[arithmetic]") {
    Tape tape;
    const auto power = [&](Real base, Real exponent) {
        const Tensor x = tape.leaf(filled({}, base)), y = pow(x, exponent);
        return std::pair{y.item(), tape.backward(y, {x})[x]()};
    };
    CHECK(power(0, 2) == std::pair<Real, Real>{0, 0});
    CHECK(power(0, 1) == std::pair<Real, Real>{0, 1});
    CHECK(power(0, 0) == std::pair<Real, Real>{1, 0});
    CHECK(power(-3, 0) == std::pair<Real, Real>{1, 0});
    CHECK(power(-3, 1) == std::pair<Real, Real>{-3, 1});
    CHECK(power(-3, 2) == std::pair<Real, Real>{9, -6});
    CHECK(power(-3, 3) == std::pair<Real, Real>{-27, 27});
    CHECK(power(-2, -1) == std::pair<Real, Real>{-0.5, -0.25});
    CHECK(power(-2, -2) == std::pair<Real, Real>{0.25, 0.25});
    CHECK(power(4, 0.5) == std::pair<Real, Real>{2, 0.25});
    CHECK(power(0, 0.5) == std::pair<Real, Real>{0, infinity});
    CHECK(power(0, -1) == std::pair<Real, Real>{infinity, -infinity});
    CHECK(std::isnan(power(-4, 0.5).first));
}

TEST_CASE("The two parts of a tie sum to one", "[arithmetic][C22]") {
    Tape tape;
    for (Binary op : {maximum, minimum}) {
        const Tensor a = tape.leaf(Array{3, 0, 1, 2}), b = tape.leaf(Array{3, -0.0, 2, 1}), y = op(a, b);
        const Gradients g = tape.backward(y, {a, b}, {.seed = Array{1, 10, 100, 1000}});
        const Real up = op == maximum ? 1 : 0, down = 1 - up;
        CHECK(close(g[a], {0.5, 5, 100 * down, 1000 * up}));
        CHECK(close(g[b], {0.5, 5, 100 * up, 1000 * down}));
    }
    const Tensor x = tape.leaf(Array{3});  // tied with itself
    CHECK(close(tape.backward(sum(maximum(x, x)), {x})[x], filled({1}, 1)));
}

TEST_CASE("The larger and the smaller of anything and NaN is NaN", "[arithmetic]") {
    Tape tape;
    const Tensor a = tape.leaf(Array{not_a_number, 1, infinity}), b = tape.leaf(Array{1, not_a_number, -infinity});
    CHECK(close(maximum(a, b).value(), {not_a_number, not_a_number, infinity}));
    CHECK(close(minimum(a, b).value(), {not_a_number, not_a_number, -infinity}));
    CHECK(close(clamp(a, 0, 2).value(), {not_a_number, 1, 2}));
}

TEST_CASE("Clamping passes the gradient at its bounds", "[arithmetic][C22]") {
    Tape tape;
    const Tensor x = tape.leaf(Array{-2, -1, 0, 1, 2}), y = clamp(x, -1, 1);
    CHECK(close(y.value(), {-1, -1, 0, 1, 1}));
    CHECK(close(tape.backward(sum(y), {x})[x], {0, 1, 1, 1, 0}));
    CHECK(close(clamp(x, 1, 1).value(), {1, 1, 1, 1, 1}));
    CHECK_THROWS_AS(clamp(x, 1, -1), ValueError);
    CHECK_THROWS_AS(clamp(x, not_a_number, 1), ValueError);
}

static Mask above_zero(const Tensor& x) {
    std::vector<bool> chosen;
    for (Real v : x.value()) chosen.push_back(v > 0);
    return Mask(x.shape(), std::move(chosen));
}

TEST_CASE("A branch that was not taken leaks nothing into gradients", "[arithmetic][C27]") {
    Tape tape;
    const Real e = std::exp(Real(1));
    const auto gradient = [&](const Tensor& y, const Tensor& x) { return tape.backward(sum(y), {x})[x]; };

    const Tensor x = tape.leaf(Array{0, 1, e}), z = tape.leaf(Array{-1, -4});
    CHECK(close(gradient(where(above_zero(x), log(x), 0), x), {0, 1, 1 / e}));
    CHECK(close(gradient(where(above_zero(z), sqrt(z), z), z), {1, 1}));
    CHECK(close(gradient(masked_fill(log(x), above_zero(x), 0), x), {0, 1, 1 / e}));
    // through further ops, each of which has NaN or an infinity to multiply 0 with
    CHECK(close(gradient(where(above_zero(x), x * log(x), 0), x), {0, 1, 2}));
    CHECK(close(gradient(where(above_zero(x), tanh(-1 / x) / x, 0), x)(0), 0));
    CHECK(
        close(gradient(where(above_zero(z), exp(sigmoid(log(z)) * softplus(gelu(pow(z, Real(0.5))))), 0), z), {0, 0}));
    CHECK(close(gradient(where(above_zero(z), maximum(log(z), abs(log(z))) - relu(log(z)), 0), z), {0, 0}));
}

TEST_CASE("A zero cotangent stays zero at every infinite or undefined slope", "[arithmetic][C27]") {
    Tape tape;
    const Tensor zero = tape.leaf(Array{0}), big = tape.leaf(Array{1e4}), nan = tape.leaf(Array{not_a_number}),
                 inf = tape.leaf(Array{infinity});
    const auto blocked = [&](const Tensor& y, const Tensor& x) {
        return close(tape.backward(y, {x}, {.seed = filled(y.shape(), 0)})[x], filled({1}, 0), 0, 0);
    };
    CHECK(blocked(log(zero), zero));
    CHECK(blocked(sqrt(zero), zero));
    CHECK(blocked(pow(zero, -1), zero));
    CHECK(blocked(1 / zero, zero));
    CHECK(blocked(zero / zero, zero));
    CHECK(blocked(exp(big), big));
    CHECK(blocked(big * inf, big));
    CHECK(blocked(zero * inf, inf));
    for (auto op : std::initializer_list<Unary>{exp, log, sqrt, abs, tanh, sigmoid, relu, gelu, softplus}) {
        CHECK(blocked(op(nan), nan));
        CHECK(blocked(op(inf), inf));
    }
    CHECK(blocked(clamp(nan, 0, 1), nan));
    CHECK(blocked(maximum(nan, 1), nan));
}

TEST_CASE("A select takes each entry from its side, whatever stands on the other", "[arithmetic]") {
    Tape tape;
    const Tensor a = tape.leaf(array({1, 2}, {1, not_a_number})), b = tape.leaf(array({2, 1}, {infinity, 2}));
    const Mask mask({2, 2}, {true, false, true, false});
    const Tensor y = where(mask, a, b);
    CHECK(close(y.value(), array({2, 2}, {1, infinity, 1, 2})));
    const Gradients g = tape.backward(y, {a, b}, {.seed = array({2, 2}, {1, 10, 100, 1000})});
    CHECK(close(g[a], array({1, 2}, {101, 0})));
    CHECK(close(g[b], array({2, 1}, {10, 1000})));

    CHECK(close(masked_fill(a, Mask({2}, {true, false}), -7).value(), array({1, 2}, {1, -7})));
}
