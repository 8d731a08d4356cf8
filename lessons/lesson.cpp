#include "lessons/lesson.hpp"
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include "lessons/measure.hpp"
#include "lessons/report.hpp"
#include "lessons/terminal.hpp"
#include "lessons/tokens.hpp"

namespace lookback {

using terminal::Style;

static std::string command(const std::string& lesson) { return "lessons/run " + lesson.substr(0, 2); }

Lesson::~Lesson() = default;  // here, as it is long: each lesson would compile the parts of a trace again

Lesson::Lesson(std::string name, std::string title) : title_(std::move(title)), flags_(command(name), title_) {
    trace_.lesson = std::move(name);
    flags_.add_seed(seed_);
    flags_.add("--quick", quick_, "exact checks only, in three seconds at most");
    flags_.add("--step", step_, "wait for the Enter key between steps");
    flags_.add("--out", out_, "folder for what the lesson writes", "DIR");
    flags_.add("--trace", trace_file_, "write the trace to this file instead", "FILE");
    flags_.add("--seeds", seeds_, 1, 100, "run so many seeds; checks show the median");
    flags_.add("--predict", predictions_given_, 1, "your guess, before the measurement", "NAME=NUMBER");
    flags_.add("--answer", answers_given_, 2, "check your answer to an exercise", "NAME=NUMBER");
    flags_.add("--break", broken_, "put a fault in, and see who notices", "SWITCH");
    damage("measured", "each measurement misses its theory");
}

void Lesson::prediction(const std::string& name, const std::string& question) {
    predictions_.push_back({name, question});
}
void Lesson::exercise(const std::string& name, const std::string& question, std::function<double()> answer,
                      double tolerance, const std::string& hint) {
    exercises_.push_back({name, question, hint, std::move(answer), tolerance});
}
void Lesson::damage(const std::string& name, const std::string& what) { damages_.push_back({name, what}); }

// What a learner says: a number, or one by another, 3/4.
static double guessed_number(const std::string& text) {
    const auto parsed = [](const std::string& part) {  // NaN if it is no number, or not all of it
        char* rest = nullptr;
        const double number = std::strtod(part.c_str(), &rest);
        return part.empty() || *rest != '\0' ? std::nan("") : number;
    };
    const std::size_t slash = text.find('/');
    const double number =
        slash == std::string::npos ? parsed(text) : parsed(text.substr(0, slash)) / parsed(text.substr(slash + 1));
    if (!std::isfinite(number)) throw std::invalid_argument("a number is wanted, 0.75 or 3/4, not '" + text + "'");
    return number;
}

// The one of that name; if there is none, the error lists those there are.
template <class T> static const T& named(const std::vector<T>& all, const std::string& name, const std::string& flag) {
    std::string known;
    for (const T& one : all) {
        if (one.name == name) return one;
        known += (known.empty() ? "" : ", ") + one.name;
    }
    throw std::invalid_argument(flag + ": '" + name +
                                "' is not one of: " + (known.empty() ? "(this lesson has none)" : known));
}

// NAME=NUMBER
static std::pair<std::string, double> read_guess(const std::string& flag, const std::string& given) {
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos) throw std::invalid_argument(flag + ": NAME=NUMBER is wanted, not '" + given + "'");
    return {given.substr(0, equals), guessed_number(given.substr(equals + 1))};
}

// What the flags can't know by themselves: the names that this lesson declared.
void Lesson::read_guesses() {
    for (const std::string& given : predictions_given_) {
        const auto [name, guess] = read_guess("--predict", given);
        named(predictions_, name, "--predict");
        guesses_[name] = guess;
    }
    for (std::size_t i = 0; i < answers_given_.size(); i += 2) {  // NAME NUMBER, or NAME=NUMBER and an empty word
        const std::string &first = answers_given_[i], &second = answers_given_[i + 1];
        answers_.push_back(read_guess("--answer", second.empty() ? first : first + "=" + second));
        named(exercises_, answers_.back().first, "--answer");
    }
    if (!broken_.empty()) named(damages_, broken_, "--break");
    if (seed_ > std::numeric_limits<std::int64_t>::max() - seeds_)
        throw std::invalid_argument("--seed: so large a seed has no others after it");
}

// Every answer that was given: 0 if all of them are right.
int Lesson::grade() {
    int code = 0;
    for (const auto& [name, given] : answers_) {
        const Exercise& e = named(exercises_, name, "--answer");
        const double wanted = e.answer(), error = std::abs(given - wanted);
        // Whoever rounds to three digits has understood; where whole numbers count, the tolerance is 0.
        if (error <= e.tolerance || (e.tolerance > 0 && error <= 0.005 * std::abs(wanted))) {
            say(terminal::styled(Style::good, "Right: ") + e.question + " " + terminal::number(wanted));
            continue;
        }
        say(terminal::styled(Style::bad, "Not yet: ") + e.question);
        const bool close = error <= 0.02 * std::abs(wanted);
        say(close ? "Hint: that is close; more digits, or a whole number, are wanted." : "Hint: " + e.hint);
        code = 1;
    }
    return code;
}

// Below the flags in the help: what this lesson alone has.
std::string Lesson::footer() const {
    std::string text = "“The course” is the text “Attention Fundamentals”: lessons/README.md says more.", own;
    const auto list = [&](const std::string& flag, const auto& all) {
        for (const auto& one : all) own += "\n" + terminal::fit("  " + flag + " " + one.name, 34) + one.question;
    };
    list("--predict", predictions_);
    list("--answer", exercises_);
    list("--break", damages_);
    return own.empty() ? text : text + "\n\nThis lesson's own:" + own;
}

static bool passes(const Trace::Check& c) { return c.pass || c.kind == Trace::Kind::target; }

int Lesson::run(int argc, char** argv, const std::function<void()>& body) {
    flags_.footer(footer());
    if (const std::optional<int> code = flags_.parse(argc, argv)) return *code;
    try {
        read_guesses();
        if (!answers_.empty()) return grade();
    } catch (const std::invalid_argument& e) {
        return Flags::refuse(std::string(e.what()) + " (--help shows the flags)");
    }
    try {
        const std::filesystem::path file = trace_file();  // first: what can't be written should not be computed
        line(terminal::styled(Style::heading, trace_.lesson.substr(0, 2) + "  " + title_));
        run_seeds(body);
        close();
        write(file);
        if (!std::cout.flush()) return Flags::refuse("standard output can't be written");
    } catch (const std::invalid_argument& e) {
        return Flags::refuse(e.what());
    } catch (const std::out_of_range& e) {
        return Flags::refuse(e.what());
    } catch (const std::bad_alloc&) {
        return Flags::refuse("there is not enough memory for this");
    }
    return std::all_of(trace_.checks.begin(), trace_.checks.end(), passes) ? 0 : 1;
}

static bool holds(Trace::Kind kind, const Trace::Check& c) {
    using enum Trace::Kind;
    const double error = std::abs(c.measured - c.theory);
    return kind == eq       ? error <= c.tolerance * std::max(1.0, std::abs(c.theory))
           : kind == le     ? c.measured <= c.theory + c.tolerance
           : kind == ge     ? c.measured >= c.theory - c.tolerance
           : kind == exact0 ? c.measured == 0
                            : error <= c.tolerance;
}

// The body once a seed. The first run is the one shown and traced; the others only add to its checks.
void Lesson::run_seeds(const std::function<void()>& body) {
    const auto begin = [&] {
        trace_ = begin_trace(trace_.lesson, seed());
        trace_.config["title"] = title_;
        trace_.config["quick"] = quick_;
        if (!broken_.empty()) trace_.config["break"] = broken_;
        rules_.clear();
        steps_ = 0;
    };
    begin();
    body();
    if (seeds_ == 1) return;

    Trace first = trace_;
    const std::vector<Rule> rules = rules_;
    std::vector<std::vector<double>> measured;
    for (const Trace::Check& c : first.checks) measured.push_back({c.measured});
    const std::int64_t first_seed = seed_;
    terminal::Progress progress("Other seeds");
    for (std::int64_t k = 1; k < seeds_; ++k) {
        progress.at(double(k) / double(seeds_));
        muted_ = true;
        seed_ = first_seed + k;
        begin();
        body();
        muted_ = false;
        for (std::size_t i = 0; i < std::min(measured.size(), trace_.checks.size()); ++i) {
            const Trace::Check& c = trace_.checks[i];
            first.checks[i].pass = first.checks[i].pass && passes(c);
            measured[i].push_back(c.measured);
        }
    }
    seed_ = first_seed;
    trace_ = std::move(first);
    rules_ = rules;
    trace_.config["seeds"] = seeds_;
    for (std::size_t i = 0; i < measured.size(); ++i) {
        Trace::Check& c = trace_.checks[i];
        c.measured = measure::median(std::move(measured[i]));
        c.pass = holds(rules[i].kind, c) && (!rules[i].gate || c.pass);
    }
}

// Where the trace goes, in a folder that is there.
std::filesystem::path Lesson::trace_file() const {
    namespace fs = std::filesystem;
    const fs::path file = trace_file_.empty() ? fs::path(out_) / (trace_.lesson + ".json") : fs::path(trace_file_);
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    std::error_code error;
    fs::create_directories(folder, error);
    if (error || access(folder.c_str(), W_OK) != 0)
        throw std::invalid_argument("no trace can be written into " + folder.string());
    return file;
}

void Lesson::write(const std::filesystem::path& file) {
    write_trace(trace_, file);
    line("Trace: " + terminal::printable(file.string()));
    if (!std::filesystem::is_regular_file(file) || file.extension() == ".html") return;  // no place beside it
    const std::filesystem::path report = std::filesystem::path(file).replace_extension(".html");
    write_report(trace_, report);
    line("Report: " + terminal::printable(report.string()));
}

// What is typed, if --step is there to wait for it.
std::string Lesson::wait(const std::string& what) {
    std::string typed;
    if (!step_ || muted_ || !terminal::is_terminal()) return typed;
    std::cout << terminal::styled(Style::dim, "  " + what + " ") << std::flush;
    std::getline(std::cin, typed);
    return typed;
}

void Lesson::step(const std::string& heading) {
    if (steps_) wait("Enter goes on");
    line();
    line(terminal::styled(Style::bold, std::to_string(++steps_) + ". " + heading));
}

void Lesson::say(const std::string& text) {
    const std::size_t width = std::min<std::size_t>(terminal::width(), 100);
    std::string row;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t space = std::min(text.find(' ', at), text.size());
        const std::string word = text.substr(at, space - at);
        if (!row.empty() && terminal::columns(row) + 1 + terminal::columns(word) > width) {
            line(row);
            row.clear();
        }
        row += (row.empty() ? "" : " ") + word;
        at = space + 1;
    }
    line(row);
}

void Lesson::line(const std::string& text) {
    if (!muted_) std::cout << text << '\n' << std::flush;
}

void Lesson::predict(const std::string& name) {
    const Question& q = named(predictions_, name, "--predict");
    const auto guess = guesses_.find(name);
    if (guess != guesses_.end())
        return say(terminal::styled(Style::bold, "Your guess: ") + terminal::number(guess->second) + ". " + q.question);
    say(terminal::styled(Style::bold, "Before you look: ") + q.question + " (" + command(trace_.lesson) +
        " --predict " + name + "=NUMBER)");
    try {
        const std::string typed = wait("Your guess, a number (Enter goes on without one)");
        if (!typed.empty()) guesses_[name] = guessed_number(typed);
    } catch (const std::invalid_argument& e) {
        say(e.what());
    }
}

void Lesson::reveal(const std::string& name, double measured, double theory) {
    const auto guess = guesses_.find(name);
    const bool guessed = guess != guesses_.end();
    const double error = guessed ? std::abs(guess->second - measured) : 0;
    std::string off;
    if (guessed && error > 0 && measured != 0)
        off = "; your guess is off by " + (error < std::abs(measured)
                                               ? terminal::number(100 * error / std::abs(measured), "%.2g") + " %"
                                               : terminal::number(error, "%.2g"));
    say(terminal::styled(Style::bold, name + ": ") +
        (guessed ? "you guessed " + terminal::number(guess->second) + ", " : "") + "measured " +
        terminal::number(measured) + ", theory " + terminal::number(theory) + off);
    if (guessed) trace_.predictions.push_back({name, guess->second, measured});
}

// A number that a check of this kind must refuse.
static double missing(Trace::Kind kind, double theory, double tolerance) {
    const double miss = std::max(0.1, 2 * tolerance) * std::max(1.0, std::abs(theory));
    return kind == Trace::Kind::ge ? theory - miss : theory + miss;
}

bool Lesson::check(const std::string& id, const std::string& claim, Rule rule, double measured, double theory,
                   double tolerance, const std::string& source) {
    const Trace::Kind kind = rule.gate ? rule.kind : Trace::Kind::target;
    if (broken("measured")) measured = missing(rule.kind, theory, tolerance);
    Trace::Check c{id, claim, kind, measured, theory, tolerance, false, source};
    c.pass = holds(rule.kind, c);
    trace_.checks.push_back(c);
    rules_.push_back(rule);
    return c.pass;
}

// The last lines of every lesson: measured · theory · tolerance · verdict.
void Lesson::close() {
    static const char *const signs[] = {"=", "≤", "≥", "≈", "=", "~"}, *const target_signs[] = {"~", "≲", "≳",
                                                                                                "~", "~", "~"};
    const std::size_t claim_width = std::min<std::size_t>(terminal::width(), 110) - 42;
    for (const Exercise& e : exercises_) {
        line();
        say(terminal::styled(Style::bold, "Exercise. ") + e.question + " (" + command(trace_.lesson) + " --answer " +
            e.name + "=NUMBER)");
    }
    line();
    const std::string measured = seeds_ > 1 ? "      median" : "    measured";
    line(terminal::styled(Style::bold,
                          terminal::fit("Checks", claim_width) + measured + "        theory  tol    verdict"));
    std::vector<const Trace::Check*> failing;
    for (std::size_t i = 0; i < trace_.checks.size(); ++i) {
        const Trace::Check& c = trace_.checks[i];
        const bool target = c.kind == Trace::Kind::target;
        std::string tolerance = terminal::number(c.tolerance, c.tolerance == 0 ? "%.0f" : "%.0e");
        if (std::stod(tolerance) != c.tolerance) tolerance = terminal::number(c.tolerance, "%.2g");
        const Style style = c.pass ? Style::good : target ? Style::dim : Style::bad;
        line(terminal::fit(c.claim, claim_width) + terminal::fit_right(terminal::number(c.measured), 12) + " " +
             terminal::fit((target ? target_signs : signs)[int(rules_[i].kind)], 1) +
             terminal::fit_right(terminal::number(c.theory), 12) + "  " + terminal::fit(tolerance, 6) +
             terminal::styled(style, c.pass   ? " holds"
                                     : target ? " differs"
                                              : " FAILS"));
        if (!passes(c)) failing.push_back(&c);
    }
    line(terminal::styled(Style::dim, "= ≤ ≥ ≈ must hold, within tol; ~ ≲ ≳ are expected of typical draws only"));
    if (quick_asked_ && quick_)
        line(terminal::styled(Style::dim, "--quick left out what trains, or measures for long"));
    if (broken_.empty()) return;
    say(terminal::styled(Style::bad, "Broken on purpose") + ": " + named(damages_, broken_, "--break").question + ". " +
        (failing.empty() ? "No check noticed." : "Noticed by:"));
    for (const Trace::Check* c : failing) line("  " + terminal::fit(c->id, 24) + " " + c->claim);
}

}  // namespace lookback
