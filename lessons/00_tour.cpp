// Gradients look back through time; attention looks back over the source.
//
// One text, seven models with fresh weights, one question: how strongly does each word still speak to the loss at the
// end? Embedding 16, hidden size 32, PyTorch's default init, loss = −log p(last token | the tokens before it).
#include <algorithm>
#include <cmath>
#include <optional>
#include "engine/ops/movement.hpp"
#include "engine/ops/softmax.hpp"
#include "engine/paths.hpp"
#include "engine/spectrum.hpp"
#include "layers/attention.hpp"
#include "layers/embedding.hpp"
#include "layers/gru.hpp"
#include "layers/linear.hpp"
#include "layers/lstm.hpp"
#include "layers/rnn.hpp"
#include "lessons/by_hand.hpp"
#include "lessons/date.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"
#include "lessons/tokens.hpp"

using namespace lookback;
using terminal::fit;
using terminal::fit_right;
using enum Trace::Kind;

// Herman Melville, Moby-Dick (1851), the opening; public domain.
static const char* const passage =
    "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, and "
    "nothing particular to interest me on shore, I thought I would sail about a little and see the watery part of "
    "the world.";

static constexpr double tiny = 1e-290;  // below, doubles lose digits: what is compared or fitted stays above
static constexpr std::size_t E = 16;

struct Problem {
    std::vector<Array> x;  // (1,E) each: the embedded tokens before the last
    std::size_t vocabulary, hidden;
    std::int64_t target;
    std::uint64_t seed;
};

// What one model showed: a norm ‖∂L/∂h_t‖ and a path length from the loss for each token.
struct Measured {
    std::string name;
    char letter;
    std::vector<double> norms, state_norms = {};  // state_norms: of (h,c) together
    std::vector<PathReport> paths = {};
    double rate = std::nan("");  // per step, fitted
    std::size_t reach = 0;       // tokens from the end to the last one above a thousandth of the end's norm

    void summarise() {
        const std::size_t T = norms.size();
        double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
        for (std::size_t t = 0; t < T; ++t) {
            if (norms[t] >= norms[T - 1] / 1000) reach = std::max(reach, T - t);
            if (norms[t] < tiny) continue;
            const double x = double(T - 1 - t), y = std::log(norms[t]);
            n += 1, sx += x, sy += y, sxx += x * x, sxy += x * y;
        }
        if (n >= 3) rate = (n * sxy - sx * sy) / (n * sxx - sx * sx);
    }
};

// Signed shares of ∂L/∂h_t, as vectors: ⟨part, g⟩ / ‖g‖². They sum to 1, which norms of parts don't.
struct Split {
    std::vector<double> value, score, rest;  // rest: through the next state; at the last token, as the query
    double uniform_error = 0;                // with equal scores: the value part against upstream / T
    std::vector<double> alpha;               // the attention weights
    std::optional<Trace::Graph> graph;       // what was recorded, if it is short enough to be looked at
};

static double dot(const Array& a, const Array& b) {
    double s = 0;
    for (std::size_t i = 0; i < a.size(); ++i) s += double(a.data()[i]) * b.data()[i];
    return s;
}

// Equal scores, whatever query and keys say.
struct EqualScore : Score {
    const char* name() const override { return "EqualScore"; }
    Tensor operator()(const Tensor& query, const Tensor& keys) const override {
        return query.tape().constant(filled({query.shape(0), query.shape(1), keys.shape(1)}, 0));
    }
};

// ---- the models

template <class Cell>
std::vector<typename Cell::State> states_of(Tape& tape, const Cell& cell, const Problem& problem,
                                            std::vector<Tensor>& x) {
    std::vector<typename Cell::State> states;
    typename Cell::State s = cell.start(tape, 1);
    for (const Array& word : problem.x) {
        x.push_back(tape.leaf(word));
        states.push_back(s = cell(x.back(), s));
    }
    return states;
}

static Tensor loss_of(const Tensor& feature, const Problem& problem, Generator& generator) {
    const Linear output(problem.hidden, problem.vocabulary, generator);
    return cross_entropy(output(feature), Indices{problem.target});
}

// The last state alone: L sees h_T. For the check by hand it also returns what the cell's Jacobians need.
template <class Cell> struct LastState {
    Measured measured;
    std::vector<typename Cell::State> states;
    std::vector<std::vector<double>> bars;  // ∂L/∂h_t, or ∂L/∂(h,c)_t
};

template <class Cell>
LastState<Cell> last_state(std::string name, char letter, const Cell& cell, const Problem& problem) {
    Tape tape;
    Generator generator(problem.seed + 1);
    std::vector<Tensor> x, wanted;
    LastState<Cell> result{{std::move(name), letter, {}}, states_of(tape, cell, problem, x), {}};
    for (const auto& s : result.states) s.map([&](const Tensor& part) { return wanted.push_back(part), part; });
    const Tensor loss = loss_of(result.states.back().h, problem, generator);
    const Gradients g = tape.backward(loss, wanted, {.keep = Keep::wanted});
    for (const auto& s : result.states) {
        result.measured.norms.push_back(norm(g[s.h]));
        std::vector<double>& bar = result.bars.emplace_back();
        s.map([&](const Tensor& part) { return bar.insert(bar.end(), g[part].begin(), g[part].end()), part; });
        if constexpr (requires { s.c; }) result.measured.state_norms.push_back(measure::length(bar));
    }
    result.measured.paths = paths(loss, x);
    result.measured.summarise();
    return result;
}

// The same cell with attention over its states; the query is the last state.
template <class Cell>
Measured with_attention(std::string name, char letter, const Cell& cell, const Problem& problem,
                        const Attention& attention, Split* split) {
    Tape tape;
    Generator generator(problem.seed + 1);
    std::vector<Tensor> x, h, wanted;
    for (const auto& s : states_of(tape, cell, problem, x)) h.push_back(s.h);
    const Tensor keys = stack(h, 1), values = stack(h, 1);  // two records, so that the observer can tell them apart
    const Attended attended = attention(h.back(), keys, values);
    const Tensor loss = loss_of(attended.context, problem, generator);
    if (split) split->alpha = numbers(attended.weights.value()), split->graph = trace_graph(loss);

    std::vector<Array> value(h.size()), score(h.size());
    const auto observer = [&](const Contribution& c) {
        if (c.record == values.id()) value[c.input] = c.x_bar;
        if (c.record == keys.id()) score[c.input] = c.x_bar;
    };
    wanted = h;
    wanted.push_back(attended.context);
    const Gradients g = tape.backward(
        loss, wanted, {.keep = Keep::wanted, .observer = split ? observer : decltype(BackwardOptions::observer)()});

    Measured measured{std::move(name), letter, {}};
    const Array& upstream = g[attended.context];
    for (std::size_t t = 0; t < h.size(); ++t) {
        const Array& bar = g[h[t]];
        measured.norms.push_back(norm(bar));
        if (!split) continue;
        const double square = sum_of_squares(bar), by_value = dot(value[t], bar) / square;
        const double by_score = score[t].size() == bar.size() ? dot(score[t], bar) / square : 0;
        Array rest = bar;
        for (std::size_t i = 0; i < bar.size(); ++i)
            rest.data()[i] -= value[t].data()[i] + (score[t].size() == bar.size() ? score[t].data()[i] : 0);
        split->value.push_back(by_value), split->score.push_back(by_score),
            split->rest.push_back(dot(rest, bar) / square);
        for (std::size_t i = 0; i < bar.size(); ++i)
            split->uniform_error = std::max(
                split->uniform_error, std::abs(double(value[t].data()[i]) * double(h.size()) / upstream.data()[i] - 1));
    }
    measured.paths = paths(loss, x);
    measured.summarise();
    return measured;
}

// Self-attention: every token a leaf of its own, the query made of the last one.
static Measured self_attention(const Problem& problem) {
    Tape tape;
    Generator generator(problem.seed + 2);
    const std::size_t H = problem.hidden;
    const Linear q(E, H, generator), k(E, H, generator), v(E, H, generator);
    std::vector<Tensor> x;
    for (const Array& word : problem.x) x.push_back(tape.leaf(word));
    const Tensor all = stack(x, 1);
    const Attended attended = Attention(ScaledDotScore())(q(x.back()), k(all), v(all));
    const Tensor loss = loss_of(attended.context, problem, generator);
    const Gradients g = tape.backward(loss, x, {.keep = Keep::wanted});
    Measured measured{"self-attention", 'S', {}};
    for (const Tensor& token : x) measured.norms.push_back(norm(g[token]));
    measured.paths = paths(loss, x);
    measured.summarise();
    return measured;
}

// ---- the chain rule by hand

struct ByHand {
    double worst = 0;        // relative difference of tape and product, while the norm is an ordinary number
    double excess = -1e308;  // largest of ln(norm) − Σ ln‖J‖: never above 0, as norms of products are bounded
    double theory = 0;       // mean of ½ ln(‖J‖_F² / n), the expected rate for a random direction
    std::size_t steps = 0;
};

template <class Cell, class Jacobian>
ByHand by_hand_product(const LastState<Cell>& run, std::size_t most_norms, Jacobian jacobian) {
    ByHand result;
    std::vector<double> g = run.bars.back();
    double bound = std::log(measure::length(g));
    terminal::Progress progress(run.measured.name + ": the chain rule by hand");
    const std::size_t T = run.bars.size();
    for (std::size_t t = T - 1; t-- > 0;) {  // from state t + 1 back to state t
        const Array J = jacobian(t + 1);
        g = by_hand::times(J, g);
        if (measure::length(g) < tiny) break;
        std::vector<double> difference = g;
        for (std::size_t i = 0; i < g.size(); ++i) difference[i] -= run.bars[t][i];
        result.worst = std::max(result.worst, measure::length(difference) / measure::length(g));
        if (result.steps < most_norms) {  // singular values are the slow part
            bound += std::log(spectral_norm(J));
            result.excess = std::max(result.excess, std::log(measure::length(run.bars[t])) - bound);
        }
        result.theory += 0.5 * std::log(sum_of_squares(J) / double(g.size()));
        ++result.steps;
        progress.at(double(T - t) / double(T));
    }
    result.theory /= double(std::max<std::size_t>(result.steps, 1));
    return result;
}

// ---- what is shown

// The places that fit on a screen: the first and, denser, the last.
static std::vector<std::size_t> shown_places(std::size_t T, std::size_t most) {
    std::vector<std::size_t> places;
    for (std::size_t t = 0; t < T; ++t)
        if (T <= most || t < most / 4 || t >= T - (most - most / 4)) places.push_back(t);
    return places;
}

static void show_bars(Lesson& lesson, const std::vector<std::string>& tokens, const std::vector<Measured>& models) {
    const std::size_t width = std::min<std::size_t>(terminal::width(), 120), cell = (width - 16) / models.size() - 1;
    const std::size_t word = width - models.size() * (cell + 1);
    std::string head = fit("", word);
    for (const Measured& m : models) {  // "RNN+attention" is "RNN+A" over a narrow column
        const std::size_t at = m.name.find("attention");
        head += " " + fit(at == std::string::npos || cell >= 14 ? m.name : m.name.substr(0, at) + "A", cell);
    }
    lesson.line(terminal::styled(terminal::Style::dim, head));
    std::size_t last = 0;
    for (std::size_t t : shown_places(models[0].norms.size(), 32)) {
        if (t > last + 1) lesson.line(fit_right("⋮ " + std::to_string(t - last - 1) + " more", word - 1));
        last = t;
        std::string row = fit_right(tokens[t], word - 1) + " ";
        for (const Measured& m : models) {
            const double full = m.norms.back(),
                         decades = m.norms[t] > 0 && full > 0 ? std::log10(m.norms[t] / full) : -1e9;
            const std::string bar = terminal::bar(1 + decades / double(cell), cell);
            row += " " + terminal::styled(m.letter >= 'a' ? terminal::Style::plain : terminal::Style::good, bar);
        }
        lesson.line(row);
    }
    lesson.say(
        "A full bar is as strong as at the last token, each character less is a factor of ten, and an empty bar is "
        "10^−" +
        std::to_string(cell) +
        " of it or less. Each model is measured by its own last token: bars compare words, not models.");
}

static void show_summary(Lesson& lesson, const std::vector<Measured>& models) {
    lesson.line(fit("", 16) + fit_right("× a word back", 14) + fit_right("reaches back", 16) +
                fit_right("path to the last", 18) + fit_right("to the first", 14));
    for (const Measured& m : models) {
        const std::string rate = std::isnan(m.rate) ? "–" : terminal::number(std::exp(m.rate), "× %.4f");
        lesson.line(fit(m.name, 16) + fit_right(rate, 14) +
                    fit_right(std::to_string(m.reach) + (m.reach == 1 ? " token " : " tokens"), 16) +
                    fit_right(std::to_string(m.paths.back().shortest) + " ops", 18) +
                    fit_right(std::to_string(m.paths.front().shortest) + " ops", 14));
    }
}

static void show_split(Lesson& lesson, const std::vector<std::string>& tokens, const Split& split) {
    lesson.line(fit("", 18) + fit_right("value", 10) + fit_right("score", 10) + fit_right("recurrence", 14));
    std::size_t next = 0;
    for (std::size_t t : shown_places(split.value.size(), 8)) {
        if (t > next) lesson.line(fit_right("⋮ " + std::to_string(t - next) + " more", 17));
        next = t + 1;
        lesson.line(fit_right(tokens[t], 17) + " " + fit_right(terminal::number(split.value[t], "%+.4f"), 10) +
                    fit_right(terminal::number(split.score[t], "%+.4f"), 10) +
                    fit_right(terminal::number(split.rest[t], "%+.4f"), 14) +
                    (t + 1 == split.value.size() ? "  (its query)" : ""));
    }
}

static std::vector<double> range(std::size_t n) {
    std::vector<double> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = double(i + 1);
    return x;
}

int main(int argc, char** argv) {
    Lesson lesson("00_tour", "Gradients look back through time; attention looks back over the source.");
    std::string text, file, date;
    bool characters = false;
    std::int64_t most = 100'000, hidden = 32;
    double forget_bias = 1;
    lesson.flags().add("--text", text, "your own sentence instead of the shipped passage");
    lesson.flags().add("--file", file, "a text file (UTF-8) instead", "FILE");
    lesson.flags().add("--chars", characters, "characters as tokens, not words");
    lesson.flags().add("--date", date, "instead: a date in words, for a trained model to write as 1953-03-15");
    lesson.flags().add("--hidden", hidden, 1, 1024, "hidden size H");
    lesson.flags().add("--forget-bias", forget_bias, "b_f of the LSTM");
    lesson.flags().add("--max-tokens", most, 2, 1'000'000, "leave out what comes after so many");

    return lesson.run(argc, argv, [&] {
        if (lesson.flags().given("--date")) return show_date(lesson, date);
        if (lesson.flags().given("--text") && lesson.flags().given("--file"))
            fail<ValueError>("tour", "--text and --file are two texts: give one");
        std::vector<std::string> tokens = tokenize(lesson.flags().given("--text")   ? text
                                                   : lesson.flags().given("--file") ? read_text(file)
                                                                                    : passage,
                                                   characters);
        const std::size_t found = tokens.size();
        if (tokens.size() > std::size_t(most)) tokens.resize(std::size_t(most));
        if (tokens.size() < 2)
            fail<ValueError>("tour",
                             "at least two tokens are needed, one to predict and one before it: this text has " +
                                 std::to_string(tokens.size()));
        const Vocabulary vocabulary(tokens);
        const std::size_t T = tokens.size() - 1;

        const auto H = std::size_t(hidden);
        Generator generator(lesson.seed());
        const Embedding embedding(vocabulary.words.size(), E, generator);
        Problem problem{{}, vocabulary.words.size(), H, vocabulary.ids.back(), lesson.seed()};
        for (std::size_t t = 0; t < T; ++t) {
            const Real* row = embedding.table.value().data() + std::size_t(vocabulary.ids[t]) * E;
            Array x = Array::from_shape({1, E});
            std::copy(row, row + E, x.data());
            problem.x.push_back(std::move(x));
        }
        const RNN rnn(E, H, generator);
        const LSTM lstm(E, H, generator, {.forget_bias = Real(forget_bias)});
        const GRU gru(E, H, generator);
        const Attention additive(AdditiveScore(H, H, H, generator));

        lesson.say("From " + std::to_string(T) + " tokens the next one is predicted: “" +
                   terminal::printable(tokens.back()) + "”. " + std::to_string(vocabulary.words.size()) +
                   " different tokens, embedding 16, hidden size " + std::to_string(H) + ", fresh weights (seed " +
                   std::to_string(lesson.seed()) + "), forget bias " + terminal::number(forget_bias, "%g") + "." +
                   (found > tokens.size() ? " Of " + std::to_string(found) + " tokens the first " +
                                                std::to_string(tokens.size()) + " are used."
                                          : ""));

        Split split, equal;
        std::vector<Measured> models;
        auto rnn_run = last_state("RNN", 'r', rnn, problem);
        auto lstm_run = last_state("LSTM", 'l', lstm, problem);
        auto gru_run = last_state("GRU", 'g', gru, problem);
        models = {rnn_run.measured, lstm_run.measured, gru_run.measured};
        models.push_back(with_attention("RNN+attention", 'R', rnn, problem, additive, &split));
        models.push_back(with_attention("LSTM+attention", 'L', lstm, problem, additive, nullptr));
        models.push_back(with_attention("GRU+attention", 'G', gru, problem, additive, nullptr));
        models.push_back(self_attention(problem));
        with_attention("equal scores", 'E', rnn, problem, Attention(EqualScore()), &equal);

        lesson.step("How strongly each word still speaks to the loss: ‖∂L/∂h_t‖");
        show_bars(lesson, tokens, models);

        lesson.step("The same as curves");
        std::vector<terminal::Curve> curves;
        for (const Measured& m : models) curves.push_back({m.letter, m.name, m.norms});
        lesson.line(
            terminal::log_chart(curves, "token t", "‖∂L/∂h_t‖", std::min<std::size_t>(terminal::width(), 120), 17));

        const std::vector<double>&alone = models[0].norms, &attending = models[3].norms;
        std::size_t near = 0;  // the last words, where the recurrence is the stronger of the two
        while (near < T && alone[T - 1 - near] > attending[T - 1 - near]) ++near;
        lesson.say(
            "Nothing here has learned anything: this is what untrained weights do to a gradient. Attention's line "
            "is level, but low, as about 1/" +
            std::to_string(T) + " of it reaches each word. On the last " + std::to_string(near) +
            " the plain RNN has more; before them attention, at the first word by a factor of " +
            terminal::number(attending[0] / alone[0], "%.1e") + ".");

        lesson.step("Rates, reach, and the shortest path from the loss, counted on the tape");
        show_summary(lesson, models);
        lesson.say(
            "A row is a model. Its first number is what is left of the gradient for each word further back. “Reaches "
            "back” counts the words that have at least a thousandth of what the last one has. The paths are the fewest "
            "operations between the loss and a word.");
        lesson.say(
            "Without attention the first word is one operation further away for each word behind it, and at each the "
            "gradient shrinks; gates make it shrink less (lesson 04). With attention the first word is as near as "
            "the last.");

        lesson.step("The chain rule by hand: ∂L/∂h_T · J_T · … · J_{t+1}");
        const std::size_t most_norms = lesson.quick() ? 32 : 128;
        const auto a = [&](const auto& cell, std::size_t t) {
            return by_hand::affine(problem.x[t], cell.W.value(), cell.b.value());
        };
        const auto state = [&](const auto& run, std::size_t t) -> const Array& { return run.states[t].h.value(); };
        const ByHand of_rnn = by_hand_product(rnn_run, most_norms, [&](std::size_t t) {
            return by_hand::rnn_jacobian(rnn.U.value(), state(rnn_run, t));
        });
        const ByHand of_lstm = by_hand_product(lstm_run, most_norms, [&](std::size_t t) {
            return by_hand::lstm_jacobian(a(lstm, t), state(lstm_run, t - 1), lstm_run.states[t - 1].c.value(),
                                          lstm.U.value());
        });
        const ByHand of_gru = by_hand_product(gru_run, most_norms, [&](std::size_t t) {
            return by_hand::gru_jacobian(a(gru, t), state(gru_run, t - 1), gru.U.value(), gru.b_n.value());
        });
        lesson.line(fit("", 8) + fit_right("steps", 8) + fit_right("tape − product", 18) +
                    fit_right("rate measured", 16) + fit_right("½ ln(‖J‖²_F/n)", 18));
        const auto row = [&](const char* name, const ByHand& b, const std::vector<double>& norms) {
            Measured fitted{name, ' ', norms};
            fitted.summarise();
            lesson.line(fit(name, 8) + fit_right(std::to_string(b.steps), 8) +
                        fit_right(terminal::number(b.worst, "%.1e"), 18) +
                        fit_right(terminal::number(fitted.rate, "%+.4f"), 16) +
                        fit_right(b.steps ? terminal::number(b.theory, "%+.4f") : "–", 18));
            return fitted.rate;
        };
        const double rnn_rate = row("RNN", of_rnn, rnn_run.measured.norms);
        row("LSTM h,c", of_lstm, lstm_run.measured.state_norms);
        row("GRU", of_gru, gru_run.measured.norms);
        lesson.say(
            "Each J says how the next state moves with the one before it. Multiplied from the last word back to the "
            "first, without a tape, they give the tape's gradient: “tape − product” is the largest difference. The "
            "rate is how ln ‖gradient‖ changes a step back, and the last column what a step does to a gradient of "
            "random direction. The RNN's behaves like one. With gates it dies more slowly: it soon points where the "
            "gates let most through.");
        lesson.say(
            "The norm ‖J‖ is what J does to the direction that suits it best. A gradient seldom points there, so a "
            "product of norms says how fast gradients can grow at most, not how fast they do.");

        lesson.step("RNN with attention: what part of ∂L/∂h_t came which way (shares sum to 1)");
        show_split(lesson, tokens, split);
        lesson.say("With all scores equal, the value part is exactly 1/" + std::to_string(T) +
                   " of what arrives at the context: a path of length O(1) is not a gradient of strength O(1).");

        if (of_rnn.steps) {
            lesson.check("tour.product.rnn", "RNN: tape − product by hand", le, of_rnn.worst, 0, 1e-10, "chain rule");
            lesson.check("tour.product.lstm", "LSTM (h,c): tape − product by hand", le, of_lstm.worst, 0, 1e-10,
                         "chain rule");
            lesson.check("tour.product.gru", "GRU: tape − product by hand", le, of_gru.worst, 0, 1e-10, "chain rule");
            lesson.check("tour.bound.rnn", "RNN: ln‖g‖ − Σ ln‖J‖, a bound", le, of_rnn.excess, 0, 1e-9,
                         "Pascanu et al. 2013, §2.1");
            lesson.check("tour.bound.lstm", "LSTM (h,c): the same bound", le, of_lstm.excess, 0, 1e-9,
                         "Pascanu et al. 2013, §2.1");
            lesson.check("tour.bound.gru", "GRU: the same bound", le, of_gru.excess, 0, 1e-9,
                         "Pascanu et al. 2013, §2.1");
        }
        if (!std::isnan(rnn_rate))
            lesson.check("tour.rate.rnn", "RNN: ln decay a step, ½ ln(‖J‖²/H)", target, rnn_rate, of_rnn.theory, 0.1,
                         "our own derivation");
        const auto growth = [&](const Measured& m) {
            return double(m.paths.front().shortest) - double(m.paths.back().shortest);
        };
        lesson.check("tour.path.rnn", "RNN: ops more to the first token", eq, growth(models[0]), double(T - 1), 0,
                     "counted on the tape");
        lesson.check("tour.path.attention", "RNN+attention: ops more to the first", eq,
                     double(models[3].paths.front().shortest) - double(models[3].paths[T / 2].shortest), 0, 0,
                     "counted on the tape");
        lesson.check("tour.path.self", "Self-attention: ops more to the first", eq,
                     double(models[6].paths.front().shortest) - double(models[6].paths[T / 2].shortest), 0, 0,
                     "counted on the tape");
        double worst_sum = 0;
        for (std::size_t t = 0; t < T; ++t)
            worst_sum = std::max(worst_sum, std::abs(split.value[t] + split.score[t] + split.rest[t] - 1));
        lesson.check("tour.split.sum", "Shares of ∂L/∂h_t: |Σ − 1|", le, worst_sum, 0, 1e-12, "linearity");
        lesson.check("tour.uniform.value", "Equal scores: value · T / upstream − 1", le, equal.uniform_error, 0, 1e-12,
                     "∂c/∂v_t = α_t");

        Trace& trace = lesson.trace();
        trace.tokens = tokens;
        trace.config["embedding"] = std::int64_t(E), trace.config["hidden"] = hidden,
        trace.config["forget_bias"] = forget_bias;
        trace.config["weights"] = std::string("fresh: nothing has been learned");
        trace.config["loss"] = "−log p(“" + tokens.back() + "” | the tokens before it)";
        trace.config["tokens_are"] = std::string(characters ? "characters" : "words");
        for (const Measured& m : models) {
            trace.series.push_back(
                {.name = m.name, .x_label = "token", .x = range(T), .y_label = "‖∂L/∂h_t‖", .y = m.norms});
            std::vector<double> lengths;
            for (const PathReport& p : m.paths) lengths.push_back(double(p.shortest));
            trace.series.push_back({.name = m.name + " path",
                                    .x_label = "token",
                                    .x = range(T),
                                    .y_label = "shortest path",
                                    .y_unit = "ops",
                                    .y = lengths});
        }
        trace.series.push_back({.name = "LSTM (h,c)",
                                .x_label = "token",
                                .x = range(T),
                                .y_label = "‖∂L/∂(h,c)_t‖",
                                .y = lstm_run.measured.state_norms});
        if (of_rnn.steps) {  // the expected rate, through the last norm
            std::vector<double> expected;
            for (std::size_t t = 0; t < T; ++t)
                expected.push_back(models[0].norms.back() * std::exp(of_rnn.theory * double(T - 1 - t)));
            trace.series.push_back({.name = "RNN theory",
                                    .x_label = "token",
                                    .x = range(T),
                                    .y_label = "‖∂L/∂h_t‖",
                                    .y = std::move(expected)});
        }
        for (const Measured& m : models) {
            trace.paths.push_back({"L (" + m.name + ")", "token 1", m.paths.front()});
            trace.paths.push_back({"L (" + m.name + ")", "token " + std::to_string(T), m.paths.back()});
        }
        trace.matrices.push_back({.name = "attention weights α, RNN+attention",
                                  .row_label = "query",
                                  .column_label = "token",
                                  .rows = {"last state"},
                                  .columns = {tokens.begin(), tokens.end() - 1},
                                  .shape = {1, T},
                                  .data = split.alpha});
        trace.graph = std::move(split.graph);
        if (trace.graph) trace.graph->name = "RNN+attention";
        for (const auto& [name, shares] :
             {std::pair{"value share", &split.value}, {"score share", &split.score}, {"recurrence share", &split.rest}})
            trace.series.push_back({.name = std::string("RNN+attention ") + name,
                                    .x_label = "token",
                                    .x = range(T),
                                    .y_label = "share of ∂L/∂h_t",
                                    .y = *shares});
    });
}
