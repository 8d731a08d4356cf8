// The Jacobians of recurrent cells from their equations, on plain arrays: the second route to what the tape computes.
// One sequence (B = 1). J(i,j) = ∂(new state)_j / ∂(old state)_i, so a cotangent goes one step back as g ← J g.
#pragma once
#include <vector>
#include "engine/array.hpp"

namespace lookback::by_hand {

// x W + b of one row: (I), (I,n), (n) → (1,n)
Array affine(const Array& x, const Array& W, const Array& b);

// ∂h'/∂h of h' = tanh(a + h U): U diag(1 − h'²).   U: (H,H)   h_new: (1,H) → (H,H)
Array rnn_jacobian(const Array& U, const Array& h_new);

// ∂(h',c')/∂(h,c) of an LSTM, in one matrix.   a = x W + b: (1,4H)   h, c: (1,H) → (2H,2H)
Array lstm_jacobian(const Array& a, const Array& h, const Array& c, const Array& U);

// ∂h'/∂h of a GRU with the reset gate after the product.   a: (1,3H)   b_n: (H) → (H,H)
Array gru_jacobian(const Array& a, const Array& h, const Array& U, const Array& b_n);

// J g
std::vector<double> times(const Array& J, const std::vector<double>& g);

}  // namespace lookback::by_hand
