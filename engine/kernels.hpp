// Plain loops over contiguous memory, for what moves data along an axis: there xtensor walks element by element and is
// 5 to 180 times slower. (Elementwise work stays xtensor expressions in ops/, where it equals a plain loop.)
#pragma once
#include <cmath>
#include "array.hpp"
#include "broadcast.hpp"

namespace lookback {

// How memory lies around one axis (or several adjacent ones): element (o, j, i) is at (o * n + j) * inner + i.
struct Layout {
    std::size_t outer, n, inner;
};
Layout around(const Shape& shape, std::size_t axis);

// Folds n terms in 16 independent lanes: vectorises, and rounds less than one running sum would. Sums run in double in
// both builds: a float sum of ones stalls at 2^24.
template <class T, class Term, class Join> T lanes(std::size_t n, T start, Term term, Join join) {
    T lane[16];
    std::fill(lane, lane + 16, start);
    std::size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (std::size_t j = 0; j < 16; ++j) lane[j] = join(lane[j], term(i + j));
    for (; i < n; ++i) lane[i % 16] = join(lane[i % 16], term(i));
    for (std::size_t width = 8; width; width /= 2)
        for (std::size_t j = 0; j < width; ++j) lane[j] = join(lane[j], lane[j + width]);
    return lane[0];
}
template <class Term> double sum_of(std::size_t n, Term term) {
    return lanes(
        n, 0.0, [&](std::size_t i) { return double(term(i)); }, [](double a, double b) { return a + b; });
}

double sum_of_squares(const Array& x);
inline double norm(const Array& x) { return std::sqrt(sum_of_squares(x)); }

}  // namespace lookback
