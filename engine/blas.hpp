// Matrix products. Its .cpp is the only file of the engine that talks to BLAS (spectrum.cpp does through xtensor-blas).
#pragma once
#include <string>
#include "array.hpp"
#include "broadcast.hpp"

namespace lookback {

enum class Op { plain, transposed };

// C (+)= op(A) op(B) on raw row-major memory, one matrix: op(A) is m×k, op(B) is k×n. Any of them may be 0.
// throws ShapeError if a size is beyond BLAS's 31 bits
void gemm(std::size_t m, std::size_t n, std::size_t k, const Real* a, Op op_a, const Real* b, Op op_b, Real* c,
          bool add);

// The same over the last two axes; leading axes are equal: (…,M,K)·(…,K,N) → (…,M,N).   throws ShapeError
void gemm(const Array& a, Op op_a, const Array& b, Op op_b, Target c);
Array product(const Array& a, Op op_a, const Array& b, Op op_b);

// Which kernel OpenBLAS chose for this CPU: "Haswell", "SkylakeX", "Zen" … It decides speed several-fold and the last
// bits of results, so traces and benchmarks name it.
std::string blas_kernel();
int blas_threads();

}  // namespace lookback
