// The recurrent cell: h' = tanh(x W + h U + b).
#pragma once
#include "cell.hpp"

namespace lookback {

struct RNNOptions {
    Nonlinearity nonlinearity = Nonlinearity::tanh;
};

// h' = tanh(x W + h U + b), or relu.   x (B,I), h (B,H) → h' (B,H)
// From the start all are uniform in ±1/√H; see init.hpp for orthogonal and identity U.
// throws ShapeError if x or h does not fit, ValueError if H is 0      Elman 1990
struct RNN {
    Parameter W, U, b;  // (I,H)   (H,H)   (H)
    Nonlinearity nonlinearity;

    struct State {
        Tensor h;
        template <class F, class... States> State map(const F& f, const States&... others) const {
            return {f(h, others.h...)};
        }
    };
    RNN(std::size_t inputs, std::size_t hidden, Generator& generator, const RNNOptions& options = {});
    RNN(Parameter W, Parameter U, Parameter b, const RNNOptions& options = {});

    State operator()(const Tensor& x, const State& s) const;
    State composed(const Tensor& x, const State& s) const;
    Tensor project(const Tensor& x) const;
    State step(const StepInput& a, const State& s) const { return {rnn_step(a, s.h, U, nonlinearity)}; }
    State start(Tape& tape, std::size_t B) const { return {cell::zeros(tape, B, hidden())}; }

    std::size_t hidden() const { return U.shape()[0]; }
    void for_each_parameter(const std::string& prefix, const Visitor& f);
    void from_pytorch(const PyTorchWeights& weights);  // of nn.RNN      throws ShapeError
    PyTorchWeights to_pytorch() const;
};

}  // namespace lookback
