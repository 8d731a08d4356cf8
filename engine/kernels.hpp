// Plain loops over contiguous memory, for what moves data along an axis: there xtensor walks element by element and is
// 5 to 180 times slower. (Elementwise work stays xtensor expressions in ops/, where it equals a plain loop.)
#pragma once
#include <array>
#include <optional>
#include "array.hpp"
#include "broadcast.hpp"
#include "indices.hpp"

namespace lookback {

// How memory lies around one axis (or several adjacent ones): element (o, j, i) is at (o * n + j) * inner + i.
struct Layout {
    std::size_t outer, n, inner;
};
Layout around(const Shape& shape, std::size_t axis);

// Folds n terms in 16 independent lanes: vectorises, and rounds less than one running sum would. Sums run in double in
// both builds: a float sum of ones stalls at 2^24.
template <class T, class Term, class Join> T lanes(std::size_t n, T start, Term term, Join join) {
    T lane[16];
    std::fill(lane, lane + 16, start);
    std::size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (std::size_t j = 0; j < 16; ++j) lane[j] = join(lane[j], term(i + j));
    for (; i < n; ++i) lane[i % 16] = join(lane[i % 16], term(i));
    for (std::size_t width = 8; width; width /= 2)
        for (std::size_t j = 0; j < width; ++j) lane[j] = join(lane[j], lane[j + width]);
    return lane[0];
}
template <class Term> double sum_of(std::size_t n, Term term) {
    return lanes(
        n, 0.0, [&](std::size_t i) { return double(term(i)); }, [](double a, double b) { return a + b; });
}

// ---- arithmetic, activation and reduce

// The chain rule of an elementwise op: ȳ ⊙ slope, and 0 where ȳ is 0, whatever the slope. So infinities and NaN of a
// branch that `where` did not take stay there: where(x > 0, x log x, 0) has a gradient at 0.
Array chain(const Array& y_bar, const Array& slope);
Array chain(const Array& y_bar, Array&& slope);                  // in place
Array chain_quotient(const Array& y_bar, const Array& divisor);  // for a slope of 1 / divisor, which may overflow alone

// Reductions: x lies as (outer, n, inner), y of the given shape as (outer, inner). The pullbacks write or add x̄.
Array sum_along(const Array& x, const Layout& at, const Shape& shape, double factor = 1);
void repeat_along(const Array& y_bar, const Layout& at, double factor, Target x_bar);
Array prod_along(const Array& x, const Layout& at, const Shape& shape);
void prod_pullback(const Array& x, const Array& y_bar, const Layout& at, Target x_bar);
Array max_along(const Array& x, const Layout& at, const Shape& shape);
Array min_along(const Array& x, const Layout& at, const Shape& shape);
void winners_pullback(const Array& x, const Array& y, const Array& y_bar, const Layout& at, Target x_bar);
Array logsumexp_along(const Array& x, const Layout& at, const Shape& shape);
void logsumexp_pullback(const Array& x, const Array& y, const Array& y_bar, const Layout& at, Target x_bar);
Array norm_along(const Array& x, const Layout& at, const Shape& shape);
void norm_pullback(const Array& x, const Array& y, const Array& y_bar, const Layout& at, Target x_bar);
Array variance_along(const Array& x, const Layout& at, const Shape& shape, double divisor);
void variance_pullback(const Array& x, const Array& y_bar, const Layout& at, double divisor, Target x_bar);
std::vector<std::int64_t> argmax_along(const Array& x, const Layout& at);

// ---- movement and gather

// Some entries along one axis of a whole: `count` of them from `start`, `step` apart, each with all of its inner part.
struct Part {
    Layout whole;
    std::size_t start, count;
    std::ptrdiff_t step = 1;
};
void read_part(const Array& whole, const Part& part, Target to);     // to (+)= whole[…, start::step, …]
void write_part(const Array& from, const Part& part, Target whole);  // whole[…, start::step, …] (+)= from

using AxisOrder = std::array<std::uint8_t, max_axes>;  // axis k of the result is axis order[k]
void permute(const Array& x, const AxisOrder& order, Target y);

void gather_rows(const Array& table, const Indices& ids, Array& y);           // y[i] = table[ids[i]]
void scatter_add_rows(const Array& y_bar, const Indices& ids, Array& table);  // table[ids[i]] += ȳ[i]
void gather(const Array& x, std::size_t axis, const Indices& ids, Array& y);  // y[…, j, …] = x[…, ids[…, j, …], …]
void scatter_add(const Array& y_bar, std::size_t axis, const Indices& ids, Array& x);

// ---- recurrent and regularise

// Rows of activated gates: on entry a + h U, on return [i f g o]; and h', c'.
void lstm_gates(Array& gates, const Array& c, Array& h_new, Array& c_new);
// The pre-activations' cotangent into s_bar; c_bar holds c̄' on entry and c̄ on return.
void lstm_gates_pullback(const Array& gates, const Array& c, const Array& c_new, const Array& h_bar, Array& c_bar,
                         Array& s_bar);
// gates: on entry a, on return [r z n]; product is h U, q = h U_n + b_n.
void gru_gates(Array& gates, const Array& product, const Array& b_n, const Array& h, Array& q, Array& h_new);
// Cotangents of a, of h U and of q; h_bar holds h̄' on entry and on return its part past the product, h̄' ⊙ z.
void gru_gates_pullback(const Array& gates, const Array& q, const Array& h, Array& h_bar, Array& a_bar,
                        Array& product_bar, Array& q_bar);

// statistics: each row's mean and 1/√(variance + eps)
void layer_norm_rows(const Array& x, const Array& gain, const Array& bias, Real eps, Array& y, Array& statistics);
void layer_norm_rows_pullback(const Array& x, const Array& gain, const Array& statistics, const Array& y_bar,
                              Array* x_bar, Array& gain_bar, Array& bias_bar);  // x_bar may be null

// ---- softmax and cross-entropy

Array softmax_along(const Array& x, std::size_t axis);
Array masked_softmax_along(const Array& x, const Mask& visible, std::size_t axis);  // the mask broadcasts to x
Array log_softmax_along(const Array& x, std::size_t axis);
Array softmax_pullback(const Array& y, Array y_bar, std::size_t axis);  // x̄, in place of ȳ
Array masked_softmax_pullback(const Array& y, Array y_bar, std::size_t axis);
Array log_softmax_pullback(const Array& y, Array y_bar, std::size_t axis);
// −Σ t log softmax(x) for each row of the last axis, where t is the target smoothed by ε; 0 where it is `ignored`.
Vector<double> cross_entropy_rows(const Array& x, const Indices& targets, std::int64_t ignored, double smoothing);
// weight · (softmax(x) − t) for each row; 0 where it is ignored.
Array cross_entropy_pullback(const Array& x, const Indices& targets, std::int64_t ignored, double smoothing,
                             const Vector<double>& weights);

// The pairs of an additive score: y[…, i, j, :] = q[…, i, :] + k[…, j, :].
void pair_sums(const Array& q, const Array& k, Array& y);
// For s = y · v with y = tanh of such pairs: adds to those of q_bar, k_bar, v_bar that are not null. One pass over y,
// which is the largest array of a decoder: as ops of their own the product, tanh and the two sums make it five.
void additive_scores_pullback(const Array& y, const Array& v, const Array& s_bar, Array* q_bar, Array* k_bar,
                              Array* v_bar);

// Attention of every head, a block of queries at a time: its scores never leave the cache, and keys that its mask hides
// to the end are not multiplied. The scores of a whole batch would be written and read five times instead.
//   q (…,T_q,D)   k (…,T_k,D)   v (…,T_k,V) → context (…,T_q,V), weights (…,T_q,T_k)   no mask: all is visible
void attend(const Array& q, const Array& k, const Array& v, const std::optional<Mask>& visible, Array& context,
            Array& weights);
// Writes those of q_bar, k_bar, v_bar that are not null. weights_bar may be null: nothing flowed in.
void attend_pullback(const Array& q, const Array& k, const Array& v, const std::optional<Mask>& visible,
                     const Array& weights, const Array& context_bar, const Array* weights_bar, Array* q_bar,
                     Array* k_bar, Array* v_bar);

}  // namespace lookback
