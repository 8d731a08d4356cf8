// What op authors write against. An op is one function: it checks, computes its value, and records it with its
// pullback, a lambda that captures nothing (so it keeps nothing alive, and can't dangle) and reads what the record saved.
//
//   // y = tanh(x).   x̄ += ȳ ⊙ (1 − y²)      saves y
//   Tensor tanh(const Tensor& x) {
//       return record("tanh", {x}, xt::tanh(x.value()), saves::output,
//                     [](Pullback& p) { p.x_bar(0) += chain(p.y_bar(), 1 - p.y() * p.y()); });
//   }
#pragma once
#include "broadcast.hpp"
#include "expression.hpp"
#include "tape.hpp"

namespace lookback {

using PullbackFunction = void (*)(Pullback&);

// What the pullback will read besides ȳ. Any other value dies with its last Tensor.
struct Saves {
    std::uint32_t inputs;  // a bit each; all ones: every input, however many
    bool output;
    friend constexpr Saves operator|(Saves a, Saves b) { return {a.inputs | b.inputs, a.output || b.output}; }
    bool input(std::size_t i) const { return inputs == ~0u || (i < 32 && inputs >> i & 1); }
};
namespace saves {
inline constexpr Saves nothing{0, false}, inputs{~0u, false}, output{0, true};
constexpr Saves input(unsigned i) { return {1u << i, false}; }
}  // namespace saves

// The inputs of a record: {x, y}, or a span of any length.
class Inputs {
public:
    Inputs(std::initializer_list<std::reference_wrapper<const Tensor>> list) : listed_(list) {}
    explicit Inputs(std::span<const Tensor> tensors) : spanned_(tensors) {}
    std::size_t size() const { return listed_.size() + spanned_.size(); }
    const Tensor& operator[](std::size_t i) const { return listed_.size() ? listed_.begin()[i].get() : spanned_[i]; }

private:
    std::initializer_list<std::reference_wrapper<const Tensor>> listed_;
    std::span<const Tensor> spanned_;
};

// Appends y = op(inputs) to the inputs' tape; a constant if no input needs a gradient or the tape is paused.
// `kept` are arrays for the pullback that are neither input nor output: it reads them as kept(0), kept(1) …
// throws TapeError if the inputs are of two tapes or of none, or one may not be used any more
Tensor record(const char* op, const Inputs& inputs, Shared value, Saves saves, PullbackFunction pullback,
              std::any attributes = {}, std::initializer_list<Shared> kept = {});
// The same for an op with several outputs: one pullback, which reads y_bar(0) … y_bar(k-1).
std::vector<Tensor> record(const char* op, const Inputs& inputs, std::vector<Shared> values, Saves saves,
                           PullbackFunction pullback, std::any attributes = {},
                           std::initializer_list<Shared> kept = {});

// The sum of the contributions to one input's cotangent. `+=` leaves an expression unevaluated if the input needs no
// gradient, moves or shares the first contribution, adds later ones in place, sums a broadcast one back to the input's
// shape, and checks that shape (xtensor's own `+=` would silently grow its left side).
class Cotangent {
public:
    template <class E> void operator+=(const xt::xexpression<E>& expression) {
        if (!slot_) return;
        const E& e = expression.derived_cast();
        if (!xt::has_shape(e, *shape_)) return *this += Array(e);
        if (*slot_)
            xt::noalias(slot_->edit()) += e;
        else
            *slot_ = Shared(e);
    }
    void operator+=(Array&& contribution);
    void operator+=(const Array& contribution);  // of ȳ itself: shared, not copied
    Target target();                             // for kernels that write or add by themselves. Ask needs(i) first
    Array& zeroed();                             // for kernels that add to a part. Ask needs(i) first

private:
    friend class Pullback;
    bool added(const Array& contribution);
    Cotangent(const Pullback& pullback, Shared* slot, const Shape* shape)
        : pullback_(pullback), slot_(slot), shape_(shape) {}
    const Pullback& pullback_;
    Shared* slot_;        // null: the input needs no gradient
    const Shape* shape_;  // the input's
};

// What a pullback sees of its record.
class Pullback {
public:
    const Array& x(std::size_t i) const;  // input i; throws TapeError if it was not saved
    const Array& y() const;               // the output (of several: the first); likewise
    const Array& kept(std::size_t i) const;
    const Array& y_bar(std::size_t output = 0);  // zeros if nothing flowed into that output
    bool reached(std::size_t output) const { return bool(y_bars_[output]); }  // did anything flow into it
    Array take_y_bar(std::size_t output = 0);  // to become x̄ in place: the last use of ȳ
    bool needs(std::size_t i) const;           // does input i need a gradient
    std::size_t inputs() const { return record_.inputs; }
    std::size_t outputs() const { return record_.outputs; }
    Cotangent x_bar(std::size_t i);
    const Shape& x_shape(std::size_t i) const;  // of an input that was saved, or is no constant
    const Shape& y_shape(std::size_t output = 0) const;
    template <class T> const T& attributes() const { return std::any_cast<const T&>(record_.attributes); }
    const char* op() const { return record_.op; }

private:
    friend class Tape;
    friend class Cotangent;
    Pullback(const Tape& tape, Id id, Id low, std::span<Shared> y_bars, Vector<Shared>& bars, bool observed)
        : tape_(tape),
          record_(tape[id]),
          id_(id),
          low_(low),
          edges_(tape.edges(record_)),
          y_bars_(y_bars),
          bars_(bars),
          observed_(observed ? record_.inputs : 0) {}
    const Array& saved_or_throw(const Shared& saved, const char* what) const;

    const Tape& tape_;
    const Record& record_;
    Id id_, low_;  // backward stops at low_: nothing below it needs a gradient
    std::span<const Edge> edges_;
    std::span<Shared> y_bars_;
    const Shared* last_ = nullptr;  // the y_bar read last: x_bar += y_bar shares it
    Vector<Shared>& bars_;          // cotangents of the records low_ …
    Vector<Shared> observed_;       // contributions apart, for the observer
};

}  // namespace lookback
