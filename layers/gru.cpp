#include "gru.hpp"
#include "engine/ops/activation.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/movement.hpp"

namespace lookback {

GRU::GRU(std::size_t inputs, std::size_t hidden, Generator& generator, const GRUOptions& form)
    : W(cell::weights(generator, {inputs, 3 * hidden}, hidden, "W")),
      U(cell::weights(generator, {hidden, 3 * hidden}, hidden, "U")),
      b(cell::weights(generator, {3 * hidden}, hidden, "b")),
      b_n(cell::weights(generator, {hidden}, hidden, "b_n")),
      options(form) {}

GRU::GRU(Parameter W_, Parameter U_, Parameter b_, Parameter b_n_, const GRUOptions& form)
    : W(std::move(W_)), U(std::move(U_)), b(std::move(b_)), b_n(std::move(b_n_)), options(form) {
    cell::check_parameters("GRU", 3, W, U, b);
    if (b_n.shape() != Shape{hidden()})
        fail<ShapeError>("GRU", "b_n is " + text(b_n.shape()) + ", not (H) = " + text(Shape{hidden()}));
}

Tensor GRU::project(const Tensor& x) const {
    check_product("GRU", "x", x, "W", W);
    return affine(x, W, b);
}

// The equations, from a = x W + b on.
static GRU::State composed_step(const GRU& gru, const Tensor& a, const Tensor& h) {
    const std::size_t H = gru.hidden();
    const std::vector<Tensor> x = split(a, -1, {H, H, H}), U = split(a.tape().leaf(gru.U), -1, {H, H, H});
    const Tensor r = sigmoid(x[0] + matmul(h, U[0])), z = sigmoid(x[1] + matmul(h, U[1]));
    const Tensor n = gru.options.reset == ResetGate::after_product ? tanh(x[2] + r * (matmul(h, U[2]) + gru.b_n))
                                                                   : tanh(x[2] + matmul(r * h, U[2]) + gru.b_n);
    return {gru.options.update == UpdateGate::keeps ? (1 - z) * n + z * h : (1 - z) * h + z * n};
}

static bool as_in_pytorch(const GRUOptions& options) {
    return options.reset == ResetGate::after_product && options.update == UpdateGate::keeps;
}

GRU::State GRU::step(const StepInput& a, const State& s) const {
    if (as_in_pytorch(options)) return {gru_step(a, s.h, U, b_n)};
    return composed_step(*this, cell::alone(a), s.h);
}

static void check(const GRU& gru, const Tensor& x, const GRU::State& s) {
    cell::check_input("GRU", x, gru.W);
    cell::check_state("GRU", "h", s.h, x.shape(0), gru.hidden());
}

GRU::State GRU::operator()(const Tensor& x, const State& s) const {
    check(*this, x, s);
    return step(project(x), s);
}

GRU::State GRU::composed(const Tensor& x, const State& s) const {
    check(*this, x, s);
    return composed_step(*this, project(x), s.h);
}

void GRU::for_each_parameter(const std::string& prefix, const Visitor& f) {
    f(join(prefix, "W"), W);
    f(join(prefix, "U"), U);
    f(join(prefix, "b"), b);
    f(join(prefix, "b_n"), b_n);
}

static void check_form(const GRU& gru) {
    if (!as_in_pytorch(gru.options))
        fail<ValueError>("GRU", "PyTorch has the reset after the product and a z that keeps, no other form");
}

void GRU::from_pytorch(const PyTorchWeights& weights) {
    check_form(*this);
    cell::from_pytorch("GRU", weights, W, U, b);  // b is now bias_ih + bias_hh, but b_n belongs inside the reset
    const std::size_t H = hidden();
    b.edit([&](Array& bias) { std::copy_n(weights.bias_ih.data() + 2 * H, H, bias.data() + 2 * H); });
    b_n.edit([&](Array& bias) { std::copy_n(weights.bias_hh.data() + 2 * H, H, bias.data()); });
}

PyTorchWeights GRU::to_pytorch() const {
    check_form(*this);
    PyTorchWeights theirs = cell::to_pytorch(W, U, b);
    std::copy_n(b_n.value().data(), hidden(), theirs.bias_hh.data() + 2 * hidden());
    return theirs;
}

}  // namespace lookback
