// Score, normalise, aggregate: every number of attention made by hand.
#include <algorithm>
#include <cmath>
#include "engine/gradcheck.hpp"
#include "engine/ops/activation.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/movement.hpp"
#include "engine/ops/reduce.hpp"
#include "engine/ops/softmax.hpp"
#include "engine/spectrum.hpp"
#include "layers/attention.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using enum Trace::Kind;
using Numbers = std::vector<double>;

static const double ln2 = std::log(2.0), ln3 = std::log(3.0);

// Rows of numbers as (1,T,D): a batch of one sequence.
static Array sequence(const std::vector<Numbers>& rows) {
    Array x = filled({1, rows.size(), rows[0].size()}, 0);
    for (std::size_t t = 0; t < rows.size(); ++t) std::copy(rows[t].begin(), rows[t].end(), &x(0, t, 0));
    return x;
}

// max |x − y|
static double difference(const Array& x, const Numbers& y) {
    double worst = x.size() == y.size() ? 0 : std::nan("");
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
        worst = std::max(worst, std::abs(double(x.data()[i]) - y[i]));
    return worst;
}

static std::string fraction(double x, int below) {
    return terminal::number(x * below, "%.4g") + "/" + std::to_string(below);
}

static void to_trace(Lesson& lesson, const std::string& name, const Array& x, std::size_t columns) {
    lesson.trace().matrices.push_back({.name = name, .shape = {x.size() / columns, columns}, .data = numbers(x)});
}

static void series(Lesson& lesson, const std::string& name, const std::string& x_label, const Numbers& x,
                   const std::string& y_label, const Numbers& y) {
    lesson.trace().series.push_back({.name = name, .x_label = x_label, .x = x, .y_label = y_label, .y = y});
}

// The second of the three steps, and two ways to get it wrong.
static Tensor normalise(const Lesson& lesson, const Tensor& scores) {
    if (lesson.broken("constant-sum")) return exp(scores) / detach(sum(exp(scores), -1, true));
    return softmax(scores, lesson.broken("wrong-axis") ? -2 : -1);
}

static void forward_and_backward(Lesson& lesson) {
    lesson.step("Score, normalise, aggregate");
    lesson.say(
        "A query q asks, keys k_i answer, values v_i are brought back. Here q = (ln 2, 0), the keys are (0,0), (1,0), "
        "(2,0) and the values (1,0), (0,1), (1,1), so that everything comes out in sevenths.");
    lesson.predict("top");
    Tape tape;
    const Tensor q = tape.leaf(sequence({{ln2, 0}})), K = tape.leaf(sequence({{0, 0}, {1, 0}, {2, 0}})),
                 V = tape.leaf(sequence({{1, 0}, {0, 1}, {1, 1}}));
    const Tensor scores = matmul_transposed(q, K);     // s_i = q · k_i
    const Tensor weights = normalise(lesson, scores);  // α_i = exp(s_i) / Σ_j exp(s_j)
    const Tensor context = matmul(weights, V);         // c = Σ_i α_i v_i
    const Attended layer = Attention(DotScore())(q, K, V);
    lesson.line(terminal::table({{"position i", "1", "2", "3"},
                                 {"score s_i = q · k_i", "0", "ln 2", "ln 4"},
                                 {"exp(s_i)", "1", "2", "4"},
                                 {"weight α_i, by hand", "1/7", "2/7", "4/7"},
                                 {"weight α_i, on the tape", fraction(weights.value()(0, 0, 0), 7),
                                  fraction(weights.value()(0, 0, 1), 7), fraction(weights.value()(0, 0, 2), 7)}}));
    lesson.reveal("top", weights.value()(0, 0, 2), 4.0 / 7);
    lesson.say(
        "The context vector is the weighted mean of the values: by hand c = (1·1 + 4·1, 2·1 + 4·1)/7 = (5,6)/7, "
        "on the tape (" +
        fraction(context.value()(0, 0, 0), 7) + ", " + fraction(context.value()(0, 0, 1), 7) + ").");
    lesson.check("07.weights", "Weights: tape − (1, 2, 4)/7", le, difference(weights.value(), {1 / 7., 2 / 7., 4 / 7.}),
                 0, 1e-14, "by hand");
    lesson.check("07.context", "Context: tape − (5, 6)/7", le, difference(context.value(), {5 / 7., 6 / 7.}), 0, 1e-14,
                 "by hand");
    lesson.check("07.three_steps", "Three lines of ops − attention layer", le,
                 difference(context.value(), numbers(layer.context.value())), 0, 1e-14, "the same three steps");
    lesson.check("07.sum", "Σ α_i", eq, sum(weights).item(), 1, 1e-14, "softmax");

    lesson.step("Backward, in fractions");
    lesson.say(
        "Let u = ∂L/∂c = (1,2) arrive at the context. Each value gets its weight's share, ∂L/∂v_i = α_i u. A weight "
        "gets u · v_i = 1, 2, 3. Their weighted mean is u · c = 17/7, and softmax sends on the surplus: ∂L/∂s_i = "
        "α_i (u · v_i − u · c). Scores compete: what one gains the others lose.");
    const Gradients g = tape.backward(context, {q, K, V, scores}, {.seed = sequence({{1, 2}})});
    lesson.line(terminal::table({{"position i", "1", "2", "3"},
                                 {"∂L/∂s_i by hand", "-10/49", "-6/49", "16/49"},
                                 {"∂L/∂s_i on the tape", fraction(g[scores](0, 0, 0), 49),
                                  fraction(g[scores](0, 0, 1), 49), fraction(g[scores](0, 0, 2), 49)},
                                 {"∂L/∂v_i by hand", "(1,2)/7", "(2,4)/7", "(4,8)/7"}}));
    const Numbers dk{-10 * ln2 / 49, 0, -6 * ln2 / 49, 0, 16 * ln2 / 49, 0};
    lesson.check("07.score_gradient", "∂L/∂s: tape − (−10, −6, 16)/49", le,
                 difference(g[scores], {-10 / 49., -6 / 49., 16 / 49.}), 0, 1e-14, "by hand");
    lesson.check("07.query_gradient", "∂L/∂q: tape − (26/49, 0)", le, difference(g[q], {26 / 49., 0}), 0, 1e-14,
                 "Σ_i ∂L/∂s_i k_i");
    lesson.check("07.key_gradient", "∂L/∂k_i: tape − ∂L/∂s_i q", le, difference(g[K], dk), 0, 1e-14, "by hand");
    lesson.check("07.value_gradient", "Σ_i ∂L/∂v_i: tape − u", le,
                 difference(sum(tape.constant(g[V]), 1).value(), {1, 2}), 0, 1e-14, "Σ α_i = 1");
    to_trace(lesson, "scores", scores.value(), 3), to_trace(lesson, "weights α", weights.value(), 3);
    to_trace(lesson, "∂L/∂q", g[q], 2), to_trace(lesson, "∂L/∂K", g[K], 2), to_trace(lesson, "∂L/∂V", g[V], 2);
}

static void softmax_jacobian(Lesson& lesson) {
    lesson.step("Softmax's Jacobian: J_ij = ∂α_i/∂s_j = α_i (1 if i = j, else 0) − α_i α_j");
    Tape tape;
    const Tensor scores = tape.leaf(sequence({{0, ln2, 2 * ln2}}));
    Array J = jacobian(normalise(lesson, scores), scores);
    const std::vector<std::string> places{"s_1", "s_2", "s_3"};
    std::vector<std::vector<std::string>> rows{{"49 J", "s_1", "s_2", "s_3"}};
    for (std::size_t i = 0; i < 3; ++i) {
        rows.push_back({"α_" + std::to_string(i + 1)});
        for (std::size_t j = 0; j < 3; ++j) rows.back().push_back(terminal::number(49 * J(i, j), "%.4g"));
    }
    lesson.line(terminal::table(rows));
    Numbers by_hand{6, -2, -4, -2, 10, -8, -4, -8, 12};
    for (double& entry : by_hand) entry /= 49;
    // Rank 2, so trace and Σ J² alone give both eigenvalues: λ = (t ± √(2F − t²)) / 2.
    const double trace = 28 / 49., squares = (36 + 100 + 144 + 2 * (4 + 16 + 64)) / (49. * 49);
    lesson.check("07.jacobian", "49 J: tape − whole numbers by hand", le, 49 * difference(J, by_hand), 0, 1e-13,
                 "diag(α) − ααᵀ");
    lesson.check("07.jacobian_norm", "‖J‖ at (1,2,4)/7, largest eigenvalue", eq, spectral_norm(J),
                 (trace + std::sqrt(2 * squares - trace * trace)) / 2, 1e-14, "trace and Σ J²");

    Generator generator(lesson.seed());
    double steepest = 0, row_sum = 0;
    for (int draw = 0; draw < 200; ++draw) {
        const Tensor s = tape.leaf(generator.normal({8}, 0, 0.2 * (draw % 50)));
        const Array of_s = jacobian(softmax(s, -1), s);
        steepest = std::max(steepest, spectral_norm(of_s));
        for (std::size_t i = 0; i < 8; ++i) {
            double total = 0;
            for (std::size_t j = 0; j < 8; ++j) total += of_s(i, j);
            row_sum = std::max(row_sum, std::abs(total));
        }
    }
    const Tensor two = tape.leaf(sequence({{0, 0}}));
    lesson.say(
        "So softmax is differentiable everywhere, and gradients do flow; but never amplified. Its rows sum to 0 (a "
        "shift of all scores changes nothing), and a change of scores becomes at most half as long: over 200 random "
        "score vectors the longest is " +
        terminal::number(steepest, "%.4f") +
        " of its length; two equal scores reach 1/2. Where one weight is near 1, J is near 0.");
    lesson.check("07.rows_of_j", "Rows of J: |Σ_j J_ij|, 200 draws", le, row_sum, 0, 1e-14, "J 1 = 0");
    lesson.check("07.half", "Largest ‖J‖ of 200 draws", le, steepest, 0.5, 1e-12, "our own bound");
    lesson.check("07.half_reached", "‖J‖ of two equal scores", eq, spectral_norm(jacobian(softmax(two, -1), two)), 0.5,
                 1e-14, "α = (½, ½)");
    lesson.trace().matrices.push_back({.name = "softmax's Jacobian",
                                       .row_label = "weight",
                                       .column_label = "score",
                                       .rows = {"α_1", "α_2", "α_3"},
                                       .columns = places,
                                       .shape = {3, 3},
                                       .data = numbers(J)});
}

static void additive_by_hand(Lesson& lesson) {
    lesson.step("The additive score by hand: s_i = v · tanh(q W_q + k_i W_k)");
    lesson.say(
        "W_q and W_k are identities, v = (2 ln 3, 1), q = 0, and tanh(k_1) = (½, 0), k_2 = 0. Then the scores are "
        "(ln 3, 0), the weights (¾, ¼), and with u = (1, 0) and unit vectors as values ∂L/∂s = (3, −3)/16. Behind the "
        "tanh each number is multiplied by its slope, 1 − tanh²: ¾ for the first entry of k_1 = (½ ln 3, 0), and 1 "
        "for those that are 0. The query's gradient is the sum of both keys' ways, (¾ − 1) · 2 ln 3 · 3/16.");
    const Array identity = sequence({{1, 0}, {0, 1}});
    Tape tape;
    const AdditiveScore score(Parameter(Array{{1, 0}, {0, 1}}), Parameter(Array{{1, 0}, {0, 1}}),
                              Parameter(Array{2 * ln3, 1}));
    const Tensor q = tape.leaf(sequence({{0, 0}})), k = tape.leaf(sequence({{ln3 / 2, 0}, {0, 0}})),
                 values = tape.leaf(identity);
    const Tensor weights = normalise(lesson, score(q, score.project(k)));
    const Gradients g = tape.backward(matmul(weights, values), {q, k}, {.seed = sequence({{1, 0}})});
    const Numbers dq{-3 * ln3 / 32, 0}, dk{9 * ln3 / 32, 3 / 16., -3 * ln3 / 8, -3 / 16.},
        dW{9 * ln3 * ln3 / 64, 3 * ln3 / 32, 0, 0};
    lesson.line(terminal::table(
        {{"", "by hand", "on the tape"},
         {"α_1", "3/4 = 0.75", terminal::number(weights.value()(0, 0, 0))},
         {"∂L/∂q, first entry", "-3 ln 3 / 32 = " + terminal::number(dq[0]), terminal::number(g[q](0, 0, 0))},
         {"∂L/∂k_1, first entry", "9 ln 3 / 32 = " + terminal::number(dk[0]), terminal::number(g[k](0, 0, 0))},
         {"∂L/∂W_k, first entry", "9 (ln 3)² / 64 = " + terminal::number(dW[0]),
          terminal::number(g[score.W_k].data()[0])}}));
    lesson.check("07.additive", "Additive weights: tape − (¾, ¼)", le, difference(weights.value(), {0.75, 0.25}), 0,
                 1e-14, "by hand");
    lesson.check("07.additive_gradient", "∂L/∂q, ∂L/∂k, ∂L/∂W_k: tape − hand", le,
                 std::max({difference(g[q], dq), difference(g[k], dk), difference(g[score.W_k], dW)}), 0, 1e-14,
                 "chain rule by hand");

    // [q k] W is q W_q + k W_k, W_q lying above W_k in W.
    Generator generator(lesson.seed());
    const Array W = generator.normal({6, 4}), v = generator.normal({4});
    const Tensor queries = tape.leaf(generator.normal({1, 3, 2})), keys = tape.leaf(generator.normal({1, 5, 4}));
    Array upper = filled({2, 4}, 0), lower = filled({4, 4}, 0);
    std::copy(W.data(), W.data() + 8, upper.data());
    std::copy(W.data() + 8, W.data() + 24, lower.data());
    const AdditiveScore two_matrices{Parameter(upper), Parameter(lower), Parameter(v)};
    const ConcatScore one_matrix(Parameter(W), Parameter(v), 2);
    const Tensor a = two_matrices(queries, two_matrices.project(keys)),
                 b = one_matrix(queries, one_matrix.project(keys));
    lesson.say(
        "Some call this score “concat”: query and key are put end to end and multiplied by one matrix. That is the "
        "same sum, with W_q above W_k; and k_i W_k is computed once, however many queries come.");
    lesson.check("07.concat", "Concat score − additive score", le, difference(a.value(), numbers(b.value())), 0, 1e-14,
                 "[q k] W = q W_q + k W_k");
}

// ---- The course's formula for α, and Bahdanau's

struct BothReadings {
    std::vector<Numbers> printed, published;
    Numbers printed_sums, published_sums;
};

// All states to all states: s (1,T,D) asks, h (1,T,D) answers.
static BothReadings both_readings(const Lesson& lesson, const AdditiveScore& score, const Array& s, const Array& h) {
    Tape tape;
    const Tensor scores = score(tape.constant(s), score.project(tape.constant(h)));
    const Tensor weights = softmax(scores, lesson.broken("wrong-axis") ? -2 : -1);
    const std::size_t T = scores.shape(1);
    double diagonal = 0;  // the printed denominator: j counts states s_j and h_j at once
    for (std::size_t j = 0; j < T; ++j) diagonal += std::exp(double(scores.value()(0, j, j)));
    BothReadings both;
    for (std::size_t t = 0; t < T; ++t) {
        Numbers &printed = both.printed.emplace_back(), &published = both.published.emplace_back();
        double printed_sum = 0, published_sum = 0;
        for (std::size_t i = 0; i < T; ++i) {
            printed_sum += printed.emplace_back(std::exp(double(scores.value()(0, t, i))) / diagonal);
            published_sum += published.emplace_back(
                lesson.broken("printed-denominator") ? printed.back() : double(weights.value()(0, t, i)));
        }
        both.printed_sums.push_back(printed_sum), both.published_sums.push_back(published_sum);
    }
    return both;
}

static double furthest_from_1(const Numbers& sums) {
    double worst = 0;
    for (const double sum : sums) worst = std::max(worst, std::abs(sum - 1));
    return worst;
}

static void denominator(Lesson& lesson) {
    lesson.step("Over what does the denominator sum? Two readings of one formula");
    lesson.say(
        "The course text prints α_{t,i} with a denominator that sums exp(v · tanh(W_q s_j + W_k h_j)) over j: the "
        "query moves along with the key. In the paper the query stays (it is s_{t−1} there; here s_t, to compare), and "
        "only the key moves. Both, with one number a state, all weights 1, and s = h = (0, 1):");
    lesson.predict("row");
    const AdditiveScore ones(Parameter(filled({1, 1}, 1)), Parameter(filled({1, 1}, 1)), Parameter(filled({1}, 1)));
    const BothReadings both = both_readings(lesson, ones, sequence({{0}, {1}}), sequence({{0}, {1}}));
    std::vector<std::vector<std::string>> rows{{"", "α_t1", "α_t2", "row sum"}};
    for (std::size_t t = 0; t < 2; ++t)
        for (const bool printed : {true, false}) {
            const Numbers& row = (printed ? both.printed : both.published)[t];
            const double sum = (printed ? both.printed_sums : both.published_sums)[t];
            rows.push_back({"t = " + std::to_string(t + 1) + (printed ? ", as printed" : ", as published"),
                            terminal::number(row[0], "%.6f"), terminal::number(row[1], "%.6f"),
                            terminal::number(sum, "%.6f")});
        }
    lesson.line(terminal::table(rows));
    const double below = 1 + std::exp(std::tanh(2.0)), e1 = std::exp(std::tanh(1.0)), e2 = std::exp(std::tanh(2.0));
    lesson.reveal("row", both.printed_sums[0], (1 + e1) / below);

    Generator generator(lesson.seed());
    Numbers printed_gaps, published_sums;
    for (int draw = 0; draw < 101; ++draw) {
        const AdditiveScore random(4, 4, 16, generator);
        const BothReadings of_random =
            both_readings(lesson, random, generator.normal({1, 4, 4}, 0, 3), generator.normal({1, 4, 4}, 0, 3));
        printed_gaps.push_back(furthest_from_1(of_random.printed_sums));
        published_sums.insert(published_sums.end(), of_random.published_sums.begin(), of_random.published_sums.end());
    }
    const double gap = measure::median(printed_gaps);
    lesson.say(
        "Only as published do the weights sum to 1, which the course itself asks of them earlier. In 101 random "
        "models with four states the worst printed row is off by " +
        terminal::number(gap, "%.2f") +
        " (the median). And with more target than source words the printed sum has no h_j left to go with s_j. "
        "(Bahdanau et al. 2015, eq. 6 and app. A.2.2.)");
    lesson.check("07.printed_1", "As printed: sum of row 1", eq, both.printed_sums[0], (1 + e1) / below, 1e-14,
                 "(1+e^tanh1)/(1+e^tanh2)");
    lesson.check("07.printed_2", "As printed: sum of row 2", eq, both.printed_sums[1], (e1 + e2) / below, 1e-14,
                 "(e^tanh1+e^tanh2)/(1+e^tanh2)");
    lesson.check("07.published", "As published: largest |row sum − 1|", le, furthest_from_1(published_sums), 0, 1e-14,
                 "Bahdanau et al. 2015, eq. 6");
    lesson.check("07.printed_gap", "As printed: median |row sum − 1|", ge, gap, 0.05, 0, "101 random 4 × 4");
    const Numbers steps{1, 2};
    series(lesson, "row sum as printed", "decoder step t", steps, "Σ_i α_{t,i}", both.printed_sums);
    series(lesson, "row sum as published", "decoder step t", steps, "Σ_i α_{t,i}", both.published_sums);
}

// ---- What softmax promises

static Numbers weights_of(const Numbers& scores) {
    Tape tape;
    return numbers(softmax(tape.constant(sequence({scores})), -1).value());
}

static void focus(Lesson& lesson) {
    lesson.step("Exponentially more weight, but not always focus");
    const Numbers low = weights_of({0, 1, 3}), shifted = weights_of({1024, 1025, 1027});
    double moved = 0;
    for (std::size_t i = 0; i < 3; ++i) moved = std::max(moved, std::abs(low[i] - shifted[i]));
    lesson.say(
        "Only differences count: α_i/α_j = exp(s_i − s_j), and 1024 added to scores 0, 1, 3 moves no bit of their "
        "weights "
        "(added to scores that it rounds, no more than that). But one score ahead of T − 1 equal ones by a margin Δ "
        "gets α = 1/(1 + (T−1) e^−Δ): while scores stay bounded, the focus "
        "thins out as the source grows. To hold 0.9, the margin must grow as ln T.");
    Numbers lengths, tops, needed;
    double worst = 0, worst_needed = 0;
    std::vector<std::vector<std::string>> rows{{"source length T", "weight at Δ = 5", "theory", "Δ for 0.9"}};
    for (const std::size_t T : {10u, 100u, 1000u, 10000u}) {
        Numbers scores(T, 0.0);
        scores[0] = 5;
        const double top = weights_of(scores)[0], theory = 1 / (1 + double(T - 1) * std::exp(-5.0));
        scores[0] = std::log(double(T - 1) * 9);
        lengths.push_back(double(T)), tops.push_back(top), needed.push_back(scores[0]);
        worst = std::max(worst, std::abs(top - theory));
        worst_needed = std::max(worst_needed, std::abs(weights_of(scores)[0] - 0.9));
        rows.push_back({std::to_string(T), terminal::number(top, "%.5f"), terminal::number(theory, "%.5f"),
                        terminal::number(needed.back(), "%.3f")});
    }
    lesson.line(terminal::table(rows));
    lesson.check("07.shift", "Scores + 1024: largest change of α", exact0, moved, 0, 0, "only differences count");
    lesson.check("07.ratio", "α_3/α_1 at scores 3 and 0", eq, low[2] / low[0], std::exp(3.0), 1e-14, "e^(s_3 − s_1)");
    lesson.check("07.dispersion", "Top weight at Δ = 5: tape − formula", le, worst, 0, 1e-14, "1/(1+(T−1)e^−Δ)");
    lesson.check("07.margin", "Top weight at Δ = ln 9(T−1), from 0.9", le, worst_needed, 0, 1e-12, "our own algebra");
    series(lesson, "top weight at margin 5", "source length T", lengths, "weight", tops);
    series(lesson, "margin for 0.9", "source length T", lengths, "margin Δ", needed);
}

static void temperature(Lesson& lesson) {
    lesson.step("A soft argmax: softmax(β s) as β grows");
    Numbers betas, missing, bound;
    double excess = -1;
    for (int i = 0; i <= 48; ++i) {
        const double beta = 0.5 * i;
        const Numbers alpha = weights_of({0, 0.5 * beta, beta, 0.25 * beta});
        betas.push_back(beta);
        missing.push_back(alpha[0] + alpha[1] + alpha[3]);  // 1 − α_max without its rounding
        bound.push_back(3 * std::exp(-0.5 * beta));
        excess = std::max(excess, missing.back() - bound.back());
    }
    lesson.say(
        "Scores (0, 0.5, 1, 0.25) times β: what is missing to a hard choice, 1 − α_max, is at most (T−1) e^(−β gap), "
        "with gap 0.5 between the best two.");
    lesson.line(
        terminal::chart({{'b', "bound (T−1) e^(−β gap)", bound, betas}, {'m', "1 − α_max, measured", missing, betas}},
                        {"β (inverse temperature)"}, {"1 − largest α", true}, 13));
    const double tie = weights_of({0, 1000, 1000})[1];
    lesson.say("It becomes argmax if one score is the largest. Two that tie at the top share the weight, " +
               terminal::number(tie) + " each, at any β.");
    lesson.check("07.argmax", "1 − α_max − (T−1)e^(−β gap), largest", le, excess, 0, 1e-14, "our own bound");
    lesson.check("07.tie", "Each of two tied scores at β = 1000", eq, tie, 0.5, 0, "symmetry");
    series(lesson, "1 − largest weight", "β", betas, "1 − largest α", missing);
    series(lesson, "1 − largest weight bound", "β", betas, "1 − largest α", bound);
}

static void positive(Lesson& lesson) {
    lesson.step("Are all weights positive?");
    lesson.say("With real numbers, yes: exp is. A computer's numbers end somewhere, and a mask sets weights to 0.");
    lesson.predict("gap");
    double visible = 0, gone = 2000;  // halves until no number of a thousandth lies between
    while (gone - visible > 1e-3) {
        const double middle = (visible + gone) / 2;
        (weights_of({0, -middle})[1] > 0 ? visible : gone) = middle;
    }
    using Limits = std::numeric_limits<Real>;
    const double normal = -std::log(double(Limits::min())), least = -std::log(double(Limits::denorm_min())) + ln2;
    // Two theories, by where exp stops; the text tells both.
    lesson.reveal("gap", gone, std::abs(gone - normal) < std::abs(gone - least) ? normal : least);
    Tape tape;
    const Tensor scores = tape.leaf(sequence({{1, 2, 3}})), values = tape.leaf(sequence({{1, 0}, {0, 1}, {5, 7}}));
    const Tensor weights = attention_weights(scores, Mask({1, 1, 3}, {true, true, false}));
    const Gradients g = tape.backward(sum(matmul(weights, values)), {scores, values});
    const double leak = std::abs(weights.value()(0, 0, 2)) + std::abs(g[scores](0, 0, 2)) +
                        std::abs(g[values](0, 2, 0)) + std::abs(g[values](0, 2, 1));
    lesson.say(
        "A double's smallest number above 0 is 2^−1074; half of it, e^−745.13, rounds to 0. From 2^−1022 = e^−708.4 "
        "down digits get lost, and fast versions of exp stop there already. And a masked position has weight 0 and "
        "sends back 0, exactly: the course's “all weights are positive” holds for what is "
        "visible, with scores not too far apart.");
    lesson.check("07.underflow", "Gap at which a weight becomes 0", le, gone, least, 2e-3, "1075 ln 2");
    lesson.check("07.normal", "The same gap, from below", ge, gone, normal, 2e-3, "1022 ln 2");
    lesson.check("07.masked", "Masked: |α| + |∂L/∂s| + |∂L/∂v|", exact0, leak, 0, 0, "left out of the sum");
}

static void shapes(Lesson& lesson) {
    lesson.step("Shapes: softmax(Q Kᵀ/√d_k) V with T_q queries and T_k keys");
    Generator generator(lesson.seed());
    const std::size_t T_q = 3, T_k = 5, d_k = 2, d_v = 4;
    Tape tape;
    const Tensor Q = tape.leaf(generator.normal({1, T_q, d_k})), K = tape.leaf(generator.normal({1, T_k, d_k})),
                 V = tape.leaf(generator.normal({1, T_k, d_v}));
    const Attended attended = Attention(ScaledDotScore())(Q, K, V);
    Numbers by_hand;
    for (std::size_t t = 0; t < T_q; ++t) {  // one query at a time, one number at a time
        Numbers alpha(T_k), c(d_v, 0.0);
        double total = 0;
        for (std::size_t i = 0; i < T_k; ++i) {
            double s = 0;
            for (std::size_t d = 0; d < d_k; ++d) s += Q.value()(0, t, d) * K.value()(0, i, d);
            total += alpha[i] = std::exp(s / std::sqrt(double(d_k)));
        }
        for (std::size_t i = 0; i < T_k; ++i)
            for (std::size_t d = 0; d < d_v; ++d) c[d] += alpha[i] / total * V.value()(0, i, d);
        by_hand.insert(by_hand.end(), c.begin(), c.end());
    }
    lesson.line("   Q " + text(Q.shape()) + "   K " + text(K.shape()) + "   V " + text(V.shape()) + "   →   weights " +
                text(attended.weights.shape()) + ", contexts " + text(attended.context.shape()));
    lesson.say(
        "The first axis is the batch. The course's card gives Q, K and V one length; from a decoder to an encoder "
        "there "
        "are two, T_q and T_k, and the softmax runs along the second.");
    lesson.check("07.matrix_form", "Matrix form − one number at a time", le,
                 difference(attended.context.value(), by_hand), 0, 1e-14, "Vaswani et al. 2017, eq. 1");
    lesson.check("07.shapes", "Contexts: T_q · d_v numbers", eq, double(attended.context.size()), double(T_q * d_v), 0,
                 "T_q = 3, T_k = 5, d_v = 4");
}

int main(int argc, char** argv) {
    Lesson lesson("07_attention_by_hand", "Score, normalise, aggregate: every number of attention made by hand.");
    lesson.prediction("top", "Scores 0, ln 2, ln 4: what weight does the third position get?");
    lesson.prediction("row", "What do the weights of row 1 sum to, as printed?");
    lesson.prediction("gap", "How far must one of two scores fall behind until its weight is exactly 0?");
    lesson.exercise(
        "frobenius", "How long is J at α = (1,2,4)/7: what is √Σ J_ij² over its nine entries?",
        [] {
            const double a = 1 / 7., b = 2 / 7., c = 4 / 7., second = a * a + b * b + c * c;
            return std::sqrt(second - 2 * (a * a * a + b * b * b + c * c * c) + second * second);
        },
        5e-5,
        "‖J‖ among the checks is another length, of the longest J x with |x| = 1; this one is made of all nine "
        "entries");
    lesson.damage("constant-sum", "backward takes softmax's denominator for a constant, so scores don't compete");
    lesson.damage("wrong-axis", "softmax runs over the queries instead of the keys");
    lesson.damage("printed-denominator", "weights are divided by the sum over the pairs (s_j, h_j), as printed");
    return lesson.run(argc, argv, [&] {
        forward_and_backward(lesson);
        softmax_jacobian(lesson);
        additive_by_hand(lesson);
        denominator(lesson);
        focus(lesson);
        temperature(lesson);
        positive(lesson);
        shapes(lesson);
    });
}
