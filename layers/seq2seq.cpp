#include "seq2seq.hpp"
#include <numeric>
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/reduce.hpp"
#include "engine/ops/softmax.hpp"

namespace lookback {

// ---- Decoders -------------------------------------------------------------------------------------------------------

PlainDecoder::PlainDecoder(std::size_t E, std::size_t H, std::size_t D, Generator& generator)
    : bridge(D, H, generator), cell(E, H, generator) {}

DecoderStep PlainDecoder::step(const Tensor& a, const DecoderState& state, const Memory&) const {
    return {{cell.step(a, {state.s}).h, {}}, {}};
}

void PlainDecoder::for_each_parameter(const std::string& prefix, const Visitor& f) {
    bridge.for_each_parameter(join(prefix, "bridge"), f);
    cell.for_each_parameter(join(prefix, "cell"), f);
}

BahdanauDecoder::BahdanauDecoder(std::size_t E, std::size_t H, std::size_t D, Attention attention_,
                                 Generator& generator)
    : bridge(D, H, generator),
      cell(E, H, generator),
      C(D, 3 * H, generator, Linear::Bias::no),
      attention(std::move(attention_)),
      out(H + D + E, H, generator) {}

DecoderStep BahdanauDecoder::step(const Tensor& a, const DecoderState& state, const Memory& memory) const {
    const auto [c, weights] = attention(state.s, memory);
    const Tensor s = cell.step(a + C(c), {state.s}).h;
    return {{s, c}, weights};
}

void BahdanauDecoder::for_each_parameter(const std::string& prefix, const Visitor& f) {
    bridge.for_each_parameter(join(prefix, "bridge"), f);
    cell.for_each_parameter(join(prefix, "cell"), f);
    C.for_each_parameter(join(prefix, "C"), f);
    attention.for_each_parameter(join(prefix, "attention"), f);
    out.for_each_parameter(join(prefix, "out"), f);
}

LuongDecoder::LuongDecoder(std::size_t E, std::size_t H, std::size_t D, Attention attention_, Generator& generator)
    : bridge(D, H, generator),
      cell(E, H, generator),
      C(H, 3 * H, generator, Linear::Bias::no),
      attention(std::move(attention_)),
      W_c(D + H, H, generator, Linear::Bias::no) {}

DecoderState LuongDecoder::start(const Encoded& x) const {
    const Tensor s = tanh(bridge(x.summary));
    return {s, s.tape().constant(filled(s.shape(), 0))};
}

DecoderStep LuongDecoder::step(const Tensor& a, const DecoderState& state, const Memory& memory) const {
    const Tensor s = cell.step(a + C(state.fed), {state.s}).h;
    const auto [c, weights] = attention(s, memory);
    return {{s, tanh(W_c(concat({c, s}, -1)))}, weights};
}

void LuongDecoder::for_each_parameter(const std::string& prefix, const Visitor& f) {
    bridge.for_each_parameter(join(prefix, "bridge"), f);
    cell.for_each_parameter(join(prefix, "cell"), f);
    C.for_each_parameter(join(prefix, "C"), f);
    attention.for_each_parameter(join(prefix, "attention"), f);
    W_c.for_each_parameter(join(prefix, "W_c"), f);
}

// ---- The model ------------------------------------------------------------------------------------------------------

static RecurrentDecoder make_decoder(const Seq2SeqOptions& o, Generator& generator) {
    const std::size_t E = o.embedding, H = o.hidden, D = 2 * H;
    switch (o.decoder) {
        case DecoderKind::bahdanau:
            return BahdanauDecoder(E, H, D, Attention(AdditiveScore(H, D, o.attention, generator)), generator);
        case DecoderKind::luong:
            return LuongDecoder(E, H, D, Attention(BilinearScore(H, D, generator)), generator);
        case DecoderKind::plain:
            break;
    }
    return PlainDecoder(E, H, D, generator);
}

static std::size_t readout_width(const RecurrentDecoder& decoder) {
    return std::visit([](const auto& d) { return d.readout_width(); }, decoder);
}

Seq2Seq::Seq2Seq(std::size_t source_vocabulary, std::size_t target_vocabulary, Generator& generator,
                 const Seq2SeqOptions& options)
    : Seq2Seq(source_vocabulary, target_vocabulary, options.embedding, options.hidden, make_decoder(options, generator),
              generator) {}

Seq2Seq::Seq2Seq(std::size_t source_vocabulary, std::size_t target_vocabulary, std::size_t embedding,
                 std::size_t hidden, RecurrentDecoder decoder_, Generator& generator)
    : source(source_vocabulary, embedding, generator),
      target(target_vocabulary, embedding, generator),
      encoder(embedding, hidden, generator, {.layers = 1, .bidirectional = true}),
      decoder(std::move(decoder_)),
      out(readout_width(decoder), target_vocabulary, generator) {}

Encoded Seq2Seq::encode(Tape& tape, const Padded& source_ids) const {
    if (source_ids.ids.shape().size() != 2 || source_ids.ids.shape()[0] != source_ids.lengths.size())
        fail<ShapeError>("Seq2Seq", "source ids must be (B,T) with B lengths: " + text(source_ids.ids.shape()) +
                                        " with " + std::to_string(source_ids.lengths.size()));
    const Mask visible = padding(source_ids.lengths, source_ids.ids.shape()[1]);
    auto [states, sequences] = encoder(source(tape, source_ids.ids), {}, {.visible = visible, .between = {}});
    const Tensor summary = concat({sequences[0].last.h, sequences[1].last.h}, -1);
    return {states, summary, visible, std::move(sequences)};
}

Seq2Seq::Output Seq2Seq::operator()(Tape& tape, const Padded& source_ids, const Indices& inputs) const {
    if (inputs.shape().size() != 2 || inputs.shape()[1] == 0 || inputs.shape()[0] != source_ids.lengths.size())
        fail<ShapeError>("Seq2Seq", "inputs must be (B,S) with S > 0: " + text(inputs.shape()) + " for source ids " +
                                        text(source_ids.ids.shape()));
    Output o{{}, {}, encode(tape, source_ids), {}};
    const Tensor y = target(tape, inputs);
    std::visit(
        [&](const auto& d) {
            const Memory memory = d.remember(o.encoded);
            DecoderState state = d.start(o.encoded);
            std::vector<Tensor> s, fed, weights;
            for (const Tensor& a : unbind(d.project(y), 1)) {
                const DecoderStep step = d.step(a, state, memory);
                o.states.push_back(state = step.state);
                s.push_back(state.s);
                fed.push_back(state.fed);
                weights.push_back(step.weights);
            }
            const bool attends = bool(fed[0].owner());
            o.logits = out(d.readout(stack(s, 1), attends ? stack(fed, 1) : Tensor(), y));
            if (attends) o.weights = stack(weights, 1);
        },
        decoder);
    return o;
}

Tensor Seq2Seq::loss(Tape& tape, const Padded& source_ids, const Shifted& shifted) const {
    return cross_entropy((*this)(tape, source_ids, shifted.inputs).logits, shifted.targets);
}

void Seq2Seq::for_each_parameter(const std::string& prefix, const Visitor& f) {
    source.for_each_parameter(join(prefix, "source"), f);
    target.for_each_parameter(join(prefix, "target"), f);
    encoder.for_each_parameter(join(prefix, "encoder"), f);
    std::visit([&](auto& d) { d.for_each_parameter(join(prefix, "decoder"), f); }, decoder);
    out.for_each_parameter(join(prefix, "out"), f);
}

// ---- Decoding -------------------------------------------------------------------------------------------------------

static std::vector<std::size_t> each_once(std::size_t n) {
    std::vector<std::size_t> rows(n);
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
}
// Of each kept row, which source it writes about.
static std::vector<std::size_t> chosen(const std::vector<std::size_t>& sources, const std::vector<std::size_t>& kept) {
    std::vector<std::size_t> now;
    for (const std::size_t row : kept) now.push_back(sources.at(row));
    return now;
}

Seq2SeqDecoding::Seq2SeqDecoding(const Seq2Seq& model, const Padded& source_ids)
    : model_(model), no_grad_(tape_), sources_(each_once(source_ids.lengths.size())) {
    const Encoded x = model.encode(tape_, source_ids);
    std::visit(
        [&](const auto& d) {
            memory_ = d.remember(x);
            state_ = d.start(x);
        },
        model.decoder);
}

Decoding::Next Seq2SeqDecoding::step(const Ids& previous) {
    const Tensor y = model_.target(tape_, Indices({previous.size()}, previous));
    return std::visit(
        [&](const auto& d) {
            const DecoderStep step = d.step(d.project(y), state_, memory_);
            state_ = step.state;
            const Tensor logits = model_.out(d.readout(state_.s, state_.fed, y));
            return Next{logits.value(), memory_.visible ? step.weights.value() : filled({0}, 0)};
        },
        model_.decoder);
}

void Seq2SeqDecoding::keep(const std::vector<std::size_t>& kept) {
    state_.s = rows_of(state_.s, kept);
    if (memory_.visible) {  // else there is nothing to feed or to attend to
        if (state_.fed.owner()) state_.fed = rows_of(state_.fed, kept);
        const std::vector<std::size_t> now = chosen(sources_, kept);
        if (now != sources_)
            memory_ = {rows_of(memory_.keys, kept), rows_of(memory_.values, kept), rows_of(*memory_.visible, kept)};
    }
    sources_ = chosen(sources_, kept);
}

TransformerDecoding::TransformerDecoding(const Transformer& model, const Padded& source_ids)
    : model_(model),
      no_grad_(tape_),
      past_(model.start(tape_, source_ids.ids, padding(source_ids.lengths, source_ids.ids.shape().back()))),
      sources_(each_once(source_ids.lengths.size())) {}

Decoding::Next TransformerDecoding::step(const Ids& previous) {
    const Transformer::Output o = model_.next(tape_, Indices({previous.size(), 1}, previous), past_);
    return {squeeze(o.logits, 1).value(), squeeze(mean(o.cross_weights.back(), 1), 1).value()};
}

void TransformerDecoding::keep(const std::vector<std::size_t>& kept) {
    const auto pick = [&](KeyValues& x) { x = {rows_of(x.keys, kept), rows_of(x.values, kept)}; };
    for (std::optional<KeyValues>& x : past_.target)
        if (x) pick(*x);
    const std::vector<std::size_t> now = chosen(sources_, kept);
    if (now != sources_) {
        for (KeyValues& x : past_.source) pick(x);
        past_.source_visible = rows_of(*past_.source_visible, kept);
        sources_ = now;
    }
}

}  // namespace lookback
