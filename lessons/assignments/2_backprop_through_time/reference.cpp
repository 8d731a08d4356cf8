// Assignment 2: backpropagation through time. README.md explains, backprop.hpp declares.
#include <cmath>
#include "backprop.hpp"

namespace lookback {

// BEGIN SOLUTION
// The length of all of them together. Scaled by the largest element: the square of 1e-200 would be 0.
static double length(const std::vector<Matrix>& all) {
    double largest = 0, sum = 0;
    for (const Matrix& a : all)
        for (double x : a.data()) largest = std::max(largest, std::abs(x));
    if (largest == 0) return 0;
    for (const Matrix& a : all)
        for (double x : a.data()) sum += (x / largest) * (x / largest);
    return largest * std::sqrt(sum);
}

// ρ(A) = lim ‖A^k‖^(1/k) in any norm (Gelfand), with k = 2^50: fifty squarings, rescaled so that nothing overflows.
static double radius(Matrix A) {
    double log_scale = 0;  // A^k = exp(k · log_scale) · (the A kept)
    for (int i = 0; i < 50; ++i) {
        const double s = length({A});
        if (s == 0) return 0;
        log_scale += std::log(s) / std::exp2(i);
        A = (1 / s) * A;
        A = A * A;
    }
    return std::exp(log_scale);
}
// END SOLUTION

// 2.1
Matrix rnn_step(const Matrix& x, const Matrix& h, const Matrix& W, const Matrix& U, const Matrix& b) {
    // BEGIN SOLUTION 2.1
    Matrix a = x * W + h * U;
    for (std::size_t i = 0; i < a.rows(); ++i)
        for (std::size_t j = 0; j < a.columns(); ++j) a(i, j) = std::tanh(a(i, j) + b(0, j));
    return a;
    // END SOLUTION
}

// 2.2
std::vector<Matrix> unroll(const Step& step, const std::vector<Matrix>& x, const Matrix& h0) {
    // BEGIN SOLUTION 2.2
    std::vector<Matrix> h{h0};
    for (const Matrix& x_t : x) h.push_back(step(x_t, h.back()));
    return h;
    // END SOLUTION
}

// 2.3
Gradients backprop_through_time(const std::vector<Matrix>& x, const std::vector<Matrix>& h, const Matrix& U,
                                const std::vector<Matrix>& direct) {
    // BEGIN SOLUTION 2.3
    const std::size_t T = x.size(), I = x[0].columns(), H = U.rows();
    Gradients g{direct, Matrix(I, H), Matrix(H, H), Matrix(1, H)};
    for (std::size_t t = T; t-- > 0;) {
        Matrix da = g.dh[t + 1];  // by what tanh was taken of
        for (std::size_t k = 0; k < da.size(); ++k) da.data()[k] *= 1 - h[t + 1].data()[k] * h[t + 1].data()[k];
        g.dh[t] += da * transpose(U);
        g.dW += transpose(x[t]) * da;
        g.dU += transpose(h[t]) * da;
        for (std::size_t i = 0; i < da.rows(); ++i)
            for (std::size_t j = 0; j < H; ++j) g.db(0, j) += da(i, j);
    }
    return g;
    // END SOLUTION
}

// 2.4
Decay decay(const std::vector<Matrix>& dh) {
    // BEGIN SOLUTION 2.4
    Decay d{{}, 0};
    for (const Matrix& g : dh) d.norms.push_back(length({g}));
    double n = 0, mean_k = 0, mean_y = 0, sum_ky = 0, sum_kk = 0;
    const auto each = [&](auto f) {
        for (std::size_t t = 0; t < dh.size(); ++t)
            if (d.norms[t] > 0) f(double(dh.size() - 1 - t), std::log(d.norms[t]));
    };
    each([&](double k, double y) { ++n, mean_k += k, mean_y += y; });
    mean_k /= n, mean_y /= n;
    each([&](double k, double y) { sum_ky += (k - mean_k) * (y - mean_y), sum_kk += (k - mean_k) * (k - mean_k); });
    d.slope = sum_ky / sum_kk;
    return d;
    // END SOLUTION
}

// 2.5
Spectrum spectrum(const Matrix& U) {
    // BEGIN SOLUTION 2.5
    const double norm = std::sqrt(radius(transpose(U) * U)), rho = radius(U);
    return {norm, rho, rho < 1, norm < 1};
    // END SOLUTION
}

// 2.6
Clipped clip(const std::vector<Matrix>& gradients, double most) {
    // BEGIN SOLUTION 2.6
    Clipped c{gradients, length(gradients)};
    if (c.norm > most)
        for (Matrix& g : c.gradients) g = most / c.norm * g;
    return c;
    // END SOLUTION
}

// 2.7
std::vector<Matrix> truncated(const std::vector<Matrix>& jacobian, const std::vector<Matrix>& direct,
                              std::size_t window) {
    // BEGIN SOLUTION 2.7
    std::vector<Matrix> dh = direct;
    for (std::size_t t = jacobian.size(); t-- > 0;)
        if (t == 0 || t % window != 0) dh[t] += dh[t + 1] * transpose(jacobian[t]);
    return dh;
    // END SOLUTION
}

}  // namespace lookback
