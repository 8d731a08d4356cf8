// The only file of the engine that names BLAS: OpenBLAS's header and xtensor-blas's cannot be included together.
#include "blas.hpp"
#if __has_include(<cblas.h>)
#include <cblas.h>
#endif

namespace lookback {

#if __has_include(<cblas.h>)

template <class T> struct Blas;  // which has a function for each type
template <> struct Blas<double> {
    static constexpr auto& gemm = cblas_dgemm;
    static constexpr auto& gemv = cblas_dgemv;
    static constexpr auto& ger = cblas_dger;
};
template <> struct Blas<float> {
    static constexpr auto& gemm = cblas_sgemm;
    static constexpr auto& gemv = cblas_sgemv;
    static constexpr auto& ger = cblas_sger;
};

static int size(std::size_t n) {
    if (n > std::size_t(std::numeric_limits<int>::max()))
        fail<ShapeError>("gemm", "a size of " + std::to_string(n) + " is beyond the 31 bits of BLAS");
    return int(n);
}

static void multiply(std::size_t m, std::size_t n, std::size_t k, const Real* a, bool a_transposed, const Real* b,
                     bool b_transposed, Real* c, bool add) {
    const auto flag = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
    const int M = size(m), N = size(n), K = size(k);
    const int a_rows = a_transposed ? K : M, a_columns = a_transposed ? M : K;
    const int b_rows = b_transposed ? N : K, b_columns = b_transposed ? K : N;
    if (M > 1 && N > 1 && K > 1)
        return Blas<Real>::gemm(CblasRowMajor, flag(a_transposed), flag(b_transposed), M, N, K, 1, a, a_columns, b,
                                b_columns, Real(add), c, N);
    // With vectors: gemm would take two to five times as long. (A factor of 0 for c would let its old NaN through.)
    if (!add) std::fill(c, c + m * n, Real(0));
    if (N == 1)
        Blas<Real>::gemv(CblasRowMajor, flag(a_transposed), a_rows, a_columns, 1, a, a_columns, b, 1, 1, c, 1);
    else if (M == 1)
        Blas<Real>::gemv(CblasRowMajor, flag(!b_transposed), b_rows, b_columns, 1, b, b_columns, a, 1, 1, c, 1);
    else
        Blas<Real>::ger(CblasRowMajor, M, N, 1, a, 1, b, 1, c, N);
}

std::string blas_kernel() { return openblas_get_corename(); }
int blas_threads() { return openblas_get_num_threads(); }

#else  // where there is no BLAS: in a browser

static void multiply(std::size_t m, std::size_t n, std::size_t k, const Real* a, bool a_transposed, const Real* b,
                     bool b_transposed, Real* c, bool add) {
    if (!add) std::fill(c, c + m * n, Real(0));
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t p = 0; p < k; ++p) {
            const Real x = a_transposed ? a[p * m + i] : a[i * k + p];
            for (std::size_t j = 0; j < n; ++j) c[i * n + j] += x * (b_transposed ? b[j * k + p] : b[p * n + j]);
        }
}

std::string blas_kernel() { return "plain loop"; }
int blas_threads() { return 1; }

#endif

void gemm(std::size_t m, std::size_t n, std::size_t k, const Real* a, Op op_a, const Real* b, Op op_b, Real* c,
          bool add) {
    if (m == 0 || n == 0) return;  // BLAS rejects leading sizes of 0
    if (k > 0)
        multiply(m, n, k, a, op_a == Op::transposed, b, op_b == Op::transposed, c, add);
    else if (!add)
        std::fill(c, c + m * n, Real(0));  // a sum of nothing
}

namespace {
struct ProductSizes {
    std::size_t batch, m, n, k;
};
ProductSizes product_sizes(const Shape& a, Op op_a, const Shape& b, Op op_b) {
    const auto reject = [&](const char* what) {
        fail<ShapeError>("gemm", what + text(a) + (op_a == Op::transposed ? "ᵀ · " : " · ") + text(b) +
                                     (op_b == Op::transposed ? "ᵀ" : ""));
    };
    const std::size_t r = a.size();
    if (r < 2 || b.size() != r || !std::equal(a.begin(), a.end() - 2, b.begin())) reject("leading axes differ: ");
    ProductSizes s{1, a[r - 2], b[r - 1], a[r - 1]};
    std::size_t k = b[r - 2];
    if (op_a == Op::transposed) std::swap(s.m, s.k);
    if (op_b == Op::transposed) std::swap(s.n, k);
    if (s.k != k) reject("inner sizes differ: ");
    for (std::size_t axis = 0; axis + 2 < r; ++axis) s.batch *= a[axis];
    return s;
}
Shape result(const Shape& a, const ProductSizes& s) {
    Shape c = a;
    c[c.size() - 2] = s.m;
    c.back() = s.n;
    return c;
}
void multiply_all(const ProductSizes& s, const Array& a, Op op_a, const Array& b, Op op_b, Target c) {
    for (std::size_t i = 0; i < s.batch; ++i)
        gemm(s.m, s.n, s.k, a.data() + i * s.m * s.k, op_a, b.data() + i * s.k * s.n, op_b,
             c.array.data() + i * s.m * s.n, c.add);
}
}  // namespace

void gemm(const Array& a, Op op_a, const Array& b, Op op_b, Target c) {
    const ProductSizes s = product_sizes(a.shape(), op_a, b.shape(), op_b);
    if (!(c.array.shape() == result(a.shape(), s)))
        fail<ShapeError>("gemm", "the result is " + text(result(a.shape(), s)) + ", not " + text(c.array.shape()));
    multiply_all(s, a, op_a, b, op_b, c);
}

Array product(const Array& a, Op op_a, const Array& b, Op op_b) {
    const ProductSizes s = product_sizes(a.shape(), op_a, b.shape(), op_b);
    const Shape shape = result(a.shape(), s);
    checked_size("gemm", shape);
    Array c(shape);
    multiply_all(s, a, op_a, b, op_b, {c, false});
    return c;
}

}  // namespace lookback
