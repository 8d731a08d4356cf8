#include "movement.hpp"
#include <numeric>
#include "engine/kernels.hpp"
#include "engine/pullback.hpp"

namespace lookback {

// ---- the same values in another shape

Shape Sizes::of(const char* op, const Shape& from) const {
    std::string asked = "(";
    for (std::size_t k = 0; k < sizes_.size(); ++k) asked += (k ? "," : "") + std::to_string(sizes_[k]);
    asked += ")";
    const auto refuse = [&](const char* why) { fail<ShapeError>(op, why + (": " + text(from)) + " as " + asked); };

    Shape shape;
    std::size_t* left_over = nullptr;
    for (std::int64_t n : sizes_) {
        if (n < -1) refuse("a size is negative");
        if (n == -1 && left_over) refuse("-1 is there twice");
        shape.push_back(n == -1 ? 1 : std::size_t(n));
        if (n == -1) left_over = &shape.back();
    }
    const std::size_t size = checked_size(op, from), known = checked_size(op, shape);
    if (left_over) {
        if (known == 0) refuse("-1 could be anything");
        *left_over = size / known;
    }
    if (checked_size(op, shape) != size) refuse("the sizes do not multiply to the number of elements");
    return shape;
}

static Tensor reshaped(const char* op, const Tensor& x, const Shape& shape) {
    Shared y = x.shared();
    if (shape != x.shape()) y.edit().reshape(shape);
    return record(op, {x}, std::move(y), saves::nothing, [](Pullback& p) {
        if (!p.needs(0)) return;
        Array x_bar = p.take_y_bar();
        x_bar.reshape(p.x_shape(0));
        p.x_bar(0) += std::move(x_bar);
    });
}

Tensor reshape(const Tensor& x, const Sizes& sizes) { return reshaped("reshape", x, sizes.of("reshape", x.shape())); }

Tensor squeeze(const Tensor& x, int axis) {
    Shape shape = x.shape();
    const std::size_t k = normalise_axis("squeeze", axis, shape);
    if (shape[k] != 1)
        fail<ShapeError>("squeeze", "axis " + std::to_string(axis) + " is not of size 1: " + text(shape));
    shape.erase_at(k);
    return reshaped("squeeze", x, shape);
}

Tensor unsqueeze(const Tensor& x, int axis) {
    Shape shape = x.shape();
    shape.insert_at(normalise_new_axis("unsqueeze", axis, shape), 1);
    return reshaped("unsqueeze", x, shape);
}

Tensor expand(const Tensor& x, const Shape& shape) {
    Shared y = shape == x.shape() ? x.shared() : Shared(broadcast_to("expand", x.value(), shape));
    return record("expand", {x}, std::move(y), saves::nothing, [](Pullback& p) { p.x_bar(0) += p.y_bar(); });
}

// ---- axes in another order

static Tensor permuted(const char* op, const Tensor& x, const AxisOrder& order) {
    Shape shape;
    for (std::size_t k = 0; k < x.rank(); ++k) shape.push_back(x.shape()[order[k]]);
    Array y = Array::from_shape(shape);
    permute(x.value(), order, {y, false});
    return record(
        op, {x}, std::move(y), saves::nothing,
        [](Pullback& p) {
            if (!p.needs(0)) return;
            const auto& forth = p.attributes<AxisOrder>();
            AxisOrder back{};
            for (std::uint8_t k = 0; k < p.y_shape().size(); ++k) back[forth[k]] = k;
            permute(p.y_bar(), back, p.x_bar(0).target());
        },
        order);
}

Tensor permute(const Tensor& x, const SmallVector<int, max_axes>& axes) {
    const Shape& shape = x.shape();
    if (axes.size() != shape.size())
        fail<ShapeError>("permute", std::to_string(axes.size()) + " axes for an array with " +
                                        std::to_string(shape.size()) + ": " + text(shape));
    AxisOrder order{};
    SmallVector<bool, max_axes> seen(shape.size());
    for (std::size_t k = 0; k < axes.size(); ++k) {
        const std::size_t axis = normalise_axis("permute", axes[k], shape);
        if (seen[axis])
            fail<ShapeError>("permute", "axis " + std::to_string(axes[k]) + " is named twice, shape " + text(shape));
        seen[axis] = true;
        order[k] = std::uint8_t(axis);
    }
    return permuted("permute", x, order);
}

Tensor transpose(const Tensor& x, int axis_a, int axis_b) {
    AxisOrder order;
    std::iota(order.begin(), order.end(), std::uint8_t(0));
    std::swap(order[normalise_axis("transpose", axis_a, x.shape())],
              order[normalise_axis("transpose", axis_b, x.shape())]);
    return permuted("transpose", x, order);
}

// ---- a part of an axis

// Eight bytes: std::any then asks no malloc.
struct Cut {
    std::uint64_t axis : 3, start : 61;
};
struct SteppedCut {
    Cut cut;
    std::ptrdiff_t step;
};

static Array part_of(const Tensor& x, Cut c, const Shape& shape, std::size_t count, std::ptrdiff_t step = 1) {
    Array y = Array::from_shape(shape);
    read_part(x.value(), {around(x.shape(), c.axis), c.start, count, step}, {y, false});
    return y;
}

static void add_to_part(Pullback& p, Cut c, std::size_t count, std::ptrdiff_t step = 1) {
    if (!p.needs(0)) return;
    write_part(p.y_bar(), {around(p.x_shape(0), c.axis), c.start, count, step}, {p.x_bar(0).zeroed(), true});
}

Tensor slice(const Tensor& x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step) {
    Shape shape = x.shape();
    const std::size_t k = normalise_axis("slice", axis, shape);
    if (step == 0) fail<ValueError>("slice", "a step of 0, axis " + std::to_string(axis) + " of " + text(shape));

    const auto n = std::int64_t(shape[k]);
    const bool up = step > 0;
    const std::int64_t lowest = up ? 0 : -1, highest = up ? n : n - 1;
    const auto place = [&](std::int64_t i) { return i < 0 ? std::max(i + n, lowest) : std::min(i, highest); };
    const std::int64_t from = place(start), to = stop == end && !up ? lowest : place(stop);
    shape[k] = (up ? from < to : from > to) ? std::size_t((to - from - (up ? 1 : -1)) / step + 1) : 0;

    const Cut cut{k, shape[k] ? std::size_t(from) : 0};
    if (step == 1 || shape[k] <= 1)
        return record(
            "slice", {x}, part_of(x, cut, shape, shape[k]), saves::nothing,
            [](Pullback& p) {
                const Cut c = p.attributes<Cut>();
                add_to_part(p, c, p.y_shape()[c.axis]);
            },
            cut);
    return record(
        "slice", {x}, part_of(x, cut, shape, shape[k], step), saves::nothing,
        [](Pullback& p) {
            const auto [c, stride] = p.attributes<SteppedCut>();
            add_to_part(p, c, p.y_shape()[c.axis], stride);
        },
        SteppedCut{cut, step});
}

Tensor select(const Tensor& x, int axis, std::int64_t index) {
    Shape shape = x.shape();
    const std::size_t k = normalise_axis("select", axis, shape);
    const auto n = std::int64_t(shape[k]);
    if (index < -n || index >= n)
        fail<IndexError>("select", "index " + std::to_string(index) + " is outside axis " + std::to_string(axis) +
                                       " of " + text(shape));
    shape.erase_at(k);
    const Cut cut{k, std::size_t(index < 0 ? index + n : index)};
    return record(
        "select", {x}, part_of(x, cut, shape, 1), saves::nothing,
        [](Pullback& p) { add_to_part(p, p.attributes<Cut>(), 1); }, cut);
}

// ---- many tensors in one

// What concat's pullback reads: inputs without a gradient have no shape there, but take their room in ȳ.
struct Joint {
    std::size_t axis;
    Vector<std::size_t> sizes;
};

static std::string place_and_shapes(std::size_t i, const Shape& first, const Shape& other) {
    return ": " + text(first) + " and, at place " + std::to_string(i) + ", " + text(other);
}

Tensor concat(std::span<const Tensor> tensors, int axis) {
    if (tensors.empty()) fail<ShapeError>("concat", "there are no tensors");
    const Shape& first = tensors[0].shape();
    Shape shape = first;
    Joint joint{normalise_axis("concat", axis, first), {}};
    joint.sizes.reserve(tensors.size());
    shape[joint.axis] = 0;
    for (const Tensor& x : tensors) {
        Shape rest = x.shape();
        if (rest.size() == first.size()) rest[joint.axis] = first[joint.axis];
        if (rest != first)
            fail<ShapeError>("concat", "shapes differ away from axis " + std::to_string(axis) +
                                           place_and_shapes(joint.sizes.size(), first, x.shape()));
        joint.sizes.push_back(x.shape()[joint.axis]);
        shape[joint.axis] += joint.sizes.back();
        checked_size("concat", shape);  // each time: enough of them would wrap
    }

    Array y = Array::from_shape(shape);
    const Layout whole = around(shape, joint.axis);
    std::size_t start = 0;
    for (const Tensor& x : tensors) {
        const std::size_t n = x.shape()[joint.axis];
        write_part(x.value(), {whole, start, n}, {y, false});
        start += n;
    }
    return record(
        "concat", Inputs(tensors), std::move(y), saves::nothing,
        [](Pullback& p) {
            const auto& [along, sizes] = p.attributes<Joint>();
            const Layout large = around(p.y_shape(), along);
            std::size_t at = 0;
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                if (p.needs(i)) read_part(p.y_bar(), {large, at, sizes[i]}, p.x_bar(i).target());
                at += sizes[i];
            }
        },
        std::move(joint));
}

Tensor stack(std::span<const Tensor> tensors, int axis) {
    if (tensors.empty()) fail<ShapeError>("stack", "there are no tensors");
    const Shape& first = tensors[0].shape();
    const std::size_t k = normalise_new_axis("stack", axis, first);
    for (std::size_t i = 0; i < tensors.size(); ++i)
        if (tensors[i].shape() != first)
            fail<ShapeError>("stack", "shapes differ" + place_and_shapes(i, first, tensors[i].shape()));
    Shape shape = first;
    shape.insert_at(k, tensors.size());
    checked_size("stack", shape);

    Array y = Array::from_shape(shape);
    const Layout whole = around(shape, k);
    for (std::size_t i = 0; i < tensors.size(); ++i) write_part(tensors[i].value(), {whole, i, 1}, {y, false});
    return record(
        "stack", Inputs(tensors), std::move(y), saves::nothing,
        [](Pullback& p) {
            const Layout large = around(p.y_shape(), p.attributes<std::size_t>());
            for (std::size_t i = 0; i < p.inputs(); ++i)
                if (p.needs(i)) read_part(p.y_bar(), {large, i, 1}, p.x_bar(i).target());
        },
        k);
}

Tensor concat(std::initializer_list<Tensor> tensors, int axis) {
    return concat(std::span(tensors.begin(), tensors.size()), axis);
}
Tensor stack(std::initializer_list<Tensor> tensors, int axis) {
    return stack(std::span(tensors.begin(), tensors.size()), axis);
}

// ---- one tensor in many

// Writes every ȳ into its part of x̄, zeros for those that nothing flowed into.
static void pull_back_parts(Pullback& p) {
    if (!p.needs(0)) return;
    const auto axis = p.attributes<std::size_t>();
    const Shape& shape = p.x_shape(0);
    const bool sliced = p.y_shape().size() == shape.size();  // else unbound
    const Layout whole = around(shape, axis);
    const Target x_bar = p.x_bar(0).target();
    std::size_t start = 0;
    for (std::size_t i = 0; i < p.outputs(); ++i) {
        const std::size_t n = sliced ? p.y_shape(i)[axis] : 1;
        write_part(p.y_bar(i), {whole, start, n}, x_bar);
        start += n;
    }
}

std::vector<Tensor> split(const Tensor& x, int axis, const std::vector<std::size_t>& sizes) {
    Shape shape = x.shape();
    const std::size_t k = normalise_axis("split", axis, shape);
    std::size_t rest = shape[k];
    bool fits = true;
    for (std::size_t n : sizes) {
        fits &= n <= rest;
        rest -= n;
    }
    if (!fits || rest) {
        std::string parts;
        for (std::size_t n : sizes) parts += (parts.empty() ? "" : " + ") + std::to_string(n);
        fail<ShapeError>("split",
                         "parts " + parts + " do not sum to axis " + std::to_string(axis) + " of " + text(shape));
    }
    if (sizes.empty()) return {};

    std::vector<Shared> values;
    values.reserve(sizes.size());
    std::size_t start = 0;
    for (std::size_t n : sizes) {
        shape[k] = n;
        values.emplace_back(part_of(x, {k, start}, shape, n));
        start += n;
    }
    return record("split", {x}, std::move(values), saves::nothing, pull_back_parts, k);
}

std::vector<Tensor> unbind(const Tensor& x, int axis) {
    Shape shape = x.shape();
    const std::size_t k = normalise_axis("unbind", axis, shape), n = shape[k];
    if (n == 0) return {};
    if (n >= Tensor::first_special)
        fail<ShapeError>("unbind", "too many parts: axis " + std::to_string(axis) + " of " + text(x.shape()));
    shape.erase_at(k);
    std::vector<Shared> values;
    values.reserve(n);
    for (std::size_t i = 0; i < n; ++i) values.emplace_back(part_of(x, {k, i}, shape, 1));
    return record("unbind", {x}, std::move(values), saves::nothing, pull_back_parts, k);
}

}  // namespace lookback
