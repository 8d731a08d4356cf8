#include "lessons/by_hand.hpp"
#include <cmath>

namespace lookback::by_hand {

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// a + h U, one row of n gates.
static std::vector<double> pre_activation(const Array& a, const Array& h, const Array& U) {
    const std::size_t H = U.shape(0), n = U.shape(1);
    std::vector<double> z(a.data(), a.data() + n);
    for (std::size_t i = 0; i < H; ++i)
        for (std::size_t j = 0; j < n; ++j) z[j] += double(h.data()[i]) * U(i, j);
    return z;
}

Array affine(const Array& x, const Array& W, const Array& b) {
    const std::size_t n = W.shape(1);
    Array a = Array::from_shape({1, n});
    for (std::size_t j = 0; j < n; ++j) {
        double s = b.data()[j];
        for (std::size_t i = 0; i < W.shape(0); ++i) s += double(x.data()[i]) * W(i, j);
        a(0, j) = Real(s);
    }
    return a;
}

Array rnn_jacobian(const Array& U, const Array& h_new) {
    const std::size_t H = U.shape(0);
    Array J = filled({H, H}, 0);
    for (std::size_t i = 0; i < H; ++i)
        for (std::size_t j = 0; j < H; ++j) J(i, j) = Real(U(i, j) * (1 - double(h_new.data()[j]) * h_new.data()[j]));
    return J;
}

Array lstm_jacobian(const Array& a, const Array& h, const Array& c, const Array& U) {
    const std::size_t H = U.shape(0);
    const std::vector<double> z = pre_activation(a, h, U);
    Array J = filled({2 * H, 2 * H}, 0);
    for (std::size_t j = 0; j < H; ++j) {
        const double i = sigmoid(z[j]), f = sigmoid(z[H + j]), g = std::tanh(z[2 * H + j]), o = sigmoid(z[3 * H + j]);
        const double c_new = f * c.data()[j] + i * g, t = std::tanh(c_new), through = o * (1 - t * t);
        for (std::size_t k = 0; k < H; ++k) {  // by h_k, through the four gates of unit j
            const double dc =
                U(k, j) * i * (1 - i) * g + U(k, H + j) * f * (1 - f) * c.data()[j] + U(k, 2 * H + j) * (1 - g * g) * i;
            J(k, H + j) = Real(dc);
            J(k, j) = Real(dc * through + U(k, 3 * H + j) * o * (1 - o) * t);
        }
        J(H + j, H + j) = Real(f);  // by c_j: the cell's own path
        J(H + j, j) = Real(f * through);
    }
    return J;
}

Array gru_jacobian(const Array& a, const Array& h, const Array& U, const Array& b_n) {
    const std::size_t H = U.shape(0);
    const std::vector<double> z = pre_activation(a, h, U);
    Array J = filled({H, H}, 0);
    for (std::size_t j = 0; j < H; ++j) {
        const double r = sigmoid(z[j]), keep = sigmoid(z[H + j]),
                     product = z[2 * H + j] - a.data()[2 * H + j] + b_n.data()[j];
        const double n = std::tanh(a.data()[2 * H + j] + r * product);
        for (std::size_t k = 0; k < H; ++k) {
            const double dn = (1 - n * n) * (U(k, j) * r * (1 - r) * product + r * U(k, 2 * H + j));
            J(k, j) = Real((1 - keep) * dn + (h.data()[j] - n) * keep * (1 - keep) * U(k, H + j) + (k == j ? keep : 0));
        }
    }
    return J;
}

std::vector<double> times(const Array& J, const std::vector<double>& g) {
    std::vector<double> out(J.shape(0), 0.0);
    for (std::size_t i = 0; i < out.size(); ++i)
        for (std::size_t j = 0; j < g.size(); ++j) out[i] += J(i, j) * g[j];
    return out;
}

}  // namespace lookback::by_hand
