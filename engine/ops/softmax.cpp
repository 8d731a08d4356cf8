#include "softmax.hpp"
#include "engine/blas.hpp"
#include "engine/kernels.hpp"
#include "engine/pullback.hpp"

namespace lookback {

Tensor softmax(const Tensor& x, int axis) {
    const std::size_t along = normalise_axis("softmax", axis, x.shape());
    return record(
        "softmax", {x}, softmax_along(x.value(), along), saves::output,
        [](Pullback& p) { p.x_bar(0) += softmax_pullback(p.y(), p.take_y_bar(), p.attributes<std::size_t>()); }, along);
}

Tensor log_softmax(const Tensor& x, int axis) {
    const std::size_t along = normalise_axis("log_softmax", axis, x.shape());
    return record(
        "log_softmax", {x}, log_softmax_along(x.value(), along), saves::output,
        [](Pullback& p) { p.x_bar(0) += log_softmax_pullback(p.y(), p.take_y_bar(), p.attributes<std::size_t>()); },
        along);
}

Tensor masked_softmax(const Tensor& x, const Mask& visible, int axis) {
    const std::size_t along = normalise_axis("masked_softmax", axis, x.shape());
    if (!broadcasts_to(visible.shape(), x.shape()))
        fail<ShapeError>("masked_softmax", "the mask does not broadcast to the scores: " + text(visible.shape()) +
                                               " and " + text(x.shape()));
    return record(
        "masked_softmax", {x}, masked_softmax_along(x.value(), visible, along), saves::output,
        [](Pullback& p) { p.x_bar(0) += masked_softmax_pullback(p.y(), p.take_y_bar(), p.attributes<std::size_t>()); },
        along);
}

Tensor additive_scores(const Tensor& q, const Tensor& k, const Tensor& v) {
    const std::size_t rank = q.rank();
    const auto fits = [&] {
        return rank >= 2 && k.rank() == rank && v.rank() == 1 && q.shape(-1) == v.size() && k.shape(-1) == v.size() &&
               std::equal(q.shape().begin(), q.shape().end() - 2, k.shape().begin());
    };
    if (!fits())
        fail<ShapeError>("additive_scores", "q (…,T_q,A), k (…,T_k,A) and v (A) do not fit: " + text(q.shape()) + ", " +
                                                text(k.shape()) + " and " + text(v.shape()));
    Shape pairs = q.shape();
    if (rank == max_axes)
        fail<ShapeError>("additive_scores", "at most three axes before the last two: " + text(q.shape()));
    pairs.insert_at(rank - 1, k.shape()[rank - 2]);
    checked_size("additive_scores", pairs);
    Array y = Array::from_shape(pairs), s = Array::from_shape(Shape(pairs.begin(), pairs.end() - 1));
    pair_sums(q.value(), k.value(), y);
    xt::noalias(y) = xt::tanh(y);
    gemm(s.size(), 1, v.size(), y.data(), Op::plain, v.value().data(), Op::plain, s.data(), false);
    return record("additive_scores", {q, k, v}, std::move(s), saves::input(2),
                  [](Pullback& p) {
                      const auto bar = [&](std::size_t i) { return p.needs(i) ? &p.x_bar(i).zeroed() : nullptr; };
                      additive_scores_pullback(p.kept(0), p.x(2), p.y_bar(), bar(0), bar(1), bar(2));
                  },
                  {}, {Shared(std::move(y))});
}

Attended attend(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Mask>& visible) {
    const std::size_t rank = q.rank();
    const auto fits = [&] {
        if (rank < 2 || k.rank() != rank || v.rank() != rank) return false;
        for (std::size_t axis = 0; axis + 1 < rank; ++axis) {
            if (axis + 2 < rank && q.shape()[axis] != k.shape()[axis]) return false;
            if (k.shape()[axis] != v.shape()[axis]) return false;
        }
        return q.shape()[rank - 1] == k.shape()[rank - 1];
    };
    if (!fits())
        fail<ShapeError>("attend", "q (…,T_q,D), k (…,T_k,D) and v (…,T_k,V) do not fit: " + text(q.shape()) + ", " +
                                       text(k.shape()) + " and " + text(v.shape()));
    Shape context_shape = q.shape(), shape = q.shape();
    context_shape.back() = v.shape()[rank - 1];
    shape.back() = k.shape()[rank - 2];
    if (visible && !broadcasts_to(visible->shape(), shape))
        fail<ShapeError>(
            "attend", "the mask does not broadcast to the scores: " + text(visible->shape()) + " and " + text(shape));
    checked_size("attend", shape);
    Array context = Array::from_shape(context_shape), weights = Array::from_shape(shape);
    attend(q.value(), k.value(), v.value(), visible, context, weights);
    const Shared alpha = std::move(weights);
    std::vector<Tensor> y =
        record("attend", {q, k, v}, {std::move(context), alpha}, saves::inputs,
               [](Pullback& p) {
                   std::optional<Array> bars[3];  // apart: q, k and v may be one tensor
                   const auto bar = [&](unsigned i) { return p.needs(i) ? &bars[i].emplace(p.x_shape(i)) : nullptr; };
                   attend_pullback(p.x(0), p.x(1), p.x(2), p.attributes<std::optional<Mask>>(), p.kept(0), p.y_bar(0),
                                   p.reached(1) ? &p.y_bar(1) : nullptr, bar(0), bar(1), bar(2));
                   for (unsigned i = 0; i < 3; ++i)
                       if (bars[i]) p.x_bar(i) += std::move(*bars[i]);
               },
               visible, {alpha});
    return {std::move(y[0]), std::move(y[1])};
}

namespace {
// What the loss of each row or element counts in the result.
double weight(Reduction reduction, std::size_t count) {
    return reduction == Reduction::mean && count > 0 ? 1 / double(count) : 1;
}

void check_shapes(const char* op, const Shape& a, const Shape& b, Reduction reduction) {
    if (!(a == b)) fail<ShapeError>(op, "shapes must be equal: " + text(a) + " and " + text(b));
    if (reduction == Reduction::mean && std::find(a.begin(), a.end(), 0u) != a.end())
        fail<ShapeError>(op, "the mean of nothing: " + text(a));
}

Array reduced(Array losses, Reduction reduction) {
    if (reduction == Reduction::none) return losses;
    const double sum = sum_of(losses.size(), [&](std::size_t i) { return losses.data()[i]; });
    return filled({}, Real(weight(reduction, losses.size()) * sum));
}

// What flows back into each element's loss, of shape `elements`.
Array spread(Pullback& p, const Shape& elements, std::size_t count) {
    const Reduction reduction = p.attributes<Reduction>();
    if (reduction == Reduction::none) return p.take_y_bar();
    return filled(elements, Real(weight(reduction, count) * p.y_bar()()));
}

struct CrossEntropyAttributes {
    Indices targets;
    CrossEntropy options;
    double weight;  // of each kept row
};
}  // namespace

Tensor cross_entropy(const Tensor& logits, const Indices& targets, const CrossEntropy& options) {
    const Shape& shape = logits.shape();
    if (shape.empty() || !(targets.shape() == Shape(shape.begin(), shape.end() - 1)))
        fail<ShapeError>("cross_entropy",
                         "needs a target for each row of logits: " + text(targets.shape()) + " and " + text(shape));
    if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
        fail<ValueError>("cross_entropy",
                         "label smoothing " + std::to_string(options.label_smoothing) + " is outside 0 … 1");
    std::size_t kept = 0;
    for (std::size_t r = 0; r < targets.size(); ++r) {
        if (targets[r] == options.ignore_index) continue;
        if (targets[r] < 0 || std::size_t(targets[r]) >= shape.back())
            fail<IndexError>("cross_entropy", "target " + std::to_string(targets[r]) + " at place " +
                                                  std::to_string(r) + " is outside logits of " + text(shape));
        ++kept;
    }
    const bool each = options.reduction == Reduction::none;
    const double weight_of_row = weight(options.reduction, kept);
    const Vector<double> losses =
        cross_entropy_rows(logits.value(), targets, options.ignore_index, options.label_smoothing);
    Array value = Array::from_shape(each ? targets.shape() : Shape{});
    if (each)
        std::copy(losses.begin(), losses.end(), value.data());
    else
        value() = Real(weight_of_row * sum_of(losses.size(), [&](std::size_t r) { return losses[r]; }));

    CrossEntropyAttributes attributes{targets, options, weight_of_row};
    return record(
        "cross_entropy", {logits}, std::move(value), saves::inputs,
        [](Pullback& p) {
            const auto& a = p.attributes<CrossEntropyAttributes>();
            const Array& bar = p.y_bar();
            Vector<double> weights(a.targets.size());
            for (std::size_t r = 0; r < weights.size(); ++r)
                weights[r] = a.weight * bar.data()[bar.dimension() ? r : 0];
            p.x_bar(0) +=
                cross_entropy_pullback(p.x(0), a.targets, a.options.ignore_index, a.options.label_smoothing, weights);
        },
        std::move(attributes));
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets, Reduction reduction) {
    const char* op = "binary_cross_entropy_with_logits";
    check_shapes(op, logits.shape(), targets.shape(), reduction);
    const Array &x = logits.value(), &t = targets.value();
    for (std::size_t i = 0; i < t.size(); ++i)
        if (!(t.data()[i] >= 0 && t.data()[i] <= 1))
            fail<ValueError>(
                op, "target " + std::to_string(t.data()[i]) + " at place " + std::to_string(i) + " is outside 0 … 1");
    // max(x, 0) − x t in two parts, of which a certain target leaves one out: at x = ±∞ the other is ∞
    const Array losses = xt::where(t < 1, (1 - t) * xt::maximum(x, Real(0)), Real(0)) +
                         xt::where(t > 0, t * xt::maximum(-x, Real(0)), Real(0)) + xt::log1p(xt::exp(-xt::abs(x)));
    return record(
        op, {logits, targets}, reduced(losses, reduction), saves::inputs,
        [](Pullback& p) {
            const Array bar = spread(p, p.x(0).shape(), p.x(0).size());
            p.x_bar(0) += chain(bar, 1 / (1 + xt::exp(-p.x(0))) - p.x(1));
            p.x_bar(1) += chain(bar, -p.x(0));
        },
        reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Array& targets, Reduction reduction) {
    return binary_cross_entropy_with_logits(logits, logits.tape().constant(targets), reduction);
}

Tensor mse(const Tensor& a, const Tensor& b, Reduction reduction) {
    check_shapes("mse", a.shape(), b.shape(), reduction);
    return record(
        "mse", {a, b}, reduced(xt::square(a.value() - b.value()), reduction), saves::inputs,
        [](Pullback& p) {
            const Array bar = spread(p, p.x(0).shape(), p.x(0).size());
            p.x_bar(0) += chain(bar, 2 * (p.x(0) - p.x(1)));
            p.x_bar(1) += chain(bar, 2 * (p.x(1) - p.x(0)));
        },
        reduction);
}

}  // namespace lookback
