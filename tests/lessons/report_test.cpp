#include "lessons/report.hpp"
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include "lessons/lesson.hpp"
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

TEST_CASE("what holds of typical draws only is as one-sided on another seed, where a miss fails nothing") {
    const ReportFolder folder;
    const std::string file = (folder.path / "trace.json").string();
    // Runs a lesson of one check, on this seed: its exit code, its check, and what it printed.
    const auto run = [&](const char* seed, const char* seeds, Trace::Kind kind, double measured) {
        Lesson lesson("99_none", "No lesson.");
        const char* arguments[] = {"lesson", "--seed", seed, "--seeds", seeds, "--trace", file.c_str()};
        std::ostringstream out;
        std::streambuf* const screen = std::cout.rdbuf(out.rdbuf());
        const int code = lesson.run(7, const_cast<char**>(arguments), [&] {
            lesson.check("99.check", "a check", lesson.typical(kind), measured, 1, 0.5);
        });
        std::cout.rdbuf(screen);
        return std::tuple{code, lesson.trace().checks.at(0), out.str()};
    };
    using enum Trace::Kind;
    for (const char* seeds : {"1", "3"})
        for (const auto& [kind, right, wrong, sign] :
             {std::tuple{le, -8., 8., "≲"}, {ge, 8., -8., "≳"}, {slope, 1.4, 8., "~"}}) {
            CAPTURE(seeds, sign);
            CHECK(std::get<0>(run("1", seeds, kind, right)) == 0);
            CHECK(std::get<0>(run("1", seeds, kind, wrong)) == 1);
            const auto [code, held, shown] = run("5", seeds, kind, right);
            CHECK(code == 0);
            CHECK((held.pass && held.kind == target));
            CHECK_THAT(shown, contains(sign) && contains("holds"));
            const auto [missed_code, missed, missed_shown] = run("5", seeds, kind, wrong);
            CHECK(missed_code == 0);
            CHECK(!missed.pass);
            CHECK_THAT(missed_shown, contains("differs"));
        }
}
