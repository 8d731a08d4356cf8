// A state holds what its units and bits can; attention moves the limit.
//
// Counted, not trained, as far as possible: a delay line, the memory of linear networks, a code that no model can beat.
#include <algorithm>
#include <cmath>
#include <numeric>
#include "engine/ops.hpp"
#include "engine/pullback.hpp"
#include "engine/spectrum.hpp"
#include "layers/init.hpp"
#include "layers/optimizer.hpp"
#include "layers/rnn.hpp"
#include "layers/seq2seq.hpp"
#include "lessons/lesson.hpp"
#include "lessons/measure.hpp"
#include "lessons/terminal.hpp"

using namespace lookback;
using terminal::number;
using enum Trace::Kind;

static constexpr std::size_t K = 8;  // symbols to choose from: 3 bits each

// ---- a delay line: a recurrent network whose weights are written down

// Slot s of the state holds the symbol of s steps ago, as one 1 among K zeros. relu leaves such numbers as they are.
static RNN delay_line(std::size_t slots) {
    Array W = filled({K, K * slots}, 0), U = filled({K * slots, K * slots}, 0);
    for (std::size_t k = 0; k < K; ++k) W(k, k) = 1;
    for (std::size_t i = 0; i + K < K * slots; ++i) U(i, i + K) = 1;
    return RNN(Parameter(W), Parameter(U), Parameter(filled({K * slots}, 0)), {.nonlinearity = Nonlinearity::relu});
}

// The last state after symbols (B,T).
static Array last_state(const RNN& rnn, const Indices& symbols) {
    Tape tape;
    Array one_hot = filled({K, K}, 0);
    for (std::size_t k = 0; k < K; ++k) one_hot(k, k) = 1;
    const Tensor x = embedding(tape, Parameter(one_hot), symbols);
    return unroll(rnn, x, rnn.start(tape, symbols.shape()[0])).last.h.value();
}

// The share of symbols that can be read off the last state; one that is nowhere is guessed to be 0.
static double copied(std::size_t slots, const Indices& symbols) {
    const std::size_t B = symbols.shape()[0], T = symbols.shape()[1];
    const Array h = last_state(delay_line(slots), symbols);
    double right = 0;
    for (std::size_t b = 0; b < B; ++b)
        for (std::size_t t = 0; t < T; ++t) {
            const std::size_t slot = T - 1 - t;
            std::int64_t said = 0;
            for (std::size_t k = 0; k < K && slot < slots; ++k)
                if (h(b, slot * K + k) == 1) said = std::int64_t(k);
            right += said == symbols[b * T + t];
        }
    return right / double(B * T);
}

static void delay_lines(Lesson& lesson) {
    lesson.step("Enough units copy anything, without training");
    const std::size_t T = 12, B = 500;
    Generator generator(lesson.seed());
    const Indices symbols = generator.integers({B, T}, 0, std::int64_t(K));
    lesson.say(
        "A recurrent network of 12 slots of 8 units: each step moves every slot one further and puts the new "
        "symbol into the first. After 12 random symbols (8 kinds, 500 rows) we read the slots:");
    std::vector<std::vector<std::string>> rows{{"slots", "units", "symbols right (lost ones by luck: 1 in 8)"}};
    for (const std::size_t slots : {12u, 11u, 6u})
        rows.push_back({number(double(slots)), number(double(delay_line(slots).hidden())),
                        number(100 * copied(slots, symbols), "%.2f %%")});
    lesson.line(terminal::table(rows));
    std::vector<std::int64_t> other(symbols.values().begin(), symbols.values().end());
    for (std::size_t b = 0; b < B; ++b) other[b * T] = (other[b * T] + 1) % std::int64_t(K);
    const Array a = last_state(delay_line(11), symbols), b = last_state(delay_line(11), Indices({B, T}, other));
    const double trace_of_first = measure::relative_difference(numbers(a), numbers(b));
    lesson.say(
        "So a recurrent network (such a one is called a delay line) is not unable to remember: T · K units do it for T "
        "symbols of K kinds, as attention's memory of T states of d numbers does. But with one slot fewer, changing "
        "the "
        "first symbol leaves the state as it was, bit for bit, and what is not in the state, no decoder can find.");
    lesson.check("05.delay_line", "12 slots: share copied", eq, copied(12, symbols), 1, 0, "by construction");
    lesson.check("05.forgotten", "11 slots: traces of the first symbol", exact0, trace_of_first, 0, 0,
                 "by construction");
}

// ---- the memory of a linear network

using Square = std::vector<std::vector<double>>;  // plain matrices, for the route without a tape

static Square product(const Square& A, const Square& B, bool transpose_a = false) {
    const std::size_t n = A.size();
    Square C(n, std::vector<double>(n, 0.0));
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t k = 0; k < n; ++k) C[i][j] += (transpose_a ? A[k][i] : A[i][k]) * B[k][j];
    return C;
}
// x with S x = b, for a symmetric positive S, by S = L Lᵀ.
static std::vector<double> solve(Square L, std::vector<double> b) {
    const std::size_t n = b.size();
    for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = j; i < n; ++i) {
            for (std::size_t k = 0; k < j; ++k) L[i][j] -= L[i][k] * L[j][k];
            L[i][j] /= i == j ? std::sqrt(L[j][j]) : L[j][j];
        }
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < i; ++k) b[i] -= L[i][k] * b[k];
        b[i] /= L[i][i];
    }
    for (std::size_t i = n; i-- > 0;) {
        for (std::size_t k = i + 1; k < n; ++k) b[i] -= L[k][i] * b[k];
        b[i] /= L[i][i];
    }
    return b;
}

struct LinearNetwork {  // h_t = h_{t−1} W + u_t w, for a number u_t
    std::string name;
    char letter;
    Array W, w;
};

// MC_k: which part of the variance of the input of k steps ago the best linear reader gets out of the state.
//   c_k = ∂h_T/∂u_{T−k} by the tape     Σ = Σ_k c_kᵀ c_k by plain doubling, never from these     MC_k = c_k Σ⁻¹ c_kᵀ
static std::vector<double> memory_function(const LinearNetwork& net, std::size_t T) {
    const std::size_t N = net.w.size();
    Tape tape;
    const Tensor W = tape.constant(net.W), w = tape.constant(net.w);
    std::vector<Tensor> u;
    Tensor h = tape.constant(filled({1, N}, 0));
    for (std::size_t t = 0; t < T; ++t) {
        u.push_back(tape.leaf(filled({1, 1}, 1)));
        h = matmul(h, W) + u.back() * w;
    }
    std::vector<std::vector<double>> c(T, std::vector<double>(N));
    for (std::size_t j = 0; j < N; ++j) {
        Array seed = filled({1, N}, 0);
        seed(0, j) = 1;
        const Gradients g = tape.backward(h, u, {.keep = Keep::wanted, .seed = seed});
        for (std::size_t k = 0; k < T; ++k) c[k][j] = g[u[T - 1 - k]]();
    }
    Square S(N, std::vector<double>(N)), A = S;
    for (std::size_t i = 0; i < N; ++i)
        for (std::size_t j = 0; j < N; ++j) S[i][j] = double(net.w(0, i)) * net.w(0, j), A[i][j] = net.W(i, j);
    for (int doubling = 0; doubling < 12; ++doubling, A = product(A, A)) {
        const Square more = product(A, product(S, A), true);
        for (std::size_t i = 0; i < N; ++i)
            for (std::size_t j = 0; j < N; ++j) S[i][j] += more[i][j];
    }
    std::vector<double> memory;
    for (const auto& c_k : c) {
        const std::vector<double> x = solve(S, c_k);
        memory.push_back(std::inner_product(x.begin(), x.end(), c_k.begin(), 0.0));
    }
    return memory;
}

// The same by experiment: fit a reader on the first half of a random input, count what it explains in the second.
static double memory_by_experiment(const LinearNetwork& net, std::size_t lags, Generator& generator) {
    const std::size_t N = net.w.size(), L = 12'000, start = 200;
    Tape tape;
    const NoGrad values_only(tape);
    Tensor h = tape.constant(filled({1, N}, 0));
    const Tensor W = tape.constant(net.W), w = tape.constant(net.w);
    std::vector<std::vector<double>> states;
    std::vector<double> u;
    for (std::size_t t = 0; t < L; ++t) {
        u.push_back(generator.normal());
        states.push_back(numbers((h = matmul(h, W) + Real(u.back()) * w).value()));
    }
    Square S(N, std::vector<double>(N, 0.0));
    for (std::size_t t = start; t < L / 2; ++t)
        for (std::size_t i = 0; i < N; ++i)
            for (std::size_t j = 0; j < N; ++j) S[i][j] += states[t][i] * states[t][j];
    double sum = 0;
    for (std::size_t k = 0; k < lags; ++k) {
        std::vector<double> b(N, 0.0);
        for (std::size_t t = start; t < L / 2; ++t)
            for (std::size_t i = 0; i < N; ++i) b[i] += states[t][i] * u[t - k];
        const std::vector<double> reader = solve(S, b);
        double missed = 0, all = 0;
        for (std::size_t t = L / 2; t < L; ++t) {
            const double said = std::inner_product(reader.begin(), reader.end(), states[t].begin(), 0.0);
            missed += (u[t - k] - said) * (u[t - k] - said);
            all += u[t - k] * u[t - k];
        }
        sum += 1 - missed / all;
    }
    return sum;
}

// Attention over a buffer of all inputs, with their places as keys: which part of each input a look gets back.
static std::vector<double> memory_of_attention(std::size_t T, Generator& generator) {
    const std::size_t B = 50;
    Tape tape;
    Array places = filled({B, T, T}, 0);
    for (std::size_t b = 0; b < B; ++b)
        for (std::size_t t = 0; t < T; ++t) places(b, t, t) = 30;
    const Tensor inputs = tape.constant(generator.normal({B, T, 1})), at = tape.constant(places);
    const Array read = Attention(DotScore())(at, at, inputs).context.value();
    std::vector<double> memory;
    for (std::size_t k = 0; k < T; ++k) {
        double missed = 0, all = 0;
        for (std::size_t b = 0; b < B; ++b) {
            const double wanted = inputs.value()(b, T - 1 - k, 0), off = wanted - read(b, T - 1 - k, 0);
            missed += off * off, all += wanted * wanted;
        }
        memory.push_back(1 - missed / all);
    }
    return memory;
}

static void memory_of_linear_networks(Lesson& lesson) {
    lesson.step("Eight units remember eight numbers, in whatever way");
    const std::size_t N = 8, T = 600, shown = 32;
    Generator generator(lesson.seed() + 1);
    Array shift = filled({N, N}, 0), first = filled({1, N}, 0);
    first(0, 0) = 1;
    for (std::size_t i = 0; i + 1 < N; ++i) shift(i, i + 1) = 1;
    const std::vector<LinearNetwork> nets{
        {"delay line", 'd', shift, first},
        {"0.9 × rotation", 'r', init::orthogonal(generator, {N, N}, 0.9), generator.normal({1, N})},
        {"Gaussian", 'g', generator.normal({N, N}, 0, 0.7 / std::sqrt(double(N))), generator.normal({1, N})}};
    lesson.say(
        "A linear network of 8 units, h_t = h_{t−1} W + u_t w, is fed random numbers u_t. W is a shift (a delay line), "
        "a random rotation times 0.9, or random normal numbers. MC_k is 1 − (mean squared error) / (variance) of the "
        "best linear guess of u_{t−k} from the state: 0 is nothing, 1 all. The sum over all k is its memory capacity.");
    lesson.predict("capacity");
    std::vector<std::vector<std::string>> rows{{"network", "MC_0", "MC_4", "MC_7", "MC_8", "MC_16", "sum over k"}};
    std::vector<terminal::Curve> curves;
    std::vector<double> sums;
    const auto show = [&](const std::string& name, char letter, const std::vector<double>& m) {
        sums.push_back(std::accumulate(m.begin(), m.end(), 0.0));
        rows.push_back({name});
        for (const std::size_t k : {0u, 4u, 7u, 8u, 16u}) rows.back().push_back(number(m[k], "%.4f"));
        rows.back().push_back(number(sums.back(), "%.6f"));
        const std::vector<double> part(m.begin(), m.begin() + shown);
        curves.push_back({letter, name, part, measure::range(0, shown - 1)});
        lesson.trace().series.push_back({.name = "memory, " + name,
                                         .x_label = "steps ago k",
                                         .x = measure::range(0, shown - 1),
                                         .y_label = "memory capacity MC_k",
                                         .y = part});
    };
    for (const LinearNetwork& net : nets) show(net.name, net.letter, memory_function(net, T));
    show("attention, 40 inputs", 'A', memory_of_attention(40, generator));
    lesson.line(terminal::table(rows));
    lesson.line(terminal::chart(curves, {"steps ago, k"}, {"MC_k, the part that can be read"}, 11));
    lesson.reveal("capacity", sums[1], double(N));
    const double fitted = memory_by_experiment(nets[1], 60, generator);
    lesson.say(
        "Forgetting can be sharp or smooth; the sum is the number of units (if the inputs reach them all: Gonon, "
        "Grigoryeva & Ortega 2020, abstract). By experiment, a reader fitted to 5800 steps and tested on 6000 others, "
        "summed over k < 60, finds " +
        number(fitted, "%.2f") +
        " in the rotation: an estimate, of which each part has an error. Attention over a buffer of 40 inputs has 40: "
        "its memory grows with the text.");
    lesson.check("05.capacity_shift", "Delay line of 8: Σ MC_k", eq, sums[0], double(N), 1e-12,
                 "Gonon, Grigoryeva & Ortega 2020, abstract");
    lesson.check("05.capacity", "Random networks of 8: |Σ MC_k − 8|", lesson.typical(le),
                 std::max(std::abs(sums[1] - double(N)), std::abs(sums[2] - double(N))), 0, 1e-8,
                 "Gonon, Grigoryeva & Ortega 2020, abstract");
    lesson.check("05.capacity_fitted", "… and by a fitted reader", lesson.typical(slope), fitted, double(N), 0.4,
                 "regression, held-out half");
    lesson.check("05.capacity_attention", "Attention over 40 inputs: Σ MC_k", eq, sums[3], 40, 1e-12,
                 "one look at each place");
}

// ---- bits

// With B bits, at most 2^B of the K^T rows can be told apart. Then the mean cross-entropy a symbol is at least this.
static double least_loss(double T, double bits) {
    return std::max(0.0, std::log(double(K)) - bits * std::log(2.0) / T);
}

// The code that keeps as many whole symbols as it has bits for, is sure of these, and guesses the rest.
static double loss_of_code(std::size_t T, std::size_t bits, Generator& generator) {
    const std::size_t kept = std::min(T, bits / 3);
    const Indices symbols = generator.integers({T}, 0, std::int64_t(K));
    Array logits = filled({T, K}, 0);
    for (std::size_t t = 0; t < kept; ++t) logits(t, std::size_t(symbols[t])) = 60;
    Tape tape;
    return double(cross_entropy(tape.constant(logits), symbols).item());
}

static void bits(Lesson& lesson) {
    lesson.step("Bits: a loss that no training can go below");
    lesson.say(
        "Let the state have B bits. T random symbols of 8 kinds need 3T. In nats (a bit is ln 2 of them) all symbols "
        "hold T ln 8, of which the state can tell B ln 2. So the loss (mean cross-entropy a symbol) is at least "
        "ln 8 − B ln 2 / T (Fano's argument), and never below 0. Is that bound loose? A code "
        "that keeps B/3 symbols and guesses the others, by the tape's cross-entropy:");
    Generator generator(lesson.seed() + 2);
    std::vector<std::vector<std::string>> rows{{"T", "B", "bits needed", "least loss, nats", "loss of the code"}};
    double worst = 0;
    std::vector<double> x, bound, reached;
    for (const std::size_t T : {4u, 8u, 16u, 32u}) {
        const double least = least_loss(double(T), 24), code = loss_of_code(T, 24, generator);
        worst = std::max(worst, std::abs(least - code));
        x.push_back(double(T)), bound.push_back(least), reached.push_back(code);
        rows.push_back({number(double(T)), "24", number(3.0 * double(T)), number(least, "%.6f"), number(code, "%.6f")});
    }
    lesson.line(terminal::table(rows));
    lesson.say(
        "The bound is met exactly: it is what B bits are worth. It does not say that a network learns such a "
        "code. A state of 32 numbers of 64 bits has 2048 in this program, and 20 words out of 30,000 need "
        "20 · 15 = 300; that translators failed there is for lesson 06 to explain, and bits are not the reason.");
    for (const auto& [name, y] : {std::pair{"code of 24 bits", &reached}, {"code of 24 bits theory", &bound}})
        lesson.trace().series.push_back(
            {.name = name, .x_label = "symbols T", .x = x, .y_label = "cross-entropy", .y_unit = "nats", .y = *y});
    lesson.check("05.least_loss", "24 bits: loss of the code − least loss", le, worst, 0, 1e-12, "Fano; our own code");
}

// ---- an encoder and a decoder

static Seq2Seq translator(DecoderKind kind, std::size_t hidden, Generator& generator) {
    return Seq2Seq(Alphabet::first + K, Alphabet::first + K, generator,
                   {.embedding = 16, .hidden = hidden, .attention = hidden, .decoder = kind});
}

struct Rows {
    Padded source;
    Shifted target;
};
static Rows rows_to_copy(std::size_t B, std::size_t T, Generator& generator) {
    std::vector<Ids> sources(B), targets(B);
    for (std::size_t b = 0; b < B; ++b) {
        targets[b].push_back(Alphabet::begin);
        for (std::size_t t = 0; t < T; ++t) {
            sources[b].push_back(generator.integer(Alphabet::first, Alphabet::first + std::int64_t(K)));
            targets[b].push_back(sources[b].back());
        }
    }
    return {padded(sources), shifted(targets)};
}

// Scores of the next symbol from what the decoder is given of the source: as Seq2Seq does, but from a changed Encoded.
static Tensor decode(const Seq2Seq& model, Tape& tape, const Encoded& encoded, const Indices& inputs) {
    const Tensor y = model.target(tape, inputs);
    return std::visit(
        [&](const auto& d) {
            const Memory memory = d.remember(encoded);
            DecoderState state = d.start(encoded);
            std::vector<Tensor> s, fed;
            for (const Tensor& a : unbind(d.project(y), 1)) {
                state = d.step(a, state, memory).state;
                s.push_back(state.s);
                if (state.fed.owner()) fed.push_back(state.fed);
            }
            return model.out(d.readout(stack(s, 1), fed.empty() ? Tensor() : stack(fed, 1), y));
        },
        model.decoder);
}

static void one_way(Lesson& lesson) {
    lesson.step("One vector, or all states: which ways does a decoder have?");
    const std::size_t T = 12;
    lesson.say(
        "An encoder reads 12 symbols; a decoder writes. We cut the one vector c between them (the value stays, "
        "gradients stop) and ask the tape what still comes back to the encoder's states h_i:");
    std::vector<std::vector<std::string>> rows{{"decoder", "Σ ‖∂L/∂h_i‖, c uncut", "c cut", "numbers it can read"}};
    std::vector<double> cut_norms, readable;
    for (const auto& [kind, name] :
         {std::pair{DecoderKind::plain, "plain: c alone"}, {DecoderKind::bahdanau, "with attention"}}) {
        Generator generator(lesson.seed() + 3);
        const Seq2Seq model = translator(kind, 16, generator);
        const Rows data = rows_to_copy(4, T, generator);
        std::vector<double> lengths;
        double size = 0;
        for (const bool cut : {false, true}) {
            Tape tape;
            Encoded encoded = model.encode(tape, data.source);
            if (cut) encoded.summary = detach(encoded.summary);
            const Tensor loss = cross_entropy(decode(model, tape, encoded, data.target.inputs), data.target.targets);
            const std::vector<Tensor> h = encoded.sequences[0].hidden();
            const Gradients g = tape.backward(loss, h, {.keep = Keep::wanted});
            double sum_of_norms = 0;
            for (const Tensor& state : h) sum_of_norms += norm(g[state]);
            lengths.push_back(sum_of_norms);
            size = double(kind == DecoderKind::plain ? encoded.summary.size() : encoded.states.size()) / 4;
        }
        rows.push_back({name, number(lengths[0]), number(lengths[1]), number(size)});
        cut_norms.push_back(lengths[1]), readable.push_back(size);
    }
    lesson.line(terminal::table(rows));
    lesson.say(
        "Without c nothing comes back to the plain decoder's encoder. With attention something still does, by way of "
        "all 12 states of 32 numbers.");
    lesson.check("05.one_way", "Plain decoder, c cut: Σ ‖∂L/∂h_i‖", exact0, cut_norms[0], 0, 0,
                 "the plain encoder–decoder, as Sutskever et al. 2014");
    lesson.check("05.second_way", "With attention, c cut: Σ ‖∂L/∂h_i‖", ge, cut_norms[1], 1e-9, 0,
                 "Bahdanau et al. 2015, §3.1");
    lesson.check("05.readable", "Numbers to read: attention over plain", eq, readable[1] / readable[0], double(T), 0,
                 "T states of one size");
}

static void one_look(Lesson& lesson) {
    lesson.step("Attention has a bottleneck too: one look brings one vector");
    const std::size_t T = 10, d = 4;
    Tape tape;
    const Tensor values = tape.constant(Array{0, 1, 2}),
                 weights = tape.constant(Array{{0.25, 0.5, 0.25}, {0, 1, 0}, {0.5, 0, 0.5}});
    const std::vector<double> c = numbers(matmul(weights, values).value());
    lesson.say(
        "The course says: no compression, all positions are attended to. All are kept, but a look returns a "
        "weighted mean. Of the values 0, 1, 2 the weights (¼, ½, ¼), (0, 1, 0) and (½, 0, ½) bring " +
        number(c[0]) + ", " + number(c[1]) + " and " + number(c[2]) + ".");

    // Weights that differ by what no value sees: orthogonal to each column of [V 1].
    Generator generator(lesson.seed() + 4);
    Array V1 = generator.normal({T, d + 1});
    for (std::size_t t = 0; t < T; ++t) V1(t, d) = 1;
    const double freedom = double(T) - double(rank(V1));
    std::vector<std::vector<double>> basis;
    const auto without_basis = [&](std::vector<double> v) {
        for (int twice = 0; twice < 2; ++twice)
            for (const auto& b : basis) {
                const double part = std::inner_product(v.begin(), v.end(), b.begin(), 0.0);
                for (std::size_t t = 0; t < T; ++t) v[t] -= part * b[t];
            }
        return v;
    };
    for (std::size_t j = 0; j <= d; ++j) {
        std::vector<double> column;
        for (std::size_t t = 0; t < T; ++t) column.push_back(V1(t, j));
        column = without_basis(column);
        const double length = measure::length(column);
        for (double& x : column) x /= length;
        basis.push_back(column);
    }
    const std::vector<double> unseen = without_basis(numbers(generator.normal({T})));
    double largest = 0, moved = 0;
    for (const double x : unseen) largest = std::max(largest, std::abs(x));
    Array two = filled({2, T}, Real(1.0 / double(T)));
    for (std::size_t t = 0; t < T; ++t) {
        const double change = unseen[t] / largest / double(T);  // a weight may fall to 0, not below
        two(1, t) += Real(change);
        moved += std::abs(change) / 2;
    }
    const Array contexts = matmul(tape.constant(two), tape.constant(V1)).value();
    double apart = 0;
    for (std::size_t j = 0; j < d; ++j) apart = std::max(apart, std::abs(double(contexts(0, j)) - contexts(1, j)));
    lesson.say(
        "With 10 positions and values of 4 numbers, 10 − 5 = 5 directions of the weights leave the context as it "
        "is. Moving " +
        number(100 * moved, "%.0f %%") + " of the weight along one of them changes the context by " +
        number(apart, "%.0e") + ". So the bottleneck has moved, from what is kept to what one look returns.");
    lesson.check("05.same_context", "Three weightings of (0, 1, 2): c − 1", exact0,
                 std::max({std::abs(c[0] - 1), std::abs(c[1] - 1), std::abs(c[2] - 1)}), 0, 0, "our own arithmetic");
    lesson.check("05.freedom", "10 places, 4 numbers: free directions", eq, freedom, 5, 0, "T − rank [V 1]");
    lesson.check("05.unseen", "Weights moved along one: context moves", le, apart, 0, 1e-14, "linear algebra");
}

// ---- trained: each unit of what the decoder is given is rounded to one bit

// −1 or 1 in place of x; the gradient passes as if nothing had been rounded ("straight through").
static Tensor one_bit(const Tensor& x) {
    Array y = x.value();
    for (Real& unit : y) unit = unit < 0 ? -1 : 1;
    return record("one_bit", {x}, std::move(y), saves::nothing, [](Pullback& p) { p.x_bar(0) += p.y_bar(); });
}
static Tensor rounded_logits(const Seq2Seq& model, Tape& tape, const Rows& data) {
    Encoded encoded = model.encode(tape, data.source);
    encoded.summary = one_bit(encoded.summary);
    encoded.states = one_bit(encoded.states);
    return decode(model, tape, encoded, data.target.inputs);
}

struct Trained {
    double loss, standard_error;  // on 512 new rows
};
static Trained train(DecoderKind kind, std::size_t T, std::size_t updates, std::uint64_t seed,
                     terminal::Progress& progress, double from, double share) {
    Generator generator(seed);
    Seq2Seq model = translator(kind, 16, generator);
    Adam adam({.rate = cosine(1e-2, updates, updates / 20)});
    for (std::size_t update = 0; update < updates; ++update) {
        const Rows data = rows_to_copy(32, T, generator);
        Tape tape;
        Gradients g = tape.backward(cross_entropy(rounded_logits(model, tape, data), data.target.targets));
        clip_by_norm(model, g, 1);
        adam.step(model, g);
        progress.at(from + share * double(update) / double(updates));
    }
    Tape tape;
    const NoGrad values_only(tape);
    const Rows data = rows_to_copy(512, T, generator);
    const Tensor each =
        mean(cross_entropy(rounded_logits(model, tape, data), data.target.targets, {.reduction = Reduction::none}), 1);
    const std::vector<double> losses = numbers(each.value());
    return {measure::mean(losses), measure::standard_error(losses)};
}

static void trained(Lesson& lesson) {
    lesson.step("Trained: 32 bits between encoder and decoder");
    lesson.say(
        "Copy T symbols of 8. Every number that the decoder gets from the encoder is rounded to −1 or 1: 32 bits "
        "in all without attention, 32 bits a position with it. Loss on 512 new rows, after 500 updates:");
    terminal::Progress progress("Copying");
    const std::vector<std::size_t> lengths{4, 8, 16, 32};
    std::vector<std::vector<std::string>> rows{{"T", "bits needed", "least loss with 32", "plain", "with attention"}};
    std::vector<double> x, least, plain, attends;
    double margin = 1e308, done = 0;
    for (const std::size_t T : lengths) {
        const double share = double(T) / 120;
        const Trained p = train(DecoderKind::plain, T, 500, lesson.seed(), progress, done, share);
        const Trained a = train(DecoderKind::luong, T, 500, lesson.seed(), progress, done + share, share);
        done += 2 * share;
        x.push_back(double(T)), least.push_back(least_loss(double(T), 32));
        plain.push_back(p.loss), attends.push_back(a.loss);
        margin = std::min(margin, (p.loss - least.back()) / p.standard_error);
        rows.push_back({number(double(T)), number(3.0 * double(T)), number(least.back(), "%.4f"),
                        number(p.loss, "%.4f"), number(a.loss, "%.4f")});
    }
    lesson.line(terminal::table(rows));
    lesson.line(terminal::chart({{'f', "least loss with 32 bits", least, x},
                                 {'p', "plain decoder", plain, x},
                                 {'a', "with attention", attends, x}},
                                {"symbols to copy, T"}, {"cross-entropy a symbol"}, 11));
    lesson.say(
        "The plain decoder stays above the line that bits draw, by far: learning the code is the harder part. "
        "Attention may go below, since what it can read grows with T.");
    for (const auto& [name, y] :
         {std::pair{"least loss with 32 bits theory", &least}, {"plain", &plain}, {"with attention", &attends}})
        lesson.trace().series.push_back(
            {.name = name, .x_label = "symbols T", .x = x, .y_label = "cross-entropy", .y_unit = "nats", .y = *y});
    lesson.check("05.trained_bound", "Plain: (loss − least loss) / s.e., min", ge, margin, -3, 0, "Fano");
    lesson.check("05.attention_below", "Attention, T = 32: loss below the line", target, attends[3], 0, least[3],
                 "our own measurement");
}

int main(int argc, char** argv) {
    Lesson lesson("05_information_bottleneck", "A state holds what its units and bits can; attention moves the limit.");
    lesson.prediction("capacity", "A random rotation (× 0.9) of 8 units: what is the sum of all MC_k?");
    lesson.exercise(
        "units", "How many units does a delay line need to copy T = 12 symbols of K = 8 kinds?",
        [] { return double(delay_line(12).hidden()); }, 0, "a slot for each symbol, a unit for each kind.");
    lesson.exercise(
        "bits", "How many bits does any code for T = 12 symbols of K = 8 kinds need?",
        [] {
            double bits = 0;
            while (least_loss(12, bits) > 1e-12) ++bits;
            return bits;
        },
        0, "there are 8^12 rows. How many times must you double 1 to get there?");
    return lesson.run(argc, argv, [&] {
        delay_lines(lesson);
        memory_of_linear_networks(lesson);
        bits(lesson);
        one_way(lesson);
        one_look(lesson);
        if (!lesson.quick()) trained(lesson);
    });
}
