// Softmax, attention and the losses. The axis is always named: a softmax over queries instead of keys trains too, and
// is wrong. Every loss is a mean unless told otherwise, demands equal shapes, never broadcasts, and sums in double; in its
// pullback, w is 1/n for a mean (of the n that are kept), else 1.
#pragma once
#include <optional>
#include "engine/indices.hpp"
#include "engine/tape.hpp"

namespace lookback {

// y = e^x / Σ e^x along the axis, shifted by the largest x, so that nothing overflows.   any → same
// x̄ += y ⊙ (ȳ − Σ ȳ ⊙ y)   saves y
// A row of −∞ alone is 0/0: NaN. masked_softmax is the one to hide a whole row with.
// throws ShapeError on an axis outside
Tensor softmax(const Tensor& x, int axis);

// y = x − log Σ e^x along the axis, shifted likewise.   any → same   x̄ += ȳ − e^y Σ ȳ   saves y
// throws ShapeError on an axis outside
Tensor log_softmax(const Tensor& x, int axis);

// softmax among the visible entries: hidden ones, whatever they hold, are left out of the maximum and of the sum, and
// y and x̄ are exactly 0 there. Where nothing along the axis is visible, all of y and x̄ is 0, never NaN.
// x: any   visible: broadcasts to x, as (B,1,T) to (B,T,T)   x̄ += y ⊙ (ȳ − Σ ȳ ⊙ y)   saves y
// throws ShapeError on an axis outside, or a mask that does not broadcast to x
Tensor masked_softmax(const Tensor& x, const Mask& visible, int axis);

// s_ij = v · tanh(q_i + k_j): how well each query fits each key, by the additive score.
// q: (…,T_q,A)   k: (…,T_k,A)   v: (A) → (…,T_q,T_k)   The leading axes are equal, at most three.
// with y = tanh(q_i + k_j) and z̄_ij = s̄_ij v ⊙ (1 − y²):   q̄_i += Σ_j z̄_ij   k̄_j += Σ_i z̄_ij   v̄ += Σ s̄_ij y
// saves y (…,T_q,T_k,A), v
// throws ShapeError if the operands do not fit
// Bahdanau et al. 2015, app. A.1.2
Tensor additive_scores(const Tensor& q, const Tensor& k, const Tensor& v);

struct Attended {
    Tensor context, weights;
};

// Dot-product attention in one op: α = softmax(q kᵀ) among the visible keys, c = α v. To scale, scale q.
// q: (…,T_q,D)   k: (…,T_k,D)   v: (…,T_k,V)   visible: broadcasts to (…,T_q,T_k) → context (…,T_q,V), α (…,T_q,T_k)
// ᾱ = its own cotangent + c̄ vᵀ   s̄ = α ⊙ (ᾱ − Σ ᾱ ⊙ α)   q̄ += s̄ k   k̄ += s̄ᵀ q   v̄ += αᵀ c̄
// saves q, k, v, α
// The same as matmul, masked_softmax and matmul, which write the scores of all heads to memory; this does not.
// A weight of 0 times a value that is NaN or infinite is NaN, as in a product.
// throws ShapeError if the operands or the mask do not fit
// Vaswani et al. 2017, § 3.2.1
Attended attend(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Mask>& visible = {});

enum class Reduction { mean, sum, none };  // of the losses of single rows or elements

struct CrossEntropy {
    std::int64_t ignore_index = -100;  // rows with this target count neither in the sum nor in the mean's divisor
    Real label_smoothing = 0;          // ε: the target's share is 1 − ε + ε/V, every other's ε/V
    Reduction reduction = Reduction::mean;
};

// L = − Σ_v t_v log softmax(x)_v, where t is the smoothed one-hot target.
// logits x: (…,V)   targets: (…)   L: (), or (…) if not reduced
// x̄ += w L̄ (softmax(x) − t), and 0 in ignored rows   saves x
// The mean over no rows (all ignored, or none given) is 0, and so is its gradient.
// throws ShapeError unless targets has the shape of the rows; IndexError on a target that is neither in 0 … V−1 nor
//   ignore_index; ValueError on smoothing outside 0 … 1
Tensor cross_entropy(const Tensor& logits, const Indices& targets, const CrossEntropy& options = {});

// L = max(x, 0) − x t + log(1 + e^−|x|), which is −t log σ(x) − (1 − t) log σ(−x).
// logits x, targets t: equal shapes   L: (), or theirs if not reduced
// x̄ += w L̄ (σ(x) − t)   t̄ −= w L̄ x   saves x, t
// throws ShapeError on unequal shapes, or the mean of nothing; ValueError on a target outside 0 … 1
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets,
                                        Reduction reduction = Reduction::mean);
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Array& targets,
                                        Reduction reduction = Reduction::mean);

// L = (a − b)².   a, b: equal shapes   L: (), or theirs if not reduced
// ā += 2 w L̄ (a − b)   b̄ −= the same   saves a, b
// throws ShapeError on unequal shapes, or the mean of nothing
Tensor mse(const Tensor& a, const Tensor& b, Reduction reduction = Reduction::mean);

}  // namespace lookback
