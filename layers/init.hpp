// What weights are before training. Each takes an explicit generator; a matrix is (in,out), as in x W.
#pragma once
#include "engine/random.hpp"

namespace lookback::init {

// Uniform in ±bound.      throws ValueError if bound < 0
Array uniform(Generator& generator, const Shape& shape, double bound);
// Uniform in ±1/√fan: PyTorch's default for Linear (fan = I) and for all of RNN, LSTM and GRU (fan = H).
// throws ValueError if fan = 0
Array uniform_by_fan(Generator& generator, const Shape& shape, std::size_t fan);
// Uniform in ±√(6 / (in + out)): keeps the variance of values and of gradients.      throws ShapeError unless 2-D
// Glorot & Bengio 2010
Array glorot_uniform(Generator& generator, const Shape& shape);
// gain · Q with orthonormal rows or columns, whichever are fewer; all such Q are equally likely. A square one scales
// the length of every vector and gradient that it carries by gain.
// throws ShapeError unless 2-D      Saxe, McClelland & Ganguli 2014
Array orthogonal(Generator& generator, const Shape& shape, double gain = 1);
// scale · I: with relu, an RNN that at first copies its state (IRNN).   → (n,n)      Le, Jaitly & Hinton 2015
Array identity(std::size_t n, double scale = 1);

}  // namespace lookback::init
