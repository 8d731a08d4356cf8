// The parts of the grader that need no process. What happens to submissions is in grade_test.sh.
#include "lessons/assignments/compare.hpp"
#include "lessons/assignments/report.hpp"
#include "lessons/assignments/strip.hpp"
#include "tests/support/catch.hpp"

using namespace lookback;
using lookback::test::contains;

TEST_CASE("a solution becomes a throw with its task's number; helpers go without a trace") {
    CHECK(strip("a\n    // BEGIN SOLUTION 2.3\n    secret();\n    // END SOLUTION\nb\n") ==
          "a\n    throw NotDone(\"2.3\");\nb\n");
    CHECK(strip("a\n\n// BEGIN SOLUTION\nhelper\n// END SOLUTION\n\nb\n") == "a\n\nb\n");
    CHECK(strip("no marks\n") == "no marks\n");
}

TEST_CASE("marks that are nested, unclosed, unopened or not alone are errors that name the line") {
    CHECK_THROWS_WITH(strip("// BEGIN SOLUTION\nx\n// BEGIN SOLUTION\n// END SOLUTION\n"), contains("line 3"));
    CHECK_THROWS_WITH(strip("a\n// BEGIN SOLUTION 1\nx\n"), contains("line 2") && contains("never closed"));
    CHECK_THROWS_WITH(strip("// END SOLUTION\n"), contains("line 1"));
    CHECK_THROWS_WITH(strip("// BEGIN SOLUTION\n// END SOLUTION\n// END SOLUTION\n"), contains("line 3"));
    CHECK_THROWS_WITH(strip("x = 1;  // BEGIN SOLUTION\n"), contains("alone"));
    CHECK_THROWS_WITH(strip("// BEGIN SOLUTION\nx = 1;  // END SOLUTION\n"), contains("alone"));
}

static std::string told(const Json& answer, const Json& expected) {
    const auto d = compare(answer, expected, 1e-9);
    return d ? d->place + " " + d->what + ": " + d->numbers : "equal";
}

TEST_CASE("the first difference has its place, both numbers and the shape") {
    const Json right = encode(Matrix{{1, 2, 3}, {4, 5, 6}});
    CHECK(told(right, right) == "equal");
    CHECK_THAT(told(encode(Matrix{{1, 2, 3}, {4, 5.5, 7}}), right),
               contains("(1,1) is wrong: 5.5, should be 5") && contains("shape (2,3), 2 of 6 wrong"));
    CHECK_THAT(told(encode(Matrix{{1, 2}, {3, 4}}), right),
               contains("wrong shape") && contains("(2,2), should be (2,3)"));
    CHECK_THAT(told(encode(Matrix{{1, std::nan(""), 3}, {4, 5, 6}}), right), contains("(0,1) is not finite"));
    CHECK_THAT(told(encode(1.0), right), contains("no array"));
    CHECK_THAT(told({{"dW", right}}, {{"dW", right}, {"db", right}}), contains("db is missing"));
    CHECK_THAT(told(Json::array({right}), Json::array({right, right})), contains("1 entries, should be 2"));
    CHECK_THAT(told({{"a", Json::array({right, encode(Matrix(2, 3))})}}, {{"a", Json::array({right, right})}}),
               contains("a[1](0,0) is wrong: 0, should be 1"));
    CHECK_THAT(told(encode(2 + 1e-8), encode(2.0)), contains("2.00000001, should be 2"));
    CHECK_THAT(told(true, false), contains("true, should be false"));
}

TEST_CASE("a tiny gradient is compared by its own size, an exact zero strictly") {
    CHECK(told(encode(Matrix{{1e-200}}), encode(Matrix{{1e-200}})) == "equal");
    CHECK(told(encode(Matrix{{0}}), encode(Matrix{{1e-200}})) != "equal");
    CHECK(told(encode(Matrix{{1e-6}}), encode(Matrix{{0}})) != "equal");
}

TEST_CASE("answers may be any JSON at all") {
    const Json expected = {{"norms", encode(std::vector<double>{1, 2})}, {"slope", 1.0}};
    for (const char* hostile : {"null", "[]", "{}", "\"x\"", "{\"norms\":{\"shape\":[2],\"data\":5},\"slope\":1}",
                                "{\"norms\":{\"shape\":[2],\"data\":[1]},\"slope\":1}",
                                "{\"norms\":{\"shape\":\"x\",\"data\":[]},\"slope\":1}",
                                "{\"norms\":{\"shape\":[2],\"data\":[1,{}]},\"slope\":1}",
                                "{\"norms\":{\"shape\":[2],\"data\":[1,2]},\"slope\":[1]}",
                                "{\"norms\":{\"shape\":[2],\"data\":[\"1\",\"2\"]},\"slope\":1}"})
        CHECK(told(Json::parse(hostile), expected) != "equal");
}

TEST_CASE("nothing of a student's reaches the terminal raw") {
    CHECK(printable("a\x1b[2Jb\tc\n") == "a?[2Jb\tc\n");
    CHECK(printable("é 注 \xff \xc3") == "é 注 ? ?");
}
