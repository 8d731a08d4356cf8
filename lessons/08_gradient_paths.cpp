// Attention's path is short; the weights decide how strong its gradient is.
#include <algorithm>
#include <cmath>
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/movement.hpp"
#include "engine/ops/softmax.hpp"
#include "engine/paths.hpp"
#include "layers/attention.hpp"
#include "layers/linear.hpp"
#include "layers/rnn.hpp"
#include "lessons/by_hand.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using enum Trace::Kind;
using Numbers = std::vector<double>;
using terminal::number;

static constexpr std::size_t T = 24, E = 8, H = 16;  // words, their width, the states' width
static constexpr std::size_t answer = 6;             // the decoder's step whose loss is watched

static double dot(const Numbers& a, const Numbers& b) {
    double s = 0;
    for (std::size_t i = 0; i < a.size(); ++i) s += a[i] * b[i];
    return s;
}
static Numbers sum_of(Numbers a, const Numbers& b, double factor = 1) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
    return a;
}
static void series(Lesson& lesson, const std::string& name, const std::string& x_label, const Numbers& x,
                   const std::string& y_label, const Numbers& y, const std::string& unit = "") {
    lesson.trace().series.push_back(
        {.name = name, .x_label = x_label, .x = x, .y_label = y_label, .y_unit = unit, .y = y});
}

// ---- Four models, one question: how far is it from the loss back to word t, and what arrives there?

struct Weights {
    RNN encoder, decoder;
    Linear q, k, v;
    std::vector<Array> words;
    Array u;  // L = output · u

    Weights(Generator& g, std::size_t count)
        : encoder(E, H, g), decoder(E, H, g), q(E, H, g), k(E, H, g), v(E, H, g), u(g.normal({H, 1})) {
        for (std::size_t t = 0; t < count; ++t) words.push_back(g.normal({1, E}));
    }
};

struct Walk {
    std::string name;
    char letter;
    std::vector<PathReport> paths = {};  // from the loss to x_t
    Numbers norms = {};                  // ‖∂L/∂x_t‖
    double encoder_hops = 0;             // from the last state to x_1
    std::vector<Array> states = {};      // of the encoder

    Numbers hops() const {
        Numbers all;
        for (const PathReport& p : paths) all.push_back(double(p.shortest));
        return all;
    }
};

// The loss is a fixed combination of what the model of that letter puts out.
static Walk walk(const Weights& w, std::string name, char letter) {
    Tape tape;
    Walk result{std::move(name), letter};
    std::vector<Tensor> x, h;
    RNN::State state = w.encoder.start(tape, 1);
    for (const Array& word : w.words) {
        x.push_back(tape.leaf(word));
        h.push_back((state = w.encoder(x.back(), state)).h);
    }
    result.encoder_hops = double(paths(h.back(), {x.front()})[0].shortest);
    for (const Tensor& one : h) result.states.push_back(one.value());
    Tensor output = h.back();  // R: the last state alone
    if (letter == 'D') {       // D: a decoder begins from it
        for (std::size_t t = 0; t < answer; ++t) state = w.decoder(tape.constant(filled({1, E}, 0)), state);
        output = state.h;
    }
    if (letter == 'A') output = Attention(ScaledDotScore())(h.back(), stack(h, 1), stack(h, 1)).context;
    if (letter == 'S') {
        const Tensor all = stack(x, 1);
        output = Attention(ScaledDotScore())(w.q(x.back()), w.k(all), w.v(all)).context;
    }
    const Tensor loss = matmul(output, tape.constant(w.u));
    result.paths = paths(loss, x);
    const Gradients g = tape.backward(loss, x, {.keep = Keep::wanted});
    for (const Tensor& word : x) result.norms.push_back(norm(g[word]));
    return result;
}

static void hops(Lesson& lesson) {
    lesson.step("Path length, counted on the tape");
    Generator generator(lesson.seed());
    const Weights weights(generator, T), twice(generator, 2 * T);
    const auto all = [](const Weights& w) {
        return std::vector<Walk>{walk(w, "RNN, last state", 'R'), walk(w, "encoder-decoder", 'D'),
                                 walk(w, "RNN with attention", 'A'), walk(w, "self-attention", 'S')};
    };
    lesson.say("Four models read " + std::to_string(T) + " words (fresh weights, " + std::to_string(H) +
               " units). How many operations lie on the shortest path from the loss back to word t? The decoder's loss "
               "is at its step " +
               std::to_string(answer) + ".");
    lesson.predict("hops");
    const std::vector<Walk> models = all(weights), longer = all(twice);
    const Numbers places = measure::range(1, T);
    std::vector<std::vector<std::string>> rows{
        {"shortest path, in operations", "to word 24", "to word 12", "to word 1", "word 1 of 48"}};
    std::vector<terminal::Curve> length, strength;
    for (std::size_t m = 0; m < models.size(); ++m) {
        const Numbers n = models[m].hops();
        rows.push_back(
            {models[m].name, number(n[T - 1]), number(n[T / 2 - 1]), number(n[0]), number(longer[m].hops()[0])});
        length.push_back({models[m].letter, models[m].name, n, places});
        strength.push_back({models[m].letter, models[m].name, models[m].norms, places});
        series(lesson, models[m].name + " path", "word t", places, "shortest path", n, "ops");
        series(lesson, models[m].name, "word t", places, "‖∂L/∂x_t‖", models[m].norms);
        lesson.trace().paths.push_back({"L (" + models[m].name + ")", "x_1", models[m].paths[0]});
    }
    lesson.line(terminal::table(rows));
    lesson.line(terminal::chart(length, {"word t"}, {"operations from the loss to word t"}, 13));
    const auto off = [&](const Walk& model, double slope) {  // from a straight line through the last word
        const Numbers n = model.hops();
        double worst = 0;
        for (std::size_t t = 0; t < n.size(); ++t)
            worst = std::max(worst, std::abs(n[t] - n.back() - slope * double(n.size() - 1 - t)));
        return worst;
    };
    const double steps = longer[1].hops()[0] - longer[0].hops()[0];
    lesson.reveal("hops", models[1].hops()[0] - models[1].hops()[T - 1], double(T - 1));
    lesson.say(
        "So the course is right about lengths: O(T) through the recurrence, O(1) through attention. Two things to add. "
        "An encoder-decoder's path is (T_x − 1) + t transitions, not t − 1. And attention shortens the way from the "
        "decoder to the encoder's states; inside the encoder, word 1 is still " +
        number(models[2].encoder_hops) + " operations away from the last state.");
    lesson.check("08.hops_rnn", "RNN: path − one op a step", eq, off(models[0], 1), 0, 0, "counted on the tape");
    lesson.check("08.hops_decoder", "Decoder: ops more than the RNN alone", eq, steps, double(answer), 0,
                 "(T_x − 1) + t transitions");
    lesson.check("08.hops_attention", "Attention: change of path over t", eq, off(models[2], 0), 0, 0,
                 "counted on the tape");
    lesson.check("08.hops_self", "Self-attention: change of path over t", eq, off(models[3], 0), 0, 0,
                 "counted on the tape");
    lesson.check("08.hops_length", "Attention: ops more at 48 words", eq, longer[2].hops()[0] - models[2].hops()[0], 0,
                 0, "O(1)");
    lesson.check("08.inside_encoder", "With attention: ops from h_T to x_1", eq, models[2].encoder_hops, double(T + 1),
                 0, "T steps, then x W + b");

    lesson.step("The same paths, and what arrives at their ends: ‖∂L/∂x_t‖");
    lesson.line(terminal::chart(strength, {"word t"}, {"‖∂L/∂x_t‖", true}, 15));
    std::vector<std::vector<std::string>> table{{"", "path to word 1", "‖∂L/∂x_1‖", "factor a word"}};
    Numbers rates;
    for (const Walk& model : models) {
        Numbers logs;
        for (double n : model.norms) logs.push_back(std::log(n));
        rates.push_back(measure::slope(places, logs));
        table.push_back({model.name, number(model.hops()[0]), number(model.norms[0], "%.1e"),
                         number(std::exp(-rates.back()), "%.3f")});
    }
    lesson.line(terminal::table(table));
    double theory = 0;  // of a random direction through U diag(1 − h²)
    for (std::size_t t = 1; t < T; ++t)
        theory +=
            std::log(sum_of_squares(by_hand::rnn_jacobian(weights.encoder.U.value(), models[0].states[t])) / H) / 2;
    lesson.say(
        "In the recurrent models it falls by a factor a step. With attention the factor is about 1: the distance does "
        "not matter. But nor is the gradient large: short is not strong. What sets its strength comes now.");
    lesson.check("08.rate_rnn", "RNN: ln factor, mean ½ ln(‖J‖²_F/H)", target, -rates[0], theory / (T - 1), 0.3,
                 "our own derivation");
    lesson.check("08.rate_attention", "Attention: ln factor a word", target, -rates[2], 0, 0.1, "no decay by distance");
}

// ---- What attention multiplies the gradient by

static void formula(Lesson& lesson) {
    lesson.step("The gradient on attention's path, exactly");
    lesson.say(
        "With values v_i = h_i W_V, keys k_i = h_i W_K and a query q, and u = ∂L/∂c at the context c, the chain rule "
        "gives "
        "∂L/∂h_i = α_i [W_V u + (u · (v_i − c)) W_K q/√d]. Everything stands behind the factor α_i. The course has the "
        "gradient flow through the weights without multiplicative decay; the weights are the factor.");
    Generator generator(lesson.seed());
    const Array states = generator.normal({1, T, H}), W_K = generator.normal({H, E}), W_V = generator.normal({H, E}),
                q = generator.normal({1, 1, E}), u = generator.normal({1, 1, E});
    Tape tape;
    const Tensor h = tape.leaf(states), keys = matmul(h, tape.constant(W_K)), values = matmul(h, tape.constant(W_V));
    const Attended attended =
        Attention(ScaledDotScore())(tape.constant(q), lesson.broken("detached-keys") ? detach(keys) : keys, values);
    const Gradients g = tape.backward(attended.context, {h}, {.seed = u});

    double worst = 0;  // the formula, one number at a time
    for (std::size_t i = 0; i < T; ++i) {
        const double alpha = attended.weights.value()(0, 0, i);
        double surplus = 0;
        for (std::size_t e = 0; e < E; ++e)
            surplus += u(0, 0, e) * (values.value()(0, i, e) - attended.context.value()(0, 0, e));
        for (std::size_t j = 0; j < H; ++j) {
            double by_hand = 0;
            for (std::size_t e = 0; e < E; ++e)
                by_hand += W_V(j, e) * u(0, 0, e) + surplus * W_K(j, e) * q(0, 0, e) / std::sqrt(double(E));
            worst = std::max(worst, std::abs(g[h](0, i, j) - alpha * by_hand));
        }
    }
    lesson.line("   24 positions × 16 units: tape and formula differ by " + number(worst, "%.1e") + " at most.");
    lesson.check("08.formula", "∂L/∂h_i: tape − α_i [...], worst", le, worst, 0, 1e-12, "our own derivation");
}

// What arrives at the first of n states, relative to what arrives at the context: score `gap` below all others.
static double share_of_first(std::size_t n, double gap) {
    Tape tape;
    Array scores = filled({1, 1, n}, 0);
    scores(0, 0, 0) = Real(-gap);
    const Tensor values = tape.leaf(filled({1, n, 1}, 1));
    return tape.backward(matmul(softmax(tape.constant(scores), -1), values), {values})[values](0, 0, 0);
}

static void dilution(Lesson& lesson) {
    lesson.step("Equal weights: 1/T.  A score that lies Δ lower: e^−Δ");
    lesson.predict("uniform");
    Numbers lengths, uniform, recurrent, gaps, low;
    double off = 0, off_gap = 0;
    for (std::size_t n = 4; n <= 1024; n *= 2) {
        lengths.push_back(double(n)), uniform.push_back(share_of_first(n, 0));
        recurrent.push_back(std::pow(0.9, double(n - 1)));
        off = std::max(off, std::abs(uniform.back() * double(n) - 1));
    }
    for (int gap = 0; gap <= 20; ++gap) {
        gaps.push_back(gap), low.push_back(share_of_first(T, gap));
        const double theory = std::exp(-double(gap)) / (double(T - 1) + std::exp(-double(gap)));
        off_gap = std::max(off_gap, std::abs(low.back() / theory - 1));
    }
    lesson.reveal("uniform", share_of_first(64, 0), 1.0 / 64);
    lesson.line(terminal::chart({{'u', "equal weights: 1/T", uniform, lengths},
                                 {'r', "a recurrence that keeps 0.9 a step: 0.9^(T−1)", recurrent, lengths}},
                                {"source length T", true}, {"share of ∂L/∂c at the first state", true}, 13));
    Numbers log_lengths, log_uniform, log_low;
    for (double n : lengths) log_lengths.push_back(std::log(n));
    for (double s : uniform) log_uniform.push_back(std::log(s));
    for (double s : low) log_low.push_back(std::log(s));
    const double decay = measure::slope({gaps.begin() + 8, gaps.end()}, {log_low.begin() + 8, log_low.end()});
    lesson.say(
        "At T = 1024 the equal weights leave a thousandth, the recurrence 10^−47. From exponential to 1/T is "
        "attention's "
        "gift at the start of training, when weights are near equal. But in the score gap the decay is exponential "
        "again: "
        "ln α falls by " +
        number(-decay, "%.4f") + " for each unit of Δ. Attention must first find a position.");
    lesson.check("08.uniform", "Equal weights: T · share − 1", le, off, 0, 1e-12, "α_i = 1/T");
    lesson.check("08.uniform_slope", "Equal weights: slope in ln T", slope, measure::slope(log_lengths, log_uniform),
                 -1, 1e-12, "1/T");
    lesson.check("08.gap", "Score gap Δ: share / formula − 1", le, off_gap, 0, 1e-12, "e^−Δ/(T−1+e^−Δ)");
    lesson.check("08.gap_slope", "Score gap: slope of ln α, Δ = 8 … 20", slope, decay, -1, 2e-3, "e^−Δ");
    series(lesson, "equal weights", "source length T", lengths, "share of ∂L/∂c", uniform);
    series(lesson, "recurrence 0.9", "source length T", lengths, "share of ∂L/∂c", recurrent);
    series(lesson, "weight by score gap", "score gap Δ", gaps, "α", low);
}

// ---- Recurrence and attention together: a power law

// dL/dh_1 of h_t = w s_{t−1}, s_t = h_t + (h_1 + … + h_t)/t, L = s_T, for each T asked.
static Numbers self_attentive(double w, const std::vector<std::size_t>& lengths) {
    Numbers gradients;
    Tape tape;
    const Tensor first = tape.leaf(Array(Shape{}, Real(1)));
    Tensor total = first, s = first + first;
    std::size_t t = 1;
    for (const std::size_t n : lengths) {
        for (; t < n; ++t) {
            const Tensor h = Real(w) * s;
            total = total + h;
            s = h + total * Real(1 / double(t + 1));
        }
        gradients.push_back(tape.backward(s, {first})[first]());
    }
    return gradients;
}
static double exponent(double w) { return -(1 - 2 * w) / (1 - w); }

static void power_law(Lesson& lesson) {
    lesson.step("An RNN that attends to all its past: exponential decay becomes a power of T");
    lesson.say(
        "The smallest such model is one number a step: h_t = w s_{t−1} and s_t = h_t + the mean of h_1 … h_t. "
        "Without the mean dL/dh_1 is w^(T−1). With it we find dL/dh_1 ~ T^p, p = −(1−2w)/(1−w): our own derivation.");
    const std::vector<std::size_t> lengths{16, 64, 256, 512, 1024, 2048, 4096};
    const Numbers x(lengths.begin(), lengths.end()), log_x = [&] {
        Numbers logs;
        for (std::size_t i = 2; i < x.size(); ++i) logs.push_back(std::log(x[i]));
        return logs;
    }();
    std::vector<std::vector<std::string>> rows{
        {"w", "dL/dh_1, T = 64", "T = 4096", "w^63, no attention", "p measured", "p theory"}};
    std::vector<terminal::Curve> curves;
    Numbers ws, measured, theory;
    double worst = 0, floor = 1e300, broken_floor = 0;
    for (const double w : {-0.2, 0.0, 0.1, 0.2, 0.25, 0.4, 0.45}) {
        const Numbers g = self_attentive(w, lengths);
        Numbers log_g;
        for (std::size_t i = 2; i < g.size(); ++i) log_g.push_back(std::log(g[i]));
        ws.push_back(w), measured.push_back(measure::slope(log_x, log_g)), theory.push_back(exponent(w));
        worst = std::max(worst, std::abs(measured.back() - theory.back()));
        if (w >= 0)
            for (std::size_t i = 0; i < g.size(); ++i) floor = std::min(floor, g[i] * x[i]);
        else
            broken_floor = g.back() * x.back();
        rows.push_back({number(w), number(g[1], "%.5f"), number(g.back(), "%.3e"), number(std::pow(w, 63), "%.1e"),
                        number(measured.back(), "%.4f"), number(theory.back(), "%.4f")});
        if (w == -0.2 || w == 0 || w == 0.25 || w == 0.45)
            curves.push_back({w < 0 ? '-' : w == 0 ? '0' : w == 0.25 ? '2' : '4', "w = " + number(w), g, x});
        series(lesson, "self-attentive w = " + number(w), "length T", x, "dL/dh_1", g);
    }
    lesson.line(terminal::table(rows));
    lesson.line(terminal::chart(curves, {"length T", true}, {"dL/dh_1", true}, 13));
    const double two = self_attentive(0.5, {1000})[0], four = self_attentive(0.25, {4})[0];
    lesson.say(
        "If w ≥ 0, dL/dh_1 ≥ 1/T: the direct edge gives 1/T and every other path adds something not negative (our own "
        "argument). With w < 0 paths cancel and the floor is gone: at w = −0.2, T = 4096 it is " +
        number(broken_floor, "%.3f") +
        "/T. So attention mitigates vanishing gradients, as Kerg et al. (2020) prove by lower bounds for "
        "self-attentive "
        "recurrent networks; it does not abolish them.");
    lesson.check("08.power_law", "Power of T: |measured − theory|, worst", slope, worst, 0, 2e-3, "our own derivation");
    lesson.check("08.power_four", "dL/dh_1 at w = 1/4, T = 4", eq, four, 71 / 96.0, 1e-15, "by hand");
    lesson.check("08.power_half", "dL/dh_1 at w = 1/2, T = 1000", eq, two, 2, 1e-12, "2 for every T");
    lesson.check("08.floor", "w ≥ 0: smallest T · dL/dh_1", ge, floor, 1, 1e-12, "our own path count");
    lesson.check("08.no_floor", "w = −0.2: T · dL/dh_1 at T = 4096", le, broken_floor, 0.9, 0, "T^(−7/6)");
    series(lesson, "exponent", "w", ws, "power of T", measured);
    series(lesson, "exponent theory", "w", ws, "power of T", theory);
}

// ---- What attention does not reach

static void unattended(Lesson& lesson) {
    lesson.step("States that attention leaves out get exactly nothing from it");
    Generator generator(lesson.seed());
    const std::size_t k = 5;
    Tape tape;
    const Tensor q = tape.leaf(generator.normal({1, 1, H})), h = tape.leaf(generator.normal({1, T, H}));
    const Tensor scores = ScaledDotScore()(q, h);
    Numbers sorted = numbers(scores.value());
    std::sort(sorted.rbegin(), sorted.rend());
    std::vector<bool> top;
    for (std::size_t i = 0; i < T; ++i) top.push_back(double(scores.value()(0, 0, i)) >= sorted[k - 1]);
    const std::optional<Mask> visible =
        lesson.broken("all-attended") ? std::nullopt : std::optional(Mask({1, 1, T}, top));
    const Gradients g =
        tape.backward(matmul(attention_weights(scores, visible), h), {h}, {.seed = generator.normal({1, 1, H})});
    double left_out = 0, reached = 0;
    std::string picture = "   ";
    for (std::size_t i = 0; i < T; ++i) {
        double size = 0;
        for (std::size_t j = 0; j < H; ++j) size += std::abs(double(g[h](0, i, j)));
        if (!top[i]) left_out += size;
        reached += size > 0;
        picture += size > 0 ? " █" : " ·";
    }
    lesson.say("A softmax over the " + std::to_string(k) + " best scores of " + std::to_string(T) +
               " only (our variant; Ke et al. 2018 attend to few past states and send gradient to those alone). A bar "
               "where ∂L/∂h_i is not 0:");
    lesson.line(picture);
    lesson.check("08.left_out", "19 unattended states: Σ |∂L/∂h_i|", exact0, left_out, 0, 0,
                 "masked out of the softmax");
    lesson.check("08.attended", "States that get a gradient", eq, reached, double(k), 0, "k = 5");

    // Attention within r words of each: from layer to layer the gradient spreads r words.
    std::vector<std::vector<std::string>> rows{{"reach r", "layers until word 1 hears of word 13", "theory ⌈12/r⌉"}};
    double wrong = 0;
    Numbers longest;
    for (const std::size_t r : {2u, 3u, 5u}) {
        Tape local;
        const Tensor x = local.leaf(generator.normal({1, 13, H}));
        Tensor y = x;
        std::size_t layers = 0;
        double arrives = 0;
        while (arrives == 0 && layers < 13) {
            y = Attention(ScaledDotScore())(y, y, y, window(13, 13, r, r, Align::start)).context;
            ++layers;
            longest.push_back(double(paths(y, {x})[0].longest));
            const Gradients of_last = local.backward(select(y, 1, -1), {x}, {.seed = filled({1, H}, 1)});
            for (std::size_t j = 0; j < H; ++j) arrives += std::abs(double(of_last[x](0, 0, j)));
        }
        const double theory = std::ceil(12.0 / double(r));
        wrong += std::abs(double(layers) - theory);
        rows.push_back({std::to_string(r), std::to_string(layers), number(theory)});
    }
    lesson.say("And if each word attends to its r neighbours on either side, paths grow with the distance once more:");
    lesson.line(terminal::table(rows));
    lesson.check("08.window", "Layers needed at reach 2, 3, 5: off by", eq, wrong, 0, 0, "⌈(T−1)/r⌉");
    lesson.check("08.layers", "Longest path through 6 layers, in ops", eq, longest[5], 6 * longest[0], 0,
                 "6 times one layer's");
}

// ---- The gradient-flow map

struct Flow {
    Numbers value, score, recurrence;  // signed shares ⟨part, g⟩/‖g‖² of g = ∂L/∂h_t
};
static void add(Flow& flow, const Numbers& value, const Numbers& score, const Numbers& g) {
    const double square = dot(g, g);
    flow.value.push_back(dot(value, g) / square), flow.score.push_back(dot(score, g) / square);
    flow.recurrence.push_back(dot(sum_of(sum_of(g, value, -1), score, -1), g) / square);
}

static void flow_map(Lesson& lesson) {
    lesson.step("The gradient-flow map: which way did ∂L/∂h_t come?");
    lesson.say(
        "An RNN with attention again; its last state asks. ∂L/∂h_t is a sum of three vectors: what came as a value "
        "(behind α_t), what came as a key (through the scores), and what came through h_{t+1}. An observer sees each "
        "on "
        "its way. Shares are signed, ⟨part, g⟩/‖g‖² with g the sum, so they add up to 1; norms would not.");
    lesson.predict("recurrence");
    Generator generator(lesson.seed());
    const Weights w(generator, T);
    Tape tape;
    std::vector<Tensor> h;
    RNN::State state = w.encoder.start(tape, 1);
    for (const Array& word : w.words) h.push_back((state = w.encoder(tape.leaf(word), state)).h);
    const Tensor keys = stack(h, 1), values = stack(h, 1);  // two records, which the observer can tell apart
    const Attended attended =
        Attention(DotScore())(h.back(), lesson.broken("detached-keys") ? detach(keys) : keys, values);
    const Tensor loss = matmul(attended.context, tape.constant(w.u));
    std::vector<Numbers> value(T, Numbers(H, 0.0)), score = value;
    const Gradients g = tape.backward(loss, h, {.keep = Keep::wanted, .observer = [&](const Contribution& c) {
                                                    if (c.record == values.id()) value[c.input] = numbers(c.x_bar);
                                                    if (c.record == keys.id()) score[c.input] = numbers(c.x_bar);
                                                }});
    Flow flow;
    for (std::size_t t = 0; t < T; ++t) add(flow, value[t], score[t], numbers(g[h[t]]));

    // By hand, from the equations: u = ∂L/∂c, ∂L/∂s_t = α_t u·(h_t − c), then back step by step with J = ∂h_{t+1}/∂h_t.
    const Numbers alpha = numbers(attended.weights.value()), c = numbers(attended.context.value()), u = numbers(w.u);
    std::vector<Numbers> states;
    for (const Tensor& one : h) states.push_back(numbers(one.value()));
    Numbers ds(T), arriving(H, 0.0);
    for (std::size_t t = 0; t < T; ++t) {
        ds[t] = alpha[t] * dot(u, sum_of(states[t], c, -1));
        arriving = sum_of(arriving, states[t], ds[t]);  // at h_T, as the query
    }
    Flow by_hand;
    double off = 0, off_sum = 0;
    for (std::size_t t = T; t-- > 0;) {
        const Numbers zero(H, 0.0), by_value = sum_of(zero, u, alpha[t]), by_score = sum_of(zero, states.back(), ds[t]);
        const Numbers total = sum_of(sum_of(arriving, by_value), by_score);
        add(by_hand, by_value, by_score, total);
        const std::size_t last = by_hand.value.size() - 1;
        off =
            std::max({off, std::abs(by_hand.value[last] - flow.value[t]), std::abs(by_hand.score[last] - flow.score[t]),
                      std::abs(by_hand.recurrence[last] - flow.recurrence[t]),
                      measure::relative_difference(numbers(g[h[t]]), total)});
        off_sum = std::max(off_sum, std::abs(flow.value[t] + flow.score[t] + flow.recurrence[t] - 1));
        if (t) arriving = by_hand::times(by_hand::rnn_jacobian(w.encoder.U.value(), h[t].value()), total);
    }
    std::vector<std::vector<std::string>> rows{
        {"state t", "weight α_t", "as value", "as key (score)", "through h_{t+1}"}};
    for (const std::size_t t : {0u, 5u, 11u, 17u, 20u, 21u, 22u, 23u})
        rows.push_back({std::to_string(t + 1), number(alpha[t], "%.4f"), number(flow.value[t], "%+.4f"),
                        number(flow.score[t], "%+.4f"), number(flow.recurrence[t], "%+.4f")});
    lesson.line(terminal::table(rows));
    const Numbers places = measure::range(1, T);
    lesson.line(terminal::chart({{'v', "as value", flow.value, places},
                                 {'s', "as key, through the scores", flow.score, places},
                                 {'r', "through the next state (state 24: as query)", flow.recurrence, places}},
                                {"state t"}, {"share of ∂L/∂h_t"}, 13));
    const double through = by_hand.recurrence.back();
    lesson.reveal("recurrence", flow.recurrence[0], through);
    lesson.say("A negative share is a part that points against the sum and takes something away.");
    lesson.check("08.flow", "Flow map: observer − by hand, worst", le, off, 0, 1e-10, "chain rule by hand");
    lesson.check("08.flow_sum", "Shares: |value + score + rest − 1|", le, off_sum, 0, 1e-12, "linearity");
    Trace& trace = lesson.trace();
    series(lesson, "RNN with attention, value share", "state t", places, "share of ∂L/∂h_t", flow.value);
    series(lesson, "RNN with attention, score share", "state t", places, "share of ∂L/∂h_t", flow.score);
    series(lesson, "RNN with attention, recurrence share", "state t", places, "share of ∂L/∂h_t", flow.recurrence);
    series(lesson, "weight α_t", "state t", places, "α_t", alpha);
    trace.graph = trace_graph(loss);
    if (trace.graph) trace.graph->name = "RNN with attention";
}

int main(int argc, char** argv) {
    Lesson lesson("08_gradient_paths", "Attention's path is short; the weights decide how strong its gradient is.");
    lesson.prediction("hops", "Encoder-decoder: how many operations is word 1 further away than word 24?");
    lesson.prediction("uniform", "64 states with equal weights: what part of ∂L/∂c reaches each as a value?");
    lesson.prediction("recurrence", "State 1: what share of its gradient came through the recurrence?");
    lesson.exercise(
        "power", "The self-attentive model at w = 1/3: dL/dh_1 ~ T^p: what is p, with its sign?",
        [] { return exponent(1 / 3.0); }, 5e-3, "put w = 1/3 into p = −(1−2w)/(1−w)");
    lesson.exercise(
        "three", "The same model at w = 1/4, T = 3: what is dL/dh_1?",
        [] {
            double h = 1, total = 1, s = 2;
            for (int t = 2; t <= 3; ++t) h = s / 4, total += h, s = h + total / t;
            return s;
        },
        5e-4, "all is linear, so let h_1 = 1 and walk: s_1 = 2, h_2 = s_1/4, s_2 = h_2 + (h_1 + h_2)/2, h_3 = …");
    lesson.damage("detached-keys", "nothing flows back through the keys");
    lesson.damage("all-attended", "the softmax runs over all states instead of the best five");
    return lesson.run(argc, argv, [&] {
        hops(lesson);
        formula(lesson);
        dilution(lesson);
        power_law(lesson);
        unattended(lesson);
        flow_map(lesson);
    });
}
