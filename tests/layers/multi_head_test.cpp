#include "layers/multi_head.hpp"
#include "engine/gradcheck.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/movement.hpp"
#include "engine/ops/reduce.hpp"
#include "tests/support/array.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

TEST_CASE("heads are split from each token and merged back", "[layers][multi_head]") {
    Tape tape;
    const Tensor x = tape.leaf(array({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
    const Tensor heads = split_heads(x, 2);
    CHECK(close(heads.value(), array({1, 2, 2, 2}, {1, 2, 5, 6, 3, 4, 7, 8})));
    CHECK(same_bits(merge_heads(heads).value(), x.value()));
    CHECK_THROWS_WITH(split_heads(x, 3), "[MultiHead] width 4 is not divisible by 3 heads");
    CHECK_THROWS_AS(split_heads(select(x, 0, 0), 2), ShapeError);
    CHECK_THROWS_AS(merge_heads(x), ShapeError);
}

TEST_CASE("one head is scaled dot attention of its projections, bit for bit", "[layers][multi_head]") {
    Generator generator(1);
    MultiHead one(6, 1, generator);
    one.output.W.edit([](Array& W) {
        W = filled({6, 6}, 0);
        for (std::size_t i = 0; i < 6; ++i) W(i, i) = 1;
    });
    const Attention single{ScaledDotScore{}};
    Tape tape;
    const Tensor q = tape.constant(generator.normal({2, 3, 6})), k = tape.constant(generator.normal({2, 5, 6}));
    const Mask visible = padding({5, 2}, 5);
    const Attended a = one(q, k, k, visible), b = single(one.query(q), one.key(k), one.value(k), visible);
    CHECK(same_bits(squeeze(a.weights, 1).value(), b.weights.value()));
    CHECK(same_bits(a.context.value(), b.context.value()));
}

TEST_CASE("each head attends with its own part of the projections", "[layers][multi_head]") {
    Generator generator(2);
    const MultiHead layer(6, 3, generator);
    const Attention single{ScaledDotScore{}};
    Tape tape;
    const Tensor q = tape.constant(generator.normal({2, 4, 6})), k = tape.constant(generator.normal({2, 5, 6}));
    const Attended all = layer(q, k, k);
    REQUIRE(all.weights.shape() == Shape{2, 3, 4, 5});
    std::vector<Tensor> contexts;
    for (std::size_t n = 0; n < 3; ++n) {
        const auto part = [&](const Tensor& x) { return slice(x, -1, std::int64_t(2 * n), std::int64_t(2 * n + 2)); };
        const Attended head = single(part(layer.query(q)), part(layer.key(k)), part(layer.value(k)));
        CHECK(close(select(all.weights, 1, std::int64_t(n)).value(), head.weights.value(), 1e-13, 1e-13));
        contexts.push_back(head.context);
    }
    CHECK(close(all.context.value(), layer.output(concat(contexts, -1)).value(), 1e-13, 1e-13));
}

TEST_CASE("the number of heads changes no count of parameters: four square matrices", "[layers][multi_head]") {
    Generator generator(3);
    for (const std::size_t heads : {1, 2, 4, 8}) {
        MultiHead plain(8, heads, generator, {.bias = Linear::Bias::no}), biased(8, heads, generator);
        CHECK(parameter_count(plain) == 4 * 8 * 8);
        CHECK(parameter_count(biased) == 4 * 8 * 8 + 4 * 8);
    }
    MultiHead layer(8, 2, generator);
    std::vector<std::string> paths;
    layer.for_each_parameter("a", [&](const std::string& path, Parameter&) { paths.push_back(path); });
    CHECK(paths == std::vector<std::string>{"a.query.W", "a.query.b", "a.key.W", "a.key.b", "a.value.W", "a.value.b",
                                            "a.output.W", "a.output.b"});
}

TEST_CASE("one head can't keep two reads apart, and two can", "[layers][multi_head]") {
    // One head gives a v_1 + (1 − a) v_2. The best linear guess of both v from it leaves (1 − a)²/n + a²/n = 1 of
    // their two variances, n = a² + (1 − a)², whatever a; a draw of many v measures it.
    Generator generator(4);
    const std::size_t draws = 20000;
    for (const double a : {0., 0.3, 0.5, 0.9}) {
        Tape tape;
        const Tensor V = tape.constant(generator.normal({draws, 2, 1}));
        const Tensor weights = tape.constant(array({1, 1, 2}, {Real(a), Real(1 - a)}));
        const Array c = matmul(weights, V).value();
        double c_c = 0, c_v[2] = {}, v_v[2] = {};
        for (std::size_t i = 0; i < draws; ++i) {
            c_c += c(i, 0, 0) * c(i, 0, 0);
            for (std::size_t j = 0; j < 2; ++j) {
                c_v[j] += c(i, 0, 0) * V.value()(i, j, 0);
                v_v[j] += V.value()(i, j, 0) * V.value()(i, j, 0);
            }
        }
        double left = 0;
        for (std::size_t j = 0; j < 2; ++j) left += (v_v[j] - c_v[j] * c_v[j] / c_c) / double(draws);
        CHECK(std::abs(left / 2 - 0.5) < 0.02);
    }
    // Two heads whose weights are one-hot: the output is both values. Scores of ±800 leave no trace of the other.
    const MultiHead two(2, 2, generator);
    Tape tape;
    const Tensor V = tape.constant(array({1, 2, 2}, {3, 3, 5, 5}));
    const Tensor scores = tape.constant(array({1, 2, 1, 2}, {800, -800, -800, 800}));
    const Tensor merged = merge_heads(matmul(attention_weights(scores, {}), split_heads(V, 2)));
    CHECK(close(merged.value(), array({1, 1, 2}, {3, 5})));
}

TEST_CASE("masks meet heads of any number without aligning to them", "[layers][multi_head]") {
    // B = N = T_q = T_k = 3: a mask that met the wrong axis would still broadcast.
    Generator generator(5);
    const MultiHead layer(6, 3, generator);
    Tape tape;
    const Tensor x = tape.constant(generator.normal({3, 3, 6}));
    const Array by_length = layer(x, x, x, padding({1, 2, 3}, 3)).weights.value();
    const Array by_order = layer(x, x, x, causal(3, 3, Align::start)).weights.value();
    for (std::size_t b = 0; b < 3; ++b)
        for (std::size_t n = 0; n < 3; ++n)
            for (std::size_t i = 0; i < 3; ++i)
                for (std::size_t j = 0; j < 3; ++j) {
                    CHECK((by_length(b, n, i, j) > 0) == (j <= b));
                    CHECK((by_order(b, n, i, j) > 0) == (j <= i));
                }
}

TEST_CASE("a query that sees nothing has heads of zero and sends nothing back", "[layers][multi_head]") {
    Generator generator(6);
    const MultiHead layer(4, 2, generator);
    Tape tape;
    const Tensor x = tape.leaf(generator.normal({2, 3, 4}));
    const Tensor q = tape.leaf(generator.normal({2, 2, 4}));
    const auto [context, weights] = layer(q, x, x, padding({0, 3}, 3));
    for (std::size_t i = 0; i < weights.size() / 2; ++i) CHECK(weights.value().data()[i] == 0);
    for (std::size_t i = 0; i < context.size() / 2; ++i)
        CHECK(context.value().data()[i] == layer.output.b->value()(i % 4));
    const Gradients g = tape.backward(sum(context * context), {q, x});
    for (const Tensor& input : {q, x})
        for (std::size_t i = 0; i < input.size(); ++i) {
            REQUIRE(std::isfinite(g[input].data()[i]));
            if (i < input.size() / 2) REQUIRE(g[input].data()[i] == 0);
        }
    REQUIRE(std::isfinite(g[layer.query.W](0, 0)));
}

TEST_CASE("permuting tokens permutes the outputs, and causality breaks that", "[layers][multi_head]") {
    Generator generator(7);
    const MultiHead layer(6, 2, generator);
    Tape tape;
    const Tensor x = tape.constant(generator.normal({1, 4, 6}));
    const auto permuted = [](const Tensor& t) {
        return stack({select(t, 1, 2), select(t, 1, 0), select(t, 1, 3), select(t, 1, 1)}, 1);
    };
    const Tensor px = permuted(x);
    CHECK(close(layer(px, px, px).context.value(), permuted(layer(x, x, x).context).value(), 1e-13, 1e-13));
    const Mask order = causal(4, 4, Align::start);
    CHECK_FALSE(close(layer(px, px, px, order).context.value(), permuted(layer(x, x, x, order).context).value()));
}

TEST_CASE("keys and values may have widths of their own", "[layers][multi_head]") {
    Generator generator(8);
    const MultiHead layer(4, 2, generator, {.keys = 3, .values = 5});
    const auto report = gradcheck(
        [&](const std::vector<Tensor>& x) {
            return layer(x[0], x[1], x[2], padding({3, 1}, 3)).context;
        },
        {generator.normal({2, 2, 4}), generator.normal({2, 3, 3}), generator.normal({2, 3, 5})});
    INFO(report.why);
    CHECK(report.ok);
}

TEST_CASE("dropout of weights is for training, and hides no mask", "[layers][multi_head]") {
    Generator generator(9);
    const MultiHead layer(4, 2, generator, {.dropout = Real(0.5)});
    Tape tape;
    const Tensor x = tape.constant(generator.normal({1, 4, 4}));
    const Mask order = causal(4, 4, Align::start);
    Generator a(1), b(1);
    CHECK(same_bits(layer(x, x, x, order).context.value(), layer(x, x, x, order).context.value()));
    const Attended dropped = layer(x, x, x, order, training(a));
    CHECK_FALSE(close(dropped.context.value(), layer(x, x, x, order).context.value()));
    CHECK(same_bits(dropped.context.value(), layer(x, x, x, order, training(b)).context.value()));
    CHECK(same_bits(dropped.weights.value(), layer(x, x, x, order).weights.value()));
    CHECK(dropped.weights.value()(0, 0, 0, 1) == 0);
}

TEST_CASE("a memory grows token by token", "[layers][multi_head]") {
    Generator generator(10);
    const MultiHead layer(4, 2, generator);
    Tape tape;
    const Tensor x = tape.constant(generator.normal({2, 5, 4}));
    std::optional<KeyValues> past;
    for (std::int64_t t = 0; t < 5; ++t) {
        const Tensor now = slice(x, 1, t, t + 1);
        past = joined(past, layer.remember(now, now));
        CHECK(past->length() == std::size_t(t + 1));
    }
    const KeyValues whole = layer.remember(x, x);
    CHECK(close(past->keys.value(), whole.keys.value(), 1e-13, 1e-13));
    CHECK(close(past->values.value(), whole.values.value(), 1e-13, 1e-13));
}

TEST_CASE("MultiHead refuses what doesn't fit by its own name", "[layers][multi_head]") {
    Generator generator(11);
    const MultiHead layer(4, 2, generator);
    Tape tape;
    const auto x = [&](const Shape& shape) { return tape.leaf(filled(shape, 1)); };
    CHECK_THROWS_WITH(MultiHead(10, 3, generator), "[MultiHead] width 10 is not divisible by 3 heads");
    CHECK_THROWS_AS(MultiHead(4, 0, generator), ValueError);
    CHECK_THROWS_AS(MultiHead(0, 1, generator), ValueError);
    CHECK_THROWS_WITH(layer(x({2, 3, 5}), x({2, 3, 4}), x({2, 3, 4})),
                      "[MultiHead] query (2,3,5) does not match W_q (4,4)");
    CHECK_THROWS_WITH(layer(x({2, 3, 4}), x({2, 3, 5}), x({2, 3, 4})),
                      "[MultiHead] keys (2,3,5) does not match W_k (4,4)");
    CHECK_THROWS_WITH(layer(x({2, 3, 4}), x({2, 3, 4}), x({2, 2, 4})),
                      "[MultiHead] keys must be (B,T_k,K) and values (B,T_k,V): (2,3,4) and (2,2,4)");
    CHECK_THROWS_AS(layer(x({1, 3, 4}), x({2, 3, 4}), x({2, 3, 4})), ShapeError);
    CHECK_THROWS_AS(layer(x({3, 4}), x({3, 4}), x({3, 4})), ShapeError);
    CHECK_THROWS_WITH(layer(x({2, 3, 4}), x({2, 3, 4}), x({2, 3, 4}), Mask({2, 2, 3, 3}, std::vector<bool>(36, true))),
                      "[MultiHead] a mask must be (T_q,T_k) or (B,T_q,T_k): (2,2,3,3) over scores (2,3,3)");
    CHECK_THROWS_AS(joined(layer.remember(x({2, 3, 4}), x({2, 3, 4})), layer.remember(x({1, 3, 4}), x({1, 3, 4}))),
                    ShapeError);
}
