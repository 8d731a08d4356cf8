// Dot, scaled, bilinear, additive: their costs counted, their reach measured.
#include <algorithm>
#include <cmath>
#include <ctime>
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/movement.hpp"
#include "engine/ops/softmax.hpp"
#include "engine/spectrum.hpp"
#include "layers/attention.hpp"
#include "layers/optimizer.hpp"
#include "lessons/cost.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using enum Trace::Kind;
using Numbers = std::vector<double>;
using terminal::number;

// The four of the course, with what theory says of them: n queries, n keys, all of width d, additive width a = d.
struct Method {
    std::string name, formula;
    char letter;
    std::unique_ptr<Score> (*make)(std::size_t d, Generator&);
    double (*parameters)(double d);
    double (*flops)(double d, double n);  // a multiplication, an addition, a tanh: 1 each
};
static const std::vector<Method> methods{
    {"dot", "q · k", 'd',
     [](std::size_t, Generator&) -> std::unique_ptr<Score> { return std::make_unique<DotScore>(); },
     [](double) { return 0.0; }, [](double d, double n) { return 2 * d * n * n; }},
    {"scaled dot", "(q / √d) · k", 's',
     [](std::size_t, Generator&) -> std::unique_ptr<Score> { return std::make_unique<ScaledDotScore>(); },
     [](double) { return 0.0; }, [](double d, double n) { return 2 * d * n * n + d * n; }},
    {"bilinear", "q W · k", 'b',
     [](std::size_t d, Generator& g) -> std::unique_ptr<Score> { return std::make_unique<BilinearScore>(d, d, g); },
     [](double d) { return d * d; }, [](double d, double n) { return 2 * d * d * n + 2 * d * n * n; }},
    {"additive", "v · tanh(q W_q + k W_k)", 'a',
     [](std::size_t d, Generator& g) -> std::unique_ptr<Score> { return std::make_unique<AdditiveScore>(d, d, d, g); },
     [](double d) { return 2 * d * d + d; }, [](double d, double n) { return 4 * d * d * n + 4 * d * n * n; }}};

static void series(Lesson& lesson, const std::string& name, const std::string& x_label, const Numbers& x,
                   const std::string& y_label, const Numbers& y) {
    lesson.trace().series.push_back({.name = name, .x_label = x_label, .x = x, .y_label = y_label, .y = y});
}

struct Counted {
    double flops, largest;  // operations; numbers in the largest array that was made
};
// What the records from `first` on took: products as cost.hpp counts them, all else an operation for each number.
static Counted counted(const Tape& tape, std::size_t first) {
    Counted c{cost::product_flops(tape, first) + cost::elementwise_flops(tape, first), 0};
    for (std::size_t id = first; id < tape.size(); ++id) {
        const Record& r = tape[Id(id)];
        double size = 1;
        for (const std::size_t n : r.shape) size *= double(n);
        c.largest = std::max(c.largest, std::string(r.op) == "additive_scores" ? cost::pairs(tape, r) : size);
    }
    return c;
}
// All scores of n queries with n keys; the keys projected once, or by mistake once for each query.
static Counted count(const Score& score, std::size_t d, std::size_t n, bool each_time = false) {
    Generator generator(1);
    Tape tape;
    const Tensor q = tape.leaf(generator.normal({1, n, d})), k = tape.leaf(generator.normal({1, n, d}));
    const std::size_t first = tape.size();
    if (!each_time)
        score(q, score.project(k));
    else
        for (std::size_t t = 0; t < n; ++t) score(slice(q, 1, std::int64_t(t), std::int64_t(t) + 1), score.project(k));
    return counted(tape, first);
}

static void one_interface(Lesson& lesson) {
    lesson.step("Four scores, one interface");
    lesson.say(
        "All take queries (B,T_q,d) and keys (B,T_k,d) and give scores (B,T_q,T_k). What do they have to learn?");
    Generator generator(lesson.seed());
    std::vector<std::vector<std::string>> rows{{"score", "formula", "parameters at d = 32", "theory"}};
    double off = 0;
    for (const Method& m : methods) {
        const auto score = m.make(32, generator);
        const double have = double(parameter_count(*score));
        off += std::abs(have - m.parameters(32));
        rows.push_back({m.name, m.formula, number(have), number(m.parameters(32))});
    }
    lesson.line(terminal::table(rows));
    Tape tape;
    const std::size_t d = 4, n = 12;
    const Tensor q = tape.leaf(generator.normal({1, n, d})), k = tape.leaf(generator.normal({1, n, d}));
    Array identity = filled({d, d}, 0);
    for (std::size_t i = 0; i < d; ++i) identity(i, i) = 1;
    const BilinearScore bilinear{Parameter(identity)};
    const Tensor dot = DotScore()(q, k);
    const auto difference = [](const Tensor& a, const Tensor& b) { return norm((a - b).value()); };
    lesson.say(
        "Luong's “multiplicative” score is the bilinear one (“general” in the paper); “dot” is its special case W = 1, "
        "and "
        "the scaled dot product of the Transformer is that over √d.");
    lesson.check("09.parameters", "Parameters: tape − theory, all four", eq, off, 0, 0, "2da + a for additive");
    lesson.check("09.general", "Bilinear with W = 1: − dot", le, difference(bilinear(q, bilinear.project(k)), dot), 0,
                 1e-14, "Luong et al. 2015, § 3.1");
    lesson.check("09.scaled", "Scaled dot · √4 − dot", le, difference(ScaledDotScore()(q, k) * 2, dot), 0, 1e-14,
                 "Vaswani et al. 2017, § 3.2.1");

    // The matrix formula is not under all of them.
    const auto matrix = [&](const Tensor& scores) { return reshape(scores, {n, n}).value(); };
    const AdditiveScore additive(d, d, 32, generator);
    const double rank_dot = double(rank(matrix(DotScore()(q, k)))),
                 rank_additive = double(rank(matrix(additive(q, additive.project(k)))));
    const LocationScore location(d, n, generator);
    const Tensor other = tape.leaf(generator.normal({1, n, d}));
    lesson.say(
        "Is softmax(Q Kᵀ/√d) V under all attention, as the course says? A matrix Q Kᵀ has rank d at most (so many rows "
        "are independent): here, with 12 queries and keys of width 4, " +
        number(rank_dot) + ". The additive scores of the same have rank " + number(rank_additive) +
        ": no Q and K of width 4 give them. And Luong's location score, softmax(q W), does not look at keys at all. "
        "They "
        "share the three steps (score, normalise, aggregate), not that formula. In Bahdanau's and Luong's models the "
        "values are not projected either: they are the encoder's states.");
    lesson.check("09.rank_dot", "Rank of 12 × 12 dot scores, d = 4", le, rank_dot, double(d), 0, "rank(Q Kᵀ) ≤ d");
    lesson.check("09.rank_additive", "Rank of 12 × 12 additive scores", ge, rank_additive, double(d + 1), 0,
                 "tanh of a sum");
    lesson.check("09.location", "Location score: change by new keys", exact0,
                 difference(location(q, k), location(q, other)), 0, 0, "Luong et al. 2015, § 3.1");
    const Attention attention{AdditiveScore(d, d, 8, generator)};
    const Memory memory = attention.remember(k);
    lesson.check("09.values", "Remembered values − states", exact0, difference(memory.values, k), 0, 0,
                 "Bahdanau et al. 2015, eq. 5");
}

static void costs(Lesson& lesson) {
    lesson.step("What do they cost? Operations, counted on the tape");
    lesson.say(
        "128 queries meet 128 keys. A multiplication, an addition and a tanh count one each; the keys are projected "
        "once. "
        "The largest array is what needs memory.");
    lesson.predict("ratio");
    const std::size_t n = 128;
    Generator generator(lesson.seed());
    const std::vector<std::size_t> widths =
        lesson.quick() ? std::vector<std::size_t>{8, 16, 32} : std::vector<std::size_t>{8, 16, 32, 128, 256};
    std::vector<std::vector<std::string>> rows{
        {"operations", "d = 8", "d = 16", "d = 32", "theory, d = 32", "largest array"}};
    double off = 0, dot_at_32 = 0, additive_at_32 = 0, memory = 0;
    const Numbers x(widths.begin(), widths.end());
    for (const Method& m : methods) {
        Numbers flops;
        double largest = 0;
        for (const std::size_t d : widths) {
            const auto score = m.make(d, generator);
            const Counted c = count(*score, d, n, lesson.broken("reproject") && m.letter == 'a');
            flops.push_back(c.flops);
            off = std::max(off, std::abs(c.flops - m.flops(double(d), double(n))));
            if (d == 32) largest = c.largest;
        }
        if (m.letter == 'd') dot_at_32 = flops[2], memory = 1 / largest;
        if (m.letter == 'a') additive_at_32 = flops[2], memory *= largest;
        rows.push_back({m.name, number(flops[0], "%.0f"), number(flops[1], "%.0f"), number(flops[2], "%.0f"),
                        number(m.flops(32, n), "%.0f"), number(largest, "%.0f")});
        series(lesson, m.name + " operations", "width d", x, "operations at T = 128", flops);
    }
    lesson.line(terminal::table(rows));
    lesson.reveal("ratio", additive_at_32 / dot_at_32, methods[3].flops(32, n) / methods[0].flops(32, n));
    lesson.say("The additive score holds a number for each query, key and unit, " + number(memory) +
               " times the dot product's largest array; dot and bilinear scores are single products of matrices, which "
               "hardware likes.");
    lesson.check("09.operations", "Operations: tape − formula, worst", eq, off, 0, 0, "2dT², +dT, +2d²T, 4adT+4aT²");
    lesson.check("09.memory", "Largest array, additive / dot, d = 32", eq, memory, 32, 0, "a T² against T²");

    lesson.step("O(d) or O(d²)? It depends on how many pairs share the projections");
    lesson.say(
        "The course lists O(d) for the dot product and O(d²) for additive and bilinear. That is one pair on its own. "
        "Projections are shared by all pairs, and what is left for each is O(d) for all four (√d divides each query, "
        "not each score). Operations per pair of T queries and T keys at d = 32; the limit is that of long texts:");
    std::vector<std::vector<std::string>> pairs{{"T", "1", "8", "64", "256", "limit"}};
    const std::vector<std::size_t> lengths{1, 8, 64, 256};
    const Numbers lengths_x(lengths.begin(), lengths.end());
    std::vector<terminal::Curve> curves;
    double off_pair = 0;
    for (const Method& m : methods) {
        const auto score = m.make(32, generator);
        Numbers each;
        for (const std::size_t t : lengths) {
            each.push_back(count(*score, 32, t).flops / double(t * t));
            off_pair = std::max(off_pair, std::abs(each.back() - m.flops(32, double(t)) / double(t * t)));
        }
        const double limit = m.letter == 'a' ? 4 * 32 : 2 * 32;
        pairs.push_back({m.name, number(each[0]), number(each[1]), number(each[2]), number(each[3]), number(limit)});
        curves.push_back({m.letter, m.name, each, lengths_x});
        series(lesson, m.name + " per pair", "length T", lengths_x, "operations per pair", each);
        if (m.letter == 'a')
            lesson.check("09.per_pair", "Additive at T = 256: per pair − 4a", eq, each.back() - limit,
                         4 * 32 * 32 / 256., 1e-12, "4ad/T, the shared part");
    }
    lesson.line(terminal::table(pairs));
    lesson.line(terminal::chart(curves, {"length T", true}, {"operations per pair, d = 32", true}, 11));
    lesson.check("09.pairs", "Per pair: tape − formula, worst", le, off_pair, 0, 1e-9, "counted");

    const auto additive = methods[3].make(32, generator);
    const double once = count(*additive, 32, n, lesson.broken("reproject")).flops,
                 wrong = count(*additive, 32, n, true).flops;
    lesson.say("A common slip is to project the keys again for each query. For the additive score that is " +
               number(wrong / once, "%.3g") +
               " times the operations at T = 128, d = 32. Attention::remember does it once.");
    lesson.check("09.reproject", "Keys projected for each query: factor", eq, wrong / once,
                 (2. * 32 * 32 * n + 2. * 32 * 32 * n * n + 4. * 32 * n * n) / methods[3].flops(32, n), 1e-12,
                 "counted");
}

static void tanh_matters(Lesson& lesson) {
    lesson.step("What the tanh is for");
    lesson.say(
        "Leave the tanh out, and the additive score is v · q W_q + v · k W_k: the first term is the same for all keys, "
        "and softmax, which knows only differences, forgets it. The query has no say.");
    lesson.predict("silent");
    Generator generator(lesson.seed());
    const std::size_t d = 8, n = 10;
    const AdditiveScore score(d, d, 16, generator);
    const auto gradient = [&](bool with_tanh) {  // ‖∂L/∂q‖ for a random ∂L/∂α
        Generator same(lesson.seed() + 1);
        Tape tape;
        const Tensor q = tape.leaf(same.normal({1, 1, d})), k = tape.constant(same.normal({1, n, d}));
        const Tensor sums = unsqueeze(matmul(q, score.W_q), 2) + unsqueeze(score.project(k), 1);
        const Tensor s = with_tanh ? score(q, score.project(k)) : matmul(sums, score.v);
        const Gradients g = tape.backward(softmax(s, -1), {q}, {.seed = same.normal({1, 1, n})});
        return norm(g[q]);
    };
    const double without = gradient(false), with = gradient(!lesson.broken("no-tanh"));
    lesson.line(terminal::table(
        {{"", "‖∂L/∂q‖ through the attention weights"}, {"with tanh", number(with)}, {"without", number(without)}}));
    lesson.reveal("silent", without, 0);
    lesson.check("09.no_tanh", "Without tanh: ‖∂L/∂q‖", le, without, 0, 1e-14, "Σ ∂L/∂s_i = 0");
    lesson.check("09.tanh", "With tanh: ‖∂L/∂q‖", ge, with, 1e-6, 0, "the query counts");

    Tape odd;
    Generator others(lesson.seed() + 2);
    const Tensor q = odd.constant(others.normal({1, 3, d})), k = odd.constant(others.normal({1, n, d}));
    const double even_part = norm((score(-q, score.project(-k)) + score(q, score.project(k))).value()),
                 odd_part = norm((DotScore()(-q, -k) - DotScore()(q, k)).value());
    lesson.say(
        "The tanh has its price: without a bias in it, as the course and the paper write it, the score is odd: s(−q, "
        "−k) = "
        "−s(q, k), while q · k is even. Where vectors and their negatives are equally likely, the additive score can't "
        "even "
        "imitate a dot product. A constant 1 among the entries of q or k is a bias and mends that. (Our own remark.)");
    lesson.check("09.odd", "Additive: s(−q,−k) + s(q,k)", exact0, even_part, 0, 0, "tanh is odd");
    lesson.check("09.even", "Dot: s(−q,−k) − s(q,k)", exact0, odd_part, 0, 0, "a product is even");

    // Tell equal one-hots from unequal ones: the score of a hit over that of a miss.
    Array identity = filled({d, d}, 0), minus = filled({d}, -1);
    for (std::size_t i = 0; i < d; ++i) identity(i, i) = 1;
    Array one_hots = identity;
    one_hots.reshape(Shape{1, d, d});
    Tape tape;
    const AdditiveScore match{Parameter(identity), Parameter(identity), Parameter(minus)};
    const Tensor e = tape.constant(one_hots);
    const Array s = match(e, match.project(e)).value(), b = DotScore()(e, e).value();
    const double margin = s(0, 0, 0) - s(0, 0, 1), of_dot = b(0, 0, 0) - b(0, 0, 1);
    lesson.say(
        "With the tanh, can the additive score tell equal one-hot vectors from unequal ones? It can. With W_q = W_k = "
        "1 and v = −β on every unit a "
        "hit "
        "scores −β tanh 2 and a miss −2β tanh 1: a margin of " +
        number(margin, "%.4f") + " β. The bilinear score with W = β 1 has a margin of " + number(of_dot) +
        " β, so the additive one needs a larger β for the same.");
    lesson.check("09.margin", "Additive margin of a match, β = 1", eq, margin, 2 * std::tanh(1.0) - std::tanh(2.0),
                 1e-14, "2 tanh 1 − tanh 2");
}

// ---- Full run: what can each learn, and how long does each take?

struct Puzzle {
    std::string name;
    std::size_t d, keys;
    // One query (d), its keys (keys,d), and which is right.
    std::int64_t (*draw)(Generator&, Real* q, Real* k);
};
static const std::vector<Puzzle> puzzles{{"the equal one-hot", 8, 8,
                                          [](Generator& g, Real* q, Real* k) {
                                              const std::vector<std::size_t> order = g.permutation(8);
                                              for (std::size_t i = 0; i < 8; ++i) k[8 * i + order[i]] = 1;
                                              const std::int64_t right = g.integer(0, 8);
                                              q[order[std::size_t(right)]] = 1;
                                              return right;
                                          }},
                                         {"the nearest point", 2, 8,
                                          [](Generator& g, Real* q, Real* k) {
                                              for (std::size_t i = 0; i < 2; ++i) q[i] = Real(g.normal());
                                              std::int64_t right = 0;
                                              double nearest = 1e9;
                                              for (std::size_t i = 0; i < 8; ++i) {
                                                  k[2 * i] = Real(g.normal()), k[2 * i + 1] = Real(g.normal());
                                                  const double far = std::hypot(q[0] - k[2 * i], q[1] - k[2 * i + 1]);
                                                  if (far < nearest) nearest = far, right = std::int64_t(i);
                                              }
                                              return right;
                                          }},
                                         {"equal parity of two bits", 2, 2, [](Generator& g, Real* q, Real* k) {
                                              const auto bit = [&] { return Real(g.uniform() < 0.5 ? -1 : 1); };
                                              q[0] = bit(), q[1] = bit();
                                              const std::int64_t right = g.integer(0, 2);
                                              for (std::int64_t i = 0; i < 2; ++i) {
                                                  k[2 * i] = bit();
                                                  k[2 * i + 1] = q[0] * q[1] * k[2 * i] * Real(i == right ? 1 : -1);
                                              }
                                              return right;
                                          }}};

// Score times a learned factor, so that the dot products can sharpen too.
struct Student {
    std::unique_ptr<Score> score;
    std::size_t constants;  // 1: every vector ends with a constant 1, which is a bias; 0: none
    Parameter sharpness{filled({1}, 1), "sharpness"};
    Tensor loss(Tape& tape, const Puzzle& p, Generator& g, std::size_t B) const {
        Array q = filled({B, 1, p.d + constants}, 1), k = filled({B, p.keys, p.d + constants}, 1);
        std::vector<std::int64_t> right;
        for (std::size_t i = 0; i < B; ++i) {
            std::vector<Real> one_q(p.d, 0), all_k(p.keys * p.d, 0);
            right.push_back(p.draw(g, one_q.data(), all_k.data()));
            std::copy(one_q.begin(), one_q.end(), &q(i, 0, 0));
            for (std::size_t j = 0; j < p.keys; ++j) std::copy_n(&all_k[j * p.d], p.d, &k(i, j, 0));
        }
        const Tensor keys = tape.constant(std::move(k));
        const Tensor scores = (*score)(tape.constant(std::move(q)), score->project(keys)) * sharpness;
        return cross_entropy(squeeze(scores, 1), Indices(right));
    }
    void for_each_parameter(const std::string& prefix, const Visitor& f) {
        score->for_each_parameter(prefix, f), f(join(prefix, "sharpness"), sharpness);
    }
};

static double learn(const Puzzle& puzzle, std::unique_ptr<Score> score, std::size_t constants, Generator generator) {
    Student student{std::move(score), constants};
    Adam adam({.rate = cosine(0.03, 800)});
    for (int step = 0; step < 800; ++step) {
        Tape tape;
        const Gradients g = tape.backward(student.loss(tape, puzzle, generator, 64));
        adam.step(student, g);
    }
    Tape tape;
    NoGrad off(tape);
    return student.loss(tape, puzzle, generator, 4000).item();
}

static void expressiveness(Lesson& lesson) {
    lesson.step("Which puzzles can each score learn? Cross-entropy after training, in nats");
    Generator generator(lesson.seed());
    std::vector<std::vector<std::string>> rows{{"find …", "dot", "bilinear", "additive", "no bias", "by chance"}};
    std::vector<Numbers> losses;
    terminal::Progress progress("puzzles");
    for (const Puzzle& p : puzzles) {
        Numbers ce;
        for (const std::size_t student : {0u, 1u, 2u, 3u}) {
            Generator own = generator.split();
            const std::size_t constants = student == 3 ? 0 : 1, d = p.d + constants;
            std::unique_ptr<Score> score =
                student >= 2 ? std::make_unique<AdditiveScore>(d, d, 16, own) : methods[2 * student].make(d, own);
            ce.push_back(learn(p, std::move(score), constants, own));
            progress.at((double(losses.size()) + double(ce.size()) / 4) / double(puzzles.size()));
        }
        rows.push_back({p.name});
        for (const double loss : ce) rows.back().push_back(number(loss, "%.3f"));
        rows.back().push_back(number(std::log(double(p.keys)), "%.3f"));
        losses.push_back(ce);
        series(lesson, "fit: " + p.name, "dot, bilinear, additive, additive without bias", {1, 2, 3, 4},
               "cross-entropy", ce);
    }
    lesson.line(terminal::table(rows));
    lesson.say(
        "(Additive with a = 16; all vectors but those of “no bias” end with a constant 1.) A match is easy for all. A "
        "distance "
        "has a term |k|² and a parity is a product of four numbers: neither is of the form q W k, and only the "
        "additive score "
        "with its bias comes near. So the dot product is not as expressive as richer scores, as the course's takeaways "
        "have "
        "it; in a Transformer the layers around it make up for that.");
    lesson.check("09.fit_match", "Equal one-hot: dot, cross-entropy", target, losses[0][0], 0, 0.05,
                 "our own experiment");
    lesson.check("09.fit_nearest", "Nearest point: bilinear − additive", target, losses[1][1] - losses[1][2], 1.3, 0.3,
                 "our own experiment");
    lesson.check("09.fit_no_bias", "Nearest point: additive, no bias", target, losses[1][3], std::log(8.0), 0.1,
                 "an odd score, an even target");
    lesson.check("09.fit_parity", "Parity: bilinear − additive", target, losses[2][1] - losses[2][2], std::log(2.0),
                 0.1, "our own experiment");
}

static void times(Lesson& lesson) {
    lesson.step("How long do they take on this machine? 128 × 128 scores, in milliseconds");
    Generator generator(lesson.seed());
    std::vector<std::vector<std::string>> rows{{"d", "dot", "scaled", "bilinear", "additive", "additive / dot"}};
    Numbers x, ratios;
    terminal::Progress progress("timing");
    for (const std::size_t d : {16u, 32u, 128u, 256u}) {
        Numbers fastest;
        for (const Method& m : methods) {
            const auto score = m.make(d, generator);
            Tape tape;
            NoGrad off(tape);
            const Tensor q = tape.constant(generator.normal({1, 128, d})),
                         k = tape.constant(generator.normal({1, 128, d}));
            Numbers seconds;
            for (int repeat = 0; repeat < 15; ++repeat) {
                const std::clock_t start = std::clock();
                (*score)(q, score->project(k));
                seconds.push_back(double(std::clock() - start) / CLOCKS_PER_SEC);
            }
            fastest.push_back(*std::min_element(seconds.begin(), seconds.end()));
            lesson.trace().timings[m.name + ", d = " + std::to_string(d)] = fastest.back();
        }
        x.push_back(double(d)), ratios.push_back(fastest[3] / fastest[0]);
        progress.at(double(x.size()) / 4);
        rows.push_back({std::to_string(d)});
        for (const double m : fastest) rows.back().push_back(number(1000 * m, "%.3f"));
        rows.back().push_back(number(ratios.back(), "%.0f ×"));
    }
    lesson.line(terminal::table(rows));
    lesson.say(
        "Processor time, the fastest of 15 runs. Of the same order in operations, but far apart in time: products of "
        "matrices "
        "run near a processor's peak, tanh does not. The course speaks of orders of magnitude; the median over d is " +
        number(measure::median(ratios), "%.0f") +
        " times here, and projecting the keys for every query would multiply that once more. Vaswani et al. (2017, § "
        "3.2.1) "
        "claim a practical advantage in speed and memory at similar theoretical cost. Use on GPUs and in production "
        "can't be "
        "measured here.");
    lesson.check("09.time", "Time, additive / dot, median over d", target, measure::median(ratios), 60, 55,
                 "this machine");
}

int main(int argc, char** argv) {
    Lesson lesson("09_scoring_functions",
                  "Dot, scaled, bilinear, additive: their costs counted, their reach measured.");
    lesson.prediction("ratio", "T = 128, d = 32: additive takes how many times the dot product's operations?");
    lesson.prediction("silent", "Without tanh: how long is the gradient that reaches the query?");
    lesson.exercise(
        "additive", "128 queries, 128 keys, d = a = 64: how many operations does the additive score take?",
        [] { return methods[3].flops(64, 128); }, 0.5,
        "two projections of 2·64·64·128 each; then for every pair and unit an addition, a tanh, and 2 for the product "
        "with v");
    lesson.damage("reproject", "the keys are projected again for each query");
    lesson.damage("no-tanh", "the additive score is left without its tanh");
    return lesson.run(argc, argv, [&] {
        one_interface(lesson);
        costs(lesson);
        tanh_matters(lesson);
        if (!lesson.quick()) expressiveness(lesson), times(lesson);
    });
}
