// Reverse-mode differentiation on a tape: what users hold. Read this file first.
//
//   Tape tape;                             an empty history
//   Tensor x = tape.leaf(Array{1, 2});     a value to differentiate by (a Parameter becomes a leaf by being used)
//   Tensor y = sum(tanh(x) * x);           each op appends one Record: its inputs, what it keeps, its pullback
//   Gradients g = tape.backward(y, {x});   one loop from y downwards
//   g[x]                                   ∂y/∂x
//
// Creation order is a topological order, so nothing is sorted and nothing recurses: a million steps need no more stack
// than one. One thread per tape. First derivatives only: pullbacks compute on Arrays and are not recorded.
#pragma once
#include <any>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include "array.hpp"
#include "blocks.hpp"

namespace lookback {

class Tape;
class Pullback;
class Tensor;
using Id = std::uint32_t;  // of a record on its tape

// Who owns a tensor: a tape, or the parameter it was read from. Its number is never used again in this process, so what
// is looked up by it (a gradient) can't be mistaken for something that took a dead object's address.
class Owner {
public:
    struct Cell {
        std::size_t count = 1;
        std::uint64_t number = 0;
        Tape* tape = nullptr;  // null once the tape is gone, and for a parameter
        std::string name;      // of a parameter
    };
    Owner() = default;
    static Owner make(Tape* tape, std::string name);
    Owner(const Owner& other) : cell_(other.cell_) {
        if (cell_) ++cell_->count;
    }
    Owner(Owner&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
    Owner& operator=(Owner other) noexcept {
        std::swap(cell_, other.cell_);
        return *this;
    }
    ~Owner() {
        if (cell_ && --cell_->count == 0) delete cell_;
    }
    explicit operator bool() const { return cell_; }
    Cell* operator->() const { return cell_; }
    bool operator==(const Owner& other) const { return cell_ == other.cell_; }

private:
    Cell* cell_ = nullptr;
};

// A trained value. It may stand wherever an op takes a Tensor; each tape makes one leaf of it.
// Move-only, so that it is one thing with one gradient; clone() makes another with an equal value.
class Parameter {
public:
    explicit Parameter(Array value, std::string name = "parameter")
        : owner_(Owner::make(nullptr, std::move(name))), value_(std::move(value)) {}
    Parameter(Parameter&&) noexcept = default;
    Parameter& operator=(Parameter&&) noexcept = default;
    Parameter clone() const { return Parameter(Array(value()), name()); }

    // On a parameter that was moved from, all but operator= throw TapeError.
    const Array& value() const { return *here().value_; }
    const Shape& shape() const { return value().shape(); }
    std::size_t size() const { return value().size(); }
    const std::string& name() const { return here().owner_->name; }
    void rename(std::string name) { here().owner_->name = std::move(name); }

    // Replaces the value. Tapes that recorded the old one keep it for their pullbacks, and refuse the new one.
    // throws ShapeError if the shape differs: the parameter is then as it was
    void assign(Array value);
    // p.edit([&](Array& w) { w -= rate * g; }) assigns what f made of a copy.
    template <class F> void edit(F f) {
        Array next = value();
        f(next);
        assign(std::move(next));
    }

private:
    friend class Tensor;
    const Parameter& here() const {
        if (!owner_) fail<TapeError>("parameter", "it was moved from: it has neither value nor name");
        return *this;
    }
    Owner owner_;
    Shared value_;
};

// A handle: a value and where it was recorded. Copies are cheap. A constant has a tape but no record; a number has
// neither. The value may be read for ever; in an op it is a TapeError once its tape is gone or its record was rewound.
class Tensor {
public:
    static constexpr Id constant = 0xffffffff, parameter = 0xfffffffe,
                        first_special = parameter;  // ids that are no record

    Tensor() = default;                                      // nothing: any use is a TapeError
    Tensor(Real number) : value_(Array(Shape{}, number)) {}  // so that 2 * x and x + 1 work
    Tensor(const Parameter& p) : owner_(p.owner_), id_(parameter), value_(p.value_) {}
    Tensor(Owner owner, Id id, std::uint32_t epoch, Shared value)  // for the tape
        : owner_(std::move(owner)), id_(id), epoch_(epoch), value_(std::move(value)) {}

    const Array& value() const { return *shared(); }
    const Shape& shape() const { return value().shape(); }
    std::size_t shape(int axis) const;  // negative axes count from the end; throws ShapeError
    std::size_t rank() const { return shape().size(); }
    std::size_t size() const { return value().size(); }
    Real item() const;  // the one element; throws ShapeError if there are more

    Tape& tape() const;  // throws TapeError if there is none (any more)
    bool is_constant() const { return id_ == constant; }
    Id id() const { return id_; }
    std::uint32_t epoch() const { return epoch_; }
    const Owner& owner() const { return owner_; }
    const Shared& shared() const;  // throws TapeError on a Tensor of nothing

private:
    Owner owner_;
    Id id_ = constant;
    std::uint32_t epoch_ = 0;
    Shared value_;
};

// One input of a record, or (after the inputs) a value kept for the pullback that is neither input nor output.
struct Edge {
    Id from;       // Tensor::constant if nothing flows back
    Shared saved;  // empty unless the pullback reads it
};

// What an op leaves behind. Of k sibling outputs the lowest record has the pullback and the others point to it.
struct Record {
    const char* op;
    void (*pullback)(Pullback&);  // captures nothing: all it reads is here. Null: a leaf, or a higher sibling
    std::uint32_t first_edge, edge_count, inputs;
    std::uint32_t epoch;    // how often the tape had been rewound: tells a record from one that took its place
    std::uint32_t sibling;  // place among the outputs of one op
    std::uint32_t outputs;  // how many outputs, on the lowest sibling; 1 elsewhere
    Shared output;          // if saved
    Shape shape;
    std::any attributes;  // what else the pullback reads: an axis, indices, a mask
};

// ∂root/∂x for the tensors asked for and all parameters. Unlike a mutable .grad they never go stale.
// Gradients{} is the empty sum, to add to.
class Gradients {
public:
    // A parameter that the tape never met has gradient 0, if parameters were asked for.
    // throws TapeError if x was not asked for or belongs to another tape
    const Array& operator[](const Tensor& x) const;
    Array& edit(const Tensor& x);         // the same to change: clipping
    bool reached(const Tensor& x) const;  // false if x does not influence the root: its gradient is 0
    // Sums: windows of truncated BPTT, parts of a batch. What one side was not asked for is not known in the sum.
    // throws ShapeError if two gradients of one tensor differ in shape
    Gradients& operator+=(const Gradients& other);

private:
    friend class Tape;
    struct Key {
        std::uint64_t owner;
        Id id;
        std::uint32_t epoch;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& k) const {
            return (k.owner * 0x9e3779b97f4a7c15u) ^ (std::size_t(k.epoch) << 32 ^ k.id);
        }
    };
    struct Entry {
        Shared bar;
        bool reached;
        std::uint64_t parameter = 0;  // not 0: this is its leaf, and the gradient stands with the parameter
    };
    static Key key(const Tensor& x);
    static Key key(std::uint64_t parameter) { return {parameter, Tensor::parameter, 0}; }
    Entry& find(const Tensor& x) const;
    mutable std::unordered_map<Key, Entry, Hash, std::equal_to<Key>, RecyclingAllocator<std::pair<const Key, Entry>>>
        entries_;
    bool every_parameter_ = false;  // were all asked for
};

// What an observer is told while backward runs: one edge's share of a cotangent, before it is added to the others.
struct Contribution {
    Id record;          // the consumer, whose pullback just ran
    std::size_t input;  // which of its inputs
    Id from;            // the record of that input
    const Array& x_bar;
};

enum class Keep {
    wanted,      // the tensors asked for, nothing else: backward stops at the lowest of them
    parameters,  // and every parameter
    all          // and every record's cotangent
};

struct BackwardOptions {
    Keep keep = Keep::parameters;
    Shared seed = {};  // ∂/∂root, of exactly the root's shape; 1 if left out, which a root of one element only may do
    std::function<void(const Contribution&)> observer = {};
};

class Tape {
public:
    Tape();
    ~Tape();
    Tape(const Tape&) = delete;
    Tape& operator=(const Tape&) = delete;

    Tensor constant(Shared value) const { return {owner_, Tensor::constant, 0, std::move(value)}; }
    Tensor leaf(Shared value);        // to differentiate by
    Tensor leaf(const Parameter& p);  // its leaf here, made at first use

    // Cotangents of `root` by one loop downwards over the records, from the root to the lowest that is wanted.
    // throws TapeError if the root or a wanted tensor is a constant or not of this tape; ShapeError if the seed is
    // missing for a root of several elements, or does not have the root's shape
    Gradients backward(const Tensor& root, std::span<const Tensor> wanted = {},
                       const BackwardOptions& options = {}) const;
    Gradients backward(const Tensor& root, std::initializer_list<Tensor> wanted,
                       const BackwardOptions& options = {}) const {
        return backward(root, std::span(wanted.begin(), wanted.size()), options);
    }

    // Rewinding to a mark forgets what was recorded since: bounded memory in decoding and truncated BPTT.
    struct Mark {
        std::uint64_t tape;
        std::size_t records;
        std::uint32_t last_epoch;
    };
    Mark mark() const;
    void rewind(const Mark& mark);  // throws TapeError if the mark is another tape's, or was itself rewound

    std::size_t size() const { return records_.size(); }
    const Record& operator[](Id id) const { return records_[id]; }
    std::span<const Edge> edges(const Record& r) const { return {edges_.data() + r.first_edge, r.edge_count}; }
    std::span<const Edge> inputs(const Record& r) const { return {edges_.data() + r.first_edge, r.inputs}; }
    bool recording() const { return paused_ == 0; }
    void check(const char* what, const Tensor& x) const;  // throws TapeError unless x may be used here now

private:
    friend class NoGrad;
    friend struct Recorder;
    Id parameter_leaf(const char* op, const Tensor& p);
    void append(Record&& record);

    Owner owner_;
    Blocks<Record> records_;
    Vector<Edge> edges_;
    std::unordered_map<std::uint64_t, Id> leaves_;  // parameter number → its leaf
    std::uint32_t epoch_ = 0;
    int paused_ = 0;
    mutable int observed_ = 0;  // runs of backward that an observer watches: the records must stay where they are
};

// While it lives, ops compute the same values with the same code, but record nothing: evaluation, decoding.
class NoGrad {
public:
    explicit NoGrad(Tape& tape) : tape_(tape) { ++tape_.paused_; }
    ~NoGrad() { --tape_.paused_; }
    NoGrad(const NoGrad&) = delete;
    NoGrad& operator=(const NoGrad&) = delete;

private:
    Tape& tape_;
};

// The same value as a constant: nothing flows back through it. Users of x itself are not affected.
Tensor detach(const Tensor& x);

// y = x, as a record of its own: a named place to watch (want it, or see it in the trace as "tag").
// x̄ += ȳ      saves nothing
Tensor tag(const Tensor& x, std::string label);

}  // namespace lookback
