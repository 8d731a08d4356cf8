// A mask hides keys before the softmax, along their axis; all else leaks.
//
// Padding and causality by the course's own three lines of code and by right ones; −1e9 in three precisions; what a row
// that sees nothing does; and what a model learns from pads if nobody hides them.
#include <cmath>
#include <limits>
#include "engine/gradcheck.hpp"
#include "engine/ops.hpp"
#include "layers/multi_head.hpp"
#include "layers/optimizer.hpp"
#include "layers/seq2seq.hpp"
#include "lessons/cost.hpp"
#include "lessons/evidence.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using measure::largest_difference;
using terminal::number;
using enum Trace::Kind;

static constexpr double infinity = std::numeric_limits<double>::infinity();

static double largest(const std::vector<double>& x) {
    double most = 0;
    for (const double v : x) most = std::isnan(v) ? v : std::max(most, std::abs(v));
    return most;
}

// ---- softmax with a mask in plain numbers of any precision: the second route

struct Precision {
    const char* name;
    double (*round)(double);
};
static double to_half(double x) {  // 11 binary digits, 65504 at most
    if (x == 0 || !std::isfinite(x)) return x;
    if (std::abs(x) >= 65520) return std::copysign(infinity, x);
    int exponent;
    std::frexp(x, &exponent);
    const double unit = std::ldexp(1.0, std::max(exponent, -13) - 11);
    return std::nearbyint(x / unit) * unit;
}
static const Precision precisions[] = {
    {"fp64", [](double x) { return x; }}, {"fp32", [](double x) { return double(float(x)); }}, {"fp16", to_half}};

enum class Policy { fill_1e9, add_1e9, fill_infinity, leave_out };
static const std::pair<Policy, const char*> policies[] = {{Policy::fill_1e9, "set to −1e9"},
                                                          {Policy::add_1e9, "add −1e9"},
                                                          {Policy::fill_infinity, "set to −∞"},
                                                          {Policy::leave_out, "left out"}};

static std::vector<double> weights_by_hand(std::vector<double> s, const std::vector<bool>& visible, Policy policy,
                                           const Precision& p) {
    double high = -infinity, sum = 0;
    for (std::size_t i = 0; i < s.size(); ++i) {
        s[i] = p.round(s[i]);
        if (!visible[i] && policy == Policy::add_1e9) s[i] = p.round(s[i] + p.round(-1e9));
        if (!visible[i] && policy != Policy::add_1e9) s[i] = policy == Policy::fill_1e9 ? p.round(-1e9) : -infinity;
        high = std::max(high, s[i]);
    }
    if (policy == Policy::leave_out && high == -infinity) return std::vector<double>(s.size(), 0.0);
    for (double& v : s) sum = p.round(sum + (v = p.round(std::exp(p.round(v - high)))));
    for (double& v : s) v = p.round(v / sum);
    return s;
}

// The same by the engine, which has fp64 only: constants on a tape.
static std::vector<double> weights_by_engine(const std::vector<double>& s, const std::vector<bool>& visible,
                                             Policy policy) {
    Tape tape;
    const Shape row{1, s.size()};
    Array given = filled(row, 0), added = filled(row, 0);
    for (std::size_t i = 0; i < s.size(); ++i) given(0, i) = Real(s[i]), added(0, i) = visible[i] ? 0 : Real(-1e9);
    const Tensor scores = tape.constant(given);
    const Mask mask(row, visible);
    switch (policy) {
        case Policy::fill_1e9:
            return numbers(softmax(masked_fill(scores, mask, Real(-1e9)), -1).value());
        case Policy::add_1e9:
            return numbers(softmax(scores + tape.constant(added), -1).value());
        case Policy::fill_infinity:
            return numbers(softmax(masked_fill(scores, mask, Real(-infinity)), -1).value());
        case Policy::leave_out:
            break;
    }
    return numbers(masked_softmax(scores, mask, -1).value());
}
// The largest difference of two rows of weights; NaN differs from every number, and not from NaN.
static double apart(const std::vector<double>& a, const std::vector<double>& b) {
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (std::isnan(a[i]) || std::isnan(b[i]))
            most = std::isnan(a[i]) && std::isnan(b[i]) ? most : infinity;
        else
            most = std::max(most, std::abs(a[i] - b[i]));
    return most;
}

// ---- causal attention, right and in three wrong ways

enum class Causal { right, none, inverted, without_diagonal, after_softmax };

static Tensor causal_weights(const Tensor& scores, Causal how) {
    const std::size_t T = scores.shape(-1);
    std::vector<bool> sees(T * T);
    for (std::size_t i = 0; i < T; ++i)
        for (std::size_t j = 0; j < T; ++j) sees[i * T + j] = how == Causal::inverted ? j >= i : j < i;
    if (how == Causal::right) return attention_weights(scores, causal(T, T, Align::start));
    if (how == Causal::none) return attention_weights(scores, {});
    if (how == Causal::after_softmax) return masked_fill(softmax(scores, -1), causal(T, T, Align::start), 0);
    return attention_weights(scores, Mask({T, T}, sees));
}

// What each output has of each input: ‖∂out_i/∂x_j‖, and how far the weights of a row are from summing to 1.
struct Leaks {
    std::vector<double> map;
    double later = 0, row_error = 0;
    std::size_t seen = 0;  // pairs j ≤ i that are connected
    std::string verdict(std::size_t T) const {
        std::string faults;
        const auto add = [&](bool found, const char* fault) {
            if (found) faults += (faults.empty() ? "" : ", ") + std::string(fault);
        };
        add(later != 0, "leaks"), add(seen != T * (T + 1) / 2, "blind"), add(!(row_error < 1e-12), "sums wrong");
        return faults.empty() ? "sound" : faults;
    }
};
static Leaks leaks(const MultiHead& layer, const Array& x_value, Causal how) {
    Tape tape;
    const Tensor x = tape.leaf(x_value);
    const std::size_t T = x.shape(1), E = x.shape(2);
    const Tensor weights = causal_weights(ScaledDotScore{}(layer.query(x), layer.key(x)), how);
    const Array J = jacobian(matmul(weights, layer.value(x)), x), sums = sum(weights, -1).value();
    Leaks found{std::vector<double>(T * T, 0.0)};
    for (std::size_t i = 0; i < T; ++i) {
        found.row_error = std::max(found.row_error, std::abs(double(sums.data()[i]) - 1));
        for (std::size_t j = 0; j < T; ++j) {
            double squares = 0;
            for (std::size_t a = 0; a < E; ++a)
                for (std::size_t b = 0; b < E; ++b) squares += std::pow(double(J(i * E + a, j * E + b)), 2);
            found.map[i * T + j] = std::sqrt(squares);
            if (j > i) found.later += std::sqrt(squares);
            if (j <= i) found.seen += squares > 0;
        }
    }
    return found;
}

// ---- the trained part: copying, with and without a mask over the pads

static constexpr std::int64_t letters = 8;

static std::vector<Ids> ragged(Generator& generator, std::size_t n) {
    std::vector<Ids> rows;
    for (std::size_t i = 0; i < n; ++i) {
        Ids row(std::size_t(generator.integer(3, 9)));
        for (std::int64_t& id : row) id = generator.integer(Alphabet::first, Alphabet::first + letters);
        rows.push_back(std::move(row));
    }
    return rows;
}
// Padded, with more pads than needed; without a mask every pad counts as a part of its row.
static Padded batch(const std::vector<Ids>& rows, std::size_t extra, bool masked) {
    Padded p = padded(rows);
    const std::size_t B = rows.size(), T = p.ids.shape()[1] + extra;
    std::vector<std::int64_t> ids(B * T, Alphabet::pad);
    for (std::size_t b = 0; b < B; ++b) std::copy(rows[b].begin(), rows[b].end(), ids.begin() + std::ptrdiff_t(b * T));
    return {Indices({B, T}, ids), masked ? p.lengths : std::vector<std::size_t>(B, T)};
}
static double accuracy(const Seq2Seq& model, const std::vector<Ids>& rows, std::size_t extra, bool masked) {
    Tape tape;
    const NoGrad no_grad(tape);
    const Shifted target = teacher_forcing(rows);
    const Indices best = argmax(model(tape, batch(rows, extra, masked), target.inputs).logits, -1);
    double right = 0, all = 0;
    for (std::size_t i = 0; i < best.size(); ++i)
        if (target.targets[i] >= 0) all += 1, right += best[i] == target.targets[i];
    return right / all;
}
static std::vector<double> learn_to_copy(std::uint64_t seed, bool masked) {
    Generator generator(seed);
    Seq2Seq model(Alphabet::first + letters, Alphabet::first + letters, generator,
                  {.embedding = 16, .hidden = 32, .attention = 32});
    name_parameters(model);
    Adam adam({.rate = 6e-3});
    terminal::Progress progress(masked ? "Copying, with a mask" : "Copying, without a mask");
    for (std::size_t update = 0; update < 500; ++update) {
        const std::vector<Ids> rows = ragged(generator, 32);
        Tape tape;
        Gradients g = tape.backward(model.loss(tape, batch(rows, 0, masked), teacher_forcing(rows)));
        clip_by_norm(model, g, 1);
        adam.step(model, g);
        progress.at(double(update) / 500);
    }
    Generator held_out(seed + 1000);
    const std::vector<Ids> rows = ragged(held_out, 200);
    std::vector<double> shares;
    for (const std::size_t extra : {0, 5, 20}) shares.push_back(accuracy(model, rows, extra, masked));
    return shares;
}

// ---- the steps

static void equal_scores(Lesson& lesson) {
    const Padded rows = padded(std::vector<Ids>{{3, 4, 5}, {3, 4, 5, 6, 7}, {3, 4, 5, 6, 7, 8, 9, 3, 4}});
    double pads = 0;
    for (const std::int64_t id : rows.ids.values()) pads += id == Alphabet::pad;
    lesson.say("Three sentences of 3, 5 and 9 tokens make one batch of 3 × " + std::to_string(rows.ids.shape()[1]) +
               " places, of which " + number(pads) +
               " are pads. With all scores equal each place, pad or not, gets the same weight.");
    lesson.check("11.pads", "Pads in a batch of 3, 5, 9 tokens", eq, pads, 3 * 9 - (3 + 5 + 9), 0, "counting");
    lesson.predict("share");

    Trace::Series real{.name = "real mass", .x_label = "pads", .x = {}, .y_label = "share of the weight", .y = {}},
        theory{.name = "real mass theory", .x_label = "pads", .x = {}, .y_label = "share of the weight", .y = {}},
        pad{.name = "pad mass", .x_label = "pads", .x = {}, .y_label = "share of the weight", .y = {}};
    double worst = 0;
    for (const std::size_t n : {0, 1, 3, 9, 27}) {
        Tape tape;
        const Array weights = softmax(tape.leaf(filled({3 + n}, 0.5)), -1).value();
        const double kept = double(weights.data()[0] + weights.data()[1] + weights.data()[2]);
        worst = std::max(worst, std::abs(kept - 3.0 / (3.0 + double(n))));
        real.x.push_back(double(n)), real.y.push_back(kept);
        theory.y.push_back(3.0 / (3.0 + double(n))), pad.y.push_back(1 - kept);
    }
    theory.x = pad.x = real.x;
    lesson.reveal("share", real.y.back(), theory.y.back());
    lesson.line(terminal::chart({{'r', "3 real keys", real.y, real.x}, {'p', "the pads", pad.y, pad.x}}, {"pads n"},
                                {"share of the weight"}, 9));
    lesson.say("T real keys beside n pads keep T/(T+n) of the weight.");
    lesson.check("11.real_mass", "Equal scores: |real mass − T/(T+n)|", le, worst, 0, 1e-15, "softmax of equals");
    for (Trace::Series* s : {&real, &theory, &pad}) lesson.trace().series.push_back(*s);
}

static void snippet(Lesson& lesson, Generator& generator) {
    lesson.say(
        "The course's code is scores = Q @ K.T / sqrt(d_k); scores[padding_mask] = -1e9; softmax(scores). Four "
        "tokens, of which the last is a pad: padding_mask = (F,F,F,T), booleans. Indexing a matrix with it picks rows, "
        "and rows are queries. (A mask of the scores' own shape, 4 × 4 with T in its last column, would be right.) The "
        "weights as printed, on the left, and " +
        std::string(lesson.broken("wrong-axis") ? "by rows again" : "by columns") + ", on the right:");
    Tape tape;
    const Tensor scores = tape.leaf(generator.normal({4, 4}));
    const Mask rows({4, 1}, {true, true, true, false}), columns({1, 4}, {true, true, true, false});
    const Array as_printed = softmax(masked_fill(scores, rows, Real(-1e9)), -1).value();
    const Array correct = attention_weights(scores, lesson.broken("wrong-axis") ? rows : columns).value();
    std::vector<std::vector<std::string>> table{
        {"", "key 1", "key 2", "key 3", "pad", " ", "key 1", "key 2", "key 3", "pad"}};
    double least = 1, on_pad = 0, off_uniform = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        std::vector<std::string> row{i == 3 ? "query 4, pad" : "query " + std::to_string(i + 1)};
        for (const Array* w : {&as_printed, &correct}) {
            if (w == &correct) row.push_back(" ");
            for (std::size_t j = 0; j < 4; ++j) row.push_back(number(double((*w)(i, j)), "%.3f"));
        }
        table.push_back(row);
        least = std::min(least, double(as_printed(i, 3)));
        on_pad += std::abs(double(correct(i, 3)));
        off_uniform = std::max(off_uniform, std::abs(double(as_printed(3, i)) - 0.25));
    }
    lesson.line(terminal::table(table));
    lesson.say(
        "As printed, every query still looks at the pad, and the pad's own row has become an average of "
        "everything. The mask belongs to the keys, the columns: shape (B,1,T), softmax over the last axis. And a "
        "batch (B,T,d) has no K.T: turned around it is (d,T,B), which does not multiply with Q:");
    double refused = 0;
    try {
        const Tensor Q = tape.leaf(generator.normal({2, 4, 3})), K = tape.leaf(generator.normal({2, 4, 3}));
        matmul(Q, permute(K, {2, 1, 0}));
    } catch (const ShapeError& e) {
        refused = 1;
        lesson.line("    " + std::string(e.what()));
    }
    lesson.check("11.printed_leaks", "As printed: least weight on the pad", ge, least, 1e-6, 0, "mask indexes rows");
    lesson.check("11.printed_row", "As printed: the pad's row, |α − 1/4|", le, off_uniform, 0, 1e-15, "equal scores");
    lesson.check("11.columns", "By columns: Σ|α| on the pad", exact0, on_pad, 0, 0, "e^−∞ = 0");
    lesson.check("11.K_T", "(B,T,d) times its K.T is refused", eq, refused, 1, 0, "shapes");
}

static void precision_table(Lesson& lesson) {
    const std::vector<double> s{1, 2, 3};
    std::vector<std::vector<std::string>> table{{"hidden scores are", "in", "1 of 3 hidden: α₃", "all hidden: α"}};
    Trace::Matrix nans{"NaN in a row that sees nothing", "policy", "precision", {},
                       {"fp64", "fp32", "fp16"},         {4, 3},   {}};
    double hidden = 0, off_engine = 0;
    lesson.say(
        "Softmax, imitated by rounding every step (the scores, each exponential, each sum, each quotient) to a number "
        "of that precision. The fp64 rows are made by the engine's softmax, too.");
    for (const auto& [policy, name] : policies) {
        nans.rows.push_back(name);
        for (const bool visible : {true, false}) {
            const std::vector<bool> sees{visible, visible, false};
            off_engine = std::max(
                off_engine, apart(weights_by_hand(s, sees, policy, precisions[0]), weights_by_engine(s, sees, policy)));
        }
        for (const Precision& p : precisions) {
            const std::vector<double> part = weights_by_hand(s, {true, true, false}, policy, p),
                                      none = weights_by_hand(s, {false, false, false}, policy, p);
            hidden = std::max(hidden, part[2]);
            std::string all;
            double count = 0;
            for (const double a : none) all += std::isnan(a) ? "  NaN" : number(a, " %.4f"), count += std::isnan(a);
            nans.data.push_back(count);
            table.push_back({name, p.name, number(part[2]), all});
        }
    }
    lesson.line(terminal::table(table));
    lesson.say(
        "One visible score is enough for −1e9 to mean exactly 0. With none, it means whatever the precision "
        "makes of it: an average over pads, an ordinary softmax over pads (fp64 still tells 1 − 1e9 from "
        "2 − 1e9; fp32's numbers there are 64 apart), or NaN (fp16 ends at 65504). Lookback leaves hidden keys "
        "out of the maximum and of the sum: a query that sees nothing gets weights 0.");
    const double total = std::exp(1) + std::exp(2) + std::exp(3);
    lesson.check("11.hidden_is_0", "One key hidden: α there, all 12 ways", exact0, hidden, 0, 0, "underflow");
    lesson.check("11.engine_fp64", "fp64 rows: imitated − the engine's", le, off_engine, 0, 1e-15, "the engine's ops");
    lesson.check("11.add_fp64", "All hidden, add −1e9 in fp64: α₃", eq,
                 weights_by_hand(s, {false, false, false}, Policy::add_1e9, precisions[0])[2], std::exp(3) / total,
                 1e-12, "softmax is shift invariant");
    lesson.check("11.add_fp32", "All hidden, add −1e9 in fp32: α₃", eq,
                 weights_by_hand(s, {false, false, false}, Policy::add_1e9, precisions[1])[2], 1.0 / 3, 1e-7,
                 "ulp(1e9) = 64");
    lesson.check("11.fp16_nan", "All hidden, −1e9 in fp16: NaNs of 6", eq, nans.data[2] + nans.data[5], 6, 0,
                 "65504 is the largest");
    lesson.trace().matrices.push_back(std::move(nans));
}

// A row that sees nothing, on the tape: by adding −∞ and a later where(), and by the engine's softmax.
static void empty_row(Lesson& lesson) {
    const Mask nothing({1, 3}, {false, false, false});
    const auto gradient = [&](bool left_out) {
        Tape tape;
        const Tensor s = tape.leaf(Array({{Real(1), Real(2), Real(3)}})),
                     c = tape.leaf(Array({{Real(3), Real(1), Real(2)}}));
        const Tensor weights =
            left_out ? masked_softmax(s, nothing, -1)
                     : where(nothing, softmax(s + tape.constant(filled({1, 3}, Real(-infinity))), -1), 0 * c);
        return numbers(tape.backward(sum(weights * c), {s})[s]);
    };
    double forward = 0, by_hand = 0, on_tape = 0;
    for (const double v : gradient(false)) on_tape += std::isnan(v);
    const std::vector<double> y =
        weights_by_hand({1, 2, 3}, {false, false, false}, Policy::fill_infinity, precisions[0]);
    for (const double a : y) forward += std::isnan(a), by_hand += std::isnan(a * (0 - 0 * a));
    lesson.say(
        "Hidden by adding −∞, such a row is 0/0 = NaN forwards. Throwing the row away afterwards does not help: "
        "softmax's pullback multiplies its NaN by the cotangent 0, and 0 · NaN = NaN (PyTorch's issue 41508 is "
        "this). Of three numbers " +
        number(forward) + " are NaN forwards, and " + number(on_tape) +
        " backwards on the tape; by the engine's masked softmax every gradient is " + number(largest(gradient(true))) +
        ".");
    lesson.check("11.nan", "Row of −∞, thrown away: NaN backwards", eq, on_tape, by_hand, 0, "0 · NaN = NaN");
    lesson.check("11.empty_row", "Row left out: largest |gradient|", exact0, largest(gradient(true)), 0, 0,
                 "nothing flows");
}

static void amount_of_padding(Lesson& lesson) {
    const evidence::PaddedSentence sentence{Generator(lesson.seed())};
    const MultiHead& layer = sentence.layer;
    constexpr std::size_t T = evidence::PaddedSentence::T, E = evidence::PaddedSentence::E;
    Array alone;
    std::vector<std::vector<std::string>> table{
        {"pads", "no mask: change", "mask: change, ulp", "mask, but mean over all: change"}};
    double worst_ulp = 0, change = 0, pooled = 0, off_share = 0, at_one_pad = 0, pad_gradient = 0, masked_gradient = 0,
           not_finite = 0;
    std::vector<double> counted;
    Trace::Series ulps{.name = "change with a mask",
                       .x_label = "pads",
                       .x = {},
                       .y_label = "change of the output",
                       .y_unit = "ulp",
                       .y = {}},
        changes{.name = "change without a mask", .x_label = "pads", .x = {}, .y_label = "relative change", .y = {}};
    lesson.say(
        "A sentence of 4 tokens goes through a self-attention layer (d = 8, two heads, random weights), with n pads "
        "behind it, which are all the same vector, as in a vocabulary. Change is the distance of the sentence's "
        "outputs from those without pads, divided by the length of those. Where that is too coarse, the largest "
        "difference is counted in steps of the last binary digit (ulp) of the largest output:");
    for (const std::size_t n : {0, 1, 3, 9, 27}) {
        Array outputs[2];
        double over_all = 0;
        for (const bool masked : {false, true}) {
            Tape tape;
            const Tensor x = tape.leaf(sentence.words), p = slice(tape.leaf(sentence.pads), 1, 0, std::int64_t(n)),
                         all = concat({x, p}, 1);
            const std::size_t before = tape.size();
            const std::optional<Mask> mask = masked ? std::optional(padding({T}, T + n)) : std::nullopt;
            const Tensor y = layer(all, all, all, mask).context, kept = slice(y, 1, 0, std::int64_t(T));
            if (n == 27) {
                counted.push_back(cost::product_flops(tape, before));
                const Gradients g = tape.backward(sum(kept * kept), {p});
                (masked ? masked_gradient : pad_gradient) = largest(numbers(g[p]));
            }
            outputs[masked] = kept.value();
            if (masked)
                over_all = measure::relative_difference(numbers(mean(y, 1).value()), numbers(mean(kept, 1).value()));
        }
        if (n == 0) alone = outputs[1];
        const double scale = largest(numbers(alone));
        const double ulp = largest_difference(outputs[1], alone) / (scale * std::numeric_limits<Real>::epsilon());
        const double moved = measure::relative_difference(numbers(outputs[0]), numbers(alone));
        for (const double v : outputs[0]) not_finite += !std::isfinite(v);
        if (n == 1) at_one_pad = over_all;
        const double share = double(n) / double(T + n), share_of_one = 1 / double(T + 1);
        off_share = std::max(off_share, std::abs(over_all - at_one_pad / share_of_one * share));
        worst_ulp = std::max(worst_ulp, ulp), change = moved, pooled = over_all;
        ulps.x.push_back(double(n)), ulps.y.push_back(ulp), changes.y.push_back(moved);
        table.push_back({number(double(n)), number(moved, "%.3f"), number(ulp), number(over_all, "%.3f")});
    }
    changes.x = ulps.x;
    lesson.line(terminal::table(table));
    lesson.say(
        "Without a mask the answer for the same sentence is not undefined, as the course puts it: it is a "
        "perfectly finite number that depends on how many pads its neighbours in the batch made necessary. With "
        "one it is the same to the last digits. But a mask in attention is not enough: a mean over all places "
        "counts pads again (last column). Pads are n of its T + n places, and its change grows just as n/(T+n) does. "
        "Losses and norms over time need the mask too. And it saves no work: the products cost " +
        number(counted[1]) + " FLOPs with the mask and " + number(counted[0]) + " without.");
    const double N = double(T + 27), all_flops = 8 * N * double(E * E) + 4 * N * N * double(E);
    lesson.check("11.finite", "No mask: outputs that are not finite", exact0, not_finite, 0, 0, "softmax");
    lesson.check("11.depends", "No mask, 27 pads: relative change", ge, change, 1e-3, 0, "pads are read");
    lesson.check("11.invariant", "Mask: change of the output, ulp", le, worst_ulp, 4, 0, "α = 0 on pads");
    lesson.check("11.pooling", "Mask, but mean over pads: change", ge, pooled, 1e-3, 0, "pads are pooled");
    lesson.check("11.pooled_share", "That change − its n/(T+n) part", le, off_share, 0, 1e-12, "pads share a vector");
    lesson.check("11.pad_gradient", "No mask: largest |∂L/∂pad|", ge, pad_gradient, 1e-6, 0, "α > 0");
    lesson.check("11.masked_gradient", "Mask: largest |∂L/∂pad|", exact0, masked_gradient, 0, 0, "α = 0");
    lesson.check("11.flops", "FLOPs with a mask: 8Td² + 4T²d, T=31", eq, counted[1], all_flops, 0,
                 "counted on the tape");
    lesson.trace().series.push_back(std::move(ulps));
    lesson.trace().series.push_back(std::move(changes));
}

static void causality(Lesson& lesson, Generator& generator) {
    const std::size_t T = 6, E = 8;
    const MultiHead layer(E, 1, generator);
    const Array x = generator.normal({1, T, E});
    const std::pair<Causal, const char*> ways[] = {{Causal::right, "j > i hidden"},
                                                   {Causal::none, "no mask"},
                                                   {Causal::inverted, "wrong triangle"},
                                                   {Causal::without_diagonal, "j ≥ i hidden"},
                                                   {Causal::after_softmax, "after the softmax"}};
    std::vector<std::vector<std::string>> table{{"mask", "Σ‖J_ij‖, j > i", "pairs j ≤ i", "|Σα − 1|", "found"}};
    std::vector<Leaks> all;
    double found = 0;
    lesson.say(
        "J_ij = ∂out_i/∂x_j is what output i has of input j. It must be 0 for all j > i (or the layer leaks), and "
        "should be there for j ≤ i (or it is blind); and each row of weights must sum to 1.");
    for (const auto& [how, name] : ways) {
        const bool broken = how == Causal::right && lesson.broken("after-softmax");
        all.push_back(leaks(layer, x, broken ? Causal::after_softmax : how));
        const Leaks& l = all.back();
        found += how != Causal::right && l.verdict(T) != "sound";
        table.push_back({name, number(l.later), std::to_string(l.seen), number(l.row_error), l.verdict(T)});
    }
    lesson.line(terminal::table(table));
    std::vector<std::string> places;
    for (std::size_t i = 1; i <= T; ++i) places.push_back(std::to_string(i));
    lesson.say(
        "The map of the first row, ‖∂out_i/∂x_j‖ with outputs i in rows and inputs j in columns. A blank is exactly "
        "0; ·· is above 0, up to a fifth of the largest, and each darker shade is a fifth more:");
    lesson.line(terminal::heat_map(all[0].map, places, places));
    lesson.say(
        "“Upper triangular” names what is hidden: the triangle strictly above the diagonal. Hide the diagonal "
        "too and the first token sees nothing; let the upper triangle be what is seen, and the model reads the "
        "future. A mask put on after the softmax zeroes the weights, but the future still stands in their "
        "denominator.");
    lesson.check("11.causal", "Causal: Σ‖∂out_i/∂x_j‖ over j > i", exact0, all[0].later, 0, 0, "α = 0, exactly");
    lesson.check("11.causal_sees", "Causal: pairs j ≤ i that are seen", eq, double(all[0].seen),
                 double(T * (T + 1) / 2), 0, "lower triangle with its diagonal");
    lesson.check("11.mutants", "Wrong masks found, of four", eq, found, 4, 0, "leaks, blind rows, sums");
    lesson.trace().matrices.push_back({"leak", "output i", "input j", places, places, {T, T}, all[0].map});
    lesson.trace().matrices.push_back(
        {"leak, mask after the softmax", "output i", "input j", places, places, {T, T}, all[4].map});

    Tape tape;
    const MultiHead heads(E, 2, generator);
    const Tensor tokens = tape.leaf(x), parallel = heads(tokens, tokens, tokens, causal(T, T, Align::start)).context;
    std::optional<KeyValues> past;
    std::vector<Tensor> one_by_one;
    for (std::size_t t = 0; t < T; ++t) {
        const Tensor token = slice(tokens, 1, std::int64_t(t), std::int64_t(t + 1));
        past = joined(past, heads.remember(token, token));
        one_by_one.push_back(heads(token, *past).context);  // no mask: there is nothing later to hide
    }
    lesson.say(
        "Is the mask required? For training on all places at once, yes. Written token by token, with a cache of "
        "keys and values and no mask at all, the outputs are the same: what is not there yet needs no hiding.");
    lesson.check("11.incremental", "Causal at once − one by one, no mask", le,
                 largest_difference(parallel.value(), concat(one_by_one, 1).value()), 0, 1e-12, "the same sums");
    lesson.check("11.needs_mask", "No mask, at once: pairs that are seen", eq,
                 double(std::count_if(all[1].map.begin(), all[1].map.end(), [](double v) { return v > 0; })),
                 double(T * T), 0, "every output sees every input");
}

// How many places can read their own target: the logits of place i change when target i does.
static double can_read(const LanguageModel& model, bool shift) {
    const Ids text{1, 5, 3, 4, 6, 3, 2};
    const auto logits = [&](const Ids& ids) {
        Tape tape;
        const Shifted s = shifted(std::vector<Ids>{ids});
        return model(tape, shift ? s.inputs : s.targets).logits.value();
    };
    const Array before = logits(text);
    double count = 0;
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
        Ids other = text;
        other[i + 1] = 7;
        const Array after = logits(other);
        double change = 0;
        for (std::size_t v = 0; v < 8; ++v) change += std::abs(double(after(0, i, v) - before(0, i, v)));
        count += change > 0;
    }
    return count;
}

int main(int argc, char** argv) {
    Lesson lesson("11_masking", "A mask hides keys before the softmax, along their axis; all else leaks.");
    lesson.prediction("share", "3 real keys, 27 pads, equal scores, no mask: the real share?");
    lesson.exercise(
        "mass", "2 real keys of score 1, 6 pads of score 0, no mask: the real share?",
        [] {
            const std::vector<double> w =
                weights_by_engine({1, 1, 0, 0, 0, 0, 0, 0}, std::vector<bool>(8, true), Policy::leave_out);
            return w[0] + w[1];
        },
        1e-3, "the scores are not equal: what does each of the 8 places add to softmax's denominator?");
    lesson.exercise(
        "hidden", "scores (1,2,4), all hidden by adding −1e9, fp64: the largest weight?",
        [] {
            return weights_by_hand({1, 2, 4}, {false, false, false}, Policy::add_1e9, precisions[0])[2];
        },
        1e-3, "fp64 keeps the differences of the scores here: does softmax need more than those?");
    lesson.damage("wrong-axis", "the right mask, too, is laid over the rows, which are queries");
    lesson.damage("after-softmax", "the causal mask is put on after the softmax");
    return lesson.run(argc, argv, [&] {
        Generator generator(lesson.seed());
        lesson.step("Pads take weight");
        equal_scores(lesson);
        lesson.step("The course's three lines, run as printed");
        snippet(lesson, generator);
        lesson.step("What −1e9 is, in three precisions: scores (1,2,3)");
        precision_table(lesson);
        lesson.step("A query that sees nothing");
        empty_row(lesson);
        lesson.step("The same sentence, with more and more pads");
        amount_of_padding(lesson);
        lesson.step("Causal masks: who hears from whom");
        causality(lesson, generator);

        lesson.step("The other half of causality: targets are shifted");
        const LanguageModel model(8, generator, {.width = 8, .heads = 1, .inner = 16, .layers = 1, .dropout = 0});
        const double reads = can_read(model, true), reads_all = can_read(model, false);
        lesson.say(
            "A causal mask lets place i see itself. So what stands there must be the token before the one to "
            "predict: the decoder is fed “begin a b” to answer “a b end”. A word of 5 letters and its end have 6 "
            "places in a language model with a causal mask. Shifted so, " +
            number(reads) + " of them can read their own target; fed with the targets themselves, " +
            number(reads_all) + " can.");
        lesson.check("11.shift", "Shifted: places that read their target", exact0, reads, 0, 0, "inputs are one late");
        lesson.check("11.no_shift", "Not shifted: the same, of 6", eq, reads_all, 6, 0, "j ≤ i includes i");

        if (lesson.quick()) return;
        lesson.step("What is learned from pads");
        lesson.say(
            "Copying 3 to 8 letters, twice from the same start, in batches padded to their longest row: once with "
            "the pads hidden, once without. Then 200 new rows, with more pads than necessary. A letter, or the end, is "
            "right if it gets the highest score after the right ones before it, which are fed (teacher forcing).");
        const std::vector<double> with = learn_to_copy(lesson.seed(), true),
                                  without = learn_to_copy(lesson.seed(), false);
        std::vector<std::vector<std::string>> table{{"letters right", "no more pads", "5 more", "20 more"}};
        for (const auto& [name, shares] : {std::pair{"with masks", with}, {"without", without}})
            table.push_back({name, number(shares[0], "%.3f"), number(shares[1], "%.3f"), number(shares[2], "%.3f")});
        lesson.line(terminal::table(table));
        lesson.say("With the numbers of pads it met, the unmasked model gets " + number(without[0], "%.3f") +
                   " right, and with 20 more " + number(without[2], "%.3f") +
                   ", although nothing that it was asked to copy has changed. To the masked one the pads make a "
                   "difference of " +
                   number(with[0] - with[2]) + ".");
        lesson.check("11.trained_masked", "With masks: accuracy lost, 20 pads", target, with[0] - with[2], 0, 1e-9,
                     "no pad is read");
        lesson.check("11.trained_unmasked", "Without masks: accuracy lost, 20 pads", {ge, false},
                     without[0] - without[2], 0.2, 0, "it learned from pads");
        for (const auto& [name, shares] : {std::pair{"accuracy with masks", with}, {"accuracy without masks", without}})
            lesson.trace().series.push_back({.name = name,
                                             .x_label = "pads more than needed",
                                             .x = {0, 5, 20},
                                             .y_label = "letters right",
                                             .y_unit = "share",
                                             .y = shares});
    });
}
