#include "engine/ops/linear.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/movement.hpp"
#include "engine/random.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"
#include "tests/support/rows.hpp"

using namespace lookback;
using namespace lookback::test;

using Tensors = std::vector<Tensor>;

std::vector<Row> lookback::test::linear_rows() {
    const auto plain = [](const Tensors& x) -> Tensors { return {matmul(x[0], x[1])}; };
    const auto transposed = [](const Tensors& x) -> Tensors { return {matmul_transposed(x[0], x[1])}; };
    const auto row = [&](const char* shapes, const Shape& a, const Shape& b) {
        return Row{"matmul", shapes, plain, {uniform(a, -1, 1, 1), uniform(b, -1, 1, 2)}};
    };
    const auto row_transposed = [&](const char* shapes, const Shape& a, const Shape& b) {
        return Row{"matmul_transposed", shapes, transposed, {uniform(a, -1, 1, 1), uniform(b, -1, 1, 2)}};
    };
    const auto row_affine = [&](const char* shapes, const Shape& x, const Shape& W) {
        return Row{"affine",
                   shapes,
                   [](const Tensors& t) -> Tensors { return {affine(t[0], t[1], t[2])}; },
                   {uniform(x, -1, 1, 1), uniform(W, -1, 1, 2), uniform({W[1]}, -1, 1, 3)}};
    };
    return {
        row("(K)·(K)", {3}, {3}),
        row("(K)·(K,N)", {3}, {3, 2}),
        row("(M,K)·(K)", {2, 3}, {3}),
        row("(M,K)·(K,N)", {2, 3}, {3, 4}),
        row("sizes of 1", {1, 1}, {1, 1}),
        row("(B,M,K)·(K,N)", {2, 3, 4}, {4, 2}),
        row("(B,M,K)·(K)", {2, 3, 4}, {4}),
        row("(M,K)·(B,K,N)", {3, 4}, {2, 4, 2}),
        row("(K)·(B,K,N)", {4}, {2, 4, 3}),
        row("(B,M,K)·(B,K,N)", {2, 3, 4}, {2, 4, 2}),
        row("(B,N,M,K)·(B,N,K,P)", {2, 2, 3, 4}, {2, 2, 4, 2}),
        row("(2,1,M,K)·(3,K,N)", {2, 1, 2, 3}, {3, 3, 2}),
        row("(3,M,K)·(2,1,K,N)", {3, 2, 3}, {2, 1, 3, 2}),
        row("(M,K)·(1,1,K,N)", {2, 3}, {1, 1, 3, 2}),
        row("(1,M,K)·(2,K,N)", {1, 2, 3}, {2, 3, 2}),
        {"matmul",
         "same input",
         [](const Tensors& x) -> Tensors { return {matmul(x[0], x[0])}; },
         {uniform({3, 3}, -1, 1)}},
        {"matmul",
         "one input of two products",
         [](const Tensors& x) -> Tensors {
             return {matmul(x[0], x[1]), matmul(x[1], x[0])};
         },
         {uniform({2, 2}, -1, 1, 1), uniform({2, 2}, -1, 1, 2)}},
        row_transposed("(M,K)·(N,K)ᵀ", {2, 3}, {4, 3}),
        row_transposed("sizes of 1", {1, 1}, {1, 1}),
        row_transposed("(B,M,K)·(N,K)ᵀ", {2, 3, 4}, {5, 4}),
        row_transposed("(M,K)·(B,N,K)ᵀ", {3, 4}, {2, 2, 4}),
        row_transposed("(B,M,K)·(B,N,K)ᵀ", {2, 3, 4}, {2, 2, 4}),
        row_transposed("(2,1,M,K)·(3,N,K)ᵀ", {2, 1, 2, 3}, {3, 4, 3}),
        {"matmul_transposed",
         "same input",
         [](const Tensors& x) -> Tensors { return {matmul_transposed(x[0], x[0])}; },
         {uniform({2, 3}, -1, 1)}},
        row_affine("(I)·(I,O)", {3}, {3, 2}),
        row_affine("(B,I)·(I,O)", {2, 3}, {3, 4}),
        row_affine("(B,T,I)·(I,O)", {2, 3, 4}, {4, 2}),
        row_affine("sizes of 1", {1, 1}, {1, 1}),
        {"affine",
         "same input",
         [](const Tensors& x) -> Tensors { return {affine(x[0], x[0], select(x[0], 0, 0))}; },
         {uniform({2, 2}, -1, 1)}},
    };
}

static Array array(const Shape& shape, std::initializer_list<Real> values) {
    Array x = Array::from_shape(shape);
    std::copy(values.begin(), values.end(), x.data());
    return x;
}
static Array zeros(const Shape& shape) { return filled(shape, 0); }

TEST_CASE("matmul has the right gradient in every rank (C14)") {
    Tape tape;
    const Tensor A = tape.leaf(Array{{1, 2, 3}, {4, 5, 6}});
    SECTION("matrix by vector") {
        const Tensor v = tape.leaf(Array{1, 0, -1}), y = matmul(A, v);
        CHECK(close(y.value(), Array{-2, -2}));
        const Gradients g = tape.backward(y, {A, v}, {.seed = Array{1, 10}});
        CHECK(close(g[A], Array{{1, 0, -1}, {10, 0, -10}}));
        CHECK(close(g[v], Array{41, 52, 63}));
    }
    SECTION("vector by matrix") {
        const Tensor u = tape.leaf(Array{1, 2}), y = matmul(u, A);
        CHECK(close(y.value(), Array{9, 12, 15}));
        const Gradients g = tape.backward(y, {A, u}, {.seed = Array{1, 10, 100}});
        CHECK(close(g[A], Array{{1, 10, 100}, {2, 20, 200}}));
        CHECK(close(g[u], Array{321, 654}));
    }
    SECTION("one matrix by a batch: its gradient is the sum over the batch") {
        const Tensor B = tape.leaf(array({2, 3, 1}, {1, 1, 1, 2, 0, 0})), y = matmul(A, B);
        CHECK(close(y.value(), array({2, 2, 1}, {6, 15, 2, 8})));
        const Gradients g = tape.backward(y, {A, B}, {.seed = filled({2, 2, 1}, 1)});
        CHECK(close(g[A], Array{{3, 1, 1}, {3, 1, 1}}));
        CHECK(close(g[B], array({2, 3, 1}, {5, 7, 9, 5, 7, 9})));
    }
    SECTION("vector by vector is a number") {
        const Tensor u = tape.leaf(Array{1, 2, 3}), v = tape.leaf(Array{4, 5, 6}), y = matmul(u, v);
        CHECK(y.shape() == Shape{});
        CHECK(y.item() == 32);
        const Gradients g = tape.backward(y, {u, v});
        CHECK(close(g[u], v.value()));
        CHECK(close(g[v], u.value()));
    }
}

TEST_CASE("matmul takes parts of a tensor: stepped, reversed, turned, repeated (C69)") {
    Tape tape;
    Array m = Array::from_shape({4, 6});
    for (std::size_t i = 0; i < 24; ++i) m.data()[i] = Real(i);
    const Tensor M = tape.leaf(m), A = tape.leaf(Array{{1, 2}, {3, 4}, {5, 6}}), column = slice(A, 1, 1, 2);
    const Tensor B = tape.constant(Array{{0, 1}, {2, 3}, {4, 5}});
    CHECK(close(matmul(slice(slice(M, 0, 0, end, 2), 1, 0, end, 2), B).value(), Array{{20, 26}, {92, 134}}));
    CHECK(close(matmul(column, tape.constant(Array{{10, 20}})).value(), Array{{20, 40}, {40, 80}, {60, 120}}));
    CHECK(close(matmul(tape.constant(Array{{1, 2, 3}, {4, 5, 6}}), select(A, 1, 1)).value(), Array{28, 64}));
    CHECK(close(matmul(slice(A, 0, -1, -4, -1), tape.constant(Array{1, 1})).value(), Array{11, 7, 3}));
    CHECK(close(matmul(transpose(A), B).value(), Array{{26, 35}, {32, 44}}));
    CHECK(close(matmul(expand(tape.constant(Array{{1, 1, 1}}), {2, 3}), B).value(), Array{{6, 9}, {6, 9}}));
}

TEST_CASE("matmul_transposed is matmul with the transpose, forward and backward") {
    Tape tape;
    const Tensor a = tape.leaf(uniform({2, 3, 4}, -1, 1, 1)), b = tape.leaf(uniform({2, 5, 4}, -1, 1, 2));
    const Tensor y = matmul_transposed(a, b), z = matmul(a, transpose(b));
    const Array seed = uniform({2, 3, 5}, -1, 1, 3);
    CHECK(close(y.value(), z.value()));
    const Gradients g = tape.backward(y, {a, b}, {.seed = seed}), h = tape.backward(z, {a, b}, {.seed = seed});
    CHECK(close(g[a], h[a]));
    CHECK(close(g[b], h[b]));
}

TEST_CASE("Broadcast batches are the product of each pair") {
    Tape tape;
    const Tensor a = tape.leaf(uniform({2, 1, 2, 3}, -1, 1, 1)), b = tape.leaf(uniform({4, 3, 5}, -1, 1, 2));
    const Tensor y = matmul(a, b);
    REQUIRE(y.shape() == Shape{2, 4, 2, 5});
    for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t j = 0; j < 4; ++j)
            CHECK(close(select(select(y, 0, i), 0, j).value(),
                        matmul(select(select(a, 0, i), 0, 0), select(b, 0, j)).value()));
}

TEST_CASE("Products with sizes of 0 are empty or zero, and so are their gradients") {
    Tape tape;
    const auto check = [&](const Shape& a_shape, const Shape& b_shape, const Shape& y_shape) {
        const Tensor a = tape.leaf(filled(a_shape, 2)), b = tape.leaf(filled(b_shape, 3)), y = matmul(a, b);
        CHECK(close(y.value(), zeros(y_shape)));
        const Gradients g = tape.backward(y, {a, b}, {.seed = filled(y_shape, 1)});
        CHECK(close(g[a], zeros(a_shape)));
        CHECK(close(g[b], zeros(b_shape)));
    };
    check({2, 0}, {0, 3}, {2, 3});
    check({0}, {0}, {});
    check({0, 2}, {2, 3}, {0, 3});
    check({2, 3}, {3, 0}, {2, 0});
    check({0, 2, 3}, {3, 4}, {0, 2, 4});  // no rows: the shared right operand gets zeros
    check({2, 3}, {0, 3, 4}, {0, 2, 4});  // no batches: the shared left operand gets zeros
    check({1, 2, 3}, {0, 3, 4}, {0, 2, 4});
    check({2, 1, 2, 3}, {2, 0, 3, 4}, {2, 0, 2, 4});
}

TEST_CASE("A product adds to the gradient that is there") {
    Tape tape;
    const Tensor x = tape.leaf(Array{{1, 2}, {3, 4}}), w = tape.leaf(Array{{5, 6}, {7, 8}});
    const Tensor y = matmul(matmul(x, w), w);  // w twice
    const Gradients g = tape.backward(y, {w}, {.seed = Array{{1, 0}, {0, 0}}});
    // y_00 = Σ x_0p w_pq w_q0
    CHECK(close(g[w], Array{{1 * 5 + 1 * 5 + 2 * 7, 1 * 7}, {2 * 5 + 1 * 6 + 2 * 8, 2 * 7}}));
}

TEST_CASE("Products that do not fit name both shapes") {
    Tape tape;
    const auto x = [&](const Shape& shape) { return tape.leaf(filled(shape, 1)); };
    CHECK_THROWS_WITH(matmul(x({2, 3}), x({4, 5})), "[matmul] inner sizes differ: (2,3) · (4,5)");
    CHECK_THROWS_WITH(matmul(x({3}), x({4})), "[matmul] inner sizes differ: (3) · (4)");
    CHECK_THROWS_WITH(matmul(x({2, 3}), x({2})), "[matmul] inner sizes differ: (2,3) · (2)");
    CHECK_THROWS_WITH(matmul(x({2, 3, 4}), x({3, 4, 5})), "[matmul] leading axes do not broadcast: (2,3,4) · (3,4,5)");
    CHECK_THROWS_WITH(matmul(x({}), x({2, 3})), "[matmul] a scalar has no rows: () · (2,3)");
    CHECK_THROWS_WITH(matmul(x({2}), 2), "[matmul] a scalar has no rows: (2) · ()");
    CHECK_THROWS_WITH(matmul_transposed(x({2, 3}), x({3, 4})),
                      "[matmul_transposed] inner sizes differ: (2,3) · (3,4)ᵀ");
    CHECK_THROWS_WITH(matmul_transposed(x({3}), x({2, 3})), "[matmul_transposed] needs matrices: (3) · (2,3)ᵀ");
    CHECK_THROWS_AS(matmul(x({2, 3}), x({4, 5})), ShapeError);
    CHECK(tape.size() == 17);  // nothing but the leaves
}

TEST_CASE("affine is x W + b, forward and backward") {
    Generator generator(5);
    for (const Shape& shape : {Shape{3}, Shape{4, 3}, Shape{2, 5, 3}, Shape{0, 3}, Shape{2, 0}, Shape{1, 1}}) {
        const std::size_t I = shape.back();
        Tape tape;
        const Tensor x = tape.leaf(generator.uniform(shape, -1, 1)), W = tape.leaf(generator.uniform({I, 4}, -1, 1)),
                     b = tape.leaf(generator.uniform({4}, -1, 1));
        const Tensor y = affine(x, W, b), z = matmul(x, W) + b;
        CHECK(close(y.value(), z.value()));
        const Shared seed = generator.uniform(y.shape(), -1, 1);
        const Gradients g = tape.backward(y, {x, W, b}, {.seed = seed}),
                        h = tape.backward(z, {x, W, b}, {.seed = seed});
        for (const Tensor& t : {x, W, b}) CHECK(close(g[t], h[t]));
    }
    Tape tape;
    const auto of = [&](const Shape& shape) { return tape.leaf(filled(shape, 1)); };
    CHECK_THROWS_WITH(affine(of({2, 3}), of({4, 5}), of({5})),
                      "[affine] x (…,I), W (I,O) and b (O) do not fit: (2,3), (4,5) and (5)");
    CHECK_THROWS_AS(affine(of({2, 3}), of({3, 5}), of({4})), ShapeError);
    CHECK_THROWS_AS(affine(of({2, 3}), of({3, 5}), of({1})), ShapeError);  // b is never broadcast
    CHECK_THROWS_AS(affine(of({2, 3}), of({3}), of({})), ShapeError);
    CHECK_THROWS_AS(affine(of({}), of({1, 1}), of({1})), ShapeError);
}
