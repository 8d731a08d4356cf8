#include "transformer.hpp"
#include "check.hpp"
#include "engine/ops/activation.hpp"
#include "engine/ops/arithmetic.hpp"

namespace lookback {

// One step of the stream: x + f(norm(x)), or norm(x + f(x)).
template <class F> static Tensor residual(Norm place, const LayerNorm& norm, const Tensor& x, F f) {
    return place == Norm::before ? x + f(norm(x)) : norm(x + f(x));
}

static MultiHead multi_head(Generator& generator, const TransformerOptions& o) {
    return MultiHead(o.width, o.heads, generator, {.dropout = o.dropout});
}

// A block's attention to its past and x, which the past then holds too.
static Attended attend_with_past(const MultiHead& attention, const Tensor& x, std::optional<KeyValues>& past,
                                 const std::optional<Mask>& visible, Mode mode) {
    past = joined(past, attention.remember(x, x));
    return attention(x, *past, visible, mode);
}

// ---- Feed-forward

FeedForward::FeedForward(Generator& generator, const TransformerOptions& o)
    : in(o.width, o.inner, generator), out(o.inner, o.width, generator), activation(o.activation), dropout(o.dropout) {}

Tensor FeedForward::operator()(const Tensor& x, Mode mode) const {
    check_product("FeedForward", "x", x, "W_1", in.W);
    const Tensor inner = activation == Activation::relu ? relu(in(x)) : gelu(in(x));
    return out(dropout(inner, mode));
}

void FeedForward::for_each_parameter(const std::string& prefix, const Visitor& f) {
    in.for_each_parameter(join(prefix, "in"), f);
    out.for_each_parameter(join(prefix, "out"), f);
}

// ---- Blocks

EncoderBlock::EncoderBlock(Generator& generator, const TransformerOptions& o)
    : attention(multi_head(generator, o)),
      feed_forward(generator, o),
      norm_attention(o.width, o.eps),
      norm_feed_forward(o.width, o.eps),
      dropout(o.dropout),
      norm(o.norm) {}

EncoderBlock::Output EncoderBlock::operator()(const Tensor& x, const std::optional<Mask>& visible, Mode mode) const {
    std::optional<KeyValues> nothing;
    return next(x, nothing, visible, mode);
}

EncoderBlock::Output EncoderBlock::next(const Tensor& x, std::optional<KeyValues>& past,
                                        const std::optional<Mask>& visible, Mode mode) const {
    check_product("EncoderBlock", "x", x, "W_q", attention.query.W);
    Tensor weights;
    Tensor y = residual(norm, norm_attention, x, [&](const Tensor& z) {
        const Attended a = attend_with_past(attention, z, past, visible, mode);
        weights = a.weights;
        return dropout(a.context, mode);
    });
    y = residual(norm, norm_feed_forward, y, [&](const Tensor& z) { return dropout(feed_forward(z, mode), mode); });
    return {y, weights};
}

void EncoderBlock::for_each_parameter(const std::string& prefix, const Visitor& f) {
    attention.for_each_parameter(join(prefix, "attention"), f);
    feed_forward.for_each_parameter(join(prefix, "feed_forward"), f);
    norm_attention.for_each_parameter(join(prefix, "norm_attention"), f);
    norm_feed_forward.for_each_parameter(join(prefix, "norm_feed_forward"), f);
}

DecoderBlock::DecoderBlock(Generator& generator, const TransformerOptions& o)
    : attention(multi_head(generator, o)),
      cross(multi_head(generator, o)),
      feed_forward(generator, o),
      norm_attention(o.width, o.eps),
      norm_cross(o.width, o.eps),
      norm_feed_forward(o.width, o.eps),
      dropout(o.dropout),
      norm(o.norm) {}

DecoderBlock::Output DecoderBlock::operator()(const Tensor& x, const Tensor& source, const std::optional<Mask>& visible,
                                              const std::optional<Mask>& source_visible, Mode mode) const {
    std::optional<KeyValues> nothing;
    return next(x, nothing, cross.remember(source, source), visible, source_visible, mode);
}

DecoderBlock::Output DecoderBlock::next(const Tensor& x, std::optional<KeyValues>& past, const KeyValues& source,
                                        const std::optional<Mask>& visible, const std::optional<Mask>& source_visible,
                                        Mode mode) const {
    check_product("DecoderBlock", "x", x, "W_q", attention.query.W);
    Tensor weights, cross_weights;
    Tensor y = residual(norm, norm_attention, x, [&](const Tensor& z) {
        const Attended a = attend_with_past(attention, z, past, visible, mode);
        weights = a.weights;
        return dropout(a.context, mode);
    });
    y = residual(norm, norm_cross, y, [&](const Tensor& z) {
        const Attended a = cross(z, source, source_visible, mode);
        cross_weights = a.weights;
        return dropout(a.context, mode);
    });
    y = residual(norm, norm_feed_forward, y, [&](const Tensor& z) { return dropout(feed_forward(z, mode), mode); });
    return {y, weights, cross_weights};
}

void DecoderBlock::for_each_parameter(const std::string& prefix, const Visitor& f) {
    attention.for_each_parameter(join(prefix, "attention"), f);
    cross.for_each_parameter(join(prefix, "cross"), f);
    feed_forward.for_each_parameter(join(prefix, "feed_forward"), f);
    norm_attention.for_each_parameter(join(prefix, "norm_attention"), f);
    norm_cross.for_each_parameter(join(prefix, "norm_cross"), f);
    norm_feed_forward.for_each_parameter(join(prefix, "norm_feed_forward"), f);
}

// ---- Stacks

template <class Block>
static std::vector<Block> stacked(const char* layer, Generator& generator, const TransformerOptions& o) {
    if (o.layers == 0) fail<ValueError>(layer, "at least one layer");
    std::vector<Block> blocks;
    for (std::size_t k = 0; k < o.layers; ++k) blocks.emplace_back(generator, o);
    return blocks;
}

static std::optional<LayerNorm> last_norm(const TransformerOptions& o) {
    std::optional<LayerNorm> norm;
    if (o.norm == Norm::before) norm.emplace(o.width, o.eps);
    return norm;
}

template <class Stack> static void visit(Stack& stack, const std::string& prefix, const Visitor& f) {
    for (std::size_t k = 0; k < stack.blocks.size(); ++k)
        stack.blocks[k].for_each_parameter(join(prefix, std::to_string(k)), f);
    if (stack.norm) stack.norm->for_each_parameter(join(prefix, "norm"), f);
}

Encoder::Encoder(Generator& generator, const TransformerOptions& o)
    : blocks(stacked<EncoderBlock>("Encoder", generator, o)), norm(last_norm(o)) {}

Encoder::Output Encoder::operator()(const Tensor& x, const std::optional<Mask>& visible, Mode mode) const {
    Past nothing;
    return next(x, nothing, visible, mode);
}

Encoder::Output Encoder::next(const Tensor& x, Past& past, const std::optional<Mask>& visible, Mode mode) const {
    Past longer = past;  // so that an error leaves the past as it was
    longer.resize(blocks.size());
    Output out{x, {}};
    for (std::size_t k = 0; k < blocks.size(); ++k) {
        const EncoderBlock::Output block = blocks[k].next(out.y, longer[k], visible, mode);
        out.y = block.y;
        out.weights.push_back(block.weights);
    }
    if (norm) out.y = (*norm)(out.y);
    past = std::move(longer);
    return out;
}

void Encoder::for_each_parameter(const std::string& prefix, const Visitor& f) { visit(*this, prefix, f); }

Decoder::Decoder(Generator& generator, const TransformerOptions& o)
    : blocks(stacked<DecoderBlock>("Decoder", generator, o)), norm(last_norm(o)) {}

Decoder::Past Decoder::start(const Tensor& source, const std::optional<Mask>& source_visible) const {
    Past past;
    past.target.resize(blocks.size());
    for (const DecoderBlock& block : blocks) past.source.push_back(block.cross.remember(source, source));
    past.source_visible = source_visible;
    return past;
}

Decoder::Output Decoder::operator()(const Tensor& x, const Tensor& source, const std::optional<Mask>& source_visible,
                                    Mode mode) const {
    Past past = start(source, source_visible);
    return next(x, past, mode);
}

Decoder::Output Decoder::next(const Tensor& x, Past& past, Mode mode) const {
    if (x.rank() != 3) fail<ShapeError>("Decoder", "x must be (B,T,E), not " + text(x.shape()));
    if (past.target.size() != blocks.size() || past.source.size() != blocks.size())
        fail<ValueError>("Decoder", "a past is made by start() of the same decoder");
    const Mask visible = causal(x.shape(1), past.length + x.shape(1), Align::end);
    Past longer = past;  // so that an error leaves the past as it was
    Output out{x, {}, {}};
    for (std::size_t k = 0; k < blocks.size(); ++k) {
        const DecoderBlock::Output block =
            blocks[k].next(out.y, longer.target[k], past.source[k], visible, past.source_visible, mode);
        out.y = block.y;
        out.weights.push_back(block.weights);
        out.cross_weights.push_back(block.cross_weights);
    }
    if (norm) out.y = (*norm)(out.y);
    longer.length += x.shape(1);
    past = std::move(longer);
    return out;
}

void Decoder::for_each_parameter(const std::string& prefix, const Visitor& f) { visit(*this, prefix, f); }

// ---- Models of tokens

static Embedding embedding(std::size_t vocabulary, Generator& generator, const TransformerOptions& o) {
    if (vocabulary == 0 || o.width == 0) return Embedding(vocabulary, o.width, generator);  // which says so
    return Embedding(Parameter(generator.normal({vocabulary, o.width}, 0, 1 / std::sqrt(double(o.width))), "table"));
}

static Position position_of(Generator& generator, const TransformerOptions& o) {
    if (o.learned_positions) return LearnedPosition(o.learned_positions, o.width, generator);
    return SinusoidalPosition{};
}

// The stream at its beginning: ids (B,T), the first of which stands at position `first`, → (B,T,E)
static Tensor begin(const char* layer, Tape& tape, const Embedding& table, const Position& position,
                    const Dropout& dropout, const Indices& ids, std::size_t first, Mode mode) {
    if (ids.shape().size() != 2) fail<ShapeError>(layer, "ids must be (B,T), not " + text(ids.shape()));
    const Tensor x = table(tape, ids) * Real(std::sqrt(double(table.width())));
    return dropout(std::visit([&](const auto& p) { return p(x, first); }, position), mode);
}

Transformer::Transformer(std::size_t source_vocabulary, std::size_t target_vocabulary, Generator& generator,
                         const TransformerOptions& o)
    : target(embedding(target_vocabulary, generator, o)),
      position(position_of(generator, o)),
      encoder(generator, o),
      decoder(generator, o),
      dropout(o.dropout) {
    if (!o.one_vocabulary)
        source.emplace(embedding(source_vocabulary, generator, o));
    else if (source_vocabulary != target_vocabulary)
        fail<ValueError>("Transformer", "one vocabulary can't have " + std::to_string(source_vocabulary) + " and " +
                                            std::to_string(target_vocabulary) + " tokens");
}

static Encoder::Output encode(const Transformer& model, Tape& tape, const Indices& ids,
                              const std::optional<Mask>& visible, Mode mode) {
    const Embedding& table = model.source ? *model.source : model.target;
    return model.encoder(begin("Transformer", tape, table, model.position, model.dropout, ids, 0, mode), visible, mode);
}

Transformer::Output Transformer::operator()(Tape& tape, const Indices& source_ids, const Indices& target_ids,
                                            const std::optional<Mask>& source_visible, Mode mode) const {
    const Encoder::Output encoded = encode(*this, tape, source_ids, source_visible, mode);
    Decoder::Past past = decoder.start(encoded.y, source_visible);
    Output out = next(tape, target_ids, past, mode);
    out.encoder_weights = encoded.weights;
    return out;
}

Decoder::Past Transformer::start(Tape& tape, const Indices& source_ids,
                                 const std::optional<Mask>& source_visible) const {
    return decoder.start(encode(*this, tape, source_ids, source_visible, evaluation).y, source_visible);
}

Transformer::Output Transformer::next(Tape& tape, const Indices& ids, Decoder::Past& past, Mode mode) const {
    const Tensor x = begin("Transformer", tape, target, position, dropout, ids, past.length, mode);
    const Decoder::Output decoded = decoder.next(x, past, mode);
    return {target.scores(decoded.y), {}, decoded.weights, decoded.cross_weights};
}

void Transformer::for_each_parameter(const std::string& prefix, const Visitor& f) {
    if (source) source->for_each_parameter(join(prefix, "source"), f);
    target.for_each_parameter(join(prefix, "target"), f);
    std::visit([&](auto& p) { p.for_each_parameter(join(prefix, "position"), f); }, position);
    encoder.for_each_parameter(join(prefix, "encoder"), f);
    decoder.for_each_parameter(join(prefix, "decoder"), f);
}

LanguageModel::LanguageModel(std::size_t vocabulary, Generator& generator, const TransformerOptions& o)
    : embedding(lookback::embedding(vocabulary, generator, o)),
      position(position_of(generator, o)),
      blocks(generator, o),
      dropout(o.dropout) {}

static LanguageModel::Output run(const LanguageModel& model, Tape& tape, const Indices& ids, Encoder::Past& past,
                                 const std::optional<Mask>& visible, Mode mode) {
    const std::size_t before = past.empty() || !past[0] ? 0 : past[0]->length();
    const Tensor x = begin("LanguageModel", tape, model.embedding, model.position, model.dropout, ids, before, mode);
    Mask sees = causal(x.shape(1), before + x.shape(1), Align::end);
    if (visible) sees = sees & over_batch("LanguageModel", *visible, {x.shape(0), x.shape(1), before + x.shape(1)});
    const Encoder::Output out = model.blocks.next(x, past, sees, mode);
    return {model.embedding.scores(out.y), out.weights};
}

LanguageModel::Output LanguageModel::operator()(Tape& tape, const Indices& ids, const std::optional<Mask>& visible,
                                                Mode mode) const {
    Encoder::Past nothing;
    return run(*this, tape, ids, nothing, visible, mode);
}

LanguageModel::Output LanguageModel::next(Tape& tape, const Indices& ids, Encoder::Past& past, Mode mode) const {
    return run(*this, tape, ids, past, {}, mode);
}

void LanguageModel::for_each_parameter(const std::string& prefix, const Visitor& f) {
    embedding.for_each_parameter(join(prefix, "embedding"), f);
    std::visit([&](auto& p) { p.for_each_parameter(join(prefix, "position"), f); }, position);
    blocks.for_each_parameter(join(prefix, "blocks"), f);
}

}  // namespace lookback
