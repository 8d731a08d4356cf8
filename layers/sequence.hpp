// Cells over time: one cell over a sequence, in either direction, and layers of them. Cell is RNN, LSTM, GRU, or any
// struct with the members that cell.hpp lists (State, start, project, step).
//
//   const auto y = unroll(lstm, x, lstm.start(tape, B), {.visible = padding(lengths, T)});
//   y.outputs (B,T,H)    y.last.h (B,H)    y.states[t].h, to ask backward for ∂L/∂h_t
#pragma once
#include <functional>
#include <optional>
#include "cell.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/movement.hpp"

namespace lookback {

enum class Direction { forward, backward };

struct UnrollOptions {
    Direction direction = Direction::forward;
    std::optional<Mask> visible = {};  // (B,T), or (B,1,T) as padding() makes it; all if left out
    std::size_t window = 0;  // truncated backpropagation: the state is detached after this many steps; 0: never
};

template <class Cell> struct Sequence {
    Tensor outputs;                            // (B,T,H): h at each time, 0 where nothing is visible
    std::vector<typename Cell::State> states;  // after the step at each time, in order of time for both directions
    typename Cell::State last;                 // after all steps; the start if there are none

    std::vector<Tensor> hidden() const {  // h of each state
        std::vector<Tensor> h;
        for (const auto& state : states) h.push_back(state.h);
        return h;
    }
};

// Which rows of a batch take part in each step.
class Visible {
public:
    // throws ShapeError unless x is (B,T,I) and the mask (B,T) or (B,1,T)
    Visible(const char* layer, const Tensor& x, const std::optional<Mask>& mask);
    enum class Rows { none, some, all };
    Rows rows(std::size_t t) const;
    Tensor zeroed(const Tensor& x) const;  // x (B,T,…) with 0 where nothing is visible
    // Row by row: `now` where visible at time t, `old` elsewhere.
    template <class State> State chosen(std::size_t t, const State& now, const State& old) const {
        const Mask visible = step(t);
        return now.map([&](const Tensor& a, const Tensor& b) { return where(visible, a, b); }, old);
    }

private:
    Mask step(std::size_t t) const;  // (B,1)
    std::size_t B_, T_;
    std::optional<Mask> mask_;  // (B,T,1); none if all is visible
    std::vector<std::size_t> counts_;
};

// The states of a cell over x (B,T,I), from `start`. All of x W + b is one product; then T steps.
// A row that is not visible at some time keeps its state, bit for bit, and neither its input nor its output there sends
// a gradient. So the last state of a padded row is that of its last valid step, and backwards it starts at that step.
// T = 0 gives outputs (B,0,H) and the start; T = 1 is the cell's call.
// throws ShapeError if x, the mask or a part of the start does not fit
template <class Cell>
Sequence<Cell> unroll(const Cell& cell, const Tensor& x, const typename Cell::State& start,
                      const UnrollOptions& options = {}) {
    const Visible visible("unroll", x, options.visible);
    const std::size_t B = x.shape(0), T = x.shape(1), H = start.h.shape(-1);
    start.map([&](const Tensor& part) { return cell::check_state("unroll", "part", part, B, H), part; });

    Sequence<Cell> y{x.tape().constant(filled({B, 0, H}, 0)), std::vector<typename Cell::State>(T), start};
    if (T == 0) return y;
    Tensor a = cell.project(visible.zeroed(x));  // (B,T,nH)
    for (std::size_t k = 0; k < T; ++k) {
        const std::size_t t = options.direction == Direction::forward ? k : T - 1 - k;
        if (options.window && k && k % options.window == 0) y.last = y.last.map(detach);
        if (visible.rows(t) != Visible::Rows::none) {
            const auto next = cell.step({a, t}, y.last);
            y.last = visible.rows(t) == Visible::Rows::all ? next : visible.chosen(t, next, y.last);
        }
        y.states[t] = y.last;
    }
    a = {};
    y.outputs = visible.zeroed(stack(y.hidden(), 1));
    return y;
}

// The same state as constants of a tape: to begin the next window of truncated backpropagation on a tape that is new or
// will be rewound.
template <class State> State carry(Tape& tape, const State& state) {
    return state.map([&](const Tensor& part) { return tape.constant(part.shared()); });
}

struct Window {
    std::size_t start, stop;
};
// 0 … T cut into windows of a length; the last may be shorter.   for slice(x, 1, start, stop)
// throws ValueError if the length is 0
std::vector<Window> windows(std::size_t T, std::size_t length);

struct RecurrentOptions {
    std::size_t layers = 1;
    bool bidirectional = false;
};

// Layers of cells: each runs over the outputs of the one below. A bidirectional layer has a second cell that runs from
// the end, and its output is both side by side, [forward backward]: (B,T,2H).
// Cells are ordered as PyTorch orders them: layer by layer, forward before backward.
template <class Cell> struct Recurrent {
    std::vector<Cell> cells;
    bool bidirectional;

    using State = typename Cell::State;
    struct Call {
        std::optional<Mask> visible = {};                   // as in unroll
        std::function<Tensor(const Tensor&)> between = {};  // what happens to outputs between layers: dropout
    };
    struct Result {
        Tensor outputs;                         // (B,T,H) or (B,T,2H), of the last layer
        std::vector<Sequence<Cell>> sequences;  // one a cell
        std::vector<State> last() const {
            std::vector<State> states;
            for (const Sequence<Cell>& s : sequences) states.push_back(s.last);
            return states;
        }
    };

    // throws ValueError if there are no layers
    template <class... CellOptions>
    Recurrent(std::size_t inputs, std::size_t hidden, Generator& generator, const RecurrentOptions& options = {},
              const CellOptions&... cell_options)
        : bidirectional(options.bidirectional) {
        if (options.layers == 0) fail<ValueError>("Recurrent", "at least one layer");
        for (std::size_t k = 0; k < options.layers * directions(); ++k) {
            const std::size_t below = k < directions() ? inputs : hidden * directions();
            cells.emplace_back(below, hidden, generator, cell_options...);
        }
    }

    // One start for each cell; none at all means zeros.   throws ShapeError, ValueError on another number of starts
    Result operator()(const Tensor& x, const std::vector<State>& starts = {}, const Call& call = {}) const {
        if (!starts.empty() && starts.size() != cells.size())
            fail<ValueError>("Recurrent", std::to_string(starts.size()) + " initial states for " +
                                              std::to_string(cells.size()) + " cells");
        Result y{x, {}};
        for (std::size_t k = 0; k < cells.size(); k += directions()) {
            if (k && call.between) y.outputs = call.between(y.outputs);
            const Tensor below = y.outputs;
            std::vector<Tensor> sides;
            for (std::size_t d = 0; d < directions(); ++d) {
                const Cell& cell = cells[k + d];
                const State start = starts.empty() ? cell.start(x.tape(), x.shape(0)) : starts[k + d];
                const Direction direction = d == 0 ? Direction::forward : Direction::backward;
                y.sequences.push_back(
                    unroll(cell, below, start, {.direction = direction, .visible = call.visible, .window = 0}));
                sides.push_back(y.sequences.back().outputs);
            }
            y.outputs = bidirectional ? concat(sides, -1) : sides[0];
        }
        return y;
    }

    std::size_t directions() const { return bidirectional ? 2 : 1; }
    void for_each_parameter(const std::string& prefix, const Visitor& f) {  // "0.W", or "0.forward.W", "0.backward.W"
        for (std::size_t k = 0; k < cells.size(); ++k) {
            const std::string layer = join(prefix, std::to_string(k / directions()));
            const char* side = k % directions() ? "backward" : "forward";
            cells[k].for_each_parameter(bidirectional ? join(layer, side) : layer, f);
        }
    }
};

}  // namespace lookback
