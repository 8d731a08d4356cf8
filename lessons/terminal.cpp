#include "lessons/terminal.hpp"
#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include "lessons/tokens.hpp"

namespace lookback::terminal {

std::size_t width() {
    long columns = 0;
    winsize size{};
    if (const char* set = std::getenv("COLUMNS")) columns = std::atol(set);
    if (columns <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
    return columns <= 0 ? 80 : std::size_t(std::clamp(columns, 60L, 200L));
}
bool is_terminal() { return isatty(STDOUT_FILENO); }
bool colour() {
    const char* no = std::getenv("NO_COLOR");
    return is_terminal() && !(no && *no);
}

std::string printable(std::string_view utf8) {
    std::string out;
    for (std::size_t i = 0; i < utf8.size();) {
        const CodePoint c = decode(utf8, i);
        if (c.bytes && c.value < 0x20)
            append_utf8(out, 0x2400 + c.value);  // the pictures of the control characters
        else if (c.bytes && c.value == 0x7f)
            append_utf8(out, 0x2421);
        else if (c.bytes == 0 || is_unsafe(c.value))
            append_utf8(out, 0xfffd);
        else
            out += utf8.substr(i, c.bytes);
        i += std::max<std::size_t>(c.bytes, 1);
    }
    return out;
}

std::size_t columns(std::string_view utf8) {
    std::size_t sum = 0;
    for (const CodePoint c : code_points(utf8)) sum += column_count(c.value);
    return sum;
}

std::string fit(std::string_view utf8, std::size_t wanted) {
    const std::string text = printable(utf8);
    if (columns(text) <= wanted) return text + std::string(wanted - columns(text), ' ');
    std::string out;
    std::size_t used = 0;
    for (const CodePoint c : code_points(text)) {
        if (used + column_count(c.value) + 1 > wanted) break;
        used += column_count(c.value);
        out += text.substr(c.at, c.bytes);
    }
    return out + "…" + std::string(wanted - used - 1, ' ');
}

std::string fit_right(std::string_view utf8, std::size_t wanted) {
    const std::string text = printable(utf8);
    const std::size_t used = columns(text);
    return used >= wanted ? fit(text, wanted) : std::string(wanted - used, ' ') + text;
}

std::string repeat(std::string_view part, std::size_t times) {
    std::string out;
    for (std::size_t i = 0; i < times; ++i) out += part;
    return out;
}

std::string bar(double fraction, std::size_t width) {
    static const char* const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double part = fraction > 0 ? std::min(fraction, 1.0) : 0;  // NaN: none
    const auto filled = std::size_t(std::lround(part * double(width) * 8));
    const std::size_t used = filled / 8 + (filled % 8 != 0);
    return repeat("█", filled / 8) + eighths[filled % 8] + std::string(width - used, ' ');
}

std::string styled(Style style, std::string_view text) {
    static const char* const codes[] = {"", "\033[1m", "\033[2m", "\033[32m", "\033[1;31m", "\033[1;36m"};
    if (!colour() || style == Style::plain) return std::string(text);
    return codes[int(style)] + std::string(text) + "\033[0m";
}

std::string log_chart(const std::vector<Curve>& curves, const std::string& x_label, const std::string& y_label,
                      std::size_t width, std::size_t rows) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    std::size_t points = 0;
    const auto log_of = [](double y) { return y >= std::numeric_limits<double>::min() ? std::log10(y) : std::nan(""); };
    for (const Curve& curve : curves) {
        points = std::max(points, curve.y.size());
        for (double y : curve.y)
            if (const double v = log_of(y); !std::isnan(v)) low = std::min(low, v), high = std::max(high, v);
    }
    if (points == 0 || low > high) return "  (nothing above zero to draw)\n";
    low = std::floor(low), high = std::max(std::ceil(high), low + 1);

    const std::size_t margin = 8, inside = std::min(width - margin - 1, std::max<std::size_t>(points, 24));
    std::vector<std::string> grid(rows, std::string(inside, ' '));
    for (const Curve& curve : curves)
        for (std::size_t i = 0; i < curve.y.size(); ++i) {
            const double v = log_of(curve.y[i]);
            if (std::isnan(v)) continue;
            const std::size_t column = points == 1 ? 0 : i * (inside - 1) / (points - 1);
            const auto row = std::size_t(std::lround((high - v) / (high - low) * double(rows - 1)));
            grid[row][column] = curve.letter;
        }
    std::string out = "  " + y_label + "\n";
    for (std::size_t r = 0; r < rows; ++r) {
        const double v = std::round(high - (high - low) * double(r) / double(rows - 1)) + 0.0;  // + 0: no "-0"
        const bool labelled = r % 4 == 0 || r + 1 == rows;
        char label[16];
        std::snprintf(label, sizeof label, "1e%+.0f", v);
        out += fit_right(labelled ? label : "", margin - 1) + (labelled ? "┤" : "│") + grid[r] + "\n";
    }
    const std::string last = std::to_string(points);
    out += std::string(margin - 1, ' ') + "└" + repeat("─", inside) + "\n";
    out +=
        std::string(margin, ' ') + "1" + fit_right(last, inside - 1) + "\n" + std::string(margin, ' ') + x_label + "\n";
    for (const Curve& curve : curves) out += std::string(margin, ' ') + curve.letter + "  " + curve.name + "\n";
    return out;
}

void Progress::at(double fraction) {
    const int percent = int(fraction * 100);
    if (!isatty(STDERR_FILENO) || percent == shown_) return;
    shown_ = percent;
    std::fprintf(stderr, "\r%s %s %3d %%", what_.c_str(), bar(fraction, 24).c_str(), percent);
    std::fflush(stderr);
}
Progress::~Progress() {
    if (shown_ >= 0) std::fprintf(stderr, "\r\033[K");
}

}  // namespace lookback::terminal
