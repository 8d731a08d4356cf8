// What every lesson shares: flags, steps, predictions, the exercise, the table of checks, the trace, the exit code.
//
//   int main(int argc, char** argv) {
//       Lesson lesson("02_jacobian_products", "‖J‖ bounds the gradient; ρ sets its rate");
//       lesson.prediction("slope", "ln ‖∂L/∂h_t‖ changes by how much a step?");
//       lesson.exercise("k", "first k with ‖A^k‖ < 1?", [] { … }, 0, "print ‖A^k‖ for k = 1 … 10");
//       lesson.damage("drop-tanh", "the slope of tanh is left out of each Jacobian");
//       return lesson.run(argc, argv, [&] {
//           lesson.step("…");
//           lesson.predict("slope");  …measure…  lesson.reveal("slope", measured, theory);
//           lesson.check("02.slope", …, lesson.broken("drop-tanh") ? … : …);
//       });
//   }
//
// Exit codes: 0 all checks hold (or the answer is right), 1 a check fails (or it is not), 2 the user's input can't be
// used: one line on standard error says why.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>
#include "engine/trace.hpp"
#include "lessons/flags.hpp"

namespace lookback {

class Lesson {
public:
    Lesson(std::string name, std::string title);
    ~Lesson();

    Flags& flags() { return flags_; }  // for those that this lesson alone has

    // To be declared before run(), so that --help shows them and what is not declared is refused:
    // a number that the learner may commit to by --predict NAME=NUMBER,
    void prediction(const std::string& name, const std::string& question);
    // a question whose answer --answer NAME=NUMBER checks (3/4 is a number, too): right within the tolerance, or else
    // the hint,
    void exercise(const std::string& name, const std::string& question, std::function<double()> answer,
                  double tolerance, const std::string& hint);
    // a fault that --break SWITCH puts into the lesson's own code, to see which checks notice. (All have `measured`,
    // under which every check must fail.)
    void damage(const std::string& name, const std::string& what);

    // Reads the flags, runs the body, prints the closing table, writes the trace. Returns the exit code.
    int run(int argc, char** argv, const std::function<void()>& body);

    void step(const std::string& heading);  // begins a part; with --step, waits for the Enter key first
    void say(const std::string& text);      // a paragraph, broken at the terminal's width
    void line(const std::string& text = {});

    void predict(const std::string& name);  // before the measurement: the question, and the guess if there is one
    void reveal(const std::string& name, double measured, double theory);  // after it: all three side by side
    bool broken(const std::string& name) const { return broken_ == name; }

    // A claim, by two independent routes. `kind` says what must hold of measured m and theory t:
    //   eq |m − t| ≤ tolerance · max(1, |t|)   le m ≤ t + tolerance   ge m ≥ t − tolerance   slope |m − t| ≤ tolerance
    //   exact0 m = 0   target |m − t| ≤ tolerance too, but is reported and never fails
    // With --seeds N, measured is the median over seeds.
    struct Rule {
        Trace::Kind kind;
        bool gate;
        Rule(Trace::Kind k, bool fails = true) : kind(k), gate(fails && k != Trace::Kind::target) {}
    };
    bool check(const std::string& id, const std::string& claim, Rule rule, double measured, double theory,
               double tolerance, const std::string& source = "");

    // For what holds of typical draws only: such a check is a gate on the lesson's own seed, and a target on another,
    // where what must hold of m and t is the same: an "at most" stays one. (The trace knows it as a target.)
    Rule typical(Trace::Kind kind) const { return {kind, seed_ == own_seed}; }

    bool quick() const { return quick_asked_ = true, quick_; }  // for parts that --quick leaves out
    std::uint64_t seed() const { return std::uint64_t(seed_); }
    Trace& trace() { return trace_; }

private:
    static constexpr std::int64_t own_seed = 1;
    struct Exercise {
        std::string name, question, hint;
        std::function<double()> answer;
        double tolerance;
    };
    struct Question {
        std::string name, question;
    };
    void read_guesses();
    int grade();
    void run_seeds(const std::function<void()>& body);
    std::string wait(const std::string& what);
    void close();
    std::filesystem::path trace_file() const;
    void write(const std::filesystem::path& file);
    std::string footer() const;

    std::string title_;
    Flags flags_;
    Trace trace_;
    std::vector<Rule> rules_;  // of its checks
    bool quick_ = false, step_ = false, muted_ = false;
    std::int64_t seed_ = own_seed, seeds_ = 1;
    mutable bool quick_asked_ = false;
    int steps_ = 0;
    std::string out_ = "lookback-out", trace_file_, broken_;
    std::vector<std::string> predictions_given_, answers_given_;
    std::vector<Question> predictions_, damages_;
    std::vector<Exercise> exercises_;
    std::map<std::string, double> guesses_;
    std::vector<std::pair<std::string, double>> answers_;
};

}  // namespace lookback
