// Optimizers, schedules and clipping. Field case C58, oracles O32 (peak rate) and O33.
#include "layers/optimizer.hpp"
#include <cmath>
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/reduce.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

namespace {

struct Two {
    Parameter a{Array{1, 2}, "a"}, b{Array(Real(1)), "b"};
    void for_each_parameter(const std::string& prefix, const Visitor& f) {
        f(join(prefix, "a"), a);
        f(join(prefix, "inner.b"), b);
    }
};

// The gradients of a loss that is linear in a, and in b if it is given a slope.
Gradients slopes(Two& model, Array a_bar, std::optional<Real> b_bar) {
    Tape tape;
    Tensor loss = sum(model.a * tape.constant(std::move(a_bar)));
    if (b_bar) loss = loss + tape.leaf(model.b) * *b_bar;
    return tape.backward(loss);
}

// What a weight of 1 becomes under gradients 1, -1, 0.5.
std::vector<double> three_steps(Optimizer& optimizer) {
    Two model;
    std::vector<double> weights;
    for (const Real g : {1.0, -1.0, 0.5}) {
        optimizer.step(model, slopes(model, Array{0, 0}, g));
        weights.push_back(model.b.value()());
    }
    return weights;
}

const Real nan_value = std::numeric_limits<Real>::quiet_NaN(), infinity = std::numeric_limits<Real>::infinity();

}  // namespace

TEST_CASE("Adam corrects its means by the number of steps, outside of them, with eps outside of the root (C58)") {
    Adam adam({.rate = 0.1});
    const std::vector<double> weights = three_steps(adam);
    CHECK(close(weights[0], 0.9000000010, 0, 1e-10));
    CHECK(close(weights[1], 0.9052631588, 0, 1e-10));
    CHECK(close(weights[2], 0.8877906056, 0, 1e-10));
}

TEST_CASE("Adam's first step is −η g / (|g| + ε): it depends on the gradient's size only near ε (O33)") {
    for (const auto& [g, expected] : {std::pair{1e-3, 1e-3 / (1e-3 + 1e-8)}, {1e-10, 1e-10 / (1e-10 + 1e-8)}}) {
        Two model;
        Adam adam({.rate = 0.5});
        adam.step(model, slopes(model, Array{0, 0}, Real(g)));
        CHECK(close((1 - model.b.value()()) / 0.5, expected, 1e-6, 0));
    }
    CHECK(close(1e-3 / (1e-3 + 1e-8), .99999, 0, 1e-7));
    CHECK(close(1e-10 / (1e-10 + 1e-8), .00990, 0, 1e-5));
}

TEST_CASE("AdamW decays the weight itself, not the gradient") {
    AdamW decaying({.rate = 0.1, .decay = 0.5});
    const std::vector<double> weights = three_steps(decaying);
    CHECK(close(weights[0], 0.95 - 0.0999999990, 0, 1e-10));  // 1 − 0.1 · 0.5, then Adam's own step
    AdamW none({.rate = 0.1, .decay = 0});
    CHECK(close(three_steps(none)[2], 0.8877906056, 0, 1e-10));
}

TEST_CASE("SGD steps against the gradient; momentum sums past gradients, with the rate outside of the sum") {
    SGD plain({.rate = 0.1});
    CHECK(close(three_steps(plain)[2], 1 - 0.1 * (1 - 1 + 0.5)));
    SGD heavy({.rate = 0.1, .momentum = 0.9});
    const std::vector<double> weights = three_steps(heavy);  // m = 1, −0.1, 0.41
    CHECK(close(weights[0], 0.9));
    CHECK(close(weights[1], 0.91));
    CHECK(close(weights[2], 0.869));
    SGD scheduled({.rate = Schedule([](std::size_t step) { return double(step); })});
    CHECK(close(three_steps(scheduled)[2], 1 - (1 * 1 - 2 * 1 + 3 * 0.5)));
}

TEST_CASE("a parameter that the loss does not depend on keeps its value and counts no step") {
    Two model;
    AdamW adam({.rate = 0.1, .decay = 0.5});
    adam.step(model, slopes(model, Array{1, 1}, std::nullopt));
    adam.step(model, slopes(model, Array{1, 1}, std::nullopt));
    CHECK(model.b.value()() == 1);
    adam.step(model, slopes(model, Array{1, 1}, 1));
    CHECK(close(model.b.value()(), 0.95 - 0.0999999990, 0, 1e-10));  // its first step, in the optimizer's third
    CHECK(adam.steps() == 3);
}

TEST_CASE("what an optimizer remembers goes with a parameter that is moved, and not with its clone") {
    struct One {
        Parameter w;
        void for_each_parameter(const std::string& prefix, const Visitor& f) { f(join(prefix, "w"), w); }
    };
    const auto step = [](Optimizer& optimizer, One& model) {
        Tape tape;
        optimizer.step(model, tape.backward(tape.leaf(model.w)));
    };
    SGD sgd({.rate = 1, .momentum = 0.5});
    One first{Parameter(Array(Real(0)))};
    step(sgd, first);
    One moved{std::move(first.w)}, cloned{moved.w.clone()};
    step(sgd, moved);
    step(sgd, cloned);
    CHECK(close(moved.w.value()(), -1 - 1.5));
    CHECK(close(cloned.w.value()(), -1 - 1.0));
}

TEST_CASE("clipping scales all gradients by one factor, and only if their common norm is above the bound (O33)") {
    Two model;
    Gradients g = slopes(model, Array{3, 0}, 4);
    CHECK(close(gradient_norm(model, g), 5));
    SECTION("above") {
        CHECK(close(clip_by_norm(model, g, 1), 5));
        CHECK(close(g[model.a], Array{.6, 0}));
        CHECK(close(g[model.b], Array(Real(.8))));
    }
    SECTION("at the bound and below: not a bit changes") {
        CHECK(close(clip_by_norm(model, g, 5), 5));
        CHECK(close(clip_by_norm(model, g, 100), 5));
        CHECK(same_bits(g[model.a], Array{3, 0}));
        CHECK(same_bits(g[model.b], Array(Real(4))));
    }
    SECTION("zero gradients stay zero") {
        Gradients zero = slopes(model, Array{0, 0}, 0);
        CHECK(clip_by_norm(model, zero, 1) == 0);
        CHECK(same_bits(zero[model.a], Array{0, 0}));
    }
    SECTION("squares that would overflow or vanish") {
        const Real big = std::numeric_limits<Real>::max() / 8, small = std::numeric_limits<Real>::min() * 4;
        Gradients huge = slopes(model, Array{3 * big, 0}, 4 * big);
        CHECK(close(clip_by_norm(model, huge, 1) / big, 5));
        CHECK(close(huge[model.a], Array{.6, 0}));
        const Real most = std::numeric_limits<Real>::max();
        Gradients beyond = slopes(model, Array{most, most}, most);  // their norm is no double any more
        clip_by_norm(model, beyond, 1);
        CHECK(close(beyond[model.a], Array{1 / std::sqrt(3.), 1 / std::sqrt(3.)}));
        CHECK(close(beyond[model.b], Array(Real(1 / std::sqrt(3.)))));
        CHECK(close(gradient_norm(model, slopes(model, Array{3 * small, 0}, 4 * small)) / small, 5));
    }
}

TEST_CASE("a gradient that is not finite is an error that names its parameter and changes nothing") {
    for (const Real bad : {nan_value, infinity, -infinity}) {
        Two model;
        Gradients g = slopes(model, Array{3, 4}, bad);
        CHECK_THROWS_WITH(clip_by_norm(model, g, 1), contains("[clip_by_norm]") && contains("inner.b ()"));
        CHECK(same_bits(g[model.a], Array{3, 4}));
        Adam adam({.rate = 0.1});
        CHECK_THROWS_WITH(adam.step(model, g), contains("the gradient of inner.b ()"));
        CHECK(same_bits(model.a.value(), Array{1, 2}));
        CHECK(adam.steps() == 0);
        Gradients at_a = slopes(model, Array{0, bad}, 1);
        CHECK_THROWS_WITH(gradient_norm(model, at_a), contains("the gradient of a (2)") && contains("at place 1"));
    }
    Two model;
    Gradients g = slopes(model, Array{3, 4}, 1);
    Adam adam({.rate = 0.1});  // v would be infinite, and the weight stand still ever after
    CHECK_THROWS_WITH(adam.step(model, slopes(model, Array{3, std::sqrt(std::numeric_limits<Real>::max()) * 2}, 1)),
                      contains("has no finite square: clip it"));
    CHECK(same_bits(model.a.value(), Array{1, 2}));
    for (const double bound : {0.0, -1.0, double(nan_value)})
        CHECK_THROWS_AS(clip_by_norm(model, g, bound), ValueError);
}

TEST_CASE("the Transformer's rate rises in proportion to the step and falls as its root (O32)") {
    const Schedule rate = transformer_warm_up(512, 4000);
    CHECK(close(rate(4000), 6.987712e-4, 0, 1e-10));
    CHECK(close(rate(1), 6.987712e-4 / 4000, 1e-6, 0));
    CHECK(close(rate(2000), rate(4000) / 2));
    CHECK(close(rate(16000), rate(4000) / 2));
    CHECK(rate(3999) < rate(4000));
    CHECK(rate(4001) < rate(4000));
    CHECK_THROWS_AS(transformer_warm_up(512, 0), ValueError);
}

TEST_CASE("a gradient that was edited into another shape is refused before anything changes") {
    Two model;
    Gradients g = slopes(model, Array{3, 4}, 1);
    g.edit(model.a) = Array(Real(5));
    Adam adam({.rate = 0.1});
    CHECK_THROWS_WITH(adam.step(model, g), contains("the gradient of a is (), not (2)"));
    CHECK_THROWS_AS(clip_by_norm(model, g, 1), ShapeError);
    CHECK(same_bits(model.a.value(), Array{1, 2}));
    CHECK(adam.steps() == 0);
}

TEST_CASE("a rate or a decay that is not finite is refused before it touches a weight") {
    Two model;
    const Gradients g = slopes(model, Array{3, 4}, 1);
    SGD sgd({.rate = Schedule([](std::size_t) { return double(nan_value); })});
    CHECK_THROWS_WITH(sgd.step(model, g), contains("the rate of step 1 is not finite"));
    CHECK(same_bits(model.a.value(), Array{1, 2}));
    CHECK(sgd.steps() == 0);
    CHECK_THROWS_AS(AdamW({.decay = double(infinity)}), ValueError);
    CHECK_THROWS_AS(Schedule(std::function<double(std::size_t)>()), ValueError);
}

TEST_CASE("the cosine rate warms up to its peak, and falls to its floor") {
    const Schedule rate = cosine(2, 110, 10, 1);
    CHECK(close(rate(5), 1));
    CHECK(close(rate(10), 2));
    CHECK(close(rate(60), 1.5));
    CHECK(close(rate(110), 1));
    CHECK(close(rate(1000), 1));
    CHECK(close(cosine(2, 100)(50), 1));
    CHECK_THROWS_WITH(cosine(1, 10, 10), contains("[cosine]") && contains("10"));
}

TEST_CASE("an optimizer says the rate of its next step") {
    Two model;
    Adam adam({.rate = cosine(1, 20, 10)});
    CHECK(close(adam.rate(), 0.1));
    adam.step(model, slopes(model, Array{1, 1}, 1));
    CHECK(close(adam.rate(), 0.2));
}

TEST_CASE("options outside their range are refused") {
    CHECK_THROWS_AS(SGD({.momentum = 1}), ValueError);
    CHECK_THROWS_AS(SGD({.momentum = -0.1}), ValueError);
    CHECK_THROWS_AS(Adam({.beta_1 = 1}), ValueError);
    CHECK_THROWS_AS(Adam({.beta_2 = 1}), ValueError);
    CHECK_THROWS_AS(Adam({.epsilon = 0}), ValueError);
    CHECK_THROWS_AS(AdamW({.decay = -1}), ValueError);
}

TEST_CASE("a parameter shown twice, or two under one path, is refused") {
    struct Twice {
        Parameter a{Array{1}}, b{Array{2}};
        bool same;
        void for_each_parameter(const std::string&, const Visitor& f) {
            f("x", a);
            if (same)
                f("y", a);
            else
                f("x", b);
        }
    };
    Twice same{.same = true}, path{.same = false};
    CHECK_THROWS_WITH(Parameters(same), contains("x and y are one parameter"));
    CHECK_THROWS_WITH(Parameters(path), contains("two parameters have the path x"));
}
