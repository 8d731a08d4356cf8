// What every lesson shares: flags, steps, the closing table of checks, the trace, the exit code.
//
//   int main(int argc, char** argv) {
//       Lesson lesson("01_tape_and_chain", "A gradient is a product of local slopes");
//       double w = 0.9;
//       lesson.option("--weight", w, "the recurrent weight");
//       return lesson.run(argc, argv, [&] { … lesson.check(…); });
//   }
//
// Exit codes: 0 all checks hold, 1 a check fails, 2 the user's input can't be used (one line on standard error says
// why).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include "engine/trace.hpp"

namespace lookback {

class Lesson {
public:
    Lesson(std::string name, std::string title);
    ~Lesson();

    void option(const std::string& flag, std::string& value, const std::string& help);
    void option(const std::string& flag, double& value, const std::string& help);
    void option(const std::string& flag, std::int64_t& value, std::int64_t low, std::int64_t high,
                const std::string& help);
    void option(const std::string& flag, bool& value, const std::string& help);

    // Reads the flags, runs the body, prints the closing table, writes the trace. Returns the exit code.
    int run(int argc, char** argv, const std::function<void()>& body);

    void step(const std::string& heading);  // begins a part; with --step, waits for the Enter key first
    void say(const std::string& text);      // a paragraph, broken at the terminal's width
    void line(const std::string& text = {});

    // A claim, by two independent routes. `kind` says what must hold of measured m and theory t (see CheckKind in
    // trace.hpp); a target is reported and never fails.
    bool check(const std::string& id, const std::string& claim, Trace::Kind kind, double measured, double theory,
               double tolerance, const std::string& source = "");

    bool quick() const { return quick_; }
    std::uint64_t seed() const { return std::uint64_t(seed_); }
    Trace& trace() { return trace_; }

private:
    void close();
    struct Flags;
    std::unique_ptr<Flags> flags_;
    Trace trace_;
    bool quick_ = false, step_ = false;
    std::int64_t seed_ = 1;
    int steps_ = 0;
    std::string out_ = "lookback-out", trace_file_;
};

}  // namespace lookback
