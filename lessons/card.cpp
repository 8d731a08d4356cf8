// The course's quick-reference card, with every number on it measured just now, on this machine.
#include <chrono>
#include <cmath>
#include <iostream>
#include "engine/trace.hpp"
#include "lessons/evidence.hpp"
#include "lessons/flags.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using namespace lookback::evidence;
using terminal::fit;
using terminal::fit_right;
using terminal::number;
using terminal::Style;

// Every line of the card has 80 columns at most.
static std::string tiny(double x) { return x == 0 ? "0" : number(x, "%.0e"); }
static void section(const std::string& name, const std::string& what) {
    std::cout << '\n' << terminal::styled(Style::heading, name) << "  " << what << '\n';
}
static void text(const std::string& line) { std::cout << "  " << line << '\n'; }
static void row(const std::string& what, const std::string& measured, const std::string& theory, int lesson) {
    char where[16];
    std::snprintf(where, sizeof where, "%02d", lesson);
    std::cout << "  " << fit(what, 42) << fit_right(measured, 12) << "  " << fit(theory, 18) << "  " << where << '\n';
}

static void problem(std::uint64_t seed) {
    constexpr std::size_t T = 50;
    section("PROBLEM", "an RNN's gradients fade, its state is small, its steps wait");
    const Decay rnn = rnn_decay(seed, T);
    row("Gradient kept a step back: tanh RNN", number(rnn.factor, "× %.3f"), number(rnn.theory, "about %.3f"), 3);
    row("… cell of an LSTM, weights 0, bias b_f = 1", number(lstm_factor(seed, T, 1), "× %.3f"),
        number(1 / (1 + std::exp(-1.0)), "σ(1) = %.3f"), 4);
    row("… the same, b_f = 3", number(lstm_factor(seed, T, 3), "× %.3f"),
        number(1 / (1 + std::exp(-3.0)), "σ(3) = %.3f"), 4);
    row("… tanh RNN, through 49 steps", number(rnn.norms[0], "%.0e"),
        number(rnn.factor, "%.3f^49 = ") + number(std::pow(rnn.factor, double(T - 1)), "%.0e"), 3);
    row("1000 factors, all below 1, multiplied", number(settling_product(1000), "%.4f"),
        number(1002. / 2002, "%.4f (not 0)"), 2);
    row("Of 40 inputs, 8 linear units keep", std::to_string(remembered(seed, 8, 40)), "8", 5);
    row("Operations in a row, 50 words: RNN", std::to_string(way_back(Reader::rnn, seed, T).longest), "50 steps + 2",
        13);
}

static void equation(std::uint64_t seed) {
    section("EQUATION", "Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V, softmax over the keys");
    text("Q (B,T_q,d_k)   K (B,T_k,d_k)   V (B,T_k,d_v)   →   contexts (B,T_q,d_v)");
    row("Tape − plain loops, the largest", tiny(plain_loops_difference(seed)), "0 to rounding", 7);
}

static void scores(std::uint64_t seed) {
    constexpr std::size_t T = 128, d = 64;
    section("SCORING FUNCTIONS", "128 queries, 128 keys, d = 64; keys projected once");
    const std::vector<ScoreCost> costs = score_costs(seed, T, d);
    const char* const formulas[] = {"q · k", "q · k / √d", "q W k", "v · tanh(W_q q + W_k k)"};
    text(terminal::styled(Style::bold, fit("", 37) + fit_right("parameters", 10) + fit_right("FLOPs/pair", 12) +
                                           fit_right("MB", 7) + fit_right("time", 11)));
    for (std::size_t i = 0; i < costs.size(); ++i)
        text(fit(costs[i].name, 12) + fit(formulas[i], 25) + fit_right(number(costs[i].parameters), 10) +
             fit_right(number(costs[i].flops / double(T * T), "%.0f"), 12) +
             fit_right(number(costs[i].bytes / 1e6, "%.2f"), 7) +
             fit_right(number(costs[i].seconds / costs[0].seconds, "× %.1f"), 11));
    text("One pair alone costs d²; of many, each costs O(d), the additive one too. Its");
    text("price is the tanh of T·T·d numbers, in time and in memory (lesson 09).");
    row("Variance of q · k, d = 64", number(dot_spread(seed, 64, false).variance, "%.1f"), "64", 10);
    row("… of q · k / √d", number(dot_spread(seed, 64, true).variance, "%.2f"), "1", 10);
    row("Softmax's slope Σ ∂α_i/∂s_i, d = 1024: dot", number(dot_spread(seed, 1024, false).sensitivity, "%.3f"),
        "falls as 1/√d", 10);
    row("… scaled", number(dot_spread(seed, 1024, true).sensitivity, "%.3f"), "as at any d", 10);
}

static void softmax_and_context(std::uint64_t seed) {
    section("SOFTMAX", "α_i = exp(s_i) / Σ_j exp(s_j)");
    row("|Σ α_i − 1|, the largest of 500", tiny(weight_sum_error(seed)), "0 to rounding", 7);
    row("‖∂α/∂s‖, the largest of 100", number(steepest_softmax(seed), "%.3f"), "at most 1/2", 7);
    row("… of two equal scores", number(steepest_softmax_at_two_equal_scores(), "%.3f"), "1/2", 7);
    row("Weight of a score 5 above 9 others", number(top_weight(10, 5), "%.3f"),
        number(1 / (1 + 9 * std::exp(-5.0)), "%.3f"), 7);
    row("… above 999 others", number(top_weight(1000, 5), "%.3f"), number(1 / (1 + 999 * std::exp(-5.0)), "%.3f"), 7);
    row("A weight is exactly 0 from this gap on", number(vanishing_gap(), "%.1f"), "708 to 745", 7);

    section("CONTEXT", "c = Σ_i α_i v_i");
    row("Weight 0.8 on a value of 0 adds to c", number(contribution_of_heavy_zero()), "0", 12);
    row("10 words, 4 numbers each: free directions", std::to_string(free_directions(seed, 10, 4)), "T − (d_v + 1) = 5",
        5);
    text("Weights can move along these and leave c as it is: they are not unique.");
}

static void improvements(std::uint64_t seed) {
    section("WHAT ATTENTION IMPROVES", "and what it costs");
    const Way rnn = way_back(Reader::rnn, seed, 50), near = way_back(Reader::rnn_with_attention, seed, 25),
              far = way_back(Reader::rnn_with_attention, seed, 50), self = way_back(Reader::self_attention, seed, 50);
    const auto operations = [](std::size_t n) { return std::to_string(n) + " ops"; };
    row("Way back to word 1 of 50: RNN", operations(rnn.shortest), "O(T)", 8);
    row("… RNN with attention, of 25 words", operations(near.shortest), "O(1)", 8);
    row("… RNN with attention, of 50 words", operations(far.shortest), "O(1), the same", 8);
    row("What arrives there: RNN", number(rnn.strength, "%.0e"), "", 8);
    row("… RNN with attention", number(far.strength, "%.0e"), "stronger, not 1", 8);
    row("Gradient's share at 1 of 50 equal weights", number(share_at_gap(50, 0), "%.4f"), "1/T = 0.02", 8);
    row("… its score 5 below, 10 below",
        number(share_at_gap(50, 5), "%.0e") + ", " + number(share_at_gap(50, 10), "%.0e"), "as e^−gap", 8);
    row("Operations in a row: self-attention", operations(self.longest), "none waits", 13);
    row("FLOPs, self-attention over RNN: T = 64", number(self_attention_flops(64, 64) / rnn_flops(64, 64), "× %.2f"),
        "2 + T/d", 13);
    row("… T = 256", number(self_attention_flops(256, 64) / rnn_flops(256, 64), "× %.2f"), "2 + T/d", 13);
}

static void masks(std::uint64_t seed) {
    section("MASKS", "hide keys (columns), before the softmax");
    const PrintedMask printed = printed_mask(seed);
    const EmptyRow empty = empty_row();
    const Causality causal = causality(seed);
    row("No mask, 3 words and 9 pads: words keep", number(share_of_real(3, 9)), "T/(T+n) = 0.25", 11);
    row("Masked: weight, gradient of the score",
        number(printed.correct_on_pad) + ", " + number(printed.correct_gradient), "0, 0 exactly", 11);
    row("scores[mask] = -1e9: left on the pad", number(printed.least_on_pad, "≥ %.3f"), "above 0: a leak", 11);
    row("A row of −∞ alone: NaNs, of 3 weights", number(empty.nans_forward), "3", 11);
    row("… left out, as here: Σ|α| + Σ|gradient|", number(empty.left_out), "0", 11);
    row("27 pads, no mask: the output moves by", number(100 * change_by_pads(seed, false), "%.0f %%"),
        "> 0, but defined", 11);
    row("… masked", tiny(change_by_pads(seed, true)), "0 to rounding", 11);
    row("Causal: pairs of 6 words seen, from later", number(causal.visible) + ", " + number(causal.future),
        "21 (j ≤ i), 0", 11);
}

int main(int argc, char** argv) {
    Flags flags("lessons/run card",
                "The course's quick-reference card: the problem, the equation, scoring functions, softmax, context,\n"
                "what improves, masks. Its numbers are measured when it runs, in a second or two.");
    std::int64_t own_seed = 1;
    flags.add_seed(own_seed);
    if (const std::optional<int> code = flags.parse(argc, argv)) return *code;
    const std::uint64_t seed(own_seed);

    const auto start = std::chrono::steady_clock::now();
    std::cout << terminal::styled(Style::heading, "ATTENTION ON ONE CARD") << '\n'
              << "  "
              << terminal::styled(Style::bold,
                                  fit("", 42) + fit_right("measured", 12) + "  " + fit("theory", 16) + "lesson")
              << '\n';
    problem(seed);
    equation(seed);
    scores(seed);
    softmax_and_context(seed);
    improvements(seed);
    masks(seed);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const Trace::Build build = begin_trace("card", seed).build;
    std::cout << "\nMeasured in " << number(seconds, "%.1f") << " s on this machine: seed " << seed << ", BLAS kernel "
              << build.blas_kernel << ", " << (sizeof(Real) == 8 ? "double" : "float")
              << ".\nlessons/run NN shows where a number comes from; lessons/claims.md all claims.\n";
}
