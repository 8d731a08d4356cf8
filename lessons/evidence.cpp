#include "lessons/evidence.hpp"
#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include "engine/gradcheck.hpp"
#include "engine/ops.hpp"
#include "engine/paths.hpp"
#include "engine/spectrum.hpp"
#include "engine/trace.hpp"
#include "layers/init.hpp"
#include "layers/lstm.hpp"
#include "layers/multi_head.hpp"
#include "layers/rnn.hpp"
#include "lessons/by_hand.hpp"
#include "lessons/cost.hpp"
#include "lessons/measure.hpp"

namespace lookback::evidence {
namespace {

constexpr std::size_t E = 8, H = 32;  // width of a word, of a state

std::vector<Array> random_words(Generator& generator, std::size_t T) {
    std::vector<Array> words;
    for (std::size_t t = 0; t < T; ++t) words.push_back(generator.normal({1, E}));
    return words;
}

// What a step back multiplies by, from norms of which each belongs to one step: the slope of their logarithms.
double factor_of(const std::vector<double>& norms) {
    std::vector<double> logs;
    for (const double n : norms) logs.push_back(std::log(n));
    return std::exp(-measure::slope(measure::range(1, norms.size()), logs));
}

double sum_of_sizes(const Array& x) {
    double total = 0;
    for (const double v : numbers(x)) total += std::abs(v);
    return total;
}
double count_of_nans(const Array& x) {
    const std::vector<double> all = numbers(x);
    return double(std::count_if(all.begin(), all.end(), [](double v) { return std::isnan(v); }));
}
double largest(const Array& x) {
    double most = 0;
    for (const double v : numbers(x)) most = std::max(most, std::abs(v));
    return most;
}

Array row_of(const std::vector<double>& x) {
    Array row = filled({1, x.size()}, 0);
    std::copy(x.begin(), x.end(), row.data());
    return row;
}
Array softmax_of(const std::vector<double>& scores) {
    Tape tape;
    return softmax(tape.constant(row_of(scores)), -1).value();
}
// One score after T − 1 zeros.
std::vector<double> one_apart(std::size_t T, double score) {
    std::vector<double> scores(T, 0.0);
    scores.back() = score;
    return scores;
}

}  // namespace

Decay rnn_decay(std::uint64_t seed, std::size_t T) {
    Generator generator(seed);
    const RNN rnn(E, H, generator);
    Tape tape;
    std::vector<Tensor> states;
    RNN::State state = rnn.start(tape, 1);
    for (const Array& word : random_words(generator, T)) states.push_back((state = rnn(tape.constant(word), state)).h);
    const Array u = generator.normal({1, H});
    const Gradients g = tape.backward(states.back(), states, {.keep = Keep::wanted, .seed = u});
    Decay decay;
    for (const Tensor& h : states) decay.norms.push_back(norm(g[h]) / norm(u));
    decay.factor = factor_of(decay.norms);
    double logs = 0;
    for (std::size_t t = 1; t < T; ++t)
        logs += std::log(std::pow(frobenius_norm(by_hand::rnn_jacobian(rnn.U.value(), states[t].value())), 2) / H) / 2;
    decay.theory = std::exp(logs / double(T - 1));
    return decay;
}

double lstm_factor(std::uint64_t seed, std::size_t T, double forget_bias) {
    Generator generator(seed);
    Array b = filled({4 * H}, 0);
    std::fill(b.data() + H, b.data() + 2 * H, Real(forget_bias));
    const LSTM lstm(Parameter(filled({E, 4 * H}, 0)), Parameter(filled({H, 4 * H}, 0)), Parameter(b));
    Tape tape;
    std::vector<Tensor> cells;
    LSTM::State state = lstm.start(tape, 1);
    for (const Array& word : random_words(generator, T)) cells.push_back((state = lstm(tape.constant(word), state)).c);
    const Gradients g =
        tape.backward(cells.back(), cells, {.keep = Keep::wanted, .seed = Array(generator.normal({1, H}))});
    std::vector<double> norms;
    for (const Tensor& c : cells) norms.push_back(norm(g[c]));
    return factor_of(norms);
}

Way way_back(Reader reader, std::uint64_t seed, std::size_t T) {
    Generator generator(seed);
    const RNN rnn(E, H, generator);
    const Linear query(E, H, generator), key(E, H, generator), value(E, H, generator);
    Tape tape;
    std::vector<Tensor> words, states;
    RNN::State state = rnn.start(tape, 1);
    for (const Array& word : random_words(generator, T)) {
        words.push_back(tape.leaf(word));
        if (reader != Reader::self_attention) states.push_back((state = rnn(words.back(), state)).h);
    }
    const Attention attention{ScaledDotScore()};
    Tensor output;
    if (reader == Reader::self_attention) {
        const Tensor all = stack(words, 1);
        output = attention(query(words.back()), key(all), value(all)).context;
    } else {
        output = states.back();
        if (reader == Reader::rnn_with_attention)
            output = attention(output, stack(states, 1), stack(states, 1)).context;
    }
    const Array u = generator.normal({1, H});
    const Gradients g = tape.backward(output, {words[0]}, {.keep = Keep::wanted, .seed = u});
    const PathReport path = paths(output, {words[0]})[0];
    return {path.shortest, path.longest, norm(g[words[0]]) / norm(u)};
}

double settling_product(std::size_t n) {
    Tape tape;
    const Tensor first = tape.leaf(Array(Shape{}, Real(1)));
    Tensor h = first;
    for (std::size_t k = 2; k <= n + 1; ++k) h = h * Real(1 - 1 / (double(k) * double(k)));
    return tape.backward(h, {first})[first]();
}

double share_at_gap(std::size_t T, double gap) {
    Tape tape;
    const Tensor values = tape.leaf(filled({T, 1}, 1));
    const Tensor context = matmul(softmax(tape.constant(row_of(one_apart(T, -gap))), -1), values);
    return tape.backward(context, {values})[values](T - 1, 0);
}

std::size_t remembered(std::uint64_t seed, std::size_t N, std::size_t inputs) {
    Generator generator(seed);
    const Array U = init::orthogonal(generator, {N, N});
    Tape tape;  // h_T = Σ_k x_{T−k} w U^k: a row w U^k for each input
    Tensor row = tape.constant(generator.normal({1, N}));
    std::vector<Tensor> rows;
    for (std::size_t k = 0; k < inputs; ++k, row = matmul(row, tape.constant(U))) rows.push_back(row);
    return rank(concat(rows, 0).value());
}

std::vector<ScoreCost> score_costs(std::uint64_t seed, std::size_t T, std::size_t d) {
    Generator generator(seed);
    const Array queries = generator.normal({1, T, d}), keys = generator.normal({1, T, d});
    std::vector<std::pair<std::string, Attention>> scores;
    scores.emplace_back("dot", Attention(DotScore()));
    scores.emplace_back("scaled dot", Attention(ScaledDotScore()));
    scores.emplace_back("bilinear", Attention(BilinearScore(d, d, generator)));
    scores.emplace_back("additive", Attention(AdditiveScore(d, d, d, generator)));
    std::vector<ScoreCost> costs;
    for (auto& [name, attention] : scores) {
        ScoreCost cost{name, 0, 0, 0, 0};
        attention.for_each_parameter("",
                                     [&](const std::string&, Parameter& p) { cost.parameters += double(p.size()); });
        const auto pairs = [&, &score = *attention.score](Tape& tape) {
            return score(tape.leaf(queries), score.project(tape.leaf(keys)));
        };
        {
            Tape tape;
            const std::ptrdiff_t before = Recycler::live.bytes;
            const Tensor s = pairs(tape);
            cost.bytes = double(Recycler::live.bytes - before);
            cost.flops = cost::product_flops(tape) + cost::elementwise_flops(tape);
        }
        costs.push_back(cost);
    }
    std::vector<std::vector<double>> seconds(scores.size());
    for (int run = 0; run < 5; ++run)  // in turn: the first runs of all are the cold ones
        for (std::size_t i = 0; i < scores.size(); ++i) {
            const Score& score = *scores[i].second.score;
            Tape tape;
            const NoGrad no_grad(tape);
            const Tensor q = tape.constant(queries), k = tape.constant(keys);
            const int times = i + 1 < scores.size() ? 20 : 1;  // the clock counts microseconds
            const std::clock_t start = std::clock();
            for (int t = 0; t < times; ++t) score(q, score.project(k));
            seconds[i].push_back(double(std::clock() - start) / CLOCKS_PER_SEC / times);
        }
    for (std::size_t i = 0; i < costs.size(); ++i) costs[i].seconds = measure::median(seconds[i]);
    return costs;
}

double self_attention_flops(std::size_t T, std::size_t d) {
    Generator generator(0);
    const MultiHead layer(d, 1, generator, {.bias = Linear::Bias::no});
    Tape tape;
    const Tensor x = tape.leaf(filled({1, T, d}, 0));
    const std::size_t before = tape.size();
    layer(x, x, x);
    return cost::product_flops(tape, before);
}
double rnn_flops(std::size_t T, std::size_t d) {
    Generator generator(0);
    const RNN rnn(d, d, generator);
    Tape tape;
    RNN::State state = rnn.start(tape, 1);
    const Tensor x = tape.leaf(filled({1, d}, 0));
    for (std::size_t t = 0; t < T; ++t) state = rnn(x, state);
    return cost::product_flops(tape);
}

Spread dot_spread(std::uint64_t seed, std::size_t d, bool scaled) {
    constexpr std::size_t queries = 200, keys = 16;
    Generator generator(seed);
    Tape tape;
    const Tensor q = tape.constant(generator.normal({queries, 1, d})),
                 k = tape.constant(generator.normal({queries, keys, d}));
    const Array scores = scaled ? ScaledDotScore()(q, k).value() : DotScore()(q, k).value();
    Spread spread{0, 0};
    for (const double s : numbers(scores)) spread.variance += s * s / double(queries * keys);
    const Tensor s = tape.leaf(scores), alpha = softmax(s, -1);
    for (std::size_t i = 0; i < keys; ++i) {  // ∂α_i/∂s_i of all queries, by one pullback
        Array seed_of_i = filled({queries, 1, keys}, 0);
        for (std::size_t n = 0; n < queries; ++n) seed_of_i(n, 0, i) = 1;
        const Gradients g = tape.backward(alpha, {s}, {.seed = std::move(seed_of_i)});
        for (std::size_t n = 0; n < queries; ++n) spread.sensitivity += double(g[s](n, 0, i)) / double(queries);
    }
    return spread;
}

double weight_sum_error(std::uint64_t seed) {
    Generator generator(seed);
    Tape tape;
    return largest((sum(softmax(tape.constant(generator.normal({500, 16}, 0, 5)), -1), -1) - 1).value());
}

double steepest_softmax(std::uint64_t seed) {
    Generator generator(seed);
    double steepest = 0;
    for (int draw = 0; draw < 100; ++draw) {
        Tape tape;
        const Tensor s = tape.leaf(generator.normal({8}, 0, 0.1 * draw));
        steepest = std::max(steepest, spectral_norm(jacobian(softmax(s, -1), s)));
    }
    return steepest;
}
double steepest_softmax_at_two_equal_scores() {
    Tape tape;
    const Tensor s = tape.leaf(filled({2}, 0));
    return spectral_norm(jacobian(softmax(s, -1), s));
}

double vanishing_gap() {
    double visible = 0, gone = 2000;  // halved until a thousandth is between them
    while (gone - visible > 1e-3) {
        const double middle = (visible + gone) / 2;
        (softmax_of({0, -middle})(0, 1) > 0 ? visible : gone) = middle;
    }
    return gone;
}

double top_weight(std::size_t T, double margin) { return softmax_of(one_apart(T, margin))(0, T - 1); }

double contribution_of_heavy_zero() {
    Tape tape;
    const Tensor weights = softmax(tape.constant(row_of({std::log(4.0), 0})), -1);
    const Tensor values = tape.leaf(Array({{Real(0), Real(0)}, {Real(1), Real(0)}}));
    const Tensor without = masked_fill(weights, Mask({1, 2}, {false, true}), 0);
    return norm((matmul(weights, values) - matmul(without, values)).value());
}

std::size_t free_directions(std::uint64_t seed, std::size_t T, std::size_t d) {
    Generator generator(seed);
    Tape tape;  // moves δ with δ V = 0 and Σ δ = 0
    return T - rank(concat({tape.constant(generator.normal({T, d})), tape.constant(filled({T, 1}, 1))}, 1).value());
}

double plain_loops_difference(std::uint64_t seed) {
    constexpr std::size_t T_q = 3, T_k = 5, d_k = 16, d_v = 8;
    Generator generator(seed);
    const Array Q = generator.normal({1, T_q, d_k}), K = generator.normal({1, T_k, d_k}),
                V = generator.normal({1, T_k, d_v});
    Tape tape;
    const Array context =
        Attention(ScaledDotScore())(tape.constant(Q), tape.constant(K), tape.constant(V)).context.value();
    double worst = 0;
    for (std::size_t t = 0; t < T_q; ++t) {
        std::vector<double> alpha(T_k, 0.0);
        double total = 0;
        for (std::size_t i = 0; i < T_k; ++i) {
            for (std::size_t j = 0; j < d_k; ++j) alpha[i] += double(Q(0, t, j)) * double(K(0, i, j));
            total += alpha[i] = std::exp(alpha[i] / std::sqrt(double(d_k)));
        }
        for (std::size_t j = 0; j < d_v; ++j) {
            double c = 0;
            for (std::size_t i = 0; i < T_k; ++i) c += alpha[i] / total * double(V(0, i, j));
            worst = std::max(worst, std::abs(c - double(context(0, t, j))));
        }
    }
    return worst;
}

double share_of_real(std::size_t real, std::size_t pads) {
    const Array weights = softmax_of(std::vector<double>(real + pads, 0.0));
    double share = 0;
    for (std::size_t i = 0; i < real; ++i) share += weights(0, i);
    return share;
}

PrintedMask printed_mask(std::uint64_t seed) {
    Generator generator(seed);
    Tape tape;
    const Tensor scores = tape.leaf(generator.normal({4, 4})), values = tape.constant(generator.normal({4, 2}));
    const std::vector<bool> real{true, true, true, false};
    const Array printed = softmax(masked_fill(scores, Mask({4, 1}, real), Real(-1e9)), -1).value();
    const Tensor correct = attention_weights(scores, Mask({1, 4}, real));
    const Gradients g = tape.backward(sum(matmul(correct, values)), {scores});
    PrintedMask found{1, 0, 0, 0};
    for (std::size_t i = 0; i < 4; ++i) {
        found.least_on_pad = std::min(found.least_on_pad, double(printed(i, 3)));
        found.pad_row_largest = std::max(found.pad_row_largest, double(printed(3, i)));
        found.correct_on_pad += double(correct.value()(i, 3));
        found.correct_gradient += std::abs(double(g[scores](i, 3)));
    }
    return found;
}

EmptyRow empty_row() {
    const Mask nothing({1, 3}, {false, false, false});
    Tape tape;
    const Tensor s = tape.leaf(row_of({1, 2, 3})), values = tape.leaf(filled({3, 2}, 1));
    const Tensor by_infinity = softmax(masked_fill(s, nothing, -std::numeric_limits<Real>::infinity()), -1);
    const Tensor thrown_away = where(Mask({1, 1}, {false}), matmul(by_infinity, values), 0);
    const Tensor left_out = masked_softmax(s, nothing, -1);
    const Gradients g = tape.backward(sum(matmul(left_out, values)), {s, values});
    return {count_of_nans(by_infinity.value()), count_of_nans(tape.backward(sum(thrown_away), {values})[values]),
            sum_of_sizes(left_out.value()) + sum_of_sizes(g[s]) + sum_of_sizes(g[values])};
}

PaddedSentence::PaddedSentence(Generator generator)
    : layer(E, 2, generator), words(generator.normal({1, T, E})), pads(filled({1, most, E}, 0)) {
    const Array one = generator.normal({E});
    for (std::size_t i = 0; i < pads.size(); ++i) pads.data()[i] = one.data()[i % E];
}

double change_by_pads(std::uint64_t seed, bool masked) {
    constexpr std::size_t T = PaddedSentence::T, all = T + PaddedSentence::most;
    const PaddedSentence s{Generator(seed)};
    Tape tape;
    const Tensor x = tape.constant(s.words), longer = concat({x, tape.constant(s.pads)}, 1);
    const std::optional<Mask> visible = masked ? std::optional(padding({T}, all)) : std::nullopt;
    const Tensor padded = s.layer(longer, longer, longer, visible).context;
    return measure::relative_difference(numbers(slice(padded, 1, 0, std::int64_t(T)).value()),
                                        numbers(s.layer(x, x, x).context.value()));
}

Causality causality(std::uint64_t seed) {
    constexpr std::size_t T = 6;
    Generator generator(seed);
    const MultiHead layer(E, 1, generator);
    Tape tape;
    const Tensor x = tape.leaf(generator.normal({1, T, E}));
    const Array J = jacobian(layer(x, x, x, causal(T, T, Align::start)).context, x);
    Causality found{0, 0};
    for (std::size_t i = 0; i < T; ++i)
        for (std::size_t j = 0; j < T; ++j) {
            double squares = 0;
            for (std::size_t a = 0; a < E; ++a)
                for (std::size_t b = 0; b < E; ++b) squares += std::pow(double(J(i * E + a, j * E + b)), 2);
            found.visible += squares > 0;
            if (j > i) found.future += std::sqrt(squares);
        }
    return found;
}

}  // namespace lookback::evidence
