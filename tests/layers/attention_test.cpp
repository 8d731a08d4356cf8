#include "layers/attention.hpp"
#include "engine/gradcheck.hpp"
#include "engine/ops/activation.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/movement.hpp"
#include "engine/ops/reduce.hpp"
#include "engine/ops/softmax.hpp"
#include "tests/support/array.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

static const Real ln2 = std::log(Real(2)), ln3 = std::log(Real(3)), artanh_half = std::atanh(Real(0.5));
static const auto everything = std::nullopt;

static Array identity(std::size_t n) {
    Array I = filled({n, n}, 0);
    for (std::size_t i = 0; i < n; ++i) I(i, i) = 1;
    return I;
}
static AdditiveScore additive(Array W_q, Array W_k, Array v) {
    return {Parameter(std::move(W_q)), Parameter(std::move(W_k)), Parameter(std::move(v))};
}
// One of each score, for queries and keys of four numbers.
static std::vector<std::unique_ptr<Score>> all_scores(std::uint64_t seed = 1) {
    Generator generator(seed);
    std::vector<std::unique_ptr<Score>> scores;
    scores.push_back(std::make_unique<DotScore>());
    scores.push_back(std::make_unique<ScaledDotScore>());
    scores.push_back(std::make_unique<BilinearScore>(4, 4, generator));
    scores.push_back(std::make_unique<AdditiveScore>(4, 4, 3, generator));
    scores.push_back(std::make_unique<ConcatScore>(4, 4, 3, generator));
    scores.push_back(std::make_unique<LocationScore>(4, 9, generator));
    return scores;
}

// ---- Values and gradients known from elsewhere

TEST_CASE("one step of dot attention, by hand", "[layers][attention]") {
    const Attention attention{DotScore{}};
    Tape tape;
    const Tensor q = tape.leaf(array({1, 2}, {ln2, 0})), K = tape.leaf(array({1, 3, 2}, {0, 0, 1, 0, 2, 0})),
                 V = tape.leaf(array({1, 3, 2}, {1, 0, 0, 1, 1, 1}));
    const auto [c, weights] = attention(q, K, V);
    CHECK(close(weights.value(), array({1, 3}, {1. / 7, 2. / 7, 4. / 7})));
    CHECK(close(c.value(), array({1, 2}, {5. / 7, 6. / 7})));
    const Gradients g = tape.backward(c, {q, K, V}, {.seed = array({1, 2}, {1, 2})});
    CHECK(close(g[V], array({1, 3, 2}, {1. / 7, 2. / 7, 2. / 7, 4. / 7, 4. / 7, 8. / 7})));  // sums to the seed
    CHECK(close(g[q], array({1, 2}, {26. / 49, 0})));
    CHECK(close(g[K], array({1, 3, 2}, {-10 * ln2 / 49, 0, -6 * ln2 / 49, 0, 16 * ln2 / 49, 0})));
}

TEST_CASE("one step of additive attention, by hand", "[layers][attention]") {
    AdditiveScore score = additive(identity(2), identity(2), array({2}, {2 * ln3, 1}));
    Tape tape;
    const Tensor q = tape.leaf(array({1, 1, 2}, {0, 0})), K = tape.leaf(array({1, 2, 2}, {artanh_half, 0, 0, 0})),
                 V = tape.leaf(array({1, 2, 2}, {1, 0, 0, 1}));
    const Tensor scores = score(q, score.project(K));
    CHECK(close(scores.value(), array({1, 1, 2}, {ln3, 0})));
    const Tensor weights = attention_weights(scores, everything);
    CHECK(close(weights.value(), array({1, 1, 2}, {0.75, 0.25})));
    const Gradients g = tape.backward(matmul(weights, V), {q, K, V, scores}, {.seed = array({1, 1, 2}, {1, 0})});
    CHECK(close(g[scores], array({1, 1, 2}, {3. / 16, -3. / 16})));
    CHECK(close(g[q], array({1, 1, 2}, {-0.1029949021, 0})));
    CHECK(close(g[K], array({1, 2, 2}, {0.3089847062, 0.1875, -0.4119796083, -0.1875})));
    CHECK(close(g[V], array({1, 2, 2}, {0.75, 0, 0.25, 0})));
    CHECK(close(g[score.v], {3. / 32, 0}));
    CHECK(close(g[score.W_k], array({2, 2}, {0.1697271976, 0.1029949021, 0, 0})));
    CHECK(close(g[score.W_q], array({2, 2}, {0, 0, 0, 0})));
}

TEST_CASE("without its tanh, additive attention can't depend on the query", "[layers][attention]") {
    Tape tape;
    Generator generator(1);
    const Tensor q = tape.leaf(generator.normal({1, 1, 3})), K = tape.leaf(generator.normal({1, 4, 3})),
                 v = tape.leaf(generator.normal({3}));
    const Tensor linear_scores = matmul(unsqueeze(q, 2) + unsqueeze(K, 1), v);
    const Tensor weights = attention_weights(linear_scores, everything);
    for (std::size_t i = 0; i < 4; ++i) {
        Array seed = filled({1, 1, 4}, 0);
        seed(0, 0, i) = 1;
        CHECK(close(tape.backward(weights, {q}, {.seed = seed})[q], filled({1, 1, 3}, 0), 0, 1e-15));
    }
}

TEST_CASE("the denominator runs over the keys of one query", "[layers][attention]") {
    const Attention attention(additive(array({1, 1}, {1}), array({1, 1}, {1}), array({1}, {1})));
    Tape tape;
    const Tensor s = tape.leaf(array({1, 2, 1}, {0, 1}));
    const Array weights = attention(s, s, s).weights.value();
    CHECK(close(weights, array({1, 2, 2}, {0.318300, 0.681700, 0.449564, 0.550436}), 0, 1e-6));
}

TEST_CASE("Bahdanau's weights depend on the states, and the context is a mean of raw states", "[layers][attention]") {
    AdditiveScore score = additive(array({1, 1}, {1}), array({1, 1}, {0.5}), array({1}, {2}));
    const Attention attention(std::move(score));
    Tape tape;
    const Tensor s = tape.leaf(array({1, 1}, {0.5})), h = tape.leaf(array({1, 3, 1}, {1, 2, 3}));
    {
        const auto [c, weights] = attention(s, attention.remember(h));
        CHECK(close(weights.value(), array({1, 3}, {0.2609827231, 0.3477773254, 0.3912399515})));
        CHECK(close(c.value(), array({1, 1}, {2.1302572284})));
        CHECK(close(tape.backward(c, {h})[h], array({1, 3, 1}, {0.1370996959, 0.3395912224, 0.4152808813})));
    }
    {
        const auto [c, weights] = attention(s, attention.remember(h, padding({2}, 3)));
        CHECK(close(weights.value(), array({1, 3}, {0.4287119757, 0.5712880243, 0})));
        CHECK(close(c.value(), array({1, 1}, {1.5712880243})));
        CHECK(close(tape.backward(c, {h})[h], array({1, 3, 1}, {0.3258526925, 0.6155463361, 0})));
    }
}

TEST_CASE("softmax runs over the keys, whatever the batch", "[layers][attention]") {
    Tape tape;
    CHECK(close(attention_weights(tape.constant(array({1, 2, 2}, {0, ln3, 0, 0})), everything).value(),
                array({1, 2, 2}, {0.25, 0.75, 0.5, 0.5})));
    CHECK(close(attention_weights(tape.constant(array({2, 2, 2}, {0, ln3, 0, 0, 0, 0, ln3, 0})), everything).value(),
                array({2, 2, 2}, {0.25, 0.75, 0.5, 0.5, 0.5, 0.5, 0.75, 0.25})));
}

TEST_CASE("different weights can give one context, and a weight says nothing of a value of zero",
          "[layers][attention]") {
    Tape tape;
    const Tensor V = tape.constant(array({1, 3, 1}, {0, 1, 2})), zeros = tape.constant(filled({1, 1, 3}, 0));
    const Tensor quarter = attention_weights(tape.constant(array({1, 1, 3}, {0, ln2, 0})), everything);
    const Tensor middle = attention_weights(zeros, Mask({1, 1, 3}, {false, true, false}));
    const Tensor edges = attention_weights(zeros, Mask({1, 1, 3}, {true, false, true}));
    CHECK(close(quarter.value(), array({1, 1, 3}, {0.25, 0.5, 0.25})));
    CHECK(close(middle.value(), array({1, 1, 3}, {0, 1, 0})));
    CHECK(close(edges.value(), array({1, 1, 3}, {0.5, 0, 0.5})));
    for (const Tensor& weights : {quarter, middle, edges})
        CHECK(close(matmul(weights, V).value(), array({1, 1, 1}, {1})));

    const Tensor most = attention_weights(tape.constant(array({1, 1, 2}, {std::log(Real(4)), 0})), everything);
    CHECK(close(most.value(), array({1, 1, 2}, {0.8, 0.2})));
    CHECK(close(matmul(most, tape.constant(array({1, 2, 2}, {0, 0, 1, 0}))).value(), array({1, 1, 2}, {0.2, 0})));
}

// ---- The six scores

TEST_CASE("each score is its formula, pair by pair", "[layers][attention]") {
    Generator generator(2);
    const Array q = generator.normal({2, 3, 4}), k = generator.normal({2, 5, 4});
    for (const auto& score : all_scores()) {
        Tape tape;
        const Array scores = (*score)(tape.constant(q), score->project(tape.constant(k))).value();
        REQUIRE(scores.shape() == Shape{2, 3, 5});
        double worst = 0;
        for (std::size_t b = 0; b < 2; ++b)
            for (std::size_t i = 0; i < 3; ++i)
                for (std::size_t j = 0; j < 5; ++j) {
                    double s = 0;
                    if (const auto* bilinear = dynamic_cast<const BilinearScore*>(score.get())) {
                        for (std::size_t m = 0; m < 4; ++m)
                            for (std::size_t n = 0; n < 4; ++n)
                                s += q(b, i, m) * bilinear->W.value()(m, n) * k(b, j, n);
                    } else if (const auto* sum = dynamic_cast<const AdditiveScore*>(score.get())) {
                        for (std::size_t a = 0; a < 3; ++a) {
                            double inner = 0;
                            for (std::size_t m = 0; m < 4; ++m)
                                inner += q(b, i, m) * sum->W_q.value()(m, a) + k(b, j, m) * sum->W_k.value()(m, a);
                            s += sum->v.value()(a) * std::tanh(inner);
                        }
                    } else if (const auto* concat = dynamic_cast<const ConcatScore*>(score.get())) {
                        for (std::size_t a = 0; a < 3; ++a) {
                            double inner = 0;
                            for (std::size_t m = 0; m < 8; ++m)
                                inner += (m < 4 ? q(b, i, m) : k(b, j, m - 4)) * concat->W.value()(m, a);
                            s += concat->v.value()(a) * std::tanh(inner);
                        }
                    } else if (const auto* location = dynamic_cast<const LocationScore*>(score.get())) {
                        for (std::size_t m = 0; m < 4; ++m) s += q(b, i, m) * location->W.value()(m, j);
                    } else {
                        for (std::size_t m = 0; m < 4; ++m) s += q(b, i, m) * k(b, j, m);
                        if (dynamic_cast<const ScaledDotScore*>(score.get())) s /= 2;
                    }
                    worst = std::max(worst, std::abs(s - scores(b, i, j)));
                }
        INFO(score->name());
        CHECK(worst < 1e-12);
    }
}

TEST_CASE("bilinear with the identity is dot, and scaled dot of width 1 is dot, bit for bit", "[layers][attention]") {
    Generator generator(3);
    Tape tape;
    const Tensor q = tape.constant(generator.normal({2, 3, 4})), k = tape.constant(generator.normal({2, 5, 4}));
    const Array dot = DotScore{}(q, k).value();
    const BilinearScore bilinear{Parameter(identity(4))};
    CHECK(same_bits(bilinear(q, bilinear.project(k)).value(), dot));
    CHECK(close(ScaledDotScore{}(q, k).value(), Array(dot / 2), 1e-15, 1e-15));

    const Tensor q1 = slice(q, -1, 0, 1), k1 = slice(k, -1, 0, 1);
    CHECK(same_bits(ScaledDotScore{}(q1, k1).value(), DotScore{}(q1, k1).value()));
}

TEST_CASE("concat is additive with its two matrices in one", "[layers][attention]") {
    Generator generator(4);
    const ConcatScore score(2, 3, 5, generator);
    const Array W = score.W.value();
    Array W_q = filled({2, 5}, 0), W_k = filled({3, 5}, 0);
    std::copy(W.data(), W.data() + 10, W_q.data());
    std::copy(W.data() + 10, W.data() + 25, W_k.data());
    const AdditiveScore split = additive(W_q, W_k, score.v.value());
    Tape tape;
    const Tensor q = tape.constant(generator.normal({2, 3, 2})), k = tape.constant(generator.normal({2, 4, 3}));
    CHECK(same_bits(score(q, score.project(k)).value(), split(q, split.project(k)).value()));
}

TEST_CASE("location doesn't look at what the keys hold", "[layers][attention]") {
    Generator generator(5);
    const Attention attention{LocationScore(4, 9, generator)};
    Tape tape;
    const Tensor q = tape.leaf(generator.normal({2, 4})), V = tape.constant(generator.normal({2, 5, 3})),
                 k = tape.leaf(generator.normal({2, 5, 4}));
    const Attended a = attention(q, k, V), b = attention(q, k * 7, V);
    CHECK(same_bits(a.weights.value(), b.weights.value()));
    CHECK_FALSE(tape.backward(sum(a.context), {k}).reached(k));
}

TEST_CASE("the gradients of attention by every score agree with central differences", "[layers][attention]") {
    Generator generator(6);
    for (auto& score : all_scores()) {
        INFO(score->name());
        const Attention attention(std::move(score));
        const auto report = gradcheck(
            [&](const std::vector<Tensor>& x) {
                const auto [context, weights] = attention(x[0], x[1], x[2], padding({2, 0}, 3));
                return concat({context, weights}, -1);
            },
            {generator.normal({2, 2, 4}), generator.normal({2, 3, 4}), generator.normal({2, 3, 2})});
        INFO(report.why);
        CHECK(report.ok);
    }
}

TEST_CASE("the parameters of every score learn by central differences", "[layers][attention]") {
    Generator generator(7);
    const Array q = generator.normal({2, 2, 4}), k = generator.normal({2, 3, 4}), V = generator.normal({2, 3, 2});
    for (auto& score : all_scores()) {
        const Attention attention(std::move(score));
        const auto loss = [&](Tape& tape) {
            const Tensor c = attention(tape.leaf(q), tape.constant(k), tape.constant(V)).context;
            return sum(c * c);
        };
        Tape tape;
        const Gradients g = tape.backward(loss(tape));
        attention.score->for_each_parameter("", [&](const std::string& path, Parameter& p) {
            const Array bar = g[p];
            for (std::size_t i = 0; i < p.size(); ++i) {
                const auto at = [&](Real step) {
                    p.edit([&](Array& w) { w.data()[i] += step; });
                    Tape other;
                    const double value = loss(other).item();
                    p.edit([&](Array& w) { w.data()[i] -= step; });
                    return value;
                };
                INFO(attention.score->name() << " " << path << " " << i);
                CHECK(close(double(bar.data()[i]), (at(1e-6) - at(-1e-6)) / 2e-6, 1e-6, 1e-7));
            }
        });
    }
}

// ---- Masks

TEST_CASE("a query that sees nothing gets nothing and sends nothing back", "[layers][attention]") {
    Tape tape;
    const Tensor scores = tape.leaf(array({1, 2, 2}, {1, 2, 3, 4})), V = tape.leaf(array({1, 2, 1}, {1, 3}));
    const Tensor weights = attention_weights(scores, Mask({1, 2, 2}, {false, false, true, true}));
    const Tensor c = matmul(weights, V);
    CHECK(close(c.value(), array({1, 2, 1}, {0, 2.4621171573})));
    for (const Tensor& loss : {sum(c), select(c, 1, 1)}) {  // with the empty row in the loss, and without
        const Gradients g = tape.backward(loss, {scores, V}, {.seed = filled(loss.shape(), 1)});
        CHECK(close(g[scores], array({1, 2, 2}, {0, 0, -0.3932238665, 0.3932238665})));
        CHECK(close(g[V], array({1, 2, 1}, {0.2689414214, 0.7310585786})));
    }
}

TEST_CASE("every score answers a query that sees nothing alike", "[layers][attention]") {
    for (auto& score : all_scores()) {
        INFO(score->name());
        const Attention attention(std::move(score));
        Generator generator(8);
        Tape tape;
        const Tensor q = tape.leaf(generator.normal({2, 3, 4})), k = tape.leaf(generator.normal({2, 5, 4}));
        const auto [context, weights] = attention(q, k, k, padding({0, 5}, 5));
        CHECK(same_bits(select(weights, 0, 0).value(), filled({3, 5}, 0)));
        CHECK(same_bits(select(context, 0, 0).value(), filled({3, 4}, 0)));
        const Gradients g = tape.backward(sum(context * context), {q, k});
        for (const Tensor& x : {q, k})
            for (std::size_t i = 0; i < x.size() / 2; ++i) REQUIRE(g[x].data()[i] == 0);
        for (std::size_t i = 0; i < k.size(); ++i) REQUIRE(std::isfinite(g[k].data()[i]));
    }
}

TEST_CASE("causal attention is aligned as its mask says", "[layers][attention]") {
    Tape tape;
    const Attention attention{DotScore{}};
    const auto contexts = [&](std::size_t T_q, std::size_t T_k, Align align) {
        Array V = filled({1, T_k, 1}, 0);
        for (std::size_t j = 0; j < T_k; ++j) V(0, j, 0) = Real(j + 1);
        const Tensor q = tape.constant(filled({1, T_q, 1}, 0)), k = tape.constant(filled({1, T_k, 1}, 0));
        return reshape(attention(q, k, tape.constant(V), causal(T_q, T_k, align)).context, -1).value();
    };
    CHECK(close(contexts(2, 4, Align::start), {1, 1.5}));
    CHECK(close(contexts(1, 4, Align::start), {1}));
    CHECK(close(contexts(4, 2, Align::start), {1, 1.5, 1.5, 1.5}));
    CHECK(close(contexts(2, 4, Align::end), {2, 2.5}));
    CHECK(close(contexts(1, 4, Align::end), {2.5}));
    CHECK(close(contexts(4, 2, Align::end), {0, 0, 1, 1.5}));
}

TEST_CASE("true means visible", "[layers][attention]") {
    Tape tape;
    const Attention attention{DotScore{}};
    const Tensor q = tape.constant(filled({2, 1}, 0)), k = tape.constant(filled({2, 3, 1}, 0)),
                 V = tape.constant(array({2, 3, 1}, {10, 20, 30, 10, 20, 30}));
    const Mask visible = padding({3, 1}, 3);
    CHECK(close(attention(q, k, V, visible).context.value(), array({2, 1}, {20, 10})));
    CHECK(close(attention(q, k, V, !visible).context.value(), array({2, 1}, {0, 25})));
}

TEST_CASE("a hidden key has weight 0 and gradients 0, exactly", "[layers][attention]") {
    for (auto& score : all_scores()) {
        INFO(score->name());
        const Attention attention(std::move(score));
        Generator generator(9);
        Tape tape;
        const Tensor q = tape.leaf(generator.normal({1, 2, 4})), k = tape.leaf(generator.normal({1, 3, 4})),
                     V = tape.leaf(generator.normal({1, 3, 4}));
        const Tensor s = (*attention.score)(q, attention.score->project(k));
        const Tensor weights = attention_weights(s, padding({2}, 3));
        const Gradients g = tape.backward(sum(exp(matmul(weights, V))), {k, V, s});
        for (std::size_t i = 0; i < 2; ++i) {
            CHECK(weights.value()(0, i, 2) == 0);
            CHECK(g[s](0, i, 2) == 0);
        }
        for (std::size_t d = 0; d < 4; ++d) {
            CHECK(g[k](0, 2, d) == 0);
            CHECK(g[V](0, 2, d) == 0);
        }
    }
}

TEST_CASE("padding hides columns: the mask as an index of rows is refused", "[layers][attention]") {
    Tape tape;
    Generator generator(10);
    const Attention attention{ScaledDotScore{}};
    const Tensor x = tape.constant(generator.normal({1, 4, 2}));
    const Array weights = attention(x, x, x, padding({3}, 4)).weights.value();
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(weights(0, i, 3) == 0);
        CHECK(close(weights(0, i, 0) + weights(0, i, 1) + weights(0, i, 2), 1));
    }
    CHECK_THROWS_AS(attention(x, x, x, Mask({4}, {true, true, true, false})), ShapeError);
}

TEST_CASE("permuting keys with their values changes nothing but the order of the weights", "[layers][attention]") {
    const std::vector<std::size_t> order = {3, 0, 4, 1, 2};
    for (auto& score : all_scores()) {
        if (dynamic_cast<LocationScore*>(score.get())) continue;  // it is about the order
        INFO(score->name());
        const Attention attention(std::move(score));
        Generator generator(11);
        Tape tape;
        const Tensor q = tape.constant(generator.normal({1, 2, 4})), k = tape.constant(generator.normal({1, 5, 4}));
        std::vector<Tensor> permuted;
        for (const std::size_t i : order) permuted.push_back(select(k, 1, std::int64_t(i)));
        const Tensor k_permuted = stack(permuted, 1);
        const auto [c, w] = attention(q, k, k);
        const auto [c_permuted, w_permuted] = attention(q, k_permuted, k_permuted);
        CHECK(close(c.value(), c_permuted.value(), 1e-13, 1e-13));
        for (std::size_t i = 0; i < 2; ++i)
            for (std::size_t j = 0; j < 5; ++j)
                CHECK(close(double(w_permuted.value()(0, i, j)), double(w.value()(0, i, order[j])), 1e-13, 1e-13));

        Array changed = k.value();
        changed(0, 0, 0) += 1;
        CHECK_FALSE(close(attention(q, tape.constant(changed), k).weights.value(), w.value()));
    }
}

// ---- Calls

TEST_CASE("one step of a query is a sequence of one", "[layers][attention]") {
    for (auto& score : all_scores()) {
        const Attention attention(std::move(score));
        Generator generator(12);
        Tape tape;
        const Tensor q = tape.constant(generator.normal({2, 4})), k = tape.constant(generator.normal({2, 5, 4}));
        const Memory memory = attention.remember(k, padding({2, 5}, 5));
        const Attended step = attention(q, memory), sequence = attention(unsqueeze(q, 1), memory);
        CHECK(step.context.shape() == Shape{2, 4});
        CHECK(step.weights.shape() == Shape{2, 5});
        CHECK(same_bits(step.context.value(), squeeze(sequence.context, 1).value()));
        CHECK(same_bits(step.weights.value(), squeeze(sequence.weights, 1).value()));
    }
}

TEST_CASE("keys are projected once, however many queries come", "[layers][attention]") {
    Generator generator(13);
    const Attention attention{AdditiveScore(2, 4, 3, generator)};
    Tape tape;
    const Tensor q = tape.leaf(generator.normal({2, 2})), k = tape.leaf(generator.normal({2, 5, 4}));
    const Memory memory = attention.remember(k);
    const auto products = [&] {
        std::size_t count = 0;
        for (Id id = 0; id < tape.size(); ++id) count += std::string(tape[id].op) == "matmul";
        return count;
    };
    CHECK(products() == 1);
    for (int t = 0; t < 10; ++t) attention(q, memory);
    CHECK(products() == 1 + 10 * 2);  // the query's own, and the context
}

TEST_CASE("attention over no keys gives nothing, and no queries get nothing", "[layers][attention]") {
    for (auto& score : all_scores()) {
        INFO(score->name());
        const Attention attention(std::move(score));
        Tape tape;
        const Tensor q = tape.leaf(filled({2, 3, 4}, 1)), none = tape.leaf(filled({2, 0, 4}, 0));
        const auto [context, weights] = attention(q, none, none);
        CHECK(weights.shape() == Shape{2, 3, 0});
        CHECK(close(context.value(), filled({2, 3, 4}, 0)));
        CHECK(close(tape.backward(sum(context), {q})[q], filled({2, 3, 4}, 0)));
        CHECK(attention(none, q, q).context.shape() == Shape{2, 0, 4});
        const Tensor empty = tape.leaf(filled({0, 3, 4}, 0));
        CHECK(attention(empty, empty, empty).context.shape() == Shape{0, 3, 4});
    }
}

TEST_CASE("attention names its score in errors", "[layers][attention]") {
    Generator generator(14);
    Tape tape;
    const auto x = [&](const Shape& shape) { return tape.leaf(filled(shape, 1)); };
    const Attention additive_attention{AdditiveScore(3, 5, 8, generator)}, dot{DotScore{}}, scaled{ScaledDotScore{}},
        bilinear{BilinearScore(3, 5, generator)}, concat_attention{ConcatScore(3, 5, 8, generator)},
        location{LocationScore(3, 4, generator)};
    CHECK_THROWS_WITH(additive_attention.remember(x({2, 3, 4})),
                      "[AdditiveScore] keys (2,3,4) does not match W_k (5,8)");
    const Memory memory = additive_attention.remember(x({2, 3, 5}));
    CHECK_THROWS_WITH(additive_attention(x({2, 4}), memory), "[AdditiveScore] query (2,1,4) does not match W_q (3,8)");
    CHECK_THROWS_WITH(additive_attention(x({1, 3}), memory),
                      "[AdditiveScore] query (1,1,3) is not (B,T_q,Q) or (B,Q) for values (2,3,5)");
    CHECK_THROWS_AS(additive_attention(x({3}), memory), ShapeError);
    CHECK_THROWS_WITH(dot(x({2, 3}), dot.remember(x({2, 3, 5}))),
                      "[DotScore] query (2,1,3) and keys (2,3,5) differ in width");
    CHECK_THROWS_AS(scaled(x({2, 3}), scaled.remember(x({2, 3, 5}))), ShapeError);
    CHECK_THROWS_AS(bilinear.remember(x({2, 3, 3})), ShapeError);
    CHECK_THROWS_AS(bilinear(x({2, 5}), bilinear.remember(x({2, 3, 5}))), ShapeError);
    CHECK_THROWS_AS(concat_attention.remember(x({2, 3, 3})), ShapeError);
    CHECK_THROWS_AS(concat_attention(x({2, 5}), concat_attention.remember(x({2, 3, 5}))), ShapeError);
    CHECK_THROWS_WITH(location(x({2, 3}), location.remember(x({2, 5, 1}))),
                      "[LocationScore] keys (2,5,1) are more than the places of W (3,4)");
    CHECK_THROWS_WITH(dot.remember(x({2, 3, 5}), x({2, 4, 5})),
                      "[DotScore] keys must be (B,T_k,K) and values (B,T_k,D): (2,3,5) and (2,4,5)");
    CHECK_THROWS_AS(dot.remember(x({3, 5})), ShapeError);
    CHECK_THROWS_WITH(dot(x({2, 1, 5}), x({2, 3, 5}), x({2, 3, 5}), padding({1}, 2)),
                      "[DotScore] a mask must be (T_q,T_k) or (B,T_q,T_k): (1,1,2) over scores (2,1,3)");
    CHECK_THROWS_AS(
        AdditiveScore(Parameter(filled({2, 3}, 0)), Parameter(filled({2, 4}, 0)), Parameter(filled({3}, 0))),
        ShapeError);
    CHECK_THROWS_AS(ConcatScore(Parameter(filled({2, 3}, 0)), Parameter(filled({3}, 0)), 3), ShapeError);
    CHECK_THROWS_AS(BilinearScore(Parameter(filled({2}, 0))), ShapeError);
    CHECK_THROWS_AS(AdditiveScore(0, 5, 8, generator), ValueError);
}

// ---- Local attention

TEST_CASE("monotonic local attention sees a window around its own step", "[layers][attention]") {
    const LocalAttention local(Attention{DotScore{}}, 1);
    Tape tape;
    Generator generator(15);
    const Tensor q = tape.constant(generator.normal({2, 4, 3})), k = tape.constant(generator.normal({2, 4, 3}));
    const Memory memory = local.remember(k, padding({4, 2}, 4));
    const Attended all = local(q, memory);
    const Attended windowed = Attention{DotScore{}}(q, k, k, padding({4, 2}, 4) & window(4, 4, 1, 1, Align::start));
    CHECK(same_bits(all.weights.value(), windowed.weights.value()));
    CHECK(close(select(select(all.weights, 0, 1), 0, 3).value(), {0, 0, 0, 0}));  // its window lies in the padding
    for (std::size_t t = 0; t < 4; ++t) {
        const Attended step = local(select(q, 1, std::int64_t(t)), memory, t);
        CHECK(close(step.weights.value(), select(all.weights, 1, std::int64_t(t)).value(), 1e-14, 1e-14));
        CHECK(close(step.context.value(), select(all.context, 1, std::int64_t(t)).value(), 1e-14, 1e-14));
    }
}

TEST_CASE("predictive local attention falls off around a centre that it learns", "[layers][attention]") {
    // tanh(q W) v = 0 · 1: the centre is half of the visible length.
    LocalAttention local(Attention{DotScore{}}, 2, {Parameter(array({2, 1}, {0, 0})), Parameter(array({1}, {1}))});
    Tape tape;
    const Tensor q = tape.leaf(array({2, 1, 2}, {1, 1, 1, 1})), k = tape.leaf(filled({2, 6, 2}, 0));
    const auto [context, weights] = local(q, local.remember(k, padding({6, 4}, 6)));
    const double near = std::exp(-0.5), far = std::exp(-2.);  // σ = 1
    CHECK(close(weights.value(), array({2, 1, 6}, {0, far / 5, near / 5, 1. / 5, near / 5, far / 5, far / 4, near / 4,
                                                   1. / 4, near / 4, 0, 0})));  // centre 2, place 4 is hidden
    // ∂(weight of place 2)/∂p = weight · (2 − 3) / σ² · (−1) … by p alone, and p = 6 σ(x) has slope 6/4 at x = 0.
    const Gradients g = tape.backward(reshape(slice(slice(weights, 0, 0, 1), 2, 2, 3), Sizes(1)), {});
    CHECK(close(g[local.centre->W], array({2, 1}, {-near / 5 * 1.5, -near / 5 * 1.5})));
}

TEST_CASE("the gradients of predictive local attention agree with central differences", "[layers][attention]") {
    Generator generator(16);
    const LocalAttention local(Attention{BilinearScore(3, 4, generator)}, 3,
                               LocalAttention::predicted(3, 2, generator));
    const auto report = gradcheck(
        [&](const std::vector<Tensor>& x) {
            const auto [context, weights] = local(x[0], local.attention.remember(x[1], x[1], padding({5, 3}, 5)));
            return concat({context, weights}, -1);
        },
        {generator.normal({2, 2, 3}), generator.normal({2, 5, 4})});
    INFO(report.why);
    CHECK(report.ok);
}

TEST_CASE("local attention shows its parameters and refuses what can't be", "[layers][attention]") {
    Generator generator(17);
    LocalAttention local(Attention{BilinearScore(3, 4, generator)}, 3, LocalAttention::predicted(3, 2, generator));
    std::vector<std::string> paths;
    local.for_each_parameter("local", [&](const std::string& path, Parameter&) { paths.push_back(path); });
    CHECK(paths == std::vector<std::string>{"local.attention.W", "local.centre.W", "local.centre.v"});
    CHECK_THROWS_AS(LocalAttention(Attention{DotScore{}}, 0, LocalAttention::predicted(3, 2, generator)), ValueError);
    Tape tape;
    const LocalAttention dot(Attention{DotScore{}}, 1, LocalAttention::predicted(3, 2, generator));
    const Tensor x = tape.leaf(filled({2, 3, 4}, 1));
    CHECK_THROWS_WITH(dot(x, dot.remember(x)), "[LocalAttention] query (2,3,4) does not match W (3,2)");
}
