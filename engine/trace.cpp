#include "trace.hpp"
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include "blas.hpp"
#include "expression.hpp"
#include "file.hpp"

namespace lookback {

static constexpr const char *version = "lookback-trace/1", *family = "lookback-trace/";
static constexpr const char* kinds[] = {"eq", "le", "ge", "slope", "exact0", "target"};

// ---- The form: each part names its keys once, in the order of the file. Writer and reader both walk this list; what
// is optional is left out if empty.

template <class T, class Part>
concept Is = std::same_as<std::remove_const_t<T>, Part>;

static void keys(auto& v, Is<Trace::Build> auto& b) {
    v("compiler", b.compiler);
    v("blas_kernel", b.blas_kernel);
    v("threads", b.threads);
    v("native", b.native);
}
static void keys(auto& v, Is<Trace::Series> auto& s) {
    v("name", s.name);
    v("x_label", s.x_label);
    v.optional("x_unit", s.x_unit);
    v("x", s.x);
    v("y_label", s.y_label);
    v.optional("y_unit", s.y_unit);
    v("y", s.y);
    v.optional("labels", s.labels);
}
static void keys(auto& v, Is<Trace::Matrix> auto& m) {
    v("name", m.name);
    v.optional("row_label", m.row_label);
    v.optional("column_label", m.column_label);
    v.optional("rows", m.rows);
    v.optional("columns", m.columns);
    v("shape", m.shape);
    v("data", m.data);
}
static void keys(auto& v, Is<Trace::Path> auto& p) {
    v("from", p.from);
    v("to", p.to);
    v("reached", p.report.reached);
    v("shortest", p.report.shortest);
    v("longest", p.report.longest);
    v("log2_count", p.report.log2_count);
}
static void keys(auto& v, Is<Trace::Prediction> auto& p) {
    v("name", p.name);
    v("guess", p.guess);
    v("measured", p.measured);
}
static void keys(auto& v, Is<Trace::Check> auto& c) {
    v("id", c.id);
    v("claim", c.claim);
    v("kind", c.kind);
    v("measured", c.measured);
    v("theory", c.theory);
    v("tolerance", c.tolerance);
    v("pass", c.pass);
    v("source", c.source);
}
static void keys(auto& v, Is<Trace::Graph::Record> auto& r) {
    v("op", r.op);
    v.optional("label", r.label);
    v("inputs", r.inputs);
    v("shape", r.shape);
    v.optional("norm", r.norm);
    v.optional("bar_norm", r.bar_norm);
}
static void keys(auto& v, Is<Trace::Graph::Edge> auto& e) {
    v("from", e.from);
    v("to", e.to);
    v("input", e.input);
    v("norm", e.norm);
}
static void keys(auto& v, Is<Trace::Graph> auto& g) {
    v.optional("name", g.name);
    v("records", g.records);
    v("edges", g.edges);
}
static void keys(auto& v, Is<Trace> auto& t) {
    v("lesson", t.lesson);
    v("seed", t.seed);
    v("real", t.real);
    v("config", t.config);
    v("build", t.build);
    v("tokens", t.tokens);
    v("series", t.series);
    v("matrices", t.matrices);
    v("paths", t.paths);
    v("predictions", t.predictions);
    v("checks", t.checks);
    v.optional("graph", t.graph);
    v.optional("timings", t.timings);
}

// ---- What the form can't say: how parts fit each other. Asked before writing and after reading.

static void check(const Trace& t) {
    const auto demand = [](bool holds, const std::string& list, std::size_t i, const std::string& what) {
        if (!holds) fail<ValueError>("trace", list + "[" + std::to_string(i) + "]: " + what);
    };
    const auto both = [](std::size_t a, const char* of_a, std::size_t b, const char* of_b) {
        return std::to_string(a) + of_a + std::to_string(b) + of_b;
    };
    const auto labelled = [](const std::vector<std::string>& labels, std::size_t n) {
        return labels.empty() || labels.size() == n;
    };

    if (t.real != "double" && t.real != "float")
        fail<ValueError>("trace", "real: double or float is wanted, not " + t.real);
    for (std::size_t i = 0; i < t.series.size(); ++i) {
        const Trace::Series& s = t.series[i];
        demand(s.x.size() == s.y.size(), "series", i, both(s.x.size(), " x and ", s.y.size(), " y"));
        demand(labelled(s.labels, s.x.size()), "series", i,
               both(s.labels.size(), " labels of ", s.x.size(), " points"));
    }
    for (std::size_t i = 0; i < t.matrices.size(); ++i) {
        const Trace::Matrix& m = t.matrices[i];
        const auto [rows, columns] = m.shape;
        demand(rows == 0 ? m.data.empty() : m.data.size() % rows == 0 && m.data.size() / rows == columns, "matrices", i,
               std::to_string(m.data.size()) + " numbers for a shape of " + both(rows, " × ", columns, ""));
        demand(labelled(m.rows, rows), "matrices", i, both(m.rows.size(), " labels of ", rows, " rows"));
        demand(labelled(m.columns, columns), "matrices", i, both(m.columns.size(), " labels of ", columns, " columns"));
    }
    if (!t.graph) return;
    const auto& records = t.graph->records;
    for (std::size_t i = 0; i < records.size(); ++i)
        for (const std::int64_t from : records[i].inputs)
            demand(Trace::Graph::constant <= from && from < std::int64_t(i), "graph.records", i,
                   "input " + std::to_string(from) + " is not an earlier record");
    for (std::size_t i = 0; i < t.graph->edges.size(); ++i) {
        const Trace::Graph::Edge& e = t.graph->edges[i];
        demand(e.to < records.size() && e.from < e.to && e.input < records[e.to].inputs.size() &&
                   records[e.to].inputs[e.input] == std::int64_t(e.from),
               "graph.edges", i, "record " + std::to_string(e.to) + " has no input from " + std::to_string(e.from));
    }
}

// ---- Writing

namespace {

class Writer {
public:
    std::string out;

    template <class T> void operator()(const char* key, const T& x) {
        out += std::exchange(separator_, between_);
        ((out += '"') += key) += "\": ";
        write(x);
    }
    template <class T> void optional(const char* key, const T& x) {
        if constexpr (requires { *x; }) {
            if (x) (*this)(key, *x);
        } else if (!x.empty()) {
            (*this)(key, x);
        }
    }

private:
    template <class T> void write(const T& part) {  // on one line
        const auto outside = std::pair(std::exchange(between_, ", "), std::exchange(separator_, ""));
        out += '{';
        keys(*this, part);
        out += '}';
        std::tie(between_, separator_) = outside;
    }
    void write(bool x) { out += x ? "true" : "false"; }
    void write(std::size_t x) { out += std::to_string(x); }
    void write(std::int64_t x) { out += std::to_string(x); }
    void write(double x) {
        if (!std::isfinite(x)) {
            out += std::isnan(x) ? "\"NaN\"" : x > 0 ? "\"Infinity\"" : "\"-Infinity\"";
            return;
        }
        char digits[32];  // the fewest that read back as the same number
        const std::string_view shortest(digits, std::size_t(std::to_chars(digits, std::end(digits), x).ptr - digits));
        out += shortest;
        if (shortest.find_first_of(".e") == shortest.npos) out += ".0";  // else an integer, which has no -0
    }
    void write(const std::string& x) {
        out += nlohmann::json(x).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    void write(Trace::Kind kind) { write(std::string(kinds[std::size_t(kind)])); }
    void write(const Trace::Value& value) {
        std::visit([&](const auto& x) { write(x); }, value);
    }
    template <class T> void write(const std::vector<T>& list) {
        write_list(list, std::is_class_v<T> && !std::is_same_v<T, std::string>);
    }
    template <class T, std::size_t n> void write(const std::array<T, n>& list) { write_list(list, false); }
    void write_list(const auto& list, bool of_parts) {
        out += '[';
        const char* separator = of_parts ? "\n" : "";
        for (const auto& x : list) {
            out += std::exchange(separator, of_parts ? ",\n" : ", ");
            write(x);
        }
        out += ']';
    }
    template <class T> void write(const std::map<std::string, T>& map) {
        out += '{';
        const char* separator = "";
        std::set<std::string> written;
        for (const auto& [key, x] : map) {
            out += std::exchange(separator, ", ");
            const std::size_t start = out.size();
            write(key);
            if (!written.insert(out.substr(start)).second)
                fail<ValueError>("trace", "two keys are both " + out.substr(start) + " as UTF-8");
            out += ": ";
            write(x);
        }
        out += '}';
    }

    const char *between_ = ",\n", *separator_ = "";
};

}  // namespace

std::string to_json(const Trace& trace) {
    check(trace);
    Writer writer;
    writer.out = "{";
    writer("schema", std::string(version));
    keys(writer, trace);
    return writer.out + "}\n";
}

// ---- Reading

namespace {

using Json = nlohmann::json;

// A value in the file and the way to it, which is put into words only if something is wrong there.
struct Place {
    const Json& json;
    const Place* outside = nullptr;
    const char* key = nullptr;
    std::size_t index = 0;

    std::string way() const {
        if (!outside) return "";
        const std::string before = outside->way();
        if (!key) return before + "[" + std::to_string(index) + "]";
        return before.empty() ? key : before + "." + key;
    }
    [[noreturn]] void wrong(const std::string& what) const {
        const std::string place = way();
        fail<ValueError>("trace", (place.empty() ? "" : place + ": ") + what);
    }
    [[noreturn]] void wanted(const char* what) const {
        wrong(std::string(what) + " is wanted, not " + (json.is_string() ? json.dump() : json.type_name()));
    }
};

class Reader {
public:
    explicit Reader(const Place& place) : place_(place) {
        if (!place.json.is_object()) place.wanted("an object");
    }
    template <class T> void operator()(const char* key, T& x) {
        if (!find(key, x)) place_.wrong(std::string("the key ") + key + " is missing");
    }
    template <class T> void optional(const char* key, std::optional<T>& x) {
        find(key, x.emplace()) || (x.reset(), true);
    }
    void optional(const char* key, auto& x) { find(key, x); }
    void nothing_else() const {
        for (const auto& [key, value] : place_.json.items())
            if (!known_.contains(key)) place_.wrong("unknown key " + Json(key).dump());
    }

private:
    template <class T> bool find(const char* key, T& x) {
        known_.insert(key);
        const auto at = place_.json.find(key);
        if (at == place_.json.end()) return false;
        read({*at, &place_, key}, x);
        return true;
    }

    template <class T> static void read(const Place& at, T& part) {
        Reader reader(at);
        keys(reader, part);
        reader.nothing_else();
    }
    static void read(const Place& at, bool& x) {
        if (!at.json.is_boolean()) at.wanted("true or false");
        x = at.json.get<bool>();
    }
    static void read(const Place& at, std::size_t& x) {
        if (!at.json.is_number_unsigned()) at.wanted("an integer, not below 0,");
        x = at.json.get<std::size_t>();
    }
    static void read(const Place& at, std::int64_t& x) {
        const Json& j = at.json;
        if (!j.is_number_integer() || (j.is_number_unsigned() && j.get<std::uint64_t>() >> 63)) at.wanted("an integer");
        x = j.get<std::int64_t>();
    }
    static void read(const Place& at, double& x) {
        if (at.json.is_number())
            x = at.json.get<double>();
        else if (const auto special = not_finite(at.json))
            x = *special;
        else
            at.wanted("a number");
    }
    static std::optional<double> not_finite(const Json& j) {
        if (j == "NaN") return std::numeric_limits<double>::quiet_NaN();
        if (j == "Infinity") return std::numeric_limits<double>::infinity();
        if (j == "-Infinity") return -std::numeric_limits<double>::infinity();
        return {};
    }
    static void read(const Place& at, std::string& x) {
        if (!at.json.is_string()) at.wanted("a string");
        x = at.json.get<std::string>();
    }
    static void read(const Place& at, Trace::Kind& x) {
        const auto kind = std::find(std::begin(kinds), std::end(kinds), at.json);
        if (kind == std::end(kinds)) at.wanted("one of eq, le, ge, slope, exact0, target");
        x = Trace::Kind(kind - kinds);
    }
    static void read(const Place& at, Trace::Value& x) {
        const Json& j = at.json;
        if (j.is_boolean())
            read(at, x.emplace<bool>());
        else if (j.is_number_integer())
            read(at, x.emplace<std::int64_t>());
        else if (j.is_number_float() || not_finite(j))
            read(at, x.emplace<double>());
        else if (j.is_string())
            read(at, x.emplace<std::string>());
        else
            at.wanted("true or false, a number or a string");
    }
    template <class T> static void read(const Place& at, std::vector<T>& list) {
        if (!at.json.is_array()) at.wanted("an array");
        list.resize(at.json.size());
        for (std::size_t i = 0; i < list.size(); ++i) read({at.json[i], &at, nullptr, i}, list[i]);
    }
    template <class T, std::size_t n> static void read(const Place& at, std::array<T, n>& list) {
        if (!at.json.is_array() || at.json.size() != n) at.wanted("an array of 2");
        for (std::size_t i = 0; i < n; ++i) read({at.json[i], &at, nullptr, i}, list[i]);
    }
    template <class T> static void read(const Place& at, std::map<std::string, T>& map) {
        if (!at.json.is_object()) at.wanted("an object");
        for (const auto& [key, value] : at.json.items()) read({value, &at, key.c_str()}, map[key]);
    }

    const Place& place_;
    std::set<std::string, std::less<>> known_;
};

// The JSON library alone would nest without end, and of two equal keys keep the last.
Json parse(const std::string& text) {
    constexpr int deepest = 8;
    std::vector<std::set<std::string>> met;  // keys of the objects that are open
    const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
        if (depth > deepest) fail<ValueError>("trace", "nested more than " + std::to_string(deepest) + " deep");
        if (event == Json::parse_event_t::object_start) met.emplace_back();
        if (event == Json::parse_event_t::object_end) met.pop_back();
        if (event == Json::parse_event_t::key && !met.back().insert(value.get<std::string>()).second)
            fail<ValueError>("trace", "the key " + value.dump() + " stands twice in one object");
        return true;
    };
    try {
        return Json::parse(text, watch);
    } catch (const Json::exception& e) {
        const std::string what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 5: …"
        fail<ValueError>("trace", "not JSON: " + what.substr(what.find(']') + 2));
    }
}

}  // namespace

Trace parse_trace(const std::string& text) {
    if (text.find('\0') != std::string::npos) fail<ValueError>("trace", "not JSON: it holds a NUL byte");
    const Json json = parse(text);
    const Place top{json};
    Reader reader(top);
    std::string schema;
    reader("schema", schema);
    if (schema != version)
        fail<ValueError>("trace", schema.starts_with(family)
                                      ? "this is " + schema + "; here only " + version + " is known"
                                      : "schema: " + std::string(version) + " is wanted, not " + schema);
    Trace trace;
    keys(reader, trace);
    reader.nothing_else();
    check(trace);
    return trace;
}

// ---- Files

void write_trace(const Trace& trace, const std::filesystem::path& path) {
    const std::string wrong = replace_file(path, to_json(trace));
    if (!wrong.empty()) fail<ValueError>("trace", path.string() + " can't be written: " + wrong);
}

Trace read_trace(const std::filesystem::path& path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file || (text.fail() && errno))
        fail<ValueError>("trace", path.string() + " can't be read: " + std::strerror(errno ? errno : EIO));
    try {
        return parse_trace(std::move(text).str());
    } catch (const ValueError& e) {
        const std::string what = e.what();
        fail<ValueError>("trace", path.string() + ": " + what.substr(what.find(']') + 2));
    }
}

// ---- What a trace begins with, and the graph

Trace begin_trace(std::string lesson, std::uint64_t seed) {
    Trace trace;
    trace.lesson = std::move(lesson);
    trace.seed = seed;
    trace.real = sizeof(Real) == sizeof(double) ? "double" : "float";
#ifdef __clang__
    trace.build.compiler = __VERSION__;
#else
    trace.build.compiler = "GCC " __VERSION__;
#endif
    trace.build.blas_kernel = blas_kernel();
    trace.build.threads = std::size_t(blas_threads());
#ifdef XTENSOR_USE_XSIMD
    trace.build.native = true;
#endif
    return trace;
}

std::vector<double> numbers(const Array& x) { return {x.data(), x.data() + x.size()}; }

std::optional<Trace::Graph> trace_graph(const Tensor& root, const Shared& seed, std::size_t most) {
    const Tape& tape = root.tape();
    tape.check("trace_graph", root);
    if (root.is_constant()) fail<TapeError>("trace_graph", "the root is a constant: no leaf or parameter leads to it");
    if (std::size_t(root.id()) + 1 > most) return {};

    Trace::Graph graph;
    for (Id id = 0; id <= root.id(); ++id) {
        const Record& record = tape[id];
        Trace::Graph::Record& r = graph.records.emplace_back();
        r.op = record.op;
        if (const auto* label = std::any_cast<std::string>(&record.attributes)) r.label = *label;
        r.shape.assign(record.shape.begin(), record.shape.end());
        if (record.output) r.norm = norm(*record.output);
        for (const Edge& edge : tape.inputs(record)) {
            r.inputs.push_back(edge.from == Tensor::constant ? Trace::Graph::constant : std::int64_t(edge.from));
            if (edge.saved && edge.from != Tensor::constant) graph.records[edge.from].norm = norm(*edge.saved);
        }
    }

    // Keep::all would hold every cotangent at once. Here one is held from its first contribution to its last.
    std::map<Id, Array> bars;
    const auto complete = [&](Id down_to) {
        for (auto at = bars.lower_bound(down_to); at != bars.end(); at = bars.erase(at))
            graph.records[at->first].bar_norm = norm(at->second);
    };
    const auto watch = [&](const Contribution& c) {
        complete(c.record);  // consumers run from high to low
        graph.edges.push_back({c.from, c.record, c.input, norm(c.x_bar)});
        const auto [bar, is_first] = bars.try_emplace(c.from, c.x_bar);
        if (!is_first) xt::noalias(bar->second) += c.x_bar;
    };
    const Tensor lowest(root.owner(), 0, tape[0].epoch, filled(tape[0].shape, 0));
    tape.backward(root, {lowest}, {.keep = Keep::wanted, .seed = seed, .observer = watch});
    complete(0);
    graph.records[root.id()].bar_norm = seed ? norm(*seed) : 1;
    return graph;
}

}  // namespace lookback
