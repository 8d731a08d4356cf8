// Plain numbers that several lessons need: ranges, slopes, medians, differences. None of it touches a tape.
#pragma once
#include <cstddef>
#include <vector>
#include "engine/array.hpp"

namespace lookback::measure {

std::vector<double> range(std::size_t first, std::size_t last);  // first, first + 1 … last

// The straight line through points that comes nearest in y (least squares): its slope. NaN below two different x.
double slope(const std::vector<double>& x, const std::vector<double>& y);

double mean(const std::vector<double>& x);            // NaN of none, as of the two below
double standard_error(const std::vector<double>& x);  // of that mean: √(variance / n), from n − 1 degrees of freedom
double median(std::vector<double> x);                 // of an even number: halfway between the two in the middle

double length(const std::vector<double>& v);  // √Σ v², right for the tiniest gradients too
// ‖a − b‖ / ‖b‖: how far a is from b, as a part of b.   0 if both are 0
double relative_difference(const std::vector<double>& a, const std::vector<double>& b);
// max |a_i − b_i|.   NaN if one is, or if their shapes differ
double largest_difference(const Array& a, const Array& b);

}  // namespace lookback::measure
