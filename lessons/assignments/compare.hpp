// Is an answer what was expected, and if not, what is the first thing to look at?
#pragma once
#include <optional>
#include "value.hpp"

namespace lookback {

struct Difference {
    std::string place;    // "dh[2](0,1)", empty for an answer that is one number
    std::string what;     // "is wrong", "has a wrong shape", "is missing"
    std::string numbers;  // both numbers or shapes; not for the eyes of one who should not know the input
};

// Shapes first, then finite or not, then |answer − expected| ≤ tolerance · (the largest |expected| of the same array,
// or 1 if that is 0). An answer may be any JSON at all.
std::optional<Difference> compare(const Json& answer, const Json& expected, double tolerance);

}  // namespace lookback
