// Encoder and decoders: against their equations, padding and causality, slopes, decoding.
#include "layers/seq2seq.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/gather.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/reduce.hpp"
#include "engine/ops/softmax.hpp"
#include "layers/optimizer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

namespace {

constexpr std::size_t V_x = 9, V_y = 7;
constexpr auto kinds = {DecoderKind::plain, DecoderKind::bahdanau, DecoderKind::luong};

Seq2Seq make(DecoderKind kind, std::uint64_t seed = 1) {
    Generator generator(seed);
    Seq2Seq model(V_x, V_y, generator, {.embedding = 3, .hidden = 4, .attention = 5, .decoder = kind});
    name_parameters(model);
    return model;
}

const std::vector<Ids> sources{{3, 5, 8, 4}, {6, 7}, {4, 4, 5}}, targets{{3, 4}, {5, 6, 3, 3}, {6}};

// As teacher_forcing, for answers of models so untrained that they write marks.
Shifted forced(const Ids& answer) {
    std::vector<Ids> marked{{Alphabet::begin}};
    marked[0].insert(marked[0].end(), answer.begin(), answer.end());
    marked[0].push_back(Alphabet::end);
    return shifted(marked);
}

Array log_probabilities(const Seq2Seq& model, const Ids& x, const Ids& y) {
    Tape tape;
    const Shifted s = forced(y);
    return (-cross_entropy(model(tape, padded(std::vector<Ids>{x}), s.inputs).logits, s.targets,
                           {.reduction = Reduction::none}))
        .value();
}

// The same sources with longer rows, filled with another token.
Padded with_more_padding(const std::vector<Ids>& x, std::size_t more, std::int64_t filler) {
    Padded p = padded(x);
    const std::size_t B = x.size(), T = p.ids.shape()[1] + more;
    Ids ids(B * T, filler);
    for (std::size_t b = 0; b < B; ++b) std::copy(x[b].begin(), x[b].end(), ids.begin() + std::ptrdiff_t(b * T));
    return {Indices({B, T}, ids), p.lengths};
}

}  // namespace

TEST_CASE("teacher forcing gives scores for each target place, and weights that sum to 1 over the visible source") {
    for (const DecoderKind kind : kinds) {
        const Seq2Seq model = make(kind);
        Tape tape;
        const Shifted s = teacher_forcing(targets);
        const Seq2Seq::Output o = model(tape, padded(sources), s.inputs);
        CHECK(o.logits.shape() == Shape{3, 5, V_y});
        CHECK(o.states.size() == 5);
        CHECK(o.encoded.states.shape() == Shape{3, 4, 8});
        CHECK(o.encoded.summary.shape() == Shape{3, 8});
        if (kind == DecoderKind::plain) continue;
        CHECK(o.weights.shape() == Shape{3, 5, 4});
        CHECK(close(sum(o.weights, -1).value(), filled({3, 5}, 1)));
        for (std::size_t t = 0; t < 5; ++t) {
            CHECK(o.weights.value()(1, t, 2) == 0);
            CHECK(o.weights.value()(1, t, 3) == 0);
            CHECK(o.weights.value()(1, t, 1) > 0);
        }
    }
}

TEST_CASE("a Bahdanau decoder attends by its last state, and reads token and context as one input") {
    const Seq2Seq model = make(DecoderKind::bahdanau);
    const auto& d = std::get<BahdanauDecoder>(model.decoder);
    Tape tape;
    const Shifted shifted_targets = teacher_forcing(targets);
    const Seq2Seq::Output o = model(tape, padded(sources), shifted_targets.inputs);
    const Tensor y = model.target(tape, shifted_targets.inputs);
    // GRU(y W + c C + b, s) is a GRU over [y c] whose W stands above C.
    Generator unused(0);
    GRU joint(3 + 8, 4, unused);
    joint.W.assign(concat({tape.leaf(d.cell.W), tape.leaf(d.C.W)}, 0).value());
    joint.U.assign(d.cell.U.value());
    joint.b.assign(d.cell.b.value());
    joint.b_n.assign(d.cell.b_n.value());
    Tensor s = tanh(d.bridge(o.encoded.summary));
    for (int t = 0; t < 5; ++t) {
        const auto [c, weights] = d.attention(s, o.encoded.states, o.encoded.states, o.encoded.visible);
        s = joint.composed(concat({select(y, 1, t), c}, -1), {s}).h;
        CHECK(close(s.value(), o.states[std::size_t(t)].s.value(), 1e-12, 1e-12));
        CHECK(close(weights.value(), select(o.weights, 1, t).value(), 1e-12, 1e-12));
        const Tensor readout = tanh(d.out(concat({s, c, select(y, 1, t)}, -1)));
        CHECK(close(model.out(readout).value(), select(o.logits, 1, t).value(), 1e-12, 1e-12));
    }
}

TEST_CASE("a Luong decoder attends by its new state, and is fed its last attentional vector") {
    const Seq2Seq model = make(DecoderKind::luong);
    const auto& d = std::get<LuongDecoder>(model.decoder);
    Tape tape;
    const Shifted shifted_targets = teacher_forcing(targets);
    const Seq2Seq::Output o = model(tape, padded(sources), shifted_targets.inputs);
    const Tensor y = model.target(tape, shifted_targets.inputs);
    Tensor s = tanh(d.bridge(o.encoded.summary)), h = tape.constant(filled({3, 4}, 0));
    for (int t = 0; t < 5; ++t) {
        s = d.cell.step(d.cell.project(select(y, 1, t)) + matmul(h, d.C.W), {s}).h;
        const auto [c, weights] = d.attention(s, o.encoded.states, o.encoded.states, o.encoded.visible);
        h = tanh(matmul(concat({c, s}, -1), d.W_c.W));
        CHECK(close(weights.value(), select(o.weights, 1, t).value(), 1e-12, 1e-12));
        CHECK(close(model.out(h).value(), select(o.logits, 1, t).value(), 1e-12, 1e-12));
    }
}

TEST_CASE("without attention the target depends on the source through the first state alone") {
    const Seq2Seq model = make(DecoderKind::plain);
    const auto& d = std::get<PlainDecoder>(model.decoder);
    Tape tape;
    const Shifted s = teacher_forcing(targets);
    const Seq2Seq::Output o = model(tape, padded(sources), s.inputs);
    const auto y = unroll(d.cell, model.target(tape, s.inputs), {tanh(d.bridge(o.encoded.summary))});
    CHECK(close(model.out(y.outputs).value(), o.logits.value(), 1e-12, 1e-12));
    CHECK(!o.weights.owner());
}

TEST_CASE("padding changes nothing: neither what it holds, nor how much of it there is") {
    for (const DecoderKind kind : kinds) {
        const Seq2Seq model = make(kind);
        const Shifted s = teacher_forcing(targets);
        Tape tape;
        const Seq2Seq::Output plain = model(tape, with_more_padding(sources, 2, 0), s.inputs),
                              poisoned = model(tape, with_more_padding(sources, 2, 8), s.inputs),
                              shorter = model(tape, padded(sources), s.inputs);
        CHECK(same_bits(plain.logits.value(), poisoned.logits.value()));
        CHECK(close(plain.logits.value(), shorter.logits.value(), 1e-12, 1e-12));
        // Token 1 stands in the padding alone: no gradient reaches its embedding.
        Tape other;
        const Tensor loss = model.loss(other, with_more_padding(sources, 2, 1), s);
        const Array gradient = other.backward(loss)[model.source.table];
        for (std::size_t e = 0; e < 3; ++e) {
            CHECK(gradient(1, e) == 0);
            CHECK(gradient(3, e) != 0);
        }
    }
}

TEST_CASE("a score depends on the target tokens before it, and on no later one") {
    for (const DecoderKind kind : kinds) {
        const Seq2Seq model = make(kind);
        Tape tape;
        const Indices inputs({1, 5}, {1, 3, 4, 5, 6}), changed({1, 5}, {1, 3, 4, 6, 6});
        const Array before = model(tape, padded(std::vector<Ids>{{3, 4}}), inputs).logits.value(),
                    after = model(tape, padded(std::vector<Ids>{{3, 4}}), changed).logits.value();
        for (std::size_t v = 0; v < V_y; ++v) {
            for (std::size_t t = 0; t < 3; ++t) CHECK(before(0, t, v) == after(0, t, v));
            CHECK(before(0, 3, v) != after(0, 3, v));
        }
    }
}

TEST_CASE("the loss falls along the gradient of every parameter as central differences say") {
    for (const DecoderKind kind : kinds) {
        Seq2Seq model = make(kind);
        const Shifted s = teacher_forcing(targets);
        const auto loss = [&] {
            Tape tape;
            return double(model.loss(tape, padded(sources), s).item());
        };
        Tape tape;
        const Gradients gradients = tape.backward(model.loss(tape, padded(sources), s));
        Generator generator(2);
        for (const Parameters::Entry& entry : Parameters(model)) {
            INFO(entry.path);
            Parameter* const p = entry.parameter;
            CHECK(gradients.reached(*p));
            // In a random direction: all entries at once.
            const Array direction = generator.normal(p->shape());
            double slope = 0;
            for (std::size_t i = 0; i < direction.size(); ++i)
                slope += double(gradients[*p].data()[i]) * double(direction.data()[i]);
            const Array value = p->value();
            const auto at = [&](double step) {
                p->edit([&](Array& w) {
                    for (std::size_t i = 0; i < w.size(); ++i) w.data()[i] += Real(step) * direction.data()[i];
                });
                const double l = loss();
                p->assign(Array(value));
                return l;
            };
            CHECK(close(slope, (at(1e-5) - at(-1e-5)) / 2e-5, 1e-6, 1e-8));
        }
    }
}

TEST_CASE("what decoding says of its answer is what teacher forcing says of the same tokens") {
    for (const DecoderKind kind : kinds)
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
            const Seq2Seq model = make(kind, seed);
            Seq2SeqDecoding decoding(model, padded(sources));
            const std::vector<Generated> answers = greedy(decoding, {.longest = 6});
            for (std::size_t b = 0; b < sources.size(); ++b) {
                const Array p = log_probabilities(model, sources[b], answers[b].ids);
                double expected = 0;
                for (std::size_t t = 0; t < answers[b].ids.size() + answers[b].ended; ++t) expected += double(p(0, t));
                CHECK(close(answers[b].log_probability, expected, 1e-10, 1e-10));
                Seq2SeqDecoding alone(model, padded(std::vector<Ids>{sources[b]})),
                    beam(model, padded(std::vector<Ids>{sources[b]}));
                CHECK(greedy(alone, {.longest = 6})[0].ids == answers[b].ids);
                for (const Generated& g :
                     beam_search(beam, {.width = 3, .length_penalty = 0, .decode = {.longest = 6}})) {
                    const Array q = log_probabilities(model, sources[b], g.ids);
                    double total = 0;
                    for (std::size_t t = 0; t < g.ids.size() + g.ended; ++t) total += double(q(0, t));
                    CHECK(close(g.log_probability, total, 1e-10, 1e-10));
                    CHECK(g.weights.size() == (kind == DecoderKind::plain ? 0 : g.ids.size()));
                }
            }
        }
}

TEST_CASE("a Transformer decodes with its cache what it says of the whole") {
    Generator generator(3);
    const Transformer model(V_x, V_y, generator,
                            {.width = 8, .heads = 2, .inner = 16, .layers = 2, .norm = Norm::before, .dropout = 0});
    for (std::size_t b = 0; b < sources.size(); ++b) {
        const Padded x = padded(std::vector<Ids>{sources[b]});
        TransformerDecoding decoding(model, x), together(model, padded(sources));
        const auto beam = beam_search(decoding, {.width = 3, .length_penalty = 0, .decode = {.longest = 6}});
        REQUIRE(beam.size() == 3);
        for (const Generated& g : beam) {
            Tape tape;
            const Shifted s = forced(g.ids);
            const Array p =
                cross_entropy(model(tape, x.ids, s.inputs).logits, s.targets, {.reduction = Reduction::none}).value();
            double expected = 0;
            for (std::size_t t = 0; t < g.ids.size() + g.ended; ++t) expected -= double(p(0, t));
            CHECK(close(g.log_probability, expected, 1e-10, 1e-10));
            REQUIRE(g.weights.size() == g.ids.size());
            for (const Array& weights : g.weights) CHECK(weights.shape() == Shape{sources[b].size()});
        }
        TransformerDecoding alone(model, x);
        CHECK(greedy(together, {.longest = 6})[b].ids == greedy(alone, {.longest = 6})[0].ids);
    }
}

TEST_CASE("decoding needs no more memory for a thousand tokens than for ten") {
    const Seq2Seq model = make(DecoderKind::bahdanau);
    const auto grown = [&](std::size_t longest) {
        Seq2SeqDecoding decoding(model, padded(sources));
        decoding.step(Ids(3, Alphabet::begin));
        const Live before = Recycler::live;
        for (std::size_t i = 0; i < longest; ++i) decoding.step(Ids(3, 3));
        return Live{Recycler::live.cells - before.cells, Recycler::live.bytes - before.bytes};
    };
    CHECK(grown(10) == grown(1000));
}

TEST_CASE("a small model learns to reverse three letters") {
    Generator generator(4);
    Seq2Seq model(V_x, V_x, generator, {.embedding = 8, .hidden = 24, .attention = 16});
    std::vector<Ids> x, y;
    for (int i = 0; i < 216; ++i) {
        x.push_back({3 + i % 6, 3 + i / 6 % 6, 3 + i / 36});
        y.push_back({x.back()[2], x.back()[1], x.back()[0]});
    }
    Adam adam({.rate = 1e-2});
    for (int update = 0; update < 60; ++update) {
        Tape tape;
        Gradients g = tape.backward(model.loss(tape, padded(x), teacher_forcing(y)));
        clip_by_norm(model, g, 1);
        adam.step(model, g);
    }
    Seq2SeqDecoding decoding(model, padded(x));
    const std::vector<Generated> answers = greedy(decoding);
    std::size_t right = 0;
    for (std::size_t i = 0; i < x.size(); ++i) right += answers[i].ids == y[i];
    CHECK(right > 200);
}

TEST_CASE("shapes and ids that do not fit are errors that name the model") {
    const Seq2Seq model = make(DecoderKind::bahdanau);
    Tape tape;
    const Padded x = padded(sources);
    CHECK_THROWS_WITH(model(tape, x, Indices({2, 1}, {1, 1})), contains("[Seq2Seq] inputs") && contains("(2,1)"));
    CHECK_THROWS_WITH(model(tape, x, Indices({3, 0}, {})), contains("[Seq2Seq] inputs"));
    CHECK_THROWS_WITH(model(tape, x, Indices{1, 1, 1}), contains("[Seq2Seq] inputs"));
    CHECK_THROWS_WITH(model.encode(tape, {x.ids, {1, 2}}), contains("[Seq2Seq] source ids") && contains("(3,4)"));
    CHECK_THROWS_AS(model(tape, {x.ids, {9, 9, 9}}, Indices({3, 1}, {1, 1, 1})), ShapeError);
    CHECK_THROWS_AS(model(tape, x, Indices({3, 1}, {1, 1, 7})), IndexError);
    CHECK_THROWS_AS(model(tape, padded(std::vector<Ids>{{9}}), Indices({1, 1}, {1})), IndexError);
}
