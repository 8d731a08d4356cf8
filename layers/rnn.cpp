#include "rnn.hpp"
#include "engine/ops/activation.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"

namespace lookback {

RNN::RNN(std::size_t inputs, std::size_t hidden, Generator& generator, const RNNOptions& options)
    : W(cell::weights(generator, {inputs, hidden}, hidden, "W")),
      U(cell::weights(generator, {hidden, hidden}, hidden, "U")),
      b(cell::weights(generator, {hidden}, hidden, "b")),
      nonlinearity(options.nonlinearity) {}

RNN::RNN(Parameter W_, Parameter U_, Parameter b_, const RNNOptions& options)
    : W(std::move(W_)), U(std::move(U_)), b(std::move(b_)), nonlinearity(options.nonlinearity) {
    cell::check_parameters("RNN", 1, W, U, b);
}

Tensor RNN::project(const Tensor& x) const {
    check_product("RNN", "x", x, "W", W);
    return affine(x, W, b);
}

static void check(const RNN& rnn, const Tensor& x, const RNN::State& s) {
    cell::check_input("RNN", x, rnn.W);
    cell::check_state("RNN", "h", s.h, x.shape(0), rnn.hidden());
}

RNN::State RNN::operator()(const Tensor& x, const State& s) const {
    check(*this, x, s);
    return step(project(x), s);
}

RNN::State RNN::composed(const Tensor& x, const State& s) const {
    check(*this, x, s);
    const Tensor a = matmul(x, W) + matmul(s.h, U) + b;
    return {nonlinearity == Nonlinearity::tanh ? tanh(a) : relu(a)};
}

void RNN::for_each_parameter(const std::string& prefix, const Visitor& f) {
    f(join(prefix, "W"), W);
    f(join(prefix, "U"), U);
    f(join(prefix, "b"), b);
}

void RNN::from_pytorch(const PyTorchWeights& weights) { cell::from_pytorch("RNN", weights, W, U, b); }
PyTorchWeights RNN::to_pytorch() const { return cell::to_pytorch(W, U, b); }

}  // namespace lookback
