// A gate leaves σ(b)^T of a gradient after T steps; on that learning hangs.
//
// LSTM and GRU with gates set by hand, then with fresh weights, then trained to hold one bit.
#include <algorithm>
#include <cmath>
#include <numeric>
#include "engine/ops.hpp"
#include "engine/paths.hpp"
#include "layers/attention.hpp"
#include "layers/embedding.hpp"
#include "layers/gru.hpp"
#include "layers/linear.hpp"
#include "layers/lstm.hpp"
#include "layers/optimizer.hpp"
#include "layers/rnn.hpp"
#include "layers/sequence.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using terminal::number;
using enum Trace::Kind;

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Memorised {
    double value, gradient;  // of the state after T steps; and its derivative by the state at first
};

// ---- gates set by hand: no weights, so that biases alone decide

struct Biases {
    double i, f, g, o;
};
static LSTM set_by_hand(const Biases& bias, bool twice) {
    Generator generator(0);
    LSTM lstm(1, 1, generator);
    const Array b{Real(bias.i), Real(bias.f), Real(bias.g), Real(bias.o)}, none = filled({4}, 0);
    lstm.from_pytorch({filled({4, 1}, 0), filled({4, 1}, 0), b, twice ? b : none});  // PyTorch adds two biases
    return lstm;
}
static Memorised remember(const LSTM& lstm, std::size_t T, double c0) {
    Tape tape;
    const Tensor x = tape.constant(filled({1, 1}, 0)), c = tape.leaf(filled({1, 1}, Real(c0)));
    LSTM::State s{x, c};
    for (std::size_t t = 0; t < T; ++t) s = lstm(x, s);
    return {double(s.c.item()), double(tape.backward(s.c, {c})[c]())};
}
static Memorised remember(double z_bias, UpdateGate convention, std::size_t T) {  // a GRU with n = ½ and h_0 = 1
    const GRU gru(Parameter(filled({1, 3}, 0)), Parameter(filled({1, 3}, 0)),
                  Parameter(Array{0, Real(z_bias), Real(std::atanh(0.5))}), Parameter(filled({1}, 0)),
                  {.update = convention});
    Tape tape;
    const Tensor x = tape.constant(filled({1, 1}, 0)), h = tape.leaf(filled({1, 1}, 1));
    GRU::State s{h};
    for (std::size_t t = 0; t < T; ++t) s = gru(x, s);
    return {double(s.h.item()), double(tape.backward(s.h, {h})[h]())};
}

static void open_a_gate(Lesson& lesson) {
    const bool twice = lesson.broken("double-bias");
    lesson.step("A gate that is open for good");
    lesson.say(
        "An LSTM carries a cell c beside its state h: c_t = f · c_{t−1} + i · g, where the gates f and i are "
        "between 0 and 1. So on the cell's own path one step back multiplies by f, without a weight and without "
        "a tanh. With f = 1 and i = 0 (biases +800 and −800, no weights), 1000 steps:");
    const Memorised locked = remember(set_by_hand({-800, 800, 0, 0}, twice), 1000, 0.3);
    lesson.line("c_1000 = " + number(locked.value, "%.17g") +
                " (c_0 = 0.3)     ∂c_1000/∂c_0 = " + number(locked.gradient, "%.17g"));
    lesson.check("04.locked", "f = 1, i = 0: ∂c_1000/∂c_0 − 1", exact0, locked.gradient - 1, 0, 0,
                 "the cell's equation");

    lesson.step("A gate of σ(b): half-lives");
    lesson.say(
        "A fresh network has small weights, so its forget gate begins near σ(b_f) = 1/(1 + e^−b_f). After T steps "
        "σ(b_f)^T of the gradient is left. With b_f = 0 that is a half each step (Jozefowicz et al. 2015, §2.2, "
        "who advise 1 or 2).");
    lesson.predict("left");
    std::vector<std::vector<std::string>> rows{{"b_f", "σ(b_f)", "half-life, steps", "∂c_50/∂c_0 tape", "σ(b_f)^50"}};
    std::vector<double> biases{0, 1, 2, 3, 5}, measured, theory;
    for (const double b : biases) {
        measured.push_back(remember(set_by_hand({0, b, 0, 0}, twice), 50, 0.3).gradient);
        theory.push_back(std::pow(sigmoid(b), 50));
        rows.push_back({number(b), number(sigmoid(b), "%.4f"), number(std::log(0.5) / std::log(sigmoid(b)), "%.2f"),
                        number(measured.back()), number(theory.back())});
    }
    double worst = 0;
    for (std::size_t k = 0; k < biases.size(); ++k) worst = std::max(worst, std::abs(measured[k] / theory[k] - 1));
    lesson.line(terminal::table(rows));
    lesson.reveal("left", measured[1], theory[1]);
    lesson.say(
        "A trap: PyTorch keeps two bias vectors a gate and adds them. Who fills both with 1 has b_f = 2 (see "
        "--break double-bias).");
    const double f10 = std::pow(sigmoid(1), 10), c10 = f10 + 0.25 * (1 - f10) / (1 - sigmoid(1));
    const double open = remember(set_by_hand({0, 1, std::atanh(0.5), 0}, twice), 10, 1).value;
    lesson.check("04.half_lives", "∂c_50/∂c_0 over σ(b)^50, − 1: worst b", le, worst, 0, 1e-12,
                 "the cell's equation; Jozefowicz et al. 2015, §2.2");
    lesson.check("04.cell_value", "b_f = 1, i = g = ½, c_0 = 1: c_10", eq, open, c10, 1e-12, "geometric series");
    for (const auto& [name, y] :
         {std::pair{"gradient left after 50 steps", &measured}, {"gradient left after 50 steps theory", &theory}})
        lesson.trace().series.push_back(
            {.name = name, .x_label = "forget bias b_f", .x = biases, .y_label = "∂c_50/∂c_0", .y = *y});
}

static void two_signs(Lesson& lesson) {
    lesson.step("The GRU, and two readings of its z");
    lesson.say(
        "A GRU has one state and mixes: PyTorch writes h_t = z · h_{t−1} + (1 − z) · n, where z keeps; other "
        "papers write h_t = (1 − z) · h_{t−1} + z · n, where z replaces. Both are in print, so read the formula "
        "before you set a bias. With n = ½, h_0 = 1, 10 steps:");
    const double swapped = lesson.broken("swap-z") ? 2 : -2;
    const Memorised keeps = remember(2, UpdateGate::keeps, 10), replaces = remember(swapped, UpdateGate::replaces, 10),
                    wrong = remember(2, UpdateGate::replaces, 10), locked = remember(800, UpdateGate::keeps, 10);
    const double z10 = std::pow(sigmoid(2), 10);
    const auto row = [](const char* name, const Memorised& m) {
        return std::vector<std::string>{name, number(m.value, "%.10f"), number(m.gradient, "%.10f")};
    };
    lesson.line(terminal::table({{"", "h_10", "∂h_10/∂h_0"},
                                 row("z keeps, bias 2", keeps),
                                 row("z replaces, bias −2", replaces),
                                 row("z replaces, bias 2", wrong),
                                 row("theory: σ(2)^10", {z10 + 0.5 * (1 - z10), z10})}));
    lesson.check("04.gru_value", "GRU, z keeps, bias 2: h_10", eq, keeps.value, z10 + 0.5 * (1 - z10), 1e-12,
                 "geometric series");
    lesson.check("04.gru_gradient", "… and ∂h_10/∂h_0", eq, keeps.gradient, z10, 1e-12,
                 "Cho et al. 2014 as in PyTorch");
    lesson.check("04.gru_signs", "z replaces, bias −2: the same gradient", eq, replaces.gradient, keeps.gradient, 1e-12,
                 "σ(−b) = 1 − σ(b)");
    lesson.check("04.gru_locked", "GRU, z = 1: ∂h_10/∂h_0 − 1", exact0, locked.gradient - 1, 0, 0, "its equation");
}

// ---- fresh weights

static constexpr std::size_t E = 16, H = 32;

struct Reach {
    std::string name;
    char letter;
    std::vector<double> norms;           // ‖∂L/∂(state)_t‖, t = 1 … T
    std::vector<PathReport> paths = {};  // from the loss back to h_t
    double ops(std::size_t t) const { return double(paths[t - 1].shortest); }
    double kept() const { return norms.front() / norms.back(); }
};

template <class Cell>
static Reach reach(const char* name, char letter, const Cell& cell, const Array& x, const Attention* attention,
                   const Array& v) {
    Tape tape;
    const Sequence<Cell> y = unroll(cell, tape.leaf(x), cell.start(tape, 1));
    std::vector<Tensor> wanted;
    for (const auto& s : y.states) s.map([&](const Tensor& part) { return wanted.push_back(part), part; });
    const Tensor feature = attention ? (*attention)(y.last.h, y.outputs, y.outputs).context : y.last.h;
    const Tensor loss = sum(feature * tape.constant(v));
    const Gradients g = tape.backward(loss, wanted, {.keep = Keep::wanted});
    Reach r{name, letter, {}};
    const std::vector<Tensor> h = y.hidden();
    for (const auto& s : y.states) {
        double length = 0;
        s.map([&](const Tensor& part) { return length = std::hypot(length, norm(g[part])), part; });
        r.norms.push_back(length);
    }
    r.paths = paths(loss, h);
    return r;
}

static void fresh_weights(Lesson& lesson) {
    lesson.step("Fresh weights: how far do gradients reach, by gates, by attention?");
    const std::size_t T = 50;
    Generator generator(lesson.seed());
    const Array x = generator.normal({1, T, E}), v = generator.normal({1, H});
    const RNN rnn(E, H, generator);
    const LSTM even(E, H, generator, {.forget_bias = Real(0)}), open(E, H, generator, {.forget_bias = Real(3)});
    const GRU gru(E, H, generator);
    const Attention attention(AdditiveScore(H, H, H, generator));
    const std::vector<Reach> all{reach("tanh RNN", 'r', rnn, x, nullptr, v),
                                 reach("GRU", 'g', gru, x, nullptr, v),
                                 reach("LSTM, b_f = 0", 'l', even, x, nullptr, v),
                                 reach("LSTM, b_f = 3", 'o', open, x, nullptr, v),
                                 reach("tanh RNN with attention", 'R', rnn, x, &attention, v),
                                 reach("GRU with attention", 'G', gru, x, &attention, v),
                                 reach("LSTM, b_f = 3, with attention", 'O', open, x, &attention, v)};
    std::vector<double> theory;
    for (std::size_t t = 1; t <= T; ++t) theory.push_back(all[3].norms.back() * std::pow(sigmoid(3), double(T - t)));
    lesson.say(
        "32 units, 50 random inputs, the loss sees the last state (or attention over all states, with that as its "
        "query). ∂L/∂h_t, for the LSTM ∂L/∂(h,c)_t:");
    std::vector<terminal::Curve> curves;
    std::vector<std::vector<std::string>> rows{{"", "kept from 50 to 1", "path to t = 1", "to t = 25"}};
    for (const Reach& r : all) {
        curves.push_back({r.letter, r.name, r.norms});
        for (const std::size_t t : {1u, 25u, 50u})
            lesson.trace().paths.push_back({"loss, " + r.name, "h_" + std::to_string(t), r.paths[t - 1]});
        rows.push_back({r.name, number(r.kept(), "%.1e"), number(r.ops(1), "%.0f ops"), number(r.ops(25), "%.0f ops")});
        lesson.trace().series.push_back({.name = r.name,
                                         .x_label = "time step t",
                                         .x = measure::range(1, T),
                                         .y_label = "‖∂L/∂(state)_t‖",
                                         .y = r.norms});
    }
    lesson.trace().series.push_back({.name = "LSTM, b_f = 3 theory",
                                     .x_label = "time step t",
                                     .x = measure::range(1, T),
                                     .y_label = "‖∂L/∂(state)_t‖",
                                     .y = theory});
    lesson.line(terminal::log_chart(curves, "time step t", "‖∂L/∂(state)_t‖",
                                    std::min<std::size_t>(terminal::width(), 100), 17));
    lesson.line(terminal::table(rows));
    lesson.say(
        "Two different cures. Gates leave the path as long as it was and make each step lose less. Attention adds "
        "a path of constant length beside it. They do not exclude each other, and translators used both: then what "
        "attention brings to each state is carried on by the open gates, and piles up on the way back.");
    const auto decades = [](const Reach& r) { return std::log10(r.kept()); };
    double growth = 0;
    for (const Reach* r : {&all[4], &all[5], &all[6]}) growth = std::max(growth, std::abs(r->ops(1) - r->ops(25)));
    lesson.check("04.gates_reach", "log10 kept: LSTM (b_f = 3), above RNN", ge, decades(all[3]), decades(all[0]), 0,
                 "measured");
    lesson.check("04.gates_rate", "LSTM (b_f = 3): log10 kept, by σ(3)", target, decades(all[3]),
                 49 * std::log10(sigmoid(3)), 1, "σ(b)^T; weights move it");
    lesson.check("04.attention_reach", "log10 kept: RNN + attention, RNN + 3", ge, decades(all[4]), decades(all[0]) + 3,
                 0, "measured");
    lesson.check("04.attention_path", "With attention: ops more to t = 1", exact0, growth, 0, 0, "counted on the tape");
}

// ---- what no memory scores

static void baselines(Lesson& lesson) {
    lesson.step("Two classic tests, and what a model without memory scores in them");
    const std::size_t T = 50, rows = 4000;
    Generator generator(lesson.seed() + 1);
    lesson.say(
        "Before believing that a network has learned, know what one without memory scores. Copying (as in "
        "Arjovsky et al. 2016, §5.1): 10 symbols of 8, a long pause, then the same 10; who has no memory writes "
        "blanks (id 8), then guesses. Adding: a long row of numbers from 0 to 1, of which two are marked; their "
        "sum is wanted; who has no memory says 1.");
    Tape tape;
    const Indices symbols = generator.integers({10}, 0, 8);
    std::vector<std::int64_t> targets(T + 10, 8);
    targets.insert(targets.end(), symbols.values().begin(), symbols.values().end());
    Array logits = filled({T + 20, 9}, 0);
    for (std::size_t t = 0; t < T + 20; ++t) logits(t, 8) = t < T + 10 ? 60 : -60;  // sure of blanks, then of none
    const double copying = double(cross_entropy(tape.constant(logits), Indices(targets)).item());

    // One unit that adds without training: h ← h + max(0, x + m − 1), m being 1 at the marks (Henaff et al. 2016,
    // §3.2).
    const Array x = generator.uniform({rows, T}, 0, 1);
    Array marks = filled({rows, T}, 0);
    std::vector<double> sums, squares;
    for (std::size_t r = 0; r < rows; ++r) {
        const std::vector<std::size_t> places = generator.permutation(T);
        for (const std::size_t p : {places[0], places[1]}) marks(r, p) = 1;
        sums.push_back(double(x(r, places[0])) + x(r, places[1]));
        squares.push_back((sums.back() - 1) * (sums.back() - 1));
    }
    Tensor h = tape.constant(filled({rows}, 0));
    for (std::size_t t = 0; t < T; ++t)
        h = h +
            relu(select(tape.constant(x), 1, std::int64_t(t)) + select(tape.constant(marks), 1, std::int64_t(t)) - 1);
    const double off = measure::relative_difference(numbers(h.value()), sums);
    lesson.line(terminal::table({{"test", "score of no memory", "measured", "theory"},
                                 {"copying, pause 50", "cross-entropy", number(copying), "10 ln 8 / 70"},
                                 {"adding, 50 numbers", "mean squared error", number(measure::mean(squares)), "1/6"}}));
    lesson.say("Adding needs one unit only, h ← h + max(0, x + m − 1), and no training: its error on 4000 rows is " +
               number(off, "%.0e") + ". That a network could hold something does not mean that it finds out how.");
    lesson.check("04.copy_baseline", "Copying without memory: cross-entropy", eq, copying, 10 * std::log(8.0) / 70,
                 1e-12, "Arjovsky et al. 2016, §5.1");
    lesson.check("04.adding_baseline", "Adding without memory: squared error", lesson.typical(slope),
                 measure::mean(squares), 1.0 / 6, 4 * measure::standard_error(squares), "variance of a sum");
    lesson.check("04.adding_unit", "Adding by one unit: relative error", le, off, 0, 1e-12, "Henaff et al. 2016, §3.2");
}

// ---- training: one bit, seen first, asked for last

template <class Cell> struct Latch {
    Embedding embedding;
    Cell cell;
    std::optional<Attention> attention;
    Linear out;

    template <class... Options>
    Latch(bool attends, Generator& generator, const Options&... options)
        : embedding(7, E, generator), cell(E, H, generator, options...), out(H, 2, generator) {
        if (attends) attention.emplace(AdditiveScore(H, H, H, generator));
    }
    Tensor operator()(Tape& tape, const Indices& ids) const {
        const auto y = unroll(cell, embedding(tape, ids), cell.start(tape, ids.shape()[0]));
        return out(attention ? (*attention)(y.last.h, y.outputs, y.outputs).context : y.last.h);
    }
    void for_each_parameter(const std::string& prefix, const Visitor& f) {
        embedding.for_each_parameter(join(prefix, "embedding"), f);
        cell.for_each_parameter(join(prefix, "cell"), f);
        if (attention) attention->for_each_parameter(join(prefix, "attention"), f);
        out.for_each_parameter(join(prefix, "out"), f);
    }
};

struct Learned {
    std::size_t updates;  // until 99 % of five batches in a row; `most` if never
    double accuracy;      // of the last five
    std::vector<double> accuracies;
};

// Each batch is new, and counted before it is learned from.
template <class Cell> static Learned train(Latch<Cell>& model, std::size_t T, std::size_t most, Generator& generator) {
    const std::size_t B = 64;
    Adam adam({.rate = 3e-3});
    Learned learned{most, 0, {}};
    for (std::size_t update = 1; update <= most; ++update) {
        const Indices bits = generator.integers({B}, 0, 2), others = generator.integers({B, T}, 2, 7);
        std::vector<std::int64_t> ids(others.values().begin(), others.values().end());
        for (std::size_t b = 0; b < B; ++b) ids[b * T] = bits[b];
        Tape tape;
        const Tensor logits = model(tape, Indices({B, T}, ids));
        const Indices said = argmax(logits, -1);
        double right = 0;
        for (std::size_t b = 0; b < B; ++b) right += said[b] == bits[b];
        learned.accuracies.push_back(right / double(B));
        const std::size_t seen = std::min<std::size_t>(update, 5);
        learned.accuracy =
            std::accumulate(learned.accuracies.end() - std::ptrdiff_t(seen), learned.accuracies.end(), 0.0) /
            double(seen);
        if (seen == 5 && learned.accuracy >= 0.99) return learned.updates = update, learned;
        Gradients g = tape.backward(cross_entropy(logits, bits));
        clip_by_norm(model, g, 1);
        adam.step(model, g);
    }
    return learned;
}

static void train_latches(Lesson& lesson) {
    lesson.step("Trained: one bit, seen first, asked for after T symbols of noise");
    const std::size_t most = 300;
    lesson.say(
        "32 units, Adam, batches of 64, at most 300 updates. How many until 99 % are right? (– means never; "
        "below it the σ(b_f)^T that a fresh forget gate leaves)");
    terminal::Progress progress("Latches");
    const std::vector<std::size_t> lengths{20, 30, 50};
    std::vector<std::vector<std::string>> rows{{"", "T = 20", "T = 30", "T = 50"}};
    std::vector<double> updates, biases{0, 1, 2, 3};
    double agree = 0, counted = 12, done = 0, rnn_alone = 0, rnn_attends = 0;
    const auto one = [&]<class Cell, class... Options>(std::string name, Cell*, bool attends, std::size_t T,
                                                       const Options&... options) {
        Generator generator(lesson.seed() + 10 * T);
        Latch<Cell> model(attends, generator, options...);
        const Learned learned = train(model, T, most, generator);
        progress.at(++done / 24);
        rows.back().push_back(learned.updates < most ? std::to_string(learned.updates) : "–");
        if (T == 50)
            lesson.trace().series.push_back({.name = name + ", accuracy at T = 50",
                                             .x_label = "update",
                                             .x = measure::range(1, learned.accuracies.size()),
                                             .y_label = "accuracy",
                                             .y = learned.accuracies});
        return learned;
    };
    const auto row = [&](const std::string& name, auto each) {
        rows.push_back({name});
        for (const std::size_t T : lengths) each(name, T);
    };
    row("tanh RNN", [&](const std::string& name, std::size_t T) {
        rnn_alone = one(name, static_cast<RNN*>(nullptr), false, T).accuracy;
    });
    for (const double b : biases) {
        std::vector<std::string> powers{"    σ(b_f)^T"};
        row("LSTM, b_f = " + number(b), [&](const std::string& name, std::size_t T) {
            const double left = std::pow(sigmoid(b), double(T));
            const Learned l = one(name, static_cast<LSTM*>(nullptr), false, T, LSTMOptions{.forget_bias = Real(b)});
            if (left > 1e-5 && left < 1e-3)
                counted -= 1;
            else
                agree += (l.updates < most) == (left > 1e-4);
            updates.push_back(double(l.updates));
            powers.push_back(number(left, "%.1e"));
        });
        rows.push_back(powers);
    }
    row("GRU", [&](const std::string& name, std::size_t T) { one(name, static_cast<GRU*>(nullptr), false, T); });
    row("RNN with attention", [&](const std::string& name, std::size_t T) {
        rnn_attends = one(name, static_cast<RNN*>(nullptr), true, T).accuracy;
    });
    row("LSTM, b_f = 0, with attention", [&](const std::string& name, std::size_t T) {
        one(name, static_cast<LSTM*>(nullptr), true, T, LSTMOptions{.forget_bias = Real(0)});
    });
    lesson.line(terminal::table(rows));
    lesson.say(
        "Where σ(b_f)^T is large the bit is learned; where it is tiny it is not, within this many updates; near "
        "a ten-thousandth chance decides, so what lies between 1e-5 and 1e-3 is not counted below. An independent "
        "case: Gers et al. (2000) report that on a noisy task with a lag of 80 a forget bias of 1 learned about "
        "three times more slowly than 5. With attention the first symbol is one look away, whatever the gates do.");
    lesson.trace().matrices.push_back({.name = "updates to 99 %",
                                       .row_label = "forget bias b_f",
                                       .column_label = "T",
                                       .rows = {"0", "1", "2", "3"},
                                       .columns = {"20", "30", "50"},
                                       .shape = {4, 3},
                                       .data = updates});
    lesson.check("04.latch", "LSTM: learned just where σ(b)^T ≫ 1e-4", target, agree / counted, 1, 0.1,
                 "our own measurement");
    lesson.check("04.latch_rnn", "tanh RNN, T = 50: accuracy, chance", target, rnn_alone, 0.5, 0.1,
                 "our own measurement");
    lesson.check("04.latch_attention", "RNN with attention, T = 50: accuracy", target, rnn_attends, 1, 0.02,
                 "our own measurement");
}

int main(int argc, char** argv) {
    Lesson lesson("04_gates", "A gate leaves σ(b)^T of a gradient after T steps; on that learning hangs.");
    lesson.prediction("left", "b_f = 1, 50 steps: which part of the gradient is left?");
    lesson.exercise(
        "bias", "What is the smallest b_f for which σ(b_f)^100 is at least 0.01?",
        [] {
            const double f = std::pow(0.01, 0.01);
            return std::log(f / (1 - f));
        },
        5e-4, "σ(b) must be the 100th root of 0.01; then b = ln(σ / (1 − σ)).");
    lesson.damage("double-bias", "the bias is put into both of PyTorch's bias vectors, which are added");
    lesson.damage("swap-z", "a bias for a z that keeps is given to a z that replaces");
    return lesson.run(argc, argv, [&] {
        open_a_gate(lesson);
        two_signs(lesson);
        fresh_weights(lesson);
        baselines(lesson);
        if (!lesson.quick()) train_latches(lesson);
        lesson.trace().config["hidden"] = std::int64_t(H);
    });
}
