// What the recurrent cells RNN, LSTM and GRU share. A cell is a struct of parameters with
//   State                    a struct of Tensors (B,H), h first; state.map(f) is the state of f(h) …,
//                            state.map(f, other) that of f(h, other.h) …
//   State start(tape, B)     zeros
//   Tensor project(x)        x W + b, for any leading axes: a layer takes all times in one product
//   State step(a, state)     the rest of the cell, fused into one record; a is a StepInput: one time of many
//   State cell(x, state)     step(project(x), state)
//   State composed(x, state) the same in plain ops, to read
// W is (I,nH) and U (H,nH) for n gates, so that both multiply from the right; one bias a gate.
#pragma once
#include "check.hpp"
#include "engine/ops/recurrent.hpp"
#include "engine/random.hpp"
#include "parameters.hpp"

namespace lookback {

// One layer and direction as PyTorch keeps it: weights (nH,I) and (nH,H), transposed to ours, and two biases (nH),
// whose sum is ours (but see GRU).
struct PyTorchWeights {
    Array weight_ih, weight_hh, bias_ih, bias_hh;
};

namespace cell {

// One parameter of a cell, as it is from the start: uniform in ±1/√H, as in PyTorch (where b is a sum of two such).
Parameter weights(Generator& generator, const Shape& shape, std::size_t H, const char* name);
// throws ShapeError naming the layer, unless W (I,nH), U (H,nH) and b (nH) fit
void check_parameters(const char* layer, std::size_t n, const Parameter& W, const Parameter& U, const Parameter& b);
// throws ShapeError naming the layer, unless x is (B,I)
void check_input(const char* layer, const Tensor& x, const Parameter& W);
// throws ShapeError naming the layer, unless the part of the state is (B,H)
void check_state(const char* layer, const char* name, const Tensor& part, std::size_t B, std::size_t H);
Tensor zeros(Tape& tape, std::size_t B, std::size_t H);
Tensor alone(const StepInput& a);  // (B,nH), for a step in plain ops

// Into W, U and b, and back with all of b in bias_ih.   throws ShapeError naming the layer; then nothing has changed
void from_pytorch(const char* layer, const PyTorchWeights& theirs, Parameter& W, Parameter& U, Parameter& b);
PyTorchWeights to_pytorch(const Parameter& W, const Parameter& U, const Parameter& b);

}  // namespace cell
}  // namespace lookback
