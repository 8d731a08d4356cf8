#include "optimizer.hpp"
#include <cmath>
#include <numbers>
#include "engine/expression.hpp"

namespace lookback {

Schedule transformer_warm_up(std::size_t width, std::size_t warm_up, double scale) {
    if (width == 0 || warm_up == 0) fail<ValueError>("transformer_warm_up", "neither width nor warm_up may be 0");
    return Schedule([=](std::size_t step) {
        const double s = double(std::max<std::size_t>(step, 1)), w = double(warm_up);
        return scale / std::sqrt(double(width)) * std::min(1 / std::sqrt(s), s / (w * std::sqrt(w)));
    });
}

Schedule cosine(double peak, std::size_t steps, std::size_t warm_up, double floor) {
    if (warm_up >= steps)
        fail<ValueError>(
            "cosine", "a warm-up of " + std::to_string(warm_up) + " steps leaves nothing of " + std::to_string(steps));
    return Schedule([=](std::size_t step) {
        if (step < warm_up) return peak * double(step) / double(warm_up);
        const double done = double(std::min(step, steps) - warm_up) / double(steps - warm_up);
        return floor + (peak - floor) * 0.5 * (1 + std::cos(std::numbers::pi * done));
    });
}

// The largest |g| of a model. NaN would be lost by max, so each entry is asked for.
static double largest_entry(const char* op, const Parameters& model, const Gradients& gradients) {
    double largest = 0;
    for (const auto& [path, p] : model) {
        const Array& g = gradients[*p];
        if (g.shape() != p->shape())
            fail<ShapeError>(op, "the gradient of " + path + " is " + text(g.shape()) + ", not " + text(p->shape()));
        for (std::size_t i = 0; i < g.size(); ++i) {
            const double entry = std::abs(double(g.data()[i]));
            if (!std::isfinite(entry))
                fail<ValueError>(op, "the gradient of " + path + " " + text(g.shape()) + " is " +
                                         std::to_string(g.data()[i]) + " at place " + std::to_string(i));
            largest = std::max(largest, entry);
        }
    }
    return largest;
}

// The norm of all gradients as unit · root, with unit a power of 2 near the largest entry: so nothing overflows, and
// no other sum changes a bit.
struct ScaledNorm {
    double unit = 1, root = 0;
};
static ScaledNorm scaled_norm(const char* op, const Parameters& model, const Gradients& gradients) {
    const double largest = largest_entry(op, model, gradients);
    if (largest == 0) return {};
    ScaledNorm norm{std::ldexp(1, std::ilogb(largest))};
    double squares = 0;
    for (const auto& [path, p] : model) {
        const Array& g = gradients[*p];
        for (std::size_t i = 0; i < g.size(); ++i) {
            const double entry = double(g.data()[i]) / norm.unit;
            squares += entry * entry;
        }
    }
    norm.root = std::sqrt(squares);
    return norm;
}

double gradient_norm(const Parameters& model, const Gradients& gradients) {
    const auto [unit, root] = scaled_norm("gradient_norm", model, gradients);
    return unit * root;
}

double clip_by_norm(const Parameters& model, Gradients& gradients, double largest) {
    if (!(largest > 0)) fail<ValueError>("clip_by_norm", "the largest norm must be positive");
    const auto [unit, root] = scaled_norm("clip_by_norm", model, gradients);
    if (unit * root <= largest) return unit * root;
    for (const auto& [path, p] : model) {
        Array& g = gradients.edit(*p);
        for (std::size_t i = 0; i < g.size(); ++i)
            g.data()[i] = Real(double(g.data()[i]) / unit * (largest / root));  // though unit · root be infinite
    }
    return unit * root;
}

// ---- Optimizers -----------------------------------------------------------------------------------------------------

void Optimizer::step(const Parameters& model, const Gradients& gradients) {
    if (const double largest = largest_entry("optimizer", model, gradients); largest > largest_gradient())
        fail<ValueError>("optimizer", "a gradient of " + std::to_string(largest) + " has no finite square: clip it");
    const double rate = rate_(steps_ + 1);
    if (!std::isfinite(rate))
        fail<ValueError>("optimizer", "the rate of step " + std::to_string(steps_ + 1) + " is not finite");
    ++steps_;
    for (const auto& [path, p] : model) {
        if (!gradients.reached(*p)) continue;
        State& state = states_[Tensor(*p).owner()->number];
        if (state.steps++ == 0) state.m = state.v = filled(p->shape(), 0);
        const Array& g = gradients[*p];
        p->edit([&](Array& w) { update(w, g, state, rate); });
    }
}

static void check_share(const char* op, const char* name, double share) {
    if (!(share >= 0 && share < 1))
        fail<ValueError>(op, std::string(name) + " must be in [0, 1), not " + std::to_string(share));
}

SGD::SGD(Options options) : Optimizer(std::move(options.rate)), momentum_(options.momentum) {
    check_share("SGD", "momentum", momentum_);
}
void SGD::update(Array& w, const Array& g, State& state, double rate) const {
    xt::noalias(state.m) = Real(momentum_) * state.m + g;
    xt::noalias(w) -= Real(rate) * state.m;
}

Adam::Adam(Options options)
    : Optimizer(std::move(options.rate)), beta_1_(options.beta_1), beta_2_(options.beta_2), epsilon_(options.epsilon) {
    check_share("Adam", "beta_1", beta_1_);
    check_share("Adam", "beta_2", beta_2_);
    if (!(epsilon_ > 0)) fail<ValueError>("Adam", "epsilon must be positive, not " + std::to_string(epsilon_));
}
double Adam::largest_gradient() const { return std::sqrt(double(std::numeric_limits<Real>::max())); }
void Adam::update(Array& w, const Array& g, State& state, double rate) const {
    auto& [t, m, v] = state;
    xt::noalias(m) = Real(beta_1_) * m + Real(1 - beta_1_) * g;
    xt::noalias(v) = Real(beta_2_) * v + Real(1 - beta_2_) * (g * g);
    const Real step = Real(rate / (1 - std::pow(beta_1_, double(t))));  // so that step · m = η m̂
    const Real root = Real(std::sqrt(1 - std::pow(beta_2_, double(t))));
    xt::noalias(w) -= step * m / (xt::sqrt(v) / root + Real(epsilon_));
}

AdamW::AdamW(Options options)
    : Adam({std::move(options.rate), options.beta_1, options.beta_2, options.epsilon}), decay_(options.decay) {
    if (!(decay_ >= 0 && std::isfinite(decay_)))
        fail<ValueError>("AdamW", "decay must be finite and not negative: " + std::to_string(decay_));
}
void AdamW::update(Array& w, const Array& g, State& state, double rate) const {
    w *= Real(1 - rate * decay_);
    Adam::update(w, g, state, rate);
}

}  // namespace lookback
