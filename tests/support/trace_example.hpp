// A trace with every key in it: what the tests of the writer, the reader and the schema begin with.
#pragma once
#include <limits>
#include "engine/trace.hpp"

namespace lookback::test {

inline Trace example_trace() {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
    Trace t = begin_trace("01_example", 9223372036854775807u);
    t.config = {{"T", std::int64_t(-20)},
                {"quick", true},
                {"scale", 1.0},
                {"text", "the cat – das Kätzchen 猫"},
                {"limit", infinity}};
    t.tokens = {"the", "cat", ""};
    t.series = {
        {.name = "norms",
         .x_label = "t",
         .x_unit = "steps",
         .x = {0, 1, 2},
         .y_label = "‖h̄_t‖",
         .y_unit = "1",
         .y = {0.1, -0.0, 5e-324},
         .labels = {"a", "b", "c"}},
        {.name = "exploding", .x_label = "t", .x = {1, 2, 3, 4}, .y_label = "norm", .y = {1, nan, infinity, -infinity}},
        {.name = "nothing yet", .x_label = "t", .x = {}, .y_label = "y", .y = {}}};
    t.matrices = {{.name = "weights",
                   .row_label = "target",
                   .column_label = "source",
                   .rows = {"le", "chat"},
                   .columns = {"the", "cat", "."},
                   .shape = {2, 3},
                   .data = {1, 0, 0, 0.25, 0.5, 0.25}}};
    t.paths = {{"loss", "h[0]", {true, 2, 21, 20.5}}, {"loss", "detached", {false, 0, 0, -infinity}}};
    t.predictions = {{"half_life", std::int64_t(7), 6.5}, {"winner", "cat", "the"}};
    t.checks = {{"vanishing.rate", "norms fall as a power of the spectral radius", Trace::Kind::slope, -0.1053, -0.1054,
                 1e-3, true, "Pascanu 2013"},
                {"masked", "masked weights are exactly 0", Trace::Kind::exact0, 0, 0, 0, true, "definition"}};
    t.graph = Trace::Graph{.name = "a model",
                           .records = {{.op = "leaf", .inputs = {}, .shape = {2}, .bar_norm = 1.5},
                                       {.op = "mul", .inputs = {0, 0}, .shape = {2}, .norm = 0.5, .bar_norm = nan},
                                       {.op = "tag", .label = "here", .inputs = {Trace::Graph::constant}, .shape = {}}},
                           .edges = {{0, 1, 0, 0.75}, {0, 1, 1, 0.75}}};
    t.timings = {{"forward", 0.25}};
    return t;
}

}  // namespace lookback::test
