// Norms bound a product of Jacobians; the spectral radius sets its rate.
//
// All networks here are linear, h_t = h_{t−1} W_t, so that a step's Jacobian is W_t itself and products can be read
// off.
#include <algorithm>
#include <cmath>
#include <numbers>
#include "engine/gradcheck.hpp"
#include "engine/ops.hpp"
#include "engine/pullback.hpp"
#include "engine/spectrum.hpp"
#include "layers/init.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using terminal::number;
using enum Trace::Kind;

// A fault to put in: h W, whose pullback hands ȳ on as if W were the identity.
static Tensor straight_through(const Tensor& h, const Tensor& W) {
    return record("straight_through", {h}, matmul(detach(h), W).value(), saves::nothing,
                  [](Pullback& p) { p.x_bar(0) += p.y_bar(); });
}
using Product = Tensor (*)(const Tensor&, const Tensor&);

// ‖∂L/∂h_{T−k}‖ / ‖∂L/∂h_T‖ for k = 0 … T and L = v · h_T, by the tape. Step t uses W[t mod size].
static std::vector<double> lengths(const std::vector<Array>& W, std::size_t T, const Array& v, Product product) {
    Tape tape;
    std::vector<Tensor> matrices, h{tape.leaf(filled(v.shape(), 1))};
    for (const Array& one : W) matrices.push_back(tape.constant(one));
    for (std::size_t t = 0; t < T; ++t) h.push_back(product(h.back(), matrices[t % W.size()]));
    const Gradients g = tape.backward(sum(h.back() * tape.constant(v)), h);
    std::vector<double> result;
    for (std::size_t k = 0; k <= T; ++k) result.push_back(norm(g[h[T - k]]) / norm(v));
    return result;
}

// ∂h_k/∂h_0 as a matrix, by the tape: one backward for each of its rows.
static Array product_of(const std::vector<Array>& W, std::size_t k, Product product) {
    Tape tape;
    const Tensor h0 = tape.leaf(filled({1, W[0].shape(0)}, 1));
    Tensor h = h0;
    for (std::size_t t = 0; t < k; ++t) h = product(h, tape.constant(W[t % W.size()]));
    return jacobian(h, h0);
}

// A = [½ 10; 0 ½]: Aᵏ is [a b; 0 a] with a = 2^−k, b = 20 k 2^−k, whose norm is (b + √(b² + 4a²)) / 2.
static const Array bump{{0.5, 10}, {0, 0.5}};
static double bump_norm(double k) {
    const double a = std::exp2(-k), b = 20 * k * a;
    return (b + std::hypot(b, 2 * a)) / 2;
}

static void series(Lesson& lesson, const std::string& name, const std::vector<double>& y, double first = 0) {
    std::vector<double> k = measure::range(0, y.size() - 1);
    for (double& at : k) at += first;
    lesson.trace().series.push_back({.name = name, .x_label = "steps back k", .x = k, .y_label = "length", .y = y});
}
static std::string chart(const std::vector<terminal::Curve>& curves, const char* y) {
    return terminal::chart(curves, {"steps back, k"}, {y, true}, 13);
}
static std::vector<double> powers(double base, std::size_t T) {
    std::vector<double> p;
    for (std::size_t k = 0; k <= T; ++k) p.push_back(std::pow(base, double(k)));
    return p;
}

static void orthogonal_matrices(Lesson& lesson, Product product) {
    lesson.step("A rotation keeps every length; scaled by c it gives c a step");
    const std::size_t n = 32, T = 200;
    Generator generator(lesson.seed());
    const Array Q = init::orthogonal(generator, {n, n}), v = generator.normal({1, n});
    lesson.say(
        "W = c · Q, where Q is a random orthogonal matrix (a rotation, perhaps with a mirror) of 32 units. The "
        "gradient goes 200 steps back; theory says c^k after k steps, and nothing else.");
    std::vector<terminal::Curve> curves;
    std::vector<std::vector<std::string>> rows{{"c", "tape, k = 200", "c^200"}};
    double worst = 0;
    for (const auto& [c, letter] : {std::pair{0.9, 'a'}, {0.99, 'b'}, {1.0, 'c'}, {1.01, 'd'}, {1.1, 'e'}}) {
        const std::vector<double> y = lengths({Real(c) * Q}, T, v, product), theory = powers(c, T);
        for (std::size_t k = 0; k <= T; ++k) worst = std::max(worst, std::abs(y[k] / theory[k] - 1));
        rows.push_back({number(c), number(y[T]), number(theory[T])});
        const std::string name = "c = " + number(c);
        series(lesson, name, y);
        series(lesson, name + " theory", theory);
        if (c == 0.9 || c == 1 || c == 1.1) curves.push_back({letter, name, y, measure::range(0, T)});
    }
    lesson.line(terminal::table(rows));
    lesson.line(chart(curves, "‖∂L/∂h_{T−k}‖ / ‖∂L/∂h_T‖"));
    lesson.say(
        "So a recurrent network's gradients need neither vanish nor explode: c = 1 does neither. The course says "
        "that they decay or explode; that is the usual case, not a law.");
    double spread = 0;
    for (const double s : singular_values(product_of({Real(0.99) * Q}, 50, product)))
        spread = std::max(spread, std::abs(s / std::pow(0.99, 50) - 1));
    lesson.check("02.orthogonal", "W = cQ: length / c^k − 1, k ≤ 200", le, worst, 0, 1e-10,
                 "our own algebra: Q keeps lengths");
    lesson.check("02.singular_values", "W = .99Q: all σ of 50 steps / .99^50−1", le, spread, 0, 1e-10,
                 "our own algebra; cf. Saxe et al. 2013, abstract");

    const Array diagonal{{0.5, 0, 0}, {0, 1, 0}, {0, 0, 2}};
    const std::vector<double> g = numbers(product_of({diagonal}, 10, product));
    lesson.say(
        "Nor need all of a gradient do the same. W = diag(½, 1, 2), 10 steps: its three parts are multiplied by " +
        number(g[0]) + ", " + number(g[4]) + " and " + number(g[8]) + ".");
    lesson.check("02.diagonal", "diag(½,1,2)^10 − (2^−10, 1, 2^10)", exact0,
                 measure::relative_difference({g[0], g[4], g[8]}, {std::exp2(-10), 1, std::exp2(10)}), 0, 0, "powers");
}

static void norms_below_one(Lesson& lesson, Product product) {
    lesson.step("Every norm below 1: must the product vanish?");
    lesson.say(
        "The course: if each Jacobian has a norm below 1, the product shrinks exponentially. Take one unit whose "
        "factors are 1 − 1/4, 1 − 1/9, 1 − 1/16 … All are below 1. Their product:");
    std::vector<std::vector<std::string>> rows{{"factors", "product, by the tape", "(n + 2) / (2n + 2)"}};
    double last = 0;
    for (const std::size_t n : {1u, 10u, 100u, 1000u}) {
        std::vector<Array> factors;
        for (std::size_t k = 2; k <= n + 1; ++k)
            factors.push_back(filled({1, 1}, Real(1 - 1.0 / (double(k) * double(k)))));
        last = lengths(factors, n, filled({1, 1}, 1), product).back();
        rows.push_back(
            {number(double(n)), number(last, "%.8f"), number((double(n) + 2) / (2 * double(n) + 2), "%.8f")});
    }
    lesson.line(terminal::table(rows));
    lesson.say(
        "It settles at ½. What is true needs one bound for all: if every norm is at most η and η < 1, then k "
        "steps shrink to η^k or less (Pascanu et al. 2013, eqs 6–7). 100 random 16 × 16 matrices, a new one each "
        "step, scaled to the norm 0.9:");
    Generator generator(lesson.seed() + 1);
    std::vector<Array> J;
    for (int k = 0; k < 100; ++k) {
        Array W = generator.normal({16, 16});
        const Real scale = Real(0.9 / spectral_norm(W));
        for (Real& w : W) w *= scale;
        J.push_back(std::move(W));
    }
    const std::vector<double> y = lengths(J, 100, generator.normal({1, 16}), product);
    double excess = -1e308;
    for (std::size_t k = 1; k < y.size(); ++k) excess = std::max(excess, std::log(y[k]) - double(k) * std::log(0.9));
    lesson.line("after 100 steps: length " + number(y.back()) + ", bound 0.9^100 = " + number(std::pow(0.9, 100)));
    lesson.say("The bound holds, and is far from the rate: a vector seldom points where a matrix stretches most.");
    series(lesson, "norms of 0.9", y);
    series(lesson, "norms of 0.9 bound", powers(0.9, 100));
    lesson.check("02.settles", "Factors 1 − 1/k², 1000 of them", eq, last, 1002.0 / 2002, 1e-12, "telescoping product");
    lesson.check("02.uniform_bound", "All norms .9: ln length − k ln .9", le, excess, 0, 1e-12,
                 "Pascanu et al. 2013, eqs 6–7");
}

static void norms_above_one(Lesson& lesson, Product product) {
    lesson.step("Every norm above 1: must the product explode?");
    lesson.say(
        "The course: if norms exceed 1, gradients explode. Three pairs of steps, each matrix with a norm above 1:");
    const std::vector<Array> nilpotent{Array{{0, 3}, {0, 0}}}, turns{Array{{0, -0.5}, {1.25, 0}}},
        blind{Array{{2, 0}, {0, 0}}, Array{{0, 0}, {0, 2}}};
    const double two_nilpotent = spectral_norm(product_of(nilpotent, 2, product)),
                 two_blind = spectral_norm(product_of(blind, 2, product)),
                 forty_turns = spectral_norm(product_of(turns, 40, product));
    lesson.line(
        terminal::table({{"matrices", "norm of each", "steps", "norm of the product"},
                         {"[0 3; 0 0] twice", number(spectral_norm(nilpotent[0])), "2", number(two_nilpotent)},
                         {"[2 0; 0 0], then [0 0; 0 2]", number(spectral_norm(blind[0])), "2", number(two_blind)},
                         {"[0 −½; 1¼ 0] 40 times", number(spectral_norm(turns[0])), "40", number(forty_turns)}}));
    lesson.say(
        "A matrix may stretch one direction and turn it into one that the next matrix shrinks. A norm above 1 is "
        "necessary for explosion, not sufficient.");
    lesson.check("02.nilpotent", "Norm 3, twice: norm of the product", exact0, two_nilpotent, 0, 0, "algebra");
    lesson.check("02.blind", "Norm 2, then 2: norm of the product", exact0, two_blind, 0, 0, "algebra");
    lesson.check("02.turn", "Norm 1.25, 40 times: √.625^40", eq, forty_turns / std::pow(0.625, 20), 1, 1e-12,
                 "the square is −.625 times the identity");

    lesson.step("First growth, then decay");
    lesson.say(
        "A = [½ 10; 0 ½] has only the eigenvalue ½, and a norm of 10.02. It is far from symmetric, and its "
        "powers remember that for a while:");
    std::vector<std::vector<std::string>> rows{{"k", "‖A^k‖ by the tape", "closed form", "½^k"}};
    std::vector<double> y, theory;
    for (std::size_t k = 1; k <= 20; ++k) {
        y.push_back(spectral_norm(product_of({bump}, k, product)));
        theory.push_back(bump_norm(double(k)));
        if (k <= 2 || k == 5 || k % 10 == 0)
            rows.push_back({number(double(k)), number(y.back()), number(theory.back()), number(std::exp2(-double(k)))});
    }
    lesson.line(terminal::table(rows));
    lesson.say("At first ten times as long; below 1 only from some k on. From which? (the exercise)");
    series(lesson, "‖A^k‖", y, 1);
    series(lesson, "‖A^k‖ theory", theory, 1);
    lesson.check("02.bump", "‖A^k‖, k = 1 … 20: off the closed form", le, measure::relative_difference(y, theory), 0,
                 1e-10, "our own algebra");
}

static void gaussian_matrices(Lesson& lesson, Product product) {
    lesson.step("A random network: the norm says explode, the radius says vanish");
    const std::size_t n = 64, T = 400, from = 100;
    Generator generator(lesson.seed() + 2);
    const Array W = generator.normal({n, n}), v = generator.normal({1, n});
    const double W_radius = spectral_radius(W);
    lesson.say(
        "W has 64 × 64 normal numbers, scaled so that its spectral radius ρ, the largest absolute value of an "
        "eigenvalue, is 0.9. Its norm, the most by which it stretches a vector, is then " +
        number(0.9 * spectral_norm(W) / W_radius, "%.3f") + ", well above 1.");
    lesson.predict("slope");
    std::vector<std::vector<std::string>> rows{{"radius ρ", "ln ρ", "norm ‖W‖", "ln ‖W‖", "slope measured"}};
    std::vector<terminal::Curve> curves;
    double slope = 0, rate = 0, above = 0;
    for (const double g : {0.45, 0.9, 1.1}) {
        Array scaled = W;
        for (Real& w : scaled) w *= Real(g / W_radius);
        const std::vector<double> y = lengths({scaled}, T, v, product);
        std::vector<double> x, log_y;
        for (std::size_t k = from; k <= T; ++k) x.push_back(double(k)), log_y.push_back(std::log(y[k]));
        const double size = spectral_norm(scaled), radius = spectral_radius(scaled), fitted = measure::slope(x, log_y);
        if (g == 0.9) slope = fitted, above = size, rate = std::log(lesson.broken("norm-as-rate") ? size : radius);
        rows.push_back({number(radius, "%.4f"), number(std::log(radius), "%+.4f"), number(size, "%.4f"),
                        number(std::log(size), "%+.4f"), number(fitted, "%+.4f")});
        series(lesson, "Gaussian, ρ = " + number(g), y);
        series(lesson, "Gaussian, ρ = " + number(g) + " theory", powers(radius, T));
        if (g == 0.9) {
            series(lesson, "Gaussian, ρ = 0.9 bound", powers(size, T));
            curves.push_back({'n', "‖W‖^k: what the norm would allow", powers(size, 60), measure::range(0, 60)});
            curves.push_back({'r', "ρ^k: the rate of the spectral radius", powers(radius, 60), measure::range(0, 60)});
            curves.push_back({'t', "the tape", {y.begin(), y.begin() + 61}, measure::range(0, 60)});
        }
    }
    lesson.line(terminal::table(rows));
    lesson.say(
        "The slope is the change of ln ‖∂L/∂h‖ a step, fitted from 100 to 400 steps back. For ρ = 0.9, the first 60 "
        "steps:");
    lesson.line(chart(curves, "length of the gradient, relative"));
    lesson.reveal("slope", slope, rate);
    lesson.check("02.slope", "ρ = .9: slope of ln length, ln ρ", lesson.typical(Trace::Kind::slope), slope, rate, 3e-3,
                 "Pascanu et al. 2013, §2.1, for linear networks");
    lesson.check("02.norm_above", "ρ = .9: the norm ‖W‖ is above 1 …", ge, above, 1, 0, "singular values");
    lesson.check("02.vanishes", "… and yet the slope is below 0", le, slope, 0, 0, "measured");
}

static void random_products(Lesson& lesson, Product product) {
    lesson.step("A new random matrix at every step");
    lesson.say(
        "Now no two steps share a matrix: 2 × 2, normal numbers of variance ½. On average ‖J v‖² equals ‖v‖², as "
        "if lengths stayed. But a typical gradient follows the mean of ln ‖J v‖, its Lyapunov exponent: for two "
        "units that is ½ (ψ(1) + ln 1) = −γ/2, where γ = 0.5772 is Euler's constant.");
    Generator generator(lesson.seed() + 3);
    std::vector<double> a_step, squares;
    for (int run = 0; run < 400; ++run) {
        std::vector<Array> J;
        for (int k = 0; k < 50; ++k) J.push_back(generator.normal({2, 2}, 0, std::sqrt(0.5)));
        const std::vector<double> y = lengths(J, 50, generator.normal({1, 2}), product);
        a_step.push_back(std::log(y.back()) / 50);
        for (std::size_t k = 1; k < y.size(); ++k) squares.push_back(std::pow(y[k] / y[k - 1], 2));
    }
    const double rate = measure::mean(a_step), theory = -std::numbers::egamma / 2;
    lesson.line("mean of ‖J v‖²/‖v‖²: " + number(measure::mean(squares), "%.3f") +
                "     mean of ln ‖J v‖/‖v‖: " + number(rate, "%+.4f") + " (theory " + number(theory, "%+.4f") + ")");
    lesson.say("An average that stays hides a typical gradient that vanishes: few runs explode, most die.");
    lesson.check("02.lyapunov", "Random 2 × 2: mean ln factor a step", lesson.typical(Trace::Kind::slope), rate, theory,
                 0.02, "E ln χ² of two degrees of freedom: our own derivation");
    lesson.check("02.mean_square", "Random 2 × 2: mean squared factor", lesson.typical(Trace::Kind::slope),
                 measure::mean(squares), 1, 0.05, "variance of a sum");
}

int main(int argc, char** argv) {
    Lesson lesson("02_jacobian_products", "Norms bound a product of Jacobians; the spectral radius sets its rate.");
    lesson.prediction("slope", "By how much does ln ‖∂L/∂h‖ change a step, for ρ = 0.9? (+0.5 grows, −0.5 shrinks)");
    lesson.exercise(
        "k", "A = [½ 10; 0 ½]. What is the first k with ‖A^k‖ < 1?",
        [] {
            std::size_t k = 1;
            while (spectral_norm(product_of({bump}, k, matmul)) >= 1) ++k;
            return double(k);
        },
        0, "A^k = [½^k 20k·½^k; 0 ½^k], so its norm is a little above 20k·½^k: try k = 5, 6, 7 …");
    lesson.damage("straight-through", "the pullback of h W hands ȳ on unchanged, as if W were the identity");
    lesson.damage("norm-as-rate", "ln ‖W‖ is taken for the rate in place of ln ρ, as the course text would have it");
    return lesson.run(argc, argv, [&] {
        const Product product = lesson.broken("straight-through") ? Product(straight_through) : Product(matmul);
        orthogonal_matrices(lesson, product);
        norms_below_one(lesson, product);
        norms_above_one(lesson, product);
        gaussian_matrices(lesson, product);
        random_products(lesson, product);
    });
}
