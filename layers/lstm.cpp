#include "lstm.hpp"
#include "engine/ops/activation.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/movement.hpp"

namespace lookback {

LSTM::LSTM(std::size_t inputs, std::size_t hidden, Generator& generator, const LSTMOptions& options)
    : W(cell::weights(generator, {inputs, 4 * hidden}, hidden, "W")),
      U(cell::weights(generator, {hidden, 4 * hidden}, hidden, "U")),
      b(cell::weights(generator, {4 * hidden}, hidden, "b")) {
    if (options.forget_bias)
        b.edit([&](Array& bias) { std::fill_n(bias.data() + hidden, hidden, *options.forget_bias); });
}

LSTM::LSTM(Parameter W_, Parameter U_, Parameter b_) : W(std::move(W_)), U(std::move(U_)), b(std::move(b_)) {
    cell::check_parameters("LSTM", 4, W, U, b);
}

Tensor LSTM::project(const Tensor& x) const {
    check_product("LSTM", "x", x, "W", W);
    return affine(x, W, b);
}

LSTM::State LSTM::step(const StepInput& a, const State& s) const {
    const LSTMState next = lstm_step(a, s.h, s.c, U);
    return {next.h, next.c};
}

static void check(const LSTM& lstm, const Tensor& x, const LSTM::State& s) {
    cell::check_input("LSTM", x, lstm.W);
    cell::check_state("LSTM", "h", s.h, x.shape(0), lstm.hidden());
    cell::check_state("LSTM", "c", s.c, x.shape(0), lstm.hidden());
}

LSTM::State LSTM::operator()(const Tensor& x, const State& s) const {
    check(*this, x, s);
    return step(project(x), s);
}

LSTM::State LSTM::composed(const Tensor& x, const State& s) const {
    check(*this, x, s);
    const std::size_t H = hidden();
    const std::vector<Tensor> gates = split(matmul(x, W) + matmul(s.h, U) + b, -1, {H, H, H, H});
    const Tensor i = sigmoid(gates[0]), f = sigmoid(gates[1]), g = tanh(gates[2]), o = sigmoid(gates[3]);
    const Tensor c = f * s.c + i * g;
    return {o * tanh(c), c};
}

void LSTM::for_each_parameter(const std::string& prefix, const Visitor& f) {
    f(join(prefix, "W"), W);
    f(join(prefix, "U"), U);
    f(join(prefix, "b"), b);
}

void LSTM::from_pytorch(const PyTorchWeights& weights) { cell::from_pytorch("LSTM", weights, W, U, b); }
PyTorchWeights LSTM::to_pytorch() const { return cell::to_pytorch(W, U, b); }

}  // namespace lookback
