// Small measurements that the card prints and the quiz checks answers against: each takes milliseconds, and is made
// when it is asked for. What the lessons measure at length, in one number each.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include "layers/multi_head.hpp"

namespace lookback::evidence {

// ---- Recurrence and attention, backwards

struct Decay {
    std::vector<double> norms;  // ‖∂L/∂h_t‖, t = 1 … T; the last is 1
    double factor = 0;          // a step back, from a fitted line
    double theory = 0;          // exp of the mean of ½ ln(‖J_t‖²_F / H): what a random direction keeps
};
// A fresh tanh RNN of 32 units reads T random words.
Decay rnn_decay(std::uint64_t seed, std::size_t T);
// What a step back leaves of ‖∂L/∂c_t‖ in an LSTM of 32 units whose weights are 0: in theory exactly σ(forget_bias).
double lstm_factor(std::uint64_t seed, std::size_t T, double forget_bias);

enum class Reader { rnn, rnn_with_attention, self_attention };
struct Way {                        // from the loss back to word 1
    std::size_t shortest, longest;  // in operations
    double strength;                // ‖∂L/∂x_1‖ / ‖∂L/∂output‖
};
Way way_back(Reader reader, std::uint64_t seed, std::size_t T);

double settling_product(std::size_t n);  // of 1 − 1/k² for k = 2 … n + 1: all factors below 1, and yet → 1/2
// What arrives at one of T values, of what arrives at the context, if its score lies `gap` below all others.
double share_at_gap(std::size_t T, double gap);
// How many of `inputs` numbers the state of a linear RNN of N units can still tell apart: the rank of the map.
std::size_t remembered(std::uint64_t seed, std::size_t N, std::size_t inputs);

// ---- Scores

struct ScoreCost {
    std::string name;
    double parameters, flops, bytes, seconds;  // flops of all pairs, keys projected once; bytes kept for backward
};
// The dot, scaled, bilinear and additive score of T queries with T keys, all widths d. An addition, a multiplication
// and a tanh are one FLOP each; seconds are of the processor, the median of several runs.
std::vector<ScoreCost> score_costs(std::uint64_t seed, std::size_t T, std::size_t d);
// FLOPs of one layer over T words of width d.
double self_attention_flops(std::size_t T, std::size_t d);
double rnn_flops(std::size_t T, std::size_t d);

struct Spread {
    double variance;     // of q · k for normal entries
    double sensitivity;  // mean of Σ_i ∂α_i/∂s_i over 16 keys: how soft the softmax still is
};
Spread dot_spread(std::uint64_t seed, std::size_t d, bool scaled);

// ---- Softmax and context

double weight_sum_error(std::uint64_t seed);  // largest |Σ α − 1| over random scores
double steepest_softmax(std::uint64_t seed);  // largest ‖∂α/∂s‖ over random scores
double steepest_softmax_at_two_equal_scores();
double vanishing_gap();                           // the smallest gap below another score at which a weight is exactly 0
double top_weight(std::size_t T, double margin);  // of the one score that lies so much above T − 1 equal ones
// A word of weight 0.8 whose value is 0: ‖context with it − without it‖, its weight given to nobody.
double contribution_of_heavy_zero();
// How many directions the weights over T values of width d can be moved along without moving the context.
std::size_t free_directions(std::uint64_t seed, std::size_t T, std::size_t d);
double plain_loops_difference(std::uint64_t seed);  // softmax(QKᵀ/√d)V on the tape and by plain loops: the largest

// ---- Masks

double share_of_real(std::size_t real, std::size_t pads);  // of the weight: equal scores, no mask

struct PrintedMask {
    double least_on_pad;      // over the queries, as the course prints the mask
    double pad_row_largest;   // the largest weight in the pad's own row, of 4: 1/4 if they are equal
    double correct_on_pad;    // all of it, with the mask over columns
    double correct_gradient;  // Σ |∂/∂score| there
};
PrintedMask printed_mask(std::uint64_t seed);

struct EmptyRow {
    double nans_forward;   // of 3 weights: all scores set to −∞
    double nans_backward;  // of the 6 gradients of the values, though the context is thrown away
    double left_out;       // Σ |α| + Σ |gradient| with the engine's masked softmax
};
EmptyRow empty_row();
// A self-attention layer, and a sentence that may have pads behind it.
struct PaddedSentence {
    static constexpr std::size_t T = 4, most = 27, E = 8;  // words, pads, width
    MultiHead layer;
    Array words, pads;  // (1,T,E)   (1,most,E), all alike, as <pad> has one row in an embedding table
    explicit PaddedSentence(Generator generator);
};
// How much the output for the words moves, relative to itself, when all the pads stand behind them.
double change_by_pads(std::uint64_t seed, bool masked);

struct Causality {
    double visible;  // pairs (i, j) for which out_i depends on x_j, of 6 × 6
    double future;   // Σ ‖∂out_i/∂x_j‖ over j > i
};
Causality causality(std::uint64_t seed);

}  // namespace lookback::evidence
