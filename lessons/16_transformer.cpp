// A Transformer is more than attention: its parts, each known and tried.
//
// Every part by itself against its formula; the whole put together from those parts, equal to the library's; then
// trained on reversing strings with one part missing at a time, and on spelling.
#include <cmath>
#include <set>
#include <tuple>
#include "engine/gradcheck.hpp"
#include "engine/ops.hpp"
#include "layers/data.hpp"
#include "layers/optimizer.hpp"
#include "layers/transformer.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using measure::largest_difference;
using terminal::number;
using enum Trace::Kind;

// ---- the library's Transformer (pre-norm), run part by part, so that one can be left out

struct Parts {
    bool position = true, mask = true, skip = true, norm = true, scale = true, feed_forward = true;
};

template <class F> static Tensor joined_to(const Tensor& x, const LayerNorm& norm, const Parts& parts, F f) {
    const Tensor y = f(parts.norm ? norm(x) : x);
    return parts.skip ? x + y : y;
}
static Tensor attend(const MultiHead& m, const Tensor& q, const Tensor& k, const std::optional<Mask>& mask,
                     const Parts& parts) {  // a query √D times as large undoes the division by √D
    const double D = double(q.shape(-1) / m.heads);
    return m(parts.scale ? q : q * Real(std::sqrt(D)), k, k, mask).context;
}
static Tensor embedded(const Embedding& table, Tape& tape, const Indices& ids, const Parts& parts) {
    const Tensor x = table(tape, ids) * Real(std::sqrt(double(table.width())));
    return parts.position ? SinusoidalPosition{}(x) : x;
}
static Tensor encode(const Transformer& m, Tape& tape, const Indices& ids, const Parts& parts,
                     const std::optional<Mask>& visible = {}) {
    Tensor x = embedded(*m.source, tape, ids, parts);
    for (const EncoderBlock& b : m.encoder.blocks) {
        x = joined_to(x, b.norm_attention, parts,
                      [&](const Tensor& z) { return attend(b.attention, z, z, visible, parts); });
        if (parts.feed_forward)
            x = joined_to(x, b.norm_feed_forward, parts, [&](const Tensor& z) { return b.feed_forward(z); });
    }
    return parts.norm ? (*m.encoder.norm)(x) : x;
}
static Tensor decode(const Transformer& m, Tensor y, const Tensor& source, const Parts& parts) {
    const std::size_t T = y.shape(1);
    const std::optional<Mask> past = parts.mask ? std::optional(causal(T, T, Align::start)) : std::nullopt;
    for (const DecoderBlock& b : m.decoder.blocks) {
        y = joined_to(y, b.norm_attention, parts,
                      [&](const Tensor& z) { return attend(b.attention, z, z, past, parts); });
        y = joined_to(y, b.norm_cross, parts, [&](const Tensor& z) { return attend(b.cross, z, source, {}, parts); });
        if (parts.feed_forward)
            y = joined_to(y, b.norm_feed_forward, parts, [&](const Tensor& z) { return b.feed_forward(z); });
    }
    return parts.norm ? (*m.decoder.norm)(y) : y;
}
static Tensor logits(const Transformer& m, Tape& tape, const Indices& source, const Indices& target,
                     const Parts& parts) {
    const Tensor states = encode(m, tape, source, parts);
    return m.target.scores(decode(m, embedded(m.target, tape, target, parts), states, parts));
}

static constexpr std::int64_t letters = 8, vocabulary = Alphabet::first + letters;
static Transformer small_model(Generator& generator) {
    Transformer model(vocabulary, vocabulary, generator,
                      {.width = 32, .heads = 4, .inner = 64, .layers = 1, .norm = Norm::before, .dropout = 0});
    name_parameters(model);
    return model;
}

// ---- parts

static void layer_norm_by_hand(Lesson& lesson, Generator& generator) {
    Tape tape;
    const std::size_t n = 4;
    const double x_value[] = {1, 2, 3, 6}, mean = 3, deviation = std::sqrt(3.5);
    Array x_array = filled({n}, 0);
    for (std::size_t i = 0; i < n; ++i) x_array(i) = Real(x_value[i]);
    const Tensor x = tape.leaf(x_array);
    const Array J = jacobian(layer_norm(x, tape.leaf(filled({n}, 1)), tape.leaf(filled({n}, 0)), 0), x);
    double worst = 0, flat = 0;
    std::vector<std::vector<std::string>> table{{"56·√3.5·∂y_i/∂x_j", "x₁ = 1", "x₂ = 2", "x₃ = 3", "x₄ = 6"}};
    for (std::size_t i = 0; i < n; ++i) {
        table.push_back({"y" + std::to_string(i + 1)});
        double along_ones = 0, along_x = 0;
        for (std::size_t j = 0; j < n; ++j) {
            const double a = (x_value[i] - mean) / deviation, b = (x_value[j] - mean) / deviation;
            const double by_hand = (double(i == j) - 1 / double(n) - a * b / double(n)) / deviation;
            worst = std::max(worst, std::abs(double(J(i, j)) - by_hand));
            along_ones += double(J(i, j)), along_x += double(J(i, j)) * b;
            table.back().push_back(number(std::round(56 * deviation * double(J(i, j)) * 1e6) / 1e6 + 0.0));
        }
        flat = std::max({flat, std::abs(along_ones), std::abs(along_x)});
    }
    lesson.say(
        "LayerNorm, token by token: y = gain · x̂ + shift with x̂ = (x − mean)/√(σ² + ε), gain and shift learned. Here "
        "gain is 1, shift and ε are 0, so y = x̂ = (x − mean)/σ. Its Jacobian at x = (1,2,3,6), with mean 3 and "
        "σ = √3.5, times 56·√3.5 so that its numbers are whole:");
    lesson.line(terminal::table(table));
    lesson.say(
        "That is J = (I − 11ᵀ/n − x̂x̂ᵀ/n)/σ. Two directions are flat: adding one number to all entries, and "
        "stretching them. The rest is divided by σ: the larger x has grown, the less comes back.");
    lesson.check("16.layer_norm", "LayerNorm: J on the tape − by formula", le, worst, 0, 1e-12,
                 "(I − 11ᵀ/n − x̂x̂ᵀ/n)/σ");
    lesson.check("16.flat", "LayerNorm: |J·1|, |J·x̂|", le, flat, 0, 1e-12, "shift and scale are lost");

    const FeedForward feed_forward(generator, {.width = 4, .inner = 8, .dropout = 0});
    const Tensor tokens = tape.leaf(generator.normal({1, 3, 4}));
    const Array F = jacobian(feed_forward(tokens), tokens);
    double between = 0;
    for (std::size_t i = 0; i < 12; ++i)
        for (std::size_t j = 0; j < 12; ++j)
            if (i / 4 != j / 4) between += std::abs(double(F(i, j)));
    lesson.say(
        "The feed-forward layer, act(xW₁ + b₁)W₂ + b₂, works token by token too: nothing passes between tokens. "
        "Only attention moves things from one to another.");
    lesson.check("16.feed_forward", "Feed-forward: Σ|∂y_t/∂x_s| over t ≠ s", exact0, between, 0, 0, "token by token");
}

static void assembled(Lesson& lesson, Generator& generator) {
    Transformer model = small_model(generator);
    const Indices source = generator.integers({2, 5}, Alphabet::first, vocabulary),
                  target = generator.integers({2, 6}, Alphabet::first, vocabulary);
    Tape tape;
    const Tensor library = model(tape, source, target).logits;
    Parts parts;
    parts.mask = !lesson.broken("no-mask");
    const double same = largest_difference(logits(model, tape, source, target, parts).value(), library.value());
    lesson.say(
        "Put together: each part of a block reads LayerNorm(x) and adds what it finds to x (the skip). One block "
        "that encodes, one that decodes, run part by part here, against the library's own Transformer. Both use the "
        "library's MultiHead, LayerNorm and feed-forward, so what is compared is the wiring between them. The largest "
        "difference of the logits, which are the scores of the letters before the softmax, is " +
        number(same) + ".");
    lesson.check("16.same", "Wired here − wired by the library", exact0, same, 0, 0, "the same parts");

    // Parameters: attention 4d² + 4d, feed-forward 2df + f + d, LayerNorm 2d.
    const double d = 32, f = 64, attention = 4 * d * d + 4 * d, feed = 2 * d * f + f + d;
    const double formula =
        (attention + feed + 4 * d) + (2 * attention + feed + 6 * d) + 2 * 2 * d + 2 * double(vocabulary) * d;
    lesson.check("16.parameters", "Parameters of this model, d=32", eq, double(parameter_count(model)), formula, 0,
                 "4d²+4d, 2df+f+d, 2d");
    Generator draws(1);
    const TransformerOptions base;
    EncoderBlock encoder(draws, base);
    DecoderBlock decoder(draws, base);
    const auto matrices = [](auto& block) {
        double count = 0;
        block.for_each_parameter(
            "", [&](const std::string&, Parameter& p) { count += p.shape().size() == 2 ? double(p.size()) : 0; });
        return count;
    };
    lesson.say(
        "How large is that? The base model is the smaller of the two in the paper, “Attention Is All You Need” "
        "(Vaswani et al. 2017): d = 512 numbers a token, f = 2048 inside its feed-forward layers, 6 blocks on each "
        "side. Attention has 4d² weights and feed-forward 2df: counted in the library's matrices, " +
        number(matrices(encoder), "%.0f") + " in a block that encodes and, with attention twice, " +
        number(matrices(decoder), "%.0f") + " in one that decodes. The model here (d = 32, f = 64) has " +
        number(double(parameter_count(model)), "%.0f") + " parameters in all.");
    lesson.check("16.base_encoder", "Base model, encoder layer: weights", eq, matrices(encoder),
                 4. * 512 * 512 + 2. * 512 * 2048, 0, "Vaswani et al. 2017");
    lesson.check("16.base_decoder", "Base model, decoder layer: weights", eq, matrices(decoder),
                 8. * 512 * 512 + 2. * 512 * 2048, 0, "Vaswani et al. 2017");

    // Who hears from whom in the decoder.
    const std::size_t T = 5, E = 32;
    const Tensor y = tape.leaf(generator.normal({1, T, E})), states = tape.leaf(generator.normal({1, 4, E}));
    const Array J = jacobian(decode(model, y, states, parts), y);
    double later = 0, seen = 0;
    for (std::size_t i = 0; i < T; ++i)
        for (std::size_t j = 0; j < T; ++j) {
            double sum = 0;
            for (std::size_t a = 0; a < E; ++a)
                for (std::size_t b = 0; b < E; ++b) sum += std::abs(double(J(i * E + a, j * E + b)));
            (j > i ? later : seen) += j > i ? sum : double(sum > 0);
        }
    lesson.check("16.leak", "Decoder: Σ|∂y_i/∂x_j| over j > i", exact0, later, 0, 0, "causal mask");
    lesson.check("16.sees", "Decoder: pairs j ≤ i connected, T=5", eq, seen, double(T * (T + 1) / 2), 0,
                 "lower triangle");

    // Written token by token, from its cache of keys and values: no mask is needed, and the answer is the same.
    Decoder::Past past = model.start(tape, source);
    double apart = 0;
    for (std::size_t t = 0; t < 6; ++t) {
        const Indices one({2, 1}, {target[t], target[6 + t]});
        apart = std::max(apart, largest_difference(model.next(tape, one, past).logits.value(),
                                                   slice(library, 1, std::int64_t(t), std::int64_t(t + 1)).value()));
    }
    lesson.check("16.incremental", "Token by token − all at once", le, apart, 0, 1e-12, "a cache hides nothing");

    // Pads on the source, hidden: the answer stays.
    std::vector<std::int64_t> longer;
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t t = 0; t < 5; ++t) longer.push_back(source[b * 5 + t]);
        longer.insert(longer.end(), 7, Alphabet::pad);
    }
    const Tensor padded_logits = model(tape, Indices({2, 12}, longer), target, padding({5, 5}, 12)).logits;
    lesson.check("16.padding", "7 hidden pads: change of the logits", le,
                 largest_difference(padded_logits.value(), library.value()), 0, 1e-12, "α = 0 on pads");

    // The shift: with it no place can read the token that it is to predict.
    double reads = 0;
    for (std::size_t t = 0; t < 5; ++t) {
        std::vector<std::int64_t> answer{Alphabet::begin, 3, 4, 5, 6, 7, Alphabet::end}, other = answer;
        other[t + 1] = 9;
        const auto at = [&](const Ids& ids) {
            const Shifted s = shifted(std::vector<Ids>{ids});
            const Tensor l =
                model(tape, Indices({1, 3}, {3, 4, 5}), lesson.broken("no-shift") ? s.targets : s.inputs).logits;
            return select(l, 1, std::int64_t(t)).value();
        };
        reads += largest_difference(at(answer), at(other)) > 0;
    }
    lesson.say(
        "A decoder that is fed “begin a b” is to answer “a b end”, and learns all places at once. Two things keep "
        "each from its own answer: the mask hides later places, the shift hides the answer itself. Tried on 5 places, "
        "by changing what a place is to answer: " +
        number(reads) + " of 5 places read their own target.");
    lesson.check("16.shift", "Shifted: places that read their target", exact0, reads, 0, 0, "inputs are one late");
}

// ‖∂L/∂W₂‖ of every layer's feed-forward at the start, under Xiong's assumptions: one head, W_Q = W_K = 0, square
// normal matrices of variance 1/d, no biases' help; L a linear function of the outputs. A list of draws for each layer.
static constexpr std::size_t draws = 32;
static std::vector<std::vector<double>> gradients_at_start(std::size_t layers, Norm norm, Generator& generator) {
    const std::size_t d = 32, T = 8;
    std::vector<std::vector<double>> norms(layers);
    for (std::size_t k = 0; k < draws; ++k) {
        Encoder encoder(generator, {.width = d, .heads = 1, .inner = d, .layers = layers, .norm = norm, .dropout = 0});
        const auto normal = [&] { return generator.normal({d, d}, 0, 1 / std::sqrt(double(d))); };
        for (EncoderBlock& b : encoder.blocks) {
            b.attention.query.W.assign(filled({d, d}, 0)), b.attention.key.W.assign(filled({d, d}, 0));
            for (Parameter* W :
                 {&b.attention.value.W, &b.attention.output.W, &b.feed_forward.in.W, &b.feed_forward.out.W})
                W->assign(normal());
        }
        Tape tape;
        const Tensor y = encoder(tape.leaf(generator.normal({1, T, d}))).y;
        const Gradients g = tape.backward(sum(y * tape.leaf(generator.normal({1, T, d}))));
        for (std::size_t l = 0; l < layers; ++l)
            norms[l].push_back(lookback::norm(g[encoder.blocks[l].feed_forward.out.W]));
    }
    return norms;
}

static void norm_and_depth(Lesson& lesson, Generator& generator) {
    const std::vector<double> depths{2, 4, 8, 16};
    std::vector<double> logs, log_last[2];
    std::vector<std::string> last[2];
    for (const double L : depths) {
        logs.push_back(std::log(L));
        for (const Norm norm : {Norm::after, Norm::before}) {
            const std::vector<double> drawn = gradients_at_start(std::size_t(L), norm, generator).back();
            const int row = norm == Norm::before;
            last[row].push_back(number(measure::mean(drawn), "%.1f") +
                                number(measure::standard_error(drawn), " ± %.1f"));
            log_last[row].push_back(std::log(measure::mean(drawn)));
        }
    }
    const double post = measure::slope(logs, log_last[0]), pre = measure::slope(logs, log_last[1]);
    lesson.say(
        "Where LayerNorm stands matters at the start. Xiong et al. 2020 bound the gradient of the last feed-forward "
        "matrix: after the skip (post-norm, as in the paper of 2017) independent of the depth L, before the part "
        "(pre-norm) falling like L^−½: there x runs through all L layers, each adds to it, and the last LayerNorm "
        "divides by the length it has grown to. The length of that gradient under their assumptions (one head, W_Q = "
        "W_K = 0), a mean of " +
        std::to_string(draws) + " random starts ± its standard error:");
    std::vector<std::vector<std::string>> table{{"", "L = 2", "L = 4", "L = 8", "L = 16", "slope in ln L"}};
    for (int i = 0; i < 2; ++i) {
        table.push_back({i ? "pre-norm" : "post-norm"});
        for (const std::string& cell : last[i]) table.back().push_back(cell);
        table.back().push_back(number(i ? pre : post, "%+.3f"));
    }
    lesson.line(terminal::table(table));
    lesson.check("16.post_norm", "Post-norm: slope of ln ‖g‖ in ln L", target, post, 0, 0.1,
                 "Xiong et al. 2020, Theorem 1");
    lesson.check("16.pre_norm", "Pre-norm: slope of ln ‖g‖ in ln L", target, pre, -0.5, 0.1,
                 "Xiong et al. 2020, Theorem 1");
    for (const auto& [name, norm] : {std::pair{"post-norm", Norm::after}, {"pre-norm", Norm::before}}) {
        std::vector<double> means;
        for (const std::vector<double>& drawn : gradients_at_start(6, norm, generator))
            means.push_back(measure::mean(drawn));
        lesson.trace().series.push_back({.name = name,
                                         .x_label = "layer",
                                         .x = measure::range(1, 6),
                                         .y_label = "‖∂L/∂W₂‖ at the start",
                                         .y = means});
    }
}

static void schedule(Lesson& lesson) {
    const Schedule rate = transformer_warm_up(512, 4000);
    lesson.say(
        "The paper's learning rate at update t, for a model with d numbers a token and w updates of warm-up, is "
        "d^−½ · min(t^−½, t·w^−3⁄2). The base model has d = 512 and w = 4000.");
    lesson.predict("peak");
    double peak = 0, at = 0;
    std::vector<double> steps, rates;
    for (std::size_t step = 1; step <= 20000; ++step) {
        if (rate(step) > peak) peak = rate(step), at = double(step);
        if (step % 400 == 0) steps.push_back(double(step)), rates.push_back(rate(step));
    }
    const auto in_units = [](double x) { return std::round(1e7 * x) / 1e3; };  // of 10⁻⁴; more digits help no guess
    lesson.reveal("peak", in_units(peak), in_units(1 / std::sqrt(512. * 4000)));
    lesson.line(terminal::chart({{'r', "learning rate, d = 512, w = 4000", rates, steps}}, {"update"}, {"rate"}, 9));
    lesson.say("It goes up in proportion to t, and then down as 1/√t; the two meet at t = w, at the peak 1/√(d·w).");
    lesson.check("16.peak", "Peak of the rate · 10⁴, d=512, w=4000", eq, 1e4 * peak, 1e4 / std::sqrt(512. * 4000),
                 1e-12, "Vaswani et al. 2017, eq. 3");
    lesson.check("16.peak_at", "The update where it is", eq, at, 4000, 0, "t = w");
}

// ---- trained: reversal, whole and with one part missing

struct Batch {
    Indices source;
    Shifted target;
};
static Batch reversal(Generator& generator, std::size_t B, std::size_t T) {
    const Indices source = generator.integers({B, T}, Alphabet::first, vocabulary);
    std::vector<Ids> answers;
    for (std::size_t b = 0; b < B; ++b) {
        const auto row = source.values().subspan(b * T, T);
        answers.emplace_back(row.rbegin(), row.rend());
    }
    return {source, teacher_forcing(answers)};
}
// The share of strings that come out right, each written from its beginning, the most probable letter at each place.
static double written_right(const Transformer& model, const Parts& parts, const Batch& test) {
    const std::size_t B = test.source.shape()[0], T = test.source.shape()[1];
    std::vector<bool> right(B, true);
    std::vector<Ids> so_far(B, Ids{Alphabet::begin});
    for (std::size_t t = 0; t < T; ++t) {
        Tape tape;
        const NoGrad no_grad(tape);
        const Indices best = argmax(logits(model, tape, test.source, padded(so_far).ids, parts), -1);
        for (std::size_t b = 0; b < B; ++b) {
            const std::int64_t next = best[b * (t + 1) + t];
            right[b] = right[b] && next == test.target.targets[b * (T + 1) + t];
            so_far[b].push_back(next);
        }
    }
    return double(std::count(right.begin(), right.end(), true)) / double(B);
}

static constexpr std::size_t tested = 200;  // strings
struct Trained {
    std::vector<double> losses, rates;
    double exact, longer;
};
static Trained train(const std::string& name, const Parts& parts, std::uint64_t seed) {
    Generator generator(seed);
    Transformer model = small_model(generator);
    const std::size_t updates = 600;
    const Schedule rate = transformer_warm_up(32, 100, 0.4);
    Adam adam({.rate = rate, .beta_2 = 0.98});
    terminal::Progress progress("Reversing strings: " + name);
    Trained result;
    double recent = 0;
    for (std::size_t update = 1; update <= updates; ++update) {
        const Batch batch = reversal(generator, 32, 8);
        Tape tape;
        const Tensor loss =
            cross_entropy(logits(model, tape, batch.source, batch.target.inputs, parts), batch.target.targets);
        Gradients g = tape.backward(loss);
        clip_by_norm(model, g, 1);
        adam.step(model, g);
        recent += double(loss.item());
        if (update % 20 == 0) {
            result.losses.push_back(std::exchange(recent, 0) / 20), result.rates.push_back(rate(update));
            progress.at(double(update) / double(updates));
        }
    }
    Generator fresh(seed + 1000);
    result.exact = written_right(model, parts, reversal(fresh, tested, 8));
    result.longer = written_right(model, parts, reversal(fresh, tested, 16));
    return result;
}

static void ablations(Lesson& lesson) {
    lesson.say(
        "Strings of 8 letters out of 8, to be written backwards: one block to encode, one to decode, d = 32, four "
        "heads of D = 8 numbers, 600 updates of 32 strings by the schedule above (w = 100, times 0.4). The loss is in "
        "nats a letter: −ln p of the right letter, on average, here over the last 20 updates. Then 200 new strings are "
        "written letter by letter, and a string counts if all of it is right: a share p, ± √(p(1 − p)/200), which is 0 "
        "if all are right or "
        "none (3/200 more or fewer are possible then, too). And the same with one part missing.");
    const std::vector<std::pair<std::string, Parts>> variants{{"all parts", {}},
                                                              {"no positions", {.position = false}},
                                                              {"no causal mask", {.mask = false}},
                                                              {"no skip", {.skip = false}},
                                                              {"no LayerNorm", {.norm = false}},
                                                              {"no 1/√D", {.scale = false}},
                                                              {"no feed-forward", {.feed_forward = false}}};
    std::vector<std::vector<std::string>> table{{"", "last loss", "strings right", "at twice the length"}};
    const auto share = [](double p) {
        return number(p, "%.3f") + number(std::sqrt(p * (1 - p) / double(tested)), " ± %.3f");
    };
    std::vector<Trained> all;
    std::vector<double> x, exact, number_of;
    std::vector<std::string> names;
    for (const auto& [name, parts] : variants) {
        all.push_back(train(name, parts, lesson.seed()));
        const Trained& t = all.back();
        table.push_back({name, number(t.losses.back(), "%.4f"), share(t.exact), share(t.longer)});
        exact.push_back(t.exact), names.push_back(name), number_of.push_back(double(exact.size()));
        x.clear();
        for (std::size_t i = 1; i <= t.losses.size(); ++i) x.push_back(20 * double(i));
        lesson.trace().series.push_back(
            {.name = "loss, " + name, .x_label = "update", .x = x, .y_label = "cross-entropy", .y = t.losses});
    }
    lesson.trace().series.push_back(
        {.name = "learning rate", .x_label = "update", .x = x, .y_label = "learning rate", .y = all[0].rates});
    lesson.trace().series.push_back({.name = "ablation",
                                     .x_label = "model",
                                     .x = number_of,
                                     .y_label = "strings right",
                                     .y_unit = "share",
                                     .y = exact,
                                     .labels = names});
    lesson.line(terminal::chart({{'a', "all parts", all[0].losses, x},
                                 {'m', "no causal mask", all[2].losses, x},
                                 {'p', "no positions", all[1].losses, x}},
                                {"update"}, {"training loss, nats a letter", true}, 13));
    lesson.line(terminal::table(table));
    std::string missed[2];  // what is missed, and what is not, beyond chance
    for (std::size_t i = 1; i < all.size(); ++i) {
        std::string& list = missed[all[0].exact - all[i].exact < 0.02 - 1e-9];
        list += (list.empty() ? "" : ", ") + names[i];
    }
    for (std::string& list : missed)
        if (list.empty()) list = "none";
    lesson.say(
        "Differences below about 0.02 are chance of the 200 strings alone, and another training may move the shares by "
        "more (--seeds 3 gives medians in the table of checks). Worse than all parts by 0.02 or more, in this one: " +
        missed[0] + ". Not so: " + missed[1] +
        ". A part that so small a task hardly misses may still be needed where models are deeper and trainings "
        "longer.");
    lesson.say("Without the mask the training loss ends at " + number(all[2].losses.back(), "%.4f") + ", with it at " +
               number(all[0].losses.back(), "%.4f") +
               ": the unmasked decoder learns to read the answer, which is not there when it must write, and gets " +
               number(all[2].exact, "%.3f") + " of the strings right. Of strings twice as long the whole model gets " +
               number(all[0].longer, "%.3f") +
               " right: a mask makes it immune to padding, and that is not to master lengths that it never saw.");
    lesson.check("16.full", "All parts: strings right", target, all[0].exact, 1, 0.01, "trained");
    lesson.check("16.no_positions", "No positions: strings right", target, all[1].exact, 0, 0.1, "order-blind source");
    lesson.check("16.no_mask", "No causal mask: strings right", target, all[2].exact, 0, 0.1,
                 "it learned to read ahead");
    lesson.check("16.reads_ahead", "No causal mask: last loss / all parts'", {le, false},
                 all[2].losses.back() / all[0].losses.back(), 1, 0, "it reads the answer");
    const std::tuple<const char*, const char*, std::size_t> hardly_missed[] = {
        {"16.no_skip", "No skip: strings lost", 3},
        {"16.no_norm", "No LayerNorm: strings lost", 4},
        {"16.no_scale", "No 1/√D: strings lost", 5},
        {"16.no_feed_forward", "No feed-forward: strings lost", 6}};
    for (const auto& [id, claim, i] : hardly_missed)
        lesson.check(id, claim, {le, false}, all[0].exact - all[i].exact, 0.1, 0, "one block is enough here");
    lesson.check("16.longer", "All parts, length 16: strings right", target, all[0].longer, 0, 0.1, "never seen");
}

// ---- a language model of spelling

static void spelling(Lesson& lesson) {
    const auto spelled = [](const char* which) {
        std::vector<Tokens> words;
        for (const Row& row : read_tsv(std::string(LOOKBACK_DATA_DIR "/phonemes.") + which + ".tsv", 2))
            words.push_back(characters(row.fields[0]));
        return words;
    };
    const std::vector<Tokens> training = spelled("training"), held_out = spelled("held-out");
    const Alphabet alphabet(training);
    const auto rows_of = [&](const std::vector<Tokens>& words, std::size_t first, std::size_t n) {
        std::vector<Ids> rows;
        for (std::size_t i = first; i < first + n; ++i) rows.push_back(alphabet.ids(words[i]));
        return teacher_forcing(rows);
    };
    Generator generator(lesson.seed());
    LanguageModel model(alphabet.size(), generator,
                        {.width = 32, .heads = 4, .inner = 64, .layers = 2, .norm = Norm::before, .dropout = 0});
    name_parameters(model);
    const std::size_t updates = 800, B = 64;
    Adam adam({.rate = cosine(4e-3, updates, 40)});
    {
        terminal::Progress progress("Spelling");
        for (std::size_t update = 0; update < updates; ++update) {
            const Shifted s =
                rows_of(training, std::size_t(generator.integer(0, std::int64_t(training.size() - B))), B);
            Tape tape;
            Gradients g = tape.backward(cross_entropy(model(tape, s.inputs).logits, s.targets));
            clip_by_norm(model, g, 1);
            adam.step(model, g);
            progress.at(double(update) / double(updates));
        }
    }
    // The baseline by counting: a letter given the one before, one added to each count.
    const std::size_t V = alphabet.size();
    std::vector<double> pairs(V * V, 1.0), firsts(V, double(V));
    const auto each_pair = [&](const Shifted& s, auto f) {
        for (std::size_t i = 0; i < s.inputs.size(); ++i)
            if (s.targets[i] >= 0) f(std::size_t(s.inputs[i]), std::size_t(s.targets[i]));
    };
    each_pair(rows_of(training, 0, training.size()),
              [&](std::size_t a, std::size_t b) { pairs[a * V + b] += 1, firsts[a] += 1; });
    const Shifted test = rows_of(held_out, 0, held_out.size());
    double by_pairs = 0, count = 0;
    each_pair(test, [&](std::size_t a, std::size_t b) { by_pairs -= std::log(pairs[a * V + b] / firsts[a]), ++count; });
    by_pairs /= count;
    Tape tape;
    const NoGrad no_grad(tape);
    const double by_model = double(cross_entropy(model(tape, test.inputs).logits, test.targets).item());

    std::set<Tokens> known(training.begin(), training.end());
    std::string invented;
    for (std::size_t n = 0; n < 12; ++n) {
        Ids ids{Alphabet::begin};
        while (ids.size() < 14) {
            const Array p = softmax(select(model(tape, Indices({1, ids.size()}, ids)).logits, 1, -1), -1).value();
            double left = generator.uniform();
            std::int64_t next = 0;
            while (next + 1 < std::int64_t(V) && (left -= double(p.data()[next])) > 0) ++next;
            if (next < Alphabet::first) break;
            ids.push_back(next);
        }
        const Tokens word = alphabet.tokens(Ids(ids.begin() + 1, ids.end()));
        for (const std::string& letter : word) invented += letter;
        invented += known.count(word) ? "* " : " ";
    }
    lesson.say(
        "Real text, if small: the spelling of the 20,000 words and surnames that lesson 12 pronounces (CMU "
        "dictionary). A decoder alone, two blocks, 800 updates; 1000 words held out. Nats a letter, the end of a "
        "word being one more letter: " +
        number(by_model, "%.3f") + "; by counting pairs of letters " + number(by_pairs, "%.3f") +
        "; by guessing among " + std::to_string(V - 3) + " letters and the end " +
        number(std::log(double(V - 2)), "%.3f") + ". It invents" +
        (invented.find('*') == std::string::npos ? "" : " (* is in its training rows)") + ":");
    lesson.say("    " + invented);
    lesson.check("16.spelling", "Nats a letter: model − letter pairs", target, by_model - by_pairs, -0.3, 0.2,
                 "trained; counted");
}

int main(int argc, char** argv) {
    Lesson lesson("16_transformer", "A Transformer is more than attention: its parts, each known and tried.");
    lesson.prediction("peak", "d = 512, w = 4000: the peak of the learning rate, times 10⁴?");
    lesson.exercise(
        "half", "w = 1000: at which update after the peak is the rate half as high?",
        [] {
            const Schedule rate = transformer_warm_up(512, 1000);
            std::size_t t = 1000;  // the peak
            while (rate(t) > rate(1000) / 2 * (1 + 1e-12)) ++t;
            return double(t);
        },
        0, "after the peak only one branch of the minimum counts: what must become of t to halve it?");
    lesson.damage("no-mask", "the decoder put together here has no causal mask");
    lesson.damage("no-shift", "the decoder is fed its targets instead of the tokens before them");
    return lesson.run(argc, argv, [&] {
        Generator generator(lesson.seed());
        lesson.step("LayerNorm and feed-forward, by hand");
        layer_norm_by_hand(lesson, generator);
        lesson.step("Putting it together");
        assembled(lesson, generator);
        lesson.step("LayerNorm before or after");
        norm_and_depth(lesson, generator);
        lesson.step("The learning rate warms up");
        schedule(lesson);
        if (lesson.quick()) return;
        lesson.step("Reversing strings, with one part missing at a time");
        ablations(lesson);
        lesson.step("Spelling");
        spelling(lesson);
    });
}
