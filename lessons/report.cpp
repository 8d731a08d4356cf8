#include "lessons/report.hpp"
#include <fstream>
#include "engine/error.hpp"
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

    std::filesystem::path part = html;
    part += ".part";
    std::ofstream(part, std::ios::binary) << page << std::flush;
    std::error_code error;
    const bool whole = std::filesystem::file_size(part, error) == page.size() && !error;
    if (whole) std::filesystem::rename(part, html, error);
    if (whole && !error) return;
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    fail<ValueError>("report", html.string() + ": can't be written" + (error ? ": " + error.message() : ""));
}

}  // namespace lookback
