// Assignment 2: its tasks, inputs, and what is expected of them, by routes that students do not take: the tape for
// gradients, LAPACK for spectra, the oracles of the literature.
#include <algorithm>
#include <cmath>
#include "course.hpp"
#include "engine/ops.hpp"
#include "engine/spectrum.hpp"
#include "layers/init.hpp"
#include "lessons/by_hand.hpp"
#include "lessons/measure.hpp"

namespace lookback {

namespace {

using Arrays = std::vector<Array>;

struct Sizes {
    std::size_t T, B, I, H;
};

// An RNN, its inputs, and how a loss depends on each of its states by itself.
struct Problem {
    Arrays x;
    Array W, U, b, h0;
    Arrays direct;
};

Problem problem(Generator& g, const Sizes& n, bool only_last) {
    Problem p;
    for (std::size_t t = 0; t < n.T; ++t) p.x.push_back(g.normal({n.B, n.I}));
    p.W = g.normal({n.I, n.H}, 0, 0.7), p.U = g.normal({n.H, n.H}, 0, 0.7), p.b = g.normal({1, n.H}, 0, 0.3);
    p.h0 = g.uniform({n.B, n.H}, -0.9, 0.9);
    for (std::size_t t = 0; t < n.T; ++t) p.direct.push_back(only_last ? filled({n.B, n.H}, 0) : g.normal({n.B, n.H}));
    p.direct.push_back(g.normal({n.B, n.H}));
    return p;
}

Sizes sizes(Generator& g) {
    const auto between = [&](int low, int high) { return std::size_t(g.integer(low, high + 1)); };
    return {between(3, 7), between(2, 4), between(2, 3), between(4, 6)};  // all different where a mix-up could hide
}

// What the tape says of it. The loss is Σ_t Σ direct_t ⊙ h_t, which depends on each state as it should.
struct Taped {
    Arrays h, dh;
    Array dW, dU, db;
};

Taped on_tape(const Problem& p, std::size_t window = 0) {
    Tape tape;
    const Parameter W(p.W, "W"), U(p.U, "U"), b(p.b, "b");
    std::vector<Tensor> h{tape.leaf(p.h0)};
    for (std::size_t t = 0; t < p.x.size(); ++t) {
        const Tensor from = window && t && t % window == 0 ? detach(h[t]) : h[t];
        h.push_back(tanh(matmul(tape.constant(p.x[t]), W) + matmul(from, U) + b));
    }
    Tensor loss = 0;
    for (std::size_t t = 0; t < h.size(); ++t) loss = loss + sum(tape.constant(p.direct[t]) * h[t]);
    const Gradients g = tape.backward(loss, h);
    Taped result{{}, {}, g[W], g[U], g[b]};
    for (const Tensor& state : h) result.h.push_back(state.value()), result.dh.push_back(g[state]);
    return result;
}

Matrix matrix(const Array& a) {
    Matrix m(a.shape(0), a.shape(1));
    std::copy(a.begin(), a.end(), m.data().begin());
    return m;
}

// ---- 2.1
Json step(const Array& x, const Array& h, const Array& W, const Array& U, const Array* b) {
    Tape tape;
    const NoGrad off(tape);
    Tensor a = matmul(tape.constant(x), tape.constant(W)) + matmul(tape.constant(h), tape.constant(U));
    if (b) a = a + tape.constant(*b);
    return encode(tanh(a).value());
}

void tanh_cell(Suite& s) {
    s.task("2.1", "The tanh cell", 10,
           "h' = tanh(x W + h U + b), with b added to every row; mind which product comes first.",
           {"x", "h", "W", "U", "b"});
    const auto add = [&](const std::string& name, const Array& x, const Array& h, const Array& W, const Array& U,
                         const Array& b) {
        s.add(name, arguments(x, h, W, U, b), step(x, h, W, U, &b));
        s.mistake(step(x, h, W, U, nullptr), "b is missing.");
        s.mistake(step(x, h, W, xt::transpose(U), &b), "U is transposed: a row h goes through h U.");
    };
    add("one row, two units", filled({1, 1}, 1), Array{{0.5, -0.5}}, Array{{0.3, 0.2}}, Array{{1, 2}, {0, -1}},
        Array{{0.1, -0.1}});
    s.draw(2, [&](Generator& g) {
        const Problem p = problem(g, sizes(g), true);
        add("random, several rows", p.x[0], p.h0, p.W, p.U, p.b);
    });
}

// ---- 2.2
void unrolling(Suite& s) {
    s.task(
        "2.2", "Unrolling", 10,
        "T + 1 states, the first of which is h0; each step begins from the state before it. (The cell here: 2 x - h.)",
        {"x", "h0"});
    const auto add = [&](const std::string& name, const std::vector<Matrix>& x, const Matrix& h0) {
        std::vector<Matrix> h{h0};
        for (const Matrix& input : x) h.push_back(2.0 * input - h.back());  // the cell of calls.cpp
        s.add(name, arguments(x, h0), encode(h));
        s.mistake(encode(std::vector<Matrix>(h.begin() + 1, h.end())), "h0 itself is the first of the T + 1 states.");
        for (std::size_t t = 0; t < x.size(); ++t) h[t + 1] = 2.0 * x[t] - h0;
        s.mistake(encode(h), "every step began from h0, not from the state before it.");
    };
    add("three steps of one number", {Matrix{{1}}, Matrix{{5}}, Matrix{{2}}}, Matrix{{3}});
    add("no step at all", {}, Matrix{{1, 2}});
    s.draw(2, [&](Generator& g) {
        const Problem p = problem(g, sizes(g), true);
        std::vector<Matrix> x;
        for (std::size_t t = 0; t < p.x.size(); ++t) x.push_back(matrix(g.normal(p.h0.shape())));
        add("random, several rows", x, matrix(p.h0));
    });
}

// ---- 2.3
enum class Flaw { derivative, old_slope, transpose, direct, state, last_only };

// The equations of the hand-out with one of their parts wrong.
Json flawed(const Problem& p, const Taped& right, Flaw flaw) {
    const Matrix U = matrix(p.U);
    std::vector<Matrix> dh;
    for (const Array& d : p.direct) dh.push_back(matrix(d));
    Matrix dW(p.W.shape(0), U.rows()), dU(U.rows(), U.rows()), db(1, U.rows());
    for (std::size_t t = p.x.size(); t-- > 0;) {
        Matrix da = dh[t + 1];
        const Matrix h = matrix(right.h[flaw == Flaw::old_slope ? t : t + 1]);
        if (flaw != Flaw::derivative)
            for (std::size_t k = 0; k < da.size(); ++k) da.data()[k] *= 1 - h.data()[k] * h.data()[k];
        const Matrix back = da * (flaw == Flaw::transpose ? U : transpose(U));
        dh[t] = flaw == Flaw::direct ? back : dh[t] + back;
        if (flaw == Flaw::last_only) dW = 0.0 * dW, dU = 0.0 * dU, db = 0.0 * db;
        dW += transpose(matrix(p.x[t])) * da;
        dU += transpose(matrix(right.h[flaw == Flaw::state ? t + 1 : t])) * da;
        db += Matrix(1, da.rows(), 1) * da;
    }
    return {{"dh", encode(dh)}, {"dW", encode(dW)}, {"dU", encode(dU)}, {"db", encode(db)}};
}

// The two-unit RNN of spectral radius 0 and norm 16 that stands still at (0, ½), where gradients double at every step.
Problem still_but_exploding(std::size_t T) {
    Problem p{Arrays(T, filled({1, 1}, 0)),     Array{{0, 0}},   Array{{8, -8}, {8, -8}},
              Array{{-4, 4 + std::atanh(0.5)}}, Array{{0, 0.5}}, Arrays(T, Array{{0, 0}})};
    p.direct.push_back(Array{{1, 0}});
    return p;
}

void by_hand_gradients(Suite& s) {
    s.task("2.3", "Backpropagation through time, by hand", 30,
           "from the last step down: da = dh[t+1] ⊙ (1 − h[t+1]²); dh[t] gets da Uᵀ, dW gets x[t]ᵀ da, dU gets "
           "h[t]ᵀ da, db the sum of the rows of da.",
           {"x", "h", "U", "direct"});
    const auto add = [&](const std::string& name, const Problem& p) {
        const Taped right = on_tape(p);
        s.add(name, arguments(p.x, right.h, p.U, p.direct),
              {{"dh", encode(right.dh)}, {"dW", encode(right.dW)}, {"dU", encode(right.dU)}, {"db", encode(right.db)}});
        s.mistake(flawed(p, right, Flaw::derivative),
                  "the slope of tanh is missing: da = dh[t+1] ⊙ (1 − h[t+1]²), element by element.");
        s.mistake(flawed(p, right, Flaw::old_slope),
                  "the slope of tanh is that at the state which the step made: 1 − h[t+1]², not 1 − h[t]².");
        s.mistake(flawed(p, right, Flaw::transpose),
                  "U stands where its transpose belongs: forward is h U, so backward is da Uᵀ.");
        s.mistake(
            flawed(p, right, Flaw::direct),
            "the direct gradients of the earlier states are lost: dh[t] is direct[t] plus what comes from t + 1.");
        s.mistake(flawed(p, right, Flaw::state),
                  "dU gets h[t]ᵀ da with the state that the step began from, not the one it made.");
        s.mistake(flawed(p, right, Flaw::last_only),
                  "only one step is left in dW, dU and db: every step adds to them (+=, not =).");
    };
    Generator fixed(23);
    add("one step, one row, one unit", problem(fixed, {1, 1, 1, 1}, true));
    add("the loss looks at the last state only", problem(fixed, {4, 1, 2, 3}, true));
    add("the loss looks at every state", problem(fixed, {3, 2, 2, 3}, false));
    add("radius 0, and yet the gradient doubles at every step", still_but_exploding(10));
    s.draw(2, [&](Generator& g) { add("random, several rows", problem(g, sizes(g), false)); });
}

// ---- 2.4
void norms_and_slope(Suite& s) {
    s.task("2.4", "Lengths and their slope", 15,
           "norms in the order of dh; the line is fitted to ln(norm) over steps back, T - t, so a gradient that "
           "vanishes has a negative slope.",
           {"dh"});
    const auto add = [&](const std::string& name, const Arrays& dh) {
        std::vector<double> lengths, k, y;
        for (std::size_t t = 0; t < dh.size(); ++t) {
            lengths.push_back(measure::length({dh[t].begin(), dh[t].end()}));
            if (lengths.back() > 0) k.push_back(double(dh.size() - 1 - t)), y.push_back(std::log(lengths.back()));
        }
        double S1 = double(k.size()), Sk = 0, Sy = 0, Skk = 0, Sky = 0;  // the normal equations
        for (std::size_t i = 0; i < k.size(); ++i) Sk += k[i], Sy += y[i], Skk += k[i] * k[i], Sky += k[i] * y[i];
        const double slope = (S1 * Sky - Sk * Sy) / (S1 * Skk - Sk * Sk);
        const auto answer = [&](double of) { return Json{{"norms", encode(lengths)}, {"slope", of}}; };
        s.add(name, arguments(dh), answer(slope));
        s.mistake(answer(-slope), "the slope has the wrong sign: it is per step back in time, over T - t.");
        s.mistake(answer(slope / std::log(10.0)), "that is the slope of log10; ln is wanted.");
    };
    const auto powers = [](const Array& U, const Array& last, std::size_t T) {  // h_{t+1} = h_t U
        Arrays dh{last};
        for (std::size_t t = 0; t < T; ++t) {
            const std::vector<double> g = by_hand::times(U, {dh.back().begin(), dh.back().end()});
            Array row = filled({1, g.size()}, 0);
            std::copy(g.begin(), g.end(), row.begin());
            dh.push_back(row);
        }
        return Arrays(dh.rbegin(), dh.rend());
    };
    Generator fixed(24);
    const Array rotation = init::orthogonal(fixed, {4, 4}, 0.9);
    add("0.9 times a rotation: slope ln 0.9", powers(rotation, Array{{1, 0, 2, -1}}, 12));
    add("a state far back: norms near 1e-200", powers(rotation, Array{{1e-200, 0, 2e-200, -1e-200}}, 12));
    s.note("The square of 1e-200 is 0 in double: divide by the largest |element| first, and multiply the root by it.");
    add("it reaches 0: nilpotent U", powers(Array{{0, 3, 0}, {0, 0, 3}, {0, 0, 0}}, Array{{1, 1, 1}}, 6));
    s.note("Lengths that are 0 have no logarithm: they stay in norms and are left out of the line.");
    add("[[0.5, 10], [0, 0.5]]: it grows before it shrinks", powers(Array{{0.5, 10}, {0, 0.5}}, Array{{0, 1}}, 20));
    s.draw(2, [&](Generator& g) { add("a tanh RNN, several rows", on_tape(problem(g, sizes(g), true)).dh); });
}

// ---- 2.5
void norm_and_radius(Suite& s) {
    s.task(
        "2.5", "Norm and radius: what each promises", 15,
        "‖U‖ = sqrt(ρ(UᵀU)). Far back a linear RNN goes as ρ^(T−t), whatever the norm; at every step of any tanh RNN "
        "‖J_t‖ ≤ ‖U‖, which is a promise if ‖U‖ < 1.",
        {"U"});
    const auto add = [&](const std::string& name, const Array& U) {
        const double norm = spectral_norm(U), found = spectral_radius(U);
        const double radius = found < 1e-9 * norm ? 0 : found;  // of a nilpotent matrix LAPACK finds its own rounding
        const auto answer = [](double n, double r, bool linear, bool promises) {
            return Json{{"norm", n}, {"radius", r}, {"linear_vanishes", linear}, {"norm_promises", promises}};
        };
        s.add(name, arguments(U), answer(norm, radius, radius < 1, norm < 1), 1e-6);
        const double all = frobenius_norm(U);
        s.mistake(answer(all, radius, radius < 1, all < 1),
                  "that is the Frobenius norm, the root of all squares; the spectral norm is the largest stretch of "
                  "one vector.");
        s.mistake(answer(norm * norm, radius, radius < 1, norm < 1),
                  "that is the largest eigenvalue of UᵀU; the norm is its root.");
        s.mistake(answer(norm, radius, norm < 1, norm < 1),
                  "a linear RNN with norm above 1 may still vanish: its powers go as the radius.");
        s.mistake(answer(norm, radius, radius < 1, radius < 1),
                  "‖U‖ < 1 is what the norm promises; ρ(U) < 1 alone promises nothing for the tanh RNN: "
                  "[[8, -8], [8, -8]] has ρ = 0, and its gradients can double at every step.");
    };
    add("diagonal", Array{{0.5, 0, 0}, {0, 0.9, 0}, {0, 0, 0.25}});
    add("nilpotent", Array{{0, 3}, {0, 0}});
    s.note("Where a power of U is 0, the radius is 0: do not divide by its norm.");
    add("a quarter turn of a stretch", Array{{0, -0.5}, {1.25, 0}});  // norm 1.25, square −0.625 I
    s.note(
        "Its eigenvalues are a complex pair, for which power iteration (one vector, again and again) does not settle: "
        "square the matrix instead.");
    add("it grows before it shrinks", Array{{0.5, 10}, {0, 0.5}});
    add("radius 0, norm 16", Array{{8, -8}, {8, -8}});
    s.note("Its square is 0: where a power of U is 0, the radius is 0.");
    s.draw(2, [&](Generator& g) {
        const std::size_t n = std::size_t(g.integer(3, 8));
        Array U = g.normal({n, n}, 0, 1 / std::sqrt(double(n)));
        const double wanted = g.uniform(0.6, 0.9), large = g.uniform() < 0.3 ? 1.4 : 1;  // not too near 1
        U *= wanted * large / spectral_radius(U);
        add("random", U);
    });
}

// ---- 2.6
void clipping(Suite& s) {
    s.task("2.6", "Clipping by the global norm", 10,
           "one norm of all gradients together, and one factor for all; gradients that are short enough stay as they "
           "are.",
           {"gradients", "most"});
    const auto add = [&](const std::string& name, const Arrays& gradients, double most) {
        double squares = 0;
        for (const Array& g : gradients) squares += sum_of_squares(g);
        const double norm = std::sqrt(squares);
        const auto clipped = [&](const std::function<double(const Array&)>& factor) {
            Json list = Json::array();
            for (const Array& g : gradients) list.push_back(encode(Array(g * factor(g))));
            return Json{{"gradients", list}, {"norm", norm}};
        };
        s.add(name, arguments(gradients, most), clipped([&](const Array&) { return norm > most ? most / norm : 1; }));
        s.mistake(clipped([&](const Array& g) { return std::min(1.0, most / std::max(lookback::norm(g), 1e-300)); }),
                  "each matrix was clipped by itself, which turns the gradient; one factor keeps its direction.");
        s.mistake(clipped([&](const Array&) { return most / std::max(norm, 1e-300); }),
                  "gradients shorter than the limit were made longer.");
        Json clamped = Json::array();
        for (Array g : gradients) {
            for (double& x : g) x = std::clamp(x, -most, most);
            clamped.push_back(encode(g));
        }
        s.mistake({{"gradients", clamped}, {"norm", norm}},
                  "each element was clipped by itself, which turns the gradient; one factor keeps its direction.");
    };
    add("(3, 4) and (12), limit 1", {Array{{3, 4}}, filled({1, 1}, 12)}, 1);
    add("(3) and (4), limit 1", {filled({1, 1}, 3), filled({1, 1}, 4)}, 1);
    add("short enough", {Array{{0.3, 0.1}}, filled({1, 1}, 0.4)}, 1);
    add("all zero", {filled({1, 2}, 0), filled({1, 1}, 0)}, 1);
    s.draw(2, [&](Generator& g) {
        const std::size_t n = std::size_t(g.integer(2, 5));
        add("random", {g.normal({n, n}), g.normal({1, n}), g.normal({n, 2})}, g.uniform(0.5, 1.5));
    });
}

// ---- 2.7
void truncation(Suite& s) {
    s.task("2.7", "Truncated windows", 10,
           "dh[t] = direct[t] + dh[t+1] jacobian[t]ᵀ, without the second part where the step began with a bare value: "
           "t > 0 and t % window == 0.",
           {"jacobian", "direct", "window"});
    const auto add = [&](const std::string& name, const Problem& p, std::size_t window) {
        const Taped right = on_tape(p, window);
        Arrays jacobians;
        for (std::size_t t = 0; t < p.x.size(); ++t) jacobians.push_back(by_hand::rnn_jacobian(p.U, right.h[t + 1]));
        s.add(name, arguments(jacobians, p.direct, window), encode(right.dh));
        const auto cut = [&](const std::function<bool(std::size_t)>& at, bool transposed = true) {
            std::vector<Matrix> dh;
            for (const Array& d : p.direct) dh.push_back(matrix(d));
            for (std::size_t t = p.x.size(); t-- > 0;)
                if (const Matrix J = matrix(jacobians[t]); !at(t)) dh[t] += dh[t + 1] * (transposed ? transpose(J) : J);
            return encode(dh);
        };
        s.mistake(cut([](std::size_t) { return false; }), "nothing was cut.");
        s.mistake(
            cut([&](std::size_t t) { return (t + 1) % window == 0; }),
            "the cuts are one step early: what is cut is the step from h_t, t % window == 0, not the step to it.");
        for (const std::size_t first : {1, 2})
            s.mistake(cut([&](std::size_t t) { return t >= first && (t - 1) % window == 0; }),
                      "the cuts are one step late: what is cut is the step from h_t, t % window == 0.");
        s.mistake(cut([&](std::size_t t) { return t && t % window == 0; }, false),
                  "the transpose is missing: dh[t+1] jacobian[t]ᵀ.");
        s.mistake(cut([&](std::size_t t) { return (p.x.size() - t) % window == 0; }),
                  "windows are counted from the first step, not from the last.");
        s.mistake(cut([&](std::size_t t) { return t % window == 0; }),
                  "nothing is cut at t = 0: h_0 is where the first window begins.");
    };
    Generator fixed(27);
    add("8 steps in windows of 3, loss at the end", problem(fixed, {8, 1, 2, 3}, true), 3);
    add("7 steps in windows of 2, loss everywhere", problem(fixed, {7, 1, 2, 3}, false), 2);
    add("a window longer than the sequence", problem(fixed, {4, 1, 2, 3}, false), 9);
    s.draw(2, [&](Generator& g) {
        Sizes n = sizes(g);
        n.T += 5, n.B = 1;
        add("random", problem(g, n, false), std::size_t(g.integer(2, 5)));
    });
}

}  // namespace

Suite backprop_through_time(std::optional<std::uint64_t> hidden_seed) {
    Suite s("2", "Backpropagation through time", "backprop.cpp", hidden_seed);
    tanh_cell(s);
    unrolling(s);
    by_hand_gradients(s);
    norms_and_slope(s);
    norm_and_radius(s);
    clipping(s);
    truncation(s);
    return s;
}

}  // namespace lookback
