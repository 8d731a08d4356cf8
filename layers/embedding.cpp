#include "embedding.hpp"
#include "check.hpp"
#include "engine/ops/gather.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/movement.hpp"

namespace lookback {

Embedding::Embedding(Parameter table_) : table(std::move(table_)) {
    if (table.shape().size() != 2) fail<ShapeError>("Embedding", "the table must be (V,E), not " + text(table.shape()));
    if (table.size() == 0) fail<ValueError>("Embedding", "neither V nor E may be 0: " + text(table.shape()));
}

Embedding::Embedding(std::size_t vocabulary, std::size_t width, Generator& generator)
    : Embedding(Parameter(generator.normal({vocabulary, width}), "table")) {}

Tensor Embedding::operator()(Tape& tape, const Indices& ids) const { return embedding(tape, table, ids); }

Tensor Embedding::scores(const Tensor& h) const {
    check_width("Embedding", "h", h.shape(), width(), "the table", table.shape());
    if (h.rank() == 1) return squeeze(scores(unsqueeze(h, 0)), 0);
    return matmul_transposed(h, table);
}

}  // namespace lookback
