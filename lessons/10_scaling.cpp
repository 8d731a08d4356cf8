// Dot products grow as √d and freeze the softmax; 1/√d keeps it soft.
#include <algorithm>
#include <cmath>
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/reduce.hpp"
#include "engine/ops/softmax.hpp"
#include "layers/attention.hpp"
#include "layers/optimizer.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using enum Trace::Kind;
using Numbers = std::vector<double>;
using terminal::number;

static const std::vector<std::size_t> widths{4, 16, 64, 256, 1024};
static constexpr std::size_t T = 16;

static Numbers logs(const Numbers& x) {
    Numbers y;
    for (const double v : x) y.push_back(std::log(v));
    return y;
}
static void series(Lesson& lesson, const std::string& name, const Numbers& x, const std::string& y_label,
                   const Numbers& y, const std::string& x_label = "key width d") {
    lesson.trace().series.push_back({.name = name, .x_label = x_label, .x = x, .y_label = y_label, .y = y});
}
// How many standard errors the mean of a sample lies from what it should be.
static double errors_off(const Numbers& sample, double theory) {
    return std::abs(measure::mean(sample) - theory) / measure::standard_error(sample);
}

// ---- Theory: integrals over the normal distribution, by sums on a fine grid

static double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }
static double normal_share(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }
template <class F> static double integral(F f) {
    double total = 0;
    for (int i = -4000; i <= 4000; ++i) total += f(i * 0.0025) * 0.0025;
    return total;
}
// The largest of n standard normal numbers, on average.
static double mean_maximum(double n) {
    return integral([&](double x) { return x * n * normal_density(x) * std::pow(normal_share(x), n - 1); });
}
// E 1/‖q‖ for q of d standard normal entries.
static double mean_inverse_length(double d) {
    return std::exp(std::lgamma((d - 1) / 2) - std::lgamma(d / 2)) / std::sqrt(2.0);
}

// ---- 1. The scores

static void histogram(Lesson& lesson) {
    lesson.step("How large is q · k?");
    lesson.say(
        "Let all entries of queries and keys be independent, of mean 0 and variance 1, as good initial weights make "
        "them. "
        "A score q · k is a sum of d products, each of variance 1.");
    lesson.predict("variance");
    Generator generator(lesson.seed());
    const std::size_t draws = 3000;
    Numbers at, bins(24), x, variances;
    std::vector<terminal::Curve> curves;
    for (std::size_t b = 0; b < bins.size(); ++b) bins[b] = 2 * double(b) - 23;
    double worst = 0, at_64 = 0;
    std::vector<std::vector<std::string>> rows{{"d", "variance of q · k", "theory", "typical |q · k|", "of q · k/√d"}};
    for (const std::size_t d : widths) {
        Numbers scores(draws, 0.0), squares, count(bins.size(), 0.0), scaled_count = count;
        for (double& s : scores)
            for (std::size_t i = 0; i < d; ++i) s += generator.normal() * generator.normal();
        for (const double s : scores) {
            squares.push_back(s * s);
            const auto add = [&](Numbers& to, double v) {
                if (std::abs(v) < 24) to[std::size_t((v + 24) / 2)] += 1 / double(draws);
            };
            add(count, s), add(scaled_count, s / std::sqrt(double(d)));
        }
        const double variance = measure::mean(squares);
        if (d == 64) at_64 = variance;
        worst = std::max(worst, errors_off(squares, double(d)));
        x.push_back(double(d)), variances.push_back(variance);
        rows.push_back({std::to_string(d), number(variance, "%.4g"), std::to_string(d),
                        number(std::sqrt(variance), "%.3g"), number(std::sqrt(variance / double(d)), "%.3f")});
        if (d == 4 || d == 64) curves.push_back({d == 4 ? '4' : '6', "d = " + std::to_string(d), count, bins});
        if (d == 64) curves.push_back({'s', "d = 64, divided by √64", scaled_count, bins});
    }
    lesson.line(terminal::table(rows));
    lesson.line(terminal::chart(curves, {"score"}, {"share of draws, in bins 2 wide"}, 13));
    lesson.reveal("variance", at_64, 64);
    lesson.check("10.variance", "Var q·k − d, in standard errors", lesson.typical(le), worst, 0, 4,
                 "Vaswani et al. 2017, fn. 4");
    series(lesson, "variance", x, "variance of q · k", variances);
    series(lesson, "variance theory", x, "variance of q · k", x);

    Tape tape;
    const Tensor q = tape.constant(generator.normal({1, 3, 64})), k = tape.constant(generator.normal({1, 5, 64}));
    const Tensor gap = (lesson.broken("no-scale") ? DotScore()(q, k) : ScaledDotScore()(q, k)) * 8 - DotScore()(q, k);
    lesson.check("10.factor", "Scaled score · √64 − dot score", le, norm(gap.value()), 0, 1e-12, "1/√d");

    lesson.say(
        "Is a score normally distributed, then? Nearly. Its excess kurtosis (0 for the normal: how heavy the tails "
        "are) "
        "is ((E x⁴)² − 3)/d, which depends on the entries: 6/d for normal ones. At d = 8:");
    double off = 0;
    std::vector<std::vector<std::string>> kurtosis{{"entries", "excess kurtosis", "standard error", "theory"}};
    for (const int kind : {0, 1, 2}) {
        Numbers sample(120000, 0.0);
        const auto entry = [&] {
            return kind == 0                   ? generator.normal()
                   : kind == 1                 ? generator.uniform(-std::sqrt(3.0), std::sqrt(3.0))
                   : generator.uniform() < 0.5 ? -1.0
                                               : 1.0;
        };
        for (double& s : sample) {
            for (int i = 0; i < 8; ++i) s += entry() * entry();
            s = s * s * s * s / 64 - 3;
        }
        const double fourth = kind == 0 ? 3 : kind == 1 ? 9 / 5. : 1, theory = (fourth * fourth - 3) / 8;
        off = std::max(off, errors_off(sample, theory));
        kurtosis.push_back({kind == 0   ? "normal"
                            : kind == 1 ? "uniform"
                                        : "+1 or −1",
                            number(measure::mean(sample), "%+.3f"), number(measure::standard_error(sample), "%.3f"),
                            number(theory, "%+.3f")});
    }
    lesson.line(terminal::table(kurtosis));
    lesson.check("10.kurtosis", "Kurtosis − theory, in standard errors", lesson.typical(le), off, 0, 4,
                 "our own algebra");
}

// ---- 2. What softmax makes of them

// tr J = Σ_i ∂α_i/∂s_i of each row of scores (n,T), by one pullback a column.
static Numbers traces(const Array& scores) {
    Tape tape;
    const Tensor s = tape.leaf(scores), alpha = softmax(s, -1);
    const std::size_t n = s.shape(0), keys = s.shape(1);
    Numbers sums(n, 0.0);
    for (std::size_t i = 0; i < keys; ++i) {
        Array seed = filled({n, keys}, 0);
        for (std::size_t row = 0; row < n; ++row) seed(row, i) = 1;
        const Gradients g = tape.backward(alpha, {s}, {.seed = std::move(seed)});
        for (std::size_t row = 0; row < n; ++row) sums[row] += g[s](row, i);
    }
    return sums;
}

struct Scores {
    Array values;     // (n,T)
    Numbers lengths;  // ‖q‖ of each row, times the scale
};
// Given q, the scores of n normal keys are ‖q‖ times standard normal numbers, so the keys need not be drawn.
static Scores draw(Generator& generator, std::size_t n, std::size_t keys, std::size_t d, double scale) {
    Scores s{filled({n, keys}, 0), {}};
    for (std::size_t row = 0; row < n; ++row) {
        double square = 0;
        for (std::size_t i = 0; i < d; ++i) square += std::pow(generator.normal(), 2);
        s.lengths.push_back(scale * std::sqrt(square));
        for (std::size_t i = 0; i < keys; ++i) s.values(row, i) = Real(s.lengths.back() * generator.normal());
    }
    return s;
}

static void saturation(Lesson& lesson) {
    lesson.step("What softmax makes of such scores: its slope tr J = Σ_i ∂α_i/∂s_i");
    lesson.say(
        "16 keys, a random query. Scores pass gradients on as far as the softmax has slope; at a certain choice (one "
        "weight 1, the others 0) there is none. For normal scores of deviation σ we find E tr J = E⟨s, α⟩/σ², and as a "
        "weighted mean is at most the maximum, E tr J ≤ m_T/σ, m_T being the mean maximum of T standard normal "
        "numbers: "
        "a fall as 1/√d, our own derivation.");
    lesson.predict("fall");
    Generator generator(lesson.seed());
    const std::size_t n = 3000;
    Numbers x, mean, median, scaled, bound, roots;
    double stein = 0, excess = -1e300;
    std::vector<std::vector<std::string>> rows{{"d", "mean tr J", "share of the bound", "median tr J", "mean, scaled"}};
    for (const std::size_t d : widths) {
        const Scores plain = draw(generator, n, T, d, 1);
        Array divided = plain.values;
        if (!lesson.broken("no-scale")) divided *= Real(1 / std::sqrt(double(d)));
        const Numbers slopes = traces(plain.values);
        Tape tape;
        const Tensor s = tape.constant(plain.values), by_alpha = sum(s * softmax(s, -1), -1), top = max(s, -1);
        Numbers surplus;  // of tr J over ⟨s, α⟩/σ², whose mean is 0
        for (std::size_t row = 0; row < n; ++row) {
            surplus.push_back(slopes[row] - by_alpha.value()(row) / std::pow(plain.lengths[row], 2));
            excess = std::max(excess, double(by_alpha.value()(row)) - double(top.value()(row)));
        }
        stein = std::max(stein, errors_off(surplus, 0));
        x.push_back(double(d)), roots.push_back(std::sqrt(double(d)));
        mean.push_back(measure::mean(slopes)), median.push_back(measure::median(slopes));
        scaled.push_back(measure::mean(traces(divided)));
        bound.push_back(mean_maximum(T) * mean_inverse_length(double(d)));
        rows.push_back({std::to_string(d), number(mean.back(), "%.4f"), number(mean.back() / bound.back(), "%.2f"),
                        number(median.back(), "%.1e"), number(scaled.back(), "%.4f")});
    }
    lesson.line(terminal::table(rows));
    lesson.line(
        terminal::chart({{'a', "mean", mean, x}, {'m', "median", median, x}, {'s', "mean, scaled by 1/√d", scaled, x}},
                        {"key width d", true}, {"tr J at 16 keys", true}, 15));
    lesson.reveal("fall", mean[1] / mean[4], bound[1] / bound[4]);
    const Numbers tail{mean.begin() + 1, mean.end()}, tail_x{x.begin() + 1, x.end()};
    const double power = measure::slope(logs(tail_x), logs(tail)), flat = measure::slope(logs(x), logs(scaled)),
                 typical = measure::slope({roots.begin() + 1, roots.end()}, logs({median.begin() + 1, median.end()}));
    lesson.say("The mean falls as a power of d, d^" + number(power, "%.2f") +
               ", and is carried by few lucky queries. The typical "
               "one fares far worse: the median's logarithm falls by about " +
               number(-typical, "%.2f") +
               " for each unit of √d. Divided by √d, nothing depends on d. (A share of the bound just above 1 is "
               "sampling noise: "
               "the bound is that tight.)");
    lesson.check("10.stein", "E tr J − E⟨s,α⟩/σ², in standard errors", lesson.typical(le), stein, 0, 4,
                 "our own derivation");
    lesson.check("10.bound", "⟨s,α⟩ − max s, largest of all draws", le, excess, 0, 1e-12, "a mean, and a maximum");
    lesson.check("10.power", "Unscaled: slope of ln mean tr J", lesson.typical(slope), power, -0.5, 0.05, "m_T/√d");
    lesson.check("10.median", "Unscaled: ln median tr J for each √d", target, typical, -0.37, 0.05, "our own fit");
    lesson.check("10.scaled", "Scaled: slope of ln mean tr J", slope, flat, 0, 0.03, "variance 1 at every d");
    series(lesson, "mean slope", x, "Σ ∂α_i/∂s_i", mean), series(lesson, "median slope", x, "Σ ∂α_i/∂s_i", median);
    series(lesson, "mean slope scaled", x, "Σ ∂α_i/∂s_i", scaled),
        series(lesson, "mean slope theory", x, "Σ ∂α_i/∂s_i", bound);

    // Two keys: tr J = 2 α(1−α) of a score difference of variance 2, which can be integrated.
    const double two = integral([](double z) {
        const double a = 1 / (1 + std::exp(-std::sqrt(2.0) * z));
        return 2 * a * (1 - a) * normal_density(z);
    });
    const Numbers of_two = traces(draw(generator, n, 2, 1024, lesson.broken("no-scale") ? 1 : 1 / 32.0).values);
    lesson.say("With two keys and the scale the mean can be integrated: " + number(two, "%.4f") +
               "; measured at d = 1024 " + number(measure::mean(of_two), "%.4f") + ".");
    lesson.check("10.two_keys", "Two keys, scaled: |tr J − integral|", le, std::abs(measure::mean(of_two) - two), 0,
                 0.02, "numerical integral");
}

// ---- 3. Learning with and without the scale

// 16 queries learn to find their keys by gradient descent. The share that ends with weight above 0.9 on its own.
static double solved(std::size_t d, double scale, Generator generator) {
    Parameter Q(generator.normal({T, d}), "Q");
    const Array K = generator.normal({T, d});
    Array identity = filled({T, T}, 0);
    for (std::size_t i = 0; i < T; ++i) identity(i, i) = 1;
    struct Model {
        Parameter& Q;
        void for_each_parameter(const std::string&, const Visitor& f) { f("Q", Q); }
    } model{Q};
    SGD sgd({.rate = 2 / (scale * scale * double(d))});  // so that a step moves the scores alike at every d and scale
    double found = 0;
    for (int step = 0; step <= 500; ++step) {
        Tape tape;
        const Tensor alpha = softmax(matmul_transposed(tape.leaf(Q), tape.constant(K)) * Real(scale), -1);
        if (step == 500)
            for (std::size_t i = 0; i < T; ++i) found += alpha.value()(i, i) > 0.9;
        const Tensor loss = mse(alpha, tape.constant(identity), Reduction::none);  // values are one-hot, so c = α
        const Gradients g = tape.backward(sum(loss) * Real(0.5));
        sgd.step(model, g);
    }
    return found / T;
}

static void learning(Lesson& lesson) {
    lesson.step("Sixteen look-ups learn: with the scale and without");
    Generator generator(lesson.seed());
    Numbers x, with, without;
    terminal::Progress progress("look-ups");
    const std::size_t repeats = 10;
    std::vector<std::vector<std::string>> rows{{"d", "found, scaled", "found, unscaled"}};
    for (const std::size_t d : widths) {
        Numbers a, b;
        for (std::size_t r = 0; r < repeats; ++r) {
            const Generator same = generator.split();
            a.push_back(solved(d, 1 / std::sqrt(double(d)), same)), b.push_back(solved(d, 1, same));
            progress.at((double(x.size()) + double(r) / repeats) / double(widths.size()));
        }
        x.push_back(double(d)), with.push_back(measure::mean(a)), without.push_back(measure::mean(b));
        rows.push_back({std::to_string(d), number(with.back(), "%.3f"), number(without.back(), "%.3f")});
    }
    lesson.say(
        "Each of 16 queries learns to find its own among 16 random keys, in 500 steps of gradient descent. The "
        "learning "
        "rate is set so that a step moves the scores equally far at each d. Found: the share of queries with more than "
        "0.9 "
        "on their key (chance: 1/16), mean of 10 repeats.");
    lesson.line(terminal::table(rows));
    lesson.line(terminal::chart({{'s', "scaled", with, x}, {'u', "unscaled", without, x}}, {"key width d", true},
                                {"share found"}, 11));
    lesson.say("(At d = 4 both fail alike: sixteen keys are too many for four dimensions.)");
    lesson.check("10.learns_scaled", "Scaled: found at d = 1024", target, with[4], 1, 0.01, "our own experiment");
    lesson.check("10.learns_unscaled", "Unscaled: found at d = 1024", target, without[4], 0.1, 0.1,
                 "our own experiment");
    lesson.check("10.learns_gap", "Scaled − unscaled, found at d = 256", target, with[3] - without[3], 0.85, 0.15,
                 "our own experiment");
    series(lesson, "found scaled", x, "share found", with), series(lesson, "found unscaled", x, "share found", without);
}

static void which(Lesson& lesson) {
    lesson.step("Which score for which width? The course's table, and measurements");
    lesson.say(
        "The course's card recommends the plain dot product for large d and the additive score for small d, with "
        "borders at "
        "128 and 256. A few lines earlier it explains why √d is crucial at large d. The second is what measurements "
        "bear "
        "out. English-German translation, BLEU by attention size (Britz et al. 2017; unscaled):");
    lesson.line(terminal::table({{"attention size", "128", "256", "512", "1024"},
                                 {"multiplicative", "22.03", "22.33", "21.78", "18.22"},
                                 {"additive", "22.23", "22.33", "22.47", "22.10"}}));
    lesson.say(
        "Without the scale the additive score is ahead or level everywhere, and most at the largest size; with it we "
        "know "
        "of no such border. (The scale only sets the start: nothing keeps scores small while a model learns.)" +
        std::string(lesson.quick() ? " The full run also trains look-ups with and without the scale." : ""));
}

int main(int argc, char** argv) {
    Lesson lesson("10_scaling", "Dot products grow as √d and freeze the softmax; 1/√d keeps it soft.");
    lesson.prediction("variance", "d = 64: what is the variance of q · k?");
    lesson.prediction("fall", "From d = 16 to d = 1024: the mean slope of the softmax shrinks by what factor?");
    lesson.exercise(
        "bound", "T = 16, d = 64: m_16 = 1.7659914 and E 1/‖q‖ = 0.1264891. The bound on E tr J?",
        [] { return mean_maximum(16) * mean_inverse_length(64); }, 2e-4,
        "σ is ‖q‖, so the bound is the mean of m_T/‖q‖");
    lesson.damage("no-scale", "the scores are not divided by √d");
    return lesson.run(argc, argv, [&] {
        histogram(lesson);
        saturation(lesson);
        if (!lesson.quick()) learning(lesson);
        which(lesson);
    });
}
