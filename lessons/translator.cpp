#include "translator.hpp"
#include <charconv>

namespace lookback {

Translator::Translator(Alphabet source, Alphabet target, Written written, const Seq2SeqOptions& options,
                       Generator& generator)
    : source_(std::move(source)),
      target_(std::move(target)),
      written_(written),
      options_(options),
      model_(std::make_unique<Seq2Seq>(source_.size(), target_.size(), generator, options)) {
    name_parameters(*model_);
}

std::string Translator::target_text(const Ids& ids) const {
    std::string text;
    for (const std::int64_t id : ids)
        text += (text.empty() || written_ == Written::characters ? "" : " ") + target_[id];
    return text;
}

Translator::Answer Translator::operator()(const std::string& text) const {
    const Tokens tokens = characters(text);
    if (tokens.empty()) fail<ValueError>("Translator", "there is nothing to translate");
    Seq2SeqDecoding decoding(*model_, padded(std::vector<Ids>{source_.ids(tokens)}));
    const Generated best = greedy(decoding)[0];
    return {tokens, target_.tokens(best.ids), best.weights, best.log_probability, target_text(best.ids)};
}

static const std::vector<std::string> decoders{"plain", "bahdanau", "luong"};

void Translator::save(const std::string& file, Metadata metadata) {
    metadata["model"] = "lookback Seq2Seq";
    metadata["decoder"] = decoders[std::size_t(options_.decoder)];
    metadata["embedding"] = std::to_string(options_.embedding);
    metadata["hidden"] = std::to_string(options_.hidden);
    metadata["attention"] = std::to_string(options_.attention);
    metadata["source"] = source_.text();
    metadata["target"] = target_.text();
    metadata["written"] = written_ == Written::characters ? "characters" : "words";
    lookback::save(*model_, file, metadata, Stored::rounded);
}

Translator Translator::load(const std::string& file) {
    const Metadata metadata = read_checkpoint(file).metadata;
    const auto wrong = [&](const std::string& key) {
        fail<ValueError>("Translator", file + ": its metadata has no such \"" + key + "\" as a translator's");
    };
    const auto said = [&](const std::string& key) {
        if (!metadata.contains(key)) wrong(key);
        return metadata.at(key);
    };
    const auto size = [&](const std::string& key) {
        const std::string text = said(key);
        std::size_t n = 0;
        const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), n);
        if (error != std::errc() || after != text.data() + text.size() || n == 0 || n > 4096) wrong(key);
        return n;
    };
    const auto decoder = std::find(decoders.begin(), decoders.end(), said("decoder"));
    if (decoder == decoders.end()) wrong("decoder");
    const Seq2SeqOptions options{size("embedding"), size("hidden"), size("attention"),
                                 DecoderKind(decoder - decoders.begin())};
    Generator generator(0);
    Translator translator(Alphabet::from_text(said("source")), Alphabet::from_text(said("target")),
                          said("written") == "words" ? Written::words : Written::characters, options, generator);
    lookback::load(*translator.model_, file);
    return translator;
}

}  // namespace lookback
