// Arrays of any shape for expectations: array({1, 2, 1}, {0.5, 3}). Nested braces are ambiguous where an axis has
// size 1.
#pragma once
#include <algorithm>
#include <initializer_list>
#include "engine/array.hpp"

namespace lookback::test {

inline Array array(const Shape& shape, std::initializer_list<Real> values) {
    if (checked_size("array", shape) != values.size()) fail<ShapeError>("array", text(shape) + " of other values");
    Array a = filled(shape, 0);
    std::copy(values.begin(), values.end(), a.data());
    return a;
}

}  // namespace lookback::test
