#include "multi_head.hpp"
#include "check.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/movement.hpp"
#include "init.hpp"

namespace lookback {

static void check_heads(std::size_t width, std::size_t N) {
    if (N == 0 || width % N)
        fail<ValueError>("MultiHead",
                         "width " + std::to_string(width) + " is not divisible by " + std::to_string(N) + " heads");
}

Tensor split_heads(const Tensor& x, std::size_t N) {
    if (x.rank() != 3) fail<ShapeError>("split_heads", "x must be (B,T,N·D), not " + text(x.shape()));
    check_heads(x.shape(2), N);
    return permute(reshape(x, {x.shape(0), x.shape(1), N, x.shape(2) / N}), {0, 2, 1, 3});
}

Tensor merge_heads(const Tensor& x) {
    if (x.rank() != 4) fail<ShapeError>("merge_heads", "x must be (B,N,T,D), not " + text(x.shape()));
    return reshape(permute(x, {0, 2, 1, 3}), {x.shape(0), x.shape(2), x.shape(1) * x.shape(3)});
}

KeyValues joined(const std::optional<KeyValues>& past, const KeyValues& fresh) {
    if (!past) return fresh;
    return {concat({past->keys, fresh.keys}, 2), concat({past->values, fresh.values}, 2)};
}

static Linear projection(std::size_t in, std::size_t out, double bound, Linear::Bias bias, Generator& generator) {
    std::optional<Parameter> b;
    if (bias == Linear::Bias::yes) b.emplace(filled({out}, 0), "b");
    return Linear(Parameter(init::uniform(generator, {in, out}, bound), "W"), std::move(b));
}

static Linear input_projection(std::size_t in, std::size_t width, const MultiHeadOptions& options,
                               Generator& generator) {
    const auto is_width = [&](std::size_t n) { return n == 0 || n == width; };
    if (in == 0) in = width;
    const double fans = is_width(options.keys) && is_width(options.values) ? 4. * double(width) : double(in + width);
    return projection(in, width, std::sqrt(6 / fans), options.bias, generator);
}

static std::size_t checked_width(std::size_t width, std::size_t heads) {
    check_heads(width, heads);
    if (width == 0) fail<ValueError>("MultiHead", "the width may not be 0");
    return width;
}

MultiHead::MultiHead(std::size_t width, std::size_t heads_, Generator& generator, const MultiHeadOptions& options)
    : heads(heads_),
      query(input_projection(checked_width(width, heads), width, options, generator)),
      key(input_projection(options.keys, width, options, generator)),
      value(input_projection(options.values, width, options, generator)),
      output(projection(width, width, 1 / std::sqrt(double(width)), options.bias, generator)),
      dropout(options.dropout) {}

KeyValues MultiHead::remember(const Tensor& k, const Tensor& v) const {
    if (k.rank() != 3 || v.rank() != 3 || k.shape(0) != v.shape(0) || k.shape(1) != v.shape(1))
        fail<ShapeError>("MultiHead",
                         "keys must be (B,T_k,K) and values (B,T_k,V): " + text(k.shape()) + " and " + text(v.shape()));
    check_product("MultiHead", "keys", k, "W_k", key.W);
    check_product("MultiHead", "values", v, "W_v", value.W);
    return {split_heads(key(k), heads), split_heads(value(v), heads)};
}

Attended MultiHead::operator()(const Tensor& q, const KeyValues& memory, const std::optional<Mask>& visible,
                               Mode mode) const {
    if (q.rank() != 3 || q.shape(0) != memory.keys.shape(0))
        fail<ShapeError>("MultiHead",
                         "query " + text(q.shape()) + " is not (B,T_q,E) for keys " + text(memory.keys.shape()));
    check_product("MultiHead", "query", q, "W_q", query.W);
    const std::size_t B = q.shape(0), T_q = q.shape(1), T_k = memory.length();

    std::optional<Mask> each_head;
    if (visible) {
        const Mask mask = over_batch("MultiHead", *visible, {B, T_q, T_k});
        each_head = mask.reshape({mask.shape()[0], 1, mask.shape()[1], mask.shape()[2]});
    }
    const Tensor queries = split_heads(query(q), heads);
    if (mode.generator && dropout.p > 0) {
        const Tensor weights = attention_weights(ScaledDotScore{}(queries, memory.keys), each_head);
        return {output(merge_heads(matmul(dropout(weights, mode), memory.values))), weights};
    }
    const auto [context, weights] =
        attend(queries * ScaledDotScore::scale(queries), memory.keys, memory.values, each_head);
    return {output(merge_heads(context)), weights};
}

void MultiHead::for_each_parameter(const std::string& prefix, const Visitor& f) {
    query.for_each_parameter(join(prefix, "query"), f);
    key.for_each_parameter(join(prefix, "key"), f);
    value.for_each_parameter(join(prefix, "value"), f);
    output.for_each_parameter(join(prefix, "output"), f);
}

}  // namespace lookback
