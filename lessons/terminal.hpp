// What a lesson shows in a terminal: text that is safe and keeps its columns, bars, curves, colour where it is wanted.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace lookback::terminal {

std::size_t width();  // columns: of $COLUMNS, else of the terminal, else 80; never below 60
bool is_terminal();   // is standard output one
bool colour();        // a terminal, and $NO_COLOR is not set

// Control and invisible characters as visible signs, so that no text of a user's can steer the terminal.
std::string printable(std::string_view utf8);
// Columns that a printable text takes: wide characters (Chinese, emoji) take two, combining marks none.
std::size_t columns(std::string_view utf8);
// printable(), cut with "…" or filled with spaces to exactly so many columns.
std::string fit(std::string_view utf8, std::size_t columns);
std::string fit_right(std::string_view utf8, std::size_t columns);  // filled on the left: numbers
std::string repeat(std::string_view part, std::size_t times);

// A bar of `fraction` (0 … 1) of so many columns, in eighths of a column, filled with spaces.
std::string bar(double fraction, std::size_t columns);

enum class Style { plain, bold, dim, good, bad, heading };
std::string styled(Style style, std::string_view text);  // plain text where there is no colour

// Curves over one x axis, one letter each, y = log10 of the values; zeros and denormal remains are left out.
struct Curve {
    char letter;
    std::string name;
    std::vector<double> y;
};
std::string log_chart(const std::vector<Curve>& curves, const std::string& x_label, const std::string& y_label,
                      std::size_t columns, std::size_t rows);

// A line that says how far long work is: drawn over itself on a terminal, nothing elsewhere.
class Progress {
public:
    explicit Progress(std::string what) : what_(std::move(what)) {}
    ~Progress();
    void at(double fraction);

private:
    std::string what_;
    int shown_ = -1;
};

}  // namespace lookback::terminal
