#include "position.hpp"
#include "check.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/movement.hpp"

namespace lookback {

Array sinusoidal(std::size_t T, std::size_t E, std::size_t first) {
    checked_size("sinusoidal", {T, E});
    Array P = filled({T, E}, 0);
    for (std::size_t t = 0; t < T; ++t)
        for (std::size_t i = 0; i < E; ++i) {
            const double angle = (double(first) + double(t)) / std::pow(10000., double(i - i % 2) / double(E));
            P(t, i) = Real(i % 2 ? std::cos(angle) : std::sin(angle));
        }
    return P;
}

static void check_sequence(const char* layer, const Tensor& x) {
    if (x.rank() != 3) fail<ShapeError>(layer, "x must be (B,T,E), not " + text(x.shape()));
}

Tensor SinusoidalPosition::operator()(const Tensor& x, std::size_t first) const {
    check_sequence("SinusoidalPosition", x);
    return x + x.tape().constant(sinusoidal(x.shape(1), x.shape(2), first));
}

LearnedPosition::LearnedPosition(std::size_t T_max, std::size_t width, Generator& generator)
    : table(generator.normal({T_max, width}, 0, 0.02), "table") {
    if (table.size() == 0) fail<ValueError>("LearnedPosition", "neither T_max nor E may be 0: " + text(table.shape()));
}

Tensor LearnedPosition::operator()(const Tensor& x, std::size_t first) const {
    check_sequence("LearnedPosition", x);
    check_width("LearnedPosition", "x", x.shape(), table.shape()[1], "the table", table.shape());
    const std::size_t T = x.shape(1), T_max = table.shape()[0];
    if (first > T_max || T > T_max - first)
        fail<IndexError>("LearnedPosition", std::to_string(T) + " positions from " + std::to_string(first) +
                                                " are beyond the table " + text(table.shape()));
    return x + slice(x.tape().leaf(table), 0, std::int64_t(first), std::int64_t(first + T));
}

}  // namespace lookback
