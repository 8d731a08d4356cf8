#include "cell.hpp"
#include "engine/ops/movement.hpp"
#include "init.hpp"

namespace lookback::cell {

Parameter weights(Generator& generator, const Shape& shape, std::size_t H, const char* name) {
    return Parameter(init::uniform_by_fan(generator, shape, H), name);
}

void check_parameters(const char* layer, std::size_t n, const Parameter& W, const Parameter& U, const Parameter& b) {
    const Shape &w = W.shape(), &u = U.shape();
    const bool fit = w.size() == 2 && u.size() == 2 && u[1] == n * u[0] && w[1] == u[1] && b.shape() == Shape{u[1]};
    if (fit) return;
    const std::string nH = n == 1 ? "H" : std::to_string(n) + "H";
    fail<ShapeError>(layer, "W (I," + nH + "), U (H," + nH + ") and b (" + nH + ") do not fit: " + text(w) + ", " +
                                text(u) + " and " + text(b.shape()));
}

void check_input(const char* layer, const Tensor& x, const Parameter& W) {
    if (x.rank() != 2) fail<ShapeError>(layer, "x is (B,I), not " + text(x.shape()));
    check_product(layer, "x", x, "W", W);
}

void check_state(const char* layer, const char* name, const Tensor& part, std::size_t B, std::size_t H) {
    if (part.shape() != Shape{B, H})
        fail<ShapeError>(
            layer, std::string("state ") + name + " is " + text(part.shape()) + ", not (B,H) = " + text(Shape{B, H}));
}

Tensor zeros(Tape& tape, std::size_t B, std::size_t H) { return tape.constant(filled({B, H}, 0)); }

Tensor alone(const StepInput& a) { return a.time == StepInput::all ? a.a : select(a.a, 1, a.time); }

static Array transposed(const Array& m) {
    Array t(Shape{m.shape(1), m.shape(0)});
    for (std::size_t i = 0; i < m.shape(0); ++i)
        for (std::size_t j = 0; j < m.shape(1); ++j) t(j, i) = m(i, j);
    return t;
}

void from_pytorch(const char* layer, const PyTorchWeights& theirs, Parameter& W, Parameter& U, Parameter& b) {
    const auto check = [&](const char* name, const Array& array, const Shape& wanted) {
        if (array.shape() != wanted)
            fail<ShapeError>(layer, std::string(name) + " is " + text(array.shape()) + ", not " + text(wanted));
    };
    check("weight_ih", theirs.weight_ih, {W.shape()[1], W.shape()[0]});
    check("weight_hh", theirs.weight_hh, {U.shape()[1], U.shape()[0]});
    check("bias_ih", theirs.bias_ih, b.shape());
    check("bias_hh", theirs.bias_hh, b.shape());
    W.assign(transposed(theirs.weight_ih));
    U.assign(transposed(theirs.weight_hh));
    Array sum = theirs.bias_ih;
    for (std::size_t j = 0; j < sum.size(); ++j) sum.data()[j] += theirs.bias_hh.data()[j];
    b.assign(std::move(sum));
}

PyTorchWeights to_pytorch(const Parameter& W, const Parameter& U, const Parameter& b) {
    return {transposed(W.value()), transposed(U.value()), b.value(), filled(b.shape(), 0)};
}

}  // namespace lookback::cell
