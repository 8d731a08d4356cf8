#include "broadcast.hpp"
#include <cstring>
#include "kernels.hpp"

namespace lookback {

std::string text(const Shape& shape) {
    std::string s = "(";
    for (std::size_t i = 0; i < shape.size(); ++i) s += (i ? "," : "") + std::to_string(shape[i]);
    return s + ")";
}

std::size_t checked_size(const std::string& op, const Shape& shape) {
    constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(Real);
    std::size_t size = 1;  // of the axes that are not empty: strides are made of them, and a sum over the empty ones
    bool empty = false;
    for (std::size_t n : shape) {
        empty |= n == 0;
        if (n == 0) continue;
        if (size > most / n) fail<ShapeError>(op, "too many elements: " + text(shape));
        size *= n;
    }
    return empty ? 0 : size;
}

Shape broadcast_shape(const char* op, const Shape& a, const Shape& b) {
    if (a == b) return a;
    const Shape &longer = a.size() < b.size() ? b : a, &shorter = a.size() < b.size() ? a : b;
    const std::size_t lead = longer.size() - shorter.size();
    Shape result = longer;
    for (std::size_t i = 0; i < shorter.size(); ++i) {
        std::size_t& n = result[lead + i];
        if (n == 1)
            n = shorter[i];
        else if (shorter[i] != 1 && shorter[i] != n)
            fail<ShapeError>(op, "shapes do not broadcast: " + text(a) + " and " + text(b));
    }
    checked_size(op, result);
    return result;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
    if (from.size() > to.size()) return false;
    const std::size_t lead = to.size() - from.size();
    for (std::size_t i = 0; i < from.size(); ++i)
        if (from[i] != 1 && from[i] != to[lead + i]) return false;
    return true;
}

Array broadcast_to(const char* op, const Array& x, const Shape& shape) {
    if (!broadcasts_to(x.shape(), shape))
        fail<ShapeError>(op, text(x.shape()) + " does not broadcast to " + text(shape));
    checked_size(op, shape);
    Array y = Array::from_shape(shape);
    const std::size_t n = shape.empty() ? 1 : shape.back();
    for_each_broadcast_row(shape, x.shape(), [&](std::size_t to, std::size_t from, bool repeated) {
        if (repeated)
            std::fill_n(y.data() + to, n, x.data()[from]);
        else
            std::memcpy(y.data() + to, x.data() + from, n * sizeof(Real));
    });
    return y;
}

void sum_to_shape(const Array& from, Target to) {
    const Shape& shape = from.shape();
    if (!broadcasts_to(to.array.shape(), shape))
        fail<ShapeError>("sum_to_shape", text(to.array.shape()) + " was never broadcast to " + text(shape));
    const std::size_t n = shape.empty() ? 1 : shape.back();
    Vector<double> total(to.array.size(), 0.0);
    for_each_broadcast_row(shape, to.array.shape(), [&](std::size_t row, std::size_t at, bool repeated) {
        const Real* x = from.data() + row;
        double* y = total.data() + at;
        if (repeated)
            *y += sum_of(n, [x](std::size_t j) { return x[j]; });
        else
            for (std::size_t j = 0; j < n; ++j) y[j] += x[j];
    });
    for (std::size_t i = 0; i < total.size(); ++i) {
        Real& y = to.array.data()[i];
        y = Real(to.add ? y + total[i] : total[i]);
    }
}

std::size_t normalise_axis(const char* op, int axis, const Shape& shape) {
    const long rank = long(shape.size());
    if (axis < -rank || axis >= rank)
        fail<ShapeError>(
            op, "axis " + std::to_string(axis) + " of an array with " + std::to_string(rank) + " axes: " + text(shape));
    return std::size_t(axis < 0 ? axis + rank : axis);
}

std::size_t normalise_new_axis(const char* op, int axis, const Shape& shape) {
    const long rank = long(shape.size()) + 1;
    if (shape.size() == max_axes)
        fail<ShapeError>(op, "at most " + std::to_string(max_axes) + " axes, and they are there: " + text(shape));
    if (axis < -rank || axis >= rank)
        fail<ShapeError>(op, "new axis " + std::to_string(axis) + " for an array with " + std::to_string(rank - 1) +
                                 " axes: " + text(shape));
    return std::size_t(axis < 0 ? axis + rank : axis);
}

SmallVector<bool, max_axes> Axes::flags(const char* op, const Shape& shape) const {
    SmallVector<bool, max_axes> flags(shape.size(), all_);
    for (int axis : axes_) {
        bool& flag = flags[normalise_axis(op, axis, shape)];
        if (flag) fail<ShapeError>(op, "axis " + std::to_string(axis) + " is named twice, shape " + text(shape));
        flag = true;
    }
    return flags;
}

}  // namespace lookback
