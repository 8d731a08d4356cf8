// Floating-point operations, counted on a tape: a multiplication and an addition are two. Only products of matrices are
// counted, which at any useful size are nearly all of the work.
#pragma once
#include <string_view>
#include "engine/tape.hpp"

namespace lookback::cost {

// The numbers tanh(q_i + k_j) of all pairs, which an additive score keeps.
inline double pairs(const Tape& tape, const Record& additive_scores) {
    return double(tape.edges(additive_scores)[additive_scores.inputs].saved->size());
}

// Of the products that the records from `first` on made: 2 M K N for (M,K)·(K,N), the h U of fused recurrent steps, the
// v · tanh of additive scores, and of attention the scores Q Kᵀ and the means α V, as if nothing were hidden.
inline double product_flops(const Tape& tape, std::size_t first = 0) {
    const auto size = [](const Shape& shape, std::size_t without_last) {
        double n = 1;
        for (std::size_t i = 0; i + without_last < shape.size(); ++i) n *= double(shape[i]);
        return n;
    };
    double flops = 0;
    for (std::size_t id = first; id < tape.size(); ++id) {
        const Record& r = tape[Id(id)];
        const auto shape_of = [&](std::size_t input) -> const Shape& { return tape[tape.inputs(r)[input].from].shape; };
        const std::string_view op = r.op;
        if (op == "matmul" || op == "matmul_transposed" || op == "affine") {
            const bool left = tape.inputs(r)[0].from != Tensor::constant;  // a constant has no record to ask
            if (!left && tape.inputs(r)[1].from == Tensor::constant)
                fail<TapeError>("product_flops", "a product of constants, of which the tape knows no size");
            const Shape& shape = shape_of(left ? 0 : 1);
            const bool inner_is_last = left || op == "matmul_transposed";
            flops += 2 * size(r.shape, 0) * double(shape[shape.size() - (inner_is_last ? 1 : 2)]);
        } else if (op == "rnn_step" || op == "gru_step" || (op == "lstm_step" && r.sibling == 0)) {
            flops += 2 * double(r.shape[0]) * size(shape_of(op == "lstm_step" ? 3 : 2), 0);
        } else if (op == "additive_scores") {
            flops += 2 * pairs(tape, r);
        } else if (op == "attend" && r.sibling == 0) {
            const bool left = tape.inputs(r)[0].from != Tensor::constant;
            const Shape& weights = tape[Id(id + 1)].shape;
            flops += 2 * size(weights, 0) * double(shape_of(left ? 0 : 1).back() + r.shape.back());
        }
    }
    return flops;
}

// Of what scores take besides products: an operation for each number of a sum, a scaling, a tanh.
inline double elementwise_flops(const Tape& tape, std::size_t first = 0) {
    double flops = 0;
    for (std::size_t id = first; id < tape.size(); ++id) {
        const Record& r = tape[Id(id)];
        const std::string_view op = r.op;
        double size = 1;
        for (const std::size_t n : r.shape) size *= double(n);
        if (op == "add" || op == "mul" || op == "tanh" || op == "affine") flops += size;  // affine: of its bias
        if (op == "additive_scores") flops += 2 * pairs(tape, r);
    }
    return flops;
}

}  // namespace lookback::cost
