#include "reduce.hpp"
#include "engine/kernels.hpp"
#include "engine/pullback.hpp"

namespace lookback {
namespace {

// How a reduction sees its input: as (outer, n, inner), to be reduced over n. Where the reduced axes are not adjacent
// it sees a copy with them moved to the end (and saves that instead of x, so that the pullback need not move it again).
struct Plan {
    Shape seen, y;  // shapes
    Layout at{1, 1, 1};
    AxisOrder order{};  // axis k of what is seen is axis order[k] of x
    bool moves = false;
    double divisor = 1;  // of a mean, of a variance

    Plan(const char* op, const Shape& x, const Axes& axes, bool keep_dims) : seen(x) {
        const auto reduced = axes.flags(op, x);
        for (std::size_t k = 0; k < x.size(); ++k) {
            if (!reduced[k]) y.push_back(x[k]);
            if (reduced[k] && keep_dims) y.push_back(1);
            if (x[k] == 1) continue;  // adjacent to anything
            if (reduced[k]) moves |= at.inner != 1;
            (reduced[k] ? at.n : at.n == 1 ? at.outer : at.inner) *= x[k];
        }
        divisor = double(at.n);
        if (!moves) return;
        at = {at.outer * at.inner, at.n, 1};
        seen.resize(0);
        for (bool last : {false, true})
            for (std::size_t k = 0; k < x.size(); ++k)
                if (reduced[k] == last) {
                    order[seen.size()] = std::uint8_t(k);
                    seen.push_back(x[k]);
                }
    }

    Shared see(const Tensor& x) const {
        if (!moves) return x.shared();
        Array copy = Array::from_shape(seen);
        permute(x.value(), order, {copy, false});
        return copy;
    }

    void need_elements(const char* op, const Tensor& x) const {
        if (at.n == 0) fail<ShapeError>(op, "of no elements: " + text(x.shape()));
    }
};

// Lets `write` make x̄ in the order that the plan saw x in.
template <class Write> void pull(Pullback& p, Write write) {
    if (!p.needs(0)) return;
    const Plan& plan = p.attributes<Plan>();
    if (!plan.moves) return write(plan, p.x_bar(0).target());
    Array moved = Array::from_shape(plan.seen);
    write(plan, Target{moved, false});
    AxisOrder back{};
    for (std::size_t k = 0; k < plan.seen.size(); ++k) back[plan.order[k]] = std::uint8_t(k);
    permute(moved, back, p.x_bar(0).target());
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, bool keep_dims) {
    const Plan plan("sum", x.shape(), axes, keep_dims);
    return record(
        "sum", {x}, sum_along(*plan.see(x), plan.at, plan.y), saves::nothing,
        [](Pullback& p) {
            pull(p, [&](const Plan& plan, Target x_bar) { repeat_along(p.y_bar(), plan.at, 1, x_bar); });
        },
        plan);
}

Tensor mean(const Tensor& x, const Axes& axes, bool keep_dims) {
    const Plan plan("mean", x.shape(), axes, keep_dims);
    plan.need_elements("mean", x);
    return record(
        "mean", {x}, sum_along(*plan.see(x), plan.at, plan.y, 1 / plan.divisor), saves::nothing,
        [](Pullback& p) {
            pull(p, [&](const Plan& plan, Target x_bar) { repeat_along(p.y_bar(), plan.at, 1 / plan.divisor, x_bar); });
        },
        plan);
}

Tensor prod(const Tensor& x, const Axes& axes, bool keep_dims) {
    const Plan plan("prod", x.shape(), axes, keep_dims);
    const Shared seen = plan.see(x);
    return record(
        "prod", {x}, prod_along(*seen, plan.at, plan.y), saves::nothing,
        [](Pullback& p) {
            pull(p, [&](const Plan& plan, Target x_bar) { prod_pullback(p.kept(0), p.y_bar(), plan.at, x_bar); });
        },
        plan, {seen});
}

static void pull_winners(Pullback& p) {
    pull(p, [&](const Plan& plan, Target x_bar) { winners_pullback(p.kept(0), p.y(), p.y_bar(), plan.at, x_bar); });
}

Tensor max(const Tensor& x, const Axes& axes, bool keep_dims) {
    const Plan plan("max", x.shape(), axes, keep_dims);
    plan.need_elements("max", x);
    const Shared seen = plan.see(x);
    return record("max", {x}, max_along(*seen, plan.at, plan.y), saves::output, pull_winners, plan, {seen});
}

Tensor min(const Tensor& x, const Axes& axes, bool keep_dims) {
    const Plan plan("min", x.shape(), axes, keep_dims);
    plan.need_elements("min", x);
    const Shared seen = plan.see(x);
    return record("min", {x}, min_along(*seen, plan.at, plan.y), saves::output, pull_winners, plan, {seen});
}

Tensor logsumexp(const Tensor& x, const Axes& axes, bool keep_dims) {
    const Plan plan("logsumexp", x.shape(), axes, keep_dims);
    const Shared seen = plan.see(x);
    return record("logsumexp", {x}, logsumexp_along(*seen, plan.at, plan.y), saves::output,
                  [](Pullback& p) {
                      pull(p, [&](const Plan& plan, Target x_bar) {
                          logsumexp_pullback(p.kept(0), p.y(), p.y_bar(), plan.at, x_bar);
                      });
                  },
                  plan, {seen});
}

Tensor norm(const Tensor& x, const Axes& axes, bool keep_dims) {
    const Plan plan("norm", x.shape(), axes, keep_dims);
    const Shared seen = plan.see(x);
    return record("norm", {x}, norm_along(*seen, plan.at, plan.y), saves::output,
                  [](Pullback& p) {
                      pull(p, [&](const Plan& plan, Target x_bar) {
                          norm_pullback(p.kept(0), p.y(), p.y_bar(), plan.at, x_bar);
                      });
                  },
                  plan, {seen});
}

Tensor variance(const Tensor& x, const Axes& axes, bool keep_dims, int ddof) {
    Plan plan("variance", x.shape(), axes, keep_dims);
    plan.need_elements("variance", x);
    if (ddof < 0 || std::size_t(ddof) >= plan.at.n)
        fail<ValueError>("variance", "ddof " + std::to_string(ddof) + " of " + std::to_string(plan.at.n) +
                                         " elements: " + text(x.shape()));
    plan.divisor -= ddof;
    const Shared seen = plan.see(x);
    return record("variance", {x}, variance_along(*seen, plan.at, plan.y, plan.divisor), saves::nothing,
                  [](Pullback& p) {
                      pull(p, [&](const Plan& plan, Target x_bar) {
                          variance_pullback(p.kept(0), p.y_bar(), plan.at, plan.divisor, x_bar);
                      });
                  },
                  plan, {seen});
}

Indices argmax(const Tensor& x, int axis, bool keep_dims) {
    const Plan plan("argmax", x.shape(), axis, keep_dims);
    plan.need_elements("argmax", x);
    return Indices(plan.y, argmax_along(x.value(), plan.at));
}

}  // namespace lookback
