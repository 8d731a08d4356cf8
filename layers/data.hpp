// Pairs of texts to learn from: read, cut into tokens, numbered, put into batches. Every step is deterministic; what is
// shuffled takes a Generator.
//   const std::vector<Row> rows = read_tsv("dates.training.tsv", 2);
//   const Alphabet source(…), target(…);          from training rows only
//   for (const auto& places : batches_by_length(lengths, 64, generator)) …
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "engine/indices.hpp"
#include "engine/random.hpp"

namespace lookback {

using Tokens = std::vector<std::string>;
using Ids = std::vector<std::int64_t>;

// One character of a text, as Unicode numbers it: 0xe4 is ä.
struct CodePoint {
    char32_t value;
    std::size_t at, bytes;
};
// What begins at a byte of the text.   bytes = 0 if it is not UTF-8 (RFC 3629: shortest forms, no surrogates)
CodePoint decode(std::string_view utf8, std::size_t at);

// The code points of a text, each as UTF-8: "März" is M, ä, r, z.
// throws ValueError "[characters] byte 2 is not UTF-8"
Tokens characters(std::string_view utf8);
// What stands between single spaces.   throws ValueError if a word is empty
Tokens words(std::string_view text);

struct Row {
    std::size_t line;  // in the file, from 1
    std::vector<std::string> fields;
};
// The rows of a file of tab-separated values, of which each must have `columns` fields, none of them empty. Lines at
// its top that begin with # are comments; lines may end with CR LF.
// throws ValueError "[read_tsv] FILE:LINE: …" on any other line, on text that is not UTF-8 or holds control characters;
//   naming the file if it can't be read or has no rows
std::vector<Row> read_tsv(const std::string& file, std::size_t columns);

// Numbers for the tokens of one side. 0, 1 and 2 are pad, begin and end; then come the tokens, in order of their bytes:
// the same set of tokens has the same numbers, in whatever order it was met.
class Alphabet {
public:
    static constexpr std::int64_t pad = 0, begin = 1, end = 2, first = 3;

    explicit Alphabet(std::span<const Tokens> sequences);
    std::size_t size() const { return tokens_.size(); }
    // throws ValueError "[Alphabet] "ß" at place 2 is not among the 49 tokens"
    Ids ids(const Tokens& tokens) const;
    Tokens tokens(const Ids& ids) const;  // throws IndexError
    // "token", for any id: "⟨end⟩" …      throws IndexError
    const std::string& operator[](std::int64_t id) const;

    // As one line of text, for the metadata of a checkpoint: what ids() knows.
    std::string text() const;
    static Alphabet from_text(std::string_view text);  // throws ValueError if it is not one

private:
    Alphabet() = default;
    void add(const std::string& token);
    std::vector<std::string> tokens_;
    std::map<std::string, std::int64_t, std::less<>> ids_;
};

// Sequences side by side, the shorter ones padded at their ends.
struct Padded {
    Indices ids;                       // (B,T)
    std::vector<std::size_t> lengths;  // (B)
};
Padded padded(std::span<const Ids> sequences, std::int64_t pad = Alphabet::pad);

// What a decoder is fed, and what it should answer to it: this is the only place that shifts. From begin a b end:
//   inputs    begin a b        targets    a b end        so the end mark is a target, and never fed
// Shorter rows are filled with pad, and with `ignored`, that of CrossEntropy.
struct Shifted {
    Indices inputs, targets;           // (B,T−1)
    std::vector<std::size_t> lengths;  // (B), of both
};
// throws ValueError on a sequence of fewer than 2
Shifted shifted(std::span<const Ids> sequences, std::int64_t pad = Alphabet::pad, std::int64_t ignored = -100);
// begin tokens end, for each sequence, then shifted.   throws ValueError if a mark stands inside
Shifted teacher_forcing(std::span<const Ids> sequences);

// The places 0 … N−1 of sequences in batches of B (the last of a stretch may be smaller): shuffled, then near ones
// in length put together within each stretch of 32 batches, and the batches shuffled. Each place occurs once.
// throws ValueError if B is 0
std::vector<std::vector<std::size_t>> batches_by_length(const std::vector<std::size_t>& lengths, std::size_t B,
                                                        Generator& generator);

}  // namespace lookback
