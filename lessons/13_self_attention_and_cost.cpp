// Self-attention: no order, constant depth in training, T² work and memory.
//
// One layer whose queries, keys and values come from the same tokens: its formula, its gradient, what shuffling does,
// how deep it is beside recurrent networks, what it costs, and what is left of the tokens after several such layers.
#include <chrono>
#include <cmath>
#include <functional>
#include "engine/ops.hpp"
#include "engine/paths.hpp"
#include "layers/gru.hpp"
#include "layers/lstm.hpp"
#include "layers/multi_head.hpp"
#include "layers/rnn.hpp"
#include "layers/seq2seq.hpp"
#include "lessons/cost.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using measure::largest_difference;
using terminal::number;
using enum Trace::Kind;

static Array shuffled(const Array& x, const std::vector<std::size_t>& order) {  // of tokens (1,T,E)
    Array y = x;
    for (std::size_t t = 0; t < order.size(); ++t)
        for (std::size_t e = 0; e < x.shape()[2]; ++e) y(0, t, e) = x(0, order[t], e);
    return y;
}

// softmax(QKᵀ/√d)V in plain loops: the second route.   q (T_q,d), k (T_k,d), v (T_k,d)
static Array attention_by_hand(const Array& q, const Array& k, const Array& v) {
    Array y = filled({q.shape()[0], v.shape()[1]}, 0);
    for (std::size_t i = 0; i < q.shape()[0]; ++i) {
        std::vector<double> e(k.shape()[0], 0.0);
        double total = 0;
        for (std::size_t j = 0; j < e.size(); ++j) {
            for (std::size_t a = 0; a < q.shape()[1]; ++a) e[j] += double(q(i, a)) * double(k(j, a));
            total += e[j] = std::exp(e[j] / std::sqrt(double(q.shape()[1])));
        }
        for (std::size_t j = 0; j < e.size(); ++j)
            for (std::size_t a = 0; a < v.shape()[1]; ++a) y(i, a) += Real(e[j] / total * double(v(j, a)));
    }
    return y;
}

static void one_source(Lesson& lesson, Generator& generator) {
    const std::size_t T = 7, E = 8;
    const MultiHead layer(E, 1, generator, {.bias = Linear::Bias::no});
    Tape tape;
    const Tensor x = tape.leaf(generator.normal({1, T, E})), three = tape.leaf(generator.normal({1, 3, E}));
    const Tensor q = layer.query(x), k = layer.key(x), v = layer.value(x);
    const Attended a = Attention(ScaledDotScore{})(q, k, v);
    const auto matrix = [](const Tensor& t) { return reshape(t, {t.shape(1), t.shape(2)}).value(); };
    lesson.check("13.formula", "softmax(QKᵀ/√d)V: tape − plain loops", le,
                 largest_difference(matrix(a.context), attention_by_hand(matrix(q), matrix(k), matrix(v))), 0, 1e-13,
                 "Vaswani et al. 2017, eq. 1");

    // One X behind all three: its gradient is the sum of what comes back through each.
    const Gradients g = tape.backward(sum(a.context * a.context), {x, q, k, v});
    const auto back = [&](const Tensor& part, const Linear& projection) {
        return matmul_transposed(tape.constant(g[part]), projection.W);
    };
    const Array parts = (back(q, layer.query) + back(k, layer.key) + back(v, layer.value)).value();
    lesson.say(
        "Queries, keys and values are three projections of the same 7 tokens X: each token asks (query), is searched "
        "(key) and is read (value). Its gradient is the sum of all three roles, with X̄ for ∂L/∂X:");
    lesson.line("   X̄ = Q̄W_qᵀ + K̄W_kᵀ + V̄W_vᵀ");
    lesson.check("13.three_roles", "X̄ on the tape − the three parts", le, largest_difference(g[x], parts), 0, 1e-12,
                 "chain rule");

    const Tensor& memory = lesson.broken("own-keys") ? three : x;
    const Attended cross = layer(three, memory, memory);
    const auto order = generator.permutation(T);
    const Tensor moved = tape.leaf(shuffled(x.value(), order));
    const Attended again = layer(three, moved, moved);
    lesson.say("Not all attention is square: 3 queries from elsewhere against these 7 tokens give weights " +
               text(cross.weights.shape()) + " (batch, head, T_q, T_k) and 3 context vectors.");
    const Array heads = attention_by_hand(matrix(layer.query(three)), matrix(k), matrix(v));
    lesson.check("13.cross", "3 queries, 7 keys: tape − plain loops", le,
                 largest_difference(matrix(cross.context), layer.output(tape.constant(heads)).value()), 0, 1e-13,
                 "Vaswani et al. 2017, eq. 1");
    lesson.check("13.memory_order", "Keys shuffled with values: change", le,
                 largest_difference(cross.context.value(), again.context.value()), 0, 1e-13, "a sum has no order");

    const bool hides = lesson.broken("causal");
    const std::optional<Mask> past = causal(T, T, Align::start), none;
    const auto run = [&](const Tensor& t, const std::optional<Mask>& mask) {
        return layer(t, t, t, mask).context.value();
    };
    const auto error = [&](const std::optional<Mask>& mask) {
        return largest_difference(run(moved, mask), shuffled(run(x, mask), order));
    };
    lesson.say(
        "Shuffle the tokens, and the outputs are shuffled alike: f(PX) = P f(X). The layer cannot tell “dog "
        "bites man” from “man bites dog”. A causal mask breaks this, as it depends on places.");
    lesson.check("13.equivariant", "|f(PX) − P f(X)|", le, error(hides ? past : none), 0, 1e-13,
                 "no place occurs in f");
    lesson.check("13.causal_is_not", "The same under a causal mask", ge, error(past), 1e-3, 0, "the mask knows places");
}

// ---- depth: what must wait for what

struct Depth {
    double cells, longest;  // recurrent steps; ops on the longest path from the last output to the first input
};
static Depth depth_of(const Tensor& last, const Tensor& first) {
    double cells = 0;
    for (Id id = 0; id < last.tape().size(); ++id) {
        const std::string_view op = last.tape()[id].op;
        cells += op == "rnn_step" || op == "gru_step" || op == "lstm_step";
    }
    return {cells, double(paths(last, {first})[0].longest)};
}
static Depth rnn_depth(std::size_t T, Generator& generator) {
    const RNN rnn(4, 4, generator);
    Tape tape;
    const Tensor first = tape.leaf(filled({1, 4}, 1));
    RNN::State s = rnn(first, rnn.start(tape, 1));
    for (std::size_t t = 1; t < T; ++t) s = rnn(tape.constant(filled({1, 4}, 1)), s);
    return depth_of(s.h, first);
}
static Depth self_attention_depth(std::size_t T, Generator& generator) {
    const MultiHead layer(4, 1, generator);
    Tape tape;
    const Tensor x = tape.leaf(generator.normal({1, T, 4}));
    return depth_of(layer(x, x, x).context, x);
}
// An encoder in one direction and a decoder that attends, both T long: the course's model.
static Depth with_attention_depth(std::size_t T, Generator& generator) {
    const GRU encoder(4, 4, generator), decoder(8, 4, generator);
    const Attention attention(DotScore{});
    Tape tape;
    const Tensor first = tape.leaf(filled({1, 1, 4}, 1));
    const Tensor x = T == 1 ? first : concat({first, tape.constant(filled({1, T - 1, 4}, 1))}, 1);
    const Sequence<GRU> states = unroll(encoder, x, encoder.start(tape, 1));
    const Memory memory = attention.remember(states.outputs);
    GRU::State s = states.last;
    for (std::size_t t = 0; t < T; ++t)
        s = decoder(concat({attention(s.h, memory).context, tape.constant(filled({1, 4}, 1))}, -1), s);
    return depth_of(s.h, first);
}

// A Transformer that writes T tokens, greedily: how often must it be called, each time with what it wrote last?
class Counting : public Decoding {
public:
    explicit Counting(Decoding& model) : model_(model) {}
    std::size_t rows() const override { return model_.rows(); }
    Next step(const Ids& previous) override { return ++calls, model_.step(previous); }
    void keep(const std::vector<std::size_t>& kept) override { model_.keep(kept); }
    std::size_t calls = 0;

private:
    Decoding& model_;
};
static double decoding_calls(std::size_t T, Generator& generator) {
    const Transformer model(8, 8, generator, {.width = 8, .heads = 2, .inner = 16, .layers = 1, .dropout = 0});
    TransformerDecoding decoding(model, padded(std::vector<Ids>{{3, 4, 5}}));
    Counting counted(decoding);
    greedy(counted, {.longest = T, .shortest = T});
    return double(counted.calls);
}

// Σ of terms by adding in pairs: depth ⌈log₂ n⌉.
static Tensor tree_sum(std::vector<Tensor> terms) {
    for (; terms.size() > 1; terms.resize((terms.size() + 1) / 2))
        for (std::size_t i = 0; i < terms.size() / 2; ++i) {
            const std::size_t half = (terms.size() + 1) / 2;
            terms[i] = terms[i] + terms[i + half];
        }
    return terms[0];
}
// One context entry from scalars alone, each op with two inputs: c = Σ e_i v_i / Σ e_i.
static double fan_in_two_depth(std::size_t T, std::size_t d) {
    Tape tape;
    const Tensor q = tape.leaf(filled({}, 1)), k = tape.leaf(filled({}, Real(0.01)));
    std::vector<Tensor> e, ev;
    for (std::size_t i = 0; i < T; ++i) {
        std::vector<Tensor> products;
        for (std::size_t a = 0; a < d; ++a) products.push_back(q * k);
        e.push_back(exp(tree_sum(products)));
        ev.push_back(e.back() * k);
    }
    return double(paths(tree_sum(ev) / tree_sum(e), {q})[0].longest);
}

// h_t = a_t h_{t−1} + b_t, step by step and by doubling: after round r, place t holds its last 2^r steps.
static std::pair<double, double> scan(std::size_t T, Generator& generator) {
    std::vector<double> a(T), b(T), h(T);
    for (std::size_t t = 0; t < T; ++t) {
        a[t] = generator.uniform(-1, 1), b[t] = generator.normal();
        h[t] = b[t] + (t ? a[t] * h[t - 1] : 0);
    }
    double rounds = 0, worst = 0;
    for (std::size_t reach = 1; reach < T; reach *= 2, ++rounds)
        for (std::size_t t = T; t-- > reach;) {  // downwards, so that what is read is of the round before
            b[t] += a[t] * b[t - reach];
            a[t] *= a[t - reach];
        }
    for (std::size_t t = 0; t < T; ++t) worst = std::max(worst, std::abs(b[t] - h[t]));
    return {rounds, worst};
}

static void depth(Lesson& lesson, Generator& generator) {
    const std::size_t T = 64;
    const Depth rnn = rnn_depth(T, generator), rnn_4 = rnn_depth(4, generator),
                both = with_attention_depth(T, generator), both_4 = with_attention_depth(4, generator),
                self = self_attention_depth(T, generator), self_4 = self_attention_depth(4, generator);
    const double calls = decoding_calls(T, generator);
    lesson.say(
        "The longest chain of ops of which each needs the one before: from the first input to the last output. An op "
        "is a matrix product, a softmax, a whole step of a cell. An RNN has one a step and one for the inputs:");
    lesson.line(terminal::table(
        {{"ops that must wait for each other", "T = 4", "T = 64", "of them cell steps"},
         {"RNN", number(rnn_4.longest), number(rnn.longest), number(rnn.cells)},
         {"RNN + attention (T_x = T_y = T)", number(both_4.longest), number(both.longest), number(both.cells)},
         {"self-attention, all at once", number(self_4.longest), number(self.longest), number(self.cells)}}));
    lesson.say(
        "“Fully parallel over the sequence” is true of self-attention in training. An RNN with attention, the "
        "model the course describes, still takes T_x + T_y steps one after the other. And writing is sequential "
        "for all: a Transformer had to be called " +
        number(calls) + " times for 64 tokens and the end mark.");
    lesson.check("13.rnn_steps", "RNN, T=64: cell steps in a row", eq, rnn.cells, 64, 0, "h_t needs h_{t−1}");
    lesson.check("13.attention_steps", "RNN + attention: steps, T_x + T_y", eq, both.cells, 128, 0,
                 "c_t needs s_{t−1}");
    lesson.check("13.self_depth", "Self-attention: ops more, T=64 than 4", eq, self.longest - self_4.longest, 0, 0,
                 "counted on the tape");
    lesson.check("13.rnn_depth", "RNN: ops more at T=64 than 4", eq, rnn.longest - rnn_4.longest, 60, 0,
                 "one op a step");
    lesson.check("13.decoding", "Decoding 64 tokens: calls in a row", eq, calls, 65, 0, "64 tokens and the end mark");

    const double deep = fan_in_two_depth(64, 16);
    const auto [rounds, error] = scan(T, generator);
    lesson.say(
        "“O(1) depth” counts whole matrix products as one op. If an op may have two inputs only, sums are trees: "
        "one context entry for T = 64, d = 16 took " +
        number(deep) +
        " levels = ⌈log₂ T⌉ + ⌈log₂ d⌉ + 4 (two "
        "products, one exponential, one division). And not every recurrence is sequential: a linear one, h_t = "
        "a_t h_{t−1} + b_t, ran in " +
        number(rounds) + " rounds by doubling. With a tanh in it, it does not.");
    lesson.check("13.fan_in", "Two inputs an op, T=64, d=16: levels", eq, deep,
                 std::ceil(std::log2(64.0)) + std::ceil(std::log2(16.0)) + 4, 0, "our own count");
    lesson.check("13.scan_rounds", "Linear recurrence, T=64: rounds", eq, rounds, std::ceil(std::log2(double(T))), 0,
                 "Martin & Cundy 2018; depth our count");
    lesson.check("13.scan", "Its values − step by step", le, error, 0, 1e-12, "a scan is associative");
}

// ---- cost

static double flops(const std::function<void(Tape&)>& run) {
    Tape tape;
    run(tape);
    return cost::product_flops(tape);
}
template <class Cell> static double recurrent_flops(std::size_t T, std::size_t d) {
    Generator generator(1);
    const Cell cell(d, d, generator);
    return flops([&](Tape& tape) { unroll(cell, tape.leaf(filled({1, T, d}, 0)), cell.start(tape, 1)); });
}
static double attention_flops(std::size_t T, std::size_t d) {
    Generator generator(1);
    const MultiHead layer(d, 1, generator, {.bias = Linear::Bias::no});
    return flops([&](Tape& tape) {
        const Tensor x = tape.leaf(filled({1, T, d}, 0));
        layer(x, x, x);
    });
}
// The T at which the layer costs exactly what the cell costs; 0 if there is none up to the limit.
static double crossover(std::size_t d, std::size_t limit, double (*recurrent)(std::size_t, std::size_t)) {
    for (std::size_t T = 1; T <= limit; ++T)
        if (attention_flops(T, d) == recurrent(T, d)) return double(T);
    return 0;
}
static double kept_bytes(std::size_t T) {
    Generator generator(1);
    const MultiHead layer(16, 1, generator);
    const auto before = Recycler::live.bytes;
    Tape tape;
    const Tensor x = tape.leaf(filled({1, T, 16}, Real(0.1)));
    const Tensor y = layer(x, x, x).context;
    return double(Recycler::live.bytes - before);
}

static void work(Lesson& lesson, bool time) {
    const std::size_t d = 64;
    std::vector<std::vector<std::string>> table{
        {"FLOPs, d = 64", "RNN", "GRU", "LSTM", "self-attention", "kept, d = 16"}};
    std::vector<double> lengths, counts[4], bytes;
    for (const std::size_t T : {16, 32, 64, 128, 256}) {
        lengths.push_back(double(T));
        counts[0].push_back(recurrent_flops<RNN>(T, d)), counts[1].push_back(recurrent_flops<GRU>(T, d));
        counts[2].push_back(recurrent_flops<LSTM>(T, d)), counts[3].push_back(attention_flops(T, d));
        bytes.push_back(kept_bytes(T));
        std::vector<std::string> row{"T = " + std::to_string(T)};
        for (const auto& c : counts) row.push_back(number(c.back(), "%.0f"));
        row.push_back(number(bytes.back() / 1024, "%.0f KiB"));
        table.push_back(row);
    }
    lesson.predict("gru");
    const double gru = crossover(16, 64, recurrent_flops<GRU>), lstm = crossover(16, 64, recurrent_flops<LSTM>),
                 rnn = crossover(16, 64, recurrent_flops<RNN>);
    lesson.reveal("gru", gru, 16);
    lesson.say(
        "Below d is 64. FLOPs are multiplications and additions, forwards, in matrix products alone: softmax, tanh and "
        "gates are left out. The last column is what self-attention keeps for the way back.");
    lesson.line(terminal::table(table));
    lesson.say(
        "The course does not name attention's price. With width d a self-attention layer costs 8Td² + 4T²d "
        "FLOPs (four projections; scores and sums), a recurrent one 4, 12 or 16 Td². So it is cheaper than a GRU "
        "while T < d, than an LSTM while T < 2d, and than a plain RNN never; and one T × T array of weights must "
        "be kept.");
    lesson.line(terminal::chart({{'r', "RNN", counts[0], lengths},
                                 {'g', "GRU", counts[1], lengths},
                                 {'l', "LSTM", counts[2], lengths},
                                 {'a', "self-attention", counts[3], lengths}},
                                {"tokens T", true}, {"FLOPs, d = 64", true}, 13));
    const double T = 64, D = 64;
    lesson.check("13.flops_rnn", "FLOPs of an RNN, T=64: 4Td²", eq, counts[0][2], 4 * T * D * D, 0,
                 "counted on the tape");
    lesson.check("13.flops_gru", "FLOPs of a GRU, T=64: 12Td²", eq, counts[1][2], 12 * T * D * D, 0,
                 "counted on the tape");
    lesson.check("13.flops_lstm", "FLOPs of an LSTM, T=64: 16Td²", eq, counts[2][2], 16 * T * D * D, 0,
                 "counted on the tape");
    lesson.check("13.flops_attention", "Self-attention, T=128: 8Td² + 4T²d", eq, counts[3][3],
                 8 * 128 * D * D + 4 * 128 * 128 * D, 0, "counted on the tape");
    lesson.check("13.like_gru", "Costs what a GRU does, d=16, at T", eq, gru, 16, 0, "8Td² + 4T²d = 12Td²");
    lesson.check("13.like_lstm", "Costs what an LSTM does, d=16, at T", eq, lstm, 32, 0, "8Td² + 4T²d = 16Td²");
    lesson.check("13.never_rnn", "T ≤ 64 at which it costs as an RNN", exact0, rnn, 0, 0, "8Td² > 4Td²");
    const double a_pair = (kept_bytes(1024) - 2 * kept_bytes(512)) / (2 * 512 * 512);
    lesson.check("13.memory", "Bytes kept for each pair of tokens", eq, a_pair, sizeof(Real), 0.05, "one T × T array");
    const char* const names[] = {"RNN FLOPs", "GRU FLOPs", "LSTM FLOPs", "self-attention FLOPs"};
    for (std::size_t i = 0; i < 4; ++i)
        lesson.trace().series.push_back({.name = names[i],
                                         .x_label = "tokens T",
                                         .x = lengths,
                                         .y_label = "work",
                                         .y_unit = "FLOPs",
                                         .y = counts[i]});
    lesson.trace().series.push_back({.name = "kept bytes",
                                     .x_label = "tokens T",
                                     .x = lengths,
                                     .y_label = "memory",
                                     .y_unit = "bytes",
                                     .y = bytes});
    if (!time) return;
    lesson.say("By the clock, forwards and backwards, d = 64 (medians of 9; this machine, now):");
    std::vector<std::vector<std::string>> times{{"milliseconds", "LSTM", "self-attention"}};
    Generator generator(1);
    const LSTM cell(d, d, generator);
    const MultiHead layer(d, 1, generator);
    for (const std::size_t length : {32, 128, 512}) {
        const auto median_of = [&](const std::function<Tensor(const Tensor&)>& run) {
            std::vector<double> seconds;
            for (int i = 0; i < 9; ++i) {
                const auto start = std::chrono::steady_clock::now();
                Tape tape;
                tape.backward(sum(run(tape.leaf(filled({1, length, d}, Real(0.1))))));
                seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
            }
            return measure::median(seconds);
        };
        const double recurrent =
                         median_of([&](const Tensor&x) { return unroll(cell, x, cell.start(x.tape(), 1)).outputs; }),
                     attends = median_of([&](const Tensor&x) { return layer(x, x, x).context; });
        times.push_back(
            {"T = " + std::to_string(length), number(1e3 * recurrent, "%.2f"), number(1e3 * attends, "%.2f")});
        lesson.trace().timings["LSTM T=" + std::to_string(length)] = recurrent;
        lesson.trace().timings["self-attention T=" + std::to_string(length)] = attends;
    }
    lesson.line(terminal::table(times));
}

// ---- attention alone, layer upon layer

// ‖X − 1x̄ᵀ‖ / ‖X‖: what tells the tokens apart, as a part of all.
static double residual(const Array& x) {
    double apart = 0;
    const std::size_t T = x.shape()[1], E = x.shape()[2];
    for (std::size_t e = 0; e < E; ++e) {
        double mean = 0;
        for (std::size_t t = 0; t < T; ++t) mean += double(x(0, t, e)) / double(T);
        for (std::size_t t = 0; t < T; ++t) apart += std::pow(double(x(0, t, e)) - mean, 2);
    }
    return std::sqrt(apart / sum_of_squares(x));
}
// The largest spread of a column over the tokens, and the bound of averaging: diam(Ax) ≤ τ(A) diam(x) for each column,
// τ(A) = ½ max Σ_k |A_ik − A_jk| (Dobrushin). Returns the worst of diam(Ax) − τ diam(x).
static double excess_over_dobrushin(const Array& A, const Array& x, const Array& Ax, double& tau) {
    const std::size_t T = x.shape()[1], E = x.shape()[2];
    tau = 0;
    for (std::size_t i = 0; i < T; ++i)
        for (std::size_t j = 0; j < i; ++j) {
            double apart = 0;
            for (std::size_t k = 0; k < T; ++k) apart += std::abs(double(A(0, i, k) - A(0, j, k))) / 2;
            tau = std::max(tau, apart);
        }
    const auto spread = [&](const Array& y, std::size_t e) {
        double low = double(y(0, 0, e)), high = low;
        for (std::size_t t = 0; t < T; ++t)
            low = std::min(low, double(y(0, t, e))), high = std::max(high, double(y(0, t, e)));
        return high - low;
    };
    double worst = -1e300;
    for (std::size_t e = 0; e < E; ++e) worst = std::max(worst, spread(Ax, e) - tau * spread(x, e));
    return worst;
}

static void collapse(Lesson& lesson, Generator& generator) {
    const std::size_t T = 16, E = 32, layers = 5;
    const Array tokens = generator.normal({1, T, E});
    std::vector<Array> W[3];
    for (std::size_t l = 0; l < layers; ++l)
        for (auto& w : W) w.push_back(generator.normal({E, E}, 0, 1 / std::sqrt(double(E))));
    std::vector<double> pure{residual(tokens)}, skip{residual(tokens)}, taus;
    double worst = -1e300;
    for (const bool with_skip : {false, true}) {
        Tape tape;
        Tensor x = tape.constant(tokens);
        for (std::size_t l = 0; l < layers; ++l) {
            const auto by = [&](std::size_t i) { return matmul(x, tape.constant(W[i][l])); };
            const Attended a = Attention(ScaledDotScore{})(by(0), by(1), by(2));
            double tau = 0;
            worst = std::max(worst, excess_over_dobrushin(a.weights.value(), by(2).value(), a.context.value(), tau));
            if (!with_skip) taus.push_back(tau);
            x = with_skip ? x + a.context : a.context;
            (with_skip ? skip : pure).push_back(residual(x.value()));
        }
    }
    std::vector<std::vector<std::string>> table{{"layers", "0", "1", "2", "3", "4", "5"}};
    for (const auto& [name, values] : {std::pair{"attention alone", pure}, {"x + attention(x)", skip}}) {
        table.push_back({name});
        for (const double v : values) table.back().push_back(number(v, "%.1e"));
    }
    lesson.say("What still tells 16 random tokens apart: ‖X − their mean‖ / ‖X‖, which is 0 when all are equal.");
    lesson.line(terminal::table(table));
    lesson.say(
        "An attention layer is an average, and averages of averages are all alike. The collapse is doubly exponential "
        "with depth (Dong et al. 2021): the exponent itself grows by a factor a layer, down to rounding at 1e-16. One "
        "layer leaves at most τ of the spread, half the largest difference between two rows of its weights "
        "(Dobrushin's coefficient). So a Transformer is not attention alone: with the skip it goes far more slowly, " +
        number(skip.back(), "%.2f") + " is left, and lesson 16 adds LayerNorm and the feed-forward layers.");
    lesson.check("13.dobrushin", "Spread after − τ(A) · spread before", le, worst, 0, 1e-12, "Dobrushin's coefficient");
    lesson.check("13.collapse", "5 layers of attention: what is left", le, pure.back(), 1e-3, 0, "Dong et al. 2021");
    lesson.check("13.skip", "5 layers with a skip: what is left", ge, skip.back(), 0.02, 0, "x is carried along");
    const std::vector<double> depths = measure::range(0, layers);
    lesson.trace().series.push_back({.name = "residual, attention alone",
                                     .x_label = "layers",
                                     .x = depths,
                                     .y_label = "‖X − mean‖/‖X‖",
                                     .y = pure});
    lesson.trace().series.push_back(
        {.name = "residual, with a skip", .x_label = "layers", .x = depths, .y_label = "‖X − mean‖/‖X‖", .y = skip});
    lesson.trace().series.push_back({.name = "Dobrushin's coefficient",
                                     .x_label = "layer",
                                     .x = measure::range(1, layers),
                                     .y_label = "Dobrushin's coefficient",
                                     .y = taus});
}

int main(int argc, char** argv) {
    Lesson lesson("13_self_attention_and_cost",
                  "Self-attention: no order, constant depth in training, T² work and memory.");
    bool time = false;
    lesson.flags().add("--time", time, "also time an LSTM and self-attention (times differ from run to run)");
    lesson.prediction("gru", "Width d = 16: for which number of tokens T does self-attention cost as much as a GRU?");
    lesson.exercise(
        "lstm", "Width d = 128: at which T do an LSTM and self-attention cost the same FLOPs?",
        [] {  // both are linear and quadratic in T, so two counts of each give the answer
            const double square = (attention_flops(2, 128) - 2 * attention_flops(1, 128)) / 2;
            return (recurrent_flops<LSTM>(1, 128) - attention_flops(1, 128) + square) / square;
        },
        0.5, "8Td² + 4T²d = 16Td²: divide by 4Td");
    lesson.damage("own-keys", "the 3 queries are set against their own tokens, not the 7");
    lesson.damage("causal", "the layer that should not know places has a causal mask");
    return lesson.run(argc, argv, [&] {
        Generator generator(lesson.seed());
        lesson.step("Queries, keys and values from one source");
        one_source(lesson, generator);
        lesson.step("What must wait for what");
        depth(lesson, generator);
        lesson.step("The price");
        work(lesson, time);
        lesson.step("Attention alone, layer upon layer");
        collapse(lesson, generator);
    });
}
