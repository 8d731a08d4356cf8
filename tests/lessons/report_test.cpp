#include "lessons/report.hpp"
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include "lessons/tokens.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/trace_example.hpp"

using namespace lookback;
using lookback::test::contains;
using lookback::test::example_trace;
namespace fs = std::filesystem;

namespace {

struct ReportFolder {
    fs::path path = fs::temp_directory_path() / ("lookback-report-" + std::to_string(std::random_device()()));
    ReportFolder() { fs::create_directory(path); }
    ~ReportFolder() { fs::remove_all(path); }
};

const std::string trace_tag = "<script type=\"application/json\" id=\"trace\">";

// What stands between the place for the trace and the next "</script>": what a browser takes for its content.
std::string in_the_page(const std::string& page) {
    const std::size_t from = page.find(trace_tag) + trace_tag.size();
    return page.substr(from, page.find("</script", from) - from);
}

std::size_t occurrences(const std::string& text, const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
}

}  // namespace

TEST_CASE("a report is the page with the trace in it") {
    const ReportFolder folder;
    const fs::path html = folder.path / "report.html";
    const Trace trace = example_trace();
    write_report(trace, html);
    const std::string report = read_text(html.string()),
                      page = read_text(LOOKBACK_SOURCE_DIR "/notebooks/viewer/viewer.html");
    CHECK(occurrences(page, trace_tag) == 1);
    CHECK(in_the_page(page).empty());
    CHECK(to_json(parse_trace(in_the_page(report))) == to_json(trace));
    std::string without = report;
    without.erase(report.find(trace_tag) + trace_tag.size(), in_the_page(report).size());
    CHECK(without == page);
}

TEST_CASE("no text of a trace ends the script it stands in") {
    const ReportFolder folder;
    const fs::path html = folder.path / "report.html";
    const std::vector<std::string> hostile = {"</script><script>alert(1)</script>",
                                              "</SCRIPT >",
                                              "<!--<script>",
                                              "-->",
                                              "]]>",
                                              "<img src=x onerror=alert(1)>",
                                              "\xe2\x80\xa8\xe2\x80\xa9",
                                              "\\u003c/script>",
                                              "\"}]",
                                              std::string("nul\0", 4)};
    Trace trace = example_trace();
    trace.lesson = hostile[0];
    trace.tokens = hostile;
    for (const std::string& text : hostile) trace.config[text] = text;
    trace.series[0].name = trace.matrices[0].rows[0] = trace.checks[0].claim = trace.paths[0].from = hostile[0];
    write_report(trace, html);
    std::ifstream in(html, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    const std::string report = text.str(), page = read_text(LOOKBACK_SOURCE_DIR "/notebooks/viewer/viewer.html");
    for (const char* tag : {"<script", "</script", "<!--", "<img"})
        CHECK(occurrences(report, tag) == occurrences(page, tag));
    CHECK(in_the_page(report).find('<') == std::string::npos);
    const Trace read = parse_trace(in_the_page(report));
    CHECK(read.tokens == hostile);
    CHECK(to_json(read) == to_json(trace));
}

TEST_CASE("a report replaces the one before, or says why it can't") {
    const ReportFolder folder;
    const fs::path html = folder.path / "report.html";
    std::ofstream(html) << "what was here before";
    write_report(example_trace(), html);
    CHECK(occurrences(read_text(html.string()), "what was here before") == 0);
    CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
    CHECK_THROWS_WITH(write_report(example_trace(), folder.path / "no" / "where.html"), contains("can't be written"));
    fs::create_directory(folder.path / "taken.html");
    CHECK_THROWS_WITH(write_report(example_trace(), folder.path / "taken.html"), contains("can't be written"));
    CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 2);
}
