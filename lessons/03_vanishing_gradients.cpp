// What holds a bit firmly lets no gradient through; ‖W‖ foretells neither.
//
// One tanh unit that latches, two that explode without an eigenvalue, and 256 whose rate is computed beforehand.
#include <algorithm>
#include <cmath>
#include <numbers>
#include "engine/gradcheck.hpp"
#include "engine/ops.hpp"
#include "engine/spectrum.hpp"
#include "layers/init.hpp"
#include "lessons/by_hand.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using terminal::number;
using enum Trace::Kind;

// ---- theory: plain numbers

// The positive h with h = tanh(w h), for w > 1, by halving an interval.
static double fixed_point(double w) {
    double low = 1e-6, high = 1;
    for (int i = 0; i < 200; ++i) {
        const double h = (low + high) / 2;
        (std::tanh(w * h) > h ? low : high) = h;
    }
    return low;
}
// ∂h_t/∂h_{t−1} there: w times the slope of tanh.
static double latch_jacobian(double w, bool drop_slope = false) {
    const double h = fixed_point(w);
    return drop_slope ? w : w * (1 - h * h);
}

// What 2000 noisy units sample, without a draw: the probability density of what tanh is applied to, a ← w tanh a +
// noise, is carried from step to step on a grid. The share of units that are positive after 50 steps, and the mean of
// ln |∂h_50/∂h_0|, which is a sum over steps of ln w + ln (1 − tanh² a).
struct Held {
    double share, log_gradient;
};
static double start_of(double w) { return w > 1 ? fixed_point(w) : 0.5; }
static Held held(double w, double noise, bool drop_slope) {
    constexpr double width =
        0.05;  // of a cell: sums of so smooth functions are exact (the share, which has an edge, to 1e-4)
    const int half = int(std::ceil((w + 8 * noise) / width)), cells = 2 * half + 1;
    const auto place = [&](int i) { return (i - half) * width; };
    const auto density = [&](double away) {
        return std::exp(-away * away / (2 * noise * noise)) * width / (noise * std::sqrt(2 * std::numbers::pi));
    };
    std::vector<double> p(std::size_t(cells), 0.0), moves(p.size() * p.size());
    for (int i = 0; i < cells; ++i) {
        p[std::size_t(i)] = density(place(i) - w * start_of(w));
        for (int j = 0; j < cells; ++j) moves[std::size_t(i * cells + j)] = density(place(i) - w * std::tanh(place(j)));
    }
    Held result{0, 0};
    for (int t = 1; t <= 50; ++t) {
        for (int i = 0; i < cells; ++i)
            result.log_gradient +=
                p[std::size_t(i)] * (std::log(w) - (drop_slope ? 0 : 2 * std::log(std::cosh(place(i)))));
        if (t == 50) break;
        std::vector<double> next(p.size(), 0.0);
        for (std::size_t i = 0; i < p.size(); ++i)
            for (std::size_t j = 0; j < p.size(); ++j) next[i] += moves[i * p.size() + j] * p[j];
        p = next;
    }
    for (int i = half; i < cells; ++i) result.share += p[std::size_t(i)] * (i == half ? 0.5 : 1);
    return result;
}

// E f(√q z) over a normal z, by the trapezium rule (which for such f is exact to the last digits).
template <class F> static double expectation(double q, F f) {
    double sum = 0;
    const double step = 0.05;
    for (double z = -9; z <= 9; z += step) sum += std::exp(-z * z / 2) * f(std::sqrt(q) * z);
    return sum * step / std::sqrt(2 * std::numbers::pi);
}
// e_t = W tanh(e_{t−1}) + u_t with W = σ times a rotation and u of variance R. In a wide network each unit of e is
// normal, of a variance q that no longer changes; a step back multiplies squared gradients by χ. With n units that
// factor is a mean of n numbers, weighted by a gradient whose n entries are normal: its relative variance is 3/n times
// theirs, and a logarithm's mean lies half of that below the mean's logarithm (to first order in 1/n).
struct MeanField {
    double q, chi, spread;  // of σ² (1 − tanh²)²: the relative variance
    double rate(double n) const { return 0.5 * (std::log(chi) - 1.5 * spread / n); }
};
static MeanField mean_field(double sigma, double R) {
    double q = R;
    for (int i = 0; i < 200; ++i)
        q = sigma * sigma * expectation(q, [](double e) { return std::tanh(e) * std::tanh(e); }) + R;
    const auto slope_squared = [](double e) { return std::pow(1 - std::tanh(e) * std::tanh(e), 2); };
    const double mean = expectation(q, slope_squared),
                 square = expectation(q, [&](double e) { return std::pow(slope_squared(e), 2); });
    return {q, sigma * sigma * mean, square / (mean * mean) - 1};
}

// ---- measurements: the tape

// h_T and ∂h_T/∂h_0 of one unit h ← tanh(w h).
static std::pair<double, double> iterate(double w, double start, int T) {
    Tape tape;
    const Tensor h0 = tape.leaf(Array(Real(start)));
    Tensor h = h0;
    for (int t = 0; t < T; ++t) h = tanh(Real(w) * h);
    return {double(h.item()), double(tape.backward(h, {h0})[h0]())};
}

// 2000 units that start at +h*, 50 steps with noise: the share still positive, and the mean of ln |∂h_50/∂h_0|.
static Held noisy_latch(double w, double noise, Generator& generator) {
    const std::size_t units = 2000;
    Tape tape;
    const Tensor h0 = tape.leaf(filled({units}, Real(start_of(w))));
    Tensor h = h0;
    for (int t = 0; t < 50; ++t) h = tanh(Real(w) * h + tape.constant(generator.normal({units}, 0, noise)));
    std::vector<double> logs = numbers(tape.backward(sum(h), {h0})[h0]);  // units do not mix: each has its own slope
    for (double& slope : logs) slope = std::log(slope);
    double kept = 0;
    for (const Real v : h.value()) kept += v > 0;
    return {kept / double(units), measure::mean(logs)};
}

// The slope of ln ‖∂L/∂e_t‖ a step back, over T steps (after 140 others, in which the start is forgotten).
static double measured_rate(const Array& Q, double sigma, double R, std::size_t T, Generator& generator) {
    const std::size_t n = Q.shape(0), burn_in = 140;
    Tape tape;
    const Tensor W = tape.constant(Q) * Real(sigma);
    Tensor e = tape.leaf(generator.normal({1, n}));
    std::vector<Tensor> states;
    for (std::size_t t = 0; t < burn_in + T; ++t) {
        e = matmul(tanh(e), W) + tape.constant(generator.normal({1, n}, 0, std::sqrt(R)));
        if (t >= burn_in) states.push_back(e);
    }
    const Gradients g = tape.backward(sum(e * tape.constant(generator.normal({1, n}))), states);
    std::vector<double> back, log_norm;
    for (std::size_t k = 0; k < T; ++k) {
        back.push_back(double(k));
        log_norm.push_back(std::log(norm(g[states[T - 1 - k]])));
    }
    return measure::slope(back, log_norm);
}

// ---- the steps

static void brake(Lesson& lesson) {
    lesson.step("A brake in every step");
    lesson.say(
        "One step of h_t = tanh(w · h_{t−1}) multiplies a gradient by w and by the slope of tanh. That slope is 1 "
        "at 0 and falls fast; the slope of the logistic function σ(x) = 1/(1 + e^−x) never exceeds ¼. By the "
        "tape:");
    Tape tape;
    const Tensor x = tape.leaf(Array{0, 0.5, 1, 2, 3, -4, -0.1});
    const Array slope = tape.backward(sum(tanh(x)), {x})[x], logistic = tape.backward(sum(sigmoid(x)), {x})[x];
    std::vector<std::vector<std::string>> rows{{"x"}, {"slope of tanh"}, {"slope of σ"}};
    for (std::size_t i = 0; i < 5; ++i) {
        rows[0].push_back(number(x.value()(i)));
        rows[1].push_back(number(slope(i), "%.4f"));
        rows[2].push_back(number(logistic(i), "%.4f"));
    }
    lesson.line(terminal::table(rows));
    lesson.say(
        "So with one logistic unit no weight between −4 and 4 can keep a gradient (Hochreiter & Schmidhuber 1997, "
        "§3.1.3).");
    lesson.check("03.logistic", "Largest slope of σ on the tape", le,
                 *std::max_element(logistic.begin(), logistic.end()), 0.25, 1e-15,
                 "Hochreiter & Schmidhuber 1997, §3.1.3");
}

static void latch(Lesson& lesson) {
    const bool broken = lesson.broken("drop-slope");
    lesson.step("One unit that holds a bit");
    lesson.say(
        "For w > 1 the unit h ← tanh(w · h) has two resting points, +h* and −h*: one bit, held for ever. Its "
        "Jacobian there is J = w (1 − h*²). Theory finds h* by halving an interval; the tape runs 400 steps from "
        "0.1, then 20 more with the gradient.");
    std::vector<std::vector<std::string>> rows{{"w", "h* tape", "h* theory", "J", "∂h_20/∂h_0 tape", "J^20"}};
    double worst = 0, ratio = 0;
    for (const double w : {1.25, 2.0, 3.0}) {
        const double h = iterate(w, 0.1, 400).first, J = iterate(w, h, 1).second, J20 = iterate(w, h, 20).second;
        const double theory = latch_jacobian(w, broken);
        worst = std::max({worst, std::abs(h - fixed_point(w)), std::abs(J / theory - 1)});
        if (w == 2) ratio = J20 / std::pow(theory, 20);
        rows.push_back({number(w), number(h, "%.8f"), number(fixed_point(w), "%.8f"), number(J, "%.8f"), number(J20),
                        number(std::pow(theory, 20))});
    }
    lesson.line(terminal::table(rows));
    lesson.say(
        "The weight is above 1, the memory is perfect, and after 20 steps the gradient is gone. Only at h = 0, "
        "where nothing is stored, is J = w and gradients grow: " +
        number(iterate(2, 0, 1).second) + " for w = 2.");
    lesson.check("03.fixed_point", "h* and J at w = 1.25, 2, 3", le, worst, 0, 1e-9,
                 "one-unit fixed point: our algebra");
    lesson.check("03.latch_gradient", "w = 2: ∂h_20/∂h_0 over J^20", eq, ratio, 1, 1e-9, "chain rule at a fixed point");

    lesson.step("Holding against noise, or letting gradients through");
    lesson.say(
        "Now noise of deviation 0.3 is added at each step. 2000 units start at +h* (at ½, where w ≤ 1 has no h*). "
        "How many still say + after 50 steps, and how much gradient comes through: the typical ∂h_50/∂h_0, e to the "
        "mean of its logarithm? Theory draws no noise. It carries the probability of each value of a unit from one "
        "step to the next, which is exact; the tape differs from it by the luck of 2000 draws.");
    Generator generator(lesson.seed());
    rows = {{"w", "bits kept", "theory", "∂h_50/∂h_0 typical", "theory"}};
    std::vector<double> ws, kept, through;
    Held at_risk{}, at_risk_theory{}, safe{}, safe_theory{};  // w = 1.4 and w = 3
    for (const double w : {0.8, 1.0, 1.2, 1.4, 1.6, 2.0, 2.5, 3.0}) {
        const Held tape_says = noisy_latch(w, 0.3, generator), theory = held(w, 0.3, broken);
        if (w == 1.4) at_risk = tape_says, at_risk_theory = theory;
        if (w == 3) safe = tape_says, safe_theory = theory;
        ws.push_back(w), kept.push_back(tape_says.share), through.push_back(std::exp(tape_says.log_gradient));
        rows.push_back({number(w), number(100 * tape_says.share, "%.1f %%"), number(100 * theory.share, "%.1f %%"),
                        number(through.back(), "%.1e"), number(std::exp(theory.log_gradient), "%.1e")});
    }
    lesson.line(terminal::table(rows));
    lesson.say(
        "Chance is 50 %. No w gives both: what resists noise vanishes, and what lets gradients through forgets. "
        "Bengio, Simard & Frasconi (1994, abstract) call it a trade-off between latching information and "
        "learning by gradient descent. So “early tokens have little influence because gradients decay” has it "
        "half: here the first state decides the sign of h_50, and its gradient is nil. (Luck is worth 0.01 in a share "
        "of bits and 0.1 in the logarithm for w = 3, one standard error; the checks allow five.)");
    lesson.check("03.bit_kept", "w = 3, noise .3: share of bits kept", slope, safe.share, safe_theory.share, 1e-3,
                 "density, carried from step to step");
    lesson.check("03.bit_lost", "w = 1.4, noise .3: share of bits kept", slope, at_risk.share, at_risk_theory.share,
                 0.05, "density, carried from step to step");
    lesson.check("03.bit_gradient", "w = 3, noise .3: mean ln ∂h_50/∂h_0", slope, safe.log_gradient,
                 safe_theory.log_gradient, 0.5, "density, carried from step to step");
    for (const auto& [name, y] : {std::pair{"bits kept", &kept}, {"gradient through 50 steps", &through}})
        lesson.trace().series.push_back({.name = name, .x_label = "weight w", .x = ws, .y_label = name, .y = *y});
}

static void explosion_without_eigenvalues(Lesson& lesson) {
    lesson.step("Two units whose W has no eigenvalue but 0, and explode");
    lesson.say(
        "Two sizes of a matrix are in use. Its norm is the most by which it stretches any vector (its largest "
        "singular value). An eigenvalue is the factor of a vector that it stretches without turning, and the largest "
        "of these in size is its spectral radius ρ (lesson 02). Below which size of W must gradients vanish? Pascanu "
        "et al. (2013, §2.1) say: when the norm is below 1. With the largest eigenvalue instead, as in a widely read "
        "preprint of that paper, it is false once there is a tanh. Take h ← tanh(W h + b) with W = [8 8; −8 −8], "
        "whose eigenvalues are both 0, and b = (−4, 4 + artanh ½), where artanh undoes tanh. It rests at h = (0, ½):");
    Tape tape;
    const Array U{{8, -8}, {8, -8}}, b{-4, Real(4 + std::atanh(0.5))};  // U is W transposed: rows times U
    const Tensor h0 = tape.leaf(Array{{0, 0.5}});
    Tensor h = h0;
    std::vector<double> measured, theory;
    std::vector<std::vector<std::string>> rows{{"steps k", "‖∂h_k/∂h_0‖ tape", "2^(k−1) √200"}};
    for (int k = 1; k <= 15; ++k) {
        h = tanh(matmul(h, tape.constant(U)) + tape.constant(b));
        measured.push_back(spectral_norm(jacobian(h, h0)));
        theory.push_back(std::exp2(k - 1) * std::sqrt(200));
        if (k == 1 || k % 5 == 0) rows.push_back({number(k), number(measured.back()), number(theory.back())});
    }
    lesson.line(terminal::table(rows));
    lesson.say(
        "It doubles at each step: the slopes (1, ¾) make J = [8 8; −6 −6], and J² = 2J. The same example speaks "
        "against the remark (§3.1 there) that a spectral radius below 1 lets information die out.");
    lesson.check("03.explodes", "ρ(W) = 0: ‖∂h_k/∂h_0‖, k ≤ 15", le, measure::relative_difference(measured, theory), 0,
                 1e-9, "our own algebra; cf. Pascanu et al. 2013, §2.1 and §3.1");
    const std::vector<double> k = measure::range(1, 15);
    for (const auto& [name, y] : {std::pair{"radius 0", &measured}, {"radius 0 theory", &theory}})
        lesson.trace().series.push_back(
            {.name = name, .x_label = "steps k", .x = k, .y_label = "‖∂h_k/∂h_0‖", .y = *y});
}

static void rate_of_a_wide_network(Lesson& lesson) {
    lesson.step("256 units: the rate, computed before it is measured");
    lesson.say(
        "e_t = W tanh(e_{t−1}) + u_t, with W = σ times a random rotation, so that each singular value of W is σ, "
        "and inputs u of variance R. Theory, called mean field: each unit of e is normal with a variance q that "
        "reproduces itself, q = σ² E tanh² + R, and a step back multiplies squared gradients by χ = σ² E (1 − tanh²)² "
        "(E is the mean over that normal). Take σ = 1.5, R = 0.25. The norm of W says that gradients may grow by "
        "ln 1.5 = 0.41 a step.");
    lesson.predict("slope");
    const std::size_t n = 256;
    Generator generator(lesson.seed());
    const Array Q = init::orthogonal(generator, {n, n});
    std::vector<std::vector<std::string>> rows{{"σ = ‖W‖", "R", "q", "χ", "½ ln χ", "256 units", "measured", "ln ‖W‖"}};
    const auto row = [&](double sigma, double R, const MeanField& m, double rate) {
        rows.push_back({number(sigma), number(R), number(m.q, "%.4f"), number(m.chi, "%.4f"),
                        number(0.5 * std::log(m.chi), "%+.4f"), number(m.rate(n), "%+.4f"), number(rate, "%+.4f"),
                        number(std::log(sigma), "%+.4f")});
    };
    double slope = 0, theory_slope = 0;
    for (const auto& [sigma, R, id] : {std::tuple{1.0, 0.25, "1"}, {1.5, 0.25, "1_5"}, {2.0, 0.1, "2"}}) {
        const MeanField m = mean_field(sigma, R);
        const double rate = measured_rate(Q, sigma, R, 1000, generator), theory = m.rate(n);
        if (sigma == 1.5) slope = rate, theory_slope = theory;
        row(sigma, R, m, rate);
        lesson.check(std::string("03.rate_") + id, "‖W‖ = " + number(sigma) + ", R = " + number(R) + ": rate",
                     lesson.typical(Trace::Kind::slope), rate, theory, 0.005,
                     "mean field and its 1/n; our own integral");
    }
    lesson.line(terminal::table(rows));
    lesson.reveal("slope", slope, theory_slope);
    lesson.say(
        "½ ln χ is exact for infinitely many units. With 256, a step's factor is a mean of 256 numbers and wavers, and "
        "the mean of its logarithm lies a little lower: the column “256 units” is theory with that correction. "
        "What is left is luck, about ± 0.002 over the 1000 steps that are measured; the checks allow 0.005.");
    lesson.say(
        "A norm of 1.5 at every step, and the gradient slowly vanishes: the brakes of tanh take more than W "
        "gives. For R = 0.25 the border lies a little above σ = 1.5, not at 1:");
    std::vector<double> sigmas, rates, fine, theories;
    for (int k = 0; k < 10; ++k) {
        sigmas.push_back(0.5 + 0.2 * k);
        rates.push_back(measured_rate(Q, sigmas.back(), 0.25, 60, generator));
    }
    for (int k = 0; k <= 45; ++k) {
        fine.push_back(0.5 + 0.04 * k);
        theories.push_back(mean_field(fine.back(), 0.25).rate(n));
    }
    lesson.line(terminal::chart({{'-', "neither grows nor shrinks", std::vector<double>(fine.size(), 0.0), fine},
                                 {'.', "theory for 256 units", theories, fine},
                                 {'M', "measured by the tape, over 60 steps each", rates, sigmas}},
                                {"σ, every singular value of W"}, {"change of ln ‖∂L/∂e_t‖ a step back"}, 13));
    for (const auto& [name, x, y] : {std::tuple{"rate", &sigmas, &rates}, {"rate theory", &fine, &theories}})
        lesson.trace().series.push_back(
            {.name = name, .x_label = "σ", .x = *x, .y_label = "change of ln ‖∂L/∂e_t‖ a step back", .y = *y});
}

static void both_ways(Lesson& lesson) {
    lesson.step("Influence forwards is credit backwards");
    const std::size_t n = 16, T = 24;
    Generator generator(lesson.seed() + 1);
    const Array U = init::orthogonal(generator, {n, n}, 1.2), v = generator.normal({1, n}),
                d = generator.normal({1, n});
    std::vector<Array> x;
    for (std::size_t t = 0; t < T; ++t) x.push_back(generator.normal({1, n}, 0, 0.5));
    lesson.say(
        "16 tanh units, 24 inputs, L = v · h_24. Forwards: move input t by ±0.0001 in some direction d, run the "
        "network again (plain loops), see how L changes. Backwards: ask the tape for ∂L/∂x_t, times d.");

    std::vector<Array> states;  // of the plain loops, without a change
    const auto loss = [&](std::size_t moved, double by, bool keep = false) {
        Array h = filled({1, n}, 0);
        double L = 0;
        for (std::size_t t = 0; t < T; ++t) {
            Array input = x[t];
            for (std::size_t i = 0; i < n && t == moved; ++i) input(0, i) += Real(by) * d(0, i);
            h = by_hand::affine(h, U, input);
            for (Real& unit : h) unit = std::tanh(unit);
            if (keep) states.push_back(h);
        }
        for (std::size_t i = 0; i < n; ++i) L += double(h.data()[i]) * v.data()[i];
        return L;
    };
    loss(T, 0, true);

    Tape tape;
    std::vector<Tensor> inputs, h;
    Tensor state = tape.leaf(filled({1, n}, 0));
    for (const Array& one : x) {
        inputs.push_back(tape.leaf(one));
        h.push_back(state = tanh(inputs.back() + matmul(state, tape.constant(U))));
    }
    std::vector<Tensor> wanted = inputs;
    wanted.insert(wanted.end(), h.begin(), h.end());
    const Gradients g = tape.backward(sum(state * tape.constant(v)), wanted);

    std::vector<double> forwards, backwards, norms;
    double bound = std::log(norm(v)), excess = -1e308;
    for (std::size_t t = 0; t < T; ++t) {
        forwards.push_back((loss(t, 1e-4) - loss(t, -1e-4)) / 2e-4);
        double credit = 0;
        for (std::size_t i = 0; i < n; ++i) credit += double(g[inputs[t]].data()[i]) * d.data()[i];
        backwards.push_back(credit);
        norms.push_back(norm(g[h[t]]));
    }
    for (std::size_t t = T - 1; t-- > 0;) {
        bound += std::log(spectral_norm(by_hand::rnn_jacobian(U, states[t + 1])));
        excess = std::max(excess, std::log(norms[t]) - bound);
    }
    std::vector<std::vector<std::string>> rows{{"input t", "forwards", "backwards", "‖∂L/∂h_t‖"}};
    for (const std::size_t t : {0u, 7u, 15u, 23u})
        rows.push_back(
            {number(double(t + 1)), number(forwards[t], "%+.6f"), number(backwards[t], "%+.6f"), number(norms[t])});
    lesson.line(terminal::table(rows));
    lesson.say(
        "One number, seen from its two ends: decay is not the cause of weak influence, it is the same product. "
        "And it speaks of these weights only; training may change them. Of the norms this much is true: the "
        "gradient never exceeds the product of the norms ‖J_t‖.");
    lesson.check("03.influence", "Forwards − backwards, all t, relative", le,
                 measure::relative_difference(forwards, backwards), 0, 1e-6, "definition of a derivative");
    lesson.check("03.bound", "ln ‖∂L/∂h_t‖ − Σ ln ‖J‖: a bound", le, excess, 0, 1e-9, "Pascanu et al. 2013, §2.1");
}

int main(int argc, char** argv) {
    Lesson lesson("03_vanishing_gradients", "What holds a bit firmly lets no gradient through; ‖W‖ foretells neither.");
    lesson.prediction("slope", "By how much does ln ‖∂L/∂e_t‖ change a step back, for σ = 1.5 and R = 0.25?");
    lesson.exercise(
        "jacobian", "A unit h ← tanh(3h) rests at its positive fixed point. What is its Jacobian there?",
        [] { return latch_jacobian(3); }, 1e-4,
        "find h* first: begin with 1 and put h ← tanh(3h) a few times. Then J = 3 (1 − h*²), which is small.");
    lesson.damage("drop-slope", "theory takes J = w and forgets the slope of tanh");
    return lesson.run(argc, argv, [&] {
        brake(lesson);
        latch(lesson);
        explosion_without_eigenvalues(lesson);
        rate_of_a_wide_network(lesson);
        both_ways(lesson);
    });
}
