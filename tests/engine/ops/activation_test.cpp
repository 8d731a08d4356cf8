// Elementwise functions against the standard library's, at ordinary points and at the ends of the number line.
// Field cases C05, C22, C29.
#include "engine/ops/activation.hpp"
#include <cfenv>
#include <cmath>
#include <limits>
#include "engine/ops/reduce.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"
#include "tests/support/rows.hpp"

using namespace lookback;
using namespace lookback::test;

using Tensors = std::vector<Tensor>;
using Unary = Tensor (*)(const Tensor&);

static constexpr Real infinity = std::numeric_limits<Real>::infinity(),
                      not_a_number = std::numeric_limits<Real>::quiet_NaN();

// An op, what it should be, and where it is smooth.
struct Function {
    const char* name;
    Unary op;
    double (*value)(double);
    double low, high;
};
static const Function functions[] = {
    {"exp", exp, std::exp, -3, 3},
    {"log", log, std::log, 0.1, 5},
    {"sqrt", sqrt, std::sqrt, 0.1, 5},
    {"abs", abs, std::abs, 0.1, 3},
    {"tanh", tanh, std::tanh, -3, 3},
    {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -3, 3},
    {"relu", relu, [](double x) { return x > 0 ? x : 0; }, 0.1, 3},
    {"gelu", gelu, [](double x) { return x * std::erfc(-x / std::sqrt(2)) / 2; }, -3, 3},
    {"softplus", softplus, [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); }, -3, 3},
};

std::vector<Row> lookback::test::activation_rows() {
    std::vector<Row> rows;
    for (const Function& f : functions) {
        const auto row = [&](const std::string& shapes, std::vector<Array> inputs) {
            rows.push_back({f.name, shapes, [op = f.op](const Tensors& x) { return Tensors{op(x[0])}; }, inputs});
        };
        for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 7}, Shape{2, 1, 3}, Shape{0, 3}})
            row(text(shape), {uniform(shape, f.low, f.high)});
        rows.push_back({f.name,
                        "same input",
                        [op = f.op](const Tensors& x) {
                            return Tensors{op(x[0]), op(x[0])};
                        },
                        {uniform({5}, f.low, f.high)}});
        if (f.op == abs || f.op == relu) row("both sides of 0", {Array{-3, -1, 1, 3, -2}});
    }
    return rows;
}

TEST_CASE("gelu is x far above 0 and 0 far below, in a vector's lanes as well") {
    for (const Real x : {Real(50), Real(1e30), std::numeric_limits<Real>::max(), std::numeric_limits<Real>::infinity()})
        for (const std::size_t n : {1u, 9u}) {
            Tape tape;
            const Tensor up = tape.leaf(filled({n}, x)), down = tape.leaf(filled({n}, -x));
            CHECK(same_bits(gelu(up).value(), up.value()));
            CHECK(close(gelu(down).value(), filled({n}, 0), 0, 0));
            CHECK(close(tape.backward(sum(gelu(up)), {up})[up], filled({n}, 1), 0, 0));
            CHECK(close(tape.backward(sum(gelu(down)), {down})[down], filled({n}, 0), 0, 0));
        }
}

TEST_CASE("Activations equal the standard library's functions", "[activation]") {
    Tape tape;
    for (const Function& f : functions) {
        INFO(f.name);
        const double reach = f.low > 0 ? f.low : -5;  // 37 elements: whole vectors and a rest
        const Array x = uniform({37}, reach, 30, 3);
        Array expected = x;
        for (Real& v : expected) v = Real(f.value(double(v)));
        CHECK(close(f.op(tape.leaf(x)).value(), expected, sizeof(Real) == 8 ? 2e-14 : 2e-5,
                    sizeof(Real) == 8 ? 1e-16 : 1e-7));
    }
}

TEST_CASE("Activations are right at the ends of the number line", "[activation]") {
    Tape tape;
    const auto at = [&](Unary op, Real x) { return op(tape.leaf(filled({3}, x))).value()(1); };
    const Real huge = std::numeric_limits<Real>::max();
    CHECK(at(exp, -infinity) == 0);
    CHECK(at(exp, infinity) == infinity);
    CHECK(at(exp, 2000) == infinity);
    CHECK(at(exp, -2000) == 0);
    CHECK(at(exp, 0) == 1);
    CHECK(at(log, 0) == -infinity);
    const Real least = std::numeric_limits<Real>::denorm_min();
    for (const std::size_t n : {3, 4, 9, 16}) {  // with whole vectors and without
        Tape tape;
        const Tensor x = tape.leaf(filled({n}, 3 * least));
        CHECK(close(log(x).value(), filled({n}, std::log(3 * least)), 1e-6, 0));
        CHECK(close(tape.backward(log(x), {x}, {.seed = filled({n}, 6 * least)})[x], filled({n}, 2), 0, 0));
    }
    CHECK(at(log, 1) == 0);
    CHECK(at(log, infinity) == infinity);
    CHECK(std::isnan(at(log, -1)));
    CHECK(at(sqrt, infinity) == infinity);
    CHECK(std::isnan(at(sqrt, -1)));
    CHECK(at(abs, -infinity) == infinity);
    CHECK(at(tanh, 1000) == 1);
    CHECK(at(tanh, -infinity) == -1);
    CHECK(at(relu, infinity) == infinity);
    CHECK(at(relu, -infinity) == 0);
    CHECK(at(gelu, 100) == 100);
    CHECK(at(gelu, -100) == 0);
    CHECK(at(softplus, 800) == 800);
    CHECK(at(softplus, -800) == 0);
    CHECK(at(softplus, huge) == huge);
    for (const Function& f : functions) {
        INFO(f.name);
        CHECK(std::isnan(at(f.op, not_a_number)));
    }
}

TEST_CASE("tanh has its textbook slope", "[activation][C05]") {
    Tape tape;
    const Tensor x = tape.leaf(filled({}, 0.5));
    CHECK(close(tape.backward(tanh(x), {x})[x], filled({}, Real(0.786447732966)), 1e-6, 1e-12));
}

TEST_CASE("The logistic function saturates without overflow", "[activation][C05][C29]") {
    Tape tape;
    for (const Shape& shape : {Shape{2}, Shape{1, 2}, Shape{2, 1}, Shape{2, 16}}) {
        Array value = Array::from_shape(shape);
        for (std::size_t i = 0; i < value.size(); ++i) value.data()[i] = i % 2 ? 800 : -800;
        const Tensor x = tape.leaf(value);
        std::feclearexcept(FE_ALL_EXCEPT);
        const Tensor y = sigmoid(x);
        CHECK_FALSE(std::fetestexcept(FE_OVERFLOW | FE_DIVBYZERO | FE_INVALID));
        const Array x_bar = tape.backward(sum(y), {x})[x];
        for (std::size_t i = 0; i < value.size(); ++i) {
            CHECK(y.value().data()[i] == (i % 2 ? 1 : 0));
            CHECK(x_bar.data()[i] == 0);
        }
    }
    // and keeps its tail where 1 / (1 + e^-x) would have lost it to e^-x = inf
    const Real far = sizeof(Real) == 8 ? -709 : -87;
    CHECK(close(sigmoid(tape.leaf(filled({1}, far))).value(), filled({1}, std::exp(far)), 1e-5, 0));
}

TEST_CASE("softplus has the logistic function as its slope, far out too", "[activation]") {
    Tape tape;
    const Tensor x = tape.leaf(Array{-800, -30, 0, 30, 800});
    const Array slope = tape.backward(sum(softplus(x)), {x})[x];
    CHECK(close(slope, {0, std::exp(Real(-30)), 0.5, 1, 1}, 1e-5, 1e-20));
}

TEST_CASE("gelu is the form by erf, not the one by tanh, and keeps its lower tail", "[activation]") {
    Tape tape;
    CHECK(close(gelu(tape.leaf(filled({}, 1))).item(), 0.8413447460685429, 1e-6, 1e-12));  // tanh: 0.841192
    const Array tail = gelu(tape.leaf(filled({1}, -10))).value();                          // -10 Φ(-10)
    CHECK(close(tail, filled({1}, Real(-7.619853024160527e-23)), 1e-4, 0));
}

TEST_CASE("At a kink the slope is 0", "[activation][C22]") {
    Tape tape;
    const Tensor x = tape.leaf(Array{-0.0, 0.0, 2, -2});
    CHECK(close(tape.backward(sum(abs(x)), {x})[x], {0, 0, 1, -1}));
    CHECK(close(tape.backward(sum(relu(x)), {x})[x], {0, 0, 1, 0}));
}

TEST_CASE("Activations do not touch what they were given", "[activation]") {
    Tape tape;
    const Array value = uniform({2, 3}, 0.5, 2);
    const Tensor x = tape.leaf(value);
    for (const Function& f : functions) {
        const Tensor y = f.op(x);
        tape.backward(sum(y), {x, y});
        CHECK(same_bits(x.value(), value));
    }
}
