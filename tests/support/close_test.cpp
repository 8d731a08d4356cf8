#include "tests/support/close.hpp"
#include <limits>
#include "tests/support/catch.hpp"

using namespace lookback;
using namespace lookback::test;

TEST_CASE("the comparator checks shape, then finiteness, then distance, and never throws (C70, C71)") {
    const Real inf = std::numeric_limits<Real>::infinity(), nan = std::numeric_limits<Real>::quiet_NaN();
    CHECK_FALSE(close(Array{1, 1, 1}, filled({3, 1}, 1)));
    CHECK_FALSE(close(Array{1, 1, 1}, Array{1}));
    CHECK_FALSE(close(Array{1, 1, 1}, Array{1, 1}));
    CHECK_FALSE(close(Array{inf, 1}, Array{1, 1}));
    CHECK_FALSE(close(Array{inf, 1}, Array{-inf, 1}));
    CHECK_FALSE(close(Array{nan, 1}, Array{1, 1}));
    CHECK(close(Array{nan, inf}, Array{nan, inf}));
    CHECK(close(filled({0}, 0), filled({0}, 0)));
    CHECK(close(6e-8, 0, 0, 1e-7));
    CHECK_FALSE(close(6e-8, 0, 1e-7, 0));  // nothing is relatively close to 0
    CHECK_FALSE(close(1.0000001, 1, 0, 1e-9));
    CHECK(close(1.0000001, 1, 1e-6, 0));
    CHECK(close(Array{1, 2}, Array{1, 3}).why.find("element 1") != std::string::npos);
    CHECK(same_bits(Array{nan}, Array{nan}));
    CHECK_FALSE(same_bits(Array{Real(0)}, Array{Real(-0.0)}));
}
