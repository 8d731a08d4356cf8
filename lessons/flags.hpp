// The command line of a program that is no lesson: card, quiz, claims, train.
#pragma once
#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>
#include "lessons/terminal.hpp"

namespace lookback {

// Reads the flags. If the program is to end here, its exit code: 0 after --help, 2 after one line on what can't be
// used.
inline std::optional<int> parse_flags(CLI::App& app, int argc, char** argv) {
    try {
        app.parse(argc, argv);
        return {};
    } catch (const CLI::CallForHelp&) {
        std::cout << app.help();
        return 0;
    } catch (const CLI::ParseError& e) {
        std::cerr << terminal::printable(e.what()) << " (--help shows the flags)\n";
        return 2;
    }
}

}  // namespace lookback
