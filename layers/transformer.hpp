// The Transformer: blocks of attention and feed-forward layers around a stream of vectors, one a token.
//   Encoder, Decoder    stacks of blocks over (B,T,E)
//   Transformer         source ids and target ids → scores of the next target token      Vaswani et al. 2017
//   LanguageModel       ids → scores of the next token: a decoder alone
// Decoders run a whole target at once, or go on from what they cached of its beginning: the same code, where a query's
// place among the keys is told from the end.
#pragma once
#include "embedding.hpp"
#include "layer_norm.hpp"
#include "multi_head.hpp"
#include "position.hpp"

namespace lookback {

// Where a block normalises: its input (pre-norm: x + f(norm(x)), and once more after the last block) or its output
// (post-norm: norm(x + f(x)), as in the paper). Pre-norm trains without warm-up.   Xiong et al. 2020
enum class Norm { before, after };
enum class Activation { relu, gelu };

struct TransformerOptions {  // the paper's base model
    std::size_t width = 512, heads = 8, inner = 2048, layers = 6;
    Norm norm = Norm::after;
    Activation activation = Activation::relu;
    Real dropout = Real(0.1);  // in training: of weights, inside feed-forward, of what joins the stream, of embeddings
    Real eps = Real(1e-5);
    std::size_t learned_positions = 0;  // T_max of a LearnedPosition; 0: SinusoidalPosition
    bool one_vocabulary = false;        // source and target share their embedding
};

// y = act(x W_1 + b_1) W_2 + b_2, token by token.   (…,E) → (…,E)      Vaswani et al. 2017, § 3.3
struct FeedForward {
    Linear in, out;
    Activation activation;
    Dropout dropout;

    FeedForward(Generator& generator, const TransformerOptions& options);
    Tensor operator()(const Tensor& x, Mode mode = evaluation) const;
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

struct EncoderBlock {
    MultiHead attention;
    FeedForward feed_forward;
    LayerNorm norm_attention, norm_feed_forward;
    Dropout dropout;
    Norm norm;

    struct Output {
        Tensor y, weights;  // (B,T,E)   (B,N,T,T)
    };
    EncoderBlock(Generator& generator, const TransformerOptions& options);
    // x (B,T,E), visible (T,T) or (B,T,T) up to axes of 1
    Output operator()(const Tensor& x, const std::optional<Mask>& visible = {}, Mode mode = evaluation) const;
    // The same for tokens that follow a past, which then holds theirs too; the mask is over T new by all keys.
    Output next(const Tensor& x, std::optional<KeyValues>& past, const std::optional<Mask>& visible = {},
                Mode mode = evaluation) const;
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

struct DecoderBlock {
    MultiHead attention, cross;
    FeedForward feed_forward;
    LayerNorm norm_attention, norm_cross, norm_feed_forward;
    Dropout dropout;
    Norm norm;

    struct Output {
        Tensor y, weights, cross_weights;  // (B,T_y,E)   (B,N,T_y,T_y)   (B,N,T_y,T_x)
    };
    DecoderBlock(Generator& generator, const TransformerOptions& options);
    Output operator()(const Tensor& x, const Tensor& source, const std::optional<Mask>& visible = {},
                      const std::optional<Mask>& source_visible = {}, Mode mode = evaluation) const;
    // source: cross.remember(states, states)
    Output next(const Tensor& x, std::optional<KeyValues>& past, const KeyValues& source,
                const std::optional<Mask>& visible = {}, const std::optional<Mask>& source_visible = {},
                Mode mode = evaluation) const;
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

// Blocks one after the other; with pre-norm a last LayerNorm.   throws ValueError if there are no layers
struct Encoder {
    std::vector<EncoderBlock> blocks;
    std::optional<LayerNorm> norm;

    struct Output {
        Tensor y;                     // (B,T,E)
        std::vector<Tensor> weights;  // of each block (B,N,T,T)
    };
    using Past = std::vector<std::optional<KeyValues>>;  // one a block; none at the beginning

    Encoder(Generator& generator, const TransformerOptions& options);
    Output operator()(const Tensor& x, const std::optional<Mask>& visible = {}, Mode mode = evaluation) const;
    Output next(const Tensor& x, Past& past, const std::optional<Mask>& visible = {}, Mode mode = evaluation) const;
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

// Each target token sees itself and those before it, and all visible source states.
struct Decoder {
    std::vector<DecoderBlock> blocks;
    std::optional<LayerNorm> norm;

    struct Output {
        Tensor y;                                    // (B,T_y,E)
        std::vector<Tensor> weights, cross_weights;  // of each block
    };
    // What decoding knows so far. A copy is a branch of its own, as beam search needs.
    struct Past {
        std::vector<std::optional<KeyValues>> target;  // of each block, the tokens so far
        std::vector<KeyValues> source;                 // of each block, projected once
        std::optional<Mask> source_visible;
        std::size_t length = 0;  // tokens so far
    };

    Decoder(Generator& generator, const TransformerOptions& options);
    Past start(const Tensor& source, const std::optional<Mask>& source_visible = {}) const;
    // x (B,T,E): the tokens after those of the past, which then includes them. From the start: a whole target at once.
    Output next(const Tensor& x, Past& past, Mode mode = evaluation) const;
    Output operator()(const Tensor& x, const Tensor& source, const std::optional<Mask>& source_visible = {},
                      Mode mode = evaluation) const;
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

// Tokens become embedding · √E + position, with dropout; scores are y · embeddingᵀ of the target's.
// Embeddings are normal with variance 1/E, so that embedding · √E is as large as the sines.   § 3.4
// throws IndexError on ids outside their vocabulary, ShapeError unless ids are (B,T)
struct Transformer {
    std::optional<Embedding> source;  // none: one vocabulary, the target's
    Embedding target;
    Position position;
    Encoder encoder;
    Decoder decoder;
    Dropout dropout;

    Transformer(std::size_t source_vocabulary, std::size_t target_vocabulary, Generator& generator,
                const TransformerOptions& options = {});

    struct Output {
        Tensor logits;                                                // (B,T_y,V)
        std::vector<Tensor> encoder_weights, weights, cross_weights;  // of each block
    };
    // Scores of the token after each of `target_ids`, which begin with a start token.
    Output operator()(Tape& tape, const Indices& source_ids, const Indices& target_ids,
                      const std::optional<Mask>& source_visible = {}, Mode mode = evaluation) const;

    // The same token by token:   Decoder::Past past = start(tape, source_ids, visible);   next(tape, ids (B,1), past)
    Decoder::Past start(Tape& tape, const Indices& source_ids, const std::optional<Mask>& source_visible = {}) const;
    Output next(Tape& tape, const Indices& ids, Decoder::Past& past, Mode mode = evaluation) const;
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

// A decoder alone: blocks of causal self-attention.   Radford et al. 2018; Liu et al. 2018
// throws as Transformer does
struct LanguageModel {
    Embedding embedding;
    Position position;
    Encoder blocks;
    Dropout dropout;

    LanguageModel(std::size_t vocabulary, Generator& generator, const TransformerOptions& options = {});

    struct Output {
        Tensor logits;                // (B,T,V)
        std::vector<Tensor> weights;  // of each block
    };
    // ids (B,T); `visible` hides padding, as padding() makes it: causality is added here.
    Output operator()(Tape& tape, const Indices& ids, const std::optional<Mask>& visible = {},
                      Mode mode = evaluation) const;
    // The tokens after those of the past, which starts as {} and then includes them.
    Output next(Tape& tape, const Indices& ids, Encoder::Past& past, Mode mode = evaluation) const;
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

}  // namespace lookback
