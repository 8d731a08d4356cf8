// Errors: thrown when an op is recorded, before anything changes. Each says "[op] what is wrong: every shape".
#pragma once
#include <stdexcept>
#include <string>

namespace lookback {

// Shapes, axes or sizes that do not fit.
struct ShapeError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// An index, id or position outside what it indexes.
struct IndexError : std::out_of_range {
    using std::out_of_range::out_of_range;
};

// A value that no shape can mend: a probability of 1.5, a slice with a step of 0, a file that is not one.
struct ValueError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// A handle, mark or parameter used where its tape does not allow it.
struct TapeError : std::logic_error {
    using std::logic_error::logic_error;
};

// fail<ShapeError>("matmul", "inner sizes differ: (2,3) · (4,5)") throws "[matmul] inner sizes differ: (2,3) · (4,5)".
template <class Error> [[noreturn]] void fail(const std::string& op, const std::string& what) {
    throw Error("[" + op + "] " + what);
}

}  // namespace lookback
