// One vector forgets long texts; all states to look back at do not.
#include <algorithm>
#include <cmath>
#include "engine/ops/movement.hpp"
#include "engine/ops/reduce.hpp"
#include "engine/ops/softmax.hpp"
#include "engine/paths.hpp"
#include "layers/optimizer.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"
#include "lessons/translator.hpp"

using namespace lookback;
using enum Trace::Kind;
using Numbers = std::vector<double>;
using terminal::number;

static constexpr std::size_t K = 8, E = 16, H = 32, B = 32;  // symbols, embedding, units, rows in a batch

static void series(Lesson& lesson, const std::string& name, const std::string& x_label, const Numbers& x,
                   const std::string& y_label, const Numbers& y) {
    lesson.trace().series.push_back({.name = name, .x_label = x_label, .x = x, .y_label = y_label, .y = y});
}

// ---- The task: write the source again

struct Task {
    std::size_t T;
    bool reversed = false;  // the source is read from its end; what is to be written stays
    bool skewed = false;    // symbol k is drawn in proportion to 1/2^k

    struct Rows {
        Indices source, inputs, targets;  // (n,T); inputs: the targets one step late, after a mark K
    };
    Rows draw(Generator& g, std::size_t n) const {
        std::vector<std::int64_t> source(n * T), inputs(n * T), targets(n * T);
        for (std::size_t i = 0; i < n * T; ++i) {
            const std::size_t t = i % T;
            targets[i] = g.integer(0, K);
            if (skewed)
                for (targets[i] = 0; targets[i] + 1 < std::int64_t(K) && g.uniform() < 0.5;) ++targets[i];
            inputs[i] = t ? targets[i - 1] : std::int64_t(K);
            source[reversed ? i - t + T - 1 - t : i] = targets[i];
        }
        return {Indices({n, T}, source), Indices({n, T}, inputs), Indices({n, T}, targets)};
    }
};

// A GRU reads, a GRU that begins from its last state writes. If it attends, its state s_t asks all states of the
// reader: c_t = attention(s_t), and the readout sees [c_t s_t].
struct Copier {
    bool attends;
    Embedding source, target;
    GRU reader, writer;
    Attention attention{DotScore()};
    Linear out;

    Copier(bool attends_, Generator& g)
        : attends(attends_),
          source(K, E, g),
          target(K + 1, E, g),
          reader(E, H, g),
          writer(E, H, g),
          out(attends_ ? 2 * H : H, K, g) {}

    struct Output {
        Tensor logits, weights, context, states;  // (n,T,K) (n,T,T) (n,T,H), and the reader's states (n,T,H)
        Sequence<GRU> read, written;
    };
    enum class Cut { nothing, last_state, last_and_attended };
    Output operator()(Tape& tape, const Task::Rows& rows, Cut cut = Cut::nothing) const {
        const Tensor x = source(tape, rows.source);
        Sequence<GRU> read = unroll(reader, x, reader.start(tape, x.shape(0)));
        const Tensor first = cut == Cut::nothing ? read.last.h : detach(read.last.h);
        Sequence<GRU> written = unroll(writer, target(tape, rows.inputs), {first});
        if (!attends) return {out(written.outputs), {}, {}, read.outputs, read, written};
        const Tensor states = cut == Cut::last_and_attended ? detach(read.outputs) : read.outputs;
        const auto [context, weights] = attention(written.outputs, attention.remember(states));
        return {out(concat({context, written.outputs}, -1)), weights, context, states, read, written};
    }
    void for_each_parameter(const std::string& prefix, const Visitor& f) {
        source.for_each_parameter(join(prefix, "source"), f), target.for_each_parameter(join(prefix, "target"), f);
        reader.for_each_parameter(join(prefix, "reader"), f), writer.for_each_parameter(join(prefix, "writer"), f);
        out.for_each_parameter(join(prefix, "out"), f);
    }
};

// ---- What can be said before any training

static void distances(Lesson& lesson) {
    lesson.step("How far is a symbol from its copy?");
    const std::size_t T = 16;
    lesson.say(
        "A GRU reads " + std::to_string(T) +
        " symbols, a second one begins from its last state h_T and writes them again. "
        "From its step i back to symbol i there are (T − i) + i = T transitions, for every i. Sutskever et al. (2014) "
        "read the source backwards. What does that change?");
    lesson.predict("mean");
    Generator generator(lesson.seed());
    const Copier model(false, generator);
    Numbers forward, backward;
    for (const bool reversed : {false, true}) {
        Tape tape;
        const Copier::Output o = model(tape, Task{T, reversed}.draw(generator, 1));
        for (std::size_t i = 0; i < T; ++i) {
            const Tensor read = o.read.states[reversed ? T - 1 - i : i].h, written = o.written.states[i].h;
            (reversed ? backward : forward).push_back(double(paths(written, {read})[0].shortest));
        }
    }
    const Numbers places = measure::range(1, T);
    lesson.line(terminal::chart({{'f', "source as it is", forward, places}, {'r', "source reversed", backward, places}},
                                {"symbol i"}, {"transitions from its copy back to it"}, 11));
    lesson.reveal("mean", measure::mean(backward), double(T));
    lesson.say(
        "The mean stays T. But the first symbols come close, and learning gets a foothold: the paper reports "
        "perplexity "
        "5.8 → 4.7 and BLEU 25.9 → 30.6 by reversal alone (§ 3.3).");
    double off = 0;
    for (const double n : forward) off = std::max(off, std::abs(n - double(T)));
    lesson.check("06.lag", "As it is: |transitions − T|, worst", eq, off, 0, 0, "counted on the tape");
    lesson.check("06.lag_shortest", "Reversed: shortest way", eq, *std::min_element(backward.begin(), backward.end()),
                 1, 0, "2i − 1");
    lesson.check("06.lag_mean", "Reversed: mean way", eq, measure::mean(backward), double(T), 0, "mean of 2i − 1");
    series(lesson, "transitions", "symbol i", places, "transitions", forward);
    series(lesson, "transitions reversed", "symbol i", places, "transitions", backward);
}

static void bottleneck(Lesson& lesson) {
    lesson.step("One vector, or all states");
    Generator generator(lesson.seed());
    const Task task{16};
    const Copier plain(false, generator), attending(true, generator);
    const Task::Rows rows = task.draw(generator, 8);
    const auto through = [&](const Copier& model, Copier::Cut cut) {  // what reaches the reader's states
        Tape tape;
        const Copier::Output o = model(tape, rows, cut);
        const std::vector<Tensor> h = o.read.hidden();
        const Gradients g = tape.backward(cross_entropy(o.logits, rows.targets), h);
        double total = 0;
        for (const Tensor& one : h) total += norm(g[one]);
        return total;
    };
    const auto cut = lesson.broken("detached-states") ? Copier::Cut::last_and_attended : Copier::Cut::last_state;
    const double without = through(plain, cut), with = through(attending, cut);
    lesson.say(
        "The plain writer gets c = h_T and nothing else. Cut the gradient at h_T, and nothing reaches the reader; in "
        "the "
        "model that attends, the other way stays open:");
    lesson.line(terminal::table(
        {{"Σ ‖∂L/∂h_i‖", "whole", "cut at h_T"},
         {"last state only", number(through(plain, Copier::Cut::nothing), "%.4f"), number(without)},
         {"with attention", number(through(attending, Copier::Cut::nothing), "%.4f"), number(with, "%.4f")}}));
    lesson.check("06.bottleneck", "Last state: Σ‖∂L/∂h_i‖, cut at h_T", exact0, without, 0, 0, "c = h_T");
    lesson.check("06.attention_passes", "Attention: Σ‖∂L/∂h_i‖, cut at h_T", ge, with, 1e-6, 0, "c_t = Σ α h");

    Tape tape;
    const Copier::Output o = attending(tape, rows);
    double outside = -1;  // of the box that the states span, coordinate by coordinate
    for (std::size_t b = 0; b < 8; ++b)
        for (std::size_t j = 0; j < H; ++j) {
            double low = 1e9, high = -1e9;
            for (std::size_t i = 0; i < task.T; ++i) {
                low = std::min(low, double(o.states.value()(b, i, j))),
                high = std::max(high, double(o.states.value()(b, i, j)));
            }
            for (std::size_t t = 0; t < task.T; ++t) {
                const double c = o.context.value()(b, t, j);
                outside = std::max({outside, low - c, c - high});
            }
        }
    const double stored = double(o.states.size()) / 8;
    lesson.say("Is there no bottleneck any more? It moves. " + number(stored) +
               " numbers are kept for 16 symbols, where the plain "
               "writer gets " +
               std::to_string(H) + "; the memory grows with T. But each read is one vector of " + std::to_string(H) +
               " numbers, a mean of the states, which never lies outside of them.");
    lesson.check("06.memory", "Numbers kept / numbers of h_T, T = 16", eq, stored / H, 16, 0, "T · H against H");
    lesson.check("06.hull", "Context outside of the states' range", le, outside, 0, 1e-12, "Σ α = 1, α ≥ 0");

    const Tensor alpha = o.weights;
    double entropy = 0;
    for (const double a : numbers(alpha.value())) entropy -= a > 0 ? a * std::log(a) : 0;
    entropy /= 8. * 16;
    const double loss = cross_entropy(o.logits, rows.targets).item();
    lesson.say("Untrained, it looks everywhere: the entropy of its weights is " +
               number(entropy / std::log(16.0), "%.3f") + " of the most possible, ln 16. And its cross-entropy, " +
               number(loss, "%.3f") +
               " nats, is about that of guessing among 8, ln 8 = 2.079. Where to look must be learned.");
    lesson.check("06.even_start", "Untrained: entropy of α / ln T", ge, entropy / std::log(16.0), 0.7, 0, "α near 1/T");
    lesson.check("06.chance", "Untrained: cross-entropy, ln 8", eq, loss, std::log(8.0), 0.1,
                 "8 equally likely symbols");
}

static void who_asks(Lesson& lesson) {
    lesson.step("Which state asks: the new one, or the one before?");
    lesson.say(
        "The course says the decoder's current state asks. In Luong's model it does; in Bahdanau's the previous one, "
        "s_{t−1}, so that the word just fed can't yet turn the gaze. We feed two different last words and look at the "
        "last "
        "row of weights:");
    std::vector<std::vector<std::string>> rows{{"model", "largest change of α"}};
    for (const DecoderKind kind : {DecoderKind::bahdanau, DecoderKind::luong}) {
        Generator generator(lesson.seed());
        const Seq2Seq model(K, K, generator, {.embedding = E, .hidden = H, .attention = H, .decoder = kind});
        Tape tape;
        const Padded source{Indices({1, 5}, {1, 2, 3, 4, 5}), {5}};
        const Tensor a = model(tape, source, Indices({1, 3}, {1, 2, 3})).weights,
                     b = model(tape, source, Indices({1, 3}, {1, 2, 7})).weights;
        double change = 0;
        for (std::size_t i = 0; i < 5; ++i)
            change = std::max(change, std::abs(double(a.value()(0, 2, i) - b.value()(0, 2, i))));
        const bool previous = kind == DecoderKind::bahdanau;
        rows.push_back({previous ? "Bahdanau et al. 2015 (s_{t−1})" : "Luong et al. 2015 (s_t)", number(change)});
        if (previous)
            lesson.check("06.asks_previous", "Bahdanau: change of α by the last word", exact0, change, 0, 0,
                         "eq. 6: s_{t−1}");
        else
            lesson.check("06.asks_current", "Luong: change of α by the last word", ge, change, 1e-6, 0, "§ 3.1: s_t");
    }
    lesson.line(terminal::table(rows));
}

// ---- Trained (full run)

struct Result {
    double loss = 0, all = 0;  // cross-entropy, accuracy
    Numbers place, symbol;     // accuracy by place, by symbol
};
static Result test(const Copier& model, const Task& task) {
    Generator fresh(99);
    const std::size_t n = 256;
    const Task::Rows rows = task.draw(fresh, n);
    Tape tape;
    NoGrad off(tape);
    const Tensor logits = model(tape, rows).logits;
    const Indices best = argmax(logits, -1);
    Result score{cross_entropy(logits, rows.targets).item(), 0, Numbers(task.T, 0.0), Numbers(K, 0.0)};
    Numbers seen(K, 0.0);
    for (std::size_t i = 0; i < best.size(); ++i) {
        const double hit = best[i] == rows.targets[i];
        const auto symbol = std::size_t(rows.targets[i]);
        score.all += hit / double(best.size()), score.place[i % task.T] += hit / double(n);
        score.symbol[symbol] += hit, seen[symbol] += 1;
    }
    for (std::size_t k = 0; k < K; ++k) score.symbol[k] /= std::max(1.0, seen[k]);
    return score;
}

struct Run {
    Copier model;
    Numbers at, accuracy, weight, entropy, gradient;  // every 50 updates
    std::size_t to_99 = 0;                            // updates; 0: never
};
static Run train(bool attends, const Task& task, Generator generator, terminal::Progress& progress, double& done) {
    Run run{Copier(attends, generator), {}, {}, {}, {}, {}};
    Adam adam({.rate = 5e-3});
    const std::size_t updates = attends ? 1000 : 1500;
    for (std::size_t update = 0; update <= updates; ++update) {
        const Task::Rows rows = task.draw(generator, B);
        Tape tape;
        const Copier::Output o = run.model(tape, rows);
        const Tensor loss = cross_entropy(o.logits, rows.targets);
        Gradients g = tape.backward(loss, {o.states});
        if (update % 50 == 0) {
            run.at.push_back(double(update)), run.accuracy.push_back(test(run.model, task).all);
            if (!run.to_99 && run.accuracy.back() >= 0.99) run.to_99 = update;
            if (attends) {
                const Array& a = o.weights.value();
                double right = 0, entropy = 0;
                for (std::size_t b = 0; b < B; ++b)
                    for (std::size_t t = 0; t < task.T; ++t) right += a(b, t, task.reversed ? task.T - 1 - t : t);
                for (const double w : numbers(a)) entropy -= w > 0 ? w * std::log(w) : 0;
                const double steps = double(B * task.T);
                run.weight.push_back(right / steps), run.entropy.push_back(entropy / steps / std::log(double(task.T)));
                run.gradient.push_back(norm(g[o.states]));
            }
            if (run.to_99 && update >= run.to_99 + 50) break;
        }
        clip_by_norm(run.model, g, 1);
        adam.step(run.model, g);
        progress.at((done + double(update) / double(updates)) / 12);
    }
    done += 1;
    return run;
}

static void show_weights(Lesson& lesson, const std::string& name, const Copier& model, std::size_t T) {
    Generator fresh(7);
    Tape tape;
    NoGrad off(tape);
    const Array a = model(tape, Task{T}.draw(fresh, 1)).weights.value();
    std::vector<std::string> labels;
    for (std::size_t t = 0; t < T; ++t) labels.push_back(std::to_string(t + 1));
    lesson.line(terminal::heat_map(numbers(a), labels, labels));
    lesson.trace().matrices.push_back({.name = name,
                                       .row_label = "written",
                                       .column_label = "read",
                                       .rows = labels,
                                       .columns = labels,
                                       .shape = {T, T},
                                       .data = numbers(a)});
}

static void trained(Lesson& lesson) {
    lesson.step("Trained: how well is a text of T symbols copied?");
    Generator generator(lesson.seed());
    terminal::Progress progress("copying");
    double done = 0;
    const std::vector<std::size_t> lengths{4, 8, 16, 24};
    std::vector<std::vector<std::string>> rows{
        {"T", "last state", "99 % after", "at 2T", "attention", "99 % after", "at 2T", "bits needed"}};
    Numbers x, plain, attending;
    std::vector<terminal::Curve> learning;
    const auto after = [](const Run& r) { return r.to_99 ? std::to_string(r.to_99) : std::string("–"); };
    Result plain_8;
    std::optional<Run> watched;
    for (const std::size_t T : lengths) {
        Run a = train(false, {T}, generator.split(), progress, done),
            b = train(true, {T}, generator.split(), progress, done);
        const Result of_a = test(a.model, {T}), of_b = test(b.model, {T});
        x.push_back(double(T)), plain.push_back(of_a.all), attending.push_back(of_b.all);
        rows.push_back({std::to_string(T), number(of_a.all, "%.3f"), after(a),
                        number(test(a.model, {2 * T}).all, "%.3f"), number(of_b.all, "%.3f"), after(b),
                        number(test(b.model, {2 * T}).all, "%.3f"), std::to_string(3 * T)});
        series(lesson, "accuracy last state T = " + std::to_string(T), "update", a.at, "accuracy", a.accuracy);
        series(lesson, "accuracy attention T = " + std::to_string(T), "update", b.at, "accuracy", b.accuracy);
        series(lesson, "accuracy by place, last state T = " + std::to_string(T), "symbol i", measure::range(1, T),
               "accuracy", of_a.place);
        if (T == 8) plain_8 = of_a;
        if (T == 16) watched.emplace(std::move(b));
    }
    lesson.line(terminal::table(rows));
    lesson.line(terminal::chart({{'h', "last state only", plain, x}, {'a', "with attention", attending, x}},
                                {"length T"}, {"share of symbols right"}, 11));
    lesson.say(
        "Room is not what is lacking: 24 symbols are 72 bits, and h_T holds 32 doubles. What fails is learning, over "
        "paths of T "
        "transitions. The course says 20 words; the number depends on model and training (Sutskever et al. saw no fall "
        "below "
        "35 words, with the source reversed).");
    lesson.check("06.copy_attention", "Attention: accuracy at T = 16", target, attending[2], 1, 0.01,
                 "our own experiment");
    lesson.check("06.copy_last_state", "Last state: accuracy at T = 16", target, plain[2], 0.45, 0.25,
                 "our own experiment");
    lesson.check("06.copy_24", "Attention − last state at T = 24", target, attending[3] - plain[3], 0.65, 0.3,
                 "our own experiment");
    series(lesson, "accuracy last state", "length T", x, "accuracy", plain);
    series(lesson, "accuracy attention", "length T", x, "accuracy", attending);

    lesson.step("While it learns where to look (T = 16)");
    show_weights(lesson, "weights α", watched->model, 16);
    lesson.line(terminal::chart({{'w', "weight on the right symbol", watched->weight, watched->at},
                                 {'e', "entropy of the weights / ln T", watched->entropy, watched->at},
                                 {'a', "accuracy", watched->accuracy, watched->at}},
                                {"update"}, {"share"}, 11));
    lesson.say(
        "At first 1/16 lies on each; then the diagonal appears, and accuracy follows. (Rows: written; columns: read.)");
    lesson.check("06.found", "Weight on the right symbol, T = 16", target, watched->weight.back(), 0.9, 0.15,
                 "our own experiment");
    series(lesson, "weight on the right symbol", "update", watched->at, "α", watched->weight);
    series(lesson, "entropy of the weights", "update", watched->at, "entropy / ln T", watched->entropy);
    series(lesson, "gradient at the states", "update", watched->at, "‖∂L/∂h‖", watched->gradient);

    lesson.step("The source reversed (T = 8), and rare symbols (T = 16)");
    const Run reversed = train(false, {8, true}, generator.split(), progress, done);
    const Result of_reversed = test(reversed.model, {8, true});
    lesson.line(terminal::chart({{'f', "as it is", plain_8.place, measure::range(1, 8)},
                                 {'r', "reversed", of_reversed.place, measure::range(1, 8)}},
                                {"symbol i"}, {"accuracy, last state only"}, 9));
    const Task skewed{16, false, true};
    const Run rare = train(false, skewed, generator.split(), progress, done),
              rare_attending = train(true, skewed, generator.split(), progress, done);
    const Result s = test(rare.model, skewed), a = test(rare_attending.model, skewed);
    std::vector<std::vector<std::string>> symbols{{"symbol (each half as frequent)", "1", "2", "3", "4", "5", "6"}};
    for (const bool attends : {false, true}) {
        symbols.push_back({attends ? "with attention" : "last state only"});
        for (std::size_t k = 0; k < 6; ++k) symbols.back().push_back(number((attends ? a : s).symbol[k], "%.2f"));
    }
    lesson.line(terminal::table(symbols));
    lesson.say(
        "Reversed, the first symbols gain and the last lose, as their distances do. And the course is right that rare "
        "details "
        "suffer most: by and large, one vector keeps what is frequent.");
    lesson.check("06.reversed_first", "Reversed: accuracy of the first symbol", target, of_reversed.place[0], 1, 0.02,
                 "Sutskever et al. 2014, § 3.3");
    lesson.check("06.rare", "Last state: frequent − rare symbol", target, s.symbol[0] - s.symbol[5], 0.6, 0.4,
                 "our own experiment");
    lesson.check("06.rare_attention", "Attention: rare symbol (6th) right", target, a.symbol[5], 1, 0.05,
                 "our own experiment");
    series(lesson, "accuracy by symbol, last state", "symbol", measure::range(1, K), "accuracy", s.symbol);
    series(lesson, "accuracy by symbol, attention", "symbol", measure::range(1, K), "accuracy", a.symbol);
}

static void dates(Lesson& lesson) {
    lesson.step("Real texts: dates in eight languages, read by a trained model");
    const Translator translator = Translator::load(LOOKBACK_DATA_DIR "/dates.safetensors");
    const std::vector<Row> held_out = read_tsv(LOOKBACK_DATA_DIR "/dates.held-out.tsv", 2);
    double exact = 0, year = 0, digits = 0;
    const std::size_t n = 200;
    for (std::size_t i = 0; i < n; ++i) {
        const Translator::Answer answer = translator(held_out[i].fields[0]);
        exact += answer.text == held_out[i].fields[1];
        // The year stands in the source with its four digits: does each digit of the answer look at one of them most?
        const std::string wanted = held_out[i].fields[1].substr(0, 4);
        const std::size_t S = answer.source.size();
        std::size_t at = S;
        for (std::size_t p = 0; p + 4 <= S && at == S; ++p)
            if (answer.source[p] + answer.source[p + 1] + answer.source[p + 2] + answer.source[p + 3] == wanted) at = p;
        if (at == S || answer.text.size() < 4) continue;
        for (std::size_t t = 0; t < 4; ++t) {
            const Array& w = answer.weights[t];
            const auto looked = std::size_t(std::max_element(w.data(), w.data() + S) - w.data());
            digits += 1, year += looked >= at && looked < at + 4;
        }
    }
    const Translator::Answer shown = translator(held_out[1].fields[0]);
    std::vector<double> all;
    for (const Array& w : shown.weights) all.insert(all.end(), w.data(), w.data() + shown.source.size());
    lesson.line("   " + terminal::printable(held_out[1].fields[0]) + "   →   " + terminal::printable(shown.text));
    lesson.line(terminal::heat_map(all, shown.target, shown.source));
    lesson.say(
        "Rows are what is written, columns what is read. Of " + std::to_string(n) + " held-out dates " +
        number(100 * exact / double(n), "%.1f") + " % come out exactly; of the digits of their years " +
        number(100 * year / digits, "%.1f") +
        " % are written while the largest weight lies on the year in the source. Nobody told the model where to look.");
    lesson.check("06.dates", "Dates: share of held-out answers exact", target, exact / double(n), 1, 0.03,
                 "trained model");
    lesson.check("06.dates_year", "Dates: year digits looking at the year", target, year / digits, 1, 0.2,
                 "trained model");
    lesson.trace().tokens = shown.source;
    lesson.trace().matrices.push_back({.name = "weights α of a date",
                                       .row_label = "answer",
                                       .column_label = "source",
                                       .rows = shown.target,
                                       .columns = shown.source,
                                       .shape = {shown.target.size(), shown.source.size()},
                                       .data = all});
}

int main(int argc, char** argv) {
    Lesson lesson("06_bottleneck_vs_attention", "One vector forgets long texts; all states to look back at do not.");
    lesson.prediction("mean", "Reversed, T = 16: from a copy back to its symbol, how many transitions on average?");
    lesson.exercise(
        "guess", "A model is sure of 6 symbols of 8 and guesses 2 among 8 symbols. Its mean cross-entropy, in nats?",
        [] { return 2 * std::log(8.0) / 8; }, 5e-4,
        "a sure symbol costs 0, a guess among 8 costs ln 8; take the mean over 8");
    lesson.damage("detached-states", "no gradient flows back through the states that are attended to");
    return lesson.run(argc, argv, [&] {
        distances(lesson);
        bottleneck(lesson);
        who_asks(lesson);
        if (!lesson.quick())
            trained(lesson), dates(lesson);
        else
            lesson.say("(The full run trains the copiers, T = 4 to 24, and shows where a model of dates looks.)");
    });
}
