// A learned vector for each token.
#pragma once
#include "engine/indices.hpp"
#include "engine/random.hpp"
#include "parameters.hpp"

namespace lookback {

// Row ids[…] of a table. With it a model of tokens begins, so it's given the tape.   ids (…) → (…,E)
// From the start the entries are normal, mean 0 and variance 1 (PyTorch's default).
// throws IndexError on an id outside 0 … V-1; ValueError if V or E is 0
struct Embedding {
    Parameter table;  // (V,E)

    Embedding(std::size_t vocabulary, std::size_t width, Generator& generator);
    explicit Embedding(Parameter table);

    Tensor operator()(Tape& tape, const Indices& ids) const;
    // How well h fits each token, h tableᵀ: an output layer that shares the table.   h (…,E) → (…,V)
    // Press & Wolf 2017.   throws ShapeError if h's last axis is not E
    Tensor scores(const Tensor& h) const;
    std::size_t width() const { return table.shape()[1]; }
    void for_each_parameter(const std::string& prefix, const Visitor& f) { f(join(prefix, "table"), table); }
};

}  // namespace lookback
