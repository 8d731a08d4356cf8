#include "lessons/tokens.hpp"
#include <clocale>
#include <cwchar>
#include <cwctype>
#include <filesystem>
#include <fstream>
#include <unordered_map>

namespace lookback {

std::vector<CodePoint> code_points(std::string_view s) {
    std::vector<CodePoint> out;
    for (std::size_t i = 0; i < s.size(); i += out.back().bytes) {
        out.push_back(decode(s, i));
        if (out.back().bytes == 0) fail<ValueError>("text", "byte " + std::to_string(i + 1) + " is not UTF-8");
    }
    return out;
}

void append_utf8(std::string& out, char32_t c) {
    if (c < 0x80) {
        out += char(c);
    } else if (c < 0x800) {
        out += char(0xc0 | c >> 6);
        out += char(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        out += char(0xe0 | c >> 12);
        out += char(0x80 | (c >> 6 & 0x3f));
        out += char(0x80 | (c & 0x3f));
    } else {
        out += char(0xf0 | c >> 18);
        out += char(0x80 | (c >> 12 & 0x3f));
        out += char(0x80 | (c >> 6 & 0x3f));
        out += char(0x80 | (c & 0x3f));
    }
}

// The C library knows Unicode's classes, in a UTF-8 locale.
static void use_unicode() {
    static const bool once = [] {
        return std::setlocale(LC_CTYPE, "C.UTF-8") || std::setlocale(LC_CTYPE, "en_US.UTF-8");
    }();
    (void)once;
}

std::size_t column_count(char32_t c) {
    use_unicode();
    const int n = wcwidth(wchar_t(c));
    return n < 0 ? 1 : std::size_t(n);
}

bool is_unsafe(char32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
           (c >= 0xe0000 && c <= 0xe007f);
}

std::string read_text(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) fail<ValueError>("file", path + ": there is no such file");
    if (fs::is_directory(status)) fail<ValueError>("file", path + ": is a folder");
    std::ifstream in(path, std::ios::binary);
    if (!in) fail<ValueError>("file", path + ": can't be read");
    constexpr std::size_t most = 16u << 20;
    std::string text(most + 1, '\0');
    in.read(text.data(), std::streamsize(text.size()));
    text.resize(std::size_t(in.gcount()));
    if (in.bad()) fail<ValueError>("file", path + ": can't be read");
    if (text.size() > most) fail<ValueError>("file", path + ": more than 16 MiB");
    if (text.find('\0') != std::string::npos) fail<ValueError>("file", path + ": is binary, not text");
    if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
    try {
        code_points(text);
    } catch (const ValueError&) {
        fail<ValueError>("file", path + ": is not UTF-8 text");
    }
    return text;
}

static bool is_joined(char32_t c) {  // to what stands before it: marks, joiners, variation and skin-tone selectors
    return c == 0x200d || (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0x1f3fb && c <= 0x1f3ff) ||
           (c >= 0xe0020 && c <= 0xe007f) || (!is_unsafe(c) && column_count(c) == 0);
}
static bool is_ideograph(char32_t c) {
    return (c >= 0x3400 && c < 0xa000) || (c >= 0x3040 && c < 0x3100) || (c >= 0xf900 && c < 0xfb00) ||
           (c >= 0x20000 && c < 0x32000);
}

std::vector<std::string> tokenize(std::string_view utf8, bool by_character) {
    use_unicode();
    std::vector<std::string> tokens;
    bool word = false, joiner = false;  // may the next code point be added to the last token
    const std::vector<CodePoint> points = code_points(utf8);
    for (std::size_t i = 0; i < points.size(); ++i) {
        const char32_t c = points[i].value;
        const std::string_view part = utf8.substr(points[i].at, points[i].bytes);
        const bool space = std::iswspace(wint_t(c)) || c == 0xa0 || c == 0x2007 || c == 0x202f;
        if (!tokens.empty() && !space && (joiner || is_joined(c))) {
            tokens.back() += part;
        } else if (by_character) {
            tokens.emplace_back(part);
        } else if (space) {
            word = false;
        } else if (std::iswalnum(wint_t(c)) && !is_ideograph(c)) {
            if (word)
                tokens.back() += part;
            else
                tokens.emplace_back(part);
            word = true;
        } else {
            // an apostrophe inside a word is part of it: don't, l'homme
            const bool apostrophe = (c == '\'' || c == 0x2019) && word && i + 1 < points.size() &&
                                    std::iswalnum(wint_t(points[i + 1].value));
            if (apostrophe) {
                tokens.back() += part;
            } else {
                tokens.emplace_back(part);
                word = false;
            }
        }
        joiner = c == 0x200d;
    }
    return tokens;
}

Vocabulary::Vocabulary(const std::vector<std::string>& tokens) {
    std::unordered_map<std::string, std::int64_t> number;
    for (const std::string& token : tokens) {
        const auto [at, is_new] = number.try_emplace(token, std::int64_t(words.size()));
        if (is_new) words.push_back(token);
        ids.push_back(at->second);
    }
}

}  // namespace lookback
