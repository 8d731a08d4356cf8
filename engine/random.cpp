#include "random.hpp"
#include <cmath>
#include <numeric>

namespace lookback {

// Only IEEE-exact operations from here on: + - * / sqrt, and std::fma wherever the compiler might otherwise fuse a
// product and a sum on one machine and not on another. libm's log differs in its last bit between libraries and CPUs;
// ours does not.
static double logarithm(double x) {  // of a normal number > 0
    int exponent;
    double m = std::frexp(x, &exponent);
    if (m < 0x1.6a09e667f3bcdp-1) m *= 2, --exponent;  // m in [√½, √2)
    const double z = (m - 1) / (m + 1), z2 = z * z;    // log m = 2 (z + z³/3 + z⁵/5 + …), |z| < 0.172
    double series = 0;
    for (int k = 23; k >= 3; k -= 2) series = std::fma(series, z2, 1.0 / k);
    series *= z2;
    return std::fma(exponent, 0x1.62e42fefa39efp-1, 2 * std::fma(z, series, z));
}

// splitmix64, as xoshiro's authors seed it: no state is all zeros, and neighbouring seeds share nothing.
Generator::Generator(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
        std::uint64_t z = seed += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        word = z ^ (z >> 31);
    }
}

// xoshiro256** (Blackman and Vigna 2018).
std::uint64_t Generator::bits() {
    auto& s = state_;
    const std::uint64_t result = std::rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = std::rotl(s[3], 45);
    return result;
}

double Generator::uniform() { return double(bits() >> 11) * 0x1p-53; }

double Generator::uniform(double low, double high) {
    if (!(low <= high && std::isfinite(high - low)))
        fail<ValueError>("uniform", "low " + std::to_string(low) + " and high " + std::to_string(high));
    return std::fma(high - low, uniform(), low);
}

// Marsaglia's polar method. Its second number is let go, so that the state is four words and a draw depends on nothing
// else.
double Generator::normal() {
    for (;;) {
        const double u = std::fma(2, uniform(), -1), v = std::fma(2, uniform(), -1), s = std::fma(u, u, v * v);
        if (0 < s && s < 1) return u * std::sqrt(-2 * logarithm(s) / s);
    }
}

std::int64_t Generator::integer(std::int64_t low, std::int64_t high) {
    if (low >= high)
        fail<ValueError>("integer", "nothing from " + std::to_string(low) + " to below " + std::to_string(high));
    const std::uint64_t n = std::uint64_t(high) - std::uint64_t(low);
    const std::uint64_t surplus = -n % n;  // 2^64 mod n: so many numbers would be drawn once too often
    std::uint64_t drawn;
    do drawn = bits();
    while (drawn < surplus);
    return std::int64_t(std::uint64_t(low) + drawn % n);
}

Array Generator::uniform(const Shape& shape, double low, double high) {
    checked_size("uniform", shape);
    Array x(shape);
    for (Real& e : x.storage()) e = Real(uniform(low, high));
    return x;
}

Array Generator::normal(const Shape& shape, double mean, double deviation) {
    checked_size("normal", shape);
    if (!(deviation >= 0 && std::isfinite(deviation) && std::isfinite(mean)))
        fail<ValueError>("normal",
                         "a mean of " + std::to_string(mean) + " and a deviation of " + std::to_string(deviation));
    Array x(shape);
    for (Real& e : x.storage()) e = Real(std::fma(deviation, normal(), mean));
    return x;
}

Indices Generator::integers(const Shape& shape, std::int64_t low, std::int64_t high) {
    std::vector<std::int64_t> values(checked_size("integers", shape));
    for (std::int64_t& v : values) v = integer(low, high);
    return Indices(shape, std::move(values));
}

std::vector<std::size_t> Generator::permutation(std::size_t n) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t(0));
    for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[std::size_t(integer(0, std::int64_t(i)))]);
    return order;
}

Generator Generator::split() { return Generator(bits()); }

}  // namespace lookback
