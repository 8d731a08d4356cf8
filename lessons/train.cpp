// Trains a small model from nothing, on one core, in less than 90 seconds.
//
//   train dates        dates in eight languages → ISO, with additive attention: ≥ 98 % of held-out rows exact
//   train phonemes     letters → phonemes, with additive attention: ≥ 50 % of held-out words exact
//   train reversal     a small Transformer reverses letters: ≥ 99 % of held-out strings exact
//   train all          each of them with seeds 0, 1 and 2: the medians must reach these bounds
//
// Every run goes on for a fixed number of updates, so its result depends on the seed alone; --seconds (of processor
// time) only stops what would take too long. Exit codes: 0 the bound is reached, 1 it is not, 2 wrong use.
#include <ctime>
#include <iostream>
#include <set>
#include "engine/ops/softmax.hpp"
#include "engine/trace.hpp"
#include "layers/optimizer.hpp"
#include "lessons/flags.hpp"
#include "lessons/terminal.hpp"
#include "lessons/translator.hpp"

namespace lookback {
namespace {

struct Pair {
    Ids source, target;
};

// What is trained, and what is asked of it.
struct Task {
    std::string name;
    double bound = 0;  // share of held-out rows that must be exact
    std::size_t updates = 0, batch = 64;
    double rate = 0;  // the peak
    std::vector<Pair> training = {}, held_out = {};

    std::unique_ptr<Translator> translator = nullptr;  // one of the two
    std::unique_ptr<Transformer> transformer = nullptr;

    Tensor loss(Tape& tape, const Padded& source, const Shifted& target) const {
        if (translator) return translator->model().loss(tape, source, target);
        const Mask visible = padding(source.lengths, source.ids.shape()[1]);
        return cross_entropy((*transformer)(tape, source.ids, target.inputs, visible).logits, target.targets);
    }
    std::unique_ptr<Decoding> decoding(const Padded& source) const {
        if (translator) return std::make_unique<Seq2SeqDecoding>(translator->model(), source);
        return std::make_unique<TransformerDecoding>(*transformer, source);
    }
    Parameters parameters() { return translator ? Parameters(translator->model()) : Parameters(*transformer); }
};

const std::string data = LOOKBACK_DATA_DIR "/";

Task text_task(const std::string& name, Translator::Written written, const Seq2SeqOptions& options,
               Generator& generator) {
    std::vector<Row> training = read_tsv(data + name + ".training.tsv", 2),
                     held_out = read_tsv(data + name + ".held-out.tsv", 2);
    std::vector<Tokens> sources, targets;
    for (const Row& row : training) {
        sources.push_back(characters(row.fields[0]));
        targets.push_back(written == Translator::Written::words ? words(row.fields[1]) : characters(row.fields[1]));
    }
    Task task{.name = name};
    task.translator = std::make_unique<Translator>(Alphabet(sources), Alphabet(targets), written, options, generator);
    const auto numbered = [&](const std::vector<Row>& rows) {
        std::vector<Pair> pairs;
        for (const Row& row : rows)
            pairs.push_back({task.translator->source_ids(row.fields[0]), task.translator->target_ids(row.fields[1])});
        return pairs;
    };
    task.training = numbered(training);
    task.held_out = numbered(held_out);
    return task;
}

Task reversal(Generator& generator) {
    constexpr std::int64_t letters = 8;
    Generator strings(1);  // the split is the same for all seeds
    std::set<Ids> seen;
    std::vector<Pair> pairs;
    while (pairs.size() < 20'500) {
        Ids s(std::size_t(strings.integer(4, 11)));
        for (std::int64_t& id : s) id = strings.integer(Alphabet::first, Alphabet::first + letters);
        if (seen.insert(s).second) pairs.push_back({s, Ids(s.rbegin(), s.rend())});
    }
    Task task{.name = "reversal", .bound = 0.99, .updates = 1500, .rate = 2e-3};
    task.held_out.assign(pairs.begin(), pairs.begin() + 500);
    task.training.assign(pairs.begin() + 500, pairs.end());
    task.transformer = std::make_unique<Transformer>(
        Alphabet::first + letters, Alphabet::first + letters, generator,
        TransformerOptions{.width = 32, .heads = 4, .inner = 64, .layers = 2, .norm = Norm::before, .dropout = 0});
    name_parameters(*task.transformer);
    return task;
}

Task make_task(const std::string& name, Generator& generator) {
    if (name == "reversal") return reversal(generator);
    const bool dates = name == "dates";
    Task task = dates ? text_task(name, Translator::Written::characters,
                                  {.embedding = 24, .hidden = 48, .attention = 48}, generator)
                      : text_task(name, Translator::Written::words, {.embedding = 32, .hidden = 96, .attention = 64},
                                  generator);
    task.bound = dates ? 0.98 : 0.5;
    task.updates = dates ? 600 : 1200;
    task.rate = dates ? 4e-3 : 3e-3;
    return task;
}

// The share of pairs whose greedy answer is exact.
double exact(const Task& task, std::size_t most = std::numeric_limits<std::size_t>::max()) {
    const std::size_t n = std::min(most, task.held_out.size());
    std::size_t right = 0;
    for (std::size_t start = 0; start < n; start += 128) {
        std::vector<Ids> sources;
        for (std::size_t i = start; i < std::min(n, start + 128); ++i) sources.push_back(task.held_out[i].source);
        const auto decoding = task.decoding(padded(sources));
        const std::vector<Generated> answers = greedy(*decoding, {.longest = 40});
        for (std::size_t i = 0; i < answers.size(); ++i) right += answers[i].ids == task.held_out[start + i].target;
    }
    return double(right) / double(n);
}

struct Run {
    double exact, seconds;
};

double processor_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

Run train(Task& task, Generator& generator, double seconds, std::size_t updates, Trace& trace) {
    if (updates == 0) updates = task.updates;
    const double start = processor_seconds();
    Adam adam({.rate = cosine(task.rate, updates, updates / 20)});
    const Parameters parameters = task.parameters();
    std::vector<std::size_t> lengths;
    for (const Pair& pair : task.training) lengths.push_back(pair.source.size());

    Trace::Series losses{.name = "training loss", .x_label = "update", .x = {}, .y_label = "cross-entropy", .y = {}},
        shares{.name = "held-out exact", .x_label = "update", .x = {}, .y_label = "share", .y = {}};
    terminal::Progress progress(task.name);
    std::vector<std::vector<std::size_t>> batches;
    double recent = 0;
    for (std::size_t update = 1; update <= updates && processor_seconds() - start < seconds; ++update) {
        if (batches.empty()) batches = batches_by_length(lengths, task.batch, generator);
        std::vector<Ids> sources, targets;
        for (const std::size_t i : batches.back()) {
            sources.push_back(task.training[i].source);
            targets.push_back(task.training[i].target);
        }
        batches.pop_back();

        Tape tape;
        const Tensor loss = task.loss(tape, padded(sources), teacher_forcing(targets));
        Gradients gradients = tape.backward(loss);
        clip_by_norm(parameters, gradients, 1);
        adam.step(parameters, gradients);

        recent += double(loss.item());
        if (update % 20 == 0) {
            losses.x.push_back(double(update));
            losses.y.push_back(std::exchange(recent, 0) / 20);
        }
        if (update % (updates / 10 + 1) == 0) {
            shares.x.push_back(double(update));
            shares.y.push_back(exact(task, 100));
        }
        progress.at(double(update) / double(updates));
    }
    const Run run{exact(task), processor_seconds() - start};
    shares.x.push_back(double(adam.steps()));
    shares.y.push_back(run.exact);
    trace.series.push_back(std::move(losses));
    trace.series.push_back(std::move(shares));
    trace.checks.push_back({task.name, "the share of exact held-out answers", Trace::Kind::ge, run.exact, task.bound, 0,
                            run.exact >= task.bound, ""});
    return run;
}

void report(const std::string& what, const Run& run, double bound) {
    std::printf("%-24s %6.1f %% of held-out rows exact (%.0f %% wanted), %5.1f s   %s\n", what.c_str(), 100 * run.exact,
                100 * bound, run.seconds, run.exact >= bound ? "ok" : "FAILED");
    std::fflush(stdout);
}

}  // namespace
}  // namespace lookback

using namespace lookback;

int main(int argc, char** argv) try {
    Flags flags("lessons/run train",
                "Trains a small model from nothing: dates, phonemes, reversal, or all with three seeds each.");
    std::string what, trace_file, checkpoint;
    std::int64_t own_seed = 0, most = 0;
    double seconds = 90;
    flags.require("task", what, {"dates", "phonemes", "reversal", "all"});
    flags.add_seed(own_seed);
    flags.add("--seconds", seconds, "of processor time, after which training stops at the latest");
    flags.add("--updates", most, 0, 1'000'000'000, "how many; 0: the task's own number");
    flags.add("--trace", trace_file, "where to write the learning curve, as JSON", "FILE");
    flags.add("--save", checkpoint, "where to write the trained model, as safetensors (dates, phonemes)", "FILE");
    if (const std::optional<int> code = flags.parse(argc, argv)) return *code;
    const std::uint64_t seed(own_seed), updates(most);

    const bool all = what == "all";
    Trace trace = begin_trace("train", seed);
    bool reached = true;
    for (const std::string& name :
         all ? std::vector<std::string>{"dates", "phonemes", "reversal"} : std::vector{what}) {
        std::vector<double> shares, times;
        double bound = 0;
        for (const std::uint64_t s : all ? std::vector<std::uint64_t>{0, 1, 2} : std::vector{seed}) {
            Generator generator(s);
            Task task = make_task(name, generator);
            const Run run = train(task, generator, seconds, updates, trace);
            report(name + ", seed " + std::to_string(s), run, bound = task.bound);
            shares.push_back(run.exact);
            times.push_back(run.seconds);
            if (!checkpoint.empty() && task.translator)
                task.translator->save(
                    checkpoint,
                    {{"task", name}, {"seed", std::to_string(s)}, {"held-out exact", std::to_string(run.exact)}});
        }
        const auto median = [](std::vector<double> x) { return std::sort(x.begin(), x.end()), x[x.size() / 2]; };
        if (all) report(name + ", median", {median(shares), median(times)}, bound);
        reached &= median(shares) >= bound;
    }
    if (!trace_file.empty()) write_trace(trace, trace_file);
    return reached ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}
