// What the tests of the recurrent cells share.
#pragma once
#include <vector>
#include "layers/gru.hpp"
#include "layers/lstm.hpp"
#include "layers/rnn.hpp"
#include "tests/support/rows.hpp"

namespace lookback::test {

template <class State> std::vector<Tensor> parts(const State& state) {
    std::vector<Tensor> all;
    state.map([&](const Tensor& part) { return all.push_back(part), part; });
    return all;
}

// A state of random leaves.
template <class Cell> typename Cell::State random_state(const Cell& cell, Tape& tape, std::size_t B) {
    unsigned seed = 20;
    return cell.start(tape, B).map([&](const Tensor& part) { return tape.leaf(uniform(part.shape(), -1, 1, ++seed)); });
}

template <class Cell> std::vector<Tensor> parameters(Cell& cell) {
    std::vector<Tensor> all;
    cell.for_each_parameter("", [&](const std::string&, Parameter& p) { all.push_back(p); });
    return all;
}

}  // namespace lookback::test
