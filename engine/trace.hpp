// What a run measured, as a file that notebooks, the viewer and graders read. Its form is trace.schema.json,
// "lookback-trace/1". The same content gives the same bytes. Real numbers read back bit for bit; the three that JSON
// lacks are the strings "NaN", "Infinity", "-Infinity". Text is UTF-8; what isn't becomes U+FFFD.
//   Trace trace = begin_trace("03_vanishing_gradients", seed);
//   trace.series.push_back({.name = "‖∂L/∂h_t‖", .x_label = "t", .x = steps, .y_label = "norm", .y = norms});
//   write_trace(trace, "trace.json");
#pragma once
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>
#include "paths.hpp"
#include "tape.hpp"

namespace lookback {

struct Trace {
    using Value = std::variant<bool, std::int64_t, double, std::string>;

    struct Build {
        std::string compiler, blas_kernel;
        std::size_t threads = 1;  // of BLAS
        bool native = false;      // for this machine's own instructions
    };
    struct Series {  // y against x
        std::string name, x_label, x_unit = "";
        std::vector<double> x;
        std::string y_label, y_unit = "";
        std::vector<double> y;
        std::vector<std::string> labels = {};  // one a point, or none
    };
    struct Matrix {
        std::string name, row_label = "", column_label = "";  // of the axes
        std::vector<std::string> rows = {}, columns = {};     // labels, or none
        std::array<std::size_t, 2> shape;
        std::vector<double> data;  // row-major
    };
    struct Path {
        std::string from, to;
        PathReport report;
    };
    struct Prediction {
        std::string name;
        Value guess, measured;
    };
    enum class Kind { eq, le, ge, slope, exact0, target };
    struct Check {
        std::string id, claim;
        Kind kind;
        double measured, theory, tolerance;
        bool pass;
        std::string source;
    };
    struct Graph {
        static constexpr std::int64_t constant = -1;  // among inputs: nothing flows back
        struct Record {
            std::string op, label = "";        // a tag's
            std::vector<std::int64_t> inputs;  // places in `records`, all before this one
            std::vector<std::size_t> shape;
            std::optional<double> norm = {};      // of the value, if it is still kept
            std::optional<double> bar_norm = {};  // of the cotangent, if one reached it
        };
        struct Edge {
            std::size_t from, to, input;  // records[to].inputs[input] == from
            double norm;                  // of the share of from's cotangent that came this way
        };
        std::string name;  // of what was recorded
        std::vector<Record> records;
        std::vector<Edge> edges;
    };

    std::string lesson;
    std::uint64_t seed = 0;
    std::string real = "double";  // or "float"
    std::map<std::string, Value> config;
    Build build;
    std::vector<std::string> tokens;
    std::vector<Series> series;
    std::vector<Matrix> matrices;
    std::vector<Path> paths;
    std::vector<Prediction> predictions;
    std::vector<Check> checks;
    std::optional<Graph> graph;
    std::map<std::string, double> timings;  // seconds; only on request, as they differ from run to run
};

Trace begin_trace(std::string lesson, std::uint64_t seed);  // with what is known of this build

std::vector<double> numbers(const Array& x);  // for a series or a matrix

// The records up to the root, with the norms of one backward from it. Nothing if they are more than `most`.
// throws as Tape::backward does
std::optional<Trace::Graph> trace_graph(const Tensor& root, const Shared& seed = {}, std::size_t most = 2000);

// All throw ValueError "[trace] series[2].y[17]: a number is wanted, not null", also if parts do not fit each other (x
// and y of different lengths) or the file can't be read or written. Written is the whole file or nothing.
std::string to_json(const Trace& trace);
Trace parse_trace(const std::string& json);
void write_trace(const Trace& trace, const std::filesystem::path& path);
Trace read_trace(const std::filesystem::path& path);

}  // namespace lookback
