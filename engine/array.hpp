// The array of the engine: an xtensor container with its shape in place, over recycled memory, and a counted handle to
// one. This file and expression.hpp (what op authors add to it) are the only ones that name xtensor headers.
//
// Letters used in every shape comment:
//   B batch   T time (T_q of queries, T_k of keys)   I input   O output   H hidden   E embedding   N heads
//   D width of a head, or of what is attended to   Q K V widths of queries, keys, values (V also: vocabulary)
//   A attention size   M K N sizes of plain matrices   (…) any leading axes
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>
#if __has_include(<xtensor/containers/xarray.hpp>)  // xtensor 0.26 moved its headers
#include <xtensor/containers/xarray.hpp>
#else
#include <xtensor/xarray.hpp>
#endif
#include "error.hpp"

namespace lookback {

#ifdef LOOKBACK_FLOAT
using Real = float;
#else
using Real = double;
#endif

inline constexpr std::size_t max_axes = 6;

// At most N numbers, in place: what xtensor needs of a shape, without the pointers of its own svector.
// With it a [4,4] sum of Arrays takes a fifth of the time.
template <class T, std::size_t N> class SmallVector {
public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using reference = T&;
    using const_reference = const T&;
    using pointer = T*;
    using iterator = T*;
    using const_iterator = const T*;
    using reverse_iterator = std::reverse_iterator<T*>;
    using const_reverse_iterator = std::reverse_iterator<const T*>;
    using allocator_type = std::allocator<T>;

    SmallVector() = default;
    explicit SmallVector(size_type n, T value = T()) {
        resize(n);
        std::fill(begin(), end(), value);
    }
    SmallVector(std::initializer_list<T> list) : SmallVector(list.begin(), list.end()) {}
    template <class It, class = typename std::iterator_traits<It>::iterator_category> SmallVector(It first, It last) {
        for (; first != last; ++first) push_back(T(*first));
    }

    void resize(size_type n) {
        if (n > N) refuse(n);
        size_ = n;
    }
    void push_back(T value) {
        resize(size_ + 1);
        items_[size_ - 1] = value;
    }
    void insert_at(size_type i, T value) {
        resize(size_ + 1);
        std::move_backward(begin() + i, end() - 1, end());
        items_[i] = value;
    }
    void erase_at(size_type i) {
        std::move(begin() + i + 1, end(), begin() + i);
        --size_;
    }
    size_type size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T& operator[](size_type i) { return items_[i]; }
    const T& operator[](size_type i) const { return items_[i]; }
    const T& front() const { return items_[0]; }
    T& back() { return items_[size_ - 1]; }
    const T& back() const { return items_[size_ - 1]; }
    T* begin() { return items_; }
    T* end() { return items_ + size_; }
    const T* begin() const { return items_; }
    const T* end() const { return items_ + size_; }
    const T* cbegin() const { return items_; }
    const T* cend() const { return items_ + size_; }
    auto rbegin() const { return const_reverse_iterator(end()); }
    auto rend() const { return const_reverse_iterator(begin()); }
    auto crbegin() const { return rbegin(); }
    auto crend() const { return rend(); }
    bool operator==(const SmallVector& other) const {
        return size_ == other.size_ && std::equal(begin(), end(), other.begin());
    }

private:
    [[noreturn, gnu::noinline]] static void refuse(size_type n) {
        fail<ShapeError>("array", "at most " + std::to_string(N) + " axes, not " + std::to_string(n));
    }
    size_type size_ = 0;
    T items_[N] = {};
};

// What is alive on this thread: value cells, and bytes of recycled memory (of arrays, cells and records). Tests see by
// it that nothing leaks; lessons measure memory by it.
struct Live {
    std::ptrdiff_t cells = 0, bytes = 0;
    bool operator==(const Live&) const = default;
};

// Memory by size class (64, 128 … 512 bytes, then four classes per doubling), one list of free blocks per class and
// thread: a block freed by one step is handed to the next while it is still in the cache.
class Recycler {
public:
    static void* allocate(std::size_t bytes) {
        const SizeClass c = size_class(bytes);
        live.bytes += std::ptrdiff_t(c.bytes);
        if (void* block = free_[c.index]) {
            free_[c.index] = *static_cast<void**>(block);
            return block;
        }
        return fresh(c.bytes);
    }
    static void deallocate(void* block, std::size_t bytes) noexcept {
        const SizeClass c = size_class(bytes);
        live.bytes -= std::ptrdiff_t(c.bytes);
#ifdef LOOKBACK_NO_RECYCLING
        std::free(block);
#else
        if (!free_[c.index]) free_at_thread_end();  // a thread may free what others allocated
        *static_cast<void**>(block) = free_[c.index];
        free_[c.index] = block;
#endif
    }

    static inline constinit thread_local Live live;

private:
    struct SizeClass {
        unsigned index;
        std::size_t bytes;
    };
    static constexpr SizeClass size_class(std::size_t bytes) {
        const std::size_t lines = bytes ? (bytes - 1) / 64 + 1 : 1;  // cache lines
        if (lines <= 8) return {unsigned(lines - 1), lines * 64};
        const unsigned doubling = unsigned(std::bit_width(lines - 1)) - 4, shift = doubling + 1;
        const std::size_t quarter = (lines - 1) >> shift;  // 4 … 7
        return {8 + doubling * 4 + unsigned(quarter - 4), ((quarter + 1) << shift) * 64};
    }
    static void free_at_thread_end() {
        struct AtThreadEnd {
            ~AtThreadEnd() {
                for (void*& head : free_)
                    while (head) std::free(std::exchange(head, *static_cast<void**>(head)));
            }
        };
        static thread_local AtThreadEnd release;
        (void)release;
    }
    static void* fresh(std::size_t bytes) {
        if (void* block = std::aligned_alloc(64, bytes)) return block;
        live.bytes -= std::ptrdiff_t(bytes);
        throw std::bad_alloc();
    }
    static inline constinit thread_local void* free_[256] = {};
};

template <class T> struct RecyclingAllocator {
    using value_type = T;
    RecyclingAllocator() = default;
    template <class U> RecyclingAllocator(const RecyclingAllocator<U>&) {}
    T* allocate(std::size_t n) {
        if (n > std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(Recycler::allocate(n * sizeof(T)));
    }
    void deallocate(T* p, std::size_t n) noexcept { Recycler::deallocate(p, n * sizeof(T)); }
    bool operator==(const RecyclingAllocator&) const { return true; }
};

}  // namespace lookback

// The shapes xtensor computes with while it evaluates an expression: its own choice, svector, costs 40 ns more each.
// The two in `detail` are internal to xtensor; without them all works, only slower (a test watches the type).
namespace xt {
template <class X, class T, std::size_t N> struct rebind_container<X, lookback::SmallVector<T, N>> {
    using type = lookback::SmallVector<X, N>;
};
namespace detail {
template <class T, std::size_t N, class... S> struct promote_index<lookback::SmallVector<T, N>, S...> {
    using type = lookback::SmallVector<T, N>;
};
template <class T, std::size_t N, class... S>
struct promote_index<std::array<T, 0>, lookback::SmallVector<T, N>, S...> {
    using type = lookback::SmallVector<T, N>;
};
template <class T, std::size_t N> struct index_type_impl<lookback::SmallVector<T, N>> {
    using type = lookback::SmallVector<T, N>;
};
}  // namespace detail
}  // namespace xt

namespace lookback {

using Shape = SmallVector<std::size_t, max_axes>;
using Array = xt::xarray_container<xt::uvector<Real, RecyclingAllocator<Real>>, xt::layout_type::row_major, Shape>;
template <class T> using Vector = std::vector<T, RecyclingAllocator<T>>;

std::string text(const Shape& shape);  // "(2,3)", "()" for a scalar
// The number of elements. Too many is a ShapeError, also where an axis of 0 makes them none: as in NumPy, any part of a
// shape is a shape.
std::size_t checked_size(const std::string& op, const Shape& shape);

double sum_of_squares(const Array& x);  // in double, as all sums
double norm(const Array& x);            // √Σ x²: ‖∂L/∂h_t‖ is norm(g[h[t]])

// A counted handle to an Array that many may read and only a sole owner may edit (edit() copies if there are others).
// The count is not atomic: a tape and everything recorded on it belong to one thread.
class Shared {
public:
    Shared() = default;
    Shared(Array&& array) : cell_(make(std::move(array))) {}
    Shared(const Array& array) : cell_(make(Array(array))) {}
    template <class E> Shared(const xt::xexpression<E>& e) : cell_(make(Array(e))) {}
    Shared(const Shared& other) : cell_(other.cell_) {
        if (cell_) ++cell_->count;
    }
    Shared(Shared&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
    Shared& operator=(Shared other) noexcept {
        std::swap(cell_, other.cell_);
        return *this;
    }
    ~Shared() {
        if (!cell_ || --cell_->count) return;
        cell_->~Cell();
        Recycler::deallocate(cell_, sizeof(Cell));
        --Recycler::live.cells;
    }

    explicit operator bool() const { return cell_; }
    const Array& operator*() const { return cell_->array; }
    const Array* operator->() const { return &cell_->array; }
    bool sole() const { return cell_->count == 1; }
    Array& edit() {
        if (!sole()) *this = Shared(Array(cell_->array));
        return cell_->array;
    }
    Array take() { return sole() ? std::move(cell_->array) : Array(cell_->array); }  // for a last use

private:
    struct Cell {
        Array array;
        std::size_t count = 1;
    };
    static Cell* make(Array&& array) {
        Cell* cell = new (Recycler::allocate(sizeof(Cell))) Cell{std::move(array)};
        ++Recycler::live.cells;
        return cell;
    }
    Cell* cell_ = nullptr;
};

// An array of one value: filled({2,3}, 0). (xt::zeros and friends are lazy; this is memory.)
inline Array filled(const Shape& shape, Real value) {
    checked_size("filled", shape);
    return Array(shape, value);
}

}  // namespace lookback
