// The outer side of the process border: it holds the expectations, hands inputs to the probe, compares the answers.
//
//   grade --cases FILE|- --student FILE.cpp --work FOLDER --headers FILE… --probe FILE.a [--task M.N] [--results FILE]
//
// --work is an empty folder to compile and run in. Exit codes: 0 every point, 1 not yet, 2 the grader can't be used so.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include "compare.hpp"
#include "process.hpp"
#include "report.hpp"

using namespace lookback;
namespace fs = std::filesystem;

namespace {

constexpr Limits compiler_limits{
    .cpu_seconds = 20, .wall_seconds = 120, .memory = std::size_t(2) << 30, .processes = 32};
constexpr Limits case_limits;

using Flags = std::map<std::string, std::vector<std::string>>;

Flags read_flags(int argc, char** argv) {
    Flags flags{{"cases", {}},
                {"student", {}},
                {"work", {}},
                {"headers", {}},
                {"probe", {}},
                {"task", {}},
                {"results", {"results.json"}}};
    std::vector<std::string>* values = nullptr;
    for (const std::string& word : std::vector<std::string>(argv + 1, argv + argc)) {
        if (word.starts_with("--")) {
            const auto flag = flags.find(word.substr(2));
            if (flag == flags.end()) throw std::invalid_argument("unknown flag " + word);
            values = &flag->second;
            values->clear();
        } else if (values) {
            values->push_back(word);
        } else {
            throw std::invalid_argument("what is '" + word + "'?");
        }
    }
    for (const auto& [name, given] : flags)
        if (given.empty() && name != "task") throw std::invalid_argument("--" + name + " is missing");
    return flags;
}

std::string contents(const fs::path& file) {
    if (!fs::is_regular_file(file)) throw std::invalid_argument(file.string() + ": there is no such file");
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
}

// A student's file as a compiler likes it, whatever editor it comes from.
std::string source(const fs::path& file) {
    std::string text = contents(file);
    if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
    if (text.find('\0') != std::string::npos) throw std::invalid_argument(file.string() + ": this is not UTF-8 text");
    std::erase(text, '\r');
    return text;
}

// Of the compiler's text, what points at the student's file: a beginner can do nothing with a line of <vector>.
std::string trimmed(const std::string& text, const std::string& file) {
    std::istringstream lines(text);
    std::string line, kept;
    bool keep = true;
    int count = 0;
    while (std::getline(lines, line) && count < 40) {
        if (line.empty() || line[0] != ' ')
            keep = line.starts_with(file) || line.find("undefined reference") != std::string::npos ||
                   line.find("multiple definition") != std::string::npos;
        if (keep) kept += line + "\n", ++count;
    }
    if (kept.empty()) kept = text.substr(0, 2000);
    return printable(kept);
}

// Compiles the student's file and links it with the probe. What went wrong is in the report; the program is work/probe.
bool build(const Sandbox& sandbox, const Flags& flags, const std::string& name, Report& report) {
    const char* chosen = std::getenv("CXX");
    const std::string compiler = chosen && *chosen ? chosen : "c++", object = "student.o";
    // The assertions of the standard library turn most wrong indices into words.
    const Outcome compiled = sandbox.run(
        {compiler, "-std=c++20", "-O1", "-Wall", "-D_GLIBCXX_ASSERTIONS", "-fmax-errors=5", "-c", name, "-o", object},
        "", compiler_limits);
    if (compiled.end != Outcome::End::exited || compiled.code) {
        std::string text = trimmed(compiled.printed, name);
        if (compiled.end != Outcome::End::exited) text += "the compiler: " + why(compiled, compiler_limits) + "\n";
        report.compiled(false, text);
        return false;
    }
    const std::string probe = fs::path(flags.at("probe")[0]).filename();  // whole, so that a second main is an error
    const std::vector<std::string> link{compiler, object, "-Wl,--whole-archive", probe, "-Wl,--no-whole-archive",
                                        "-o",     "probe"};
    const Outcome linked = sandbox.run(link, "", compiler_limits);
    if (linked.end != Outcome::End::exited || linked.code) {
        report.compiled(false,
                        trimmed(linked.printed, name) +
                            "(a function of the header is missing, or there is a main: the grader has its own)\n");
        return false;
    }
    std::ostringstream text;
    text.precision(2);
    text << compiled.cpu_seconds << " s, " << int(compiled.mebibytes) << " MiB";
    if (!compiled.printed.empty()) text << ", with warnings:\n" << trimmed(compiled.printed, name);
    std::string words = text.str();
    while (words.ends_with('\n')) words.pop_back();
    report.compiled(true, words);
    return true;
}

std::string written(double x) {
    char text[40];
    std::snprintf(text, sizeof text, "%.6g", x);
    return text;
}

// An input as a student would write it, [[1, 2], [3, 4]]. Counts its numbers.
std::string written(const Json& value, std::size_t& count) {
    std::string text;
    const auto append = [&](const std::string& item) { text += (text.empty() ? "" : ", ") + item; };
    if (value.is_object() && value.contains("shape")) {
        const std::size_t rows = value["shape"][0], columns = value["shape"].back();
        for (std::size_t i = 0; i < rows; ++i) {
            std::string row;
            for (std::size_t j = 0; j < columns; ++j)
                row += (j ? ", " : "") + written(value["data"][i * columns + j].get<double>());
            append("[" + row + "]");
        }
        count += rows * columns;
    } else if (value.is_array()) {
        for (const Json& item : value) append(written(item, count));
        return "{" + text + "}";
    } else {
        ++count;
        return value.is_number_float() ? written(value.get<double>()) : value.dump();
    }
    return "[" + text + "]";
}

// What can be computed again with a pencil is shown.
std::string small_input(const Json& task, const Json& test) {
    std::string text;
    std::size_t count = 0;
    const Json &names = task.at("arguments"), &input = test.at("input");
    for (std::size_t i = 0; i < input.size() && i < names.size(); ++i)
        text += (i ? ", " : "") + names[i].get<std::string>() + " = " + written(input[i], count);
    return count <= 12 ? "Input: " + text + "\n" : "";
}

// The standard library's assertion is about a line of its own; this is about the student's. Its line is taken out.
std::string failed_assertion(std::string& printed) {
    for (std::size_t at = 0; at < printed.size();) {
        const std::size_t end = std::min(printed.find('\n', at), printed.size() - 1) + 1;
        const std::string line = printed.substr(at, end - at);
        const auto says = [&](const char* words) { return line.find(words) != std::string::npos; };
        if (says("stl_vector.h") && says("Assertion")) {
            printed.erase(at, end - at);
            if (says("__n < this->size()"))
                return "it used v[i] of a std::vector with i >= v.size() (is an unsigned index counted below 0?)";
            return "it used a std::vector wrongly (front() or back() of an empty one?)";
        }
        at = end;
    }
    return "";
}

bool has_parts(const Json& expected) { return expected.is_object() && !expected.contains("shape"); }

// Of several answers, those that are right: "dh, dW are right; ".
std::string right_parts(const Json& answer, const Json& expected, double tolerance) {
    std::string names;
    std::size_t count = 0;
    if (has_parts(expected) && answer.is_object())
        for (const auto& [name, value] : expected.items())
            if (answer.contains(name) && !compare(answer[name], value, tolerance))
                names += (count++ ? ", " : "") + name;
    return count ? names + (count > 1 ? " are" : " is") + " right; " : "";
}

// Is it this mistake that made the answer wrong? Of several answers some may be right all the same.
bool explains(const Json& mistake, const Json& answer, const Json& expected, double tolerance) {
    if (!has_parts(expected) || !answer.is_object()) return !compare(answer, mistake, tolerance);
    for (const auto& [name, value] : expected.items())
        if (!answer.contains(name) ||
            (compare(answer[name], value, tolerance) && compare(answer[name], mistake.at(name), tolerance)))
            return false;
    return true;
}

struct Verdict {
    std::string wrong = "";  // empty if the answer is right, else what a student should read
    bool slow = false;       // it ran out of time
};

Verdict run_case(const Sandbox& sandbox, const Json& task, const Json& test) {
    const bool hidden = test.at("hidden");
    const Json question{{"task", test.at("task")}, {"input", test.at("input")}};
    const Outcome outcome = sandbox.run({"./probe"}, question.dump(), case_limits);
    std::string text;
    if (outcome.strays) text += "(it left " + std::to_string(outcome.strays) + " processes behind; they were ended)\n";
    // What a program prints or throws could be its hidden input.
    std::string all = outcome.printed;
    const std::string assertion = outcome.end == Outcome::End::signal ? failed_assertion(all) : "";
    while (all.ends_with('\n')) all.pop_back();
    if (!all.empty() && !hidden) {
        std::string printed = all.substr(0, 1000);
        if (printed.size() < all.size()) printed += "…";
        text += "It printed: " + printable(printed) + "\n";
    }
    if (!hidden) text += small_input(task, test);
    std::string hint = "Hint: " + task.at("hint").get<std::string>() + "\n";
    if (test.contains("note")) hint += "This case: " + test.at("note").get<std::string>() + "\n";
    if (outcome.end != Outcome::End::exited || outcome.answer.empty()) {
        const bool slow = outcome.end == Outcome::End::cpu || outcome.end == Outcome::End::wall;
        return {(assertion.empty() ? why(outcome, case_limits) : assertion) + "\n" + text, slow};
    }
    const Json reply = Json::parse(outcome.answer, nullptr, false);
    if (!reply.is_object()) return {"what came back is no answer\n" + text};
    if (reply.contains("not_done")) {
        const std::string number = test.at("task");
        if (reply["not_done"] == number) return {"task " + number + " is not done\n" + text};
        return {"it needs another task, which is not done\n" + text};
    }
    if (reply.contains("error")) {
        const bool shown = !hidden && reply["error"].is_string();
        const std::string thrown = shown ? "\"" + printable(reply["error"].get<std::string>()) + "\"" : "an exception";
        return {"it threw " + thrown + "\n" + text + hint};
    }
    const Json answer = reply.value("answer", Json());
    const double tolerance = test.at("tolerance");
    const auto difference = compare(answer, test.at("expected"), tolerance);
    if (!difference) return {};
    const bool named = !difference->place.empty() && difference->place[0] != '[' && difference->place[0] != '(';
    std::string first = right_parts(answer, test.at("expected"), tolerance) + (named ? "" : "the answer") +
                        difference->place + " " + difference->what;
    if (!hidden && !difference->numbers.empty()) first += ": " + difference->numbers;
    for (const Json& mistake : test.at("mistakes"))
        if (explains(mistake.at("answer"), answer, test.at("expected"), tolerance))
            return {first + "\n" + text + "Hint: " + mistake.at("hint").get<std::string>() + "\n"};
    return {first + "\n" + text + hint};
}

int grade(const Flags& flags) {
    const auto start = std::chrono::steady_clock::now();
    // All of it is read before anything of the student's is compiled or run, so that it need not lie where that could.
    const std::string& from = flags.at("cases")[0];
    const Json suite = from == "-" ? Json::parse(std::cin) : Json::parse(contents(from));
    const std::string name = suite.at("file"), student = source(flags.at("student")[0]);
    const fs::path work = fs::absolute(flags.at("work")[0]);

    Json tasks = Json::array();
    for (Json task : suite.at("tasks")) {
        if (!flags.at("task").empty() && task.at("number") != flags.at("task")[0]) continue;
        std::size_t count = 0;
        for (const Json& test : suite.at("cases")) count += test.at("task") == task.at("number");
        task["cases"] = count;
        tasks.push_back(task);
    }
    if (tasks.empty()) throw std::invalid_argument("there is no task " + flags.at("task")[0]);

    Report report(suite, tasks, flags.at("results")[0]);
    const Sandbox sandbox(work);
    std::ofstream(work / name, std::ios::binary) << student;
    std::vector<std::string> parts = flags.at("headers");
    parts.insert(parts.end(), flags.at("probe").begin(), flags.at("probe").end());
    for (const fs::path part : parts) fs::copy_file(part, work / part.filename());

    if (build(sandbox, flags, name, report)) {
        bool hidden = false;
        std::size_t right = 0, count = 0;
        for (const Json& task : tasks) {
            bool slow = false;
            for (const Json& test : suite.at("cases")) {
                if (test.at("task") != task.at("number")) continue;
                const bool secret = test.at("hidden");
                // a task that is lost need not cost a time limit for every case
                const Verdict verdict =
                    slow ? Verdict{"not run: a case before it ran out of time"} : run_case(sandbox, task, test);
                report.add(task.at("number"), (secret ? "hidden: " : "") + test.at("name").get<std::string>(),
                           verdict.wrong);
                slow |= verdict.slow;
                hidden |= secret;
                right += verdict.wrong.empty(), ++count;
            }
        }
        if (hidden)  // the seed is for the instructor, at the terminal: students read the results
            report.remark("Public and hidden cases", " (seed " + suite.at("seed").dump() + ")",
                          ": " + std::to_string(right) + " of " + std::to_string(count) + " right.");
        else
            report.remark("Public cases only; more cases of the same kind, of other numbers and sizes, are hidden.");
    }
    report.close(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return report.full() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return grade(read_flags(argc, argv));
    } catch (const std::exception& e) {
        std::cerr << "grade: " << printable(e.what()) << "\n";
        return 2;
    }
}
