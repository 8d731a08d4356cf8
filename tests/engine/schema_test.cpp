// The schema that stands beside the trace, against the reader: whatever is changed in a full trace, both say the same.
#include <fstream>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>
#include "tests/support/catch.hpp"
#include "tests/support/trace_example.hpp"

using namespace lookback;
using namespace lookback::test;
using Json = nlohmann::json;
using Pointer = Json::json_pointer;

static bool reader_takes(const Json& trace) {
    try {
        parse_trace(trace.dump());
        return true;
    } catch (const ValueError&) {
        return false;
    }
}

static bool schema_takes(const Json& trace) {
    static const Json text = Json::parse(std::ifstream(LOOKBACK_SOURCE_DIR "/engine/trace.schema.json"));
    static const valijson::Schema& schema = []() -> valijson::Schema& {
        static valijson::Schema parsed;
        valijson::SchemaParser(valijson::SchemaParser::kDraft7)
            .populateSchema(valijson::adapters::NlohmannJsonAdapter(text), parsed);
        return parsed;
    }();
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(trace), nullptr);
}

static Json full() { return Json::parse(to_json(example_trace())); }

// Every place in the trace; of a list only the first two entries, as the others are alike.
static std::vector<Pointer> places(const Json& at, const Pointer& here = Pointer()) {
    std::vector<Pointer> all;
    const auto enter = [&](const Json& inside, const Pointer& there) {
        all.push_back(there);
        const std::vector<Pointer> deeper = places(inside, there);
        all.insert(all.end(), deeper.begin(), deeper.end());
    };
    if (at.is_object())
        for (const auto& [key, value] : at.items()) enter(value, here / key);
    if (at.is_array())
        for (std::size_t i = 0; i < std::min<std::size_t>(2, at.size()); ++i) enter(at[i], here / i);
    return all;
}

// "/series/0/x/1" → "/series/*/x/*"
static std::string kind_of(const Pointer& place) {
    std::string kind;
    for (Pointer p = place; !p.empty(); p = p.parent_pointer()) {
        const bool number = p.back().find_first_not_of("0123456789") == std::string::npos;
        kind = "/" + (number ? "*" : p.back()) + kind;
    }
    return kind;
}

static bool is_one_of(const std::string& kind, std::initializer_list<const char*> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

static bool is_optional(const std::string& kind) {
    return kind.starts_with("/config/") || kind.starts_with("/timings/") ||
           is_one_of(kind,
                     {"/graph", "/timings", "/series/*/x_unit", "/series/*/y_unit", "/series/*/labels",
                      "/matrices/*/row_label", "/matrices/*/column_label", "/matrices/*/rows", "/matrices/*/columns",
                      "/graph/name", "/graph/records/*/label", "/graph/records/*/norm", "/graph/records/*/bar_norm"});
}

static bool is_of_any_simple_type(const std::string& kind) {
    return kind.starts_with("/config/") || is_one_of(kind, {"/predictions/*/guess", "/predictions/*/measured"});
}

TEST_CASE("reader and schema take the full trace, and a trace of nothing") {
    CHECK(reader_takes(full()));
    CHECK(schema_takes(full()));
    CHECK(schema_takes(Json::parse(to_json(begin_trace("", 0)))));
    for (std::size_t edges = 0; edges < 3; ++edges) {
        Trace t = example_trace();
        t.graph->edges.resize(edges);
        CHECK(schema_takes(Json::parse(to_json(t))));
    }
}

TEST_CASE("every key that is deleted is missed, unless it is optional") {
    std::size_t deleted = 0;
    for (const Pointer& place : places(full())) {
        Json j = full();
        Json& outside = j[place.parent_pointer()];
        if (!outside.is_object()) continue;
        outside.erase(place.back());
        ++deleted;
        INFO(place.to_string());
        CHECK(reader_takes(j) == is_optional(kind_of(place)));
        CHECK(schema_takes(j) == is_optional(kind_of(place)));
    }
    CHECK(deleted > 90);
}

TEST_CASE("every value of another type is refused") {
    const std::vector<Json> types{nullptr, true, 2.5, -7, "text", Json::array(), Json::object()};
    for (const Pointer& place : places(full()))
        for (const Json& type : types) {
            Json j = full();
            const Json before = std::exchange(j[place], type);
            const bool was_real =
                before.is_number_float() ||
                is_one_of(before.is_string() ? before.get<std::string>() : "", {"NaN", "Infinity", "-Infinity"});
            if (was_real ? type.is_number() : before.type() == type.type()) continue;
            if (is_of_any_simple_type(kind_of(place)) && type.is_primitive() && !type.is_null()) continue;
            if (before.is_number_integer() && type.is_number_integer() && kind_of(place) == "/graph/records/*/inputs/*")
                continue;  // -7: below
            INFO(place.to_string() << " = " << type.dump());
            CHECK(!reader_takes(j));
            CHECK(!schema_takes(j));
        }
}

TEST_CASE("every key that is added is refused, except among the flags and the timings") {
    std::vector<Pointer> objects{Pointer()};
    for (const Pointer& place : places(full()))
        if (full()[place].is_object()) objects.push_back(place);
    CHECK(objects.size() > 15);
    for (const Pointer& place : objects) {
        Json j = full();
        j[place]["another"] = 1.5;
        const bool open = is_one_of(kind_of(place), {"/config", "/timings"});
        INFO(place.to_string());
        CHECK(reader_takes(j) == open);
        CHECK(schema_takes(j) == open);
    }
}

TEST_CASE("words and numbers outside their range are refused") {
    const std::pair<const char*, Json> wrong[] = {{"/schema", "lookback-trace/2"},
                                                  {"/schema", ""},
                                                  {"/real", "half"},
                                                  {"/checks/0/kind", "lt"},
                                                  {"/checks/0/kind", ""},
                                                  {"/series/0/y/0", "nan"},
                                                  {"/seed", -1},
                                                  {"/seed", 1.5},
                                                  {"/matrices/0/shape/0", -2},
                                                  {"/paths/0/shortest", -1},
                                                  {"/paths/0/longest", 0.5},
                                                  {"/graph/records/1/inputs/0", -2},
                                                  {"/graph/edges/0/from", -1},
                                                  {"/matrices/0/shape", Json::array({2, 3, 1})},
                                                  {"/matrices/0/shape", Json::array({6})}};
    for (const auto& [place, value] : wrong) {
        Json j = full();
        j[Pointer(place)] = value;
        INFO(place << " = " << value.dump());
        CHECK(!reader_takes(j));
        CHECK(!schema_takes(j));
    }
}
