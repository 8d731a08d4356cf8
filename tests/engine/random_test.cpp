// The generator: the same numbers everywhere, of the right distributions, drawn once (C64).
#include "engine/random.hpp"
#include <cmath>
#include <map>
#include <set>
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

TEST_CASE("a seed gives the numbers of xoshiro256** seeded by splitmix64") {
    // Computed apart, in exact integers.
    Generator zero(0), one(1), answer(42);
    CHECK(zero.bits() == 11091344671253066420u);
    CHECK(zero.bits() == 13793997310169335082u);
    CHECK(one.bits() == 12966619160104079557u);
    CHECK(answer.bits() == 1546998764402558742u);
}

TEST_CASE("uniform and normal give the same bits on every platform") {
    Generator g(1);
    CHECK(g.uniform() == 0x1.67e55eda1f8e2p-1);
    CHECK(g.uniform() == 0x1.0a76ab2c8e6c9p-1);
    CHECK(g.normal() == 0x1.4d55c9633557bp+0);
    CHECK(g.normal() == 0x1.c0d732ae4b3ddp-2);
    CHECK(g.uniform(-3, 5) == -0x1.373fec41c82bcp+1);
    CHECK(g.integer(-10, 10) == -1);
    std::uint64_t all = 0;  // of many, so that a last bit that differs rarely is seen
    for (int i = 0; i < 100000; ++i)
        for (double x : {g.normal(), g.uniform(-0.3, 0.7)}) all = all * 31 + std::bit_cast<std::uint64_t>(x);
    CHECK(all == 0x50861b24c5aea100u);
}

TEST_CASE("the normal formula agrees with the library's logarithm") {
    Generator g(5);
    for (int i = 0; i < 10000; ++i) {
        Generator copy = g;
        double u, s;
        do {
            u = 2 * copy.uniform() - 1;
            const double v = 2 * copy.uniform() - 1;
            s = std::fma(u, u, v * v);
        } while (s >= 1 || s == 0);
        const double expected = u * std::sqrt(-2 * std::log(s) / s);
        REQUIRE(close(g.normal(), expected, 1e-15, 0));
    }
}

TEST_CASE("normal numbers have the moments and the distribution of a normal") {
    Generator g(7);
    const int n = 200000;
    double moments[4] = {};
    int below[5] = {};
    const double points[5] = {-2, -1, 0, 1, 2};
    for (int i = 0; i < n; ++i) {
        const double x = g.normal();
        for (int k = 0; k < 4; ++k) moments[k] += std::pow(x, k + 1) / n;
        for (int k = 0; k < 5; ++k) below[k] += x < points[k];
    }
    const double deviations[4] = {1, std::sqrt(2), std::sqrt(15), std::sqrt(96)};  // of x, x², x³, x⁴
    const double expected[4] = {0, 1, 0, 3};
    for (int k = 0; k < 4; ++k) CHECK(close(moments[k], expected[k], 0, 4 * deviations[k] / std::sqrt(n)));
    for (int k = 0; k < 5; ++k) {
        const double p = std::erfc(-points[k] / std::sqrt(2)) / 2;
        CHECK(close(double(below[k]) / n, p, 0, 4 * std::sqrt(p * (1 - p) / n)));
    }
}

TEST_CASE("uniform numbers fill their interval evenly and stay in it") {
    Generator g(11);
    const int n = 100000, bins = 20;
    int counts[bins] = {};
    for (int i = 0; i < n; ++i) {
        const double x = g.uniform();
        REQUIRE((0 <= x && x < 1));
        ++counts[int(x * bins)];
    }
    for (int c : counts) CHECK(close(c, double(n) / bins, 0, 4 * std::sqrt(double(n) / bins)));
    CHECK(g.uniform(2, 2) == 2);
    const Array x = g.uniform({1000}, -0.5, 0.25);
    CHECK(*std::min_element(x.begin(), x.end()) < -0.49);
    CHECK(*std::max_element(x.begin(), x.end()) > 0.24);
    CHECK(std::all_of(x.begin(), x.end(), [](Real e) { return Real(-0.5) <= e && e <= Real(0.25); }));
}

TEST_CASE("integers are unbiased over any range") {
    Generator g(13);
    int counts[7] = {};
    const int n = 70000;
    for (int i = 0; i < n; ++i) ++counts[g.integer(-3, 4) + 3];
    for (int c : counts) CHECK(close(c, n / 7.0, 0, 4 * std::sqrt(n / 7.0)));
    CHECK(g.integer(5, 6) == 5);

    // A remainder of 64 bits by 3·2^62 would fall into the first third half of the time.
    const std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                       high = low + (std::int64_t(3) << 61) + (std::int64_t(3) << 61);
    int first_third = 0;
    for (int i = 0; i < 3000; ++i) {
        const std::int64_t x = g.integer(low, high);
        REQUIRE((low <= x && x < high));
        first_third += x < low + (std::int64_t(1) << 62);
    }
    CHECK(close(first_third, 1000, 0, 110));
}

TEST_CASE("an array of draws is drawn once (C64)") {
    Generator g(17);
    const Array x = g.normal({3, 4});
    const Array first = x, second = x + 0;
    CHECK(same_bits(first, second));

    Generator again(17);
    CHECK(same_bits(x, again.normal({3, 4})));
    CHECK(!same_bits(x, again.normal({3, 4})));
    CHECK(g.normal({}).size() == 1);
    CHECK(g.normal({0, 3}).size() == 0);
    CHECK(close(g.normal({5}, 3, 0), filled({5}, 3)));
}

TEST_CASE("a copy of a generator repeats it, a split one does not") {
    Generator g(19), copy = g;
    CHECK(g.bits() == copy.bits());
    Generator child = g.split();
    copy.split();
    CHECK(g.bits() == copy.bits());
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 1000; ++i) seen.insert({g.bits(), child.bits()});
    CHECK(seen.size() == 2000);
}

TEST_CASE("a permutation has each place once, and every order is as likely") {
    Generator g(23);
    CHECK(g.permutation(0).empty());
    std::vector<std::size_t> order = g.permutation(1000);
    CHECK(!std::is_sorted(order.begin(), order.end()));
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < 1000; ++i) REQUIRE(order[i] == i);

    std::map<std::vector<std::size_t>, int> counts;
    for (int i = 0; i < 24000; ++i) ++counts[g.permutation(4)];
    CHECK(counts.size() == 24);
    for (const auto& [_, count] : counts) CHECK(close(count, 1000, 0, 130));
}

TEST_CASE("draws that make no sense are refused") {
    Generator g(29);
    CHECK_THROWS_AS(g.uniform(1, 0), ValueError);
    CHECK_THROWS_AS(g.uniform({2}, NAN, 1), ValueError);
    CHECK_THROWS_AS(g.uniform(0, INFINITY), ValueError);
    CHECK_THROWS_AS(g.normal({2}, 0, -1), ValueError);
    CHECK_THROWS_AS(g.normal({2}, 0, std::numeric_limits<double>::infinity()), ValueError);
    CHECK_THROWS_AS(g.normal({2}, std::nan(""), 1), ValueError);
    CHECK_THROWS_AS(g.integer(3, 3), ValueError);
    CHECK_THROWS_AS(g.integers({2}, 3, 1), ValueError);
    CHECK_THROWS_AS(g.normal({std::size_t(1) << 40, std::size_t(1) << 40}), ShapeError);
    const Indices x = g.integers({2, 3}, 0, 5);
    CHECK(x.shape() == Shape{2, 3});
    CHECK(std::all_of(x.values().begin(), x.values().end(), [](std::int64_t i) { return 0 <= i && i < 5; }));
}
