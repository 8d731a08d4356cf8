#include "lessons/report.hpp"
#include "engine/error.hpp"
#include "engine/file.hpp"
#include "lessons/tokens.hpp"

namespace lookback {

void write_report(const Trace& trace, const std::filesystem::path& html) {
    std::string page = read_text(LOOKBACK_VIEWER_PAGE);
    const std::string place = "<script type=\"application/json\" id=\"trace\">";
    const std::size_t at = page.find(place);
    if (at == std::string::npos) fail<ValueError>("report", LOOKBACK_VIEWER_PAGE ": has no place for a trace");

    // A script element ends, or changes its meaning, only at a "<"; JSON can spell that otherwise.
    std::string json;
    for (const char c : to_json(trace)) c == '<' ? json += "\\u003c" : json += c;
    page.insert(at + place.size(), json);

    const std::string wrong = replace_file(html, page);
    if (!wrong.empty()) fail<ValueError>("report", html.string() + ": can't be written: " + wrong);
}

}  // namespace lookback
