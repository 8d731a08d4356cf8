// Ops that read by index, and add on the way back. Field case C20.
#include "engine/ops/gather.hpp"
#include <numeric>
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"
#include "tests/support/rows.hpp"

using namespace lookback;
using namespace lookback::test;

using Tensors = std::vector<Tensor>;

static auto message(const std::string& what) { return Catch::Matchers::Message(what); }

std::vector<Row> lookback::test::gather_rows() {
    using Ts = const Tensors&;
    std::vector<Row> rows;
    const auto one = [&](const char* op, const char* shapes, std::vector<Array> inputs, std::function<Tensor(Ts)> f) {
        rows.push_back({op, shapes, [f](Ts t) { return Tensors{f(t)}; }, std::move(inputs)});
    };
    const auto many = [&](const char* op, const char* shapes, std::vector<Array> inputs, std::function<Tensors(Ts)> f) {
        rows.push_back({op, shapes, f, std::move(inputs)});
    };
    const Array table = uniform({4, 3}, -1, 1), x = uniform({2, 3, 4}, -1, 1, 2);

    one("embedding", "ids that repeat", {table}, [](Ts t) { return embedding(t[0], {2, 0, 2, 2}); });
    one("embedding", "ids (2,2)", {table}, [](Ts t) { return embedding(t[0], Indices({2, 2}, {3, 1, 1, 0})); });
    one("embedding", "a single id, 0-d", {table}, [](Ts t) { return embedding(t[0], Indices(Shape{}, {1})); });
    one("embedding", "a table of (1,1)", {uniform({1, 1}, 1, 2)}, [](Ts t) { return embedding(t[0], {0, 0}); });
    many("embedding", "same table twice", {table}, [](Ts t) {
        return Tensors{embedding(t[0], {1, 2}), embedding(t[0], {2})};
    });

    one("gather", "first axis", {table}, [](Ts t) {
        return gather(t[0], 0, Indices({3, 3}, {0, 1, 3, 0, 0, 3, 2, 1, 3}));
    });
    one("gather", "last axis, negative", {table}, [](Ts t) { return gather(t[0], -1, Indices({4, 1}, {2, 0, 1, 1})); });
    one("gather", "middle axis", {x}, [](Ts t) {
        return gather(t[0], 1, Indices({2, 1, 4}, {0, 2, 2, 1, 1, 0, 2, 2}));
    });
    one("gather", "ids shorter elsewhere", {x}, [](Ts t) {
        return gather(t[0], 1, Indices({1, 4, 2}, {0, 2, 2, 1, 1, 0, 2, 2}));
    });
    one("gather", "1-D, repeats", {uniform({3}, -1, 1)}, [](Ts t) { return gather(t[0], 0, {1, 1, 0, 1, 2}); });
    many("gather", "same input twice", {uniform({2}, -1, 1)}, [](Ts t) {
        return Tensors{gather(t[0], 0, {1, 0}), gather(t[0], 0, {1})};
    });
    return rows;
}

TEST_CASE("an id that repeats adds its cotangents (C20)") {
    Tape tape;
    const Tensor table = tape.leaf(Array{{0, 1}, {10, 11}, {20, 21}, {30, 31}});
    const Tensor y = embedding(table, {2, 0, 2, 2});
    CHECK(close(y.value(), Array{{20, 21}, {0, 1}, {20, 21}, {20, 21}}));
    const BackwardOptions seed{.seed = Array{{1, 2}, {3, 4}, {5, 6}, {7, 8}}};
    CHECK(close(tape.backward(y, {table}, seed)[table], Array{{3, 4}, {0, 0}, {13, 16}, {0, 0}}));

    const Tensor x = tape.leaf(Array{5, 6, 7});
    const Tensor picked = gather(x, 0, {1, 1, 2, 1});
    CHECK(close(picked.value(), Array{6, 6, 7, 6}));
    CHECK(close(tape.backward(picked, {x}, {.seed = Array{1, 10, 100, 1000}})[x], Array{0, 1011, 100}));
}

TEST_CASE("a parameter is embedded on a tape that has nothing yet, and tied uses add up") {
    const Parameter table(Array{{1, 2}, {3, 4}});
    Tape tape;
    const Tensor first = embedding(tape, table, {1}), second = embedding(tape, table, {1, 0});
    CHECK(close(first.value(), Array{{3, 4}}));
    const Tensor y = embedding(first, {0, 0});  // a table need not be a parameter
    CHECK(close(tape.backward(y, {}, {.seed = Array{{1, 2}, {3, 4}}})[table], Array{{0, 0}, {4, 6}}));
    CHECK(close(tape.backward(second, {}, {.seed = Array{{1, 2}, {3, 4}}})[table], Array{{3, 4}, {1, 2}}));

    const std::size_t before = tape.size();
    const NoGrad pause(tape);
    CHECK(embedding(tape, table, {0}).is_constant());
    CHECK(tape.size() == before);
}

TEST_CASE("the result of an embedding has the shape of the ids and one axis more") {
    Tape tape;
    const Tensor table = tape.leaf(filled({4, 3}, 1));
    CHECK(embedding(table, Indices({2, 5}, std::vector<std::int64_t>(10, 3))).shape() == Shape{2, 5, 3});
    CHECK(embedding(table, Indices(Shape{}, {3})).shape() == Shape{3});
    const Tensor none = embedding(table, Indices({2, 0}, {}));
    CHECK(none.shape() == Shape{2, 0, 3});
    CHECK(close(tape.backward(none, {table}, {.seed = filled({2, 0, 3}, 0)})[table], filled({4, 3}, 0)));
    CHECK(embedding(tape.leaf(filled({4, 0}, 1)), {1, 2}).shape() == Shape{2, 0});
}

TEST_CASE("gather picks by its definition along each axis") {
    Tape tape;
    Array values = Array::from_shape({3, 4, 5});
    std::iota(values.data(), values.data() + values.size(), Real(0));
    const Tensor x = tape.leaf(values);
    for (std::size_t axis : {0, 1, 2}) {
        const Shape shape{2, 3, 4};  // shorter than x on every axis
        const std::size_t n = values.shape()[axis];
        std::vector<std::int64_t> ids(24);
        for (std::size_t i = 0; i < 24; ++i) ids[i] = std::int64_t(i * i % n);
        const Tensor y = gather(x, int(axis), Indices(shape, ids));
        REQUIRE(y.shape() == shape);
        Array x_bar = filled(values.shape(), 0);
        for (std::size_t i = 0, place = 0; i < 2; ++i)
            for (std::size_t j = 0; j < 3; ++j)
                for (std::size_t k = 0; k < 4; ++k, ++place) {
                    std::size_t at[]{i, j, k};
                    at[axis] = std::size_t(ids[place]);
                    CHECK(y.value()(i, j, k) == values(at[0], at[1], at[2]));
                    x_bar(at[0], at[1], at[2]) += Real(place);
                }
        Array seed = Array::from_shape(shape);
        std::iota(seed.data(), seed.data() + seed.size(), Real(0));
        CHECK(same_bits(tape.backward(y, {x}, {.seed = seed})[x], x_bar));
    }
    CHECK(gather(x, 1, Indices({3, 0, 5}, {})).shape() == Shape{3, 0, 5});
    CHECK(gather(x, 1, Indices({0, 7, 5}, {})).shape() == Shape{0, 7, 5});
}

TEST_CASE("ids that are not there are refused, with their place") {
    Tape tape;
    const Tensor table = tape.leaf(filled({5, 2}, 1)), x = tape.leaf(filled({2, 3}, 1));
    const std::size_t before = tape.size();
    CHECK_THROWS_MATCHES(embedding(table, {0, 4, 2, 7}), IndexError,
                         message("[embedding] id 7 at place 3 is outside a table of 5 rows"));
    CHECK_THROWS_MATCHES(embedding(table, {5}), IndexError,
                         message("[embedding] id 5 at place 0 is outside a table of 5 rows"));
    CHECK_THROWS_MATCHES(embedding(table, {0, -1}), IndexError,
                         message("[embedding] id -1 at place 1 is outside a table of 5 rows"));
    CHECK_THROWS_AS(embedding(tape.leaf(filled({0, 2}, 1)), {0}), IndexError);
    CHECK_THROWS_MATCHES(gather(x, 1, Indices({1, 2}, {0, 3})), IndexError,
                         message("[gather] index 3 at place 1 is outside axis 1 of (2,3)"));
    CHECK_THROWS_AS(gather(x, 0, Indices({1, 2}, {0, -1})), IndexError);

    CHECK_THROWS_MATCHES(embedding(tape.leaf(filled({5}, 1)), {0}), ShapeError,
                         message("[embedding] the table is not (V,E): (5)"));
    CHECK_THROWS_MATCHES(embedding(table, Indices({1, 1, 1, 1, 1, 1}, {0})), ShapeError,
                         message("[embedding] at most 5 axes of ids: (1,1,1,1,1,1)"));
    CHECK_THROWS_MATCHES(gather(x, 1, {0, 1}), ShapeError,
                         message("[gather] indices do not fit beside axis 1: (2,3) by (2)"));
    CHECK_THROWS_AS(gather(x, 1, Indices({3, 1}, {0, 0, 0})), ShapeError);
    CHECK_THROWS_AS(gather(x, 2, Indices({2, 1}, {0, 0})), ShapeError);
    CHECK_THROWS_AS(gather(tape.leaf(filled({}, 1)), 0, Indices(Shape{}, {0})), ShapeError);

    const Parameter alone(filled({2, 2}, 1));
    CHECK_THROWS_AS(embedding(alone, {0}), TapeError);                                           // no tape is named
    for (Id id = Id(before); id < tape.size(); ++id) CHECK(tape[id].op == std::string("leaf"));  // nothing was recorded
}
