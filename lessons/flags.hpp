// The command line of a lesson, or of card, claims, quiz and train. CLI11 reads it, in flags.cpp alone: its header
// would add three seconds to every lesson's compile time.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lookback {

class Flags {
public:
    Flags(const std::string& command, const std::string& description);
    ~Flags();

    // Each is declared before parse(), with the value that it has if it is not given. A wrong value is refused.
    void add(const std::string& flag, std::string& value, const std::string& help, const std::string& type = "TEXT");
    void add(const std::string& flag, double& value, const std::string& help);  // finite
    void add(const std::string& flag, std::int64_t& value, std::int64_t low, std::int64_t high,
             const std::string& help);
    void add(const std::string& flag, bool& value, const std::string& help);
    // As often as one likes, each time with so many words; empty ones stand for those left out.
    void add(const std::string& flag, std::vector<std::string>& words, int count, const std::string& help,
             const std::string& type);
    void add_seed(std::int64_t& seed);
    // A word without a flag that must be given, one of these.
    void require(const std::string& name, std::string& value, const std::vector<std::string>& choices);
    void footer(const std::string& text);  // of the help

    // Reads the flags. If the program is to end here, its exit code: 0 after --help, 2 after a line on what is refused.
    std::optional<int> parse(int argc, char** argv);
    bool given(const std::string& flag) const;  // be it as an empty text
    static int refuse(const std::string& why);  // prints that line; returns 2

private:
    struct App;
    std::unique_ptr<App> app_;
};

}  // namespace lookback
