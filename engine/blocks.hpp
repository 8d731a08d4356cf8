// A sequence that grows at its end and never moves what it holds: the records of a tape. Blocks of a power of two, so
// that a place is found by a shift. (std::deque has 512 bytes a block, four records, and divides: a quarter of what a
// tiny op cost.)
#pragma once
#include <new>
#include <utility>
#include "array.hpp"

namespace lookback {

template <class T> class Blocks {
public:
    Blocks() = default;
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;
    ~Blocks() { shrink(0); }

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T& operator[](std::size_t i) { return blocks_[i / length][i % length]; }
    const T& operator[](std::size_t i) const { return blocks_[i / length][i % length]; }
    const T& back() const { return (*this)[size_ - 1]; }

    void push_back(T&& item) {
        if (size_ == blocks_.size() * length) {
            if (blocks_.size() == blocks_.capacity()) blocks_.reserve(2 * blocks_.size() + 1);  // what throws, first
            blocks_.push_back(static_cast<T*>(Recycler::allocate(length * sizeof(T))));
        }
        new (&(*this)[size_]) T(std::move(item));
        ++size_;
    }
    void shrink(std::size_t size) {  // to the first so many
        while (size_ > size) (*this)[--size_].~T();
        for (; blocks_.size() > (size + length - 1) / length; blocks_.pop_back())
            Recycler::deallocate(blocks_.back(), length * sizeof(T));
    }

private:
    static constexpr std::size_t length = 128;
    Vector<T*> blocks_;
    std::size_t size_ = 0;
};

}  // namespace lookback
