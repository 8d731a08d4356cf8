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

std::string number(double x, const char* format) {
    char out[64];
    std::snprintf(out, sizeof out, format, x);
    return std::isnan(x) ? "–" : out;
}
std::string number(double x) {
    return number(x, x != 0 && (std::abs(x) < 1e-3 || std::abs(x) >= 1e6) ? "%.4e" : "%.6g");
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(printable(row[i])));
    }
    std::string out;
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i)
            out += i ? "  " + fit_right(row[i], widths[i]) : "  " + fit(row[i], widths[i]);
        out += '\n';
    }
    return out;
}

namespace {

// One axis of a chart: from data to a place on it, and the label of a place.
struct Scale {
    bool log;
    double low = std::numeric_limits<double>::infinity(), high = -low;

    double of(double v) const {
        if (log) return v >= std::numeric_limits<double>::min() && std::isfinite(v) ? std::log10(v) : std::nan("");
        return std::isfinite(v) ? v : std::nan("");
    }
    void cover(double v) {
        if (const double at = of(v); !std::isnan(at)) low = std::min(low, at), high = std::max(high, at);
    }
    // Outwards to round numbers: multiples of the least of 1, 2, 5 × 10^k (of decades, on a logarithmic axis: never
    // part of one) with which at most so many intervals cover the range. Never a range of nothing. Returns these
    // numbers.
    std::vector<double> round(std::size_t most) {
        if (high == low && !log) high = low + 1;
        const double widest = std::max((high - low) / double(most), log ? 1.0 : 0.0);
        double ten = std::pow(10, std::floor(std::log10(std::max(widest, std::numeric_limits<double>::min()))));
        for (;; ten *= 10)
            for (const double step : {ten, 2 * ten, 5 * ten}) {
                const double slack = 1e-9;  // 0.3 is no more than 3 × 0.1
                const double first = std::floor(low / step + slack),
                             last = std::max(std::ceil(high / step - slack), first + 1);
                if (last - first > double(most)) continue;
                std::vector<double> all;
                for (double k = first; k <= last; ++k) all.push_back(k * step);
                low = all.front(), high = all.back();
                if (log && all.size() == 2 && most >= 3)
                    all.insert(all.begin() + 1, {low + std::log10(2), low + std::log10(5)});
                return all;
            }
    }
    std::size_t place(double at, std::size_t places) const {
        return std::size_t(std::lround((at - low) / (high - low) * double(places - 1)));
    }
    std::string label(double at) const {
        if (log) {  // 1e-3
            const double decade = std::floor(at + 1e-9);
            return number(std::pow(10, at - decade), "%.0f") + number(decade + 0.0, "e%+.0f");  // no "-0"
        }
        return number(std::abs(at) < (high - low) * 1e-9 ? 0.0 : at, "%.4g");
    }
};

}  // namespace

static std::string draw(const std::vector<Curve>& curves, const Axis& x_axis, const Axis& y_axis, std::size_t width,
                        std::size_t rows) {
    Scale x{x_axis.log}, y{y_axis.log};
    std::size_t points = 0;
    const auto x_of = [](const Curve& c, std::size_t i) { return c.x.empty() ? double(i + 1) : c.x[i]; };
    for (const Curve& curve : curves) {
        points = std::max(points, curve.y.size());
        for (std::size_t i = 0; i < curve.y.size(); ++i) x.cover(x_of(curve, i)), y.cover(curve.y[i]);
    }
    if (points == 0 || y.low > y.high || x.low > x.high)
        return y_axis.log ? "  (nothing above zero to draw)\n" : "  (nothing to draw)\n";
    std::vector<std::string> labels(rows);  // of each row, from above
    for (const double v : y.round((rows - 1) / 2)) labels[rows - 1 - y.place(v, rows)] = y.label(v);
    if (x.high == x.low) x.high = x.low + 1;

    const std::size_t margin = 8, inside = std::min(width - margin - 1, std::max<std::size_t>(points, 24));
    struct Place {
        std::string letters;
        std::size_t points = std::size_t(-1);  // of their curves
    };
    std::vector<std::vector<Place>> grid(rows, std::vector<Place>(inside));
    for (const Curve& curve : curves)
        for (std::size_t i = 0; i < curve.y.size(); ++i) {
            const double at = x.of(x_of(curve, i)), v = y.of(curve.y[i]);
            if (std::isnan(at) || std::isnan(v)) continue;
            Place& here = grid[rows - 1 - y.place(v, rows)][x.place(at, inside)];
            if (curve.y.size() < here.points) here = {"", curve.y.size()};  // single marks lie upon lines
            if (curve.y.size() == here.points && here.letters.find(curve.letter) == std::string::npos)
                here.letters += curve.letter;
        }
    std::string out = "  " + y_axis.label + "\n";
    for (std::size_t r = 0; r < rows; ++r) {
        out += fit_right(labels[r], margin - 1) + (labels[r].empty() ? "│" : "┤");
        for (std::size_t c = 0; c < inside; ++c) {  // where curves lie on each other, their letters take turns
            const std::string& here = grid[r][c].letters;
            out += here.empty() ? ' ' : here[c % here.size()];
        }
        out += '\n';
    }
    const auto end = [&](double at) { return x.log ? number(std::pow(10, at), "%.4g") : number(at, "%.6g"); };
    const std::string first = end(x.low), last = end(x.high);
    out += std::string(margin - 1, ' ') + "└" + repeat("─", inside) + "\n" + std::string(margin, ' ') + first +
           fit_right(last, inside - std::min(inside, columns(first))) + "\n" + std::string(margin, ' ') + x_axis.label +
           (x_axis.log ? " (logarithmic)" : "") + "\n";
    for (const Curve& curve : curves) out += std::string(margin, ' ') + curve.letter + "  " + curve.name + "\n";
    return out;
}

std::string chart(const std::vector<Curve>& curves, const Axis& x, const Axis& y, std::size_t rows) {
    return draw(curves, x, y, std::min<std::size_t>(width(), 100), rows);
}
std::string log_chart(const std::vector<Curve>& curves, const std::string& x_label, const std::string& y_label,
                      std::size_t width, std::size_t rows) {
    return draw(curves, {x_label}, {y_label, true}, width, rows);
}

std::string heat_map(const std::vector<double>& values, const std::vector<std::string>& rows,
                     const std::vector<std::string>& columns) {
    static const char* const shades[] = {"  ", "··", "░░", "▒▒", "▓▓", "██"};
    double high = 0;
    for (double v : values)
        if (std::isfinite(v)) high = std::max(high, v);
    std::size_t margin = 0;
    for (const std::string& row : rows)
        margin = std::max(margin, std::min<std::size_t>(terminal::columns(printable(row)), 16));
    const std::size_t most = (std::min<std::size_t>(width(), 100) - margin - 4) / 2,
                      shown = std::min(most, columns.size());
    std::string out = "  " + std::string(margin, ' ') + " ";
    for (std::size_t c = 0; c < shown; ++c) out += fit(columns[c], 2);
    out += shown < columns.size() ? "…\n" : "\n";
    for (std::size_t r = 0; r < rows.size(); ++r) {
        out += "  " + fit_right(rows[r], margin) + " ";
        for (std::size_t c = 0; c < shown; ++c) {
            const double v = values[r * columns.size() + c];
            out += std::isnan(v) ? "??" : shades[v <= 0 || high == 0 ? 0 : std::min(5, 1 + int(v / high * 5))];
        }
        out += '\n';
    }
    return out + "  darkest: " + number(high) + "\n";
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
