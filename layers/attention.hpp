// Attention: look a query up among keys, and bring back a mean of their values.
//   s_i = score(q, k_i)     α = softmax over the visible i of s     c = Σ α_i v_i
// Any Score may stand in; whatever of it depends on the keys alone is computed once, by remember():
//   Attention attention{AdditiveScore(H, 2 * H, A, generator)};
//   Memory memory = attention.remember(states, padding(lengths, T));
//   auto [context, weights] = attention(query, memory);                  at every step of a decoder
#pragma once
#include <concepts>
#include <memory>
#include <optional>
#include "engine/ops/softmax.hpp"
#include "engine/random.hpp"
#include "mask.hpp"
#include "parameters.hpp"

namespace lookback {

// How well queries fit keys.   query (B,T_q,Q), keys (B,T_k,K) → (B,T_q,T_k)
// Errors name the score: "[AdditiveScore] keys (2,3,4) does not match W_k (5,8)".
struct Score {
    virtual ~Score() = default;
    virtual const char* name() const = 0;
    virtual Tensor project(const Tensor& keys) const { return keys; }
    virtual Tensor operator()(const Tensor& query, const Tensor& projected_keys) const = 0;
    virtual void for_each_parameter(const std::string&, const Visitor&) {}
};

// s = q · k, so Q = K.   Luong et al. 2015, § 3.1
struct DotScore : Score {
    const char* name() const override { return "DotScore"; }
    Tensor operator()(const Tensor& query, const Tensor& keys) const override;
};

// s = q · k / √Q: entries of variance 1 then have scores of variance 1, whatever Q.   Vaswani et al. 2017, eq. 1
struct ScaledDotScore : Score {
    static Real scale(const Tensor& query);  // 1/√Q
    const char* name() const override { return "ScaledDotScore"; }
    Tensor operator()(const Tensor& query, const Tensor& keys) const override;
};

// s = q W · k.   Luong et al. 2015, § 3.1, "general"
struct BilinearScore : Score {
    Parameter W;  // (Q,K)
    BilinearScore(std::size_t Q, std::size_t K, Generator& generator);
    explicit BilinearScore(Parameter W);
    const char* name() const override { return "BilinearScore"; }
    Tensor project(const Tensor& keys) const override;  // k Wᵀ
    Tensor operator()(const Tensor& query, const Tensor& projected_keys) const override;
    void for_each_parameter(const std::string& prefix, const Visitor& f) override;
};

// s = v · tanh(q W_q + k W_k).   Bahdanau et al. 2015, app. A.1.2
struct AdditiveScore : Score {
    Parameter W_q, W_k, v;  // (Q,A) (K,A) (A)
    AdditiveScore(std::size_t Q, std::size_t K, std::size_t A, Generator& generator);
    AdditiveScore(Parameter W_q, Parameter W_k, Parameter v);
    const char* name() const override { return "AdditiveScore"; }
    Tensor project(const Tensor& keys) const override;  // k W_k
    Tensor operator()(const Tensor& query, const Tensor& projected_keys) const override;
    void for_each_parameter(const std::string& prefix, const Visitor& f) override;
};

// s = v · tanh([q k] W): the additive score with W_q above W_k in one matrix.   Luong et al. 2015, § 3.1, "concat"
struct ConcatScore : Score {
    Parameter W, v;  // (Q+K,A) (A)
    std::size_t Q;   // the first Q rows of W are the query's
    ConcatScore(std::size_t Q, std::size_t K, std::size_t A, Generator& generator);
    ConcatScore(Parameter W, Parameter v, std::size_t Q);
    const char* name() const override { return "ConcatScore"; }
    Tensor project(const Tensor& keys) const override;  // k times the last K rows of W
    Tensor operator()(const Tensor& query, const Tensor& projected_keys) const override;
    void for_each_parameter(const std::string& prefix, const Visitor& f) override;
};

// s_i = (q W)_i, for places i below T_max: where to look, whatever is there.   Luong et al. 2015, § 3.1
struct LocationScore : Score {
    Parameter W;  // (Q,T_max)
    LocationScore(std::size_t Q, std::size_t T_max, Generator& generator);
    explicit LocationScore(Parameter W);
    const char* name() const override { return "LocationScore"; }
    Tensor operator()(const Tensor& query, const Tensor& keys) const override;
    void for_each_parameter(const std::string& prefix, const Visitor& f) override;
};

// What is attended to, prepared once for any number of queries.
struct Memory {
    Tensor keys, values;          // (B,T_k,…) as the score projected them, (B,T_k,D)
    std::optional<Mask> visible;  // (B,T_q,T_k) or (T_q,T_k), up to axes of 1; none: everything
};

// α = softmax of the scores over visible keys, as the op attend has it too. Hidden keys get exactly 0 and send back
// exactly 0; a query that sees nothing has weights, context and gradients of 0.   scores (…,T_q,T_k) → the same
Tensor attention_weights(const Tensor& scores, const std::optional<Mask>& visible);

// throws ShapeError naming the score on queries, keys, values or masks that don't fit each other
struct Attention {
    std::unique_ptr<Score> score;

    explicit Attention(std::unique_ptr<Score> score_) : score(std::move(score_)) {}
    template <std::derived_from<Score> S>
    explicit Attention(S score_) : score(std::make_unique<S>(std::move(score_))) {}

    // What is remembered of keys (B,T_k,K) and values (B,T_k,D); of states that are both.
    Memory remember(const Tensor& keys, const Tensor& values, const std::optional<Mask>& visible = {}) const;
    Memory remember(const Tensor& states, const std::optional<Mask>& visible = {}) const {
        return remember(states, states, visible);
    }

    // query: (B,T_q,Q), or (B,Q) for one step
    Attended operator()(const Tensor& query, const Memory& memory) const;
    Attended operator()(const Tensor& query, const Tensor& keys, const Tensor& values,
                        const std::optional<Mask>& visible = {}) const {
        return (*this)(query, remember(keys, values, visible));
    }
    void for_each_parameter(const std::string& prefix, const Visitor& f) { score->for_each_parameter(prefix, f); }
};

// Attention to a window of `reach` keys on either side of a centre p_t, which is
//   monotonic   t: the t-th query stands at the t-th key
//   predictive  S σ(tanh(q W) · v), S the number of visible keys; weights are then multiplied by e^(−(i − p_t)² / 2σ²),
//               σ = reach / 2, and no longer sum to 1: through this factor alone p_t learns
// Places are counted from 0.   Luong et al. 2015, § 3.2
// throws as Attention does; ValueError if reach is 0 and the centre is predicted
struct LocalAttention {
    struct Centre {
        Parameter W, v;  // (Q,A) (A)
    };
    Attention attention;
    std::size_t reach;
    std::optional<Centre> centre;  // none: monotonic

    LocalAttention(Attention attention, std::size_t reach);
    LocalAttention(Attention attention, std::size_t reach, Centre centre);
    static Centre predicted(std::size_t Q, std::size_t A, Generator& generator);

    Memory remember(const Tensor& states, const std::optional<Mask>& visible = {}) const {
        return attention.remember(states, visible);
    }
    // query: (B,T_q,Q), of which the first is step t; or (B,Q) for step t alone
    Attended operator()(const Tensor& query, const Memory& memory, std::size_t t = 0) const;
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

}  // namespace lookback
