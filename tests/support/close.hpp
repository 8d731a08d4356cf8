// The comparator of all tests: shape first, then finiteness class, then |a−b| ≤ atol + rtol·|b|. It never throws and
// never broadcasts (xt::allclose does both), and says where the worst difference is.
//   CHECK(close(g[x], {1, 2, 3}));     CHECK(close(y, expected, 1e-12, 0));
#pragma once
#include <ostream>
#include <string>
#include "engine/array.hpp"

namespace lookback::test {

struct Closeness {
    bool ok = true;
    std::string why;
    explicit operator bool() const { return ok; }
    friend std::ostream& operator<<(std::ostream& out, const Closeness& c) { return out << (c.ok ? "close" : c.why); }
};

inline constexpr double standard_tolerance = sizeof(Real) == 8 ? 1e-9 : 1e-4;

Closeness close(const Array& a, const Array& b, double rtol = standard_tolerance, double atol = standard_tolerance);
Closeness close(double a, double b, double rtol = standard_tolerance, double atol = standard_tolerance);
bool same_bits(const Array& a,
               const Array& b);  // shape and every bit: for "changes nothing", not for numbers computed two ways

}  // namespace lookback::test
