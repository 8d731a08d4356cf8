// Runs a program that is not trusted: with limits, as a user of its own where that is possible, and with nothing of it
// left afterwards.
#pragma once
#include <sys/types.h>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lookback {

struct Limits {
    unsigned cpu_seconds = 2, wall_seconds = 10;
    std::size_t memory = 512 << 20, printed = 1 << 20, answer = 8 << 20;  // bytes
    unsigned processes = 1;                                               // 1: it can't fork
};

struct Outcome {
    enum class End { exited, signal, cpu, wall, printed, answer } end = End::exited;
    int code = 0;         // what it exited with, or the signal that ended it
    std::string answer;   // all that came from descriptor 3
    std::string printed;  // the beginning of stdout and stderr
    unsigned strays = 0;  // processes that it left behind, ended since
    double cpu_seconds = 0;
    double mebibytes = 0;  // at most resident
};

// What ended it, as a clause: "it was stopped by a segmentation fault (…)".
std::string why(const Outcome& outcome, const Limits& limits);

// Where programs run, and as whom. Root gives them a user of their own, whose processes can be counted and who can read
// neither the grader's memory nor its files; others run them as themselves, and forbid them to fork.
class Sandbox {
public:
    // The folder becomes their current one.
    // throws std::runtime_error where root may not change its user: nothing would then stop a fork bomb
    explicit Sandbox(std::filesystem::path folder);

    // Input goes to stdin. The command's group is killed when it ends or passes a limit, and so are descendants that
    // left the group.   throws std::system_error if it cannot be started
    Outcome run(const std::vector<std::string>& command, const std::string& input, const Limits& limits) const;
    const std::filesystem::path& folder() const { return folder_; }
    void give(const std::filesystem::path& file) const;  // to the programs' user

private:
    std::filesystem::path folder_;
    std::optional<uid_t> user_;
};

}  // namespace lookback
