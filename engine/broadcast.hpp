// Broadcasting, as NumPy has it: shapes are aligned at their last axis, and an axis of 1 (or a missing one) is
// repeated. Its transpose, needed by every pullback of a broadcasting op, is a sum: sum_to_shape.
#pragma once
#include <vector>
#include "array.hpp"

namespace lookback {

// Where a result goes: written into `array`, or added to what is there.
struct Target {
    Array& array;
    bool add;
};

// (3,1), (2,1,4) → (2,3,4).   throws ShapeError "[op] shapes do not broadcast: (2,3) and (4)"
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b);
bool broadcasts_to(const Shape& from, const Shape& to);

// x repeated to `shape`.   throws ShapeError
Array broadcast_to(const char* op, const Array& x, const Shape& shape);

// `from` summed over the axes along which `to` was repeated to become it; sums run in double.
// throws ShapeError unless `to` broadcasts to `from`
void sum_to_shape(const Array& from, Target to);

// Calls f(place of the row in `large`, place of its source in `small`, repeated) for each row of the last axis of
// `large`. A row is n contiguous elements; `repeated` says that the source is one element, repeated along the row.
template <class F> void for_each_broadcast_row(const Shape& large, const Shape& small, F f) {
    const std::size_t rank = large.size(), lead = rank - small.size();
    const std::size_t n = rank ? large[rank - 1] : 1;
    std::size_t stride[max_axes] = {};  // of `small`, 0 along repeated axes
    std::size_t rows = 1, index[max_axes] = {}, at = 0;
    for (std::size_t k = 0; k + 1 < rank; ++k) rows *= large[k];
    for (std::size_t k = rank, size = 1; k-- > lead;) {
        stride[k] = small[k - lead] == 1 ? 0 : size;
        size *= small[k - lead];
    }
    const bool repeated = rank == 0 || (stride[rank - 1] == 0 && n != 1);
    for (std::size_t r = 0; n && r < rows; ++r) {
        f(r * n, at, repeated);
        for (std::size_t k = rank ? rank - 1 : 0; k-- > 0;) {  // the next row, as an odometer
            at += stride[k];
            if (++index[k] < large[k]) break;
            at -= stride[k] * index[k];
            index[k] = 0;
        }
    }
}

// -1 is the last axis.   throws ShapeError "[op] axis 3 of an array with 2 axes: (2,3)"
std::size_t normalise_axis(const char* op, int axis, const Shape& shape);
// For an op that makes an array with one more axis than `shape`: stack, unsqueeze.
std::size_t normalise_new_axis(const char* op, int axis, const Shape& shape);

// The axes a reduction runs over: all by default, one, or several: sum(x), sum(x, -1), sum(x, {0, 2}).
class Axes {
public:
    Axes() = default;  // all
    Axes(int axis) : axes_{axis}, all_(false) {}
    Axes(std::initializer_list<int> axes) : axes_(axes), all_(false) {}
    // a flag for each axis of `shape`: is it reduced.   throws ShapeError on an axis outside, or named twice
    SmallVector<bool, max_axes> flags(const char* op, const Shape& shape) const;

private:
    std::vector<int> axes_;
    bool all_ = true;
};

}  // namespace lookback
