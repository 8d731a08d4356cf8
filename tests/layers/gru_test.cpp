// The gated recurrent unit in its forms: field case C45, oracle O12.
#include "layers/gru.hpp"
#include <cmath>
#include "engine/ops/reduce.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

// C45's cell, which is written with h as a column: so U_r = [[0.3,0.1],[−0.2,0.4]] stands transposed here.
static GRU example(const GRUOptions& options) {
    return GRU(Parameter(Array{{0.1, 0.2, 0.5, -0.3, 1, -1}}),
               Parameter(Array{{0.3, -0.2, 0.2, 0.1, 0.7, -0.4}, {0.1, 0.4, 0, 0.6, 0.2, 0.9}}),
               Parameter(filled({6}, 0)), Parameter(Array{0.1, -0.2}), options);
}

TEST_CASE("the four forms of the GRU give C45's four results, and every form its composed one") {
    struct Case {
        ResetGate reset;
        UpdateGate update;
        Array h, gradient;
    };
    const Case cases[] = {
        {ResetGate::after_product, UpdateGate::keeps, Array{{0.6174063479, -0.7448799130}},
         Array{{0.6643261723, 0.4792698286}}},
        {ResetGate::before_product, UpdateGate::keeps, Array{{0.6229071522, -0.7595801179}},
         Array{{0.6576521556, 0.4736925139}}},
        {ResetGate::after_product, UpdateGate::replaces, Array{{0.7139283138, -0.6412834194}}, {}},
        {ResetGate::before_product, UpdateGate::replaces, Array{{0.7239514326, -0.6497646998}}, {}},
    };
    for (const Case& c : cases) {
        const GRU gru = example({c.reset, c.update});
        Tape tape;
        const Tensor x = tape.constant(filled({1, 1}, 1)), h = tape.leaf(Array{{0.5, -0.5}});
        const Tensor next = gru(x, {h}).h, composed = gru.composed(x, {h}).h;
        CHECK(close(next.value(), c.h));
        CHECK(close(composed.value(), c.h));
        const Array g = tape.backward(sum(next), {h})[h];
        if (c.gradient.size() == 2) CHECK(close(g, c.gradient));
        CHECK(close(g, tape.backward(sum(composed), {h})[h]));
    }
}

TEST_CASE("a GRU without weights decays from h to n by z each step, as its gradient does (O12)") {
    const auto of_bias = [](Real z, Real n) {
        return GRU(Parameter(filled({1, 3}, 0)), Parameter(filled({1, 3}, 0)), Parameter(Array{0, z, n}),
                   Parameter(filled({1}, 0)));
    };
    const auto run = [](const GRU& gru, Tape& tape, int T) {
        const Tensor h0 = tape.leaf(filled({1, 1}, 1)), x = tape.constant(filled({1, 1}, 0));
        GRU::State s{h0};
        for (int t = 0; t < T; ++t) s = gru(x, s);
        return std::pair(h0, s.h);
    };
    {
        Tape tape;
        const auto [h0, h] = run(of_bias(2, Real(std::atanh(0.5))), tape, 10);
        CHECK(close(double(h.item()), .6405169312, 0, 1e-10));
        CHECK(close(double(tape.backward(h, {h0})[h0](0, 0)), .2810338623, 0, 1e-10));
    }
    Tape tape;
    const auto [h0, h] = run(of_bias(800, 1), tape, 100);
    CHECK(h.item() == 1);
    CHECK(tape.backward(h, {h0})[h0](0, 0) == 1);
}

TEST_CASE("PyTorch's second bias of n stays inside the reset") {
    GRU gru = example({});
    PyTorchWeights theirs = gru.to_pytorch();
    CHECK(close(theirs.bias_hh, Array{0, 0, 0, 0, 0.1, -0.2}, 0, 0));
    theirs.bias_ih = Array{1, 2, 3, 4, 5, 6};
    theirs.bias_hh = Array{10, 20, 30, 40, 50, 60};
    gru.from_pytorch(theirs);
    CHECK(close(gru.b.value(), Array{11, 22, 33, 44, 5, 6}, 0, 0));
    CHECK(close(gru.b_n.value(), Array{50, 60}, 0, 0));
}

TEST_CASE("a form that PyTorch does not have goes neither to nor from it") {
    for (const GRUOptions& form : {GRUOptions{ResetGate::before_product, UpdateGate::keeps},
                                   GRUOptions{ResetGate::after_product, UpdateGate::replaces}}) {
        GRU gru = example(form);
        CHECK_THROWS_AS(gru.to_pytorch(), ValueError);
        CHECK_THROWS_AS(gru.from_pytorch(example({}).to_pytorch()), ValueError);
    }
}
