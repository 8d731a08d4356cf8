// Where a token stands, added to what it is: attention alone does not see the order.
#pragma once
#include <variant>
#include "engine/random.hpp"
#include "parameters.hpp"

namespace lookback {

// Sines and cosines of ever longer waves, interleaved:   → (T,E), row i for position first + i
//   P(t, 2k) = sin(t / 10000^(2k/E))     P(t, 2k+1) = cos(t / 10000^(2k/E))
// An odd E ends with a sine. P(t + s) is P(t) with each pair turned, by an angle that depends on s alone.
// Vaswani et al. 2017, § 3.5
Array sinusoidal(std::size_t T, std::size_t E, std::size_t first = 0);

// Each position type gives x + P.   x (B,T,E), whose first token stands at position `first` → the same
struct NoPosition {
    Tensor operator()(const Tensor& x, std::size_t = 0) const { return x; }
    void for_each_parameter(const std::string&, const Visitor&) {}
};

struct SinusoidalPosition {
    Tensor operator()(const Tensor& x, std::size_t first = 0) const;  // throws ShapeError unless x is (B,T,E)
    void for_each_parameter(const std::string&, const Visitor&) {}
};

// A learned vector for each of T_max positions; from the start normal, of deviation 0.02.
// throws ShapeError unless x is (B,T,E) with the table's E, IndexError on positions beyond the table
// Gehring et al. 2017; the deviation as in Radford et al. 2018
struct LearnedPosition {
    Parameter table;  // (T_max,E)

    LearnedPosition(std::size_t T_max, std::size_t width, Generator& generator);
    Tensor operator()(const Tensor& x, std::size_t first = 0) const;
    void for_each_parameter(const std::string& prefix, const Visitor& f) { f(join(prefix, "table"), table); }
};

using Position = std::variant<SinusoidalPosition, LearnedPosition, NoPosition>;

}  // namespace lookback
