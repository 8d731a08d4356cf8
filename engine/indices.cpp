#include "indices.hpp"
#include "broadcast.hpp"

namespace lookback {

static void check_count(const char* what, const Shape& shape, std::size_t count) {
    if (checked_size(what, shape) != count)
        fail<ShapeError>(what, "shape " + text(shape) + " does not hold " + std::to_string(count) + " values");
}

Indices::Indices(const Shape& shape, std::vector<std::int64_t> values)
    : shape_(shape), values_(std::make_shared<const std::vector<std::int64_t>>(std::move(values))) {
    check_count("indices", shape_, values_->size());
}

Mask::Mask(const Shape& shape, std::vector<bool> visible) : shape_(shape), size_(visible.size()) {
    check_count("mask", shape, visible.size());
    const std::shared_ptr<bool[]> copy(new bool[visible.size()]);
    std::copy(visible.begin(), visible.end(), copy.get());
    visible_ = copy;
}

Mask Mask::broadcast_to(const Shape& shape) const {
    if (shape == shape_) return *this;
    if (!broadcasts_to(shape_, shape)) fail<ShapeError>("mask", text(shape_) + " does not broadcast to " + text(shape));
    const std::size_t size = checked_size("mask", shape);
    const std::shared_ptr<bool[]> visible(new bool[size]);
    const std::size_t n = shape.empty() ? 1 : shape.back();
    for_each_broadcast_row(shape, shape_, [&](std::size_t to, std::size_t from, bool repeated) {
        for (std::size_t j = 0; j < n; ++j) visible[to + j] = visible_[repeated ? from : from + j];
    });
    return {shape, visible, size};
}

Mask Mask::reshape(const Shape& shape) const {
    check_count("mask", shape, size_);
    Mask mask = *this;
    mask.shape_ = shape;
    return mask;
}

template <class F> static Mask combined(const char* op, const Mask& a, const Mask& b, F f) {
    const Shape shape = broadcast_shape(op, a.shape(), b.shape());
    const Mask p = a.broadcast_to(shape), q = b.broadcast_to(shape);
    std::vector<bool> visible(p.size());
    for (std::size_t i = 0; i < visible.size(); ++i) visible[i] = f(p[i], q[i]);
    return Mask(shape, std::move(visible));
}
Mask operator&(const Mask& a, const Mask& b) {
    return combined("mask &", a, b, [](bool p, bool q) { return p && q; });
}
Mask operator|(const Mask& a, const Mask& b) {
    return combined("mask |", a, b, [](bool p, bool q) { return p || q; });
}
Mask operator!(const Mask& a) {
    return combined("mask !", a, a, [](bool p, bool) { return !p; });
}

}  // namespace lookback
