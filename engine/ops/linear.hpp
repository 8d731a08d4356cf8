// Matrix products. Leading axes are batches and broadcast; transposes are flags of BLAS, never copies.
#pragma once
#include "engine/tape.hpp"

namespace lookback {

// C = A B.   (…,M,K)·(…,K,N) → (…,M,N)   Ā += C̄ Bᵀ   B̄ += Aᵀ C̄, summed over the batches they were repeated for
// A vector is a row on the left, a column on the right, and its axis is dropped:
//   (K)·(K) → ()   (K)·(…,K,N) → (…,N)   (…,M,K)·(K) → (…,M)
// A right operand of one matrix, as in x W, is one product for all rows of the left. K = 0 gives zeros.
// saves A unless B is a constant, B unless A is
// throws ShapeError if the inner sizes differ, the leading axes do not broadcast, or an operand is a scalar
Tensor matmul(const Tensor& a, const Tensor& b);

// C = A Bᵀ.   (…,M,K)·(…,N,K) → (…,M,N)   Ā += C̄ B   B̄ += C̄ᵀ A, summed likewise
// For scores Q Kᵀ and tied embeddings h Eᵀ.
// saves A unless B is a constant, B unless A is
// throws ShapeError as matmul does, and if an operand has fewer than two axes
Tensor matmul_transposed(const Tensor& a, const Tensor& b);

// y = x W + b: the product is added to rows of b, which takes no pass of its own.   (…,I)·(I,O) + (O) → (…,O)
// x̄ += ȳ Wᵀ   W̄ += xᵀ ȳ   b̄ += Σ ȳ over the leading axes
// saves x unless W is a constant, W unless x is
// throws ShapeError if they do not fit
Tensor affine(const Tensor& x, const Tensor& W, const Tensor& b);

}  // namespace lookback
