#include "data.hpp"
#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

namespace lookback {

CodePoint decode(std::string_view s, std::size_t i) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
    const unsigned lead = byte(i);
    const std::size_t n = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    static constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};  // in the shortest form
    char32_t c = n == 1 ? lead : lead & (0x7fu >> n);
    bool good = n > 0 && i + n <= s.size();
    for (std::size_t k = 1; good && k < n; ++k) {
        good = byte(i + k) >> 6 == 2;
        c = c << 6 | (byte(i + k) & 0x3f);
    }
    if (!good || c < smallest[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return {0, i, 0};
    return {c, i, n};
}

Tokens characters(std::string_view utf8) {
    Tokens tokens;
    for (std::size_t at = 0; at < utf8.size(); at += tokens.back().size()) {
        const std::size_t n = decode(utf8, at).bytes;
        if (n == 0) fail<ValueError>("characters", "byte " + std::to_string(at) + " is not UTF-8");
        tokens.emplace_back(utf8.substr(at, n));
    }
    return tokens;
}

Tokens words(std::string_view text) {
    Tokens tokens;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t space = std::min(text.find(' ', at), text.size());
        if (space == at) fail<ValueError>("words", "nothing before byte " + std::to_string(at));
        tokens.emplace_back(text.substr(at, space - at));
        at = space + 1;
    }
    return tokens;
}

std::vector<Row> read_tsv(const std::string& file, std::size_t columns) {
    std::ifstream in(file, std::ios::binary);
    std::vector<Row> rows;
    std::string line;
    bool comments = true;
    for (std::size_t number = 1; std::getline(in, line); ++number) {
        const auto bad = [&](const std::string& what) {
            fail<ValueError>("read_tsv", file + ":" + std::to_string(number) + ": " + what);
        };
        if (number == 1 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);  // the mark that some editors begin with
        if (line.ends_with('\r')) line.pop_back();
        for (std::size_t at = 0, n = 0; at < line.size(); at += n) {
            n = decode(line, at).bytes;
            if (n == 0) bad("byte " + std::to_string(at) + " is not UTF-8");
            if ((std::uint8_t(line[at]) < ' ' && line[at] != '\t') || line[at] == '\x7f') bad("a control character");
        }
        comments &= line.starts_with('#');
        if (comments) continue;
        std::vector<std::string> fields;
        std::istringstream cut(line + '\t');
        for (std::string field; std::getline(cut, field, '\t');) fields.push_back(field);
        if (fields.size() != columns) bad(std::to_string(fields.size()) + " fields, not " + std::to_string(columns));
        for (const std::string& field : fields)
            if (field.empty()) bad("an empty field");
        rows.push_back({number, std::move(fields)});
    }
    if (!in.eof()) fail<ValueError>("read_tsv", file + " can't be read");
    if (rows.empty()) fail<ValueError>("read_tsv", file + " has no rows");
    return rows;
}

// ---- Alphabet -------------------------------------------------------------------------------------------------------

void Alphabet::add(const std::string& token) {
    if (token.find('\t') != std::string::npos) fail<ValueError>("Alphabet", "a token may not hold a tab");
    if (!ids_.try_emplace(token, std::int64_t(tokens_.size())).second || token.empty())
        fail<ValueError>("Alphabet", "\"" + token + "\" is empty or stands twice");
    tokens_.push_back(token);
}

Alphabet::Alphabet(std::span<const Tokens> sequences) : tokens_{"⟨pad⟩", "⟨begin⟩", "⟨end⟩"} {
    std::set<std::string> distinct;
    for (const Tokens& tokens : sequences) distinct.insert(tokens.begin(), tokens.end());
    for (const std::string& token : distinct) add(token);
}

Ids Alphabet::ids(const Tokens& tokens) const {
    Ids ids;
    for (const std::string& token : tokens) {
        const auto found = ids_.find(token);
        if (found == ids_.end())
            fail<ValueError>("Alphabet", "\"" + token + "\" at place " + std::to_string(ids.size()) +
                                             " is not among the " + std::to_string(ids_.size()) + " tokens");
        ids.push_back(found->second);
    }
    return ids;
}

Tokens Alphabet::tokens(const Ids& ids) const {
    Tokens tokens;
    for (const std::int64_t id : ids) tokens.push_back((*this)[id]);
    return tokens;
}

const std::string& Alphabet::operator[](std::int64_t id) const {
    if (id < 0 || std::size_t(id) >= size())
        fail<IndexError>("Alphabet",
                         "id " + std::to_string(id) + " is outside of " + std::to_string(size()) + " tokens");
    return tokens_[std::size_t(id)];
}

// Tokens with tabs between them: no token has one.
std::string Alphabet::text() const {
    std::string text;
    for (std::size_t i = first; i < size(); ++i) text += (i > first ? "\t" : "") + tokens_[i];
    return text;
}

Alphabet Alphabet::from_text(std::string_view text) {
    Alphabet alphabet;
    alphabet.tokens_ = {"⟨pad⟩", "⟨begin⟩", "⟨end⟩"};
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t tab = std::min(text.find('\t', at), text.size());
        alphabet.add(std::string(text.substr(at, tab - at)));
        at = tab + 1;
    }
    return alphabet;
}

// ---- Batches --------------------------------------------------------------------------------------------------------

static std::vector<std::size_t> lengths_of(std::span<const Ids> sequences) {
    std::vector<std::size_t> lengths;
    for (const Ids& s : sequences) lengths.push_back(s.size());
    return lengths;
}

// ids[b][from … from + lengths[b]) in rows of the longest length.
static Indices rows(std::span<const Ids> ids, std::size_t from, const std::vector<std::size_t>& lengths,
                    std::int64_t fill) {
    const std::size_t T = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
    Ids all(ids.size() * T, fill);
    for (std::size_t b = 0; b < ids.size(); ++b)
        std::copy_n(ids[b].begin() + std::ptrdiff_t(from), lengths[b], all.begin() + std::ptrdiff_t(b * T));
    return Indices({ids.size(), T}, std::move(all));
}

Padded padded(std::span<const Ids> sequences, std::int64_t pad) {
    std::vector<std::size_t> lengths = lengths_of(sequences);
    Indices ids = rows(sequences, 0, lengths, pad);
    return {std::move(ids), std::move(lengths)};
}

Shifted shifted(std::span<const Ids> sequences, std::int64_t pad, std::int64_t ignored) {
    std::vector<std::size_t> lengths = lengths_of(sequences);
    for (std::size_t& n : lengths) {
        if (n < 2) fail<ValueError>("shifted", "a sequence of " + std::to_string(n) + " has no next token to learn");
        --n;
    }
    return {rows(sequences, 0, lengths, pad), rows(sequences, 1, lengths, ignored), lengths};
}

Shifted teacher_forcing(std::span<const Ids> sequences) {
    std::vector<Ids> marked;
    for (const Ids& s : sequences) {
        if (std::any_of(s.begin(), s.end(), [](std::int64_t id) { return id < Alphabet::first; }))
            fail<ValueError>("teacher_forcing", "a sequence has marks already");
        Ids& m = marked.emplace_back(1, Alphabet::begin);
        m.insert(m.end(), s.begin(), s.end());
        m.push_back(Alphabet::end);
    }
    return shifted(marked);
}

std::vector<std::vector<std::size_t>> batches_by_length(const std::vector<std::size_t>& lengths, std::size_t B,
                                                        Generator& generator) {
    if (B == 0) fail<ValueError>("batches_by_length", "batches of 0");
    B = std::min(B, std::max<std::size_t>(lengths.size(), 1));
    constexpr std::size_t stretch = 32;
    std::vector<std::size_t> places = generator.permutation(lengths.size());
    std::vector<std::vector<std::size_t>> batches;
    for (std::size_t start = 0; start < places.size(); start += stretch * B) {
        const auto first = places.begin() + std::ptrdiff_t(start),
                   last = places.begin() + std::ptrdiff_t(std::min(places.size(), start + stretch * B));
        std::stable_sort(first, last, [&](std::size_t a, std::size_t b) { return lengths[a] < lengths[b]; });
        for (auto at = first; at < last; at += std::min<std::ptrdiff_t>(std::ptrdiff_t(B), last - at))
            batches.emplace_back(at, at + std::min<std::ptrdiff_t>(std::ptrdiff_t(B), last - at));
    }
    std::vector<std::vector<std::size_t>> shuffled_batches;
    for (const std::size_t i : generator.permutation(batches.size())) shuffled_batches.push_back(std::move(batches[i]));
    return shuffled_batches;
}

}  // namespace lookback
