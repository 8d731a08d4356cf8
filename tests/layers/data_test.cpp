// Data: reading, numbering, shifting, batching. Field case C55; and the data sets that are shipped.
#include "layers/data.hpp"
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include "engine/ops/softmax.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

namespace {

struct File {
    std::string path = std::filesystem::temp_directory_path() / ("lookback-data-" + std::to_string(::getpid()));
    explicit File(const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
    ~File() { std::remove(path.c_str()); }
};

const std::string shipped = LOOKBACK_SOURCE_DIR "/lessons/data/";

// The mean loss of a model that puts logit 10 on f(input), and 0 on the other three classes.
double loss(const Shifted& s, std::int64_t (*f)(std::int64_t)) {
    Tape tape;
    Array logits = filled({1, s.inputs.size(), 4}, 0);
    for (std::size_t i = 0; i < s.inputs.size(); ++i) logits(0, i, std::size_t(f(s.inputs[i]))) = 10;
    return double(cross_entropy(tape.leaf(std::move(logits)), s.targets).item());
}

}  // namespace

TEST_CASE("characters are code points; what is not UTF-8 is an error that says where") {
    CHECK(characters("März 東\U0001f4c5") == Tokens{"M", "ä", "r", "z", " ", "東", "\U0001f4c5"});
    CHECK(characters("").empty());
    CHECK(characters("a\xcc\x81") == Tokens{"a", "\xcc\x81"});  // a mark is a code point of its own
    for (const char* bad : {"ab\xff", "ab\xc3", "ab\xe2\x82", "ab\xc0\xaf", "ab\xed\xa0\x80", "ab\xf4\x90\x80\x80",
                            "ab\xe0\x80\x80", "ab\x80", "ab\xf0\x80\x80\x80"})
        CHECK_THROWS_WITH(characters(bad), contains("[characters] byte 2 is not UTF-8"));
}

TEST_CASE("words stand between single spaces") {
    CHECK(words("N AY T") == Tokens{"N", "AY", "T"});
    CHECK(words("N") == Tokens{"N"});
    for (const char* bad : {"", " N", "N ", "N  T"}) CHECK_THROWS_AS(words(bad), ValueError);
}

TEST_CASE("rows are read in order, with their line; comments stand only at the top") {
    const File file("# one\tcomment\n#\na\tb\r\nä ö\t#c\n#d\te");
    const std::vector<Row> rows = read_tsv(file.path, 2);
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].line == 3);
    CHECK(rows[0].fields == Tokens{"a", "b"});
    CHECK(rows[1].fields == Tokens{"ä ö", "#c"});
    CHECK(rows[2].fields == Tokens{"#d", "e"});
    CHECK(read_tsv(File("\xef\xbb\xbf"
                        "a\tb\r\n")
                       .path,
                   2)[0]
              .fields == Tokens{"a", "b"});  // as Windows' editors save it
}

TEST_CASE("a bad line is an error that names file and line") {
    const auto [text, expected] = GENERATE(table<std::string, std::string>({
        {"a\tb\na\n", ":2: 1 fields, not 2"},
        {"a\tb\tc\n", ":1: 3 fields, not 2"},
        {"a\tb\n\na\tb\n", ":2: 1 fields, not 2"},
        {"a\t\n", ":1: an empty field"},
        {"\ta\n", ":1: an empty field"},
        {"a\tb\t\n", ":1: 3 fields, not 2"},
        {"a\tb\na\tb\xff\n", ":2: byte 3 is not UTF-8"},
        {std::string("a\tb\0\n", 5), ":1: a control character"},
        {"a\x1b[31m\tb\n", ":1: a control character"},
        {"", " has no rows"},
        {"# only\n", " has no rows"},
    }));
    const File file(text);
    CHECK_THROWS_WITH(read_tsv(file.path, 2), contains("[read_tsv] " + file.path + expected));
    CHECK_THROWS_WITH(read_tsv("/no/such/file", 2), contains("/no/such/file"));
}

TEST_CASE("an alphabet numbers the same tokens alike, whatever their order, after its three marks") {
    const std::vector<Tokens> one{{"b", "a"}, {"ä", "a"}}, other{{"ä"}, {"a", "b"}};
    const Alphabet alphabet(one);
    CHECK(alphabet.size() == 6);
    CHECK(alphabet.ids({"a", "b", "ä"}) == Ids{3, 4, 5});
    CHECK(Alphabet(other).ids({"a", "b", "ä"}) == Ids{3, 4, 5});
    CHECK(alphabet.tokens({1, 5, 3, 2, 0}) == Tokens{"⟨begin⟩", "ä", "a", "⟨end⟩", "⟨pad⟩"});
    CHECK_THROWS_WITH(alphabet.ids({"a", "ß"}), contains("\"ß\" at place 1 is not among the 3 tokens"));
    CHECK_THROWS_AS(alphabet.ids({"⟨end⟩"}), ValueError);  // a mark can't be written
    CHECK_THROWS_AS(alphabet[6], IndexError);
    CHECK_THROWS_AS(alphabet[-1], IndexError);
    CHECK(Alphabet::from_text(alphabet.text()).ids({"a", "b", "ä"}) == Ids{3, 4, 5});
    CHECK_THROWS_WITH(Alphabet(std::vector<Tokens>{{"a\tb"}}), "[Alphabet] a token may not hold a tab");
    for (const char* bad : {"", "a\t", "a\t\tb", "a\ta"}) CHECK_THROWS_AS(Alphabet::from_text(bad), ValueError);
}

TEST_CASE("targets are inputs shifted by one, once (C55)") {
    const std::vector<Ids> sequence{{0, 1, 2, 3}};
    const Shifted s = shifted(sequence);
    CHECK(close(loss(s, [](std::int64_t id) { return id + 1; }), 0.0001361905, 0, 1e-10));
    CHECK(close(loss(s, [](std::int64_t id) { return id; }), 10.0001361905, 0, 1e-10));
    CHECK_THROWS_AS(shifted(std::vector<Ids>{{1}}), ValueError);
}

TEST_CASE("a decoder is fed the begin mark and the tokens, and never the end mark (C55)") {
    const std::vector<Ids> sequences{{5, 6, 7}, {}, {8}};
    const Shifted s = teacher_forcing(sequences);
    CHECK(s.lengths == std::vector<std::size_t>{4, 1, 2});
    const Ids inputs{1, 5, 6, 7, 1, 0, 0, 0, 1, 8, 0, 0}, targets{5, 6, 7, 2, 2, -100, -100, -100, 8, 2, -100, -100};
    CHECK(std::ranges::equal(s.inputs.values(), inputs));
    CHECK(std::ranges::equal(s.targets.values(), targets));
    CHECK(s.inputs.shape() == Shape{3, 4});
    for (const std::int64_t mark : {0, 1, 2}) CHECK_THROWS_AS(teacher_forcing(std::vector<Ids>{{5, mark}}), ValueError);
}

TEST_CASE("padding fills the ends of shorter rows") {
    const std::vector<Ids> sequences{{5, 6}, {}, {7}};
    const Padded p = padded(sequences);
    CHECK(p.ids.shape() == Shape{3, 2});
    CHECK(std::ranges::equal(p.ids.values(), Ids{5, 6, 0, 0, 7, 0}));
    CHECK(p.lengths == std::vector<std::size_t>{2, 0, 1});
    CHECK(padded({}).ids.shape() == Shape{0, 0});
}

TEST_CASE("batches hold every place once, sequences of near lengths, in an order that the seed decides") {
    Generator generator(1);
    std::vector<std::size_t> lengths;
    for (int i = 0; i < 1000; ++i) lengths.push_back(std::size_t(generator.integer(1, 40)));
    const auto batches = batches_by_length(lengths, 16, generator);
    std::vector<std::size_t> seen;
    std::size_t spread = 0;
    for (const auto& batch : batches) {
        CHECK(batch.size() <= 16);
        std::size_t low = 40, high = 0;
        for (const std::size_t place : batch) {
            seen.push_back(place);
            low = std::min(low, lengths[place]);
            high = std::max(high, lengths[place]);
        }
        spread += high - low;
    }
    CHECK(seen.size() == 1000);
    CHECK(std::set<std::size_t>(seen.begin(), seen.end()).size() == 1000);
    CHECK(spread < 3 * batches.size());  // of 39

    Generator a(7), b(7), c(8);
    CHECK(batches_by_length(lengths, 16, a) == batches_by_length(lengths, 16, b));
    CHECK(batches_by_length(lengths, 16, a) != batches_by_length(lengths, 16, c));
    CHECK(batches_by_length({}, 16, a).empty());
    CHECK_THROWS_AS(batches_by_length(lengths, 0, a), ValueError);
}

TEST_CASE("a batch larger than the data is all of it") {
    Generator generator(1);
    for (const std::size_t B : {std::size_t(3), std::size_t(1) << 59, std::size_t(-1)}) {
        const auto batches = batches_by_length({3, 1, 2}, B, generator);
        CHECK(batches == std::vector<std::vector<std::size_t>>{{1, 2, 0}});
    }
    CHECK(batches_by_length({}, std::size_t(-1), generator).empty());
}

TEST_CASE("held-out rows of the shipped data share no day and no word with training rows") {
    const auto fields = [](const std::string& file, std::size_t column) {
        std::set<std::string> distinct;
        const std::vector<Row> rows = read_tsv(shipped + file, 2);
        for (const Row& row : rows) distinct.insert(row.fields[column]);
        CHECK(distinct.size() == rows.size());
        return distinct;
    };
    const auto disjoint = [](const std::set<std::string>& a, const std::set<std::string>& b) {
        return std::none_of(a.begin(), a.end(), [&](const std::string& x) { return b.contains(x); });
    };
    CHECK(disjoint(fields("dates.training.tsv", 1), fields("dates.held-out.tsv", 1)));
    CHECK(disjoint(fields("phonemes.training.tsv", 0), fields("phonemes.held-out.tsv", 0)));
    for (const Row& row : read_tsv(shipped + "dates.held-out.tsv", 2)) {
        CHECK(row.fields[1].size() == 10);
        CHECK(row.fields[0].find(row.fields[1].substr(0, 4)) != std::string::npos);  // the year stands in the text
    }
}
