#include "attention.hpp"
#include "check.hpp"
#include "engine/ops/activation.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/movement.hpp"
#include "engine/ops/softmax.hpp"
#include "init.hpp"

namespace lookback {

namespace {

Parameter uniform(const char* layer, const char* name, const Shape& shape, std::size_t fan_in, Generator& generator) {
    if (fan_in == 0 || checked_size(layer, shape) == 0)
        fail<ValueError>(layer, std::string("no width may be 0: ") + name + " " + text(shape));
    return Parameter(init::uniform_by_fan(generator, shape, fan_in), name);
}

void check_matrix(const char* layer, const char* name, const Parameter& W) {
    if (W.shape().size() != 2) fail<ShapeError>(layer, std::string(name) + " must have two axes: " + text(W.shape()));
}

// W (…,A) against v (A).
void check_read_out(const char* layer, const char* name, const Parameter& W, const Parameter& v) {
    check_matrix(layer, name, W);
    if (v.shape() != Shape{W.shape()[1]})
        fail<ShapeError>(layer,
                         std::string("v ") + text(v.shape()) + " does not match " + name + " " + text(W.shape()));
}

void check_same_width(const char* layer, const Tensor& query, const Tensor& keys) {
    if (query.rank() == 0 || keys.rank() == 0 || query.shape(-1) != keys.shape(-1))
        fail<ShapeError>(layer,
                         "query " + text(query.shape()) + " and keys " + text(keys.shape()) + " differ in width");
}

}  // namespace

Tensor DotScore::operator()(const Tensor& query, const Tensor& keys) const {
    check_same_width(name(), query, keys);
    return matmul_transposed(query, keys);
}

Tensor ScaledDotScore::operator()(const Tensor& query, const Tensor& keys) const {
    check_same_width(name(), query, keys);
    return matmul_transposed(query * scale(query), keys);  // the query is smaller than the scores
}
Real ScaledDotScore::scale(const Tensor& query) { return Real(1 / std::sqrt(std::max(1.0, double(query.shape(-1))))); }

BilinearScore::BilinearScore(std::size_t Q, std::size_t K, Generator& generator)
    : BilinearScore(uniform("BilinearScore", "W", {Q, K}, K, generator)) {}
BilinearScore::BilinearScore(Parameter W_) : W(std::move(W_)) { check_matrix(name(), "W", W); }
Tensor BilinearScore::project(const Tensor& keys) const {
    check_width(name(), "keys", keys.shape(), W.shape()[1], "W", W.shape());
    return matmul_transposed(keys, W);
}
Tensor BilinearScore::operator()(const Tensor& query, const Tensor& projected_keys) const {
    check_product(name(), "query", query, "W", W);
    return matmul_transposed(query, projected_keys);
}
void BilinearScore::for_each_parameter(const std::string& prefix, const Visitor& f) { f(join(prefix, "W"), W); }

AdditiveScore::AdditiveScore(std::size_t Q, std::size_t K, std::size_t A, Generator& generator)
    : AdditiveScore(uniform("AdditiveScore", "W_q", {Q, A}, Q, generator),
                    uniform("AdditiveScore", "W_k", {K, A}, K, generator),
                    uniform("AdditiveScore", "v", {A}, A, generator)) {}
AdditiveScore::AdditiveScore(Parameter W_q_, Parameter W_k_, Parameter v_)
    : W_q(std::move(W_q_)), W_k(std::move(W_k_)), v(std::move(v_)) {
    check_read_out(name(), "W_q", W_q, v);
    check_read_out(name(), "W_k", W_k, v);
}
Tensor AdditiveScore::project(const Tensor& keys) const {
    check_product(name(), "keys", keys, "W_k", W_k);
    return matmul(keys, W_k);
}
Tensor AdditiveScore::operator()(const Tensor& query, const Tensor& projected_keys) const {
    check_product(name(), "query", query, "W_q", W_q);
    return additive_scores(matmul(query, W_q), projected_keys, v);
}
void AdditiveScore::for_each_parameter(const std::string& prefix, const Visitor& f) {
    f(join(prefix, "W_q"), W_q);
    f(join(prefix, "W_k"), W_k);
    f(join(prefix, "v"), v);
}

ConcatScore::ConcatScore(std::size_t Q_, std::size_t K, std::size_t A, Generator& generator)
    : ConcatScore(uniform("ConcatScore", "W", {Q_ + K, A}, Q_ + K, generator),
                  uniform("ConcatScore", "v", {A}, A, generator), Q_) {}
ConcatScore::ConcatScore(Parameter W_, Parameter v_, std::size_t Q_) : W(std::move(W_)), v(std::move(v_)), Q(Q_) {
    check_read_out(name(), "W", W, v);
    if (Q > W.shape()[0])
        fail<ShapeError>(name(), "W " + text(W.shape()) + " has no " + std::to_string(Q) + " rows for the query");
}
Tensor ConcatScore::project(const Tensor& keys) const {
    check_width(name(), "keys", keys.shape(), W.shape()[0] - Q, "the lower rows of W", W.shape());
    return matmul(keys, slice(keys.tape().leaf(W), 0, std::int64_t(Q), end));
}
Tensor ConcatScore::operator()(const Tensor& query, const Tensor& projected_keys) const {
    check_width(name(), "query", query.shape(), Q, "the upper rows of W", W.shape());
    return additive_scores(matmul(query, slice(query.tape().leaf(W), 0, 0, std::int64_t(Q))), projected_keys, v);
}
void ConcatScore::for_each_parameter(const std::string& prefix, const Visitor& f) {
    f(join(prefix, "W"), W);
    f(join(prefix, "v"), v);
}

LocationScore::LocationScore(std::size_t Q, std::size_t T_max, Generator& generator)
    : LocationScore(uniform("LocationScore", "W", {Q, T_max}, Q, generator)) {}
LocationScore::LocationScore(Parameter W_) : W(std::move(W_)) { check_matrix(name(), "W", W); }
Tensor LocationScore::operator()(const Tensor& query, const Tensor& keys) const {
    check_product(name(), "query", query, "W", W);
    if (keys.shape(-2) > W.shape()[1])
        fail<ShapeError>(name(), "keys " + text(keys.shape()) + " are more than the places of W " + text(W.shape()));
    return matmul(query, slice(query.tape().leaf(W), 1, 0, std::int64_t(keys.shape(-2))));
}
void LocationScore::for_each_parameter(const std::string& prefix, const Visitor& f) { f(join(prefix, "W"), W); }

Tensor attention_weights(const Tensor& scores, const std::optional<Mask>& visible) {
    return visible ? masked_softmax(scores, *visible, -1) : softmax(scores, -1);
}

Memory Attention::remember(const Tensor& keys, const Tensor& values, const std::optional<Mask>& visible) const {
    if (keys.rank() != 3 || values.rank() != 3 || keys.shape(0) != values.shape(0) || keys.shape(1) != values.shape(1))
        fail<ShapeError>(score->name(), "keys must be (B,T_k,K) and values (B,T_k,D): " + text(keys.shape()) + " and " +
                                            text(values.shape()));
    return {score->project(keys), values, visible};
}

// The scores of a query (B,T_q,Q) against a memory, and the mask over them.
static std::pair<Tensor, std::optional<Mask>> look_up(const Score& score, const Tensor& query, const Memory& memory) {
    if (query.rank() != 3 || query.shape(0) != memory.values.shape(0))
        fail<ShapeError>(score.name(), "query " + text(query.shape()) + " is not (B,T_q,Q) or (B,Q) for values " +
                                           text(memory.values.shape()));
    const Tensor scores = score(query, memory.keys);
    if (!memory.visible) return {scores, {}};
    return {scores, over_batch(score.name(), *memory.visible, scores.shape())};
}

static Attended without_time(const Attended& attended) {
    return {squeeze(attended.context, 1), squeeze(attended.weights, 1)};
}

Attended Attention::operator()(const Tensor& query, const Memory& memory) const {
    if (query.rank() == 2) return without_time((*this)(unsqueeze(query, 1), memory));
    const auto [scores, visible] = look_up(*score, query, memory);
    const Tensor weights = attention_weights(scores, visible);
    return {matmul(weights, memory.values), weights};
}

// ---- Local attention

LocalAttention::LocalAttention(Attention attention_, std::size_t reach_)
    : attention(std::move(attention_)), reach(reach_) {}

LocalAttention::LocalAttention(Attention attention_, std::size_t reach_, Centre centre_)
    : attention(std::move(attention_)), reach(reach_), centre(std::move(centre_)) {
    check_read_out("LocalAttention", "W", centre->W, centre->v);
    if (reach == 0) fail<ValueError>("LocalAttention", "a predicted centre needs a reach of at least 1");
}

LocalAttention::Centre LocalAttention::predicted(std::size_t Q, std::size_t A, Generator& generator) {
    return {uniform("LocalAttention", "W", {Q, A}, Q, generator), uniform("LocalAttention", "v", {A}, A, generator)};
}

// Keys no further than `reach` from each query's centre.   centres (B,T_q) → (B,T_q,T_k)
static Mask around(const Array& centres, std::size_t T_k, std::size_t reach) {
    std::vector<bool> visible(centres.size() * T_k);
    for (std::size_t i = 0; i < centres.size(); ++i)
        for (std::size_t j = 0; j < T_k; ++j)
            visible[i * T_k + j] = std::abs(double(j) - double(centres.data()[i])) <= double(reach);
    return Mask({centres.shape()[0], centres.shape()[1], T_k}, std::move(visible));
}

// How many keys each query may see.   scores (B,T_q,T_k) → (B,T_q)
static Array lengths(const std::optional<Mask>& visible, const Shape& scores) {
    Array S = filled({scores[0], scores[1]}, Real(scores[2]));
    if (!visible) return S;
    const Mask mask = visible->broadcast_to(scores);
    for (std::size_t i = 0; i < S.size(); ++i)
        S.data()[i] = Real(std::count(mask.data() + i * scores[2], mask.data() + (i + 1) * scores[2], true));
    return S;
}

Attended LocalAttention::operator()(const Tensor& query, const Memory& memory, std::size_t t) const {
    if (query.rank() == 2) return without_time((*this)(unsqueeze(query, 1), memory, t));
    const auto [scores, visible] = look_up(*attention.score, query, memory);
    const Shape shape = scores.shape();
    const auto within = [&, &seen = visible](const Array& centres) {
        const Mask near = around(centres, shape[2], reach);
        return seen ? *seen & near : near;
    };

    if (!centre) {
        Array p = filled({shape[0], shape[1]}, 0);
        for (std::size_t i = 0; i < p.size(); ++i) p.data()[i] = Real(t + i % shape[1]);
        const Tensor weights = attention_weights(scores, within(p));
        return {matmul(weights, memory.values), weights};
    }

    check_product("LocalAttention", "query", query, "W", centre->W);
    Tape& tape = query.tape();
    const Tensor p =
        tape.constant(lengths(visible, shape)) * sigmoid(matmul(tanh(matmul(query, centre->W)), centre->v));
    Array places = filled({shape[2]}, 0);
    for (std::size_t i = 0; i < shape[2]; ++i) places(i) = Real(i);
    const Tensor offset = tape.constant(std::move(places)) - unsqueeze(p, -1);  // (B,T_q,T_k)
    const Real sigma = Real(reach) / 2;
    const Tensor weights =
        attention_weights(scores, within(p.value())) * exp(offset * offset * (-1 / (2 * sigma * sigma)));
    return {matmul(weights, memory.values), weights};
}

void LocalAttention::for_each_parameter(const std::string& prefix, const Visitor& f) {
    attention.for_each_parameter(join(prefix, "attention"), f);
    if (!centre) return;
    f(join(prefix, "centre.W"), centre->W);
    f(join(prefix, "centre.v"), centre->v);
}

}  // namespace lookback
