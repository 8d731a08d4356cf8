#include "tape.hpp"
#include <atomic>
#include <optional>
#include "pullback.hpp"

namespace lookback {

Owner Owner::make(Tape* tape, std::string name) {
    static std::atomic<std::uint64_t> last{0};
    Owner owner;
    owner.cell_ = new Cell{1, ++last, tape, std::move(name)};
    return owner;
}

void Parameter::assign(Array value) {
    if (value.shape() != shape())
        fail<ShapeError>(name(), "a parameter of shape " + text(shape()) + " can't become " + text(value.shape()));
    value_ = Shared(std::move(value));
}

std::size_t Tensor::shape(int axis) const { return shape()[normalise_axis("shape", axis, shape())]; }

Real Tensor::item() const {
    if (size() != 1) fail<ShapeError>("item", "one element is wanted, not " + text(shape()));
    return *value().data();
}

Tape& Tensor::tape() const {
    if (!owner_ || !owner_->tape)
        fail<TapeError>("tape",
                        owner_ && id_ != parameter ? "the tensor's tape is gone" : "the tensor belongs to no tape");
    return *owner_->tape;
}

const Shared& Tensor::shared() const {
    if (!value_)
        fail<TapeError>("tensor",
                        "nothing has no value: a Tensor() that was given none, or a parameter that was moved from");
    return value_;
}

// ---- recording

Tape::Tape() : owner_(Owner::make(this, {})) {}
Tape::~Tape() { owner_->tape = nullptr; }

void Tape::append(Record&& record) {
    if (observed_) fail<TapeError>(record.op, "an observer of backward may not record on the tape that it watches");
    if (records_.size() >= Tensor::first_special) fail<TapeError>(record.op, "the tape is full");
    records_.push_back(std::move(record));
}

Tensor Tape::leaf(Shared value) {
    if (!value) fail<TapeError>("leaf", "an empty handle has no value");
    if (!recording()) return constant(std::move(value));
    const Shape shape = value->shape();
    append({"leaf", nullptr, std::uint32_t(edges_.size()), 0, 0, epoch_, 0, 1, {}, shape, {}});
    return {owner_, Id(records_.size() - 1), epoch_, std::move(value)};
}

Tensor Tape::leaf(const Parameter& p) {
    const Tensor x = p;
    x.shared();
    if (!recording()) return constant(x.shared());
    const Id id = parameter_leaf("leaf", x);
    return {owner_, id, records_[id].epoch, x.shared()};
}

// The record of a parameter: made at first use. It keeps the value, so that an edited parameter is told by its new
// cell.
Id Tape::parameter_leaf(const char* op, const Tensor& p) {
    const auto known = leaves_.find(p.owner()->number);
    if (known == leaves_.end()) {
        append({"parameter", nullptr, std::uint32_t(edges_.size()), 0, 0, epoch_, 0, 1, p.shared(), p.shape(), {}});
        return leaves_[p.owner()->number] = Id(records_.size() - 1);
    }
    if (&*records_[known->second].output != &*p.shared())
        fail<TapeError>(op, "parameter " + p.owner()->name + " " + text(p.shape()) +
                                " was changed after this tape recorded it: rewind the tape, or begin a new one");
    return known->second;
}

void Tape::check(const char* what, const Tensor& x) const {
    if (x.owner() != owner_) fail<TapeError>(what, "a tensor " + text(x.shape()) + " of another tape, or of none");
    if (x.is_constant()) return;
    if (x.id() >= records_.size() || records_[x.id()].epoch != x.epoch())
        fail<TapeError>(what,
                        "a tensor " + text(x.shape()) + " that the tape has rewound: its value may be read, not used");
}

// The common part of the two record functions.
struct Recorder {
    // The tape of the inputs, all of them checked; `needed` is set if one needs a gradient.
    static Tape& tape_of(const char* op, const Inputs& inputs, bool& needed) {
        Owner owner;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const Tensor& x = inputs[i];
            x.shared();
            needed |= !x.is_constant();
            if (!x.owner() || x.id() == Tensor::parameter) continue;
            if (!x.owner()->tape)
                fail<TapeError>(op, "the tape of input " + std::to_string(i) + " " + text(x.shape()) + " is gone");
            if (owner && !(owner == x.owner())) fail<TapeError>(op, "inputs of two tapes");
            owner = x.owner();
            owner->tape->check(op, x);
        }
        if (!owner) fail<TapeError>(op, "no input is on a tape: begin with tape.leaf or tape.constant");
        needed &= owner->tape->recording();
        return *owner->tape;
    }

    // Edges of the inputs (their values if saved), then of the kept arrays; returns the first's place.
    static std::uint32_t add_edges(Tape& tape, const char* op, const Inputs& inputs, Saves saves,
                                   std::initializer_list<Shared> kept) {
        if (tape.observed_) fail<TapeError>(op, "an observer of backward may not record on the tape that it watches");
        for (std::size_t i = 0; i < inputs.size(); ++i)  // leaves are records of their own: before this one's edges
            if (inputs[i].id() == Tensor::parameter) tape.parameter_leaf(op, inputs[i]);
        const std::size_t first = tape.edges_.size();
        if (first + inputs.size() + kept.size() > std::numeric_limits<std::uint32_t>::max())
            fail<TapeError>(op, "the tape is full");
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const Tensor& x = inputs[i];
            const Id from = x.id() == Tensor::parameter ? tape.parameter_leaf(op, x) : x.id();
            tape.edges_.push_back({from, saves.input(i) ? x.shared() : Shared()});
        }
        for (const Shared& k : kept) tape.edges_.push_back({Tensor::constant, k});
        return std::uint32_t(first);
    }

    static Tensor append(Tape& tape, Record&& record, Shared value) {
        tape.append(std::move(record));
        return {tape.owner_, Id(tape.records_.size() - 1), tape.epoch_, std::move(value)};
    }

    static std::uint32_t epoch(const Tape& tape) { return tape.epoch_; }
};

Tensor record(const char* op, const Inputs& inputs, Shared value, Saves saves, PullbackFunction pullback,
              std::any attributes, std::initializer_list<Shared> kept) {
    bool needed = false;
    Tape& tape = Recorder::tape_of(op, inputs, needed);
    if (!needed) return tape.constant(std::move(value));
    const std::uint32_t first = Recorder::add_edges(tape, op, inputs, saves, kept);
    const Shape shape = value->shape();
    Record r{op,
             pullback,
             first,
             std::uint32_t(inputs.size() + kept.size()),
             std::uint32_t(inputs.size()),
             Recorder::epoch(tape),
             0,
             1,
             saves.output ? value : Shared(),
             shape,
             std::move(attributes)};
    return Recorder::append(tape, std::move(r), std::move(value));
}

std::vector<Tensor> record(const char* op, const Inputs& inputs, std::vector<Shared> values, Saves saves,
                           PullbackFunction pullback, std::any attributes, std::initializer_list<Shared> kept) {
    bool needed = false;
    Tape& tape = Recorder::tape_of(op, inputs, needed);
    std::vector<Tensor> outputs;
    outputs.reserve(values.size());
    if (!needed) {
        for (Shared& value : values) outputs.push_back(tape.constant(std::move(value)));
        return outputs;
    }
    const std::uint32_t first = Recorder::add_edges(tape, op, inputs, saves, kept);
    const auto edges = std::uint32_t(inputs.size() + kept.size()), k = std::uint32_t(values.size());
    for (std::uint32_t j = 0; j < k; ++j) {
        const Shape shape = values[j]->shape();
        Record r{op,
                 j ? nullptr : pullback,
                 first,
                 edges,
                 std::uint32_t(inputs.size()),
                 Recorder::epoch(tape),
                 j,
                 j ? 1 : k,
                 saves.output ? values[j] : Shared(),
                 shape,
                 j ? std::any() : std::move(attributes)};
        outputs.push_back(Recorder::append(tape, std::move(r), std::move(values[j])));
    }
    return outputs;
}

Tape::Mark Tape::mark() const {
    return {owner_->number, records_.size(), records_.empty() ? 0 : records_.back().epoch};
}

void Tape::rewind(const Mark& mark) {
    if (observed_) fail<TapeError>("rewind", "an observer of backward may not rewind the tape that it watches");
    if (mark.tape != owner_->number) fail<TapeError>("rewind", "the mark is another tape's");
    if (mark.records > records_.size() || (mark.records && records_[mark.records - 1].epoch != mark.last_epoch))
        fail<TapeError>("rewind", "the mark was itself rewound");
    if (mark.records == records_.size()) return;
    edges_.erase(edges_.begin() + records_[mark.records].first_edge, edges_.end());
    records_.shrink(mark.records);
    std::erase_if(leaves_, [&](const auto& leaf) { return leaf.second >= mark.records; });
    ++epoch_;
}

Tensor detach(const Tensor& x) { return x.tape().constant(x.shared()); }

Tensor tag(const Tensor& x, std::string label) {
    return record(
        "tag", {x}, x.shared(), saves::nothing, [](Pullback& p) { p.x_bar(0) += p.y_bar(); }, std::move(label));
}

// ---- backward

Gradients Tape::backward(const Tensor& root, std::span<const Tensor> wanted, const BackwardOptions& options) const {
    check("backward", root);
    if (root.is_constant()) fail<TapeError>("backward", "the root is a constant: no leaf or parameter leads to it");
    if (!options.seed && root.size() != 1)
        fail<ShapeError>("backward", "a root of several elements needs a seed: " + text(root.shape()));
    if (options.seed && options.seed->shape() != root.shape())
        fail<ShapeError>("backward",
                         "seed and root differ: " + text(options.seed->shape()) + " and " + text(root.shape()));

    Gradients gradients;
    gradients.every_parameter_ = options.keep != Keep::wanted;
    Id low = root.id();
    for (const Tensor& x : wanted) {
        x.shared();
        if (x.id() == Tensor::parameter) {  // one that this tape never met has a gradient of 0
            gradients.entries_.insert_or_assign(Gradients::key(x),
                                                Gradients::Entry{Shared(filled(x.shape(), 0)), false});
            const auto leaf = leaves_.find(x.owner()->number);
            if (leaf != leaves_.end()) low = std::min(low, leaf->second);
            continue;
        }
        check("backward", x);
        if (x.is_constant())
            fail<TapeError>("backward", "a constant " + text(x.shape()) + " is wanted: it has no gradient");
        low = std::min(low, x.id());
    }
    if (options.keep != Keep::wanted)
        for (const auto& [number, id] : leaves_) low = std::min(low, id);
    if (options.keep == Keep::all) low = 0;

    Vector<Shared> bars(std::size_t(root.id()) - low + 1);  // one slot for each record low … root
    Vector<bool> kept(bars.size(), options.keep == Keep::all);
    for (const Tensor& x : wanted)
        if (x.id() <= root.id()) kept[x.id() - low] = true;
    bars.back() = options.seed ? options.seed : Shared(filled(root.shape(), 1));

    struct Observed {
        int& runs;
        explicit Observed(int& r) : runs(r) { ++runs; }
        ~Observed() { --runs; }
    };
    std::optional<Observed> observed;
    if (options.observer) observed.emplace(observed_);

    Vector<Shared> several;
    for (Id id = root.id(); id > low; --id) {  // nothing below `low` is needed, so neither is its own pullback
        const Record& r = records_[id];
        if (!r.pullback) continue;  // a leaf, or a higher sibling: the lowest speaks for it
        const std::size_t outputs = std::min<std::size_t>(r.outputs, root.id() - id + 1);
        Shared one;
        if (r.outputs > 1) several.assign(r.outputs, {});
        const std::span<Shared> y_bars = r.outputs > 1 ? std::span<Shared>(several) : std::span<Shared>(&one, 1);
        bool reached = false;
        for (std::size_t j = 0; j < outputs; ++j) {
            Shared& bar = bars[id - low + j];  // complete: consumers have larger ids
            if (!bar) continue;
            reached = true;
            y_bars[j] = kept[id - low + j] ? bar : std::move(bar);
        }
        if (!reached) continue;
        Pullback p(*this, id, low, y_bars, bars, bool(options.observer));
        r.pullback(p);
        for (std::size_t i = 0; i < p.observed_.size(); ++i) {
            if (!p.observed_[i]) continue;
            const Id from = p.edges_[i].from;
            options.observer({id, i, from, *p.observed_[i]});
            Shared& bar = bars[from - low];
            if (bar)
                xt::noalias(bar.edit()) += *p.observed_[i];
            else
                bar = std::move(p.observed_[i]);
        }
    }  // the cotangents of this record die here unless they are kept

    const auto keep = [&](const Gradients::Key& key, Id id, const Shape& shape) {
        const bool reached = id <= root.id() && bars[id - low];
        gradients.entries_.insert_or_assign(
            key, Gradients::Entry{reached ? bars[id - low] : Shared(filled(shape, 0)), reached});
    };
    for (const Tensor& x : wanted)
        if (x.id() != Tensor::parameter) keep(Gradients::key(x), x.id(), x.shape());
    if (options.keep == Keep::all)
        for (Id id = 0; id <= root.id(); ++id) keep({owner_->number, id, records_[id].epoch}, id, records_[id].shape);
    for (const auto& [number, id] : leaves_) {
        const Gradients::Key parameter = Gradients::key(number), leaf{owner_->number, id, records_[id].epoch};
        if (!gradients.every_parameter_ && !gradients.entries_.contains(parameter) &&
            !gradients.entries_.contains(leaf))
            continue;
        keep(parameter, id, records_[id].shape);
        gradients.entries_.insert_or_assign(leaf, Gradients::Entry{{}, false, number});
    }
    return gradients;
}

Gradients::Key Gradients::key(const Tensor& x) {
    if (!x.owner()) return {0, Tensor::constant, 0};
    return {x.owner()->number, x.id(), x.epoch()};
}

Gradients::Entry& Gradients::find(const Tensor& x) const {
    x.shared();
    auto at = entries_.find(key(x));
    if (at != entries_.end() && at->second.parameter) at = entries_.find(key(at->second.parameter));  // may be unknown
    if (at != entries_.end()) return at->second;
    if (x.id() == Tensor::parameter && every_parameter_)
        return entries_.emplace(key(x), Entry{Shared(filled(x.shape(), 0)), false}).first->second;
    fail<TapeError>("gradient",
                    "of a tensor " + text(x.shape()) + " that backward was not asked for: name it among the wanted");
}

const Array& Gradients::operator[](const Tensor& x) const { return *find(x).bar; }
Array& Gradients::edit(const Tensor& x) { return find(x).bar.edit(); }
bool Gradients::reached(const Tensor& x) const { return find(x).reached; }

Gradients& Gradients::operator+=(const Gradients& other) {
    // A parameter that one side was not asked for has no known sum.
    const bool begins = entries_.empty() && !every_parameter_, ours = begins || every_parameter_;
    if (!other.every_parameter_)
        std::erase_if(entries_, [&](const auto& entry) {
            return entry.first.id == Tensor::parameter && !other.entries_.contains(entry.first);
        });
    every_parameter_ = ours && other.every_parameter_;
    for (const auto& [key, entry] : other.entries_) {
        if (!ours && key.id == Tensor::parameter && !entries_.contains(key)) continue;
        const auto [at, is_new] = entries_.try_emplace(key, entry);
        if (is_new || entry.parameter) continue;
        if (at->second.bar->shape() != entry.bar->shape())
            fail<ShapeError>("gradient",
                             "shapes differ: " + text(at->second.bar->shape()) + " and " + text(entry.bar->shape()));
        xt::noalias(at->second.bar.edit()) += *entry.bar;
        at->second.reached |= entry.reached;
    }
    return *this;
}

// ---- what a pullback sees

const Array& Pullback::saved_or_throw(const Shared& saved, const char* what) const {
    if (!saved) fail<TapeError>(record_.op, std::string("the pullback reads ") + what + ", which the op did not save");
    return *saved;
}
const Array& Pullback::x(std::size_t i) const { return saved_or_throw(edges_[i].saved, "an input"); }
const Array& Pullback::y() const { return saved_or_throw(record_.output, "the output"); }
const Array& Pullback::kept(std::size_t i) const {
    return saved_or_throw(edges_[record_.inputs + i].saved, "a kept array");
}
bool Pullback::needs(std::size_t i) const { return edges_[i].from != Tensor::constant && edges_[i].from >= low_; }
const Shape& Pullback::x_shape(std::size_t i) const {
    if (edges_[i].saved) return edges_[i].saved->shape();
    if (edges_[i].from == Tensor::constant)
        fail<TapeError>(record_.op, "the pullback reads the shape of a constant, which the op did not save");
    return tape_[edges_[i].from].shape;
}
const Shape& Pullback::y_shape(std::size_t output) const { return tape_[Id(id_ + output)].shape; }

const Array& Pullback::y_bar(std::size_t output) {
    Shared& bar = y_bars_[output];
    if (!bar) bar = Shared(filled(y_shape(output), 0));
    last_ = &bar;
    return *bar;
}

Array Pullback::take_y_bar(std::size_t output) {
    y_bar(output);
    return y_bars_[output].take();
}

Cotangent Pullback::x_bar(std::size_t i) {
    if (!needs(i)) return {*this, nullptr, nullptr};
    const Id from = edges_[i].from;
    return {*this, observed_.empty() ? &bars_[from - low_] : &observed_[i], &tape_[from].shape};
}

// false for a first contribution of the right shape, which may be taken as it is.
bool Cotangent::added(const Array& contribution) {
    if (contribution.shape() != *shape_)
        sum_to_shape(contribution, target());
    else if (*slot_)
        xt::noalias(slot_->edit()) += contribution;
    else
        return false;
    return true;
}
void Cotangent::operator+=(Array&& contribution) {
    if (slot_ && !added(contribution)) *slot_ = std::move(contribution);
}
void Cotangent::operator+=(const Array& contribution) {
    if (slot_ && !added(contribution))
        *slot_ = pullback_.last_ && &contribution == &**pullback_.last_ ? *pullback_.last_ : Shared(contribution);
}

Target Cotangent::target() {
    const bool add = bool(*slot_);
    if (!add) *slot_ = Array::from_shape(*shape_);
    return {slot_->edit(), add};
}

Array& Cotangent::zeroed() {
    if (!*slot_) *slot_ = filled(*shape_, 0);
    return slot_->edit();
}

}  // namespace lookback
