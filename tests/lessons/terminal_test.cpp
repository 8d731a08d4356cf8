#include "lessons/terminal.hpp"
#include <limits>
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
