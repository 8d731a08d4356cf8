#include "layers/embedding.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/reduce.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

TEST_CASE("Embedding reads rows, and a row read twice learns twice", "[layers][embedding]") {
    Embedding embedding(Parameter(Array{{1, 2}, {3, 4}, {5, 6}}));
    Tape tape;
    const Tensor y = embedding(tape, Indices({2, 2}, {2, 0, 2, 2}));
    CHECK(y.shape() == Shape{2, 2, 2});
    CHECK(close(y.value(), {{{5, 6}, {1, 2}}, {{5, 6}, {5, 6}}}));
    const Gradients g = tape.backward(sum(y));
    CHECK(close(g[embedding.table], {{1, 1}, {0, 0}, {3, 3}}));
}

TEST_CASE("Embedding as an output layer is h times the table's transpose, and shares its gradient",
          "[layers][embedding]") {
    Embedding embedding(Parameter(Array{{1, 2}, {3, 4}, {5, 6}}));
    Tape tape;
    const Tensor h = tape.leaf(Array{{1, 1}, {0, -1}});
    CHECK(close(embedding.scores(h).value(), {{3, 7, 11}, {-2, -4, -6}}));
    CHECK(close(embedding.scores(tape.leaf(Array{1, 1})).value(), {3, 7, 11}));
    const Tensor tied = embedding.scores(embedding(tape, Indices({1, 1}, {1})));
    const Gradients g = tape.backward(sum(tied));
    CHECK(close(g[embedding.table], {{3, 4}, {3 + 9, 4 + 12}, {3, 4}}));  // as output 3,4; as input the column sums
}

TEST_CASE("Embedding starts as standard normal numbers", "[layers][embedding]") {
    Generator generator(1);
    const Embedding embedding(100, 50, generator);
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < 5000; ++i) {
        sum += embedding.table.value().data()[i];
        squares += embedding.table.value().data()[i] * embedding.table.value().data()[i];
    }
    CHECK(std::abs(sum / 5000) < 0.06);  // four standard errors
    CHECK(std::abs(squares / 5000 - 1) < 0.08);
}

TEST_CASE("Embedding refuses ids outside and tables of nothing", "[layers][embedding]") {
    Generator generator(1);
    Embedding embedding(5, 2, generator);
    Tape tape;
    CHECK_THROWS_AS(embedding(tape, Indices{0, 5}), IndexError);
    CHECK_THROWS_AS(embedding(tape, Indices{-1}), IndexError);
    CHECK_THROWS_WITH(embedding.scores(tape.leaf(filled({2, 3}, 1))),
                      "[Embedding] h (2,3) does not match the table (5,2)");
    CHECK_THROWS_AS(Embedding(0, 2, generator), ValueError);
    CHECK_THROWS_AS(Embedding(Parameter(filled({3}, 0))), ShapeError);
    CHECK(embedding(tape, Indices({2, 0}, {})).shape() == Shape{2, 0, 2});
}
