// Ops that move values without changing them. Every result is a new array in row-major order, so what a later op reads
// never depends on how an earlier one got there. Negative axes count from the end. Pullbacks move ȳ the other way.
#pragma once
#include <concepts>
#include <limits>
#include <span>
#include <vector>
#include "engine/tape.hpp"

namespace lookback {

// The sizes asked of reshape: any integers, signed or not, of which one may be -1 (what is left over); or a Shape.
class Sizes {
public:
    template <std::integral... Integer> Sizes(Integer... sizes) : sizes_{clamped(sizes)...} {}
    Sizes(const Shape& shape) {
        for (std::size_t n : shape) sizes_.push_back(clamped(n));
    }
    // the sizes, with -1 replaced, for an array of shape `from`.   throws ShapeError
    Shape of(const char* op, const Shape& from) const;

private:
    static constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    template <class Integer>
    static std::int64_t clamped(Integer n) {  // so that an unsigned 0 - 1 is a size too large, not a -1
        return n > 0 && std::uint64_t(n) > std::uint64_t(most) ? most : std::int64_t(n);
    }
    SmallVector<std::int64_t, max_axes> sizes_;
};

// The same values in the same row-major order under another shape.   reshape(x, {B, -1})   reshape(x, -1) is flat
// x̄ += ȳ in x's shape      saves nothing
// throws ShapeError if the sizes do not multiply to x's, or one is below -1, or several are -1, or -1 could be anything
Tensor reshape(const Tensor& x, const Sizes& sizes);

// Without an axis of size 1, which is named, so that a batch or a time of 1 is never lost with it.   (B,1,H) → (B,H)
// x̄ += ȳ in x's shape      saves nothing      throws ShapeError if the axis is longer (or empty)
Tensor squeeze(const Tensor& x, int axis);

// With a new axis of size 1, whose place in the result is `axis`.   (B,H) → (B,1,H) for 1 and for -2
// x̄ += ȳ in x's shape      saves nothing      throws ShapeError
Tensor unsqueeze(const Tensor& x, int axis);

// x repeated to `shape` as broadcasting would.   (3,1) → (2,3,4)
// x̄ += ȳ summed over what was repeated      saves nothing      throws ShapeError if x does not broadcast to it
Tensor expand(const Tensor& x, const Shape& shape);

// Axis k of y is axis axes[k] of x.   permute(x, {0, 2, 1, 3}): (B,T,N,D) → (B,N,T,D)
// x̄ += ȳ with its axes put back      saves nothing      throws ShapeError unless each axis is named once
Tensor permute(const Tensor& x, const SmallVector<int, max_axes>& axes);

// Two axes exchanged, the last two if not said: (…,M,N) → (…,N,M). As operands of matmul see matmul_transposed.
// x̄ += ȳ with the same exchange      saves nothing      throws ShapeError
Tensor transpose(const Tensor& x, int axis_a = -2, int axis_b = -1);

// As `stop` of a slice: through the last entry (for a negative step: the first), as where Python leaves the number out.
inline constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();

// Every step-th entry of an axis, from start up to but without stop, by Python's rules: negative places count from the
// end, places outside are moved to the edge.   slice(x, 1, 2, end)   slice(x, 0, -1, end, -1) is x reversed
// x̄[…, start:stop:step, …] += ȳ      saves nothing      throws ShapeError on the axis, ValueError on a step of 0
Tensor slice(const Tensor& x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1);

// Entry `index` of an axis, which goes: select(x, 1, -1): (B,T,H) → (B,H), the last step.
// x̄[…, index, …] += ȳ      saves nothing      throws ShapeError on the axis, IndexError on the index
Tensor select(const Tensor& x, int axis, std::int64_t index);

// Tensors end to end along an axis they have.   (B,T,H), (B,S,H) → (B,T+S,H) for axis 1
// x̄_i += ȳ's part i      saves nothing      throws ShapeError if there are none, or their other axes differ
Tensor concat(std::span<const Tensor> tensors, int axis);
Tensor concat(std::initializer_list<Tensor> tensors, int axis);

// Tensors of one shape side by side along a new axis, whose place in the result is `axis`.
//   T of (B,H) → (B,T,H) for axis 1
// x̄_i += ȳ[…, i, …]      saves nothing      throws ShapeError if there are none, or their shapes differ
Tensor stack(std::span<const Tensor> tensors, int axis = 0);
Tensor stack(std::initializer_list<Tensor> tensors, int axis = 0);

// concat undone: parts of the given sizes along an axis, as sibling outputs of one record.
//   (B,4H) → four of (B,H): split(a, -1, {H, H, H, H})
// x̄ += concat(ȳ_0, ȳ_1 …)      saves nothing      throws ShapeError if the sizes do not sum to the axis
std::vector<Tensor> split(const Tensor& x, int axis, const std::vector<std::size_t>& sizes);

// stack undone: all entries of an axis, which goes, as sibling outputs of one record.   (B,T,H) → T of (B,H) for axis 1
// x̄ += stack(ȳ_0, ȳ_1 …)      saves nothing      throws ShapeError
std::vector<Tensor> unbind(const Tensor& x, int axis = 0);

}  // namespace lookback
