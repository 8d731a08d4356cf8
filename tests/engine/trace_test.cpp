// Writing and reading traces. Field cases C76 (what is not finite) and C78 (lists of pairs).
#include "engine/trace.hpp"
#include <bit>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include "engine/ops/activation.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/reduce.hpp"
#include "engine/random.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"
#include "tests/support/small_stack.hpp"
#include "tests/support/trace_example.hpp"

using namespace lookback;
using namespace lookback::test;
using Json = nlohmann::json;

static std::filesystem::path folder() {  // empty, and of this process
    static const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("lookback-test-" + std::to_string(std::random_device()()));
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
    return path;
}

static std::string contents(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

static Trace one_series(std::vector<double> y) {
    Trace t = begin_trace("test", 1);
    t.series = {{.name = "s", .x_label = "x", .x = y, .y_label = "y", .y = y}};
    return t;
}

// The example with something in its JSON changed.
static std::string changed(const std::string& pointer, const Json& value) {
    Json j = Json::parse(to_json(example_trace()));
    j[Json::json_pointer(pointer)] = value;
    return j.dump();
}

TEST_CASE("a trace reads back as it was written, byte for byte") {
    const std::string text = to_json(example_trace());
    CHECK(to_json(parse_trace(text)) == text);
    CHECK(to_json(example_trace()) == text);
    const Trace empty = begin_trace("", 0);
    CHECK(to_json(parse_trace(to_json(empty))) == to_json(empty));

    const Trace t = parse_trace(text);
    CHECK(t.seed == 9223372036854775807u);
    CHECK(parse_trace(to_json(begin_trace("", 18446744073709551615u))).seed == 18446744073709551615u);
    CHECK(std::get<double>(t.config.at("scale")) == 1);
    CHECK(std::get<std::int64_t>(t.config.at("T")) == -20);
    CHECK(std::get<bool>(t.config.at("quick")));
    CHECK(std::isinf(std::get<double>(t.config.at("limit"))));
    CHECK(std::get<std::string>(t.config.at("text")) == "the cat – das Kätzchen 猫");
    CHECK(t.checks[0].kind == Trace::Kind::slope);
    CHECK(t.graph->name == "a model");
    CHECK(t.graph->records[2].label == "here");
    CHECK(!t.graph->records[0].norm);
}

TEST_CASE("real numbers read back bit for bit: the least, the largest, -0") {
    std::vector<double> y{
        0.1, -0.0, 0.0, 1e22, 1.0, 5e-324, 1.7976931348623157e308, -1e-310, 1.0 / 3, double(0.1f), 9007199254740993.0};
    Generator random(3);
    for (int i = 0; i < 20000; ++i) {
        const double x = std::bit_cast<double>(random.bits());
        if (std::isfinite(x)) y.push_back(x);
    }
    const std::vector<double> back = parse_trace(to_json(one_series(y))).series[0].y;
    REQUIRE(back.size() == y.size());
    for (std::size_t i = 0; i < y.size(); ++i)
        REQUIRE(std::bit_cast<std::uint64_t>(back[i]) == std::bit_cast<std::uint64_t>(y[i]));
}

TEST_CASE("NaN and the infinities are three strings, kept apart (C76)") {
    const std::string text = to_json(one_series({1, NAN, INFINITY, -INFINITY}));
    CHECK_THAT(text, contains("[1.0, \"NaN\", \"Infinity\", \"-Infinity\"]"));
    const std::vector<double> back = parse_trace(text).series[0].y;
    CHECK(back[0] == 1);
    CHECK(std::isnan(back[1]));
    CHECK(back[2] == INFINITY);
    CHECK(back[3] == -INFINITY);
    CHECK_THROWS_WITH(parse_trace(changed("/series/0/y/1", nullptr)),
                      "[trace] series[0].y[1]: a number is wanted, not null");
    CHECK_THROWS_WITH(parse_trace(changed("/series/0/y/1", "inf")),
                      "[trace] series[0].y[1]: a number is wanted, not \"inf\"");
}

TEST_CASE("no, one and two edges are lists of as many (C78)") {
    for (std::size_t n = 0; n < 3; ++n) {
        Trace t = example_trace();
        t.graph->edges.resize(n);
        const Json edges = Json::parse(to_json(t))["graph"]["edges"];
        CHECK(edges.is_array());
        CHECK(edges.size() == n);
        CHECK(parse_trace(to_json(t)).graph->edges.size() == n);
    }
}

TEST_CASE("text that isn't UTF-8 is mended, and control characters are escaped") {
    Trace t = begin_trace("caf\xe9 \xf0\x9f", 1);
    t.tokens = {std::string("a\0b", 3), "\x1b[2J", "\"\\\n", "\xed\xa0\x80"};
    t.config = {{"\xff", "\xfe"}};
    const std::string text = to_json(t);
    const Trace back = parse_trace(text);
    CHECK(back.lesson == "caf\uFFFD \uFFFD");
    CHECK(back.tokens[0] == t.tokens[0]);
    CHECK(back.tokens[1] == t.tokens[1]);
    CHECK(back.tokens[2] == t.tokens[2]);
    CHECK(text.find('\x1b') == text.npos);
    CHECK(back.config.begin()->first == "\uFFFD");
    CHECK(to_json(back) == text);
    t.config["\xfe"] = true;  // which would be the same key
    CHECK_THROWS_WITH(to_json(t), contains("two keys are both"));
}

TEST_CASE("the reader says where a trace is wrong, and what") {
    const auto why = [](const std::string& text) {
        try {
            parse_trace(text);
        } catch (const ValueError& e) {
            return std::string(e.what());
        }
        return std::string("read");
    };
    CHECK(why(changed("/series/2/x", 3)) == "[trace] series[2].x: an array is wanted, not number");
    CHECK(why(changed("/series/0/colour", 3)) == "[trace] series[0]: unknown key \"colour\"");
    CHECK(why(changed("/colour", 3)) == "[trace] unknown key \"colour\"");
    CHECK(why(changed("/seed", -1)) == "[trace] seed: an integer, not below 0, is wanted, not number");
    CHECK(why(changed("/real", "half")) == "[trace] real: double or float is wanted, not half");
    CHECK(why(changed("/config/T", nullptr)) ==
          "[trace] config.T: true or false, a number or a string is wanted, not null");
    CHECK(why(changed("/checks/1/kind", "lt")) ==
          "[trace] checks[1].kind: one of eq, le, ge, slope, exact0, target is wanted, not \"lt\"");
    CHECK(why(changed("/matrices/0/shape", Json::array({1, 2, 3}))) ==
          "[trace] matrices[0].shape: an array of 2 is wanted, not array");
    Json j = Json::parse(to_json(example_trace()));
    j["checks"][1].erase("pass");
    CHECK(why(j.dump()) == "[trace] checks[1]: the key pass is missing");

    CHECK(why(changed("/schema", "lookback-trace/2")) ==
          "[trace] this is lookback-trace/2; here only lookback-trace/1 is known");
    CHECK(why(changed("/schema", "another/1")) == "[trace] schema: lookback-trace/1 is wanted, not another/1");
    CHECK(why("[]") == "[trace] an object is wanted, not array");
    CHECK_THAT(why("{}"), contains("the key schema is missing"));
    CHECK_THAT(why(""), contains("not JSON: "));
    CHECK_THAT(why("{\"schema\": NaN}"), contains("not JSON: parse error at line 1, column 1"));
    CHECK_THAT(why(to_json(example_trace()) + "x"), contains("not JSON"));
    CHECK_THAT(why("{\"lesson\": \"\xff\"}"), contains("not JSON"));
    CHECK_THAT(why("{\"a\": 1e999}"), contains("not JSON"));
    CHECK_THAT(why(to_json(example_trace()) + '\0' + "more"), contains("NUL"));  // where the parser would stop
    CHECK(why("{\"a\": 1, \"b\": {\"a\": 1}, \"a\": 2}") == "[trace] the key \"a\" stands twice in one object");
}

TEST_CASE("parts that don't fit each other are neither written nor read") {
    const auto refused = [](auto change, const std::string& why) {
        Trace t = example_trace();
        change(t);
        CHECK_THROWS_WITH(to_json(t), "[trace] " + why);
    };
    refused([](Trace& t) { t.series[1].y.pop_back(); }, "series[1]: 4 x and 3 y");
    refused([](Trace& t) { t.series[0].labels.pop_back(); }, "series[0]: 2 labels of 3 points");
    refused([](Trace& t) { t.matrices[0].data.pop_back(); }, "matrices[0]: 5 numbers for a shape of 2 × 3");
    refused([](Trace& t) { t.matrices[0].shape = {0, 3}; }, "matrices[0]: 6 numbers for a shape of 0 × 3");
    refused(
        [](Trace& t) {
            t.matrices[0].shape = {std::size_t(1) << 63, 12};
        },
        "matrices[0]: 6 numbers for a shape of 9223372036854775808 × 12");
    refused([](Trace& t) { t.matrices[0].rows.pop_back(); }, "matrices[0]: 1 labels of 2 rows");
    refused([](Trace& t) { t.matrices[0].columns.pop_back(); }, "matrices[0]: 2 labels of 3 columns");
    refused([](Trace& t) { t.graph->records[1].inputs[0] = 1; }, "graph.records[1]: input 1 is not an earlier record");
    refused([](Trace& t) { t.graph->records[1].inputs[0] = -2; },
            "graph.records[1]: input -2 is not an earlier record");
    refused([](Trace& t) { t.graph->edges[1].input = 2; }, "graph.edges[1]: record 1 has no input from 0");
    refused([](Trace& t) { t.graph->edges[0].to = 3; }, "graph.edges[0]: record 3 has no input from 0");
    refused(
        [](Trace& t) {  // -1 among the inputs is a constant: no edge comes from it, whatever 2^64 - 1 looks like
            t.graph->records[1].inputs[0] = Trace::Graph::constant;
            t.graph->edges[0].from = std::size_t(-1);
            t.graph->edges[0].to = 1;
            t.graph->edges[0].input = 0;
        },
        "graph.edges[0]: record 1 has no input from 18446744073709551615");
    CHECK_THROWS_WITH(parse_trace(changed("/series/0/x", Json::array())), "[trace] series[0]: 0 x and 3 y");
}

TEST_CASE("a file nested a million deep or of 50 MB needs no stack") {
    on_small_stack([] {
        for (const char* open : {"[", "{\"a\":"}) {
            std::string deep;
            for (int i = 0; i < 1000000; ++i) deep += open;
            CHECK_THROWS_WITH(parse_trace(deep), "[trace] nested more than 8 deep");
        }
        const Trace large = one_series(std::vector<double>(1250000, 1.0 / 3));
        const std::string text = to_json(large);
        CHECK(text.size() > 50000000);
        CHECK(parse_trace(text).series[0].y == large.series[0].y);
    });
}

TEST_CASE("a file is written whole, in the place of the one before") {
    const std::filesystem::path path = folder() / "trace.json";
    write_trace(one_series({1, 2, 3}), path);
    write_trace(example_trace(), path);
    CHECK(contents(path) == to_json(example_trace()));
    CHECK(to_json(read_trace(path)) == to_json(example_trace()));

    Trace wrong = example_trace();
    wrong.series[0].y.clear();
    CHECK_THROWS_AS(write_trace(wrong, path), ValueError);
    CHECK(contents(path) == to_json(example_trace()));

    const std::filesystem::path link = path.parent_path() / "link.json";
    std::filesystem::create_symlink(path, link);
    write_trace(one_series({}), link);
    CHECK(std::filesystem::is_symlink(link));
    CHECK(contents(path) == to_json(one_series({})));
    CHECK(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}) == 2);  // nothing is left over
    write_trace(example_trace(), "/dev/null");
    CHECK(!std::filesystem::is_regular_file("/dev/null"));
}

TEST_CASE("errors of files name the file and the reason") {
    const std::filesystem::path path = folder();
    CHECK_THROWS_WITH(read_trace(path / "none.json"),
                      "[trace] " + (path / "none.json").string() + " can't be read: No such file or directory");
    CHECK_THROWS_WITH(read_trace(path), "[trace] " + path.string() + " can't be read: Is a directory");
    CHECK_THROWS_WITH(write_trace(example_trace(), path / "no" / "x.json"),
                      "[trace] " + (path / "no" / "x.json").string() + " can't be written: No such file or directory");
    CHECK_THROWS_AS(write_trace(example_trace(), path), ValueError);
    if (std::filesystem::exists("/dev/full"))
        CHECK_THROWS_WITH(write_trace(example_trace(), "/dev/full"),
                          "[trace] /dev/full can't be written: No space left on device");
    std::ofstream(path / "bad.json") << changed("/seed", "1");
    CHECK_THROWS_WITH(read_trace(path / "bad.json"), "[trace] " + (path / "bad.json").string() +
                                                         ": seed: an integer, not below 0, is wanted, not \"1\"");
    std::ofstream(path / "empty.json").flush();
    CHECK_THROWS_WITH(read_trace(path / "empty.json"), contains("not JSON"));
}

TEST_CASE("the graph lists records with what is known of them, and each edge's share of the cotangent") {
    Tape tape;
    const Tensor x = tape.leaf(Array{3, 4});
    const Tensor y = tag(tanh(x), "state"), z = x * y, aside = -x, root = sum(z * tape.constant(Array{1, 2}));
    const Trace::Graph g = trace_graph(root).value();
    REQUIRE(g.records.size() == 7);
    CHECK(g.records[0].op == "leaf");
    CHECK(g.records[2].label == "state");
    CHECK(g.records[3].inputs == std::vector<std::int64_t>{0, 2});
    CHECK(g.records[5].inputs == std::vector<std::int64_t>{3, Trace::Graph::constant});
    CHECK(g.records[0].shape == std::vector<std::size_t>{2});
    CHECK(close(*g.records[0].norm, 5));  // kept by x * y
    CHECK(!g.records[4].bar_norm);        // does not reach the root
    CHECK(close(*g.records[6].bar_norm, 1));
    const Array &a = x.value(), &b = y.value();
    REQUIRE(g.edges.size() == 6);  // from the root downwards
    CHECK((g.edges[0].from == 5 && g.edges[0].to == 6 && close(g.edges[0].norm, std::sqrt(2))));
    const auto& direct =
        *std::find_if(g.edges.begin(), g.edges.end(), [](const auto& e) { return e.from == 0 && e.to == 3; });
    CHECK(close(direct.norm, std::hypot(b(0), 2 * b(1))));
    const auto& through = *std::find_if(g.edges.begin(), g.edges.end(), [](const auto& e) { return e.from == 2; });
    CHECK(close(through.norm, std::hypot(a(0), 2 * a(1))));

    CHECK(!trace_graph(root, {}, 6));
    CHECK(trace_graph(root, {}, 7));
    CHECK_THROWS_AS(trace_graph(z), ShapeError);
    CHECK(close(*trace_graph(z, Array{0, 1}).value().records[2].bar_norm, 4));
    CHECK_THROWS_AS(trace_graph(tape.constant(Array{1})), TapeError);
    Trace t = begin_trace("graph", 1);
    t.graph = g;
    CHECK(to_json(parse_trace(to_json(t))) == to_json(t));
}

TEST_CASE("the graph of a million records needs no stack") {
    on_small_stack([] {
        Tape tape;
        const Tensor x = tape.leaf(filled({}, 1));
        Tensor y = x;
        for (int i = 0; i < 1000000; ++i) y = -y;
        CHECK(!trace_graph(y));
        Trace t = begin_trace("long", 1);
        t.graph = trace_graph(y, {}, 2000000);
        REQUIRE(t.graph);
        CHECK(t.graph->records.size() == 1000001);
        CHECK(t.graph->edges.size() == 1000000);
        CHECK(to_json(t).size() > 50000000);
    });
}
