// The checker, checked with rules planted wrong (C61): what it lets pass, no op's test would catch.
#include "engine/gradcheck.hpp"
#include <cmath>
#include "engine/pullback.hpp"
#include "engine/random.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

using Tensors = std::vector<Tensor>;

// Ops made here, so that their rules can be right or wrong as needed.
static Tensor square(const Tensor& x) {
    return record("square", {x}, x.value() * x.value(), saves::inputs,
                  [](Pullback& p) { p.x_bar(0) += 2 * p.y_bar() * p.x(0); });
}

static Tensor times(const Tensor& a, const Tensor& b) {
    return record("times", {a, b}, a.value() * b.value(), saves::inputs, [](Pullback& p) {
        p.x_bar(0) += p.y_bar() * p.x(1);
        p.x_bar(1) += p.y_bar() * p.x(0);
    });
}

static Array softmax_of(const Array& x) {
    Array y = xt::exp(x);
    double sum = 0;
    for (Real e : y) sum += e;
    for (Real& e : y.storage()) e = Real(e / sum);
    return y;
}

static Tensor softmax(const Tensor& x, PullbackFunction rule) {
    return record("softmax", {x}, softmax_of(x.value()), saves::output, rule);
}

static void right_softmax_rule(Pullback& p) {
    double inner = 0;
    const Array &y = p.y(), &y_bar = p.y_bar();
    for (std::size_t i = 0; i < y.size(); ++i) inner += double(y.data()[i]) * y_bar.data()[i];
    p.x_bar(0) += y * (y_bar - Real(inner));
}

static Tensor layer_norm(const Tensor& x, PullbackFunction rule) {
    const Array& a = x.value();
    double mean = 0, variance = 0;
    for (Real e : a) mean += e / double(a.size());
    for (Real e : a) variance += (e - mean) * (e - mean) / double(a.size());
    return record("layer_norm", {x}, (a - Real(mean)) / Real(std::sqrt(variance)), saves::output, rule);
}

static void zero_rule(Pullback& p) { p.x_bar(0) += 0 * p.y(); }
static void nan_rule(Pullback& p) { p.x_bar(0) += p.y() * std::numeric_limits<Real>::quiet_NaN(); }

TEST_CASE("a right rule passes, with the worst element named if it is scaled by little") {
    const auto f = [](const Tensors& x) { return square(x[0]); };
    const std::vector<Array> inputs{{1, -2, 3}};
    CHECK(gradcheck(f, inputs).ok);
    CHECK(gradcheck(f, inputs).why.empty());

    const double scale = sizeof(Real) == 8 ? 1.0001 : 1.1;
    const GradcheckReport report = gradcheck(f, inputs, {.scale_x_bar = scale});
    CHECK(!report.ok);
    CHECK(report.input == 0);
    CHECK(close(report.pullback, report.difference * scale, 1e-2, 0));
    CHECK_THAT(report.why, contains("input 0, element " + std::to_string(report.element) + ": pullback "));
    CHECK_THAT(report.why, contains("central difference"));
}

TEST_CASE("a softmax or a layer norm whose rule returns zeros fails (C61)") {
    const std::vector<Array> inputs{{1, 2, 4}};
    CHECK(gradcheck([](const Tensors& x) { return softmax(x[0], right_softmax_rule); }, inputs).ok);
    CHECK(!gradcheck([](const Tensors& x) { return softmax(x[0], zero_rule); }, inputs).ok);
    CHECK(!gradcheck([](const Tensors& x) { return layer_norm(x[0], zero_rule); }, inputs).ok);
    // Whatever the seed of the cotangent.
    for (std::uint64_t seed = 0; seed < 20; ++seed)
        CHECK(!gradcheck([](const Tensors& x) { return softmax(x[0], zero_rule); }, inputs, {.seed = seed}).ok);
}

TEST_CASE("NaN is a failure: in a gradient, in a value, in a difference (C61)") {
    const GradcheckReport gradient = gradcheck([](const Tensors& x) { return softmax(x[0], nan_rule); }, {{1, 2, 3}});
    CHECK(!gradient.ok);
    CHECK_THAT(gradient.why, contains("pullback nan"));

    const auto root = [](const Tensors& x) {
        return record("root", {x[0]}, xt::sqrt(x[0].value()), saves::output,
                      [](Pullback& p) { p.x_bar(0) += p.y_bar() / (2 * p.y()); });
    };
    CHECK(gradcheck(root, {{1, 4}}).ok);
    CHECK_THAT(gradcheck(root, {{1, -4}}).why, contains("not finite"));
    CHECK(!gradcheck(root, {{1, 0}}).ok);  // a step to the left is NaN
}

TEST_CASE("a function computed in single precision is told by its differences (C61)") {
    if (sizeof(Real) != 8) return;
    const auto f = [](const Tensors& x) {
        Array y = x[0].value();
        for (Real& e : y.storage()) e = Real(std::exp(float(e)));
        return record("exp", {x[0]}, std::move(y), saves::output, [](Pullback& p) { p.x_bar(0) += p.y_bar() * p.y(); });
    };
    const GradcheckReport report = gradcheck(f, {{1}});
    CHECK(!report.ok);
    CHECK(!close(report.pullback / report.difference, 1, 5e-3, 0));
}

TEST_CASE("a kink is reported, not averaged, whatever the rule says there (C61)") {
    const auto relu = [](Real at_zero) {
        return [at_zero](const Tensors& x) {
            return record(
                "relu", {x[0]}, xt::maximum(x[0].value(), Real(0)), saves::inputs,
                [](Pullback& p) {
                    const Real slope = p.attributes<Real>();
                    p.x_bar(0) += p.y_bar() * xt::where(p.x(0) > 0, Real(1), xt::where(p.x(0) < 0, Real(0), slope));
                },
                at_zero);
        };
    };
    CHECK(gradcheck(relu(0), {{1, -1}}).ok);
    for (Real slope : {0.0, 0.5, 1.0}) {
        const GradcheckReport report = gradcheck(relu(slope), {{1, 0, -1}});
        CHECK(!report.ok);
        CHECK(report.element == 1);
        CHECK_THAT(report.why, contains("kink"));
    }
    // Strong curvature is none.
    const auto steep = [](const Tensors& x) {
        return record("steep", {x[0]}, 1 / x[0].value(), saves::output,
                      [](Pullback& p) { p.x_bar(0) += -p.y_bar() * p.y() * p.y(); });
    };
    CHECK_THAT("kink? " + gradcheck(steep, {{Real(0.05)}}, {.step = sizeof(Real) == 8 ? 1e-6 : 1e-3}).why,
               !contains("a kink"));
}

TEST_CASE("the same input twice gets both shares, and so does an input that aliases another (C61)") {
    const std::vector<Array> inputs{{1, 2, 3}};
    CHECK(gradcheck([](const Tensors& x) { return times(x[0], x[0]); }, inputs).ok);
    CHECK(gradcheck([](const Tensors& x) { return times(x[0], x[1]); }, {inputs[0], inputs[0]}).ok);
    // A rule that assigns where it should add loses one of the shares.
    const auto forgets = [](const Tensors& x) {
        return record("forgets", {x[0], x[0]}, x[0].value() * x[0].value(), saves::inputs,
                      [](Pullback& p) { p.x_bar(0) += p.y_bar() * p.x(1); });
    };
    CHECK(!gradcheck(forgets, inputs).ok);
}

TEST_CASE("several outputs are pulled back together") {
    const auto both = [](const Tensors& x) {
        return record("both", {x[0]},
                      std::vector<Shared>{Shared(x[0].value() * 2), Shared(x[0].value() * x[0].value())}, saves::inputs,
                      [](Pullback& p) { p.x_bar(0) += 2 * p.y_bar(0) + 2 * p.x(0) * p.y_bar(1); });
    };
    const auto one = [](const Tensors& x) {  // forgets its second output
        return record("one", {x[0]}, std::vector<Shared>{Shared(x[0].value() * 2), Shared(x[0].value() * x[0].value())},
                      saves::inputs, [](Pullback& p) { p.x_bar(0) += 2 * p.y_bar(0); });
    };
    CHECK(gradcheck(both, {{1, 2}}).ok);
    CHECK(!gradcheck(one, {{1, 2}}).ok);
}

TEST_CASE("a step is as large as what is stepped") {
    CHECK(gradcheck(
              [](const Tensors& x) {
                  return times(x[0], x[0].tape().constant(Array{3, 3}));
              },
              {{Real(1e12), Real(-1e12)}})
              .ok);
}

TEST_CASE("a hidden draw, a gradient of the wrong shape, a rule that throws: each is a failure that says so") {
    Generator hidden(1);
    CHECK_THAT(
        gradcheck([&](const Tensors& x) { return times(x[0], x[0].tape().constant(hidden.normal({2}))); }, {{1, 2}})
            .why,
        contains("two calls"));
    const auto wrong_shape = [](const Tensors& x) {
        return record("wrong", {x[0]}, Array(x[0].value()), saves::nothing,
                      [](Pullback& p) { p.x_bar(0) += filled({3}, 1); });
    };
    CHECK_THAT(gradcheck(wrong_shape, {{1, 2}}).why, contains("backward threw"));
    const auto unsaved = [](const Tensors& x) {
        return record("unsaved", {x[0]}, Array(x[0].value()), saves::nothing, [](Pullback& p) { p.x_bar(0) += p.y(); });
    };
    CHECK_THAT(gradcheck(unsaved, {{1, 2}}).why, contains("did not save"));
}

TEST_CASE("nothing to check is not a pass, but an empty array and a constant function are") {
    const auto constant = [](const Tensors& x) { return x[0].tape().constant(Array{1, 2}); };
    CHECK(gradcheck(constant, {{1, 2}}).ok);
    CHECK(gradcheck([](const Tensors& x) { return square(x[0]); }, {filled({0, 3}, 0)}).ok);
    CHECK(!gradcheck([](const Tensors&) { return Tensors{}; }, {{1, 2}}).ok);
    Tape elsewhere;
    const Tensor outside = elsewhere.leaf(Array{1});
    CHECK(!gradcheck([&](const Tensors&) { return outside; }, {}).ok);
    CHECK(!gradcheck([&](const Tensors&) { return square(outside); }, {{1}}).ok);
}

TEST_CASE("jacobian has a row for each output and a column for each input") {
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 2, 3});
    const Tensor y = softmax(x, right_softmax_rule);
    const Array s = y.value(), j = jacobian(y, x);
    Array expected = filled({3, 3}, 0);
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t k = 0; k < 3; ++k) expected(i, k) = s(i) * ((i == k) - s(k));
    CHECK(close(j, expected));
    CHECK(close(jacobian(square(tape.leaf(Array{{1, 2}, {3, 4}})), x), filled({4, 3}, 0)));
    CHECK(close(Array{j(0, 0), j(0, 1), j(0, 2)}, {0.0819250691, -0.0220330445, -0.0598920245}, 1e-6, 1e-6));
    CHECK_THROWS_AS(jacobian(tape.constant(Array{1}), x), TapeError);
}
