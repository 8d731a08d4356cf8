// Checks a pullback against central differences. The report is data: tests, lessons and graders word it themselves.
#pragma once
#include <functional>
#include <string>
#include <vector>
#include "tape.hpp"

namespace lookback {

struct GradcheckOptions {
    double step = sizeof(Real) == 8 ? 1e-6 : 1e-2;  // times |x| where that is above 1
    double absolute = sizeof(Real) == 8 ? 1e-7 : 2e-3;
    double relative = sizeof(Real) == 8 ? 1e-6 : 2e-2;
    std::uint64_t seed = 1;  // of the random cotangent: all ones would pass a softmax whose rule returns zeros
    double scale_x_bar = 1;  // what the harness multiplies each gradient by: 1.0001 must make every row fail
};

struct GradcheckReport {
    bool ok = true;
    std::size_t input = 0, element = 0;   // the worst one
    double pullback = 0, difference = 0;  // the two numbers there
    std::string why;                      // "input 1, element 4: pullback 0.25, central difference 0.5"; empty if ok
};

// f maps leaves of the given values to one tensor (or several) on their tape. Every element of every input is stepped.
// NaN anywhere, a gradient of the wrong shape, and a value that differs between two calls (a hidden draw) are failures.
GradcheckReport gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Array>& inputs,
                          const GradcheckOptions& options = {});
GradcheckReport gradcheck(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                          const std::vector<Array>& inputs, const GradcheckOptions& options = {});

// ∂y/∂x, shaped (size of y, size of x), by one pullback for each element of y, each stopping at x.
Array jacobian(const Tensor& y, const Tensor& x);

}  // namespace lookback
