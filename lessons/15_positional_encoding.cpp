// Attention cannot tell AB from BA; sines make distance a rotation.
//
// Order-blindness as an identity, the sinusoidal table by its laws, what a causal mask alone gives away, and how far
// beyond its training length each kind of position carries.
#include <cmath>
#include <numbers>
#include "engine/ops.hpp"
#include "engine/spectrum.hpp"
#include "layers/optimizer.hpp"
#include "layers/transformer.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using terminal::number;
using enum Trace::Kind;

// ---- AB or BA

enum class Order { none, positions, causal };

// Two tokens, one layer of self-attention, the mean of its outputs, two logits: does the smaller one come first?
struct Classifier {
    Embedding embedding;
    MultiHead attention;
    Linear out;

    static constexpr std::size_t letters = 8, E = 16;
    explicit Classifier(Generator& generator)
        : embedding(letters, E, generator), attention(E, 2, generator), out(E, 2, generator) {}
    void for_each_parameter(const std::string& prefix, const Visitor& f) {
        embedding.for_each_parameter(join(prefix, "embedding"), f);
        attention.for_each_parameter(join(prefix, "attention"), f);
        out.for_each_parameter(join(prefix, "out"), f);
    }
    Tensor operator()(Tape& tape, const Indices& ids, Order order) const {
        const std::size_t T = ids.shape()[1];
        const Tensor x = order == Order::positions ? SinusoidalPosition{}(embedding(tape, ids)) : embedding(tape, ids);
        const std::optional<Mask> mask =
            order == Order::causal ? std::optional(causal(T, T, Align::start)) : std::nullopt;
        return out(mean(attention(x, x, x, mask).context, 1));
    }
};

struct Pairs {  // all ordered pairs of different letters, and whether each rises
    Indices ids, rises;
};
static Pairs all_pairs() {
    std::vector<std::int64_t> ids, rises;
    for (std::int64_t a = 0; a < std::int64_t(Classifier::letters); ++a)
        for (std::int64_t b = 0; b < std::int64_t(Classifier::letters); ++b)
            if (a != b) ids.push_back(a), ids.push_back(b), rises.push_back(a < b);
    const std::size_t n = rises.size();
    return {Indices({n, 2}, ids), Indices({n}, rises)};
}
static double accuracy(const Classifier& model, const Pairs& pairs, Order order) {
    Tape tape;
    const Indices best = argmax(model(tape, pairs.ids, order), -1);
    double right = 0;
    for (std::size_t i = 0; i < best.size(); ++i) right += best[i] == pairs.rises[i];
    return right / double(best.size());
}

static void blindness(Lesson& lesson, Generator& generator) {
    const Classifier model(generator);
    Tape tape;
    const Indices two({2, 2}, {3, 5, 5, 3});
    const auto apart = [&](Order order) {
        const Array y = model(tape, two, order).value();
        return std::max(std::abs(double(y(0, 0) - y(1, 0))), std::abs(double(y(0, 1) - y(1, 1))));
    };
    const double blind = apart(lesson.broken("position") ? Order::positions : Order::none),
                 seen = apart(Order::positions), masked = apart(Order::causal);
    lesson.say(
        "Letters 0 to 7, two at a time, the mean of a self-attention layer's outputs, and the question: does the "
        "smaller one come first? Shuffled inputs only shuffle the outputs (lesson 13), and their mean not even "
        "that. So “ab” and “ba” get one answer, for any weights, trained or not; one of them is wrong.");
    lesson.predict("accuracy");
    const double measured = accuracy(model, all_pairs(), lesson.broken("position") ? Order::positions : Order::none);
    lesson.reveal("accuracy", measured, 0.5);
    lesson.line(terminal::table({{"logits of (3,5) − logits of (5,3)", "largest"},
                                 {"no positions", number(blind)},
                                 {"sinusoidal positions", number(seen)},
                                 {"no positions, causal mask", number(masked)}}));
    lesson.check("15.blind", "No positions: |logits ab − logits ba|", le, blind, 0, 1e-13, "f(PX) = P f(X)");
    lesson.check("15.half", "No positions: accuracy on all 56 pairs", eq, measured, 0.5, 0, "ab and ba, one answer");
    lesson.check("15.positions_see", "With positions: |logits ab − ba|", ge, seen, 1e-6, 0, "x + P(t)");
}

// What a causal mask gives away by itself: a marked first token, equal scores, no positions.
static void mask_counts(Lesson& lesson) {
    const std::size_t T = 12;
    Tape tape;
    Array values = filled({1, T, 1}, 0);
    values(0, 0, 0) = 1;
    const Tensor same = tape.constant(filled({1, T, 1}, 0));
    const Array y = Attention(DotScore{})(same, same, tape.leaf(values), causal(T, T, Align::start)).context.value();
    double worst = 0;
    for (std::size_t t = 0; t < T; ++t) worst = std::max(worst, std::abs(double(y(0, t, 0)) - 1 / double(t + 1)));
    lesson.say(
        "A causal mask is not blind: place t averages over t tokens. Mark the first one with value 1, let all "
        "scores be equal, and the output at place t is exactly 1/t, its position. (Haviv et al. 2022 found causal "
        "language models without positions to do nearly as well as with them, and conjecture that the mask lets "
        "a token estimate how many came before it; this exact case is ours.)");
    lesson.line("    output at t = 1 … 5:  " + number(double(y(0, 0, 0))) + "  " + number(double(y(0, 1, 0))) + "  " +
                number(double(y(0, 2, 0))) + "  " + number(double(y(0, 3, 0))) + "  " + number(double(y(0, 4, 0))));
    lesson.check("15.mask_counts", "Causal, marked first: |y_t − 1/t|", le, worst, 0, 1e-15, "our own");
}

// ---- the table

static double frequency(std::size_t i, std::size_t d) { return std::pow(10000.0, -2.0 * double(i) / double(d)); }
static double dot(const Array& P, std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t e = 0; e < P.shape()[1]; ++e) sum += double(P(a, e)) * double(P(b, e));
    return sum;
}
static double cosines(std::size_t d, double k) {
    double sum = 0;
    for (std::size_t i = 0; i < d / 2; ++i) sum += std::cos(frequency(i, d) * k);
    return sum;
}

static void table_of_sines(Lesson& lesson) {
    const std::size_t T = 160, d = 64;
    Array P = sinusoidal(T, d);
    if (lesson.broken("one-wave"))
        for (std::size_t t = 0; t < T; ++t)
            for (std::size_t e = 0; e < d; ++e) P(t, e) = Real(e % 2 ? std::cos(double(t)) : std::sin(double(t)));

    double norms = 0, dots = 0, turned = 0;
    for (std::size_t p = 0; p + 64 < T; ++p) {
        norms = std::max(norms, std::abs(dot(P, p, p) - double(d) / 2));
        for (const std::size_t k : {1, 8, 64}) {
            dots = std::max(dots, std::abs(dot(P, p, p + k) - cosines(d, double(k))));
            for (std::size_t i = 0; i < d / 2; ++i) {  // each pair turned by ω_i k, whatever p is
                const double c = std::cos(frequency(i, d) * double(k)), s = std::sin(frequency(i, d) * double(k));
                const double sine = double(P(p, 2 * i)), cosine = double(P(p, 2 * i + 1));
                turned = std::max({turned, std::abs(sine * c + cosine * s - double(P(p + k, 2 * i))),
                                   std::abs(cosine * c - sine * s - double(P(p + k, 2 * i + 1)))});
            }
        }
    }
    const double longest = 2 * std::numbers::pi / std::atan2(double(P(1, d - 2)), double(P(1, d - 1)));
    lesson.say(
        "The sinusoidal table: pair i of position p is (sin ω_i p, cos ω_i p), ω_i = 10000^(−2i/d), here d = 64. "
        "Three laws, each for 96 positions p:");
    lesson.line("    ‖P(p)‖² = d/2                 P(p)·P(p+k) = Σ_i cos(ω_i k)");
    lesson.line("    P(p+k) = R_k P(p), each pair turned by ω_i k: the same R_k for every p");
    std::vector<double> k = measure::range(0, 96), profile, theory;
    for (const double distance : k) {
        profile.push_back(dot(P, 30, 30 + std::size_t(distance)));
        theory.push_back(cosines(d, distance));
    }
    lesson.line(terminal::chart({{'p', "P(30)·P(30+k), d = 64", profile, k}}, {"distance k"}, {"dot product"}, 13));
    lesson.say(
        "Near positions are alike and far ones less so, whichever way one looks. As R_k does not depend on p, a "
        "head can learn “k places back” once and use it anywhere. The slowest pair needs " +
        number(longest, "%.0f") + " steps for one turn, so no two positions of a long text are the same.");
    lesson.check("15.norm", "|‖P(p)‖² − d/2|, d=64", le, norms, 0, 1e-12, "sin² + cos² = 1");
    lesson.check("15.dot", "P(p)·P(p+k) − Σ cos ω_i k, k=1,8,64", le, dots, 0, 1e-11, "cos a cos b + sin a sin b");
    lesson.check("15.dot_8", "P(p)·P(p+8), d=64", eq, dot(P, 30, 38), 22.41391, 1e-6, "d/2 terms, by hand");
    lesson.check("15.turn", "P(p+k) − R_k P(p), largest", le, turned, 0, 1e-12, "Vaswani et al. 2017, § 3.5");
    lesson.check("15.longest", "Longest wave, from the table", eq, longest,
                 2 * std::numbers::pi / frequency(d / 2 - 1, d), 1e-9, "2π · 10000^(1−2/d)");
    lesson.trace().series.push_back(
        {.name = "P(p)·P(p+k)", .x_label = "distance k", .x = k, .y_label = "P(p)·P(p+k)", .y = profile});
    lesson.trace().series.push_back(
        {.name = "P(p)·P(p+k) theory", .x_label = "distance k", .x = k, .y_label = "Σ cos ω_i k", .y = theory});
    std::vector<double> first;
    for (std::size_t p = 0; p < 48; ++p)
        for (std::size_t e = 0; e < d; ++e) first.push_back(double(P(p, e)));
    lesson.trace().matrices.push_back({"positions", "position", "entry", {}, {}, {48, d}, first});
}

// A head that looks three places back, by construction: W_q is R_{−3}, so that P(p) W_q = P(p−3), whose nearest key is
// at p−3. One matrix for all places.
static void constructed(Lesson& lesson) {
    const std::size_t T = 120, d = 64, k = 3;
    Array W_q = filled({d, d}, 0);
    for (std::size_t i = 0; i < d / 2; ++i) {
        const double c = std::cos(frequency(i, d) * double(k)), s = std::sin(frequency(i, d) * double(k));
        W_q(2 * i, 2 * i) = W_q(2 * i + 1, 2 * i + 1) = Real(c);
        W_q(2 * i, 2 * i + 1) = Real(s), W_q(2 * i + 1, 2 * i) = Real(-s);
    }
    Tape tape;
    const Tensor P = tape.constant(sinusoidal(T, d)), q = matmul(P, tape.leaf(W_q)) * 10;
    const Tensor weights = softmax(matmul_transposed(q, P), -1);
    const Indices best = argmax(weights, -1);
    double right = 0, least = 1;
    for (std::size_t p = k; p < T; ++p) {
        right += best[p] == std::int64_t(p - k);
        least = std::min(least, double(weights.value()(p, p - k)));
    }
    lesson.say("With W_q = R₋₃ (and keys as they are, times 10) a head looks three places back from every one of " +
               number(double(T - k)) + " places, with a weight of at least " + number(least, "%.4f") + " there.");
    lesson.check("15.three_back", "W_q = R₋₃: places that look 3 back", eq, right, double(T - k), 0,
                 "R_k P(p) = P(p+k)");
}

// ---- trained: AB or BA, and "which letter stood three places back?"

static double trained_accuracy(Order order, std::uint64_t seed) {
    Generator generator(seed);
    Classifier model(generator);
    name_parameters(model);
    Adam adam({.rate = 1e-2});
    const Pairs pairs = all_pairs();
    for (std::size_t update = 0; update < 300; ++update) {
        Tape tape;
        adam.step(model, tape.backward(cross_entropy(model(tape, pairs.ids, order), pairs.rises)));
    }
    return accuracy(model, pairs, order);
}

struct Reader {
    static constexpr std::size_t letters = 8, E = 32;
    Embedding embedding;
    Position position;
    Encoder encoder;
    Linear out;

    Reader(Position position_, Generator& generator)
        : embedding(Parameter(generator.normal({letters, E}), "table")),
          position(std::move(position_)),
          encoder(generator, {.width = E, .heads = 2, .inner = 64, .layers = 1, .norm = Norm::before, .dropout = 0}),
          out(E, letters, generator) {}
    void for_each_parameter(const std::string& prefix, const Visitor& f) {
        embedding.for_each_parameter(join(prefix, "embedding"), f);
        std::visit([&](auto& p) { p.for_each_parameter(join(prefix, "position"), f); }, position);
        encoder.for_each_parameter(join(prefix, "encoder"), f);
        out.for_each_parameter(join(prefix, "out"), f);
    }
    Tensor operator()(Tape& tape, const Indices& ids) const {
        const Tensor x = embedding(tape, ids);
        return out(encoder(std::visit([&](const auto& p) { return p(x, 0); }, position)).y);
    }
};
static constexpr std::size_t back = 3, trained_length = 16, tested_length = 24;

struct Sample {
    Indices ids, targets;
};
static Sample sample(Generator& generator, std::size_t B, std::size_t T) {
    const Indices ids = generator.integers({B, T}, 0, Reader::letters);
    std::vector<std::int64_t> targets(B * T, CrossEntropy{}.ignore_index);
    for (std::size_t b = 0; b < B; ++b)
        for (std::size_t t = back; t < T; ++t) targets[b * T + t] = ids[b * T + t - back];
    return {ids, Indices({B, T}, targets)};
}
static std::vector<double> accuracy_by_place(Position position, const char* name, std::uint64_t seed) {
    Generator generator(seed);
    Reader model(std::move(position), generator);
    name_parameters(model);
    Adam adam({.rate = cosine(4e-3, 600, 40)});
    terminal::Progress progress(std::string("Three places back, ") + name);
    for (std::size_t update = 0; update < 600; ++update) {
        const Sample s = sample(generator, 32, trained_length);
        Tape tape;
        Gradients g = tape.backward(cross_entropy(model(tape, s.ids), s.targets));
        clip_by_norm(model, g, 1);
        adam.step(model, g);
        progress.at(double(update) / 600);
    }
    const Sample s = sample(generator, 400, tested_length);
    Tape tape;
    const NoGrad no_grad(tape);
    const Indices best = argmax(model(tape, s.ids), -1);
    std::vector<double> right;
    for (std::size_t t = back; t < tested_length; ++t) {
        double count = 0;
        for (std::size_t b = 0; b < 400; ++b) count += best[b * tested_length + t] == s.targets[b * tested_length + t];
        right.push_back(count / 400);
    }
    return right;
}

static void trained(Lesson& lesson) {
    lesson.step("Trained: which of two letters came first?");
    std::vector<std::vector<std::string>> table{{"after 300 updates on all 56 pairs", "right"}};
    std::vector<double> right;
    for (const auto& [order, name] : {std::pair{Order::none, "no positions"},
                                      {Order::positions, "sinusoidal positions"},
                                      {Order::causal, "no positions, causal mask"}}) {
        right.push_back(trained_accuracy(order, lesson.seed()));
        table.push_back({name, number(right.back(), "%.3f")});
    }
    lesson.line(terminal::table(table));
    lesson.check("15.trained_blind", "Trained, no positions: accuracy", target, right[0], 0.5, 0,
                 "ab and ba, one answer");
    lesson.check("15.trained_positions", "Trained, sinusoidal: accuracy", target, right[1], 1, 0.02, "positions added");
    lesson.check("15.trained_causal", "Trained, causal mask alone: accuracy", target, right[2], 1, 0.02,
                 "the mask knows order");
    lesson.trace().series.push_back({.name = "accuracy",
                                     .x_label = "model",
                                     .x = {1, 2, 3},
                                     .y_label = "pairs right",
                                     .y_unit = "share",
                                     .y = right,
                                     .labels = {"no positions", "sinusoidal", "causal mask"}});

    lesson.step("Trained at 16 tokens, tested at 24: which letter stood three places back?");
    Generator generator(lesson.seed() + 1);
    std::vector<double> none = accuracy_by_place(NoPosition{}, "no positions", lesson.seed()),
                        learned = accuracy_by_place(LearnedPosition(tested_length, Reader::E, generator),
                                                    "learned positions", lesson.seed()),
                        sines = accuracy_by_place(SinusoidalPosition{}, "sinusoidal positions", lesson.seed());
    const std::vector<double> places = measure::range(back + 1, tested_length);
    lesson.line(terminal::chart({{'n', "no positions", none, places},
                                 {'l', "learned table of 24 rows", learned, places},
                                 {'s', "sinusoidal", sines, places}},
                                {"place (trained up to 16)"}, {"share right; chance is 1/8"}, 13));
    const auto mean_of = [&](const std::vector<double>& y, bool beyond) {
        const std::size_t cut = trained_length - back;
        return measure::mean(beyond ? std::vector<double>(y.begin() + std::ptrdiff_t(cut), y.end())
                                    : std::vector<double>(y.begin(), y.begin() + std::ptrdiff_t(cut)));
    };
    std::vector<std::vector<std::string>> means{{"share right", "places 4 to 16", "places 17 to 24"}};
    for (const auto& [name, y] : {std::pair{"no positions", none}, {"learned table", learned}, {"sinusoidal", sines}}) {
        means.push_back({name, number(mean_of(y, false), "%.3f"), number(mean_of(y, true), "%.3f")});
        lesson.trace().series.push_back({.name = std::string("acc_pos ") + name,
                                         .x_label = "place",
                                         .x = places,
                                         .y_label = "right",
                                         .y_unit = "share",
                                         .y = y});
    }
    lesson.line(terminal::table(means));
    lesson.say(
        "Rows 17 to 24 of the learned table were never trained: they are the small random numbers of the start. The "
        "sines at 17 to 24 are the old ones turned, and the head built above would read them; but a layer trained "
        "on 16 places need not find that head, and this one did " +
        std::string(mean_of(sines, true) > 0.5 ? "find one like it."
                                               : "not: what it learned fits places 1 to 16 only."));
    lesson.check("15.no_position", "No positions, place 4–16: share right", target, mean_of(none, false), 0.125, 0.12,
                 "the letters alone");
    lesson.check("15.sines_inside", "Sinusoidal, place 4–16: share right", target, mean_of(sines, false), 1, 0.02,
                 "R_k is learnable");
    lesson.check("15.learned_inside", "Learned, place 4–16: share right", target, mean_of(learned, false), 1, 0.02,
                 "16 trained rows");
    lesson.check("15.learned_beyond", "Learned, place 17–24: share right", target, mean_of(learned, true), 0.125, 0.15,
                 "untrained rows");
    lesson.check("15.sines_beyond", "Sinusoidal, place 17–24: share right", target, mean_of(sines, true), 0.125, 0.15,
                 "R_k exists; found or not");
}

int main(int argc, char** argv) {
    Lesson lesson("15_positional_encoding", "Attention cannot tell AB from BA; sines make distance a rotation.");
    lesson.prediction("accuracy", "Without positions, on all 56 ordered pairs of letters: what share is right?");
    lesson.exercise(
        "dot", "d = 4: P(5)·P(8), the dot product of positions 5 and 8?", [] { return dot(sinusoidal(9, 4), 5, 8); },
        1e-5, "it depends on the distance alone: cos(3 ω_0) + cos(3 ω_1), with ω = 1 and 1/100");
    lesson.damage("position", "the order-blind classifier is given positions after all");
    lesson.damage("one-wave", "every pair of the table turns with the same frequency, 1");
    return lesson.run(argc, argv, [&] {
        Generator generator(lesson.seed());
        lesson.step("Blind to order");
        blindness(lesson, generator);
        lesson.step("What a causal mask alone gives away");
        mask_counts(lesson);
        lesson.step("The table of sines and its laws");
        table_of_sines(lesson);
        constructed(lesson);
        if (!lesson.quick()) trained(lesson);
    });
}
