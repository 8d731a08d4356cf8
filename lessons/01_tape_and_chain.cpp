// A tape walked backwards is the chain rule; one product is only a part of it.
//
// From one multiplication to a network of eight tanh units: each gradient by the tape, and again without it.
#include <algorithm>
#include <cmath>
#include "engine/ops.hpp"
#include "engine/paths.hpp"
#include "engine/pullback.hpp"
#include "layers/init.hpp"
#include "lessons/by_hand.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using terminal::number;
using enum Trace::Kind;

static constexpr std::size_t n = 8, T = 20;  // units, time steps

// ---- faults to put in: ops of this lesson alone

// y = a b with `=` in place of `+=`: a cotangent that arrives later takes the place of what was there.
static Tensor overwriting_mul(const Tensor& a, const Tensor& b) {
    return record("mul", {a, b}, a.value() * b.value(), saves::inputs, [](Pullback& p) {
        if (p.needs(0)) p.x_bar(0).zeroed() = p.y_bar() * p.x(1);
        if (p.needs(1)) p.x_bar(1).zeroed() = p.y_bar() * p.x(0);
    });
}
// y = tanh x, whose pullback forgets the slope 1 − y².
static Tensor slopeless_tanh(const Tensor& x) {
    return record("tanh", {x}, tanh(detach(x)).value(), saves::nothing, [](Pullback& p) { p.x_bar(0) += p.y_bar(); });
}

struct Ops {
    Tensor (*mul)(const Tensor&, const Tensor&) = lookback::mul;
    Tensor (*tanh)(const Tensor&) = lookback::tanh;
};

// ---- the small network, h_t = tanh(w h_{t−1} + x_t)

static constexpr double w0 = 0.5, h0 = 1, x1 = -0.25, x2 = 0.5, x3 = 0.25;

struct Named {
    std::string name;
    Tensor tensor;
};

static std::vector<Named> small_network(Tape& tape, const Ops& op) {
    std::vector<Named> made{{"w", tape.leaf(Array(Real(w0)))}, {"h_0", tape.leaf(Array(Real(h0)))}};
    const Tensor w = made[0].tensor;
    for (const double x : {x1, x2, x3}) {
        const std::string t = std::to_string(made.size() / 3 + 1);
        const Tensor p = op.mul(w, made.back().tensor), z = p + Real(x), h = op.tanh(z);
        made.insert(made.end(), {{"p_" + t, p}, {"z_" + t, z}, {"h_" + t, h}});
    }
    return made;
}

struct SmallGradient {
    double w, h0;
};

// The same by hand: forward three steps, then back three steps.
static double small_value(double w, double h) {
    for (const double x : {x1, x2, x3}) h = std::tanh(w * h + x);
    return h;
}
static SmallGradient small_by_hand() {
    const double h1 = std::tanh(w0 * h0 + x1), h2 = std::tanh(w0 * h1 + x2), h3 = std::tanh(w0 * h2 + x3);
    double bar = 1, w_bar = 0;  // ∂h_3/∂h_3
    for (const auto& [h, before] : {std::pair{h3, h2}, {h2, h1}, {h1, h0}}) {
        const double z_bar = bar * (1 - h * h);
        w_bar += z_bar * before;
        bar = z_bar * w0;
    }
    return {w_bar, bar};
}
static SmallGradient small_by_differences() {
    const double e = 1e-5;
    return {(small_value(w0 + e, h0) - small_value(w0 - e, h0)) / (2 * e),
            (small_value(w0, h0 + e) - small_value(w0, h0 - e)) / (2 * e)};
}

// What the tape holds: a row a record, with what it was made of, its value, and what backward found.
static std::string tape_table(const Tape& tape, const std::vector<Named>& made, const Gradients& g) {
    std::vector<std::vector<std::string>> rows{{"record", "op", "made of", "name", "value", "∂L/∂(name)"}};
    for (const auto& [name, tensor] : made) {
        const Record& r = tape[tensor.id()];
        std::string inputs;
        for (const Edge& edge : tape.inputs(r))
            inputs += (inputs.empty() ? "" : ", ") +
                      (edge.from == Tensor::constant ? "a number" : "#" + std::to_string(edge.from));
        rows.push_back({"#" + std::to_string(tensor.id()), r.op, inputs.empty() ? "–" : inputs, name,
                        number(tensor.item(), "%.6f"), number(g[tensor](), "%.6f")});
    }
    return terminal::table(rows);
}

// ---- the larger network, h_t = tanh(x_t + h_{t−1} U), and L = Σ v_t · h_t over the steps that have a loss

struct Problem {
    Array U;
    std::vector<Array> x, v;  // (1,n) each, for t = 1 … T
    explicit Problem(std::uint64_t seed) {
        Generator generator(seed);
        U = init::orthogonal(generator, {n, n}, 1.1);
        for (std::size_t t = 0; t < T; ++t)
            x.push_back(generator.normal({1, n}, 0, 0.5)), v.push_back(generator.normal({1, n}));
    }
};

using Bars = std::vector<std::vector<double>>;  // ∂L/∂h_t, t = 1 … T

static Bars by_tape(const Problem& problem, bool every_step, const Ops& op) {
    Tape tape;
    const Tensor U = tape.constant(problem.U);
    std::vector<Tensor> h;
    Tensor state = tape.leaf(filled({1, n}, 0)), loss = 0;
    for (std::size_t t = 0; t < T; ++t) {
        h.push_back(state = op.tanh(tape.constant(problem.x[t]) + matmul(state, U)));
        if (every_step || t + 1 == T) loss = loss + sum(op.mul(tape.constant(problem.v[t]), state));
    }
    const Gradients g = tape.backward(loss, h);
    Bars bars;
    for (const Tensor& state_t : h) bars.push_back(numbers(g[state_t]));
    return bars;
}

// Without a tape: states by plain loops, Jacobians by their formula U diag(1 − h²), then from T back to 1.
//   product   ∂L/∂h_t = J_{t+1} … J_T v_T
//   sum       ∂L/∂h_t = v_t + J_{t+1} ∂L/∂h_{t+1}
static Bars by_jacobians(const Problem& problem, bool every_step) {
    std::vector<Array> J;
    Array h = filled({1, n}, 0);
    for (std::size_t t = 0; t < T; ++t) {
        h = by_hand::affine(h, problem.U, problem.x[t]);
        for (Real& unit : h) unit = std::tanh(unit);
        J.push_back(by_hand::rnn_jacobian(problem.U, h));
    }
    Bars bars(T);
    bars[T - 1] = numbers(problem.v[T - 1]);
    for (std::size_t t = T - 1; t-- > 0;) {
        bars[t] = by_hand::times(J[t + 1], bars[t + 1]);
        for (std::size_t i = 0; i < n && every_step; ++i) bars[t][i] += problem.v[t].data()[i];
    }
    return bars;
}

static std::vector<double> norms(const Bars& bars) {
    std::vector<double> lengths;
    for (const auto& bar : bars) lengths.push_back(measure::length(bar));
    return lengths;
}
static std::vector<double> differences(const Bars& a, const Bars& b) {  // relative, for each t
    std::vector<double> d;
    for (std::size_t t = 0; t < a.size(); ++t) d.push_back(measure::relative_difference(a[t], b[t]));
    return d;
}
static double largest(const std::vector<double>& x) { return *std::max_element(x.begin(), x.end()); }

// ---- path lengths: how many steps back to h_1

struct Hops {
    double a_step;                           // ops that one step adds
    std::vector<double> same, from_decoder;  // steps from output t = 1 … back to h_1
    std::vector<Trace::Path> reports;
};

static Hops count_steps(const Problem& problem, std::size_t T_x) {
    Tape tape;
    const Tensor U = tape.constant(problem.U);
    const auto next = [&](const Tensor& h, std::size_t t) { return tanh(tape.constant(problem.x[t]) + matmul(h, U)); };
    const Tensor start = tape.leaf(filled({1, n}, 0));
    std::vector<Tensor> h{next(start, 0)}, s;
    while (h.size() < T_x) h.push_back(next(h.back(), h.size()));
    while (s.size() < T_x) s.push_back(next(s.empty() ? h.back() : s.back(), s.size()));  // the decoder starts at h_T
    const auto ops = [&](const Tensor& from) { return double(paths(from, {h[0]})[0].shortest); };
    Hops hops{ops(h[1]), {}, {}, {}};
    for (std::size_t t = 0; t < T_x; ++t) {
        hops.same.push_back(ops(h[t]) / hops.a_step);
        hops.from_decoder.push_back(ops(s[t]) / hops.a_step);
        const std::string number = std::to_string(t + 1);
        hops.reports.push_back({"h_" + number, "h_1", paths(h[t], {h[0]})[0]});
        hops.reports.push_back({"s_" + number, "h_1", paths(s[t], {h[0]})[0]});
    }
    return hops;
}

// ---- the steps of the lesson

static void one_multiplication(Lesson& lesson, const Ops& op) {
    lesson.step("One multiplication");
    lesson.say(
        "While a program computes, a tape writes down every operation: a record says which op it was and which "
        "records it was made of. Take L = a · b with a = 3 and b = 2.");
    Tape tape;
    const Tensor a = tape.leaf(filled({}, 3)), b = tape.leaf(filled({}, 2));
    const Tensor y = op.mul(a, b);
    const Gradients g = tape.backward(y, {a, b, y});
    lesson.line(tape_table(tape, {{"a", a}, {"b", b}, {"L", y}}, g));
    lesson.say(
        "The last column is read from the bottom up. ∂L/∂L is 1. The record of a product knows one rule: if a "
        "moves by a little ε, then a · b moves by b · ε. So it sends 1 · b to a and 1 · a to b. That rule is its "
        "pullback; every op has one, and nothing else is needed.");
    lesson.check("01.multiply", "a · b: ∂L/∂a is b", eq, g[a](), 2, 0, "product rule");
}

static void three_steps(Lesson& lesson, const Ops& op) {
    lesson.step("A network of one unit and three steps, record by record");
    lesson.say(
        "h_t = tanh(w · h_{t−1} + x_t), where w = 0.5 is the same weight at each step, h_0 = 1, the inputs x are "
        "−0.25, 0.5 and 0.25, and L = h_3. With p = w · h and z = p + x each step is three records:");
    Tape tape;
    const std::vector<Named> made = small_network(tape, op);
    std::vector<Tensor> all;
    for (const Named& one : made) all.push_back(one.tensor);
    const Tensor w = made[0].tensor, h_0 = made[1].tensor, loss = made.back().tensor;
    std::vector<double> parts;
    const Gradients g = tape.backward(loss, all);
    tape.backward(loss, all, {.observer = [&](const Contribution& c) {
                      if (c.from == w.id()) parts.push_back(c.x_bar());
                  }});
    lesson.line(tape_table(tape, made, g));
    lesson.say(
        "Again from the bottom up: tanh has the slope 1 − h², so z_3 gets (1 − h_3²); adding a number changes "
        "nothing, so p_3 gets the same; the product sends w times that to h_2, and so on. Going back one step "
        "multiplies by w · (1 − h²): that is the whole story of gradients in a recurrent network.");
    lesson.say("The weight is used three times, so three contributions arrive at w and are added: " +
               number(parts[0], "%.6f") + " + " + number(parts[1], "%.6f") + " + " + number(parts[2], "%.6f") + " = " +
               number(parts[0] + parts[1] + parts[2], "%.6f") + ".");

    lesson.step("The same without the tape");
    const SmallGradient tape_says{g[w](), g[h_0]()}, hand = small_by_hand(), difference = small_by_differences();
    const auto row = [](const char* name, double a, double b, double c) {
        return std::vector<std::string>{name, number(a, "%.12f"), number(b, "%.12f"), number(c, "%.12f")};
    };
    lesson.line(terminal::table({{"", "tape", "by hand", "by differences"},
                                 row("∂L/∂w", tape_says.w, hand.w, difference.w),
                                 row("∂L/∂h_0", tape_says.h0, hand.h0, difference.h0)}));
    lesson.say(
        "By hand is a loop of plain numbers over the three steps. By differences knows no rule at all: it moves "
        "w (or h_0) by 0.00001 to either side and divides the change of L by the distance.");
    lesson.check("01.by_hand", "Three steps: tape − by hand", le,
                 std::max(std::abs(tape_says.w - hand.w), std::abs(tape_says.h0 - hand.h0)), 0, 1e-14, "chain rule");
    lesson.check("01.differences", "Three steps: tape − differences", le,
                 std::max(std::abs(tape_says.w - difference.w), std::abs(tape_says.h0 - difference.h0)), 0, 1e-9,
                 "definition of a derivative");
    lesson.trace().graph = trace_graph(loss);
}

static void many_units(Lesson& lesson, const Ops& op) {
    const Problem problem(lesson.seed());
    lesson.step("Eight units: slopes become Jacobians");
    lesson.say(
        "Now h_t has eight numbers, and so has the gradient ∂L/∂h_t. The slope of a step becomes a matrix, the "
        "Jacobian J_t, whose entry (i, j) says how unit j after the step moves with unit i before it. One step "
        "back is g ← J_t · g. If the loss sees the last of 20 states alone, then the formula of the course (the text "
        "“Attention Fundamentals”, whose claims these lessons test) is complete: ∂L/∂h_t is J_{t+1} · … · J_20 · "
        "∂L/∂h_20 (the course has rows for columns, and so the other "
        "order). How far is the tape from that product?");
    const Bars last_tape = by_tape(problem, false, op), product = by_jacobians(problem, false);
    const double last_error = largest(differences(last_tape, product));
    lesson.line("largest difference of tape and product, relative:  " + number(last_error, "%.1e"));

    lesson.step("A loss at every step, as when each word is to be predicted");
    lesson.say(
        "Now let all 20 states have a loss of their own. h_1 then matters twice: by its own loss, and through "
        "all later states. The product alone, started at the last step, is one way of 20.");
    lesson.predict("missing");
    const Bars every_tape = by_tape(problem, true, op), sum_of_ways = by_jacobians(problem, true);
    const std::vector<double> gap = differences(product, every_tape), theory = differences(product, sum_of_ways);
    lesson.line(terminal::log_chart(
        {{'p', "the product alone (= the tape when the last step alone has a loss)", norms(product)},
         {'E', "the tape when every step has a loss", norms(every_tape)}},
        "time step t", "‖∂L/∂h_t‖, the length of the gradient", std::min<std::size_t>(terminal::width(), 100), 13));
    lesson.reveal("missing", gap[0], theory[0]);
    lesson.say(
        "1 means that all of it is missing. What is true in general is a sum, ∂L/∂h_t = Σ_τ J_{t+1} · … · J_τ · "
        "∂L_τ/∂h_τ over all steps τ ≥ t; it is computed by the loop g ← ∂L_t/∂h_t + J_{t+1} · g, and that is "
        "exactly what `+=` on a tape does. Attention, later, adds further ways into the same sum.");
    const double every_error = largest(differences(every_tape, sum_of_ways));
    lesson.check("01.product", "Loss at the end: tape − product", le, last_error, 0, 1e-12, "chain rule");
    lesson.check("01.sum", "Loss at every step: tape − sum", le, every_error, 0, 1e-12, "chain rule, all ways");
    lesson.check("01.missing", "… and what the product alone misses", ge, largest(gap), 0.5, 0,
                 "our own measurement: the course's formula has one of the terms");

    const std::vector<double> t = measure::range(1, T);
    const auto series = [&](const char* name, const Bars& bars) {
        lesson.trace().series.push_back(
            {.name = name, .x_label = "time step t", .x = t, .y_label = "‖∂L/∂h_t‖", .y = norms(bars)});
    };
    series("loss at the end", last_tape);
    series("loss at the end theory", product);
    series("loss at every step", every_tape);
    series("loss at every step theory", sum_of_ways);
    lesson.trace().series.push_back({.name = "missing from the product",
                                     .x_label = "time step t",
                                     .x = t,
                                     .y_label = "part of ‖∂L/∂h_t‖",
                                     .y = gap});
}

static void path_lengths(Lesson& lesson) {
    lesson.step("Path length: how many steps a gradient must take");
    const std::size_t T_x = 6;
    const Hops hops = count_steps(Problem(lesson.seed()), T_x);
    lesson.say(
        "The tape also knows distances. How many time steps lie between output word t and input word 1? The course "
        "says t − 1. That holds for a tagger, which writes an output at each input. A translator first reads all T_x "
        "words and writes then: from its output t it is (T_x − 1) + t. Here T_x = 6. A row is an output word; "
        "“counted” is the shortest path on the tape in ops, divided by the " +
        number(hops.a_step) + " ops of a time step, and the formula stands beside it.");
    std::vector<std::vector<std::string>> rows{
        {"output word t", "tagger, counted", "t − 1", "translator, counted", "(T_x − 1) + t"}};
    double same = 0, decoder = 0;  // largest distance from the formulas
    for (std::size_t t = 1; t <= T_x; ++t) {
        const double a = hops.same[t - 1], b = hops.from_decoder[t - 1];
        rows.push_back({number(double(t)), number(a), number(double(t - 1)), number(b), number(double(T_x - 1 + t))});
        same = std::max(same, std::abs(a - double(t - 1)));
        decoder = std::max(decoder, std::abs(b - double(T_x - 1 + t)));
    }
    lesson.line(terminal::table(rows));
    lesson.say(
        "Either way the path grows with the distance, one step a word, and each step multiplies by a Jacobian. "
        "What such products do is lesson 02.");
    lesson.check("01.path_same_length", "Tagger: steps counted − (t − 1)", exact0, same, 0, 0, "counted on the tape");
    lesson.check("01.path_translator", "Translator: counted − ((T_x − 1) + t)", exact0, decoder, 0, 0,
                 "counted on the tape");
    const std::vector<double> t = measure::range(1, T_x);
    lesson.trace().paths = hops.reports;
    lesson.trace().series.push_back({.name = "one output an input",
                                     .x_label = "output word t",
                                     .x = t,
                                     .y_label = "path length",
                                     .y_unit = "steps",
                                     .y = hops.same});
    lesson.trace().series.push_back({.name = "reads, then writes",
                                     .x_label = "output word t",
                                     .x = t,
                                     .y_label = "path length",
                                     .y_unit = "steps",
                                     .y = hops.from_decoder});
}

int main(int argc, char** argv) {
    Lesson lesson("01_tape_and_chain", "A tape walked backwards is the chain rule; one product is only a part of it.");
    lesson.prediction("missing", "Which part of ∂L/∂h_1 does the product alone miss, from 0 (none) to 1 (all)?");
    lesson.exercise(
        "gradient", "h_t = ½ h_{t−1} and L = h_2 + h_3. What is ∂L/∂h_1?",
        [] {
            Tape tape;
            const Tensor h1 = tape.leaf(filled({}, 1)), h2 = Real(0.5) * h1, h3 = Real(0.5) * h2;
            return double(tape.backward(h2 + h3, {h1})[h1]());
        },
        1e-9, "two ways lead from h_1 to L: one step to h_2, and two steps to h_3. Multiply along each, then add.");
    lesson.damage("skip-add", "products write `=` where a tape must add with `+=`");
    lesson.damage("drop-slope", "the pullback of tanh leaves out its slope 1 − h²");
    return lesson.run(argc, argv, [&] {
        Ops op;
        if (lesson.broken("skip-add")) op.mul = overwriting_mul;
        if (lesson.broken("drop-slope")) op.tanh = slopeless_tanh;
        one_multiplication(lesson, op);
        three_steps(lesson, op);
        many_units(lesson, op);
        path_lengths(lesson);
        lesson.trace().config["units"] = std::int64_t(n);
        lesson.trace().config["steps"] = std::int64_t(T);
    });
}
