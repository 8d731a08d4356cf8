// Gated recurrent unit, in the four forms that papers and libraries have.
#pragma once
#include "cell.hpp"

namespace lookback {

enum class ResetGate {
    after_product,  // n = tanh(a_n + r ⊙ (h U_n + b_n)): PyTorch, cuDNN
    before_product  // n = tanh(a_n + (r ⊙ h) U_n + b_n): the papers
};
enum class UpdateGate {
    keeps,    // h' = (1 − z) ⊙ n + z ⊙ h: PyTorch, Cho et al. 2014
    replaces  // h' = (1 − z) ⊙ h + z ⊙ n: Chung et al. 2014
};
struct GRUOptions {
    ResetGate reset = ResetGate::after_product;
    UpdateGate update = UpdateGate::keeps;
};

// [a_r a_z a_n] = x W + b     r = σ(a_r + h U_r)     z = σ(a_z + h U_z)     n and h' as the options say
// x (B,I), h (B,H) → h' (B,H). Gates are stacked r z n, as in PyTorch; b_n is apart because r multiplies it (with the
// reset before the product it only adds to b's last part). PyTorch's form is fused, the others run as composed().
// From the start all are uniform in ±1/√H.
// throws ShapeError if x or h does not fit, ValueError if H is 0
struct GRU {
    Parameter W, U, b, b_n;  // (I,3H)   (H,3H)   (3H)   (H)
    GRUOptions options;

    struct State {
        Tensor h;
        template <class F, class... States> State map(const F& f, const States&... others) const {
            return {f(h, others.h...)};
        }
    };
    GRU(std::size_t inputs, std::size_t hidden, Generator& generator, const GRUOptions& options = {});
    GRU(Parameter W, Parameter U, Parameter b, Parameter b_n, const GRUOptions& options = {});

    State operator()(const Tensor& x, const State& s) const;
    State composed(const Tensor& x, const State& s) const;
    Tensor project(const Tensor& x) const;
    State step(const StepInput& a, const State& s) const;
    State start(Tape& tape, std::size_t B) const { return {cell::zeros(tape, B, hidden())}; }

    std::size_t hidden() const { return U.shape()[0]; }
    void for_each_parameter(const std::string& prefix, const Visitor& f);
    // Of nn.GRU: b_n is the last part of bias_hh.   throws ShapeError; ValueError for a form that PyTorch doesn't have
    void from_pytorch(const PyTorchWeights& weights);
    PyTorchWeights to_pytorch() const;
};

}  // namespace lookback
