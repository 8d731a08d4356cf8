// Ops that move values: what arrives where, forwards and backwards. Field cases C17, C19, C69.
#include "engine/ops/movement.hpp"
#include <chrono>
#include <numeric>
#include "engine/gradcheck.hpp"
#include "engine/ops/linear.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"
#include "tests/support/rows.hpp"

using namespace lookback;
using namespace lookback::test;

using Tensors = std::vector<Tensor>;

// 0, 1, 2 … in row-major order, so that a value says where it came from.
static Array counted(const Shape& shape, Real first = 0) {
    Array x = Array::from_shape(shape);
    std::iota(x.data(), x.data() + x.size(), first);
    return x;
}

static Array array(const Shape& shape, std::initializer_list<Real> values) {
    Array x = Array::from_shape(shape);
    REQUIRE(x.size() == values.size());
    std::copy(values.begin(), values.end(), x.data());
    return x;
}

// The cotangent of x if y's is `seed`.
static Array pulled_back(const Tensor& y, const Tensor& x, const Array& seed) {
    return x.tape().backward(y, {x}, {.seed = seed})[x];
}

static auto message(const std::string& what) { return Catch::Matchers::Message(what); }

std::vector<Row> lookback::test::movement_rows() {
    using Ts = const Tensors&;
    std::vector<Row> rows;
    const auto one = [&](const char* op, const char* shapes, std::vector<Array> inputs, std::function<Tensor(Ts)> f) {
        rows.push_back({op, shapes, [f](Ts t) { return Tensors{f(t)}; }, std::move(inputs)});
    };
    const auto many = [&](const char* op, const char* shapes, std::vector<Array> inputs, std::function<Tensors(Ts)> f) {
        rows.push_back({op, shapes, f, std::move(inputs)});
    };
    const Array x = uniform({2, 3, 4}, -1, 1), a = uniform({2, 3}, -1, 1, 2), b = uniform({2, 3}, -1, 1, 3),
                scalar = uniform({}, 1, 2, 4);

    one("reshape", "a -1", {x}, [](Ts t) { return reshape(t[0], {4, -1}); });
    one("reshape", "flat", {x}, [](Ts t) { return reshape(t[0], -1); });
    one("reshape", "the same shape", {x}, [](Ts t) { return reshape(t[0], t[0].shape()); });
    one("reshape", "0-d to (1,1)", {scalar}, [](Ts t) { return reshape(t[0], {1, 1}); });
    one("reshape", "(1) to 0-d", {uniform({1}, 1, 2)}, [](Ts t) { return reshape(t[0], {}); });
    one("reshape", "of a transpose", {a}, [](Ts t) { return reshape(transpose(t[0]), {2, 3}); });
    many("reshape", "same input", {a}, [](Ts t) { return Tensors{reshape(t[0], {3, 2}), reshape(t[0], -1)}; });
    one("squeeze", "the middle axis", {uniform({2, 1, 3}, -1, 1)}, [](Ts t) { return squeeze(t[0], 1); });
    one("squeeze", "negative axis", {uniform({1, 1, 3}, -1, 1)}, [](Ts t) { return squeeze(t[0], -3); });
    one("squeeze", "(1) to 0-d", {uniform({1}, 1, 2)}, [](Ts t) { return squeeze(t[0], 0); });
    one("unsqueeze", "first", {a}, [](Ts t) { return unsqueeze(t[0], 0); });
    one("unsqueeze", "last, by a negative axis", {a}, [](Ts t) { return unsqueeze(t[0], -1); });
    one("unsqueeze", "0-d", {scalar}, [](Ts t) { return unsqueeze(t[0], 0); });

    one("expand", "(3,1) to (2,3,4)", {uniform({3, 1}, -1, 1)}, [](Ts t) { return expand(t[0], {2, 3, 4}); });
    one("expand", "(2,1,3) to (2,4,3)", {uniform({2, 1, 3}, -1, 1)}, [](Ts t) { return expand(t[0], {2, 4, 3}); });
    one("expand", "0-d to (2,2)", {scalar}, [](Ts t) { return expand(t[0], {2, 2}); });
    one("expand", "the same shape", {a}, [](Ts t) { return expand(t[0], {2, 3}); });

    one("permute", "all axes move", {x}, [](Ts t) { return permute(t[0], {2, 0, 1}); });
    one("permute", "heads: the last stays", {uniform({2, 3, 2, 2}, -1, 1)}, [](Ts t) {
        return permute(t[0], {0, 2, 1, 3});
    });
    one("permute", "negative axes", {x}, [](Ts t) { return permute(t[0], {-1, -2, 0}); });
    one("permute", "nothing moves", {x}, [](Ts t) { return permute(t[0], {0, 1, 2}); });
    one("permute", "axes of 1", {uniform({1, 3, 1, 2}, -1, 1)}, [](Ts t) { return permute(t[0], {3, 1, 0, 2}); });
    one("permute", "0-d", {scalar}, [](Ts t) { return permute(t[0], {}); });
    many("permute", "same input", {a}, [](Ts t) {
        return Tensors{permute(t[0], {1, 0}), permute(t[0], {0, 1}), permute(t[0], {1, 0})};
    });
    one("transpose", "(2,3)", {a}, [](Ts t) { return transpose(t[0]); });
    one("transpose", "a batch", {x}, [](Ts t) { return transpose(t[0]); });
    one("transpose", "outer axes", {x}, [](Ts t) { return transpose(t[0], 0, -1); });
    one("transpose", "an axis with itself", {a}, [](Ts t) { return transpose(t[0], 1, -1); });
    one("transpose", "a column", {uniform({3, 1}, -1, 1)}, [](Ts t) { return transpose(t[0]); });
    one("transpose", "more than a tile", {uniform({9, 11}, -1, 1)}, [](Ts t) { return transpose(t[0]); });

    one("slice", "the middle axis", {x}, [](Ts t) { return slice(t[0], 1, 1, 3); });
    one("slice", "negative axis, to the end", {x}, [](Ts t) { return slice(t[0], -1, -2, end); });
    one("slice", "a step of 2", {x}, [](Ts t) { return slice(t[0], 2, 1, end, 2); });
    one("slice", "backwards", {x}, [](Ts t) { return slice(t[0], 1, -1, end, -1); });
    one("slice", "backwards by 2", {uniform({6, 2}, -1, 1)}, [](Ts t) { return slice(t[0], 0, end, 0, -2); });
    one("slice", "all of it", {a}, [](Ts t) { return slice(t[0], 0, 0, end); });
    many("slice", "same input, overlapping", {a}, [](Ts t) {
        return Tensors{slice(t[0], 1, 0, 2), slice(t[0], 1, 1, 3), slice(t[0], 1, end, end, -2)};
    });
    one("select", "first axis", {x}, [](Ts t) { return select(t[0], 0, 1); });
    one("select", "middle axis, negative index", {x}, [](Ts t) { return select(t[0], 1, -1); });
    one("select", "last axis", {x}, [](Ts t) { return select(t[0], -1, 2); });
    one("select", "(3) to 0-d", {uniform({3}, -1, 1)}, [](Ts t) { return select(t[0], 0, 2); });
    many("select", "the same entry twice", {a}, [](Ts t) { return Tensors{select(t[0], 0, 1), select(t[0], 0, -1)}; });

    one("concat", "first axis", {a, b}, [](Ts t) { return concat({t[0], t[1]}, 0); });
    one("concat", "last axis, unequal", {a, uniform({2, 1}, -1, 1)}, [](Ts t) { return concat({t[0], t[1]}, -1); });
    one("concat", "middle axis", {x, uniform({2, 2, 4}, -1, 1)}, [](Ts t) { return concat({t[0], t[1]}, 1); });
    one("concat", "same input", {a, b}, [](Ts t) { return concat({t[0], t[1], t[0]}, 1); });
    one("concat", "one input", {a}, [](Ts t) { return concat({t[0]}, 0); });
    one("concat", "an empty part", {a, filled({2, 0}, 0), b}, [](Ts t) { return concat({t[0], t[1], t[2]}, 1); });
    one("concat", "a constant between", {a, b}, [](Ts t) {
        return concat({t[0], t[0].tape().constant(filled({2, 5}, 1)), t[1]}, 1);
    });
    one("stack", "new first axis", {a, b}, [](Ts t) { return stack({t[0], t[1]}); });
    one("stack", "new middle axis", {a, b}, [](Ts t) { return stack({t[0], t[1]}, 1); });
    one("stack", "new last axis", {a, b}, [](Ts t) { return stack({t[0], t[1]}, -1); });
    one("stack", "same input", {a, b}, [](Ts t) { return stack({t[0], t[1], t[0]}, 1); });
    one("stack", "0-d", {scalar, uniform({}, 1, 2, 5)}, [](Ts t) { return stack({t[0], t[1]}); });
    one("stack", "a constant between", {a, b}, [](Ts t) {
        return stack({t[0], t[0].tape().constant(filled({2, 3}, 1)), t[1]}, 1);
    });

    many("split", "last axis", {x}, [](Ts t) { return split(t[0], -1, {1, 3}); });
    many("split", "first axis", {uniform({4, 2}, -1, 1)}, [](Ts t) { return split(t[0], 0, {1, 2, 1}); });
    many("split", "a part of 0", {a}, [](Ts t) { return split(t[0], 1, {2, 0, 1}); });
    many("split", "one part", {a}, [](Ts t) { return split(t[0], 0, {2}); });
    many("split", "one of the parts is used", {a}, [](Ts t) { return Tensors{split(t[0], 1, {1, 1, 1})[1]}; });
    many("split", "same input", {a}, [](Ts t) {
        return Tensors{split(t[0], 1, {1, 2})[1], split(t[0], 1, {2, 1})[0]};
    });
    many("unbind", "first axis", {x}, [](Ts t) { return unbind(t[0]); });
    many("unbind", "middle axis", {x}, [](Ts t) { return unbind(t[0], 1); });
    many("unbind", "last axis", {a}, [](Ts t) { return unbind(t[0], -1); });
    many("unbind", "(3) to 0-d", {uniform({3}, -1, 1)}, [](Ts t) { return unbind(t[0]); });
    many("unbind", "the last alone, and after a slice", {a}, [](Ts t) {
        return Tensors{slice(t[0], 0, 0, 2), unbind(t[0], 1).back()};
    });
    return rows;
}

TEST_CASE("a reshape reads logical order, whatever came before (C17)") {
    Tape tape;
    const Tensor x = tape.leaf(Array{{1, 2, 3}, {4, 5, 6}});
    const Tensor y = reshape(transpose(x), {2, 3});
    CHECK(close(y.value(), Array{{1, 4, 2}, {5, 3, 6}}));
    CHECK(close(pulled_back(y, x, Array{{1, 2, 3}, {4, 5, 6}}), Array{{1, 3, 5}, {2, 4, 6}}));

    const Tensor e = tape.leaf(Array{1, 2});
    const Tensor flat = reshape(expand(e, {2, 2}), -1);
    CHECK(close(flat.value(), Array{1, 2, 1, 2}));
    CHECK(close(pulled_back(flat, e, Array{1, 10, 100, 1000}), Array{101, 1010}));
}

TEST_CASE("reshape works out the size that is left open") {
    Tape tape;
    const Tensor x = tape.leaf(counted({2, 3, 4}));
    const std::size_t B = 2;
    CHECK(reshape(x, {B, -1}).shape() == Shape{2, 12});
    CHECK(reshape(x, {-1, 6}).shape() == Shape{4, 6});
    CHECK(reshape(x, {24, 1, -1}).shape() == Shape{24, 1, 1});
    CHECK(reshape(x, -1).shape() == Shape{24});
    CHECK(reshape(x, Shape{4, 3, 2}).shape() == Shape{4, 3, 2});
    CHECK(same_bits(reshape(x, {4, -1}).value(), counted({4, 6})));
    CHECK(reshape(tape.leaf(counted({1})), {}).shape() == Shape{});
    CHECK(reshape(tape.leaf(counted({2, 0})), {-1, 5}).shape() == Shape{0, 5});
}

TEST_CASE("squeeze drops the axis it is told and no other, so that ranks never depend on sizes (C19)") {
    Tape tape;
    CHECK(squeeze(tape.leaf(counted({1, 1, 2})), 1).shape() == Shape{1, 2});
    CHECK(squeeze(tape.leaf(counted({1, 1, 1})), -1).shape() == Shape{1, 1});
    CHECK(unsqueeze(tape.leaf(counted({1, 2})), -2).shape() == Shape{1, 1, 2});
    CHECK_THROWS_MATCHES(squeeze(tape.leaf(counted({2, 2})), 1), ShapeError,
                         message("[squeeze] axis 1 is not of size 1: (2,2)"));
    CHECK_THROWS_MATCHES(squeeze(tape.leaf(counted({2, 0})), -1), ShapeError,
                         message("[squeeze] axis -1 is not of size 1: (2,0)"));
}

// Element by element, by the definition: y at (i, j, …) is x at the place with axis axes[0] at i, axes[1] at j …
static Array permuted_slowly(const Array& x, const std::vector<int>& axes) {
    Shape shape;
    for (int axis : axes) shape.push_back(x.shape()[std::size_t(axis)]);
    Array y = Array::from_shape(shape);
    std::vector<std::size_t> at(axes.size(), 0), from(axes.size());
    for (std::size_t k = 0; k < y.size(); ++k) {
        std::size_t rest = k;
        for (std::size_t j = axes.size(); j-- > 0; rest /= shape[j]) at[j] = rest % shape[j];
        for (std::size_t j = 0; j < axes.size(); ++j) from[std::size_t(axes[j])] = at[j];
        y.data()[k] = x.element(from.begin(), from.end());
    }
    return y;
}

TEST_CASE("every order of the axes puts every element in its place, and back") {
    // Sizes on both sides of the tile, of 1, and of 0.
    for (const Shape& shape : {Shape{3, 17, 9}, Shape{8, 1, 16}, Shape{2, 3, 4, 5}, Shape{1, 9, 2, 10}, Shape{2, 0, 3},
                               Shape{2, 1, 3, 2, 2, 3}}) {
        const Array x = counted(shape);
        std::vector<int> axes(shape.size());
        std::iota(axes.begin(), axes.end(), 0);
        do {
            INFO("shape " << text(shape) << ", last axis from " << axes.back());
            Tape tape;
            const Tensor leaf = tape.leaf(x);
            SmallVector<int, max_axes> order(axes.begin(), axes.end());
            const Tensor y = permute(leaf, order), twice = concat({y, permute(leaf, order)}, 0);
            const Array expected = permuted_slowly(x, axes);
            REQUIRE(same_bits(y.value(), expected));
            REQUIRE(same_bits(pulled_back(y, leaf, expected), x));
            Array seed = Array::from_shape(twice.shape());
            std::copy_n(expected.data(), expected.size(), seed.data());
            std::copy_n(expected.data(), expected.size(), seed.data() + expected.size());
            REQUIRE(same_bits(pulled_back(twice, leaf, seed), Array(x * 2)));
        } while (std::next_permutation(axes.begin(), axes.end()));
    }
}

TEST_CASE("transpose exchanges the last two axes unless told otherwise") {
    Tape tape;
    const Tensor x = tape.leaf(counted({2, 3, 4}));
    CHECK(same_bits(transpose(x).value(), permuted_slowly(x.value(), {0, 2, 1})));
    CHECK(same_bits(transpose(x, 0, 1).value(), permuted_slowly(x.value(), {1, 0, 2})));
    CHECK(same_bits(transpose(x, -1, 0).value(), permuted_slowly(x.value(), {2, 1, 0})));
    CHECK(same_bits(transpose(x, 2, -1).value(), x.value()));
}

TEST_CASE("slices follow Python's rules") {
    struct Case {
        std::int64_t start, stop, step;
        Array expected;  // what Python's list(range(5))[start:stop:step] holds
    };
    const std::int64_t far = std::numeric_limits<std::int64_t>::max() - 1,
                       least = std::numeric_limits<std::int64_t>::min();
    const Array none = filled({0}, 0);
    const auto [start, stop, step, expected] = GENERATE_COPY(values<Case>({
        {0, 5, 1, {0, 1, 2, 3, 4}},
        {1, 3, 1, {1, 2}},
        {1, end, 1, {1, 2, 3, 4}},
        {-2, end, 1, {3, 4}},
        {0, -1, 1, {0, 1, 2, 3}},
        {-9, 2, 1, {0, 1}},
        {3, 99, 1, {3, 4}},
        {0, end, 2, {0, 2, 4}},
        {1, end, 2, {1, 3}},
        {0, 4, 3, {0, 3}},
        {-9, end, 2, {0, 2, 4}},
        {2, 3, 9, {2}},
        {0, end, far, {0}},
        {3, 3, 1, none},
        {4, 1, 1, none},
        {9, end, 1, none},
        {end, end, 1, none},
        {0, -9, 1, none},
        {least, far, 1, {0, 1, 2, 3, 4}},
        {-1, end, -1, {4, 3, 2, 1, 0}},
        {end, end, -1, {4, 3, 2, 1, 0}},
        {4, 0, -1, {4, 3, 2, 1}},
        {3, 1, -1, {3, 2}},
        {-1, end, -2, {4, 2, 0}},
        {3, end, -2, {3, 1}},
        {9, 2, -1, {4, 3}},
        {2, -9, -1, {2, 1, 0}},
        {-2, -4, -1, {3, 2}},
        {4, 0, -3, {4, 1}},
        {4, 4, -1, none},
        {0, 4, -1, none},
        {-9, end, -1, none},
        {4, end, least, {4}},
        {0, end, -1, {0}},
        {3, -1, -1, none},
    }));
    INFO(start << ":" << stop << ":" << step);
    Tape tape;
    const Tensor line = tape.leaf(counted({5}));
    CHECK(same_bits(slice(line, 0, start, stop, step).value(), expected));

    // The same along an axis with others around it, and the way back: ones where the slice was taken, zeros elsewhere.
    const Tensor x = tape.leaf(counted({2, 5, 3}));
    const Tensor y = slice(x, -2, start, stop, step);
    REQUIRE(y.shape() == Shape{2, expected.size(), 3});
    Array taken = filled({2, 5, 3}, 0);
    for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t j = 0; j < expected.size(); ++j)
            for (std::size_t k = 0; k < 3; ++k) {
                const auto from = std::size_t(expected(j));
                CHECK(y.value()(i, j, k) == x.value()(i, from, k));
                taken(i, from, k) = 1;
            }
    CHECK(same_bits(pulled_back(y, x, filled(y.shape(), 1)), taken));
}

TEST_CASE("a slice of an empty axis is empty") {
    Tape tape;
    const Tensor x = tape.leaf(counted({0, 3}));
    CHECK(slice(x, 0, 0, end).shape() == Shape{0, 3});
    CHECK(slice(x, 0, -1, end, -1).shape() == Shape{0, 3});
    CHECK(slice(x, 1, 1, end).shape() == Shape{0, 2});
    CHECK(select(x, 1, 2).shape() == Shape{0});
    CHECK(close(pulled_back(select(x, 1, 2), x, filled({0}, 1)), x.value()));
}

TEST_CASE("select takes one entry and drops its axis") {
    Tape tape;
    const Tensor x = tape.leaf(counted({2, 3, 2}));
    CHECK(close(select(x, 0, 1).value(), Array{{6, 7}, {8, 9}, {10, 11}}));
    CHECK(close(select(x, 1, -1).value(), Array{{4, 5}, {10, 11}}));
    CHECK(close(select(x, -1, 0).value(), Array{{0, 2, 4}, {6, 8, 10}}));
    CHECK(close(pulled_back(select(x, -1, 1), x, Array{{1, 2, 3}, {4, 5, 6}}),
                array({2, 3, 2}, {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6})));
}

TEST_CASE("concat and stack order their inputs along the axis") {
    Tape tape;
    const Tensor a = tape.leaf(Array{{1, 2}, {3, 4}}), b = tape.leaf(Array{{5, 6}, {7, 8}});
    CHECK(close(concat({a, b}, 0).value(), Array{{1, 2}, {3, 4}, {5, 6}, {7, 8}}));
    CHECK(close(concat({a, b}, -1).value(), Array{{1, 2, 5, 6}, {3, 4, 7, 8}}));
    CHECK(close(stack({a, b}).value(), array({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})));
    CHECK(close(stack({a, b}, 1).value(), array({2, 2, 2}, {1, 2, 5, 6, 3, 4, 7, 8})));
    CHECK(close(stack({a, b}, -1).value(), array({2, 2, 2}, {1, 5, 2, 6, 3, 7, 4, 8})));
    CHECK(stack({tape.leaf(filled({}, 1)), tape.leaf(filled({}, 2))}).shape() == Shape{2});
    CHECK(concat({tape.leaf(filled({0, 2}, 0)), tape.leaf(filled({0, 2}, 0))}, 0).shape() == Shape{0, 2});
    CHECK(stack({tape.leaf(filled({0}, 0)), tape.leaf(filled({0}, 0))}, 1).shape() == Shape{0, 2});
}

TEST_CASE("concat and stack take constants and parameters beside leaves") {
    Tape tape;
    const Parameter w(Array{3, 4});
    const Tensor a = tape.leaf(Array{1, 2}), c = tape.constant(Array{9, 9});
    const Tensor y = concat({c, a, w, a}, 0);
    const Gradients g = tape.backward(y, {a}, {.seed = Array{1, 2, 3, 4, 5, 6, 7, 8}});
    CHECK(close(g[a], Array{10, 12}));
    CHECK(close(g[w], Array{5, 6}));
    const Gradients s = tape.backward(stack({w, c, w}, 1), {a}, {.seed = Array{{1, 2, 3}, {4, 5, 6}}});
    CHECK(close(s[w], Array{4, 10}));
    CHECK_FALSE(s.reached(a));
}

TEST_CASE("split and unbind undo concat and stack") {
    Tape tape;
    const Tensor a = tape.leaf(counted({2, 3})), b = tape.leaf(counted({2, 4}, 100)),
                 c = tape.leaf(counted({2, 3}, 50));
    const Tensors parts = split(concat({a, b}, 1), -1, {3, 4});
    CHECK(same_bits(parts[0].value(), a.value()));
    CHECK(same_bits(parts[1].value(), b.value()));
    for (int axis : {0, 1, 2}) {
        const Tensors entries = unbind(stack({a, c}, axis), axis);
        CHECK(same_bits(entries[0].value(), a.value()));
        CHECK(same_bits(entries[1].value(), c.value()));
    }
    CHECK(unbind(tape.leaf(filled({2, 0}, 0)), 1).empty());
    CHECK(unbind(tape.leaf(filled({2, 0}, 0)), 0)[1].shape() == Shape{0});
    CHECK(split(tape.leaf(filled({2, 0}, 0)), 1, {}).empty());
}

TEST_CASE("the parts of a split are outputs of one op, and a part that nothing read has a zero cotangent") {
    Tape tape;
    const Tensor x = tape.leaf(counted({2, 3}));
    const std::size_t before = tape.size();
    const Tensors parts = split(x, 1, {1, 2});
    CHECK(tape.size() == before + 2);
    CHECK(tape[parts[0].id()].outputs == 2);
    CHECK(tape[parts[1].id()].pullback == nullptr);
    CHECK(close(pulled_back(parts[0], x, array({2, 1}, {7, 8})), Array{{7, 0, 0}, {8, 0, 0}}));
    CHECK(close(pulled_back(parts[1], x, Array{{1, 2}, {3, 4}}), Array{{0, 1, 2}, {0, 3, 4}}));
}

TEST_CASE("a hundred thousand tensors are stacked, joined and taken apart in linear time") {
    const std::size_t T = 100'000;
    const auto begin = std::chrono::steady_clock::now();
    Tape tape;
    const Tensor x = tape.leaf(counted({2, T}));
    const Tensors entries = unbind(x, 1), parts = split(x, 1, std::vector<std::size_t>(T, 1));
    const Tensor stacked = stack(entries, 1), joined = concat(parts, 1);
    CHECK(same_bits(stacked.value(), x.value()));
    CHECK(same_bits(joined.value(), x.value()));
    CHECK(same_bits(pulled_back(stacked, x, x.value()), x.value()));
    CHECK(same_bits(pulled_back(joined, x, x.value()), x.value()));
    // Some 0.1 s; were one of these quadratic, minutes.
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("reshape's pullback works in place, yet changes no seed and no cotangent that was asked for") {
    Tape tape;
    const Tensor x = tape.leaf(counted({2, 3}));
    const Tensor y = reshape(x, {3, 2});
    const Shared seed = counted({3, 2}, 10);
    CHECK(same_bits(tape.backward(y, {x}, {.seed = seed})[x], counted({2, 3}, 10)));
    CHECK(same_bits(*seed, counted({3, 2}, 10)));
    const Gradients g = tape.backward(reshape(y, -1), {x, y}, {.seed = counted({6}, 10)});
    CHECK(same_bits(g[y], counted({3, 2}, 10)));
    CHECK(same_bits(g[x], counted({2, 3}, 10)));
}

TEST_CASE("products take operands that were transposed, stepped, reversed, cut or repeated (C69)") {
    Tape tape;
    const Tensor M = tape.leaf(counted({4, 6}));
    const Tensor every_second = slice(slice(M, 0, 0, end, 2), 1, 0, end, 2);
    CHECK(close(matmul(every_second, tape.leaf(Array{{0, 1}, {2, 3}, {4, 5}})).value(), Array{{20, 26}, {92, 134}}));
    const Tensor pairs = tape.leaf(Array{{1, 2}, {3, 4}, {5, 6}});
    CHECK(close(matmul(slice(pairs, 1, 1, 2), tape.leaf(array({1, 2}, {10, 20}))).value(),
                Array{{20, 40}, {40, 80}, {60, 120}}));
    CHECK(close(matmul(tape.leaf(Array{{1, 2, 3}, {4, 5, 6}}), select(pairs, 1, 1)).value(), Array{28, 64}));
    CHECK(close(matmul(tape.leaf(Array{{0, 0, 1}}), slice(pairs, 0, -1, end, -1)).value(), Array{{1, 2}}));

    using Form = std::pair<const char*, std::function<Tensor(const Tensor&)>>;  // of a (6,6), as a (3,3)
    const std::vector<Form> forms{
        {"plain", [](const Tensor& x) { return slice(slice(x, 0, 0, 3), 1, 0, 3); }},
        {"transposed", [](const Tensor& x) { return transpose(slice(slice(x, 0, 0, 3), 1, 0, 3)); }},
        {"stepped", [](const Tensor& x) { return slice(slice(x, 0, 0, end, 2), 1, 1, end, 2); }},
        {"reversed", [](const Tensor& x) { return slice(slice(x, 0, 2, end, -1), 1, -1, 2, -1); }},
        {"broadcast",
         [](const Tensor& x) {
             return expand(slice(select(x, 0, 1), 0, 0, 3), {3, 3});
         }},
    };
    const Array a = uniform({6, 6}, -1, 1, 1), b = uniform({6, 6}, -1, 1, 2);
    for (const auto& [left, f] : forms)
        for (const auto& [right, g] : forms) {
            INFO(left << " times " << right);
            const auto product = [&, f = f, g = g](const Tensors& x) { return matmul(f(x[0]), g(x[1])); };
            const Tensor A = f(tape.leaf(a)), B = g(tape.leaf(b));
            Array expected = filled({3, 3}, 0);
            for (std::size_t i = 0; i < 3; ++i)
                for (std::size_t j = 0; j < 3; ++j)
                    for (std::size_t k = 0; k < 3; ++k) expected(i, j) += A.value()(i, k) * B.value()(k, j);
            CHECK(close(matmul(A, B).value(), expected));
            const GradcheckReport report = gradcheck(product, {a, b});
            INFO(report.why);
            CHECK(report.ok);
        }
}

TEST_CASE("what can't be moved is refused, with the shapes") {
    Tape tape;
    const Tensor x = tape.leaf(counted({2, 3})), scalar = tape.leaf(filled({}, 1)), empty = tape.leaf(counted({0, 3}));
    const std::size_t before = tape.size();

    SECTION("sizes that do not fit") {
        CHECK_THROWS_MATCHES(reshape(x, {4, 2}), ShapeError,
                             message("[reshape] the sizes do not multiply to the number of elements: (2,3) as (4,2)"));
        CHECK_THROWS_MATCHES(reshape(x, {4, -1}), ShapeError,
                             message("[reshape] the sizes do not multiply to the number of elements: (2,3) as (4,-1)"));
        CHECK_THROWS_MATCHES(reshape(x, {-1, -1}), ShapeError,
                             message("[reshape] -1 is there twice: (2,3) as (-1,-1)"));
        CHECK_THROWS_MATCHES(reshape(x, {-2, -3}), ShapeError,
                             message("[reshape] a size is negative: (2,3) as (-2,-3)"));
        CHECK_THROWS_MATCHES(reshape(empty, {0, -1}), ShapeError,
                             message("[reshape] -1 could be anything: (0,3) as (0,-1)"));
        CHECK_THROWS_AS(reshape(x, {0, -1}), ShapeError);
        CHECK_THROWS_AS(reshape(x, {}), ShapeError);
        CHECK_THROWS_AS(reshape(x, {1, 1, 1, 1, 1, 1, 6}), ShapeError);
        CHECK_THROWS_AS(reshape(empty, {1}), ShapeError);
        CHECK_THROWS_AS(reshape(x, {std::size_t(0) - 1, std::size_t(6)}), ShapeError);  // an unsigned -1 is no -1
        CHECK_THROWS_AS(reshape(x, {std::size_t(1) << 33, std::size_t(1) << 33, std::size_t(6)}), ShapeError);
        CHECK_THROWS_MATCHES(expand(x, {2, 4}), ShapeError, message("[expand] (2,3) does not broadcast to (2,4)"));
        CHECK_THROWS_AS(expand(x, {3}), ShapeError);
        CHECK_THROWS_AS(expand(scalar, {std::size_t(1) << 40, std::size_t(1) << 40}), ShapeError);
    }
    SECTION("axes that are not there") {
        CHECK_THROWS_MATCHES(slice(x, 2, 0, 1), ShapeError, message("[slice] axis 2 of an array with 2 axes: (2,3)"));
        CHECK_THROWS_MATCHES(select(scalar, 0, 0), ShapeError, message("[select] axis 0 of an array with 0 axes: ()"));
        CHECK_THROWS_AS(slice(x, -3, 0, 1), ShapeError);
        CHECK_THROWS_AS(select(x, -3, 0), ShapeError);
        CHECK_THROWS_AS(squeeze(x, 2), ShapeError);
        CHECK_THROWS_AS(squeeze(scalar, 0), ShapeError);
        CHECK_THROWS_AS(unsqueeze(x, 3), ShapeError);
        CHECK_THROWS_AS(unsqueeze(x, -4), ShapeError);
        CHECK_THROWS_AS(transpose(x, 0, 2), ShapeError);
        CHECK_THROWS_AS(transpose(scalar), ShapeError);
        CHECK_THROWS_AS(transpose(tape.leaf(counted({3}))), ShapeError);
        CHECK_THROWS_AS(concat({x, x}, 2), ShapeError);
        CHECK_THROWS_AS(concat({scalar, scalar}, 0), ShapeError);
        CHECK_THROWS_AS(stack({x, x}, 3), ShapeError);
        CHECK_THROWS_AS(split(x, 2, {1}), ShapeError);
        CHECK_THROWS_AS(unbind(x, -3), ShapeError);
        CHECK_THROWS_AS(unbind(scalar), ShapeError);
        const Tensor six = tape.leaf(filled({1, 1, 1, 1, 1, 1}, 0));
        CHECK_THROWS_MATCHES(unsqueeze(six, 0), ShapeError,
                             message("[unsqueeze] at most 6 axes, and they are there: (1,1,1,1,1,1)"));
        CHECK_THROWS_MATCHES(stack({six, six}, 0), ShapeError,
                             message("[stack] at most 6 axes, and they are there: (1,1,1,1,1,1)"));
        const Tensor endless = tape.leaf(filled({std::size_t(1) << 59, 0}, 0));
        CHECK_THROWS_MATCHES(unbind(endless), ShapeError,
                             message("[unbind] too many parts: axis 0 of (576460752303423488,0)"));
    }
    SECTION("wholes that cannot be counted") {
        const std::vector<Tensor> parts(40, tape.leaf(filled({std::size_t(1) << 59, 0}, 0)));
        CHECK_THROWS_AS(concat(parts, 0), ShapeError);
    }
    SECTION("orders that are none") {
        CHECK_THROWS_MATCHES(permute(x, {1, 1}), ShapeError, message("[permute] axis 1 is named twice, shape (2,3)"));
        CHECK_THROWS_MATCHES(permute(x, {0}), ShapeError, message("[permute] 1 axes for an array with 2: (2,3)"));
        CHECK_THROWS_AS(permute(x, {1, -1}), ShapeError);
        CHECK_THROWS_AS(permute(x, {0, 2}), ShapeError);
        CHECK_THROWS_AS(permute(x, {0, 1, 2}), ShapeError);
        CHECK_THROWS_AS(permute(scalar, {0}), ShapeError);
    }
    SECTION("places that are not there") {
        CHECK_THROWS_MATCHES(select(x, 1, 3), IndexError, message("[select] index 3 is outside axis 1 of (2,3)"));
        CHECK_THROWS_MATCHES(select(x, 0, -3), IndexError, message("[select] index -3 is outside axis 0 of (2,3)"));
        CHECK_THROWS_AS(select(empty, 0, 0), IndexError);
        CHECK_THROWS_MATCHES(slice(x, 0, 0, 1, 0), ValueError, message("[slice] a step of 0, axis 0 of (2,3)"));
    }
    SECTION("tensors that do not fit together") {
        const Tensor other = tape.leaf(counted({2, 4})), flat = tape.leaf(counted({2}));
        CHECK_THROWS_MATCHES(concat({x, x, other}, 0), ShapeError,
                             message("[concat] shapes differ away from axis 0: (2,3) and, at place 2, (2,4)"));
        CHECK_THROWS_MATCHES(stack({x, other}), ShapeError,
                             message("[stack] shapes differ: (2,3) and, at place 1, (2,4)"));
        CHECK_THROWS_AS(concat({x, flat}, 0), ShapeError);
        CHECK_THROWS_AS(concat({flat, x}, 0), ShapeError);
        CHECK_THROWS_AS(stack({x, flat}), ShapeError);
        CHECK_THROWS_MATCHES(concat(Tensors{}, 0), ShapeError, message("[concat] there are no tensors"));
        CHECK_THROWS_MATCHES(stack(Tensors{}), ShapeError, message("[stack] there are no tensors"));
        Tape second;
        CHECK_THROWS_AS(concat({x, second.leaf(counted({2, 3}))}, 0), TapeError);
        CHECK_THROWS_AS(stack({x, Tensor()}), TapeError);
    }
    SECTION("parts that do not sum") {
        CHECK_THROWS_MATCHES(split(x, 1, {1, 1}), ShapeError,
                             message("[split] parts 1 + 1 do not sum to axis 1 of (2,3)"));
        CHECK_THROWS_AS(split(x, 1, {1, 3}), ShapeError);
        CHECK_THROWS_AS(split(x, 1, {}), ShapeError);
        CHECK_THROWS_AS(split(x, 1, {std::size_t(0) - 1, 4}), ShapeError);  // which sum to 3, if sums may wrap
    }
    for (Id id = Id(before); id < tape.size(); ++id) CHECK(tape[id].op == std::string("leaf"));  // nothing was recorded
}
