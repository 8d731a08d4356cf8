// Reductions over all axes (the default), one, or several: sum(x), sum(x, -1), sum(x, {0, 2}). The reduced axes go, or
// stay with length 1 if keep_dims. Sums run in double. NaN among the reduced makes the result NaN, in every one of
// them. All throw ShapeError on an axis that is not there or is named twice.
#pragma once
#include "engine/broadcast.hpp"
#include "engine/indices.hpp"
#include "engine/tape.hpp"

namespace lookback {

// y = Σ x; of nothing 0.   x̄ += ȳ, repeated      saves nothing
Tensor sum(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);
// y = Σ x / n.   x̄ += ȳ / n, repeated      saves nothing      throws ShapeError if n = 0
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);
// y = Π x; of nothing 1.   x̄_i += ȳ Π_{j≠i} x_j, by products from both ends, never y / x_i: right with zeros
// saves x
Tensor prod(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);

// y = max x (min x).   x̄ += ȳ / k at each of the k winners      saves x, y      throws ShapeError if n = 0
Tensor max(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);
Tensor min(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);

// y = ln Σ e^x, shifted by the maximum; −∞ if all x are −∞ (gradient 0) or there are none.   x̄ += ȳ ⊙ e^(x − y)
// If some x are +∞ they share ȳ evenly, as the ties they are.      saves x, y
Tensor logsumexp(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);

// y = √Σ x².   x̄ += ȳ x / y, and 0 where y = 0      saves x, y
Tensor norm(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);

// y = Σ (x − mean)² / (n − ddof): of a population (ddof 0) or estimated from a sample (1).
// x̄ += 2 ȳ (x − mean) / (n − ddof)      saves x      throws ShapeError if n = 0, ValueError unless 0 ≤ ddof < n
Tensor variance(const Tensor& x, const Axes& axes = {}, bool keep_dims = false, int ddof = 0);

// Where along the axis the largest is: the first of equal ones; the first NaN, if there is one. Not recorded.
// throws ShapeError if the axis is empty
Indices argmax(const Tensor& x, int axis, bool keep_dims = false);

}  // namespace lookback
