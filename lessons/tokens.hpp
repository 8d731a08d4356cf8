// Text as learners bring it: UTF-8 in any script, split into tokens; what is not text is an error that says where.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include "layers/data.hpp"

namespace lookback {

// throws ValueError "[text] byte 12 is not UTF-8"
std::vector<CodePoint> code_points(std::string_view utf8);
void append_utf8(std::string& out, char32_t c);
std::size_t column_count(char32_t c);  // in a terminal: 0, 1 or 2
bool is_unsafe(char32_t c);            // control characters, and those that turn the direction of text around them

// The whole of a file.   throws ValueError naming the file: it is missing, a folder, not UTF-8, binary, or over 16 MiB
std::string read_text(const std::string& path);

// Words are split at spaces; punctuation, symbols and Chinese characters are tokens of their own; marks and emoji
// modifiers stay with what they modify. With `by_character` each code point (and its marks) is a token, spaces too.
std::vector<std::string> tokenize(std::string_view utf8, bool by_character);

// Each distinct token gets the next number: 0, 1, 2 …
struct Vocabulary {
    std::vector<std::string> words;
    std::vector<std::int64_t> ids;  // of the tokens in turn
    explicit Vocabulary(const std::vector<std::string>& tokens);
};

}  // namespace lookback
