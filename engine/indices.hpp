// Two kinds of array that are not Real: Indices (token ids, positions, targets) and Mask (which entries are visible).
// Both are immutable and shared by copies, so a record keeps one by holding a handle.
#pragma once
#include <memory>
#include <span>
#include <vector>
#include "array.hpp"

namespace lookback {

// 64-bit integers with a shape.   Indices{3, 1, 4}   Indices({2,2}, {0,1,1,0})
// throws ShapeError if the shape and the number of values differ
class Indices {
public:
    Indices() : Indices(Shape{0}, {}) {}
    Indices(std::initializer_list<std::int64_t> values) : Indices(Shape{values.size()}, values) {}
    explicit Indices(const std::vector<std::int64_t>& values) : Indices(Shape{values.size()}, values) {}
    Indices(const Shape& shape, std::vector<std::int64_t> values);

    const Shape& shape() const { return shape_; }
    std::size_t size() const { return values_->size(); }
    std::int64_t operator[](std::size_t i) const { return (*values_)[i]; }  // by place in row-major order
    std::span<const std::int64_t> values() const { return *values_; }

private:
    Shape shape_;
    std::shared_ptr<const std::vector<std::int64_t>> values_;
};

// True where an entry is visible (may be attended to, is kept). Numbers are not masks: one library's 1 is another's 0.
//   Mask({2,2}, {true, false, true, true})
// throws ShapeError if the shape and the number of values differ
class Mask {
public:
    Mask(const Shape& shape, std::vector<bool> visible);
    Mask(const Shape& shape, std::initializer_list<bool> visible) : Mask(shape, std::vector<bool>(visible)) {}
    template <class Number> Mask(const Shape& shape, std::vector<Number> numbers) = delete;
    Mask(const Array&) = delete;

    const Shape& shape() const { return shape_; }
    std::size_t size() const { return size_; }
    bool operator[](std::size_t i) const { return visible_.get()[i]; }  // by place in row-major order
    const bool* data() const { return visible_.get(); }
    Mask broadcast_to(const Shape& shape) const;  // throws ShapeError
    Mask reshape(const Shape& shape) const;       // throws ShapeError

    friend Mask operator&(const Mask& a, const Mask& b);  // broadcasting; throws ShapeError
    friend Mask operator|(const Mask& a, const Mask& b);
    friend Mask operator!(const Mask& a);

private:
    Mask(const Shape& shape, std::shared_ptr<bool[]> visible, std::size_t size)
        : shape_(shape), visible_(std::move(visible)), size_(size) {}
    Shape shape_;
    std::shared_ptr<const bool[]> visible_;
    std::size_t size_;
};

}  // namespace lookback
