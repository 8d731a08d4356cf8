#include "lessons/flags.hpp"
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include "lessons/terminal.hpp"

namespace lookback {

struct Flags::App {
    CLI::App cli;
};

Flags::Flags(const std::string& command, const std::string& description) : app_(std::make_unique<App>()) {
    app_->cli.description(description);
    app_->cli.name(command);
    app_->cli.get_formatter()->column_width(34);
}
Flags::~Flags() = default;

void Flags::add(const std::string& flag, std::string& value, const std::string& help, const std::string& type) {
    app_->cli.add_option(flag, value, help)->type_name(type)->capture_default_str();
}
void Flags::add(const std::string& flag, double& value, const std::string& help) {
    const auto finite = [](const std::string& text) {
        char* rest = nullptr;
        const bool good = std::isfinite(std::strtod(text.c_str(), &rest)) && *rest == '\0' && !text.empty();
        return good ? std::string() : "a number is wanted, not '" + terminal::printable(text) + "'";
    };
    app_->cli.add_option(flag, value, help)
        ->check(CLI::Validator(finite, ""))
        ->type_name("NUMBER")
        ->capture_default_str();
}
void Flags::add(const std::string& flag, std::int64_t& value, std::int64_t low, std::int64_t high,
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
    app_->cli.add_option(flag, value, help)->check(CLI::Validator(within, ""))->type_name("N")->capture_default_str();
}
void Flags::add(const std::string& flag, bool& value, const std::string& help) {
    app_->cli.add_flag(flag, value, help);
}
void Flags::add(const std::string& flag, std::vector<std::string>& words, int count, const std::string& help,
                const std::string& type) {
    CLI::Option* option = app_->cli.add_option(flag, words, help)->type_name(type);
    if (count > 1) option->type_size(1, count)->expected(1, 100)->allow_extra_args(false);
}
void Flags::add_seed(std::int64_t& seed) {
    add("--seed", seed, 0, std::numeric_limits<std::int64_t>::max(), "of every random number");
}
void Flags::require(const std::string& name, std::string& value, const std::vector<std::string>& choices) {
    std::string list;
    for (const std::string& choice : choices) list += (list.empty() ? "" : ", ") + choice;
    const auto known = [choices, list](const std::string& text) {
        return std::find(choices.begin(), choices.end(), text) != choices.end()
                   ? std::string()
                   : "'" + terminal::printable(text) + "' is not one of: " + list;
    };
    app_->cli.add_option(name, value, list)->required()->check(CLI::Validator(known, ""))->type_name(" ");
}
void Flags::footer(const std::string& text) { app_->cli.footer(text); }

std::optional<int> Flags::parse(int argc, char** argv) try {
    app_->cli.parse(argc, argv);
    return {};
} catch (const CLI::CallForHelp&) {
    std::cout << app_->cli.help();
    return 0;
} catch (const CLI::ParseError& e) {
    return refuse(std::string(e.what()) + " (--help shows the flags)");
}

bool Flags::given(const std::string& flag) const { return app_->cli.count(flag) > 0; }

// One line, whatever a library or a user's text put into it.
int Flags::refuse(const std::string& why) {
    std::fprintf(stderr, "%s\n", terminal::printable(why).c_str());
    return 2;
}

}  // namespace lookback
