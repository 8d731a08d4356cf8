// Reductions against loops that know nothing of memory layouts, and at empty, tied, infinite and undefined inputs.
// Field cases C22, C23, C26, C59, C67.
#include "engine/ops/reduce.hpp"
#include <cmath>
#include <limits>
#include <numeric>
#include "engine/ops/arithmetic.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"
#include "tests/support/rows.hpp"

using namespace lookback;
using namespace lookback::test;

using Tensors = std::vector<Tensor>;

static constexpr Real infinity = std::numeric_limits<Real>::infinity(),
                      not_a_number = std::numeric_limits<Real>::quiet_NaN();

using Values = std::vector<double>;

static double mean_of(const Values& x) { return std::accumulate(x.begin(), x.end(), 0.0) / double(x.size()); }
static double squares_about(double centre, const Values& x) {
    return std::accumulate(x.begin(), x.end(), 0.0,
                           [=](double s, double v) { return s + (v - centre) * (v - centre); });
}

// A reduction, what it should be of a list of numbers, and whether an empty list has a value.
struct Fold {
    const char* name;
    std::function<Tensor(const Tensor&, const Axes&, bool)> op;
    std::function<double(const Values&)> value;
    bool of_nothing;
};
static const Fold reductions[] = {
    {"sum", sum, [](const Values& x) { return std::accumulate(x.begin(), x.end(), 0.0); }, true},
    {"mean", mean, mean_of, false},
    {"prod", prod, [](const Values& x) { return std::accumulate(x.begin(), x.end(), 1.0, std::multiplies()); }, true},
    {"max", max, [](const Values& x) { return *std::max_element(x.begin(), x.end()); }, false},
    {"min", min, [](const Values& x) { return *std::min_element(x.begin(), x.end()); }, false},
    {"logsumexp", logsumexp,
     [](const Values& x) {
         return std::log(std::accumulate(x.begin(), x.end(), 0.0, [](double s, double v) { return s + std::exp(v); }));
     },
     true},
    {"norm", static_cast<Tensor (*)(const Tensor&, const Axes&, bool)>(norm),
     [](const Values& x) { return std::sqrt(squares_about(0, x)); }, true},
    {"variance", [](const Tensor& x, const Axes& axes, bool keep_dims) { return variance(x, axes, keep_dims); },
     [](const Values& x) { return squares_about(mean_of(x), x) / double(x.size()); }, false},
    {"variance of a sample",
     [](const Tensor& x, const Axes& axes, bool keep_dims) { return variance(x, axes, keep_dims, 1); },
     [](const Values& x) { return squares_about(mean_of(x), x) / double(x.size() - 1); }, false},
};

// Every set of axes of an array with `rank` axes.
static std::vector<std::vector<int>> axis_sets(std::size_t rank) {
    std::vector<std::vector<int>> sets;
    for (unsigned bits = 1; bits < 1u << rank; ++bits) {
        sets.emplace_back();
        for (unsigned k = 0; k < rank; ++k)
            if (bits >> k & 1) sets.back().push_back(int(k));
    }
    return sets;
}
static Axes as_axes(const std::vector<int>& set) {
    switch (set.size()) {
        case 1:
            return {set[0]};
        case 2:
            return {set[0], set[1]};
        case 3:
            return {set[0], set[1], set[2]};
        default:
            return {set.at(0), set.at(1), set.at(2), set.at(3)};
    }
}

// By shape, since the braces of nested rows are ambiguous where a row has one element.
static Array array(const Shape& shape, std::initializer_list<Real> values) {
    REQUIRE(checked_size("test", shape) == values.size());
    Array x = Array::from_shape(shape);
    std::copy(values.begin(), values.end(), x.data());
    return x;
}

// No two of those that a row reduces together are nearer than gradcheck's two steps, in a float build too.
static Array apart(const Shape& shape) {
    Array x = Array::from_shape(shape);
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = Real(0.5) + Real(0.05) * Real(i * 23 % 71);
    return x;
}

std::vector<Row> lookback::test::reduce_rows() {
    std::vector<Row> rows;
    for (const Fold& r : reductions) {
        const std::string title = r.name, name = title.substr(0, title.find(' ')), rest = title.substr(name.size());
        const bool chooses = name == "max" || name == "min";
        const auto values = [&](const Shape& shape) { return chooses ? apart(shape) : uniform(shape, 0.5, 2); };
        const auto row = [&](const std::string& shapes, const Array& x, const Axes& axes, bool keep_dims) {
            rows.push_back(
                {name,
                 shapes,
                 [op = r.op, axes, keep_dims](const Tensors& t) { return Tensors{op(t[0], axes, keep_dims)}; },
                 {x}});
        };
        const Array x = values({2, 3, 4});
        row("all", x, {}, false);
        row("all, kept", x, {}, true);
        row("first", x, 0, false);
        row("middle", x, 1, false);
        row("middle, kept", x, 1, true);
        row("negative axis", x, -1, false);
        row("last, kept", x, -1, true);
        row("adjacent", x, {0, 1}, false);
        row("not adjacent", x, {0, 2}, false);
        row("not adjacent, kept, the other way round", x, {-1, 0}, true);
        row("around an axis of 1", values({2, 1, 3}), {0, 2}, false);
        row("two of four", values({2, 3, 2, 2}), {1, 3}, false);
        row("more than one vector", chooses ? apart({37}) : uniform({37}, 0.9, 1.1), {}, false);
        row("more than one block of columns", values({2, 70}), 0, false);
        row("nothing left", values({0, 3}), 1, false);
        if (r.of_nothing && name != "logsumexp")  // which is −∞
            row("of nothing", values({2, 0}), -1, false);
        if (name != "variance") {  // whose gradient would be 0
            row("0-d", values({}), {}, false);
            row("(1)", values({1}), 0, false);
            row("axes of 1", values({2, 1, 3, 1}), {1, -1}, true);
        }
        rows.push_back({name,
                        "same input" + rest,
                        [op = r.op](const Tensors& t) {
                            return Tensors{op(t[0], 0, false), op(t[0], -1, false), op(t[0], {0, 2}, false)};
                        },
                        {x}});
    }
    return rows;
}

TEST_CASE("A reduction over any axes equals a loop over the elements it folds", "[reduce]") {
    Tape tape;
    for (const Shape& shape :
         {Shape{2, 3, 4}, Shape{3, 2, 2, 3}, Shape{2, 1, 3}, Shape{70, 3}, Shape{2, 70}, Shape{35}}) {
        const Array x = uniform(shape, 0.5, 1.5, 7);
        for (const std::vector<int>& set : axis_sets(shape.size())) {
            Shape kept = shape, left;
            for (int k : set) kept[std::size_t(k)] = 1;
            for (std::size_t k = 0; k < shape.size(); ++k)
                if (std::find(set.begin(), set.end(), int(k)) == set.end()) left.push_back(shape[k]);
            // the elements folded into each result
            std::vector<Values> folded(checked_size("test", kept));
            for (std::size_t i = 0; i < x.size(); ++i) {
                std::size_t to = 0, rest = i, size = 1;
                for (std::size_t k = shape.size(); k-- > 0; rest /= shape[k]) {
                    if (kept[k] != 1) to += rest % shape[k] * size;
                    size *= kept[k];
                }
                folded[to].push_back(x.data()[i]);
            }
            for (const Fold& r : reductions) {
                INFO(r.name << " of " << text(shape) << " to " << text(kept));
                if (folded[0].size() == 1 && std::string(r.name) == "variance of a sample") continue;
                Array expected = Array::from_shape(kept);
                for (std::size_t i = 0; i < folded.size(); ++i) expected.data()[i] = Real(r.value(folded[i]));
                CHECK(close(r.op(tape.leaf(x), as_axes(set), true).value(), expected));
                expected.reshape(left);
                CHECK(close(r.op(tape.leaf(x), as_axes(set), false).value(), expected));
            }
        }
    }
}

TEST_CASE("No reduction loses NaN, wherever it stands", "[reduce]") {
    Tape tape;
    for (const Fold& r : reductions)
        for (std::size_t place : {0, 1, 16, 20, 39}) {
            INFO(r.name << ", NaN at " << place);
            Array x = uniform({40}, 0.5, 2);
            x(place) = not_a_number;
            CHECK(std::isnan(r.op(tape.leaf(x), {}, false).item()));
            Array table = x;
            table.reshape({20, 2});
            const Array columns = r.op(tape.leaf(table), 0, false).value();
            CHECK(std::isnan(columns(place % 2)));
            CHECK_FALSE(std::isnan(columns(1 - place % 2)));
        }
}

TEST_CASE("Reductions of nothing have a value where there is one, else an error", "[reduce]") {
    Tape tape;
    const Tensor x = tape.leaf(filled({2, 0}, 0)), e = tape.leaf(filled({0}, 0));
    CHECK(close(sum(x, 1).value(), {0, 0}));
    CHECK(close(prod(x, 1).value(), {1, 1}));
    CHECK(close(norm(x, 1).value(), {0, 0}));
    CHECK(close(logsumexp(x, 1).value(), {-infinity, -infinity}));
    CHECK(sum(e).item() == 0);
    CHECK(sum(x, 0).shape() == Shape{0});
    for (const Fold& r : reductions)
        if (!r.of_nothing) {
            CHECK_THROWS_AS(r.op(x, 1, false), ShapeError);
            CHECK_THROWS_AS(r.op(e, {}, false), ShapeError);
        }
    CHECK_THROWS_WITH(max(x, 1), "[max] of no elements: (2,0)");
    CHECK_THROWS_WITH(mean(x), "[mean] of no elements: (2,0)");
    CHECK_THROWS_WITH(argmax(x, 1), "[argmax] of no elements: (2,0)");
    CHECK(argmax(x, 0).shape() == Shape{0});
}

TEST_CASE("No array is so large that a reduction of it would wrap, not even an empty one", "[reduce]") {
    Tape tape;
    const std::size_t big = std::size_t(1) << 40;
    CHECK_THROWS_AS(filled({big, big}, 0), ShapeError);
    CHECK_THROWS_WITH(filled({0, big, big}, 0), "[filled] too many elements: (0,1099511627776,1099511627776)");
    CHECK_THROWS_AS(filled({big + 1, big + 1, 3, 0}, 0), ShapeError);
    const Tensor x = tape.leaf(filled({0, big, 3}, 0));
    CHECK(sum(x, {1, 2}).shape() == Shape{0});
    CHECK(sum(x).item() == 0);
    CHECK(tape.backward(sum(x), {x})[x].shape() == x.shape());
}

TEST_CASE("Axes that are not there or named twice are refused by name", "[reduce]") {
    Tape tape;
    const Tensor x = tape.leaf(filled({2, 3}, 1)), s = tape.leaf(filled({}, 1));
    const std::size_t records = tape.size();
    for (const Fold& r : reductions) {
        CHECK_THROWS_AS(r.op(x, 2, false), ShapeError);
        CHECK_THROWS_AS(r.op(x, -3, false), ShapeError);
        CHECK_THROWS_AS(r.op(x, {0, -2}, false), ShapeError);
        CHECK_THROWS_AS(r.op(s, 0, false), ShapeError);
    }
    CHECK_THROWS_WITH(norm(x, 2), contains("[norm] axis 2"));
    CHECK_THROWS_AS(argmax(x, 2), ShapeError);
    CHECK_THROWS_AS(variance(x, 0, false, 2), ValueError);
    CHECK_THROWS_AS(variance(x, 0, false, -1), ValueError);
    CHECK(tape.size() == records);
}

TEST_CASE("Ties in max and min split the gradient evenly", "[reduce][C22]") {
    Tape tape;
    const Tensor x = tape.leaf(Array{2, 5, 5, 1}), zeros = tape.leaf(Array{-0.0, 0.0, -1});
    CHECK(close(tape.backward(max(x), {x})[x], {0, 0.5, 0.5, 0}));
    CHECK(close(tape.backward(max(zeros), {zeros})[zeros], {0.5, 0.5, 0}));
    const Tensor t = tape.leaf(array({3, 2}, {1, 7, 1, 3, 1, 3}));
    CHECK(close(tape.backward(sum(min(t, 0)), {t})[t],
                array({3, 2}, {Real(1. / 3), 0, Real(1. / 3), 0.5, Real(1. / 3), 0.5})));
    const Tensor infinite = tape.leaf(Array{-infinity, -infinity});
    CHECK(close(tape.backward(max(infinite), {infinite})[infinite], {0.5, 0.5}));
}

TEST_CASE("The gradient of a length is 0 at 0", "[reduce][C23]") {
    Tape tape;
    const Tensor x = tape.leaf(Array{0, 0, 0});
    const Array zeros{0, 0, 0};
    CHECK(close(tape.backward(norm(x), {x})[x], zeros, 0, 0));
    CHECK(close(tape.backward(pow(norm(x), 2), {x})[x], zeros, 0, 0));
    CHECK(close(tape.backward(sum(x * x), {x})[x], zeros, 0, 0));
    CHECK(close(tape.backward(sum(x / maximum(norm(x), Real(1e-12))), {x})[x], {1e12, 1e12, 1e12}));
    const Tensor rows = tape.leaf(array({2, 2}, {0, 0, 3, 4}));
    CHECK(close(tape.backward(sum(norm(rows, -1)), {rows})[rows], array({2, 2}, {0, 0, 0.6, 0.8})));
}

TEST_CASE("A length neither overflows nor vanishes when its squares would", "[reduce]") {
    Tape tape;
    const bool wide = sizeof(Real) == 8;
    for (Real unit : {wide ? Real(1e200) : Real(1e30), wide ? Real(1e-200) : Real(1e-30), Real(1)}) {
        const Tensor x = tape.leaf(Array{3 * unit, -4 * unit}), y = norm(x);
        CHECK(close(y.item(), 5 * unit, 1e-6, 0));
        CHECK(close(tape.backward(y, {x})[x], {0.6, -0.8}));
    }
    CHECK(norm(tape.leaf(Array{3, -infinity})).item() == infinity);
    CHECK(norm(tape.leaf(Array{3, 4})).item() == 5);
}

TEST_CASE("A product with zeros has the right gradient", "[reduce][C26]") {
    Tape tape;
    const auto gradient = [&](const Array& value, const Axes& axes) {
        const Tensor x = tape.leaf(value);
        return tape.backward(sum(prod(x, axes)), {x})[x];
    };
    CHECK(close(gradient({2, 0, 4}, {}), {0, 8, 0}));
    CHECK(close(gradient({0, 0, 3}, {}), {0, 0, 0}));
    CHECK(close(gradient(filled({1}, 0), {}), filled({1}, 1)));
    CHECK(close(gradient(array({2, 2}, {2, 0, 3, 4}), 1), array({2, 2}, {0, 2, 4, 3})));
    CHECK(close(gradient(array({2, 2}, {2, 0, 3, 4}), 0), array({2, 2}, {3, 4, 2, 0})));
}

TEST_CASE("Sums do not stall at 2^24", "[reduce][C59]") {
    Tape tape;
    const Array column = array({5, 1}, {16777216, 1, 1, 1, 1});  // 2^24 + 1 is no float
    CHECK(sum(tape.leaf(column)).item() == 16777220);
    CHECK(close(sum(tape.leaf(column), 0).value(), filled({1}, 16777220), 0, 0));
    Array table = Array::from_shape({5, 2});
    for (std::size_t i = 0; i < 5; ++i) table(i, 0) = table(i, 1) = column(i, 0);
    CHECK(close(sum(tape.leaf(table), 0).value(), {16777220, 16777220}, 0, 0));
    CHECK(close(mean(tape.leaf(table), 0).value(), {3355444, 3355444}, 0, 0));
    if (sizeof(Real) == 4) {
        CHECK(sum(tape.leaf(filled({1 << 25}, 1))).item() == 33554432);
        CHECK(close(mean(tape.leaf(filled({1 << 25, 2}, 1)), 0).value(), {1, 1}, 0, 0));
    }
}

TEST_CASE("A variance divides by n unless told otherwise, and does not cancel", "[reduce]") {
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 2, 3, 6});
    CHECK(close(variance(x).item(), 3.5));
    CHECK(close(variance(x, {}, false, 1).item(), 14. / 3));
    CHECK(close(tape.backward(variance(x), {x})[x], {-1, -0.5, 0, 1.5}));
    const Tensor one = tape.leaf(filled({3, 1}, 5));
    CHECK(close(tape.backward(sum(variance(one, 1)), {one})[one], filled({3, 1}, 0), 0, 0));
    const Real far = sizeof(Real) == 8 ? 1e9 : 1e6;  // the mean of squares less the square of the mean would be rubble
    CHECK(close(variance(tape.leaf(Array{far, far + 1, far + 2})).item(), 2. / 3));
}

TEST_CASE("logsumexp is right at the ends of the number line", "[reduce]") {
    Tape tape;
    const auto at = [&](const Array& value) {
        const Tensor x = tape.leaf(value), y = logsumexp(x);
        return std::pair{y.item(), tape.backward(y, {x})[x]};
    };
    auto [y, x_bar] = at({1000, 0, -1000});
    CHECK(y == 1000);
    CHECK(close(x_bar, {1, 0, 0}));
    std::tie(y, x_bar) = at({-1000, -1000});
    CHECK(close(y, -1000 + std::log(2)));
    CHECK(close(x_bar, {0.5, 0.5}));
    std::tie(y, x_bar) = at({-infinity, -infinity});
    CHECK(y == -infinity);
    CHECK(close(x_bar, {0, 0}, 0, 0));
    std::tie(y, x_bar) = at({-infinity, 3});
    CHECK(y == 3);
    CHECK(close(x_bar, {0, 1}));
    std::tie(y, x_bar) = at({infinity, 3, infinity});
    CHECK(y == infinity);
    CHECK(close(x_bar, {0.5, 0, 0.5}));
    std::tie(y, x_bar) = at({infinity, not_a_number});
    CHECK(std::isnan(y));
}

TEST_CASE("A reduction that gets no cotangent gives none, whatever it saw", "[reduce][C27]") {
    Tape tape;
    for (const Fold& r : reductions)
        for (Real bad : {infinity, -infinity, not_a_number}) {
            INFO(r.name << " of " << bad);
            const Tensor x = tape.leaf(array({2, 3}, {bad, 1, 2, 0, 1, 2})), y = r.op(x, 1, false);
            const Array x_bar = tape.backward(y, {x}, {.seed = Array{0, 1}})[x];
            for (std::size_t j = 0; j < 3; ++j) {
                CHECK(x_bar(0, j) == 0);
                CHECK(std::isfinite(x_bar(1, j)));
            }
        }
}

TEST_CASE("argmax is the first of the largest", "[reduce][C67]") {
    Tape tape;
    const auto places = [&](const Array& x, int axis) {
        const Indices found = argmax(tape.constant(x), axis);
        return std::vector<std::int64_t>(found.values().begin(), found.values().end());
    };
    using Places = std::vector<std::int64_t>;
    CHECK(places({0, 1, 2, 3, 4, -1}, 0) == Places{4});
    CHECK(places(array({1, 6}, {0, 1, 2, 3, 4, -1}), 1) == Places{4});
    CHECK(places(array({6, 1}, {0, 1, 2, 3, 4, -1}), 0) == Places{4});
    CHECK(places(array({2, 4}, {1, 3, 2, 3, 7, 7, 7, 1}), 1) == Places{1, 0});
    CHECK(places(array({2, 4}, {1, 3, 2, 3, 7, 7, 7, 1}), -2) == Places{1, 1, 1, 0});
    CHECK(places(array({4, 1}, {1, 2, 3, 4}), 0) == Places{3});
    CHECK(places(array({4, 1}, {1, 2, 3, 4}), 1) == Places{0, 0, 0, 0});
    CHECK(places({5, not_a_number, 7, not_a_number}, 0) == Places{1});
    CHECK(places({-infinity, -infinity}, 0) == Places{0});
    CHECK(places({-0.0, 0.0}, 0) == Places{0});

    const Tensor x = tape.leaf(uniform({2, 3, 4}, -1, 1));
    const std::size_t records = tape.size();
    CHECK(argmax(x, 1).shape() == Shape{2, 4});
    CHECK(argmax(x, 1, true).shape() == Shape{2, 1, 4});
    CHECK(tape.size() == records);
}
