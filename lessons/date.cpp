#include "lessons/date.hpp"
#include <algorithm>
#include <cmath>
#include <numeric>
#include "engine/ops/softmax.hpp"
#include "lessons/terminal.hpp"
#include "lessons/translator.hpp"

namespace lookback {

using terminal::fit;
using terminal::fit_right;

// Each source token's share of Σ ‖∂L/∂h_i‖, h_i = [→h_i ←h_i] being the encoder's states, L = −log p(answer | source).
static std::vector<double> gradient_shares(const Translator& translator, const std::string& source,
                                           const std::string& answer) {
    Tape tape;
    const Shifted shifted = teacher_forcing(std::vector<Ids>{translator.target_ids(answer)});
    const Seq2Seq::Output output =
        translator.model()(tape, padded(std::vector<Ids>{translator.source_ids(source)}), shifted.inputs);
    const Tensor loss = cross_entropy(output.logits, shifted.targets, {.reduction = Reduction::sum});
    std::vector<Tensor> states;
    for (const Sequence<GRU>& direction : output.encoded.sequences)
        for (const GRU::State& s : direction.states) states.push_back(s.h);
    const Gradients g = tape.backward(loss, states, {.keep = Keep::wanted});
    std::vector<double> norms;
    for (std::size_t i = 0; i < states.size() / 2; ++i)
        norms.push_back(std::hypot(norm(g[states[i]]), norm(g[states[states.size() / 2 + i]])));
    const double total = std::accumulate(norms.begin(), norms.end(), 0.0);
    for (double& n : norms) n = total > 0 ? n / total : 0;
    return norms;
}

static std::string shade(double weight) {
    static const char* const shades[] = {" ", "·", "░", "▒", "▓", "█"};
    return shades[weight < 0.01 ? 0 : weight < 0.05 ? 1 : weight < 0.2 ? 2 : weight < 0.4 ? 3 : weight < 0.7 ? 4 : 5];
}

void show_date(Lesson& lesson, const std::string& text) {
    const Translator trained = Translator::load(LOOKBACK_DATA_DIR "/dates.safetensors");
    const Translator::Answer answer = trained(text);
    Generator generator(lesson.seed());
    const Translator fresh(trained.source(), trained.target(), Translator::Written::characters,
                           {.embedding = trained.model().source.width(),
                            .hidden = trained.model().encoder.cells[0].hidden(),
                            .attention = trained.model().encoder.cells[0].hidden()},
                           generator);

    lesson.step("A date, read by a model that was trained on eight languages");
    lesson.line("   " + terminal::printable(text) + "   →   " + terminal::printable(answer.text));
    lesson.say("It is sure of this with probability " + [&] {
        char p[16];
        std::snprintf(p, sizeof p, "%.3f", std::exp(answer.log_probability));
        return std::string(p);
    }() + ". It knows the languages and the forms it was trained on, and answers anything else all the same.");

    lesson.step("Where it looked for each character of its answer: the attention weights α");
    const std::size_t most = std::min<std::size_t>(terminal::width(), 120) - 6;
    if (answer.source.size() * 2 > most) lesson.say("(the text is longer than the screen: its beginning is shown)");
    const std::size_t shown = std::min(answer.source.size(), most / 2);
    std::string head = "     ";
    for (std::size_t i = 0; i < shown; ++i) head += fit(answer.source[i], 2);
    lesson.line(terminal::styled(terminal::Style::bold, head));
    for (std::size_t t = 0; t < answer.target.size(); ++t) {
        std::string row = "  " + fit(answer.target[t], 1) + "  ";
        for (std::size_t i = 0; i < shown; ++i) row += terminal::repeat(shade(answer.weights[t].data()[i]), 2);
        lesson.line(row);
    }
    lesson.line(terminal::styled(terminal::Style::dim, "     · over 1 %   ░ 5 %   ▒ 20 %   ▓ 40 %   █ 70 %"));

    lesson.step("Each character's share of Σ ‖∂L/∂h_i‖, before and after training");
    const std::vector<double> before = gradient_shares(fresh, text, answer.text),
                              after = gradient_shares(trained, text, answer.text);
    const double largest =
        std::max(*std::max_element(before.begin(), before.end()), *std::max_element(after.begin(), after.end()));
    lesson.line(fit("", 6) + fit("before", 36) + "after");
    for (std::size_t i = 0; i < answer.source.size(); ++i) {
        const auto cell = [&](double share) {
            char number[16];
            std::snprintf(number, sizeof number, "%5.1f %% ", 100 * share);
            return number + terminal::bar(share / largest, 24) + "    ";
        };
        lesson.line(fit("  " + answer.source[i], 6) + cell(before[i]) + cell(after[i]));
    }

    double worst = 0;
    for (const Array& weights : answer.weights)
        worst = std::max(worst, std::abs(std::accumulate(weights.begin(), weights.end(), 0.0) - 1));
    lesson.check("date.weights", "Attention weights: |Σ α − 1|", Trace::Kind::le, worst, 0, 1e-12, "softmax");

    Trace& trace = lesson.trace();
    trace.tokens = answer.source;
    trace.config["answer"] = answer.text;
    Trace::Matrix alpha{.name = "attention",
                        .row_label = "answer",
                        .column_label = "source",
                        .rows = answer.target,
                        .columns = answer.source,
                        .shape = {answer.target.size(), answer.source.size()},
                        .data = {}};
    for (const Array& weights : answer.weights) alpha.data.insert(alpha.data.end(), weights.begin(), weights.end());
    trace.matrices.push_back(std::move(alpha));
    std::vector<double> places(before.size());
    std::iota(places.begin(), places.end(), 1.0);
    trace.series.push_back(
        {.name = "before training", .x_label = "character", .x = places, .y_label = "share of ‖∂L/∂h_i‖", .y = before});
    trace.series.push_back(
        {.name = "after training", .x_label = "character", .x = places, .y_label = "share of ‖∂L/∂h_i‖", .y = after});
}

}  // namespace lookback
