#include "recurrent.hpp"
#include <limits>
#include "engine/blas.hpp"
#include "engine/kernels.hpp"
#include "engine/pullback.hpp"

namespace lookback {

StepInput::StepInput(const Tensor& a_, std::size_t t) : a(a_), time(std::int32_t(t)) {
    if (t > std::size_t(std::numeric_limits<std::int32_t>::max()))
        fail<IndexError>("StepInput", "time " + std::to_string(t) + " is outside a " + text(a.shape()));
}

namespace {
// a: (B,nH) or (B,T,nH)   h: (B,H)   U: (H,nH) for a cell with n gates
void check_shapes(const char* op, std::size_t n, const StepInput& input, const Tensor& h, const Tensor& U) {
    const Shape &a = input.a.shape(), &s = h.shape();
    const bool timed = input.time != StepInput::all;
    if (s.size() == 2 && U.shape() == Shape{s[1], n * s[1]} && a.size() == (timed ? 3 : 2) && a[0] == s[0] &&
        a.back() == n * s[1]) {
        if (timed && std::size_t(input.time) >= a[1])
            fail<IndexError>(op, "time " + std::to_string(input.time) + " is outside a " + text(a));
        return;
    }
    const std::string nH = n == 1 ? "H" : std::to_string(n) + "H";
    fail<ShapeError>(op, std::string(timed ? "a (B,T," : "a (B,") + nH + "), h (B,H) and U (H," + nH +
                             ") do not fit: " + text(a) + ", " + text(s) + " and " + text(U.shape()));
}

Part slice(const Shape& a, std::int32_t time) { return {around(a, 1), std::size_t(time), 1}; }

Array read(const StepInput& input) {
    const Array& a = input.a.value();
    if (input.time == StepInput::all) return a;
    Array s = Array::from_shape({a.shape()[0], a.shape()[2]});
    read_part(a, slice(a.shape(), input.time), {s, false});
    return s;
}

// ā += s̄. a is input 0 of every step.
void read_pullback(Pullback& p, std::int32_t time, Array&& s_bar) {
    if (time == StepInput::all)
        p.x_bar(0) += std::move(s_bar);
    else if (p.needs(0))
        write_part(s_bar, slice(p.x_shape(0), time), {p.x_bar(0).zeroed(), true});
}

// a + h U
Array pre_activation(const StepInput& a, const Tensor& h, const Tensor& U) {
    Array s = read(a);
    gemm(s.shape(0), s.shape(1), U.shape()[0], h.value().data(), Op::plain, U.value().data(), Op::plain, s.data(),
         true);
    return s;
}

// For s = h U + …: h̄ += s̄ Uᵀ, Ū += hᵀ s̄. h is input 1 of every step.
void product_pullback(Pullback& p, std::size_t input_U, const Array& s_bar) {
    if (p.needs(1)) gemm(s_bar, Op::plain, p.x(input_U), Op::transposed, p.x_bar(1).target());
    if (p.needs(input_U)) gemm(p.x(1), Op::transposed, s_bar, Op::plain, p.x_bar(input_U).target());
}

struct RNNAttributes {  // small enough for std::any to hold in place
    Nonlinearity nonlinearity;
    std::int32_t time;
};
}  // namespace

Tensor rnn_step(const StepInput& a, const Tensor& h, const Tensor& U, Nonlinearity nonlinearity) {
    check_shapes("rnn_step", 1, a, h, U);
    Array y = pre_activation(a, h, U);
    if (nonlinearity == Nonlinearity::tanh)
        xt::noalias(y) = xt::tanh(y);
    else
        xt::noalias(y) = xt::where(y <= 0, Real(0), y);  // NaN stays
    return record(
        "rnn_step", {a.a, h, U}, std::move(y), saves::input(1) | saves::input(2) | saves::output,
        [](Pullback& p) {
            const Array &y = p.y(), &y_bar = p.y_bar();
            const auto [kind, time] = p.attributes<RNNAttributes>();
            Array s_bar =
                kind == Nonlinearity::tanh ? chain(y_bar, 1 - y * y) : Array(xt::where(y <= 0, Real(0), y_bar));
            product_pullback(p, 2, s_bar);
            read_pullback(p, time, std::move(s_bar));
        },
        RNNAttributes{nonlinearity, a.time});
}

LSTMState lstm_step(const StepInput& a, const Tensor& h, const Tensor& c, const Tensor& U) {
    check_shapes("lstm_step", 4, a, h, U);
    if (c.shape() != h.shape())
        fail<ShapeError>("lstm_step", "h and c differ: " + text(h.shape()) + " and " + text(c.shape()));
    Array gates = pre_activation(a, h, U), h_new(h.shape()), c_new(h.shape());
    lstm_gates(gates, c.value(), h_new, c_new);
    const Shared cell = std::move(c_new);
    std::vector<Tensor> y = record("lstm_step", {a.a, h, c, U}, {std::move(h_new), cell},
                                   saves::input(1) | saves::input(2) | saves::input(3),
                                   [](Pullback& p) {
                                       Array s_bar(p.kept(0).shape()), c_bar = p.take_y_bar(1);
                                       lstm_gates_pullback(p.kept(0), p.x(2), p.kept(1), p.y_bar(0), c_bar, s_bar);
                                       product_pullback(p, 3, s_bar);
                                       p.x_bar(2) += std::move(c_bar);
                                       read_pullback(p, p.attributes<std::int32_t>(), std::move(s_bar));
                                   },
                                   a.time, {std::move(gates), cell});
    return {std::move(y[0]), std::move(y[1])};
}

Tensor gru_step(const StepInput& a, const Tensor& h, const Tensor& U, const Tensor& b_n) {
    check_shapes("gru_step", 3, a, h, U);
    if (b_n.shape() != Shape{U.shape()[0]})
        fail<ShapeError>("gru_step",
                         "b_n is one number for each of h's: " + text(b_n.shape()) + " and " + text(h.shape()));
    Array gates = read(a), q(h.shape()), h_new(h.shape());
    const Array product = lookback::product(h.value(), Op::plain, U.value(), Op::plain);
    gru_gates(gates, product, b_n.value(), h.value(), q, h_new);
    return record("gru_step", {a.a, h, U, b_n}, std::move(h_new), saves::input(1) | saves::input(2),
                  [](Pullback& p) {
                      const Shape &s = p.kept(0).shape(), &h_shape = p.kept(1).shape();
                      Array a_bar(s), s_bar(s), q_bar(h_shape), h_bar = p.take_y_bar();
                      gru_gates_pullback(p.kept(0), p.kept(1), p.x(1), h_bar, a_bar, s_bar, q_bar);
                      product_pullback(p, 2, s_bar);
                      p.x_bar(1) += std::move(h_bar);
                      read_pullback(p, p.attributes<std::int32_t>(), std::move(a_bar));
                      p.x_bar(3) += std::move(q_bar);
                  },
                  a.time, {std::move(gates), std::move(q)});
}

}  // namespace lookback
