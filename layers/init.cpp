#include "init.hpp"
#include <cmath>
#include "engine/kernels.hpp"

namespace lookback::init {

static void check_matrix(const char* what, const Shape& shape) {
    if (shape.size() != 2) fail<ShapeError>(what, "a matrix (in,out) is wanted, not " + text(shape));
}

Array uniform(Generator& generator, const Shape& shape, double bound) {
    if (!(bound >= 0)) fail<ValueError>("uniform", "the bound is below 0: " + std::to_string(bound));
    return generator.uniform(shape, -bound, bound);
}

Array uniform_by_fan(Generator& generator, const Shape& shape, std::size_t fan) {
    if (fan == 0) fail<ValueError>("uniform_by_fan", "a fan of 0 for " + text(shape));
    return uniform(generator, shape, 1 / std::sqrt(double(fan)));
}

Array glorot_uniform(Generator& generator, const Shape& shape) {
    check_matrix("glorot_uniform", shape);
    return uniform(generator, shape, std::sqrt(6 / std::max(1.0, double(shape[0] + shape[1]))));
}

// Gram–Schmidt on random normal vectors; done twice, it is orthogonal to the last bits.
Array orthogonal(Generator& generator, const Shape& shape, double gain) {
    check_matrix("orthogonal", shape);
    const bool tall = shape[0] > shape[1];
    const std::size_t count = shape[tall ? 1 : 0], n = shape[tall ? 0 : 1];
    std::vector<std::vector<double>> q(count, std::vector<double>(n));
    const auto dot = [n](const auto& a, const auto& b) {
        return sum_of(n, [&](std::size_t i) { return a[i] * b[i]; });
    };
    for (std::size_t k = 0; k < count; ++k) {
        for (double& v : q[k]) v = generator.normal();
        for (int pass = 0; pass < 2; ++pass) {
            for (std::size_t j = 0; j < k; ++j) {
                const double along = dot(q[k], q[j]);
                for (std::size_t i = 0; i < n; ++i) q[k][i] -= along * q[j][i];
            }
            const double length = std::sqrt(dot(q[k], q[k]));
            for (double& v : q[k]) v /= length;
        }
    }
    Array w(shape);
    for (std::size_t k = 0; k < count; ++k)
        for (std::size_t i = 0; i < n; ++i) w.data()[tall ? i * count + k : k * n + i] = Real(gain * q[k][i]);
    return w;
}

Array identity(std::size_t n, double scale) {
    if (!std::isfinite(scale)) fail<ValueError>("identity", "a scale of " + std::to_string(scale));
    Array w = filled({n, n}, 0);
    for (std::size_t i = 0; i < n; ++i) w.data()[i * n + i] = Real(scale);
    return w;
}

}  // namespace lookback::init
