// An attention weight is not an influence: it leaves out what is weighed.
//
// A word with 80 % of the weight that adds nothing, other weights with the same output, what leaving a word out really
// changes; then three trained models on real dates and words: do their weights rank letters as leaving them out does?
#include <algorithm>
#include <cmath>
#include <numeric>
#include "engine/ops.hpp"
#include "engine/spectrum.hpp"
#include "layers/optimizer.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"
#include "lessons/translator.hpp"

using namespace lookback;
using terminal::number;
using enum Trace::Kind;
using Numbers = std::vector<double>;

static double dot(const Numbers& a, const Numbers& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }
static Numbers row(const Array& x, std::size_t i) {
    const std::size_t n = x.shape().back();
    return {x.data() + i * n, x.data() + (i + 1) * n};
}
static double total_variation(const Numbers& a, const Numbers& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]) / 2;
    return sum;
}
// Σ α_i v_i on a tape: the context vector.   V (T,D)
static Numbers context(const Numbers& weights, const Array& V) {
    Tape tape;
    Array alpha = filled({weights.size()}, 0);
    std::copy(weights.begin(), weights.end(), alpha.begin());
    return numbers(matmul(tape.leaf(alpha), tape.leaf(V)).value());
}

static Array zero_one_two() {  // three values of one number
    Array V = filled({3, 1}, 0);
    V(1, 0) = 1, V(2, 0) = 2;
    return V;
}

// ---- 80 %

// What each value adds along the context: α_i ⟨v_i, c⟩ / ‖c‖². These shares sum to 1, and need not be positive.
static Numbers shares(const Numbers& weights, const Array& V) {
    const Numbers c = context(weights, V);
    Numbers s;
    for (std::size_t i = 0; i < weights.size(); ++i) s.push_back(weights[i] * dot(row(V, i), c) / dot(c, c));
    return s;
}

static void eighty_percent(Lesson& lesson) {
    lesson.say(
        "The course reads a weight of 0.8 as 80 % of the output. The output is Σ α_i v_i, so it matters what is "
        "weighed. Two words, weights 0.8 and 0.2, values (0,0) and (1,0); and two more, weights 0.6 and 0.4, "
        "values (1,0) and (−1,½). A share is α_i ⟨v_i,c⟩/‖c‖²: how far α_i v_i goes towards the context vector c.");
    lesson.predict("share");
    const Array first{{0., 0.}, {1., 0.}}, second{{1., 0.}, {-1., 0.5}};
    const Numbers weights{0.8, 0.2}, others{0.6, 0.4};
    const Numbers s = shares(weights, first), t = shares(others, second);
    lesson.reveal("share", s[0], 0);
    lesson.line(terminal::table({{"", "α", "value", "share"},
                                 {"word 1", "0.8", "(0,0)", number(s[0])},
                                 {"word 2", "0.2", "(1,0)", number(s[1])},
                                 {"word 3", "0.6", "(1,0)", number(t[0])},
                                 {"word 4", "0.4", "(−1,½)", number(t[1])}}));
    lesson.say(
        "The heaviest word adds nothing; a word can even pull the other way. What position j contributes is α_j "
        "times its value, as Kobayashi et al. 2020 measure it in BERT.");
    // The other route: the words of the example by plain arithmetic, c = (0.2, 0.2), ‖c‖² = 0.08.
    lesson.check("12.eighty", "α = 0.8 on v = 0: share of the output", exact0, s[0], 0, 0, "0.8 · 0 = 0");
    lesson.check("12.negative", "α = 0.4 on v = (−1,½): share", eq, t[1], 0.4 * (-0.2 + 0.1) / 0.08, 1e-12,
                 "α ⟨v,c⟩/‖c‖²");
}

// ---- other weights, the same output

// Steps within the weights that keep Σ α_i v_i and Σ α_i: orthogonal to each column of [V, 1], on the places in use.
static Numbers free_direction(const Numbers& weights, const Array& V, Generator& generator) {
    const std::size_t T = weights.size(), D = V.shape()[1];
    std::vector<Numbers> kept;  // an orthonormal basis of those columns
    const auto remove = [&](Numbers& x) {
        for (int twice = 0; twice < 2; ++twice)
            for (const Numbers& k : kept) {
                const double along = dot(x, k);
                for (std::size_t i = 0; i < T; ++i) x[i] -= along * k[i];
            }
    };
    for (std::size_t e = 0; e <= D; ++e) {
        Numbers column(T, 0.0);
        for (std::size_t i = 0; i < T; ++i)
            if (weights[i] > 0) column[i] = e == D ? 1 : double(V(i, e));
        remove(column);
        const double length = measure::length(column);
        if (length < 1e-9) continue;
        for (double& x : column) x /= length;
        kept.push_back(column);
    }
    Numbers direction(T, 0.0);
    for (std::size_t i = 0; i < T; ++i)
        if (weights[i] > 0) direction[i] = generator.normal();
    remove(direction);
    return direction;
}
// Walks from the weights along free directions, each as far as weights stay positive, to ever more different ones.
static Numbers adversary(const Numbers& weights, const Array& V, Generator& generator) {
    Numbers at = weights;
    for (std::size_t steps = 0; steps < weights.size(); ++steps) {
        Numbers best = at;
        for (std::size_t tries = 0; tries < 100; ++tries) {
            const Numbers n = free_direction(at, V, generator);
            double far = 1e300;
            for (std::size_t i = 0; i < at.size(); ++i)
                if (n[i] < 0) far = std::min(far, -at[i] / n[i]);
            if (measure::length(n) < 1e-9 || far > 1e299) continue;
            Numbers next = at;
            for (std::size_t i = 0; i < at.size(); ++i) next[i] = std::max(0.0, at[i] + far * n[i]);
            for (double& x : next) x = x < 1e-15 ? 0 : x;
            if (total_variation(next, weights) > total_variation(best, weights)) best = next;
        }
        if (best == at) break;
        at = best;
    }
    return at;
}
// T − rank[V, 1]: in how many directions weights may move without moving the context.
static double freedom(const Array& V) {
    const std::size_t T = V.shape()[0], D = V.shape()[1];
    Array with_one = filled({T, D + 1}, 1);
    for (std::size_t i = 0; i < T; ++i)
        for (std::size_t e = 0; e < D; ++e) with_one(i, e) = V(i, e);
    return double(T) - double(rank(with_one));
}

static void other_weights(Lesson& lesson, Generator& generator, const Translator& dates) {
    const Array line = zero_one_two();
    const std::vector<Numbers> three{{0.25, 0.5, 0.25}, {0, 1, 0}, {0.5, 0, 0.5}};
    std::vector<std::vector<std::string>> table{{"weights on values 0, 1, 2", "context"}};
    double worst = 0;
    for (const Numbers& w : three) {
        worst = std::max(worst, std::abs(context(w, line)[0] - 1));
        table.push_back(
            {"(" + number(w[0]) + ", " + number(w[1]) + ", " + number(w[2]) + ")", number(context(w, line)[0])});
    }
    lesson.line(terminal::table(table));
    lesson.say(
        "Three weightings, of which the last two share no word at all, and one output. In general weights of T "
        "words with values of d_v numbers may move in T − rank[V,1] directions; for values in general position "
        "that is T − d_v − 1 (Brunner et al. 2020: weights are not identifiable if T is above the head size).");

    const std::size_t T = 16, D = 4;
    const Array V = generator.normal({T, D});
    Tape tape;
    const Numbers alpha = numbers(softmax(tape.leaf(generator.normal({T})), -1).value());
    Numbers other = adversary(alpha, V, generator);
    if (lesson.broken("exchange")) std::swap(other[0], other[1]);
    double out_diff = 0;
    const Numbers c = context(alpha, V), c_other = context(other, V);
    for (std::size_t e = 0; e < D; ++e) out_diff = std::max(out_diff, std::abs(c[e] - c_other[e]));
    const double apart = total_variation(alpha, other);
    std::vector<std::string> places;
    for (std::size_t i = 1; i <= T; ++i) places.push_back(std::to_string(i));
    Numbers both = alpha;
    both.insert(both.end(), other.begin(), other.end());
    lesson.line(terminal::heat_map(both, {"the weights", "an adversary's"}, places));
    lesson.say("16 words, d_v = 4: both rows give the same context to " + number(out_diff, "%.0e") +
               ", and differ by a total variation of " + number(apart, "%.2f") +
               " (1 would be no word in common). A caution the other way: with wide values there is no such freedom.");
    const std::string text = "Wednesday, 22 January 1975";
    Seq2Seq const& model = dates.model();
    Tape encoder_tape;
    const NoGrad no_grad(encoder_tape);
    const Array states = model.encode(encoder_tape, padded(std::vector<Ids>{dates.source_ids(text)})).states.value();
    Array matrix = filled({states.shape()[1], states.shape()[2]}, 0);
    std::copy(states.begin(), states.end(), matrix.begin());
    lesson.say("The shipped dates model, “" + text + "”: T = " + std::to_string(matrix.shape()[0]) +
               ", d_v = " + std::to_string(matrix.shape()[1]) + ", free directions: " + number(freedom(matrix)));
    lesson.check("12.three", "Three weightings: |context − 1|", le, worst, 0, 1e-15, "by hand");
    lesson.check("12.freedom", "T=16, d_v=4: T − rank[V,1]", eq, freedom(V), 16 - 4 - 1, 0, "general position");
    lesson.check("12.same_output", "Adversary: change of the context", le, out_diff, 0, 1e-9, "null space of [V,1]");
    lesson.check("12.apart", "Adversary: total variation", ge, apart, 0.3, 0, "null space of [V,1]");
    lesson.check("12.dates_freedom", "Dates model, d_v=96: free directions", eq, freedom(matrix),
                 std::max(0.0, double(matrix.shape()[0]) - 97), 0, "T − d_v − 1 < 0");
    lesson.trace().matrices.push_back(
        {"weights α and the adversary's", "weights", "word", {"α", "the adversary's"}, places, {2, T}, both});
}

// ---- leaving one out

static void leave_one_out(Lesson& lesson, Generator& generator) {
    const std::size_t T = 6, D = 4;
    Tape tape;
    Array s = generator.normal({1, 1, T}), V = generator.normal({1, T, D});
    s(0, 0, 0) = 3;
    // The heaviest word says what all the others together say: v_1 is their context without it.
    const Array first =
        masked_softmax(tape.leaf(s), Mask({1, 1, T}, {false, true, true, true, true, true}), -1).value();
    for (std::size_t e = 0; e < D; ++e) {
        V(0, 0, e) = 0;
        for (std::size_t i = 1; i < T; ++i) V(0, 0, e) += first(0, 0, i) * V(0, i, e);
    }
    const Tensor scores = tape.leaf(s), values = tape.leaf(V);
    const Numbers alpha = numbers(softmax(scores, -1).value()),
                  c = numbers(matmul(softmax(scores, -1), values).value());
    double worst = 0;
    Numbers influence;
    std::vector<std::vector<std::string>> table{{"word", "α", "context moves, left out", "α/(1−α)·‖c − v‖"}};
    for (std::size_t i = 0; i < T; ++i) {
        std::vector<bool> visible(T, true);
        visible[i] = false;
        const Numbers without = numbers(matmul(masked_softmax(scores, Mask({1, 1, T}, visible), -1), values).value());
        Numbers moved(D), law(D);
        for (std::size_t e = 0; e < D; ++e) {
            moved[e] = without[e] - c[e];
            law[e] = alpha[i] / (1 - alpha[i]) * (c[e] - double(V(0, i, e)));
            worst = std::max(worst, std::abs(moved[e] - law[e]));
        }
        influence.push_back(measure::length(moved));
        table.push_back({std::to_string(i + 1), number(alpha[i], "%.3f"), number(influence.back(), "%.4f"),
                         number(measure::length(law), "%.4f")});
    }
    lesson.line(terminal::table(table));
    lesson.say(
        "Hide word i and let the others share its weight: the context moves by exactly α_i/(1−α_i) · (c − v_i) "
        "(our own small law). The weight is one factor; how much the word says that the others do not is the "
        "other. Word 1 has by far the largest weight and can be left out without a trace: its value is what the "
        "others say together.");
    lesson.check("12.law", "Left out: tape − α/(1−α)·(c − v)", le, worst, 0, 1e-12, "our own");
    lesson.check("12.heaviest", "Largest weight, left out: it moves", le, influence[0], 0, 1e-12, "v = c");

    // Weight 0, and yet it matters: states of a recurrent encoder carry their neighbours.
    Generator draws(lesson.seed());
    const Recurrent<GRU> encoder(D, 8, draws, {.layers = 1, .bidirectional = true});
    const Attention attention(DotScore{});
    const Mask hidden({1, 1, T}, {true, true, false, true, true, true});  // word 3
    const auto reaches = [&](bool recurrent) {
        Tape other;
        const Tensor x = other.leaf(draws.normal({1, T, D}));
        const Tensor states = recurrent ? encoder(x).outputs : x;
        const Tensor query = other.leaf(draws.normal({1, states.shape(2)}));
        const Attended a = attention(query, states, states, hidden);
        const Array g = other.backward(sum(a.context * a.context), {x})[x];
        return measure::length(row(g, 2));
    };
    const double through_states = reaches(true), through_words = reaches(false);
    lesson.say("And weight 0 is not no influence. Word 3 hidden from attention: its gradient is " +
               number(through_words) + " where attention reads the words themselves, but " +
               number(through_states, "%.3f") +
               " where it reads the states of a bidirectional GRU, into which word 3 went.");
    lesson.check("12.hidden_word", "α = 0, words themselves: ‖∂L/∂x‖", exact0, through_words, 0, 0, "α = 0");
    lesson.check("12.hidden_state", "α = 0, recurrent states: ‖∂L/∂x‖", ge, through_states, 1e-6, 0,
                 "states are contextual");
}

// ---- trained models: ranks of weights and ranks of influence

// Kendall's τ_b: 1 if both order the places alike, −1 if oppositely, 0 if unrelated.
static double kendall(const Numbers& a, const Numbers& b) {
    double agree = 0, in_a = 0, in_b = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
            const double x = double(a[i] > a[j]) - double(a[i] < a[j]), y = double(b[i] > b[j]) - double(b[i] < b[j]);
            agree += x * y, in_a += x * x, in_b += y * y;
        }
    return in_a > 0 && in_b > 0 ? agree / std::sqrt(in_a * in_b) : 0;
}
// The sequence, and it with each of its tokens left out in turn.
static std::vector<Ids> with_one_left_out(const Ids& ids) {
    std::vector<Ids> all{ids};
    for (std::size_t i = 0; i < ids.size(); ++i) {
        all.push_back(ids);
        all.back().erase(all.back().begin() + std::ptrdiff_t(i));
    }
    return all;
}

struct Ranks {
    double left_out, gradient;   // mean τ of the weights with each
    Numbers weights, influence;  // (S,T) of the first text, for a map
    std::vector<std::string> source, target;
};
static Ranks ranks(const Translator& translator, const std::vector<Row>& rows) {
    const Seq2Seq& model = translator.model();
    Ranks result{};
    double count = 0;
    for (const Row& r : rows) {
        const Ids source = translator.source_ids(r.fields[0]), target = translator.target_ids(r.fields[1]);
        const std::size_t T = source.size(), S = target.size();
        const std::vector<Ids> variants = with_one_left_out(source);
        const Shifted forced = teacher_forcing(std::vector<Ids>(variants.size(), target));
        Tape tape;
        const Array p = softmax(model(tape, padded(variants), forced.inputs).logits, -1).value();
        Tape one;
        const Shifted single = teacher_forcing(std::vector<Ids>{target});
        const Seq2Seq::Output out = model(one, padded(std::vector<Ids>{source}), single.inputs);
        const Tensor log_p = log_softmax(out.logits, -1);
        for (std::size_t t = 0; t < S; ++t) {
            const Numbers alpha = row(out.weights.value(), t);
            Numbers influence, gradient;
            for (std::size_t i = 0; i < T; ++i)
                influence.push_back(total_variation(row(p, t), row(p, (i + 1) * (S + 1) + t)));
            const Tensor answer = select(select(select(log_p, 0, 0), 0, std::int64_t(t)), 0, target[t]);
            const Array g = one.backward(answer, {out.encoded.states}, {.keep = Keep::wanted})[out.encoded.states];
            for (std::size_t i = 0; i < T; ++i)
                gradient.push_back(std::abs(dot(row(g, i), row(out.encoded.states.value(), i))));
            result.left_out += kendall(alpha, influence), result.gradient += kendall(alpha, gradient), ++count;
            if (&r == &rows[0]) {
                result.weights.insert(result.weights.end(), alpha.begin(), alpha.end());
                result.influence.insert(result.influence.end(), influence.begin(), influence.end());
            }
        }
        if (&r == &rows[0]) {
            result.source = translator.source().tokens(source);
            result.target = translator.target().tokens(target);
        }
    }
    result.left_out /= count, result.gradient /= count;
    return result;
}
static void show(Lesson& lesson, const std::string& name, const Ranks& r) {
    lesson.say(
        "“" + std::accumulate(r.source.begin(), r.source.end(), std::string()) +
        "”: weights, then the change of each "
        "answer (total variation) when a letter is left out. Rows are the answer's tokens, columns the source's.");
    lesson.line(terminal::heat_map(r.weights, r.target, r.source));
    lesson.line(terminal::heat_map(r.influence, r.target, r.source));
    const std::array<std::size_t, 2> shape{r.target.size(), r.source.size()};
    lesson.trace().matrices.push_back({"weights α, " + name, "answer", "source", r.target, r.source, shape, r.weights});
    lesson.trace().matrices.push_back(
        {"change when left out, " + name, "answer", "source", r.target, r.source, shape, r.influence});
}

static std::vector<Row> read(const char* file) { return read_tsv(std::string(LOOKBACK_DATA_DIR "/") + file, 2); }

static Translator pronouncer(std::uint64_t seed) {
    const std::vector<Row> rows = read("phonemes.training.tsv");
    std::vector<Tokens> letters, sounds;
    for (const Row& r : rows) letters.push_back(characters(r.fields[0])), sounds.push_back(words(r.fields[1]));
    Generator generator(seed);
    Translator translator(Alphabet(letters), Alphabet(sounds), Translator::Written::words,
                          {.embedding = 24, .hidden = 48, .attention = 48}, generator);
    const std::size_t updates = 500;
    Adam adam({.rate = cosine(6e-3, updates, 25)});
    terminal::Progress progress("Letters to phonemes");
    for (std::size_t update = 0; update < updates; ++update) {
        std::vector<Ids> sources, targets;
        for (std::size_t b = 0; b < 48; ++b) {
            const Row& r = rows[std::size_t(generator.integer(0, std::int64_t(rows.size())))];
            sources.push_back(translator.source_ids(r.fields[0])),
                targets.push_back(translator.target_ids(r.fields[1]));
        }
        Tape tape;
        Gradients g = tape.backward(translator.model().loss(tape, padded(sources), teacher_forcing(targets)));
        clip_by_norm(translator.model(), g, 1);
        adam.step(translator.model(), g);
        progress.at(double(update) / double(updates));
    }
    return translator;
}

// Which month a date names: states of a bidirectional GRU, one weighted mean of them, twelve logits. With equal weights
// instead, attention has nothing to say: the baseline of Wiegreffe & Pinter 2019.
struct EqualScore : Score {
    const char* name() const override { return "EqualScore"; }
    Tensor operator()(const Tensor& query, const Tensor& keys) const override {
        return query.tape().constant(filled({query.shape(0), query.shape(1), keys.shape(1)}, 0));
    }
};
struct Months {
    Embedding embedding;
    Recurrent<GRU> encoder;
    Attention attention;
    Linear out;

    static constexpr std::size_t E = 16, H = 24;
    Months(std::size_t letters, bool equal, Generator& generator)
        : embedding(letters, E, generator),
          encoder(E, H, generator, {.layers = 1, .bidirectional = true}),
          attention(equal ? Attention(EqualScore()) : Attention(AdditiveScore(1, 2 * H, H, generator))),
          out(2 * H, 12, generator) {}
    void for_each_parameter(const std::string& prefix, const Visitor& f) {
        embedding.for_each_parameter(join(prefix, "embedding"), f);
        encoder.for_each_parameter(join(prefix, "encoder"), f);
        attention.for_each_parameter(join(prefix, "attention"), f);
        out.for_each_parameter(join(prefix, "out"), f);
    }
    Attended operator()(Tape& tape, const Padded& text) const {  // the query is the same for all: 1
        const Mask visible = padding(text.lengths, text.ids.shape()[1]);
        const Tensor states = encoder(embedding(tape, text.ids), {}, {.visible = visible}).outputs;
        const Attended a = attention(tape.constant(filled({text.lengths.size(), 1}, 1)), states, states, visible);
        return {out(a.context), a.weights};
    }
};
struct MonthResult {
    double accuracy, tau;
};
static MonthResult months(const Translator& dates, bool equal, std::uint64_t seed) {
    const std::vector<Row> training = read("dates.training.tsv"), held_out = read("dates.held-out.tsv");
    const auto month = [](const Row& r) { return std::int64_t(std::stoi(r.fields[1].substr(5, 2)) - 1); };
    Generator generator(seed);
    Months model(dates.source().size(), equal, generator);
    name_parameters(model);
    const std::size_t updates = 300;
    Adam adam({.rate = cosine(1e-2, updates, 20)});
    terminal::Progress progress(equal ? "Months, equal weights" : "Months, attention");
    for (std::size_t update = 0; update < updates; ++update) {
        std::vector<Ids> texts;
        std::vector<std::int64_t> answers;
        for (std::size_t b = 0; b < 32; ++b) {
            const Row& r = training[std::size_t(generator.integer(0, std::int64_t(training.size())))];
            texts.push_back(dates.source_ids(r.fields[0])), answers.push_back(month(r));
        }
        Tape tape;
        Gradients g = tape.backward(cross_entropy(model(tape, padded(texts)).context, Indices(answers)));
        clip_by_norm(model, g, 1);
        adam.step(model, g);
        progress.at(double(update) / double(updates));
    }
    MonthResult result{};
    Tape tape;
    const NoGrad no_grad(tape);
    std::vector<Ids> texts;
    for (const Row& r : held_out) texts.push_back(dates.source_ids(r.fields[0]));
    const Indices best = argmax(model(tape, padded(texts)).context, -1);
    for (std::size_t i = 0; i < texts.size(); ++i)
        result.accuracy += double(best[i] == month(held_out[i])) / double(texts.size());
    for (std::size_t n = 0; n < 40; ++n) {
        const Attended a = model(tape, padded(with_one_left_out(texts[n])));
        const Array p = softmax(a.context, -1).value();
        Numbers alpha = row(a.weights.value(), 0), influence;
        for (std::size_t i = 0; i < texts[n].size(); ++i)
            influence.push_back(total_variation(row(p, 0), row(p, i + 1)));
        result.tau += kendall(alpha, influence) / 40;
    }
    return result;
}

static void trained(Lesson& lesson, const Translator& dates) {
    lesson.step("Trained models on real data: weights and influence");
    std::vector<Row> some = read("dates.held-out.tsv"), words_left = read("phonemes.held-out.tsv");
    some.resize(25), words_left.resize(60);
    lesson.say(
        "Influence here: leave one letter out of the source and see how far each answer's distribution moves. "
        "Kendall's τ compares two rankings of the letters: 1 the same, 0 unrelated. Dates in words → ISO by the "
        "shipped model, 25 held-out rows; letters → phonemes, trained now for 500 updates, 60 held-out words.");
    const Ranks of_dates = ranks(dates, some);
    show(lesson, "dates", of_dates);
    const Ranks of_words = ranks(pronouncer(lesson.seed()), words_left);
    show(lesson, "phonemes", of_words);
    const MonthResult attends = months(dates, false, lesson.seed()), equal = months(dates, true, lesson.seed());
    lesson.line(
        terminal::table({{"mean τ of the weights with", "letter left out", "|gradient · state|"},
                         {"dates → ISO", number(of_dates.left_out, "%.2f"), number(of_dates.gradient, "%.2f")},
                         {"letters → phonemes", number(of_words.left_out, "%.2f"), number(of_words.gradient, "%.2f")},
                         {"date → month (classifier)", number(attends.tau, "%.2f"), "–"}}));
    lesson.say(
        "Where each answer copies from one place, weights rank letters much as the gradient on the states does; "
        "they rank them less like leaving a letter out, which also changes its neighbours' states. The "
        "classifier needs its attention least: with all weights equal it names " +
        number(100 * equal.accuracy, "%.1f") + " % of held-out months, with learned ones " +
        number(100 * attends.accuracy, "%.1f") +
        " % (the recurrent states carry the month anyway). Jain & "
        "Wallace 2019 and Wiegreffe & Pinter 2019 argue about what may be concluded; the latter say that it "
        "depends on the definition, and ask for such baselines.");
    lesson.check("12.tau_dates", "Dates: τ of weights and influence", target, of_dates.left_out, 1, 0.3,
                 "the course's reading: 1");
    lesson.check("12.tau_phonemes", "Phonemes: τ of weights and influence", target, of_words.left_out, 1, 0.3,
                 "the course's reading: 1");
    lesson.check("12.tau_months", "Months: τ of weights and influence", target, attends.tau, 1, 0.3,
                 "the course's reading: 1");
    lesson.check("12.uniform", "Months: accuracy, equal − learned weights", target, equal.accuracy - attends.accuracy,
                 0, 0.02, "Wiegreffe & Pinter 2019");
    lesson.trace().series.push_back({.name = "τ of leaving out",
                                     .x_label = "task",
                                     .x = {1, 2, 3},
                                     .y_label = "Kendall's τ, weights and influence",
                                     .y = {of_dates.left_out, of_words.left_out, attends.tau},
                                     .labels = {"dates", "phonemes", "months"}});
    lesson.trace().series.push_back({.name = "τ of gradients",
                                     .x_label = "task",
                                     .x = {1, 2},
                                     .y_label = "Kendall's τ, weights and |gradient · state|",
                                     .y = {of_dates.gradient, of_words.gradient},
                                     .labels = {"dates", "phonemes"}});
    lesson.trace().series.push_back({.name = "learned and equal weights",
                                     .x_label = "weights",
                                     .x = {1, 2},
                                     .y_label = "months right",
                                     .y_unit = "share",
                                     .y = {attends.accuracy, equal.accuracy},
                                     .labels = {"learned", "equal"}});
}

int main(int argc, char** argv) {
    Lesson lesson("12_interpretability", "An attention weight is not an influence: it leaves out what is weighed.");
    lesson.prediction("share", "Weight 0.8 on a word whose value is (0,0): what share of the output comes from it?");
    lesson.exercise(
        "weight", "Values 0, 1, 2, and α₂ = 0 on the middle one: which α₁ gives the context 1?",
        [] {
            return context({0, 1, 0}, zero_one_two())[0] / 2;
        },
        1e-6, "α₃ = 1 − α₁, and 0·α₁ + 2·α₃ must be 1");
    lesson.damage("exchange", "two of the adversary's weights are exchanged: it leaves the null space");
    return lesson.run(argc, argv, [&] {
        Generator generator(lesson.seed());
        const Translator dates = Translator::load(LOOKBACK_DATA_DIR "/dates.safetensors");
        lesson.step("“80 % of the output”");
        eighty_percent(lesson);
        lesson.step("Other weights, the same output");
        other_weights(lesson, generator, dates);
        lesson.step("Leaving a word out");
        leave_one_out(lesson, generator);
        if (!lesson.quick()) trained(lesson, dates);
    });
}
