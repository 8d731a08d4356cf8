// Our side of the comparison with PyTorch. It does one workload at a time and is told line by line what to do, so that
// compare.py can alternate its rounds with those of workloads.py, which speaks the same language:
//   work rnn T500 B32 H128   makes it ready: weights and inputs by a formula that both sides have
//   once                     does it once, and says nothing: to count instructions
//   answer                   does it once: the loss, and of each gradient that is kept its name, ‖g‖ and Σ g ⊙ (fixed)
//   round 0.05               does it for so many seconds: the mean time of all, of forward, of backward
//   peak                     does it once: by how many bytes the process grew at the most (Linux)
//   flush 1                  from now on denormal numbers become 0
// Each answer ends with a line "end". Sizes have the letters of engine/array.hpp; Q is T_q, S steps, F inner width.
#include <cmath>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif
#include "engine/blas.hpp"
#include "engine/ops.hpp"
#include "layers/lstm.hpp"
#include "layers/optimizer.hpp"
#include "layers/rnn.hpp"
#include "layers/seq2seq.hpp"

using namespace lookback;

namespace {

// ---- What both sides know

// Numbers in ±1 with 24 bits each, which a float holds: a hash of the tensor's number and the place in it.
double noise(std::uint32_t tensor, std::uint32_t place) {
    std::uint32_t x = place * 0x9e3779b1u + tensor * 0x85ebca77u;
    x = (x ^ x >> 15) * 0x2c1b3c6du;
    x = (x ^ x >> 12) * 0x297a2d39u;
    return double((x ^ x >> 15) >> 8) / 8388608 - 1;
}

// Tensors number 1, 2 … in the order in which a workload asks for them.
class Draw {
public:
    Array numbers(const Shape& shape, double bound) {
        Array x = Array::from_shape(shape);
        ++tensor_;
        for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = Real(bound * noise(tensor_, std::uint32_t(i)));
        return x;
    }
    Ids integers(std::size_t count, std::int64_t low, std::int64_t high) {
        Ids ids(count);
        ++tensor_;
        for (std::size_t i = 0; i < count; ++i)
            ids[i] = low + std::int64_t((noise(tensor_, std::uint32_t(i)) + 1) / 2 * double(high - low));
        return ids;
    }

private:
    std::uint32_t tensor_ = 0;
};

using Sizes = std::map<char, std::size_t>;  // by their letter

// ---- What a workload is

struct Forward {
    Tensor root;
    Shared seed = {};                 // of a root of several elements
    std::vector<Tensor> wanted = {};  // whose gradients are kept, besides the parameters'
};
struct Work {
    std::function<Forward(Tape&)> forward;
    std::function<void(Gradients&)> train = {};  // what a training step does with them
    std::vector<std::pair<std::string, const Parameter*>> parameters = {};

    // The model with weights in ±bound, to be held by `forward`.
    template <class Model> std::shared_ptr<Model> hold(Model model, Draw& draw, double bound) {
        const auto held = std::make_shared<Model>(std::move(model));
        held->for_each_parameter("", [&](const std::string& path, Parameter& p) {
            p.assign(draw.numbers(p.shape(), bound));
            parameters.emplace_back(path, &p);
        });
        return held;
    }
};

using Workloads = std::map<std::string, std::function<Work(Sizes&, Draw&)>>;

Generator any_weights(0);                                  // which hold() replaces
constexpr double weight = 0.1, unit = 1.7320508075688772;  // ±√3 has variance 1

Tensor squares(const Tensor& x) { return sum(pow(x, 2)); }

enum class Kept { every_h, parameters };
enum class Loss { every_h, last_h };
enum class Form { fused, composed };

// As a user writes it: unroll(); or, composed, the cell's equations step by step.
template <class Cell>
Work recurrent(Sizes& n, Draw& draw, Kept kept, Loss loss = Loss::every_h, Form form = Form::fused) {
    const std::size_t T = n['T'], B = n['B'], H = n['H'];
    Work work;
    const auto cell = work.hold(Cell(H, H, any_weights), draw, 1 / std::sqrt(double(H)));
    const Shared x = draw.numbers({B, T, H}, unit);
    work.forward = [=](Tape& tape) {
        std::vector<Tensor> h;
        Tensor outputs;
        if (form == Form::fused) {
            const Sequence<Cell> y = unroll(*cell, tape.constant(x), cell->start(tape, B));
            h = y.hidden();
            outputs = y.outputs;
        } else {
            const Tensor input = tape.constant(x);
            auto state = cell->start(tape, B);
            for (std::size_t t = 0; t < T; ++t) {
                state = cell->composed(select(input, 1, std::int64_t(t)), state);
                h.push_back(state.h);
            }
            outputs = stack(h, 1);
        }
        const Tensor root = squares(loss == Loss::last_h ? h.back() : outputs);
        return Forward{root, {}, kept == Kept::every_h ? h : std::vector<Tensor>{}};
    };
    return work;
}

template <class Cell> void add_recurrent(Workloads& all, const std::string& name) {
    all[name] = [](Sizes& n, Draw& d) { return recurrent<Cell>(n, d, Kept::every_h); };
    all[name + "-composed"] = [](Sizes& n, Draw& d) {
        return recurrent<Cell>(n, d, Kept::every_h, Loss::every_h, Form::composed);
    };
    all[name + "-layer"] = [](Sizes& n, Draw& d) { return recurrent<Cell>(n, d, Kept::parameters); };
    all[name + "-last"] = [](Sizes& n, Draw& d) { return recurrent<Cell>(n, d, Kept::every_h, Loss::last_h); };
}

// T additions, one after the other.
Work chain(Sizes& n, Draw& draw, const Shape& shape) {
    const Shared start = draw.numbers(shape, 1), step = draw.numbers(shape, 1);
    Work work;
    work.forward = [=, T = n['T']](Tape& tape) {
        const Tensor x = tape.leaf(start), one = tape.constant(step);
        Tensor y = x;
        for (std::size_t t = 0; t < T; ++t) y = y + one;
        return Forward{shape.empty() ? y : sum(y), {}, {x}};
    };
    return work;
}

Work self_attention(Sizes& n, Draw& draw, Form form) {
    const std::size_t T = n['T'];
    const Shape shape{n['B'], n['N'], T, n['D']};
    const Shared q = draw.numbers(shape, unit), k = draw.numbers(shape, unit), v = draw.numbers(shape, unit),
                 seed = draw.numbers(shape, 1);
    Work work;
    work.forward = [=](Tape& tape) {
        const Tensor Q = tape.leaf(q), K = tape.leaf(k), V = tape.leaf(v);
        const Mask visible = causal(T, T, Align::start);
        const Tensor context = form == Form::fused ? attend(Q * ScaledDotScore::scale(Q), K, V, visible).context
                                                   : matmul(attention_weights(ScaledDotScore()(Q, K), visible), V);
        return Forward{context, seed, {Q, K, V}};
    };
    return work;
}

struct AdditiveDecoder {
    Attention attention;
    Linear S, C;
    void for_each_parameter(const std::string& prefix, const Visitor& f) {
        attention.for_each_parameter(join(prefix, "attention"), f);
        S.for_each_parameter(join(prefix, "S"), f);
        C.for_each_parameter(join(prefix, "C"), f);
    }
};

// s_t = tanh(s_{t−1} S + b + c_t C) with c_t = attention(s_{t−1}), S times.
Work additive_decoder(Sizes& n, Draw& draw) {
    const std::size_t B = n['B'], D = n['D'];
    Work work;
    const auto model =
        work.hold(AdditiveDecoder{Attention(AdditiveScore(D, D, D, any_weights)), Linear(D, D, any_weights),
                                  Linear(D, D, any_weights, Linear::Bias::no)},
                  draw, weight);
    const Shared keys = draw.numbers({B, n['T'], D}, unit);
    work.forward = [=, steps = n['S']](Tape& tape) {
        const Tensor K = tape.leaf(keys);
        const Memory memory = model->attention.remember(K);
        Tensor s = tape.constant(filled({B, D}, 0));
        for (std::size_t t = 0; t < steps; ++t) s = tanh(model->S(s) + model->C(model->attention(s, memory).context));
        return Forward{squares(s), {}, {K}};
    };
    return work;
}

Work encoder_block(Sizes& n, Draw& draw) {
    const TransformerOptions options{.width = n['E'], .heads = n['N'], .inner = n['F'], .layers = 1, .dropout = 0};
    const Shape shape{n['B'], n['T'], n['E']};
    Work work;
    const auto block = work.hold(EncoderBlock(any_weights, options), draw, weight);
    // A bias of all keys adds the same to all scores of a query: its gradient is 0, and what rounding leaves of it is
    // not compared.
    std::erase_if(work.parameters, [](const auto& p) { return p.first == "attention.key.b"; });
    const Shared x = draw.numbers(shape, unit), seed = draw.numbers(shape, 1);
    work.forward = [=](Tape& tape) {
        const Tensor X = tape.leaf(x);
        return Forward{(*block)(X).y, seed, {X}};
    };
    return work;
}

// One update of the model that lessons/train.cpp trains on dates, on a batch of B rows of such lengths.
Work training_step(Sizes& n, Draw& draw) {
    constexpr std::size_t V_source = 60, V_target = 14, steps = 10;
    const std::size_t B = n['B'];
    Work work;
    const auto model = work.hold(
        Seq2Seq(V_source, V_target, any_weights, {.embedding = 24, .hidden = 48, .attention = 48}), draw, weight);
    std::vector<Ids> sources, targets;
    for (const std::int64_t length : draw.integers(B, 8, 24))
        sources.push_back(draw.integers(std::size_t(length), Alphabet::first, V_source));
    for (std::size_t b = 0; b < B; ++b) targets.push_back(draw.integers(steps, Alphabet::first, V_target));
    work.forward = [=, source = padded(sources), target = teacher_forcing(targets)](Tape& tape) {
        return Forward{model->loss(tape, source, target)};
    };
    work.train = [=, adam = std::make_shared<Adam>(Adam::Options{.rate = 4e-3})](Gradients& gradients) {
        clip_by_norm(*model, gradients, 1);
        adam->step(*model, gradients);
    };
    return work;
}

// Scores of Q queries with T keys of width D.
template <class S> Work scores(Sizes& n, Draw& draw, S score) {
    const Shape queries{n['B'], n['Q'], n['D']}, keys{n['B'], n['T'], n['D']};
    Work work;
    const auto held = work.hold(std::move(score), draw, weight);
    const Shared q = draw.numbers(queries, 1), k = draw.numbers(keys, 1),
                 seed = draw.numbers({n['B'], n['Q'], n['T']}, 1);
    work.forward = [=](Tape& tape) {
        const Tensor Q = tape.leaf(q), K = tape.leaf(k);
        return Forward{(*held)(Q, held->project(K)), seed, {Q, K}};
    };
    return work;
}

Workloads workloads() {
    Workloads all{
        {"chain", [](Sizes& n, Draw& d) { return chain(n, d, {}); }},
        {"chain-4x4",
         [](Sizes& n, Draw& d) {
             return chain(n, d, {4, 4});
         }},
        {"attention", [](Sizes& n, Draw& d) { return self_attention(n, d, Form::composed); }},
        {"attention-fused", [](Sizes& n, Draw& d) { return self_attention(n, d, Form::fused); }},
        {"decoder", additive_decoder},
        {"encoder", encoder_block},
        {"dates", training_step},
        {"dot", [](Sizes& n, Draw& d) { return scores(n, d, DotScore()); }},
        {"scaled-dot", [](Sizes& n, Draw& d) { return scores(n, d, ScaledDotScore()); }},
        {"bilinear", [](Sizes& n, Draw& d) { return scores(n, d, BilinearScore(n['D'], n['D'], any_weights)); }},
        {"additive",
         [](Sizes& n, Draw& d) { return scores(n, d, AdditiveScore(n['D'], n['D'], n['D'], any_weights)); }}};
    add_recurrent<RNN>(all, "rnn");
    add_recurrent<LSTM>(all, "lstm");
    add_recurrent<GRU>(all, "gru");
    return all;
}

// "rnn T500 B32 H128"
Work make(std::istream& words) {
    std::string kind, size;
    words >> kind;
    Sizes sizes;
    while (words >> size) sizes[size[0]] = std::stoul(size.substr(1));
    const auto all = workloads();
    if (!all.contains(kind)) fail<ValueError>("bench", "there is no workload " + kind);
    Draw draw;
    return all.at(kind)(sizes, draw);
}

// ---- What is done with it

// Of the process, as all runs on one thread: what others do on the machine does not count, except in the caches.
double processor_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

struct Times {
    double all = 0, forward = 0, backward = 0;
};

// From nothing to nothing: what was recorded is released within the time.
Times once(const Work& work) {
    Times times;
    const double start = processor_seconds();
    {
        Tape tape;
        const Forward y = work.forward(tape);
        const double middle = processor_seconds();
        Gradients gradients = tape.backward(y.root, y.wanted, {.seed = y.seed});
        const double end = processor_seconds();
        if (work.train) work.train(gradients);
        times = {0, middle - start, end - middle};
    }
    times.all = processor_seconds() - start;
    return times;
}

void round(const Work& work, double seconds) {
    Times total;
    int count = 0;
    do {
        const Times times = once(work);
        total = {total.all + times.all, total.forward + times.forward, total.backward + times.backward};
        ++count;
    } while (total.all < seconds);
    std::cout << total.all / count << ' ' << total.forward / count << ' ' << total.backward / count << '\n';
}

double product(const Array& x) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += double(x.data()[i]) * noise(0, std::uint32_t(i));
    return sum;
}

void answer(const Work& work) {
    Tape tape;
    const Forward y = work.forward(tape);
    const Gradients gradients = tape.backward(y.root, y.wanted, {.seed = y.seed});
    const auto tell = [&](const std::string& name, const Array& x) {
        std::cout << name << ' ' << norm(x) << ' ' << product(x) << '\n';
    };
    tell("loss", y.root.value());
    for (const auto& [name, parameter] : work.parameters) tell(name, gradients[*parameter]);
    for (std::size_t i = 0; i < y.wanted.size(); ++i) tell("wanted." + std::to_string(i), gradients[y.wanted[i]]);
}

std::size_t memory(const std::string& key) {  // in bytes
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (word == key + ":") {
            status >> word;
            return std::stoul(word) * 1024;
        }
    return 0;
}

void peak(const Work& work) {
    const std::size_t before = memory("VmRSS");
    std::ofstream("/proc/self/clear_refs") << '5';  // VmHWM begins anew
    once(work);
    std::cout << memory("VmHWM") - before << '\n';
}

void flush(bool on) {
#if defined(__SSE2__)
    constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x0040;
    const unsigned flags = flush_to_zero | denormals_are_zero;
    _mm_setcsr(on ? _mm_getcsr() | flags : _mm_getcsr() & ~flags);
#else
    if (on) fail<ValueError>("bench", "this processor's denormals cannot be flushed from here");
#endif
}

}  // namespace

int main() try {
    std::cout.precision(17);
    std::cout << (sizeof(Real) == 4 ? "float " : "double ") << blas_kernel() << ' ' << blas_threads() << "\nend"
              << std::endl;
    Work work;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string command;
        double number = 0;
        words >> command;
        if (command == "work") work = make(words);
        if (command == "once") once(work);
        if (command == "answer") answer(work);
        if (command == "round" && words >> number) round(work, number);
        if (command == "peak") peak(work);
        if (command == "flush" && words >> number) flush(number != 0);
        std::cout << "end" << std::endl;
    }
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}
