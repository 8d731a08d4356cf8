#include "lessons/lesson.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include "lessons/terminal.hpp"
#include "lessons/tokens.hpp"

namespace lookback {

using terminal::Style;

struct Lesson::Flags {
    CLI::App app;
};

Lesson::Lesson(std::string name, std::string title) : flags_(std::make_unique<Flags>()) {
    trace_.lesson = std::move(name);
    CLI::App& app = flags_->app;
    app.description(title);
    app.name("lessons/run " + trace_.lesson.substr(0, 2));
    app.get_formatter()->column_width(34);
    option("--seed", seed_, 0, std::numeric_limits<std::int64_t>::max(), "of every random number");
    option("--quick", quick_, "exact checks only, in three seconds at most");
    option("--step", step_, "wait for the Enter key between steps");
    option("--out", out_, "folder for what the lesson writes");
    option("--trace", trace_file_, "write the trace to this file instead");
}
Lesson::~Lesson() = default;

void Lesson::option(const std::string& flag, std::string& value, const std::string& help) {
    flags_->app.add_option(flag, value, help)->type_name("TEXT")->capture_default_str();
}
void Lesson::option(const std::string& flag, double& value, const std::string& help) {
    const auto finite = [flag](const std::string& text) {
        char* rest = nullptr;
        const double number = std::strtod(text.c_str(), &rest);
        return *rest == '\0' && !text.empty() && std::isfinite(number)
                   ? std::string()
                   : "a number is wanted, not '" + terminal::printable(text) + "'";
    };
    flags_->app.add_option(flag, value, help)
        ->check(CLI::Validator(finite, ""))
        ->type_name("NUMBER")
        ->capture_default_str();
}
void Lesson::option(const std::string& flag, std::int64_t& value, std::int64_t low, std::int64_t high,
                    const std::string& help) {
    const auto within = [low, high](const std::string& text) {
        char* rest = nullptr;
        errno = 0;
        const std::int64_t number = std::strtoll(text.c_str(), &rest, 10);
        const std::string range = high == std::numeric_limits<std::int64_t>::max()
                                      ? "of " + std::to_string(low) + " or more"
                                      : "from " + std::to_string(low) + " to " + std::to_string(high);
        return *rest == '\0' && !text.empty() && !errno && number >= low && number <= high
                   ? std::string()
                   : "a whole number " + range + " is wanted, not '" + terminal::printable(text) + "'";
    };
    flags_->app.add_option(flag, value, help)->check(CLI::Validator(within, ""))->type_name("N")->capture_default_str();
}
void Lesson::option(const std::string& flag, bool& value, const std::string& help) {
    flags_->app.add_flag(flag, value, help);
}

// One line, whatever a library or a user's text put into it.
static int refuse(const std::string& why) {
    std::fprintf(stderr, "%s\n", terminal::printable(why).c_str());
    return 2;
}

int Lesson::run(int argc, char** argv, const std::function<void()>& body) {
    try {
        flags_->app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::cout << flags_->app.help();
        return 0;
    } catch (const CLI::ParseError& e) {
        return refuse(std::string(e.what()) + " (--help shows the flags)");
    }
    try {
        const std::string title = flags_->app.get_description();
        trace_ = [&] {
            Trace begun = begin_trace(trace_.lesson, seed());
            begun.config["quick"] = quick_;
            return begun;
        }();
        line(terminal::styled(Style::heading, trace_.lesson.substr(0, 2) + "  " + title));
        body();
        close();
        const std::filesystem::path file = trace_file_.empty() ? std::filesystem::path(out_) / (trace_.lesson + ".json")
                                                               : std::filesystem::path(trace_file_);
        std::error_code error;
        if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
        write_trace(trace_, file);
        line("Trace: " + terminal::printable(file.string()));
    } catch (const std::invalid_argument& e) {
        return refuse(e.what());
    } catch (const std::out_of_range& e) {
        return refuse(e.what());
    } catch (const std::bad_alloc&) {
        return refuse("there is not enough memory for this");
    }
    return std::all_of(trace_.checks.begin(), trace_.checks.end(),
                       [](const Trace::Check& c) { return c.pass || c.kind == Trace::Kind::target; })
               ? 0
               : 1;
}

void Lesson::step(const std::string& heading) {
    if (step_ && steps_ && terminal::is_terminal()) {
        std::cout << terminal::styled(Style::dim, "  Enter goes on ") << std::flush;
        std::string ignored;
        std::getline(std::cin, ignored);
    }
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

void Lesson::line(const std::string& text) { std::cout << text << '\n' << std::flush; }

bool Lesson::check(const std::string& id, const std::string& claim, Trace::Kind kind, double measured, double theory,
                   double tolerance, const std::string& source) {
    using enum Trace::Kind;
    const bool pass = kind == eq       ? std::abs(measured - theory) <= tolerance * std::max(1.0, std::abs(theory))
                      : kind == le     ? measured <= theory + tolerance
                      : kind == ge     ? measured >= theory - tolerance
                      : kind == exact0 ? measured == 0
                                       : std::abs(measured - theory) <= tolerance;
    trace_.checks.push_back({id, claim, kind, measured, theory, tolerance, pass, source});
    return pass;
}

static std::string number(double x) {
    char out[32];
    std::snprintf(out, sizeof out, x != 0 && (std::abs(x) < 1e-3 || std::abs(x) >= 1e6) ? "%.4e" : "%.6g", x);
    return out;
}

// The last lines of every lesson: measured · theory · tolerance · verdict.
void Lesson::close() {
    static const char* const signs[] = {"=", "≤", "≥", "≈", "= 0", "~"};
    const std::size_t claim_width = std::min<std::size_t>(terminal::width(), 110) - 42;
    line();
    line(terminal::styled(Style::bold,
                          terminal::fit("Checks", claim_width) + "    measured        theory  tol    verdict"));
    for (const Trace::Check& c : trace_.checks) {
        const bool target = c.kind == Trace::Kind::target;
        char tolerance[16];
        std::snprintf(tolerance, sizeof tolerance, c.tolerance == 0 ? "0" : "%.0e", c.tolerance);
        const Style style = c.pass ? Style::good : target ? Style::dim : Style::bad;
        line(terminal::fit(c.claim, claim_width) + terminal::fit_right(number(c.measured), 12) + " " +
             terminal::fit(signs[int(c.kind)], 1) + terminal::fit_right(number(c.theory), 12) + "  " +
             terminal::fit(tolerance, 6) +
             terminal::styled(style, c.pass   ? " holds"
                                     : target ? " differs"
                                              : " FAILS"));
    }
}

}  // namespace lookback
