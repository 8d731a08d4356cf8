// Heads cost nothing extra, and one head cannot keep two reads apart.
//
// The same layer with 1, 2, 4 … heads: its parameters and work, a single head by another route, the error floor of one
// weighted mean that should be two values, and whether training finds what two heads make possible.
#include <cmath>
#include "engine/ops.hpp"
#include "layers/multi_head.hpp"
#include "layers/optimizer.hpp"
#include "lessons/cost.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using terminal::number;
using enum Trace::Kind;

static void one_head(Lesson& lesson, Generator& generator) {
    const std::size_t T = 6, E = 8;
    MultiHead layer(E, 1, generator, {.bias = Linear::Bias::no});
    Array identity = filled({E, E}, 0);
    for (std::size_t e = 0; e < E; ++e) identity(e, e) = 1;
    layer.output.W.assign(identity);
    Tape tape;
    const Tensor x = tape.leaf(generator.normal({1, T, E}));
    const Attended heads = layer(x, x, x),
                   single = Attention(ScaledDotScore{})(layer.query(x), layer.key(x), layer.value(x));
    double different = 0;
    for (std::size_t i = 0; i < heads.context.size(); ++i)
        different += heads.context.value().data()[i] != single.context.value().data()[i];
    lesson.say(
        "A head is scaled dot-product attention with projections of its own. With one head and an output matrix "
        "W_O = I nothing else is left: of " +
        std::to_string(heads.context.size()) + " outputs " + number(different) +
        " differ, in even the last bit, from the single attention of the lessons before.");
    lesson.check("14.one_head", "1 head, W_O = I: outputs that differ", exact0, different, 0, 0, "the same formula");
}

// Every head as wide as the whole, if the damage is asked for; else E/N wide, as it should be.
static void price(Lesson& lesson) {
    const std::size_t T = 32, E = 64;
    std::vector<std::vector<std::string>> table{
        {"heads", "head size D", "parameters", "FLOPs", "of these in scores and sums"}};
    double parameters = 0, work = 0;
    std::vector<double> counts, heads_list;
    for (const std::size_t heads : {1, 2, 4, 8, 16}) {
        const std::size_t width = lesson.broken("full-width") ? E * heads : E;
        Generator generator(1);
        MultiHead layer(width, heads, generator, {.bias = Linear::Bias::no});
        Tape tape;
        const Tensor x = tape.leaf(filled({1, T, width}, Real(0.1)));
        layer(x, x, x);
        const double flops = cost::product_flops(tape), projections = 8 * double(T * E * E);
        heads_list.push_back(double(heads)), counts.push_back(double(parameter_count(layer)));
        parameters = std::max(parameters, std::abs(counts.back() - 4. * double(E * E)));
        work = std::max(work, std::abs(flops - projections - 4 * double(T * T * E)));
        table.push_back({std::to_string(heads), std::to_string(width / heads), number(counts.back()), number(flops),
                         number(flops - projections)});
    }
    lesson.line(terminal::table(table));
    lesson.say(
        "Heads divide the width among them: N heads of E/N numbers. So the four matrices stay E × E, and scores "
        "and sums cost N · T²(E/N) each: the same for any N (here E = 64, T = 32). In the paper's Table 3 (A) "
        "translation quality (BLEU, English to German) was 24.9, 25.5, 25.8, 25.8 and 25.4 with 1, 4, 8, 16 and "
        "32 heads at equal work (Vaswani et al. 2017): more than one helps, more than enough does not.");
    lesson.check("14.parameters", "Any N heads: |parameters − 4E²|", exact0, parameters, 0, 0, "counted");
    lesson.check("14.flops", "Any N heads: |FLOPs − 8TE² − 4T²E|", exact0, work, 0, 0, "counted on the tape");
    lesson.trace().series.push_back(
        {.name = "parameters", .x_label = "heads", .x = heads_list, .y_label = "parameters", .y = counts});
}

// ---- two items to bring back

// Best linear reading of v_a and v_b from a·v_a + (1−a)·v_b, all independent and standard normal: by least squares on
// draws. The mean square error of a number.
static double floor_by_draws(double a, Generator& generator, std::size_t draws) {
    std::vector<double> v_a(draws), v_b(draws), c(draws);
    double cc = 0, ca = 0, cb = 0;
    for (std::size_t i = 0; i < draws; ++i) {
        v_a[i] = generator.normal(), v_b[i] = generator.normal();
        c[i] = a * v_a[i] + (1 - a) * v_b[i];
        cc += c[i] * c[i], ca += c[i] * v_a[i], cb += c[i] * v_b[i];
    }
    double error = 0;
    for (std::size_t i = 0; i < draws; ++i)
        error += std::pow(v_a[i] - ca / cc * c[i], 2) + std::pow(v_b[i] - cb / cc * c[i], 2);
    return error / (2 * double(draws));
}
// The same from variances: with n = a² + (1−a)², what v_a leaves is (1−a)²/n and what v_b leaves is a²/n.
static double floor_by_theory(double a) {
    const double n = a * a + (1 - a) * (1 - a);
    return ((1 - a) * (1 - a) / n + a * a / n) / 2;
}

// Two-item recall: 8 slots with one-hot keys hold standard normal values of 4 numbers; the query names two slots a ≠ b
// (one-hot each, 16 numbers), and the answer is [v_a v_b].
static constexpr std::size_t slots = 8, value_width = 4, width = 2 * slots;
struct Recall {
    Array query, keys, values, answer;
};
static Recall draw(Generator& generator, std::size_t B, bool same_slot) {
    Recall r{filled({B, 1, width}, 0), filled({B, slots, slots}, 0), generator.normal({B, slots, value_width}),
             filled({B, 1, 2 * value_width}, 0)};
    for (std::size_t b = 0; b < B; ++b) {
        const auto first = std::size_t(generator.integer(0, slots));
        const auto second = (first + std::size_t(generator.integer(1, slots))) % slots;
        r.query(b, 0, first) = 1;
        r.query(b, 0, slots + (same_slot ? first : second)) = 1;
        for (std::size_t s = 0; s < slots; ++s) r.keys(b, s, s) = 1;
        for (std::size_t v = 0; v < value_width; ++v) {
            r.answer(b, 0, v) = r.values(b, first, v);
            r.answer(b, 0, value_width + v) = r.values(b, second, v);
        }
    }
    return r;
}
struct Recaller {
    MultiHead attention;
    Linear out;

    Recaller(std::size_t heads, Generator& generator)
        : attention(width, heads, generator, {.keys = slots, .values = value_width}),
          out(width, 2 * value_width, generator) {}
    void for_each_parameter(const std::string& prefix, const Visitor& f) {
        attention.for_each_parameter(join(prefix, "attention"), f);
        out.for_each_parameter(join(prefix, "out"), f);
    }
    Attended read(Tape& tape, const Recall& r) const {
        const Tensor values = tape.leaf(r.values);
        const Attended a = attention(tape.leaf(r.query), tape.leaf(r.keys), values);
        return {out(a.context), a.weights};
    }
    Tensor loss(Tape& tape, const Recall& r) const { return mse(read(tape, r).context, tape.leaf(r.answer)); }
};

// Two heads by construction: head 1 compares the first half of the query with the keys, head 2 the second; each carries
// the value in its first four numbers, and the output picks them up.
static Recaller constructed(Generator& generator) {
    Recaller model(2, generator);
    const double sharp = 400;
    Array W_q = filled({width, width}, 0), W_k = filled({slots, width}, 0), W_v = filled({value_width, width}, 0),
          W_o = filled({width, width}, 0), W = filled({width, 2 * value_width}, 0);
    for (std::size_t i = 0; i < width; ++i) W_q(i, i) = Real(sharp), W_o(i, i) = 1;
    for (std::size_t s = 0; s < slots; ++s) W_k(s, s) = W_k(s, slots + s) = 1;
    for (std::size_t v = 0; v < value_width; ++v) {
        W_v(v, v) = W_v(v, slots + v) = 1;
        W(v, v) = W(slots + v, value_width + v) = 1;
    }
    model.attention.query.W.assign(W_q), model.attention.key.W.assign(W_k), model.attention.value.W.assign(W_v);
    model.attention.output.W.assign(W_o), model.out.W.assign(W), model.out.b->assign(filled({2 * value_width}, 0));
    return model;
}

static void floors(Lesson& lesson, Generator& generator) {
    lesson.say(
        "A task for two eyes: a query names two of 8 slots, and both values are wanted. One head brings back one "
        "mean of values, at best a·v_a + (1−a)·v_b. From that, how well can v_a and v_b be told apart?");
    lesson.predict("floor");
    std::vector<double> shares{0.5, 0.6, 0.75, 0.9, 1}, drawn, theory;
    double worst = 0;
    for (const double a : shares) {
        drawn.push_back(floor_by_draws(a, generator, 20'000));
        theory.push_back(floor_by_theory(a));
        worst = std::max(worst, std::abs(drawn.back() - 0.5));
    }
    lesson.reveal("floor", drawn[0], theory[0]);
    std::vector<std::vector<std::string>> table{{"weight a on the first", "error by 20,000 draws", "by theory"}};
    for (std::size_t i = 0; i < shares.size(); ++i)
        table.push_back({number(shares[i]), number(drawn[i], "%.4f"), number(theory[i], "%.4f")});
    lesson.line(terminal::table(table));
    lesson.say(
        "Half of the variance, whatever the weights: what one item gains the other loses. (Values have variance "
        "1, so guessing 0 has error 1; the floor is our own derivation, for linear readings.) Two heads keep the "
        "two reads apart. With weights set by hand the layer does this task:");
    Tape tape;
    const Recall r = draw(generator, 64, lesson.broken("one-question"));
    const double error = constructed(generator).loss(tape, r).item();
    lesson.line("    mean square error of two constructed heads: " + number(error));
    lesson.check("14.floor_theory", "((1−a)² + a²)/2n for a = 0.9", eq, floor_by_theory(0.9), 0.5, 1e-15, "our own");
    lesson.check("14.floor", "One mean of two: |error − ½|, by draws", le, worst, 0, 0.025, "our own; 20,000 draws");
    lesson.check("14.two_heads", "Two heads, by hand: error", le, error, 0, 1e-20, "each reads one item");
    lesson.trace().series.push_back({.name = "one head, two items",
                                     .x_label = "weight on the first item",
                                     .x = shares,
                                     .y_label = "mean square error",
                                     .y = drawn});
    lesson.trace().series.push_back({.name = "one head, two items theory",
                                     .x_label = "weight on the first item",
                                     .x = shares,
                                     .y_label = "mean square error",
                                     .y = theory});
}

// ---- trained

struct Trained {
    std::vector<double> curve;                  // every 20 updates
    double error, ablated_least, ablated_most;  // on new draws; with one head silenced, the least and most harmful
};
static Trained train(std::size_t heads, std::uint64_t seed, Trace& trace) {
    Generator generator(seed);
    Recaller model(heads, generator);
    name_parameters(model);
    const std::size_t updates = 2000;
    Adam adam({.rate = cosine(1e-2, updates, 50)});
    terminal::Progress progress("Recall with " + std::to_string(heads) + (heads == 1 ? " head" : " heads"));
    Trained result{};
    double recent = 0;
    for (std::size_t update = 1; update <= updates; ++update) {
        const Recall r = draw(generator, 64, false);
        Tape tape;
        const Tensor loss = model.loss(tape, r);
        adam.step(model, tape.backward(loss));
        recent += double(loss.item());
        if (update % 20 == 0)
            result.curve.push_back(std::exchange(recent, 0) / 20), progress.at(double(update) / double(updates));
    }
    Generator fresh(seed + 1000);
    const Recall test = draw(fresh, 1000, false);
    const auto error = [&] {
        Tape tape;
        return double(model.loss(tape, test).item());
    };
    result.error = error();
    result.ablated_least = 1e300;
    const Array W_o = model.attention.output.W.value();
    for (std::size_t n = 0; n < heads; ++n) {  // head n silenced: its rows of W_O are 0
        model.attention.output.W.edit([&](Array& W) {
            W = W_o;
            for (std::size_t i = n * width / heads; i < (n + 1) * width / heads; ++i)
                for (std::size_t j = 0; j < width; ++j) W(i, j) = 0;
        });
        result.ablated_least = std::min(result.ablated_least, error());
        result.ablated_most = std::max(result.ablated_most, error());
    }
    model.attention.output.W.assign(W_o);

    Tape tape;
    const Array weights = model.read(tape, draw(fresh, 1, false)).weights.value();
    Trace::Matrix alpha{
        "head_alpha, " + std::to_string(heads), "head", "slot", {}, {}, {heads, slots}, numbers(weights)};
    trace.matrices.push_back(std::move(alpha));
    return result;
}

static void trained(Lesson& lesson) {
    lesson.step("Does training find it? 2000 updates with 1, 2 and 4 heads");
    std::vector<std::vector<std::string>> table{{"heads", "error", "a head silenced, least harm", "most harm"}};
    std::vector<terminal::Curve> curves;
    std::vector<Trained> all;
    std::vector<double> x;
    for (const std::size_t heads : {1, 2, 4}) {
        all.push_back(train(heads, lesson.seed(), lesson.trace()));
        const Trained& t = all.back();
        if (x.empty())
            for (std::size_t i = 1; i <= t.curve.size(); ++i) x.push_back(20 * double(i));
        curves.push_back({char('0' + heads), std::to_string(heads) + (heads == 1 ? " head" : " heads"), t.curve, x});
        table.push_back({std::to_string(heads), number(t.error, "%.4f"), number(t.ablated_least, "%.3f"),
                         number(t.ablated_most, "%.3f")});
        lesson.trace().series.push_back({.name = "error, " + std::to_string(heads) + (heads == 1 ? " head" : " heads"),
                                         .x_label = "update",
                                         .x = x,
                                         .y_label = "mean square error",
                                         .y = t.curve});
    }
    lesson.trace().series.push_back({.name = "error, 1 head theory",
                                     .x_label = "update",
                                     .x = x,
                                     .y_label = "mean square error",
                                     .y = std::vector<double>(x.size(), 0.5)});
    lesson.line(terminal::chart(curves, {"update"}, {"mean square error"}, 13));
    lesson.line(terminal::table(table));
    lesson.say(
        "One head stops at the floor and no training helps. Of more heads than the task has reads, some do "
        "double duty or little: silencing one (its rows of W_O set to 0) hurts by very different amounts.");
    lesson.check("14.trained_1", "1 head, trained: error", target, all[0].error, 0.5, 0.05, "the floor ½");
    lesson.check("14.trained_2", "2 heads, trained: error", target, all[1].error, 0, 0.05, "two reads");
    lesson.check("14.trained_4", "4 heads, trained: error", target, all[2].error, 0, 0.05, "two reads");
}

int main(int argc, char** argv) {
    Lesson lesson("14_multi_head", "Heads cost nothing extra, and one head cannot keep two reads apart.");
    lesson.prediction("floor",
                      "One head, weight ½ on each of two items of variance 1: the best mean square error of a number?");
    lesson.exercise(
        "floor", "One head with weights (0.9, 0.1): the best mean square error of a number, over both items?",
        [] { return floor_by_theory(0.9); }, 1e-3,
        "the first item is known to (1−a)²/n, the second to a²/n, with n = a² + (1−a)²; take their mean");
    lesson.damage("full-width", "each head is as wide as the whole layer");
    lesson.damage("one-question", "both halves of the query name the same slot, so both heads read one item");
    return lesson.run(argc, argv, [&] {
        Generator generator(lesson.seed());
        lesson.step("One head is the attention you know");
        one_head(lesson, generator);
        lesson.step("The price of heads");
        price(lesson);
        lesson.step("Two things at once");
        floors(lesson, generator);
        if (!lesson.quick()) trained(lesson);
    });
}
