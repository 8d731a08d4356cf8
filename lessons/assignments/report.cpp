#include "report.hpp"
#include <cstdio>
#include <fstream>
#include <iostream>

namespace lookback {

namespace fs = std::filesystem;

std::string printable(const std::string& text) {
    std::string safe;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const unsigned char c = (unsigned char)text[i];
        const std::size_t more = c < 0x80                ? 0
                                 : c >= 0xc2 && c < 0xe0 ? 1
                                 : c >= 0xe0 && c < 0xf0 ? 2
                                 : c >= 0xf0 && c < 0xf5 ? 3
                                                         : 9;
        std::size_t n = 0;
        while (n < more && i + n + 1 < text.size() && ((unsigned char)text[i + n + 1] & 0xc0) == 0x80) ++n;
        const bool control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ||
                             (c == 0xc2 && n == 1 && (unsigned char)text[i + 1] < 0xa0);
        if (more == n && !control)
            safe.append(text, i, n + 1);
        else
            safe += '?';
        if (more == n) i += n;
    }
    return safe;
}

// Each line moved to the right.
static std::string indented(const std::string& text, const std::string& by) {
    std::string all = by;
    for (std::size_t i = 0; i < text.size(); ++i) {
        all += text[i];
        if (text[i] == '\n' && i + 1 < text.size()) all += by;
    }
    return all + (text.ends_with('\n') ? "" : "\n");
}

Report::Report(const Json& suite, const Json& tasks, fs::path file) : suite_(suite), file_(std::move(file)) {
    for (const Json& t : tasks) {
        Row& row = rows_.emplace_back();
        row.number = t.at("number"), row.title = t.at("title"), row.points = t.at("points"), row.cases = t.at("cases");
    }
    std::cout << "Assignment " << suite_.at("assignment").get<std::string>() << ": "
              << suite_.at("title").get<std::string>() << "\n\n";
    save();
}

void Report::compiled(bool works, const std::string& text) {
    compiled_ = works, compiler_ = text;
    if (works)
        std::cout << "  compiled: " << text << "\n\n";
    else
        std::cout << "  It does not compile, so no task can be graded:\n\n" << indented(text, "    ") << "\n";
    save();
}

void Report::add(const std::string& task, const std::string& name, const std::string& wrong) {
    for (Row& row : rows_) {
        if (row.number != task) continue;
        ++row.graded;
        if (wrong.empty())
            ++row.right;
        else if (row.wrong.empty())
            row.wrong = "case \"" + name + "\": " + wrong;
        else
            row.also.push_back(name);
        if (row.graded == row.cases) print(row);
    }
    save();
}

void Report::remark(const std::string& text, const std::string& aside, const std::string& more) {
    remarks_ += text + more + "\n", spoken_ += text + aside + more + "\n";
    save();
}

std::string Report::explain(const Row& row) {
    std::string text = row.wrong;
    if (row.right > 0 && !row.also.empty()) {  // if every case is wrong, that is said
        std::string names;
        for (const std::string& name : row.also) names += (names.empty() ? "\"" : ", \"") + name + "\"";
        text += (text.ends_with('\n') ? "" : "\n") + ("also wrong: " + names);
    }
    return text;
}

void Report::print(const Row& row) const {
    const std::size_t wrong = row.cases - row.right;
    std::string count = std::to_string(wrong) + " of " + std::to_string(row.cases) + " cases wrong";
    if (wrong == 0) count = "";
    if (wrong == row.cases) count = "every case is wrong";
    const bool begun = !row.wrong.ends_with("is not done\n");
    if (!begun) count = "task " + row.number + " is not done";
    std::printf("  %-5s %-48s %3d / %d  %s\n", row.number.c_str(), row.title.c_str(), wrong ? 0 : row.points,
                row.points, count.c_str());
    if (wrong && begun) std::printf("%s", indented(explain(row), "          ").c_str());
    std::fflush(stdout);
}

void Report::close(double seconds) {
    seconds_ = seconds;
    save();
    int score = 0, most = 0;
    for (const Row& row : rows_) score += row.right == row.cases ? row.points : 0, most += row.points;
    std::printf("  %-54s %3d / %d\n\n", "total", score, most);
    if (!spoken_.empty()) std::printf("%s", indented(spoken_, "  ").c_str());
    std::printf("  Written to %s\n", file_.c_str());
}

bool Report::full() const {
    for (const Row& row : rows_)
        if (row.right != row.cases) return false;
    return true;
}

Json Report::test(const Row& row) const {
    const bool done = row.graded == row.cases && row.right == row.cases;
    std::string output = explain(row);
    if (!compiled_ && !compiler_.empty())
        output = "not graded: the file does not compile";
    else if (row.graded < row.cases)
        output += (output.empty() ? "" : "\n") + ("not graded yet: " + std::to_string(row.cases - row.graded) + " of " +
                                                  std::to_string(row.cases) + " cases");
    return {{"number", row.number},
            {"name", row.title},
            {"score", done ? row.points : 0},
            {"max_score", row.points},
            {"status", done ? "passed" : "failed"},
            {"output", output},
            {"extra_data", {{"cases", row.cases}, {"right", row.right}}}};
}

// Replaced as a whole: whoever reads it, and whenever the grader is stopped, finds a whole file.
void Report::save() const {
    Json tests = Json::array();
    tests.push_back(
        {{"name", "The file compiles"}, {"status", compiled_ ? "passed" : "failed"}, {"output", compiler_}});
    for (const Row& row : rows_) tests.push_back(test(row));
    const Json results{{"output", remarks_},
                       {"execution_time", seconds_},
                       {"visibility", "visible"},
                       {"stdout_visibility", "hidden"},
                       {"test_output_format", "text"},
                       {"tests", tests},
                       {"extra_data", {{"schema", "lookback-results/1"}, {"assignment", suite_.at("assignment")}}}};
    fs::path part = file_;
    part += ".part";
    std::ofstream(part, std::ios::binary) << results.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    fs::rename(part, file_);
}

}  // namespace lookback
