#include "strip.hpp"
#include <sstream>
#include <stdexcept>

namespace lookback {

std::string strip(const std::string& reference) {
    const std::string begin = "// BEGIN SOLUTION", end = "// END SOLUTION";
    std::istringstream lines(reference);
    std::string stub, line;
    std::size_t number = 0, opened = 0;
    bool bare = false;
    const auto fail = [&](std::size_t at, const char* what) {
        throw std::invalid_argument("line " + std::to_string(at) + ": " + what);
    };
    while (std::getline(lines, line)) {
        ++number;
        const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
        const std::string text = line.substr(indent);
        if (text.starts_with(begin)) {
            if (opened) fail(number, "BEGIN SOLUTION inside a solution");
            opened = number;
            const std::string task = text.size() > begin.size() ? text.substr(begin.size() + 1) : "";
            if (!task.empty()) stub += line.substr(0, indent) + "throw NotDone(\"" + task + "\");\n";
        } else if (text.starts_with(end)) {
            if (!opened) fail(number, "END SOLUTION, and no solution is open");
            opened = 0;
            bare = stub.ends_with("\n\n");
        } else if (text.find("BEGIN SOLUTION") != std::string::npos || text.find("END SOLUTION") != std::string::npos) {
            fail(number, "a mark must stand alone on its line");  // or it would be handed out
        } else if (!opened) {
            if (!(bare && line.empty()))
                stub += line + "\n";  // of the blank lines around a block that is gone, one stays
            bare = false;
        }
    }
    if (opened) fail(opened, "BEGIN SOLUTION is never closed");
    return stub;
}

}  // namespace lookback
