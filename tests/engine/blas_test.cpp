#include "engine/blas.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"
#include "tests/support/rows.hpp"

using namespace lookback;
using namespace lookback::test;

// The definition: C_ij = Σ_p op(A)_ip op(B)_pj.
static Array by_definition(const Array& a, Op op_a, const Array& b, Op op_b, std::size_t m, std::size_t n,
                           std::size_t k) {
    Array c = filled({m, n}, 0);
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t p = 0; p < k; ++p)
                c(i, j) += (op_a == Op::plain ? a(i, p) : a(p, i)) * (op_b == Op::plain ? b(p, j) : b(j, p));
    return c;
}

static Array matrix(std::size_t rows, std::size_t columns, Op op, unsigned seed) {
    return uniform(op == Op::plain ? Shape{rows, columns} : Shape{columns, rows}, -1, 1, seed);
}

TEST_CASE("A product is the sum of products, however its operands lie") {
    const Op op_a = GENERATE(Op::plain, Op::transposed), op_b = GENERATE(Op::plain, Op::transposed);
    for (const auto& [m, n, k] :
         std::vector<std::array<std::size_t, 3>>{{1, 1, 1}, {2, 3, 4}, {5, 1, 7}, {1, 6, 3}, {4, 5, 1}, {33, 17, 65}}) {
        const Array a = matrix(m, k, op_a, 1), b = matrix(k, n, op_b, 2), c = by_definition(a, op_a, b, op_b, m, n, k);
        CHECK(close(product(a, op_a, b, op_b), c));
        Array fresh = filled({m, n}, std::numeric_limits<Real>::quiet_NaN());  // what was there does not matter
        gemm(a, op_a, b, op_b, {fresh, false});
        CHECK(close(fresh, c));
        Array sum = filled({m, n}, 1);
        gemm(a, op_a, b, op_b, {sum, true});
        CHECK(close(sum, c + 1));
    }
}

TEST_CASE("A product over no terms is 0, or adds nothing; one with no rows or columns is empty") {
    const Op op_a = GENERATE(Op::plain, Op::transposed), op_b = GENERATE(Op::plain, Op::transposed);
    const Array a = matrix(2, 0, op_a, 1), b = matrix(0, 3, op_b, 1);
    Array c = filled({2, 3}, 7);
    gemm(a, op_a, b, op_b, {c, true});
    CHECK(close(c, filled({2, 3}, 7)));
    gemm(a, op_a, b, op_b, {c, false});
    CHECK(close(c, filled({2, 3}, 0)));
    CHECK(product(matrix(0, 2, op_a, 1), op_a, matrix(2, 3, op_b, 1), op_b).shape() == Shape{0, 3});
    CHECK(product(matrix(2, 2, op_a, 1), op_a, matrix(2, 0, op_b, 1), op_b).shape() == Shape{2, 0});
    CHECK(product(filled({0, 2, 3}, 0), Op::plain, filled({0, 3, 4}, 0), Op::plain).shape() == Shape{0, 2, 4});
}

TEST_CASE("A batch of products is each by itself") {
    const Array a = uniform({2, 3, 4, 5}, -1, 1, 1), b = uniform({2, 3, 5, 6}, -1, 1, 2);
    const Array c = product(a, Op::plain, b, Op::plain);
    REQUIRE(c.shape() == Shape{2, 3, 4, 6});
    for (std::size_t i = 0; i < 6; ++i) {
        Array one = Array::from_shape({4, 6});
        gemm(4, 6, 5, a.data() + i * 20, Op::plain, b.data() + i * 30, Op::plain, one.data(), false);
        CHECK(std::equal(one.begin(), one.end(), c.data() + i * 24));
    }
}

TEST_CASE("Products of sizes that do not fit name them") {
    const Array a = filled({2, 3}, 1), b = filled({4, 5}, 1);
    CHECK_THROWS_WITH(product(a, Op::plain, b, Op::plain), "[gemm] inner sizes differ: (2,3) · (4,5)");
    CHECK_THROWS_WITH(product(a, Op::transposed, b, Op::transposed), "[gemm] inner sizes differ: (2,3)ᵀ · (4,5)ᵀ");
    CHECK_THROWS_AS(product(filled({3}, 1), Op::plain, filled({3}, 1), Op::plain), ShapeError);
    CHECK_THROWS_AS(product(filled({2, 2, 3}, 1), Op::plain, filled({3, 3, 1}, 1), Op::plain), ShapeError);
    Array wrong = filled({2, 4}, 0);
    CHECK_THROWS_WITH(gemm(a, Op::plain, filled({3, 3}, 1), Op::plain, {wrong, false}), contains("(2,3), not (2,4)"));
}

TEST_CASE("A size beyond 31 bits is refused before memory is touched") {
    if (blas_kernel() == "plain loop") return;
    const std::size_t n = std::size_t(1) << 31;
    CHECK_THROWS_AS(gemm(n, 1, 1, nullptr, Op::plain, nullptr, Op::plain, nullptr, false), ShapeError);
    CHECK_THROWS_AS(gemm(1, n, 1, nullptr, Op::plain, nullptr, Op::plain, nullptr, false), ShapeError);
    CHECK_THROWS_AS(gemm(1, 1, n, nullptr, Op::plain, nullptr, Op::plain, nullptr, false), ShapeError);
}

TEST_CASE("BLAS says which kernel it runs, on how many threads") {
    CHECK(blas_kernel() != "");
    CHECK(blas_threads() >= 1);
}
