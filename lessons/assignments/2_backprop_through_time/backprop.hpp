// Assignment 2: the functions to write, in backprop.cpp. Letters: T steps, B rows (independent sequences), I inputs, H
// hidden units. Lists are indexed by time: x[t] and h[t] are x_t and h_t.
#pragma once
#include <functional>
#include "assignment.hpp"

namespace lookback {

// 2.1   h' = tanh(x W + h U + b).   x (B,I), h (B,H), W (I,H), U (H,H), b (1,H), added to every row → (B,H)
Matrix rnn_step(const Matrix& x, const Matrix& h, const Matrix& W, const Matrix& U, const Matrix& b);

// 2.2   h_0, h_1 = step(x_0, h_0), …, h_T = step(x_{T−1}, h_{T−1}).   T inputs → T + 1 states
using Step = std::function<Matrix(const Matrix& x, const Matrix& h)>;
std::vector<Matrix> unroll(const Step& step, const std::vector<Matrix>& x, const Matrix& h0);

// 2.3   Gradients of the loss of an unrolled tanh RNN, h_{t+1} = tanh(x_t W + h_t U + b).
// x: T inputs (B,I)   h: T + 1 states (B,H)   direct: T + 1 matrices (B,H), how the loss depends on each h_t by itself,
// the other states held fixed; 0 where it does not look
struct Gradients {
    std::vector<Matrix> dh;  // ∂L/∂h_t in all, T + 1 matrices (B,H)
    Matrix dW, dU, db;       // of the shapes of W, U and b
};
Gradients backprop_through_time(const std::vector<Matrix>& x, const std::vector<Matrix>& h, const Matrix& U,
                                const std::vector<Matrix>& direct);

// 2.4   The length ‖∂L/∂h_t‖ of each gradient, and the slope of its logarithm per step BACK in time.
struct Decay {
    std::vector<double> norms;  // T + 1 of them: √ of the sum of all squares
    double slope;               // of the line fitted to ln norms[t] over T − t; norms that are 0 are left out
};
Decay decay(const std::vector<Matrix>& dh);

// 2.5   Of a recurrent matrix U: its two sizes, and what each one says of gradients far back.
struct Spectrum {
    double norm;    // the spectral norm ‖U‖: the most that U stretches any vector
    double radius;  // the spectral radius ρ(U): the largest |eigenvalue|
    // h_{t+1} = h_t U + x_t W: does ∂h_T/∂h_t vanish as T − t grows?
    bool linear_vanishes;
    // h_{t+1} = tanh(h_t U + x_t W + b): ‖∂h_{t+1}/∂h_t‖ ≤ ‖U‖, whatever x and b are. Is that bound enough to know that
    // ∂h_T/∂h_t vanishes? (Sufficient, not necessary: U = [[0, 3], [0, 0]] has norm 3 and vanishes after two steps.)
    bool norm_promises;
};
Spectrum spectrum(const Matrix& U);

// 2.6   All gradients together as one long vector g: g if ‖g‖ ≤ most, else g · most / ‖g‖.
struct Clipped {
    std::vector<Matrix> gradients;
    double norm;  // ‖g‖ as it was before
};
Clipped clip(const std::vector<Matrix>& gradients, double most);

// 2.7   ∂L/∂h_t when nothing crosses from one window of `window` steps to the one before: the step from h_t begins with
// h_t as a bare value, for each t > 0 that is a multiple of window. window ≥ 1.   direct: T + 1 rows (1,H), as in 2.3
// jacobian: T matrices (H,H), jacobian[t](i,j) = ∂h_{t+1,j} / ∂h_{t,i} → T + 1 rows (1,H)
std::vector<Matrix> truncated(const std::vector<Matrix>& jacobian, const std::vector<Matrix>& direct,
                              std::size_t window);

}  // namespace lookback
