// Catch2 2.x or 3.x, whichever is installed. No Approx: its relative and absolute bounds pass wrong numbers; see
// close.hpp.
#pragma once
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
namespace lookback::test {
inline auto contains(const std::string& part) { return Catch::Matchers::ContainsSubstring(part); }
}  // namespace lookback::test
#else
#include <catch2/catch.hpp>
namespace lookback::test {
inline auto contains(const std::string& part) { return Catch::Matchers::Contains(part); }
}  // namespace lookback::test
#endif
