// An explicit generator: the same seed gives the same numbers on every platform and standard library, because the
// formulas are ours (std's distributions differ between libraries). Draws are Arrays, drawn once; nothing is lazy.
#pragma once
#include <cstdint>
#include "array.hpp"
#include "indices.hpp"

namespace lookback {

class Generator {
public:
    explicit Generator(std::uint64_t seed);
    std::uint64_t bits();  // 64 random bits
    double uniform();      // [0, 1), 53 bits
    double uniform(double low, double high);
    double normal();  // mean 0, variance 1
    // low … high-1, unbiased.   throws ValueError if low ≥ high
    std::int64_t integer(std::int64_t low, std::int64_t high);
    Array uniform(const Shape& shape, double low, double high);
    Array normal(const Shape& shape, double mean = 0, double deviation = 1);
    Indices integers(const Shape& shape, std::int64_t low, std::int64_t high);
    std::vector<std::size_t> permutation(std::size_t n);
    Generator split();  // an independent generator, seeded from this one

private:
    std::uint64_t state_[4];  // xoshiro256**
};

}  // namespace lookback
