// What a student and an instructor read: a table on the terminal, and results.json in Gradescope's form.
#pragma once
#include <filesystem>
#include <vector>
#include "value.hpp"

namespace lookback {

// A task is worth its points when all its cases are right, and nothing before: an answer that is always zero must not
// collect the cases whose answer is zero.
class Report {
public:
    // Tasks: [{"number", "title", "points", "cases"}]: all that will be graded. Every one begins at 0, "not graded
    // yet", so that a file that is read early, or is the last one written, says what is true.
    Report(const Json& suite, const Json& tasks, std::filesystem::path file);

    void compiled(bool works, const std::string& text);
    // A case of a task: empty if it is right, else why not. Ends the task at its last case.
    void add(const std::string& task, const std::string& name, const std::string& wrong);
    // For the whole submission: text, aside, more; the aside is not in the file, which students see.
    void remark(const std::string& text, const std::string& aside = "", const std::string& more = "");
    void close(double seconds);  // the total, and the file's name, on the terminal

    bool full() const;

private:
    struct Row {
        std::string number, title;
        int points = 0;
        std::size_t cases = 0, right = 0, graded = 0;
        std::string wrong;              // the first wrong case, in full
        std::vector<std::string> also;  // names of the others
    };
    static std::string explain(const Row& row);
    void print(const Row& row) const;
    void save() const;
    Json test(const Row& row) const;

    Json suite_;
    std::vector<Row> rows_;
    std::filesystem::path file_;
    bool compiled_ = false;
    std::string compiler_, remarks_, spoken_;  // remarks in the file, and on the terminal
    double seconds_ = 0;
};

// Text of unknown origin, for a terminal and for JSON: control characters and broken UTF-8 become "?".
std::string printable(const std::string& text);

}  // namespace lookback
