// Layer norm (C51, O22) and dropout (C56, C64).
#include "engine/ops/regularise.hpp"
#include "engine/gradcheck.hpp"
#include "engine/kernels.hpp"
#include "engine/ops/arithmetic.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"
#include "tests/support/rows.hpp"

using namespace lookback;
using namespace lookback::test;
using Catch::Matchers::Message;

using Tensors = std::vector<Tensor>;

std::vector<Row> lookback::test::regularise_rows() {
    std::vector<Row> rows;
    const auto row = [&](const char* op, const char* shapes, std::function<Tensor(const Tensors&)> f,
                         std::vector<Array> inputs) {
        rows.push_back({op, shapes, [f](const Tensors& x) { return Tensors{f(x)}; }, std::move(inputs)});
    };
    const auto norm = [](const Tensors& x) { return layer_norm(x[0], x[1], x[2]); };
    const auto norm_of = [&](const char* shapes, const Shape& shape) {
        row("layer_norm", shapes, norm,
            {uniform(shape, -2, 2), uniform({shape.back()}, 0.5, 2, 2), uniform({shape.back()}, -1, 1, 3)});
    };
    norm_of("(2,5)", {2, 5});
    norm_of("one axis", {4});
    norm_of("(2,3,17)", {2, 3, 17});
    norm_of("last axis of 1", {3, 1});
    norm_of("last axis of 2", {3, 2});
    row("layer_norm", "eps 0.5", [](const Tensors& x) { return layer_norm(x[0], x[1], x[2], 0.5); },
        {uniform({3, 4}, -1, 1), uniform({4}, -1, 1, 2), uniform({4}, -1, 1, 3)});
    row("layer_norm", "same input", [](const Tensors& x) { return layer_norm(x[0], x[0], x[0]); },
        {uniform({5}, -1, 1)});

    const auto drop = [](Real p, std::uint64_t seed) {
        return [p, seed](const Tensors& x) {
            Generator generator(seed);
            return dropout(x[0], p, generator);
        };
    };
    row("dropout", "(3,4)", drop(Real(0.25), 1), {uniform({3, 4}, -1, 1)});
    row("dropout", "p 0", drop(0, 1), {uniform({3}, -1, 1)});
    row("dropout", "0-d", drop(Real(0.001), 1), {uniform({}, 1, 2)});
    row("dropout", "same input",
        [](const Tensors& x) {
            Generator generator(3);
            const Tensor a = dropout(x[0], Real(0.5), generator);
            return a * dropout(x[0], Real(0.5), generator) + a;
        },
        {uniform({2, 6}, 1, 2)});
    return rows;
}

static Tensor normalised(const Tensor& x, Real eps) {
    const Shape width{x.shape().back()};
    return layer_norm(x, x.tape().constant(filled(width, 1)), x.tape().constant(filled(width, 0)), eps);
}

TEST_CASE("layer norm divides by the population's deviation, with eps under the root (C51)") {
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 0, 0, 0});
    const Tensor y = normalised(x, Real(1e-5));
    CHECK(close(y.value(), Array{1.7320046214, -0.5773348738, -0.5773348738, -0.5773348738}));
    CHECK(close(tape.backward(y, {x}, {.seed = Array{1, 2, 3, 4}})[x],
                Array{-0.0001847373, -2.3092779161, 0.0000615791, 2.3094010743}));
    const Tensor z = tape.leaf(Array{1, 2, 4});  // C61
    CHECK(close(tape.backward(normalised(z, Real(1e-5)), {z}, {.seed = Array{1, 0, 0}})[z],
                Array{0.2290822917, -0.3436200014, 0.1145377097}));
}

TEST_CASE("layer norm of numbers whose squares overflow") {
    Tape tape;
    const Real huge = std::pow(std::numeric_limits<Real>::max(), Real(0.65));
    const Array small{1, 2, 3, 6}, seed{1, 0, 0, 0};
    const Tensor x = tape.leaf(small), y = tape.leaf(small * huge);
    CHECK(close(normalised(y, 0).value(), normalised(x, 0).value()));
    CHECK(close(Array(tape.backward(normalised(y, 0), {y}, {.seed = seed})[y] * huge),
                tape.backward(normalised(x, 0), {x}, {.seed = seed})[x]));
}

TEST_CASE("layer norm of the least spread and of the largest numbers") {
    const auto check = [](const Array& x, const Array& y) {
        Tape tape;
        const Tensor leaf = tape.leaf(x);
        CHECK(close(normalised(leaf, 0).value(), y));
        const Gradients g = tape.backward(normalised(leaf, 0), {leaf}, {.seed = y});
        for (const Real v : g[leaf]) CHECK(std::isfinite(v));
    };
    const Real least = std::numeric_limits<Real>::min(), most = std::numeric_limits<Real>::max();
    check({least, 0}, {1, -1});
    check({std::sqrt(least), 0}, {1, -1});
    const Real root3 = std::sqrt(Real(3));
    check({most, -most, -most, -most}, {root3, -1 / root3, -1 / root3, -1 / root3});
}

TEST_CASE("layer norm's pullback knows the mean as well as its value does") {
    const double step = sizeof(Real) == 8 ? 1.0 / (1 << 24) : 1.0 / 128;  // a little more than is lost beside 1e5
    const Array x{Real(1e5), Real(1e5 + step), Real(1e5 + step), Real(1e5 + 3 * step)}, small{0, 1, 1, 3};
    Tape tape;
    const Tensor far = tape.leaf(x), near = tape.leaf(small);
    const Array seed{1, 0, 0, 0};
    CHECK(close(Array(tape.backward(normalised(far, 0), {far}, {.seed = seed})[far] * Real(step)),
                tape.backward(normalised(near, 0), {near}, {.seed = seed})[near], 1e-5, 1e-5));
}

TEST_CASE("the Jacobian of layer norm is O22's, and maps constants and x̂ to 0") {
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 2, 3, 6});
    const Tensor y = normalised(x, 0);
    CHECK(close(y.value(), Array{-1.0690449676, -0.5345224838, 0, 1.6035674514}));
    const Array J = jacobian(y, x) * Real(56 * std::sqrt(3.5));
    CHECK(close(J, Array{{26, -22, -14, 10}, {-22, 38, -14, -2}, {-14, -14, 42, -14}, {10, -2, -14, 6}}));
    CHECK(close(tape.backward(y, {x}, {.seed = filled({4}, 1)})[x], filled({4}, 0)));
    CHECK(close(tape.backward(y, {x}, {.seed = y.shared()})[x], filled({4}, 0)));
}

TEST_CASE("layer norm does not change with shift and scale of a row, and is each row's own") {
    Tape tape;
    const Array x = uniform({2, 3, 9}, -1, 1);
    const Tensor a = tape.leaf(x), shifted = tape.leaf(Array(5 * x + 1000));
    CHECK(close(normalised(a, 0).value(), normalised(shifted, 0).value(), 1e-10, sizeof(Real) == 8 ? 1e-10 : 1e-3));
    Array poisoned = x;
    for (std::size_t j = 0; j < 9; ++j) poisoned(1, 2, j) = Real(1e30) * Real(j);
    const Tensor y = normalised(a, Real(1e-5)), z = normalised(tape.leaf(poisoned), Real(1e-5));
    CHECK(std::equal(y.value().data(), y.value().data() + 45, z.value().data()));
}

TEST_CASE("a row without spread has normalised value 0 and no gradient, even for eps 0") {
    Tape tape;
    for (const Real eps : {Real(0), Real(1e-5)}) {
        const Tensor x = tape.leaf(filled({2, 3}, 7));
        const Tensor y = normalised(x, eps);
        CHECK(close(y.value(), filled({2, 3}, 0), 0, 0));
        const Array g = tape.backward(y, {x}, {.seed = Array{{1, 2, 3}, {4, 5, 6}}})[x];
        CHECK((eps > 0 || close(g, filled({2, 3}, 0), 0, 0)));
        CHECK(norm(g) < 1e4);
    }
}

TEST_CASE("layer norm of no rows is empty, and of no width an error") {
    Tape tape;
    const Tensor x = tape.leaf(filled({0, 3}, 1)), gain = tape.leaf(filled({3}, 1)), bias = tape.leaf(filled({3}, 1));
    const Tensor y = layer_norm(x, gain, bias);
    CHECK(y.shape() == Shape{0, 3});
    const Gradients g = tape.backward(y, {x, gain, bias}, {.seed = y.value()});
    CHECK(close(g[gain], filled({3}, 0), 0, 0));
    CHECK(g[x].shape() == Shape{0, 3});
    const auto of = [&](const Shape& shape) { return tape.leaf(filled(shape, 1)); };
    CHECK_THROWS_MATCHES(layer_norm(of({2, 0}), of({0}), of({0})), ShapeError,
                         Message("[layer_norm] nothing to normalise along the last axis: (2,0)"));
    CHECK_THROWS_AS(layer_norm(of({}), of({1}), of({1})), ShapeError);
    CHECK_THROWS_MATCHES(
        layer_norm(of({2, 3}), of({2}), of({3})), ShapeError,
        Message("[layer_norm] gain and bias are one number for each of the last axis: (2), (3) and (2,3)"));
    CHECK_THROWS_AS(layer_norm(of({2, 3}), of({3}), of({})), ShapeError);
    CHECK_THROWS_AS(layer_norm(of({2, 3}), of({1, 3}), of({3})), ShapeError);
    CHECK_THROWS_AS(layer_norm(of({3}), of({3}), of({3}), -1), ValueError);
    CHECK_THROWS_AS(layer_norm(of({3}), of({3}), of({3}), std::numeric_limits<Real>::quiet_NaN()), ValueError);
}

TEST_CASE("dropout remembers its draw, not what the values look like (C56)") {
    // the first seed that keeps 1, 0, 1, 1
    for (std::uint64_t seed = 0;; ++seed) {
        REQUIRE(seed < 1000);
        Tape tape;
        Generator generator(seed);
        const Tensor x = tape.leaf(Array{2, 0, 4, 0}), y = dropout(x, Real(0.25), generator);
        const Array slope = tape.backward(y, {x}, {.seed = filled({4}, 1)})[x];
        if (!(slope(0) > 0 && slope(1) == 0 && slope(2) > 0 && slope(3) > 0)) continue;
        CHECK(close(y.value(), Array{2 / 0.75, 0, 4 / 0.75, 0}));
        CHECK(close(slope, Array{1 / 0.75, 0, 1 / 0.75, 1 / 0.75}));
        break;
    }
}

TEST_CASE("p is the chance to drop: 0 drops nothing, 1 all, and others are no chance (C56)") {
    Tape tape;
    Generator generator(1);
    const Tensor x = tape.leaf(Array{1, -2, 3});
    CHECK(dropout(x, 0, generator).id() == x.id());
    CHECK(generator.bits() == Generator(1).bits());  // nothing was drawn
    const Tensor zeros = dropout(x, 1, generator);
    CHECK(close(zeros.value(), filled({3}, 0), 0, 0));
    CHECK(close(tape.backward(zeros, {x}, {.seed = filled({3}, 1)})[x], filled({3}, 0), 0, 0));
    const Tensor bad = tape.leaf(filled({3}, std::numeric_limits<Real>::infinity()));  // dropped, whatever it is
    CHECK(close(dropout(bad, 1, generator).value(), filled({3}, 0), 0, 0));
    CHECK(close(tape.backward(dropout(x, 1, generator), {x}, {.seed = bad.value()})[x], filled({3}, 0), 0, 0));
    CHECK_THROWS_MATCHES(dropout(x, 1.5, generator), ValueError,
                         Message("[dropout] the chance to drop must be in 0 … 1, not 1.500000"));
    CHECK_THROWS_AS(dropout(x, Real(-0.1), generator), ValueError);
    CHECK_THROWS_AS(dropout(x, std::numeric_limits<Real>::quiet_NaN(), generator), ValueError);
    CHECK(dropout(tape.leaf(filled({0, 2}, 1)), Real(0.5), generator).shape() == Shape{0, 2});
}

TEST_CASE("dropout draws once: values and gradients have the same zeros, and as many as p says (C64)") {
    Tape tape;
    Generator generator(7);
    const std::size_t n = 100000;
    const Tensor x = tape.leaf(filled({n}, 1)), y = dropout(x, Real(0.3), generator);
    const Array g = tape.backward(y, {x}, {.seed = filled({n}, 1)})[x];
    CHECK(same_bits(g, y.value()));
    std::size_t dropped = 0;
    for (Real v : y.value()) dropped += v == 0;
    CHECK(std::abs(double(dropped) - 0.3 * n) < 5 * std::sqrt(0.3 * 0.7 * n));
    CHECK(!same_bits(dropout(x, Real(0.3), generator).value(), y.value()));  // the next draw is another
    Generator again(7);
    CHECK(same_bits(dropout(x, Real(0.3), again).value(), y.value()));
}
