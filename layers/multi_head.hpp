// Attention by several heads at once, each with projections of its own.
#pragma once
#include "attention.hpp"
#include "dropout.hpp"
#include "linear.hpp"

namespace lookback {

// (B,T,N·D) → (B,N,T,D) and back: head n holds entries n·D … n·D+D−1 of each token.
// throws ShapeError unless x has these axes; ValueError if its width is not divisible by N
Tensor split_heads(const Tensor& x, std::size_t N);
Tensor merge_heads(const Tensor& x);

// Keys and values as the heads use them.
struct KeyValues {
    Tensor keys, values;  // (B,N,T,D)
    std::size_t length() const { return keys.shape(2); }
};
// Those of new tokens after those of the past, of which nothing is computed again.
// throws ShapeError if B, N or D differ
KeyValues joined(const std::optional<KeyValues>& past, const KeyValues& fresh);

struct MultiHeadOptions {
    std::size_t keys = 0, values = 0;  // widths of keys and values; 0: as the query's
    Linear::Bias bias = Linear::Bias::yes;
    Real dropout = 0;  // of weights, in training
};

// head n = softmax(q_n k_nᵀ / √D) v_n with q = query W_q + b_q, k = keys W_k + b_k, v = values W_v + b_v
// y = [head 1 … head N] W_o + b_o
//   query (B,T_q,E), keys (B,T_k,K), values (B,T_k,V) → context (B,T_q,E), weights (B,N,T_q,T_k) before their dropout
// A mask is (T_q,T_k) or (B,T_q,T_k) up to axes of 1; the axis of heads is put in here. A query that sees nothing has
// heads of 0, and so the context b_o.
// From the start W_q, W_k, W_v are uniform in ±√(6 / 4E) where widths are equal (as one (E,3E) matrix would be by
// Glorot's rule), else by Glorot's rule; W_o in ±1/√E; biases are 0: PyTorch's default.
// throws ShapeError on what doesn't fit; ValueError if E is not divisible by N      Vaswani et al. 2017, § 3.2.2
struct MultiHead {
    std::size_t heads;
    Linear query, key, value, output;
    Dropout dropout;

    MultiHead(std::size_t width, std::size_t heads, Generator& generator, const MultiHeadOptions& options = {});

    Attended operator()(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Mask>& visible = {},
                        Mode mode = evaluation) const {
        return (*this)(q, remember(k, v), visible, mode);
    }
    // What is attended to, projected once for any number of queries.
    KeyValues remember(const Tensor& k, const Tensor& v) const;
    Attended operator()(const Tensor& q, const KeyValues& memory, const std::optional<Mask>& visible = {},
                        Mode mode = evaluation) const;
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

}  // namespace lookback
