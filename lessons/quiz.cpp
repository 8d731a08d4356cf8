// The course's three interview questions as a dialogue: every answer is checked against a measurement made on the spot.
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <optional>
#include <sstream>
#include "lessons/evidence.hpp"
#include "lessons/flags.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using namespace lookback::evidence;
using terminal::number;
using terminal::Style;

// ---- Words out

static void paragraph(const std::string& text, const std::string& indent = "") {
    const std::size_t width = std::min<std::size_t>(terminal::width(), 100);
    std::istringstream words(text);
    std::string row = indent;
    for (std::string word; words >> word;) {
        if (terminal::columns(row) + 1 + terminal::columns(word) > width) {
            std::cout << row << '\n';
            row = indent;
        }
        row += (row == indent ? "" : " ") + word;
    }
    std::cout << row << '\n';
}

// What somebody typed, as it may be shown: safe, and not endless.
static std::string shown(const std::string& answer) {
    const std::string safe = terminal::printable(answer);
    return terminal::columns(safe) <= 40 ? safe : terminal::fit(safe, 40);
}

// ---- Answers in: from --answers, from a file or pipe, from a keyboard

struct EndOfAnswers {};

class Answers {
public:
    explicit Answers(const std::string& given, bool from_flag) : given_(given), from_flag_(from_flag) {}
    // The next one, without the spaces around it.   throws EndOfAnswers
    std::string next() {
        std::cout << "> " << std::flush;
        std::string answer;
        if (from_flag_ ? !(given_ >> answer) : !std::getline(std::cin, answer)) {
            std::cout << '\n';
            throw EndOfAnswers();
        }
        answer.erase(0, answer.find_first_not_of(" \t\r"));
        answer.erase(answer.find_last_not_of(" \t\r") + 1);
        if (from_flag_ || !isatty(STDIN_FILENO)) std::cout << shown(answer) << '\n';
        if (answer == "q" || answer == "quit") throw EndOfAnswers();
        return answer;
    }

private:
    std::istringstream given_;
    bool from_flag_;
};

// 0.25, 1/4, 25 %, 2.5e-1, 10^-3; nothing if it is no finite number.
static std::optional<double> parse_number(const std::string& answer) {
    const char* at = answer.c_str();
    char* rest = nullptr;
    const auto read = [&] {
        const double x = std::strtod(at, &rest);
        const bool found = rest != at;
        for (at = rest; *at == ' ';) ++at;
        return found ? x : NAN;
    };
    double x = read();
    if (*at == '/' || *at == '^') {
        const char sign = *at++;
        const double second = read();
        x = sign == '/' ? x / second : std::pow(x, second);
    }
    if (*at == '%') x /= 100, ++at;
    return *at == '\0' && std::isfinite(x) ? std::optional(x) : std::nullopt;
}

// ---- What is asked

struct Finding {
    double answer;         // the number, or the place of the option that the measurement bears out
    std::string measured;  // the measurement in words
};
using Close = bool (*)(double given, double measured);
static bool exactly(double given, double measured) { return std::abs(given - measured) < 1e-9; }
static bool within_a_tenth(double given, double measured) {
    return std::abs(given - measured) <= 0.1 * std::abs(measured);
}
static bool within_a_factor_of_10(double given, double measured) {
    return given > 0 && std::abs(std::log10(given / measured)) <= 1;
}

struct Item {
    std::string question;
    std::vector<std::string> options;  // none: a number is wanted
    Close close;                       // of numbers
    std::function<Finding()> measure;
    std::string because;
};
struct Question {
    std::string title;
    std::vector<Item> items;
    std::string model_answer;
    std::vector<std::string> overstated;
};

static Question vanishing(std::uint64_t seed) {
    const Decay rnn = rnn_decay(seed, 50);
    const Way near = way_back(Reader::rnn_with_attention, seed, 25),
              far = way_back(Reader::rnn_with_attention, seed, 50);
    const double settles = settling_product(1000), uniform = share_at_gap(64, 0);
    const double two_further = share_at_gap(64, 12) / share_at_gap(64, 10);
    Question q{"Why does attention help against vanishing gradients?", {}, "", {}};
    q.items = {
        {"A fresh tanh RNN of 32 units reads 50 words. On the way back from the last state, one step multiplies the "
         "gradient by " +
             number(rnn.factor, "%.2f") +
             " on average (measured a moment ago). About what part of it is left at the first word's state, 49 steps "
             "back? The right power of ten is enough.",
         {},
         within_a_factor_of_10,
         [=] {
             return Finding{rnn.norms[0], "‖∂L/∂h_1‖ is " + number(rnn.norms[0], "%.1e") + " of ‖∂L/∂h_50‖"};
         },
         "A product of 49 Jacobians: the factor a step, 49 times. That is exponential decay."},
        {"Take a long product of which every single factor is below 1. Must it go to 0?",
         {"yes, always", "only if all factors stay below one common bound that is itself below 1", "no, never"},
         nullptr,
         [=] {
             return Finding{settles > 0.1 ? 1. : 0.,
                            "the product of 1 − 1/k², 1000 factors, on the tape: " + number(settles, "%.4f")};
         },
         "The factors creep up to 1, and the product settles at 1/2. With a common bound η < 1 it is below η^n."},
        {"Now a decoder attends to the RNN's states. From its output back to word 1 of 25 the shortest way has " +
             std::to_string(near.shortest) + " operations. How many has it with 50 words?",
         {},
         exactly,
         [=] {
             return Finding{double(far.shortest), std::to_string(far.shortest) + " operations, counted on the tape"};
         },
         "Attention reads every state directly: the length of the path does not depend on T. It is O(1)."},
        {"A short path need not be a strong one. 64 words, all scores equal: what share of the gradient that arrives "
         "at the context vector reaches the value of one word?",
         {},
         within_a_tenth,
         [=] {
             return Finding{uniform, "share " + number(uniform, "%.6f")};
         },
         "∂c/∂v_i = α_i, and equal weights are 1/T."},
        {"One word's score falls behind the others by a gap Δ. How does the gradient through attention to this word "
         "fall as Δ grows?",
         {"not at all: attention has no decay", "like 1/Δ", "like e^−Δ"},
         nullptr,
         [=] {
             const double constant = 1, inverse = 10. / 12, exponential = std::exp(-2.0);
             const double off[] = {std::abs(two_further - constant), std::abs(two_further - inverse),
                                   std::abs(two_further - exponential)};
             return Finding{double(std::min_element(off, off + 3) - off),
                            "from Δ = 10 to 12 it falls by × " + number(two_further, "%.4f") +
                                "; e^−2 = " + number(exponential, "%.4f")};
         },
         "The weight is the factor, and softmax makes it e^−Δ/(T−1+e^−Δ)."},
    };
    q.model_answer =
        "In an RNN the gradient to an early word passes one Jacobian a step: here × " + number(rnn.factor, "%.2f") +
        " a step, " + number(rnn.norms[0], "%.0e") +
        " after 49 (lesson 03). Attention adds a direct path from each decoder step to each encoder state: " +
        std::to_string(far.shortest) +
        " operations, for 25 words as for 50 (lesson 08). Distance then costs nothing. "
        "What counts is the weight, which multiplies all that flows there: 1/64 = " +
        number(uniform, "%.4f") +
        " at equal scores, e^−Δ for a score that lies Δ behind (lesson 08). From exponential in the distance to 1/T "
        "at the start of training: that is the gain. Gates help differently, by a factor near 1 on the recurrent path "
        "(lesson 04), and both work together.";
    q.overstated = {
        "“Without multiplicative decay”: the weight α is a factor, and it can be tiny (lesson 08).",
        "“Prevents vanishing gradients”: words that get no weight get no gradient, and inside the encoder the "
        "recurrence is what it was (lesson 08).",
        "“Norms below 1, so the product vanishes; above 1, so it explodes”: the first needs a common bound, the "
        "second is not so at all: a matrix of norm 3 can have square 0 (lesson 02)."};
    return q;
}

static Question scoring(std::uint64_t seed) {
    constexpr std::size_t T = 128, d = 64;
    const std::vector<ScoreCost> costs = score_costs(seed, T, d);
    const ScoreCost dot = costs[0], additive = costs[3];
    const double flops = additive.flops / dot.flops, time = additive.seconds / dot.seconds;
    const double variance = dot_spread(seed, d, false).variance;
    const double narrow = dot_spread(seed, 16, false).sensitivity, wide = dot_spread(seed, 1024, false).sensitivity,
                 scaled = dot_spread(seed, 1024, true).sensitivity;
    Question q{"Additive or multiplicative attention: what differs, and when would you use each?", {}, "", {}};
    q.items = {
        {"The additive score is v · tanh(W_q q + W_k k). Let queries, keys and the hidden layer all have 64 numbers. "
         "How many parameters has it?",
         {},
         exactly,
         [=] {
             return Finding{additive.parameters, number(additive.parameters) + " parameters, counted in the layer"};
         },
         "Two matrices of 64 × 64 and a vector of 64. The dot score has none."},
        {"128 queries meet 128 keys, and W_k k is computed once for each key. How many times the FLOPs of the dot "
         "score does the additive score take?",
         {"about 64 times: d² against d", "about 3 times", "about as many"},
         nullptr,
         [=] {
             return Finding{flops > 16    ? 0.
                            : flops > 1.5 ? 1.
                                          : 2.,
                            number(additive.flops / double(T * T), "%.0f") + " FLOPs a pair against " +
                                number(dot.flops / double(T * T), "%.0f") + ", counted on the tape: × " +
                                number(flops, "%.1f")};
         },
         "The d² of the course's table is the price of one pair alone. Shared among T, it is O(d) a pair for both."},
        {"And its time, on this machine?",
         {"less than 3 times that of the dot score, as the FLOPs say", "3 times or more"},
         nullptr,
         [=] {
             return Finding{time < 3 ? 0. : 1.,
                            "× " + number(time, "%.0f") + " (" + number(1e3 * additive.seconds, "%.2f") +
                                " ms against " + number(1e3 * dot.seconds, "%.2f") + " ms), and " +
                                number(additive.bytes / 1e6, "%.1f") + " MB kept for backward against " +
                                number(dot.bytes / 1e6, "%.1f") + " MB"};
         },
         "FLOPs are not alike: the dot scores are one matrix product, the additive ones a million tanh, each stored."},
        {"Entries of q and k are independent, of mean 0 and variance 1, and d = 64. What is the variance of q · k?",
         {},
         within_a_tenth,
         [=] {
             return Finding{variance, "variance " + number(variance, "%.1f") + " over 3200 random pairs"};
         },
         "A sum of d products, each of variance 1. Divided by √d, the scores have variance 1 at any d."},
        {"Softmax passes on Σ_i ∂α_i/∂s_i of what moves its scores. How does the mean of it change from d = 16 to "
         "d = 1024, for 16 keys and dot scores without the scale?",
         {"it grows", "it stays about the same", "it falls to less than a third"},
         nullptr,
         [=] {
             return Finding{wide > 1.5 * narrow ? 0.
                            : wide * 3 < narrow ? 2.
                                                : 1.,
                            number(narrow, "%.3f") + " at d = 16, " + number(wide, "%.3f") +
                                " at d = 1024; scaled it is " + number(scaled, "%.3f") + " there"};
         },
         "Large scores make the softmax choose, and a softmax that has chosen has no slope."},
    };
    q.model_answer =
        "Additive: a small network scores each pair, " + number(additive.parameters) +
        " parameters at d = 64, one tanh layer. Multiplicative: q · k without parameters, or q W k with one matrix. "
        "With "
        "keys projected once, both cost O(d) a pair (" +
        number(additive.flops / double(T * T), "%.0f") + " FLOPs against " + number(dot.flops / double(T * T), "%.0f") +
        "), but the additive score keeps d numbers for each pair and takes a tanh of each: × " + number(time, "%.0f") +
        " the time here (lesson 09). The dot product's weakness is its size: variance d, and a softmax without slope "
        "(" +
        number(wide, "%.3f") + " at d = 1024); 1/√d mends it (" + number(scaled, "%.3f") +
        ", lesson 10). So: scaled dot wherever many queries meet many keys, whatever d; a bilinear W where queries and "
        "keys differ in width; additive where pairs are few, or scores must not be bilinear (lesson 09).";
    q.overstated = {
        "“O(d²)” for additive and bilinear: for one pair alone (lesson 09).",
        "“Additive for d < 128, multiplicative for d > 256”: no source is known to us. Unscaled, the evidence points "
        "the "
        "other way: Britz et al. 2017 report 18.22 BLEU for multiplicative and 22.10 for additive attention at 1024, "
        "and equal means at 256 (lesson 10).",
        "“More complex interactions”: through the tanh only. Without it the query drops out of the softmax (lesson "
        "09).",
        "“Orders of magnitude faster”: in time here × " + number(time, "%.0f") + ", in operations × " +
            number(flops, "%.0f") +
            ": it is the tanh, one machine, one size. Vaswani et al. 2017 claim an advantage in practice and give no "
            "factor (lesson 09)."};
    return q;
}

static Question masking(std::uint64_t seed) {
    const double share = share_of_real(3, 9), change = change_by_pads(seed, false), masked = change_by_pads(seed, true);
    const PrintedMask printed = printed_mask(seed);
    const EmptyRow empty = empty_row();
    const Causality causal = causality(seed);
    Question q{"How does attention handle sequences of different lengths, and why is masking important?", {}, "", {}};
    q.items = {
        {"A row of 3 words is padded with 9 pads, all scores are equal, and there is no mask. What share of the weight "
         "do the words get?",
         {},
         within_a_tenth,
         [=] {
             return Finding{share, "share " + number(share)};
         },
         "Softmax knows no pads: T words beside n pads keep T/(T+n)."},
        {"The course writes scores[padding_mask] = -1e9 before the softmax. Scores are 4 × 4, the mask marks word 4 as "
         "a pad. What does the line hide?",
         {"column 4: no word looks at the pad any more", "row 4: what the pad itself asks"},
         nullptr,
         [=] {
             return Finding{printed.least_on_pad > 0 ? 1. : 0.,
                            "each word still gives the pad " + number(printed.least_on_pad, "%.3f") +
                                " or more; the largest weight in the pad's own row is " +
                                number(printed.pad_row_largest, "%.2f")};
         },
         "One index picks rows, and rows are queries. The mask belongs to the keys: shape (B,1,T), over the columns."},
        {"Now the mask lies over the column. Which weight does the pad get?",
         {},
         exactly,
         [=] {
             return Finding{printed.correct_on_pad, "weights on the pad sum to " + number(printed.correct_on_pad) +
                                                        ", gradients of its scores to " +
                                                        number(printed.correct_gradient)};
         },
         "Not small: 0. Neither the context nor any gradient knows that the pad is there."},
        {"A batch holds an empty sentence: all scores of its row are set to −∞. What does softmax make of them?",
         {"weights of 0", "equal weights", "NaN"},
         nullptr,
         [=] {
             return Finding{
                 empty.nans_forward > 0 ? 2.
                 : empty.left_out > 0   ? 1.
                                        : 0.,
                 number(empty.nans_forward) + " of 3 weights are NaN, and " + number(empty.nans_backward) +
                     " of the values' 6 gradients even if the context is thrown away; left out of maximum and sum, "
                     "as this engine does it, weights and gradients sum to " +
                     number(empty.left_out)};
         },
         "0/0. And 0 · NaN is NaN, so backward brings it back."},
        {"No mask at all: 27 pads stand behind 4 words. The output for the 4 words is …",
         {"undefined", "the same as without pads", "a finite number, but another one"},
         nullptr,
         [=] {
             return Finding{!std::isfinite(change) ? 0.
                            : change < 1e-9        ? 1.
                                                   : 2.,
                            "it moves by " + number(100 * change, "%.0f %%") + " of itself; with a mask by " +
                                (masked == 0 ? "0" : number(masked, "%.0e"))};
         },
         "It depends on the longest neighbour in the batch. That is worse than undefined: nothing complains."},
        {"A causal mask over 6 words: for how many of the 36 pairs (i, j) does output i depend on input j?",
         {},
         exactly,
         [=] {
             return Finding{causal.visible,
                            number(causal.visible) + " pairs; Σ ‖∂out_i/∂x_j‖ over j > i is " + number(causal.future)};
         },
         "The lower triangle with its diagonal: 6 · 7/2. What is hidden is the triangle strictly above it."},
    };
    q.model_answer =
        "Rows of a batch are padded to the longest. Softmax would give pads weight: 9 pads beside 3 words leave "
        "these " +
        number(share) + " of it, and the output depends on the neighbours (" + number(100 * change, "%.0f %%") +
        " for 27 pads). So pad keys are hidden before the softmax, over columns: then their weight and all gradients "
        "are "
        "exactly " +
        number(printed.correct_on_pad) + ", and the output moves by " + (masked == 0 ? "0" : number(masked, "%.0e")) +
        " whatever the padding (lesson 11). A row that sees nothing needs a rule of its own, or it is NaN. A decoder "
        "that is trained on all places at once hides the future too: " +
        number(causal.visible) + " of 36 pairs remain for 6 words, and its inputs are shifted by one (lesson 11).";
    q.overstated = {
        "The printed line masks queries, not keys; K.T turns all axes of a batch around; softmax names no axis "
        "(lesson 11).",
        "“Predictions are undefined”: they are defined, and depend on the padding (lesson 11).",
        "“Wasting computation”: a mask saves none of it; what it saves is the answer (lesson 11).",
        "“Robust to variable lengths”: to padding, yes; not to lengths that training never showed (lessons 06, 16).",
        "“Upper triangular”: names what is hidden, without the diagonal (lesson 11).",
        "“Required for autoregressive models”: for training all places at once. An RNN decoder, or decoding word by "
        "word with a cache, has no future to hide (lesson 11)."};
    return q;
}

// ---- The dialogue

class Dialogue {
public:
    explicit Dialogue(Answers& answers) : answers_(answers) {}
    int asked = 0, right = 0;

    void hold(const Question& q, std::size_t place) {
        std::cout << '\n' << terminal::styled(Style::heading, "Question " + std::to_string(place)) << '\n';
        paragraph(terminal::styled(Style::bold, q.title));
        for (const Item& item : q.items) ask(item);
        std::cout << '\n' << terminal::styled(Style::bold, "A model answer, with its evidence") << '\n';
        paragraph(q.model_answer, "  ");
        std::cout << terminal::styled(Style::bold, "What the course text overstates") << '\n';
        for (const std::string& point : q.overstated) paragraph("– " + point, "  ");
    }

private:
    void ask(const Item& item) {
        std::cout << '\n';
        paragraph(item.question);
        for (std::size_t i = 0; i < item.options.size(); ++i)
            paragraph(std::string(1, char('a' + i)) + ") " + item.options[i], "  ");
        const std::optional<double> given = item.options.empty() ? read_number() : read_choice(item.options.size());
        const Finding finding = item.measure();
        ++asked;
        const bool correct =
            given && (item.options.empty() ? item.close(*given, finding.answer) : *given == finding.answer);
        right += correct;
        const std::string choice =
            item.options.empty() ? "" : std::string(" The answer is ") + char('a' + int(finding.answer)) + ".";
        paragraph(correct ? terminal::styled(Style::good, "Right.")
                  : given ? terminal::styled(Style::bad, "Not so.") + choice
                          : "Not answered." + choice);
        paragraph("Measured: " + finding.measured + ". " + item.because);
    }

    // Both ask again until the answer can be understood; nothing for "?".
    std::optional<double> read_number() {
        while (true) {
            const std::string answer = answers_.next();
            if (answer == "?") return {};
            if (const std::optional<double> x = parse_number(answer)) return x;
            std::string with_point = answer;
            std::replace(with_point.begin(), with_point.end(), ',', '.');
            paragraph("A number is wanted, like 0.25, 1/4, 25 % or 1e-3, not “" + shown(answer) + "”." +
                      (parse_number(with_point) ? " Decimals follow a point." : "") +
                      " (? if you don't know, q to leave)");
        }
    }
    std::optional<double> read_choice(std::size_t options) {
        const char last = char('a' + options - 1);
        while (true) {
            const std::string answer = answers_.next();
            if (answer == "?") return {};
            const char letter = answer.size() == 1 ? char(std::tolower(static_cast<unsigned char>(answer[0]))) : '\0';
            if (letter >= 'a' && letter <= last) return double(letter - 'a');
            paragraph(std::string("A letter from a to ") + last + " is wanted, not “" + terminal::printable(answer) +
                      "”. (? if you don't know, q to leave)");
        }
    }
    Answers& answers_;
};

int main(int argc, char** argv) {
    Flags flags(
        "lessons/run quiz",
        "The three interview questions of the course, “Attention Fundamentals”. You answer in numbers and\n"
        "letters; each answer is checked against a measurement made on the spot. ? passes, q leaves. Answers may\n"
        "come from a file, one a line.");
    std::int64_t seed = 1, only = 0;
    std::string given;
    flags.add("--question", only, 0, 3, "only this one; 0: all three");
    flags.add("--answers", given, "your answers, with spaces between them");
    flags.add_seed(seed);
    if (const std::optional<int> code = flags.parse(argc, argv)) return *code;

    Answers answers(given, flags.given("--answers"));
    Dialogue dialogue(answers);
    paragraph("Three questions of an interview, in parts. Answer with a number or a letter; ? passes, q leaves.");
    try {
        const std::vector<Question (*)(std::uint64_t)> questions{vanishing, scoring, masking};
        for (std::size_t i = 0; i < questions.size(); ++i)
            if (only == 0 || only == std::int64_t(i) + 1) dialogue.hold(questions[i](std::uint64_t(seed)), i + 1);
        std::cout << '\n' << dialogue.right << " of " << dialogue.asked << " right.\n";
    } catch (const EndOfAnswers&) {
        paragraph("The answers end here. " + std::to_string(dialogue.right) + " of " + std::to_string(dialogue.asked) +
                  " right so far; lessons/run quiz --question N takes one question alone.");
    }
}
