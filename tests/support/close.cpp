#include "tests/support/close.hpp"
#include <cmath>
#include <cstring>
#include <sstream>

namespace lookback::test {

static int finiteness(double x) { return std::isnan(x) ? 3 : std::isinf(x) ? (x > 0 ? 2 : 1) : 0; }

Closeness close(const Array& a, const Array& b, double rtol, double atol) {
    std::ostringstream why;
    why.precision(17);
    if (a.shape() != b.shape()) {
        why << "shapes " << text(a.shape()) << " and " << text(b.shape());
        return {false, why.str()};
    }
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double x = a.data()[i], y = b.data()[i];
        if (finiteness(x) != finiteness(y)) {
            why.str("");
            why << "element " << i << " of " << text(a.shape()) << ": " << x << " and " << y;
            return {false, why.str()};
        }
        if (finiteness(x)) continue;  // both NaN, or the same infinity
        const double excess = std::abs(x - y) - (atol + rtol * std::abs(y));
        if (excess > worst) {
            worst = excess;
            why.str("");
            why << "element " << i << " of " << text(a.shape()) << ": " << x << " and " << y << ", apart by "
                << std::abs(x - y);
        }
    }
    return {worst == 0, why.str()};
}

Closeness close(double a, double b, double rtol, double atol) {
    if (finiteness(a) == finiteness(b) && (finiteness(a) || std::abs(a - b) <= atol + rtol * std::abs(b))) return {};
    std::ostringstream why;
    why.precision(17);
    why << a << " and " << b << ", apart by " << std::abs(a - b);
    return {false, why.str()};
}

bool same_bits(const Array& a, const Array& b) {
    return a.shape() == b.shape() && (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0);
}

}  // namespace lookback::test
