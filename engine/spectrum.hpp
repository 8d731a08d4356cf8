// What a matrix does to lengths: singular values, norms, spectral radius. Always in double. A matrix is an Array (M,N);
// any of its sizes may be 0, and then norms, radius and rank are 0.
// All throw ShapeError if a is not a matrix, ValueError if an entry is NaN or infinite (LAPACK would not say).
#pragma once
#include <complex>
#include <vector>
#include "array.hpp"

namespace lookback {

std::vector<double> singular_values(const Array& a);  // the min(M,N) of them, descending
double spectral_norm(const Array& a);                 // the largest: max ‖a v‖ / ‖v‖
double frobenius_norm(const Array& a);                // √Σ a²
std::size_t rank(const Array& a);  // singular values above max(M,N) · ε · the largest, as NumPy counts
std::vector<std::complex<double>> eigenvalues(const Array& a);  // of (N,N), descending in absolute value
double spectral_radius(const Array& a);  // of (N,N): max |eigenvalue|; ‖aⁿ‖ grows as its n-th power

}  // namespace lookback
