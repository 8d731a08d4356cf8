// A sequence-to-sequence model with its two alphabets: text in, text out, all of it in one file.
#pragma once
#include <memory>
#include "layers/checkpoint.hpp"
#include "layers/seq2seq.hpp"

namespace lookback {

class Translator {
public:
    enum class Written { characters, words };  // tokens of the target; those of the source are characters

    Translator(Alphabet source, Alphabet target, Written written, const Seq2SeqOptions& options, Generator& generator);
    void save(const std::string& file, Metadata metadata = {});  // weights rounded to F32
    static Translator load(const std::string& file);             // throws ValueError naming the file

    struct Answer {
        Tokens source, target;
        std::vector<Array> weights;  // of each target token on the source tokens
        double log_probability;
        std::string text;
    };
    // throws ValueError on a text that is empty, or has characters that the training rows had not
    Answer operator()(const std::string& text) const;

    Ids source_ids(const std::string& text) const { return source_.ids(characters(text)); }
    Ids target_ids(const std::string& text) const { return target_.ids(split(text)); }
    std::string target_text(const Ids& ids) const;
    const Alphabet& source() const { return source_; }
    const Alphabet& target() const { return target_; }
    Seq2Seq& model() { return *model_; }
    const Seq2Seq& model() const { return *model_; }

private:
    Tokens split(const std::string& text) const {
        return written_ == Written::characters ? characters(text) : words(text);
    }
    Alphabet source_, target_;
    Written written_;
    Seq2SeqOptions options_;
    std::unique_ptr<Seq2Seq> model_;
};

}  // namespace lookback
