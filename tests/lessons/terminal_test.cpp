#include "lessons/terminal.hpp"
#include <limits>
#include <sstream>
#include "tests/support/catch.hpp"

using namespace lookback::terminal;
using lookback::test::contains;

TEST_CASE("a text takes exactly the columns it is given, in any script") {
    CHECK(fit("word", 6) == "word  ");
    CHECK(fit_right("word", 6) == "  word");
    CHECK(fit("a long word", 6) == "a lon…");
    CHECK(columns("注意力") == 6);
    CHECK(fit("注意力", 5) == "注意…");
    CHECK(fit("注意力", 4) == "注… ");  // half a wide character is not drawn
    CHECK(columns("e\u0301") == 1);
    CHECK(fit("", 3) == "   ");
    for (const char* text : {"attention", "注意力机制", "انتباه", "👩‍🔬 looks",
                             "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301", "\x1b[31mred"})
        for (std::size_t n = 1; n < 12; ++n) CHECK(columns(fit(text, n)) == n);
}

TEST_CASE("nothing that steers a terminal is printed") {
    CHECK(printable("\x1b[2Jx") == "␛[2Jx");
    CHECK(printable("a\rb\nc\td\x7f") == "a␍b␊c␉d␡");
    CHECK(printable("\u202eabc") == "�abc");  // would write from right to left
    CHECK(printable("\u0085") == "�");
    CHECK(printable("\xff\xfe") == "��");
    CHECK(printable("naïve — “words” 注意") == "naïve — “words” 注意");
}

TEST_CASE("a bar is as long as its fraction, in eighths") {
    CHECK(bar(0, 4) == "    ");
    CHECK(bar(1, 4) == "████");
    CHECK(bar(0.5, 4) == "██  ");
    CHECK(bar(0.53125, 4) == "██▏ ");
    CHECK(bar(-3, 2) == "  ");
    CHECK(bar(7, 2) == "██");
    CHECK(bar(std::numeric_limits<double>::quiet_NaN(), 2) == "  ");
}

TEST_CASE("a chart has its labels, its letters and no line wider than asked") {
    std::vector<double> falling, level;
    for (int t = 0; t < 300; ++t) falling.push_back(std::pow(10.0, -t / 10.0)), level.push_back(0.01);
    const std::string chart = log_chart({{'r', "RNN", falling}, {'A', "attention", level}}, "token t", "norm", 80, 17);
    CHECK_THAT(chart, contains("1e+0") && contains("1e-30") && contains("r  RNN") && contains("A  attention") &&
                          contains("token t"));
    std::size_t begin = 0;
    for (std::size_t end = chart.find('\n'); end != std::string::npos; begin = end + 1, end = chart.find('\n', begin))
        CHECK(columns(chart.substr(begin, end - begin)) <= 80);
    CHECK_THAT(log_chart({{'r', "RNN", {0, 0}}}, "t", "norm", 80, 9), contains("nothing above zero"));
    CHECK_THAT(log_chart({}, "t", "norm", 80, 9), contains("nothing above zero"));
    CHECK_THAT(log_chart({{'r', "RNN", {1}}}, "t", "norm", 80, 9), contains("r"));
    const double inf = std::numeric_limits<double>::infinity();
    CHECK_THAT(log_chart({{'r', "RNN", {1, inf, std::nan("")}}}, "t", "norm", 80, 9), contains("r"));
}

namespace {

// The labels of a chart's y axis, from above.
std::vector<std::string> labels(const std::string& chart) {
    std::vector<std::string> all;
    std::istringstream lines(chart);
    for (std::string line; std::getline(lines, line);)
        if (const std::size_t axis = line.find("┤"); axis != std::string::npos)
            all.push_back(line.substr(line.find_first_not_of(' '), axis - line.find_first_not_of(' ')));
    return all;
}

}  // namespace

TEST_CASE("a chart is labelled at round numbers") {
    const auto linear = [](std::vector<double> y, std::size_t rows) {
        return labels(chart({{'y', "y", std::move(y)}}, {"x"}, {"y"}, rows));
    };
    using Labels = std::vector<std::string>;
    CHECK(linear({-0.87, 0.19}, 13) == Labels{"0.2", "0", "-0.2", "-0.4", "-0.6", "-0.8", "-1"});
    CHECK(linear({0, 36}, 13) == Labels{"40", "30", "20", "10", "0"});
    CHECK(linear({0, 1}, 11) == Labels{"1", "0.8", "0.6", "0.4", "0.2", "0"});
    CHECK(linear({0, 0.3}, 7) == Labels{"0.3", "0.2", "0.1", "0"});
    CHECK(linear({3, 3}, 5) == Labels{"4", "3.5", "3"});
    const auto logarithmic = [](std::vector<double> y, std::size_t rows) {
        return labels(log_chart({{'y', "y", std::move(y)}}, "x", "y", 80, rows));
    };
    CHECK(logarithmic({1e-15, 1}, 17) ==
          Labels{"1e+0", "1e-2", "1e-4", "1e-6", "1e-8", "1e-10", "1e-12", "1e-14", "1e-16"});
    CHECK(logarithmic({2e-4, 0.5}, 13) == Labels{"1e+0", "1e-1", "1e-2", "1e-3", "1e-4"});
    CHECK(logarithmic({20, 70}, 13) == Labels{"1e+2", "5e+1", "2e+1", "1e+1"});
}
