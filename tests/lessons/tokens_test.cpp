#include "lessons/tokens.hpp"
#include <filesystem>
#include <fstream>
#include "tests/support/catch.hpp"

using namespace lookback;
using lookback::test::contains;
using Words = std::vector<std::string>;

TEST_CASE("words are split at spaces; punctuation, Chinese characters and emoji are tokens of their own") {
    CHECK(tokenize("Call me Ishmael.", false) == Words{"Call", "me", "Ishmael", "."});
    CHECK(tokenize("  don't  stop—l'homme! ", false) == Words{"don't", "stop", "—", "l'homme", "!"});
    CHECK(tokenize("'quoted' words'", false) == Words{"'", "quoted", "'", "words", "'"});
    CHECK(tokenize("注意力。", false) == Words{"注", "意", "力", "。"});
    CHECK(tokenize("انتباه، نعم؟", false) == Words{"انتباه", "،", "نعم", "؟"});
    CHECK(tokenize("👩‍🔬👍🏽 ok", false) == Words{"👩‍🔬", "👍🏽", "ok"});
    CHECK(tokenize("cafe\u0301 au lait", false) == Words{"cafe\u0301", "au", "lait"});
    CHECK(tokenize("3.14 x²", false) == Words{"3", ".", "14", "x", "²"});
    CHECK(tokenize("", false).empty());
    CHECK(tokenize(" \t\n\u00a0\u3000", false).empty());
}

TEST_CASE("characters are code points with their marks, spaces too") {
    CHECK(tokenize("ab c", true) == Words{"a", "b", " ", "c"});
    CHECK(tokenize("e\u0301x", true) == Words{"e\u0301", "x"});
    CHECK(tokenize("\u0301x", true) == Words{"\u0301", "x"});  // a mark on nothing
}

TEST_CASE("a vocabulary numbers tokens as they first come") {
    const Vocabulary v({"a", "b", "a", "c", "b"});
    CHECK(v.words == Words{"a", "b", "c"});
    CHECK(v.ids == std::vector<std::int64_t>{0, 1, 0, 2, 1});
}

TEST_CASE("what is not UTF-8 is refused, with its place") {
    for (const char* bad : {"ab\xff", "\xc3", "\xe2\x82", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80",
                            "\xf8\x88\x80\x80\x80", "a\x80"})
        CHECK_THROWS_AS(code_points(bad), ValueError);
    CHECK_THROWS_WITH(code_points("ab\xff"), contains("byte 3"));
    std::string s;
    for (char32_t c : {U'a', U'é', U'注', U'👍', char32_t(0x10ffff)}) append_utf8(s, c);
    CHECK(code_points(s).size() == 5);
    CHECK(code_points(s)[3].value == U'👍');
}

TEST_CASE("files that are no text give an error naming them") {
    const auto folder = std::filesystem::temp_directory_path() / "lookback tokens test";
    std::filesystem::create_directories(folder);
    const auto file = [&](const char* name, const std::string& bytes) {
        std::ofstream(folder / name, std::ios::binary) << bytes;
        return (folder / name).string();
    };
    CHECK(read_text(file("good", "\xef\xbb\xbfhëllo")) == "hëllo");
    CHECK(read_text(file("empty", "")).empty());
    CHECK_THROWS_WITH(read_text((folder / "none").string()), contains("none: there is no such file"));
    CHECK_THROWS_WITH(read_text(folder.string()), contains("is a folder"));
    CHECK_THROWS_WITH(read_text(file("binary", std::string("\x7f"
                                                           "ELF\0\0",
                                                           6))),
                      contains("is binary"));
    CHECK_THROWS_WITH(read_text(file("latin", "caf\xe9")), contains("not UTF-8"));
    CHECK_THROWS_WITH(read_text(file("huge", std::string((16u << 20) + 1, 'x'))), contains("16 MiB"));
    std::filesystem::remove_all(folder);
}
