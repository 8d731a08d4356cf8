// Sequence to sequence: an encoder reads the source, a decoder writes the target.
//   Seq2Seq model(V_source, V_target, generator, {.decoder = DecoderKind::bahdanau});
//   const Tensor loss = model.loss(tape, padded(sources), teacher_forcing(targets));
//   Seq2SeqDecoding decoding(model, padded(sources));      greedy(decoding), beam_search(decoding)
#pragma once
#include <variant>
#include "attention.hpp"
#include "data.hpp"
#include "decoding.hpp"
#include "embedding.hpp"
#include "engine/ops/activation.hpp"
#include "engine/ops/movement.hpp"
#include "gru.hpp"
#include "linear.hpp"
#include "sequence.hpp"
#include "transformer.hpp"

namespace lookback {

// What the decoder is given of the source.
struct Encoded {
    Tensor states;                         // (B,T,D): h_i = [→h_i ←h_i], D = 2H; 0 past a row's length
    Tensor summary;                        // (B,D): [→h_T ←h_1], each direction's last state
    Mask visible;                          // (B,1,T)
    std::vector<Sequence<GRU>> sequences;  // one a direction, to ask backward for ∂L/∂h_i
};

// What a decoder carries from one token to the next.
struct DecoderState {
    Tensor s;    // (B,H)
    Tensor fed;  // for the readout: c_t (B,D), or h̃_t (B,H), which the next step reads too; nothing without attention
};
struct DecoderStep {
    DecoderState state;
    Tensor weights;  // (B,T); nothing without attention
};

// Each decoder has
//   start(x)            the state before the first token: s_0 = tanh(summary W + b)
//   remember(x)         what its attention keeps of the source
//   project(y)          y W + b for any leading axes: all target tokens in one product
//   step(a, s, memory)  one token, from its part a of that product
//   readout(s, fed, y)  what the output layer sees, for any leading axes: again one product
// and throws ShapeError on what doesn't fit.

// s_t = GRU(y_{t−1}, s_{t−1}), and s_t is what the output layer sees: all it knows of the source is s_0.
// Sutskever et al. 2014; Cho et al. 2014
struct PlainDecoder {
    Linear bridge;
    GRU cell;

    PlainDecoder(std::size_t E, std::size_t H, std::size_t D, Generator& generator);
    DecoderState start(const Encoded& x) const { return {tanh(bridge(x.summary)), {}}; }
    Memory remember(const Encoded&) const { return {}; }
    Tensor project(const Tensor& y) const { return cell.project(y); }
    DecoderStep step(const Tensor& a, const DecoderState& state, const Memory& memory) const;
    Tensor readout(const Tensor& s, const Tensor&, const Tensor&) const { return s; }
    std::size_t readout_width() const { return cell.hidden(); }
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

// c_t = attention(s_{t−1})     s_t = GRU(y_{t−1} W + c_t C + b, s_{t−1})     readout tanh([s_t c_t y_{t−1}] W_r + b_r)
// (the paper's readout is a maxout of such).   Bahdanau et al. 2015, app. A.2.2
struct BahdanauDecoder {
    Linear bridge;
    GRU cell;  // (E → H)
    Linear C;  // (D,3H), without bias
    Attention attention;
    Linear out;

    BahdanauDecoder(std::size_t E, std::size_t H, std::size_t D, Attention attention, Generator& generator);
    DecoderState start(const Encoded& x) const { return {tanh(bridge(x.summary)), {}}; }
    Memory remember(const Encoded& x) const { return attention.remember(x.states, x.visible); }
    Tensor project(const Tensor& y) const { return cell.project(y); }
    DecoderStep step(const Tensor& a, const DecoderState& state, const Memory& memory) const;
    Tensor readout(const Tensor& s, const Tensor& c, const Tensor& y) const { return tanh(out(concat({s, c, y}, -1))); }
    std::size_t readout_width() const { return cell.hidden(); }
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

// s_t = GRU(y_{t−1} W + h̃_{t−1} C + b, s_{t−1})     c_t = attention(s_t)     h̃_t = tanh([c_t s_t] W_c), h̃_0 = 0
// h̃_t, the attentional vector, is what the output layer sees, and is fed to the next step.
// Luong et al. 2015, § 3 and 3.3 (with LSTMs)
struct LuongDecoder {
    Linear bridge;
    GRU cell;
    Linear C;  // (H,3H), without bias
    Attention attention;
    Linear W_c;  // (D+H,H), without bias

    LuongDecoder(std::size_t E, std::size_t H, std::size_t D, Attention attention, Generator& generator);
    DecoderState start(const Encoded& x) const;
    Memory remember(const Encoded& x) const { return attention.remember(x.states, x.visible); }
    Tensor project(const Tensor& y) const { return cell.project(y); }
    DecoderStep step(const Tensor& a, const DecoderState& state, const Memory& memory) const;
    Tensor readout(const Tensor&, const Tensor& h, const Tensor&) const { return h; }
    std::size_t readout_width() const { return cell.hidden(); }
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

using RecurrentDecoder = std::variant<PlainDecoder, BahdanauDecoder, LuongDecoder>;
enum class DecoderKind { plain, bahdanau, luong };

struct Seq2SeqOptions {
    std::size_t embedding = 32, hidden = 64, attention = 64;
    DecoderKind decoder = DecoderKind::bahdanau;  // with the additive score; luong with the bilinear one
};

// A bidirectional GRU that reads, one of the decoders above that writes, and scores of the next token: readout W + b.
// throws IndexError on ids outside their vocabulary, ShapeError unless ids are (B,T) with a length for each row
struct Seq2Seq {
    Embedding source, target;
    Recurrent<GRU> encoder;
    RecurrentDecoder decoder;
    Linear out;

    Seq2Seq(std::size_t source_vocabulary, std::size_t target_vocabulary, Generator& generator,
            const Seq2SeqOptions& options = {});
    Seq2Seq(std::size_t source_vocabulary, std::size_t target_vocabulary, std::size_t embedding, std::size_t hidden,
            RecurrentDecoder decoder, Generator& generator);

    struct Output {
        Tensor logits;   // (B,S,V)
        Tensor weights;  // (B,S,T); nothing without attention
        Encoded encoded;
        std::vector<DecoderState> states;  // after each target token
    };
    // Teacher forcing: the decoder is fed the right tokens, whatever it would have written. S > 0.
    Output operator()(Tape& tape, const Padded& source_ids, const Indices& inputs) const;
    // The mean cross-entropy of the targets.
    Tensor loss(Tape& tape, const Padded& source_ids, const Shifted& shifted) const;

    Encoded encode(Tape& tape, const Padded& source_ids) const;
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

// How each family of models decodes: on a tape of their own that records nothing.
class Seq2SeqDecoding : public Decoding {
public:
    Seq2SeqDecoding(const Seq2Seq& model, const Padded& source_ids);
    std::size_t rows() const override { return sources_.size(); }
    Next step(const Ids& previous) override;
    void keep(const std::vector<std::size_t>& kept) override;

private:
    const Seq2Seq& model_;
    Tape tape_;
    NoGrad no_grad_;
    Memory memory_;
    DecoderState state_;
    std::vector<std::size_t> sources_;  // which source each row writes about
};

// With its cache; weights are those of the last block, the mean of its heads.
class TransformerDecoding : public Decoding {
public:
    TransformerDecoding(const Transformer& model, const Padded& source_ids);
    std::size_t rows() const override { return sources_.size(); }
    Next step(const Ids& previous) override;
    void keep(const std::vector<std::size_t>& kept) override;

private:
    const Transformer& model_;
    Tape tape_;
    NoGrad no_grad_;
    Decoder::Past past_;
    std::vector<std::size_t> sources_;
};

}  // namespace lookback
