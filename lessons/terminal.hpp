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

std::string number(double x);                      // six digits, short: 0.25, 1.2500e-07; NaN is "–"
std::string number(double x, const char* format);  // as printf has it: number(x, "× %.4f")

// Columns as wide as they must be: the first to the left, the others to the right. The header is the first row.
std::string table(const std::vector<std::vector<std::string>>& rows);

// Curves over one x axis, a letter each; the y axis is labelled at round numbers. On a logarithmic axis zeros and
// denormal remains are left out. A curve without x stands at 1, 2, 3 …
struct Curve {
    char letter;
    std::string name;
    std::vector<double> y, x = {};
};
struct Axis {
    std::string label;
    bool log = false;
};
std::string chart(const std::vector<Curve>& curves, const Axis& x, const Axis& y, std::size_t rows = 17);
std::string log_chart(const std::vector<Curve>& curves, const std::string& x_label, const std::string& y_label,
                      std::size_t columns, std::size_t rows);

// Values from 0 to their largest as shades, a row each: " ·░▒▓█". Row-major, (rows.size(), columns.size()).
std::string heat_map(const std::vector<double>& values, const std::vector<std::string>& rows,
                     const std::vector<std::string>& columns);

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
