#include "gather.hpp"
#include "engine/kernels.hpp"
#include "engine/pullback.hpp"

namespace lookback {

// throws IndexError unless every index is in 0 … n-1
static void check_indices(const char* op, const char* what, const Indices& ids, std::size_t n, const std::string& of) {
    for (std::size_t i = 0; i < ids.size(); ++i)
        if (std::uint64_t(ids[i]) >= n)  // a negative one is a huge one
            fail<IndexError>(
                op, what + (" " + std::to_string(ids[i])) + " at place " + std::to_string(i) + " is outside " + of);
}

Tensor embedding(const Tensor& table, const Indices& ids) {
    if (table.rank() != 2) fail<ShapeError>("embedding", "the table is not (V,E): " + text(table.shape()));
    const std::size_t rows = table.shape()[0];
    check_indices("embedding", "id", ids, rows, "a table of " + std::to_string(rows) + " rows");
    if (ids.shape().size() == max_axes)
        fail<ShapeError>("embedding", "at most " + std::to_string(max_axes - 1) + " axes of ids: " + text(ids.shape()));
    Shape shape = ids.shape();
    shape.push_back(table.shape()[1]);
    checked_size("embedding", shape);
    Array y = Array::from_shape(shape);
    gather_rows(table.value(), ids, y);
    return record(
        "embedding", {table}, std::move(y), saves::nothing,
        [](Pullback& p) {
            if (p.needs(0)) scatter_add_rows(p.y_bar(), p.attributes<Indices>(), p.x_bar(0).zeroed());
        },
        ids);
}

Tensor embedding(Tape& tape, const Parameter& table, const Indices& ids) { return embedding(tape.leaf(table), ids); }

struct Gathering {
    std::size_t axis;
    Indices ids;
};

Tensor gather(const Tensor& x, int axis, const Indices& ids) {
    const Shape &shape = x.shape(), &picked = ids.shape();
    const std::size_t k = normalise_axis("gather", axis, shape);
    bool fits = picked.size() == shape.size();
    for (std::size_t j = 0; fits && j < shape.size(); ++j) fits = j == k || picked[j] <= shape[j];
    if (!fits)
        fail<ShapeError>("gather", "indices do not fit beside axis " + std::to_string(axis) + ": " + text(shape) +
                                       " by " + text(picked));
    check_indices("gather", "index", ids, shape[k], "axis " + std::to_string(axis) + " of " + text(shape));
    Array y = Array::from_shape(picked);
    gather(x.value(), k, ids, y);
    return record(
        "gather", {x}, std::move(y), saves::nothing,
        [](Pullback& p) {
            const auto& [along, indices] = p.attributes<Gathering>();
            if (p.needs(0)) scatter_add(p.y_bar(), along, indices, p.x_bar(0).zeroed());
        },
        Gathering{k, ids});
}

}  // namespace lookback
