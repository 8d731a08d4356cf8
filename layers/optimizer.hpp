// How gradients change weights. A step of training:
//   Gradients gradients = tape.backward(loss);
//   clip_by_norm(model, gradients, 1);
//   adam.step(model, gradients);
// A NaN or ∞ is an error that names its parameter, thrown before the first weight changes.
#pragma once
#include <concepts>
#include <functional>
#include <limits>
#include <unordered_map>
#include "parameters.hpp"

namespace lookback {

// The learning rate of each step, the first of which is 1. A number is a schedule that stays.
class Schedule {
public:
    template <std::convertible_to<double> Number>
    Schedule(Number rate) : rate_([rate = double(rate)](std::size_t) { return rate; }) {}
    explicit Schedule(std::function<double(std::size_t)> rate) : rate_(std::move(rate)) {
        if (!rate_) fail<ValueError>("schedule", "the function is empty");
    }
    double operator()(std::size_t step) const { return rate_(step); }

private:
    std::function<double(std::size_t)> rate_;
};

// scale · width^−½ · min(step^−½, step · warm_up^−3/2): rises in proportion to the step, then falls as its root.
// The peak, at step = warm_up, is scale / √(width · warm_up).
// throws ValueError if width or warm_up is 0      Vaswani et al. 2017, eq. 3
Schedule transformer_warm_up(std::size_t width, std::size_t warm_up = 4000, double scale = 1);

// Rises in proportion to the step up to `peak` at step warm_up, then falls as half a cosine wave to `floor` at step
// `steps`, where it stays.   floor + (peak − floor) · ½ (1 + cos π (step − warm_up) / (steps − warm_up))
// throws ValueError unless warm_up < steps      Loshchilov & Hutter 2017 (SGDR), eq. 5, without restarts
Schedule cosine(double peak, std::size_t steps, std::size_t warm_up = 0, double floor = 0);

// ‖g‖ = √Σ g² over all of a model's gradients, as one vector.
// throws ValueError naming the parameter whose gradient is not finite
double gradient_norm(const Parameters& model, const Gradients& gradients);

// If ‖g‖ > largest, all gradients are multiplied by largest / ‖g‖: the direction stays. Returns ‖g‖ as it was.
// throws ValueError as gradient_norm does, or if `largest` is not positive: the gradients are then as they were
// Pascanu, Mikolov & Bengio 2013, alg. 1
double clip_by_norm(const Parameters& model, Gradients& gradients, double largest);

// What SGD and Adam share. Parameters that the loss does not depend on keep their value, and do not count a step.
// What is remembered of a parameter belongs to the parameter, wherever it is moved; a clone begins anew.
class Optimizer {
public:
    virtual ~Optimizer() = default;
    // throws ValueError on a gradient that is not finite (naming its parameter) or too large: no weight has then changed
    void step(const Parameters& model, const Gradients& gradients);
    std::size_t steps() const { return steps_; }
    double rate() const { return rate_(steps_ + 1); }  // of the next step

protected:
    struct State {
        std::size_t steps = 0;  // of this parameter, the current one included
        Array m, v;             // first used at the parameter's shape, zero
    };
    explicit Optimizer(Schedule rate) : rate_(std::move(rate)) {}
    virtual void update(Array& w, const Array& g, State& state, double rate) const = 0;
    virtual double largest_gradient() const { return std::numeric_limits<double>::infinity(); }  // that it can take

private:
    Schedule rate_;
    std::size_t steps_ = 0;
    std::unordered_map<std::uint64_t, State> states_;  // by the parameter's number
};

// m ← μ m + g     w ← w − η m
// throws ValueError unless 0 ≤ μ < 1      Polyak 1964, in PyTorch's form: η is outside of m
class SGD : public Optimizer {
public:
    struct Options {
        Schedule rate = 0.01;  // η
        double momentum = 0;   // μ
    };
    explicit SGD(Options options);

private:
    void update(Array& w, const Array& g, State& state, double rate) const override;
    double momentum_;
};

// m ← β₁ m + (1 − β₁) g     v ← β₂ v + (1 − β₂) g²     w ← w − η m̂ / (√v̂ + ε)
// with m̂ = m / (1 − β₁ᵗ), v̂ = v / (1 − β₂ᵗ): the means of the t gradients so far, which began at 0.
// t counts the parameter's own steps; ε is outside of the root and of the correction, as in PyTorch.
// throws ValueError unless 0 ≤ β < 1 and ε > 0      Kingma & Ba 2015, alg. 1
class Adam : public Optimizer {
public:
    struct Options {
        Schedule rate = 0.001;                // η
        double beta_1 = 0.9, beta_2 = 0.999;  // β
        double epsilon = 1e-8;                // ε
    };
    explicit Adam(Options options);

protected:
    void update(Array& w, const Array& g, State& state, double rate) const override;
    double largest_gradient() const override;  // whose square is finite

private:
    double beta_1_, beta_2_, epsilon_;
};

// w ← (1 − η λ) w before each step of Adam: the decay is not divided by √v̂, as that of a squared-weights loss would be.
// throws ValueError as Adam, and unless λ ≥ 0      Loshchilov & Hutter 2019, alg. 2
class AdamW : public Adam {
public:
    struct Options {
        Schedule rate = 0.001;
        double beta_1 = 0.9, beta_2 = 0.999;
        double epsilon = 1e-8;
        double decay = 0.01;  // λ
    };
    explicit AdamW(Options options);

private:
    void update(Array& w, const Array& g, State& state, double rate) const override;
    double decay_;
};

}  // namespace lookback
