// The tape: order, accumulation, lifetime, identity. Field cases C01, C03, C07, C09, C11, C65 and what design.md says
// of §3.
#include <cmath>
#include "engine/ops/activation.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/gather.hpp"
#include "engine/ops/linear.hpp"
#include "engine/ops/movement.hpp"
#include "engine/ops/reduce.hpp"
#include "engine/ops/softmax.hpp"
#include "engine/pullback.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"
#include "tests/support/small_stack.hpp"

using namespace lookback;
using namespace lookback::test;

// A record made here, as an op author would: its pullback is the test's.
static Tensor custom(const Tensor& x, Saves saves, PullbackFunction pullback) {
    return record("custom", {x}, x.shared(), saves, pullback);
}

TEST_CASE("a value used twice is propagated once, after all its contributions are in (C01)") {
    Tape tape;
    SECTION("a scalar diamond") {
        const Tensor x = tape.leaf(Array(Real(2)));
        const Tensor u = 3 * x, v = u * u, w = u + v, y = v * w;
        CHECK(y.item() == 1512);
        CHECK(close(tape.backward(y, {x})[x], Array(Real(2916))));
    }
    SECTION("a matrix and its transpose") {
        const Tensor X = tape.leaf(Array{{1, 2}, {3, 4}});
        const Tensor s = sum(matmul(X, transpose(X)) * tape.constant(Array{{1, 10}, {100, 1000}}));
        CHECK(close(tape.backward(s, {X})[X], Array{{332, 444}, {6110, 8220}}));
    }
    SECTION("a tied table") {
        const Tensor E = tape.leaf(Array{{1, 2}, {3, 4}});
        const Tensor h = embedding(E, Indices{1});
        const Tensor o = matmul_transposed(h, E);
        CHECK(close(tape.backward(o, {E}, {.seed = Array{{1, 0}}})[E], Array{{3, 4}, {1, 2}}));
    }
    SECTION("x + x and x * x share one cotangent") {
        const Tensor x = tape.leaf(Array{1, 2, 3});
        CHECK(close(tape.backward(sum(x + x), {x})[x], Array{2, 2, 2}));
        CHECK(close(tape.backward(sum(x * x), {x})[x], Array{2, 4, 6}));
        CHECK(close(tape.backward(sum(x - x), {x})[x], Array{0, 0, 0}));
    }
}

TEST_CASE("a carried state is cut by detach, which keeps the value (C03)") {
    const Parameter w(Array(Real(0.5)), "w");
    Tape tape;
    const auto two_steps = [&](Tensor h) {
        for (int i = 0; i < 2; ++i) h = w * h + 1;
        return h;
    };
    const Tensor h = two_steps(tape.constant(Array(Real(0))));
    const Tensor cut = detach(h);
    CHECK(same_bits(cut.value(), h.value()));
    CHECK(cut.is_constant());
    const Tensor loss_cut = two_steps(cut), loss_whole = two_steps(h);
    CHECK(close(loss_cut.item(), 1.875));
    CHECK(close(loss_whole.item(), 1.875));
    CHECK(close(tape.backward(loss_cut)[w], Array(Real(2.5))));
    CHECK(close(tape.backward(loss_whole)[w], Array(Real(2.75))));
}

TEST_CASE("gradients of truncated windows add up on a rewound tape") {
    const Parameter w(Array(Real(0.5)), "w");
    Tape tape;
    const Tape::Mark start = tape.mark();
    Array state(Real(0));
    Gradients total;
    for (int window = 0; window < 2; ++window) {
        Tensor h = tape.constant(state);
        for (int i = 0; i < 2; ++i) h = w * h + 1;
        state = h.value();
        total += tape.backward(h);
        tape.rewind(start);
        CHECK(tape.size() == 0);
    }
    // window 1: h = w·1 + 1 from h = 1, dw = 1; window 2: from 1.5, dw = 1.5 · w + (1.5 w + 1) = 2.5
    CHECK(close(total[w], Array(Real(3.5))));
}

TEST_CASE("a million steps run forward, backward and are freed under a small stack (C07)") {
    const Live before = Recycler::live;
    on_small_stack([] {
        const Live baseline = Recycler::live;
        {
            Tape tape;
            const Tensor y0 = tape.leaf(Array(Real(1)));
            Tensor y = y0;
            for (int i = 0; i < 1'000'000; ++i) y = y + Real(1e-6) * y;
            const Gradients g = tape.backward(y, {y0});
            CHECK(close(double(g[y0]()), 2.718280469, sizeof(Real) == 8 ? 1e-9 : 2e-2, 0));
            CHECK(tape.size() == 2'000'001);
        }
        CHECK(Recycler::live == baseline);
    });
    CHECK(Recycler::live == before);
}

TEST_CASE("an RNN of 100,000 steps runs under a small stack (C07)") {
    on_small_stack([] {
        const Live baseline = Recycler::live;
        {
            Tape tape;
            const Tensor U = tape.leaf(Array{{0.9, 0.1}, {-0.1, 0.9}}), x = tape.constant(Array{{0.1, 0.2}});
            const Tensor h0 = tape.leaf(Array{{0.5, -0.5}});
            Tensor h = h0;
            std::vector<Tensor> states;
            for (int t = 0; t < 100'000; ++t) states.push_back(h = tanh(x + matmul(h, U)));
            const Gradients g = tape.backward(sum(stack(states, 1)), {h0, U});
            CHECK(g.reached(h0));
            CHECK(std::isfinite(norm(g[U])));
            CHECK(norm(g[h0]) > 0);
        }
        CHECK(Recycler::live == baseline);
    });
}

TEST_CASE("values, records and gradients are all freed, whether or not backward ran (C09)") {
    const std::vector<std::function<Tensor(const Tensor&)>> ops{
        [](const Tensor& x) { return exp(x); },        [](const Tensor& x) { return tanh(x); },
        [](const Tensor& x) { return sigmoid(x); },    [](const Tensor& x) { return sqrt(x); },
        [](const Tensor& x) { return softmax(x, 0); }, [](const Tensor& x) { return log_softmax(x, 0); },
        [](const Tensor& x) { return max(x); }};
    const Live baseline = Recycler::live;
    for (const auto& op : ops)
        for (int i = 0; i < 200; ++i) {
            {
                Tape tape;
                const Tensor x = tape.leaf(filled({1000}, Real(0.5)));
                const Tensor y = sum(op(x));
                if (i % 2) tape.backward(y, {x});
            }
            REQUIRE(Recycler::live == baseline);
        }
}

TEST_CASE("an exception in mid-forward or mid-backward leaks nothing") {
    const Live baseline = Recycler::live;
    try {
        Tape tape;
        const Tensor x = tape.leaf(filled({10, 10}, 1));
        const Tensor y = tanh(x) * x;
        matmul(y, tape.constant(filled({3, 3}, 1)));
        FAIL("the shapes do not fit");
    } catch (const ShapeError& e) {
        CHECK_THAT(e.what(), contains("[matmul]") && contains("(10,10)") && contains("(3,3)"));
    }
    CHECK(Recycler::live == baseline);
    {
        Tape tape;
        const Tensor x = tape.leaf(filled({10, 10}, 1));
        const Tensor y = custom(tanh(x), saves::nothing, [](Pullback& p) {
            p.x_bar(0) += p.y_bar();
            throw std::runtime_error("planted");
        });
        CHECK_THROWS_AS(tape.backward(sum(y), {x}), std::runtime_error);
        const Tensor z = sum(tanh(x));
        CHECK(tape.backward(z, {x}).reached(x));  // the tape is as usable as before
    }
    CHECK(Recycler::live == baseline);
}

TEST_CASE("what backward reads can't be overwritten between forward and backward (C11)") {
    SECTION("a leaf's own array is the tape's") {
        Tape tape;
        Array a{1, 2, 3};
        const Tensor x = tape.leaf(a);
        const Tensor y = sum(x * x);
        a(0) = 10;
        CHECK(close(tape.backward(y, {x})[x], Array{2, 4, 6}));
    }
    SECTION("an optimiser step before backward") {
        Parameter w(Array{1, 2, 3}, "w");
        Tape tape;
        const Tensor y = sum(tape.leaf(w) * w);
        w.edit([](Array& value) { value(0) = 10; });
        CHECK(close(tape.backward(y)[w], Array{2, 4, 6}));
        CHECK(w.value()(0) == 10);
        CHECK_THROWS_WITH(tape.constant(Array(Real(1))) * w, contains("w (3)") && contains("changed after"));
        tape.rewind({tape.mark().tape, 0, 0});
        CHECK(close((tape.constant(Array(Real(1))) * w).value(), Array{10, 2, 3}));
    }
    SECTION("exp's output") {
        Tape tape;
        const Tensor a = tape.leaf(Array{1, 2, 3});
        const Tensor b = exp(a);
        Array copy = b.value();
        copy(0) = 0;
        CHECK(close(tape.backward(sum(b), {a})[a], Array{2.7182818285, 7.3890560989, 20.0855369232}));
    }
    SECTION("a parameter's shape") {
        Parameter w(Array{1, 2, 3}, "decoder.w");
        CHECK_THROWS_WITH(w.assign(Array{{1, 2, 3}}), contains("decoder.w") && contains("(3)") && contains("(1,3)"));
        CHECK_THROWS_AS(w.edit([](Array& value) { value = Array{1, 2}; }), ShapeError);
        CHECK(close(w.value(), Array{1, 2, 3}));
    }
}

TEST_CASE("a gradient has exactly its value's shape, or the pullback is refused (C65)") {
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 2, 3});
    const Tensor good = custom(x, saves::nothing, [](Pullback& p) { p.x_bar(0) += filled({2, 3}, 1); });
    CHECK(close(tape.backward(good, {x}, {.seed = Array{1, 1, 1}})[x], Array{2, 2, 2}));  // summed over the new axis
    const Tensor bad = custom(x, saves::nothing, [](Pullback& p) { p.x_bar(0) += filled({4}, 1); });
    CHECK_THROWS_AS(tape.backward(bad, {x}, {.seed = Array{1, 1, 1}}), ShapeError);
    const Tensor narrow = custom(x, saves::nothing, [](Pullback& p) { p.x_bar(0) += filled({1}, 1); });
    CHECK_THROWS_AS(tape.backward(narrow, {x}, {.seed = Array{1, 1, 1}}), ShapeError);
}

TEST_CASE("a pullback may read only what the record saved") {
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 2, 3});
    const auto reads_x = [](Pullback& p) { p.x_bar(0) += p.y_bar() * p.x(0); };
    const auto reads_y = [](Pullback& p) { p.x_bar(0) += p.y_bar() * p.y(); };
    CHECK_THROWS_WITH(tape.backward(sum(custom(x, saves::nothing, reads_x)), {x}),
                      contains("[custom]") && contains("did not save"));
    CHECK_THROWS_AS(tape.backward(sum(custom(x, saves::output, reads_x)), {x}), TapeError);
    CHECK_THROWS_AS(tape.backward(sum(custom(x, saves::inputs, reads_y)), {x}), TapeError);
    CHECK(close(tape.backward(sum(custom(x, saves::input(0), reads_x)), {x})[x], Array{1, 2, 3}));
    CHECK(close(tape.backward(sum(custom(x, saves::output, reads_y)), {x})[x], Array{1, 2, 3}));
}

TEST_CASE("what nobody saves and no handle holds is freed at once") {
    Tape tape;
    Tensor x = tape.leaf(filled({1000}, 1));
    const std::ptrdiff_t one = Recycler::live.bytes;
    Tensor y = x;
    for (int i = 0; i < 100; ++i) y = y + x;  // add saves nothing
    CHECK(Recycler::live.bytes < one + 3 * 8000 + 100 * 1000);
    for (int i = 0; i < 100; ++i) y = tanh(y);  // tanh keeps its output
    CHECK(Recycler::live.bytes > one + std::ptrdiff_t(100 * 1000 * sizeof(Real)));
}

TEST_CASE("backward refuses roots, seeds and wanted tensors that make no sense") {
    Tape tape, other;
    const Tensor x = tape.leaf(Array{1, 2, 3}), y = x * x, c = tape.constant(Array(Real(1)));
    CHECK_THROWS_WITH(tape.backward(y), contains("seed") && contains("(3)"));
    CHECK_THROWS_WITH(tape.backward(y, {x}, {.seed = Array{1, 2}}), contains("(2)") && contains("(3)"));
    CHECK_THROWS_AS(tape.backward(y, {x}, {.seed = Array{{1, 2, 3}}}), ShapeError);
    CHECK_THROWS_WITH(tape.backward(c), contains("constant"));
    CHECK_THROWS_AS(tape.backward(sum(c)), TapeError);
    CHECK_THROWS_AS(other.backward(sum(y)), TapeError);
    CHECK_THROWS_AS(tape.backward(sum(y), {c}), TapeError);
    CHECK_THROWS_AS(tape.backward(sum(y), {other.leaf(Array(Real(1)))}), TapeError);
    CHECK_THROWS_AS(tape.backward(Tensor()), TapeError);
    CHECK_THROWS_AS(tape.backward(Tensor(Real(2))), TapeError);
}

TEST_CASE("gradients know what was asked for, what was reached, and whose they are") {
    Tape tape;
    const Parameter used(Array{1, 2}, "used"), unused(Array{{1, 2}}, "unused");
    const Tensor x = tape.leaf(Array{3, 4}), aside = tanh(x), z = x * used, loss = sum(z), later = x + 1;
    const Gradients g = tape.backward(loss, {x, aside, later});
    CHECK(close(g[x], Array{1, 2}));
    CHECK(close(g[used], Array{3, 4}));
    CHECK(g.reached(x));
    CHECK_FALSE(g.reached(aside));
    CHECK(close(g[aside], Array{0, 0}));
    CHECK_FALSE(g.reached(later));
    CHECK(close(g[later], Array{0, 0}));
    CHECK_FALSE(g.reached(unused));
    CHECK(close(g[unused], Array{{0, 0}}));
    CHECK_THROWS_WITH(g[z], contains("not asked for"));
    CHECK_THROWS_AS(g[Tape().leaf(Array{1, 2})], TapeError);
    CHECK_THROWS_AS(g[Tensor()], TapeError);
    const Parameter twin = used.clone();
    CHECK_FALSE(g.reached(twin));  // an equal value, another identity
}

TEST_CASE("a parameter that was not asked for has no gradient, not a gradient of 0") {
    Tape tape;
    const Parameter w(Array{1, 2}, "w"), v(Array{3, 4}, "v"), never(Array{5}, "never");
    const Tensor x = tape.leaf(Array{3, 4}), loss = sum(x * w * v);
    const Gradients none = tape.backward(loss, {x}, {.keep = Keep::wanted});
    CHECK_THROWS_WITH(none[w], contains("not asked for"));
    CHECK_THROWS_AS(none.reached(never), TapeError);
    const Gradients one = tape.backward(loss, {w, never}, {.keep = Keep::wanted});
    CHECK(close(one[w], Array{9, 16}));
    CHECK(close(one[never], Array{0}));
    CHECK_FALSE(one.reached(never));
    CHECK_THROWS_AS(one[v], TapeError);
    const Gradients by_leaf = tape.backward(loss, {tape.leaf(w)}, {.keep = Keep::wanted});
    CHECK(close(by_leaf[w], Array{9, 16}));
    CHECK_THROWS_AS(by_leaf[v], TapeError);
    CHECK_THROWS_AS(Gradients()[w], TapeError);

    Gradients sum_of_all;
    sum_of_all += tape.backward(loss);
    CHECK(close(sum_of_all[never], Array{0}));
    sum_of_all += none;  // which knows nothing of parameters
    CHECK_THROWS_AS(sum_of_all[Parameter(Array{6}, "never either")], TapeError);
}

TEST_CASE("a sum of gradients knows only what all its parts know") {
    Tape tape;
    const Parameter w(Array{1, 2}, "w"), v(Array{3, 4}, "v");
    const Tensor x = tape.leaf(Array{3, 4}), loss = sum(x * w * v);
    const Gradients all = tape.backward(loss, {x}), only_w = tape.backward(loss, {x, w}, {.keep = Keep::wanted});
    for (const bool all_first : {true, false}) {
        Gradients s = all_first ? all : only_w;
        s += all_first ? only_w : all;
        CHECK(close(s[w], Array{18, 32}));
        CHECK(close(s[x], Array{6, 16}));
        CHECK_THROWS_AS(s[v], TapeError);  // half of it would be wrong
        CHECK_THROWS_AS(s[tape.leaf(v)], TapeError);
    }
}

TEST_CASE("a parameter and its leaf have one gradient: an edit of either is seen in both") {
    Tape tape;
    const Parameter w(Array{1, 2}, "w");
    const Tensor leaf = tape.leaf(w);
    Gradients g = tape.backward(sum(leaf * w));
    g.edit(w) = Array{10, 20};
    CHECK(close(g[leaf], Array{10, 20}));
    g.edit(leaf) = Array{5, 6};
    CHECK(close(g[w], Array{5, 6}));
    g += tape.backward(sum(leaf * w));  // added once, not once under each name
    CHECK(close(g[w], Array{7, 10}));
    CHECK(close(g[leaf], Array{7, 10}));
}

TEST_CASE("a gradient is not found under a new object at an old address") {
    Gradients g;
    const Parameter* old = nullptr;
    {
        const auto p = std::make_unique<Parameter>(Array{1, 2}, "p");
        old = p.get();
        Tape tape;
        g = tape.backward(sum(tape.constant(Array{1, 1}) * *p));
        CHECK(g.reached(*p));
    }
    std::vector<std::unique_ptr<Parameter>> more;
    for (int i = 0; i < 100; ++i) more.push_back(std::make_unique<Parameter>(Array{1, 2}, "new"));
    for (const auto& p : more) CHECK_FALSE(g.reached(*p));
    (void)old;
}

TEST_CASE("Keep::all keeps every record, Keep::wanted only what is asked for, and neither changes a number") {
    Tape tape;
    const Parameter w(Array{0.5, -1}, "w");
    const Tensor x = tape.leaf(Array{1, 2}), a = x * w, b = tanh(a), loss = sum(b * a);
    const Gradients some = tape.backward(loss, {x, a, b});
    const Gradients all = tape.backward(loss, {}, {.keep = Keep::all});
    const Gradients only = tape.backward(loss, {a}, {.keep = Keep::wanted});
    for (const Tensor& t : {x, a, b}) CHECK(same_bits(some[t], all[t]));
    CHECK(same_bits(some[w], all[w]));
    CHECK(same_bits(only[a], all[a]));
    CHECK_THROWS_AS(only[x], TapeError);
    CHECK(close(all[loss], Array(Real(1))));
}

TEST_CASE("an observer sees every contribution, which add up, and changes no bit") {
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 2});
    const Tensor recurrent = tag(x, "recurrence"), direct = tag(x, "value");
    const Tensor loss = sum(recurrent * recurrent * recurrent + 5 * direct);
    Array seen = filled({2}, 0);
    std::vector<std::string> labels;
    const Gradients watched = tape.backward(loss, {x}, {.observer = [&](const Contribution& c) {
                                                if (c.from != x.id()) return;
                                                CHECK(std::string(tape[c.record].op) == "tag");
                                                labels.push_back(std::any_cast<std::string>(tape[c.record].attributes));
                                                seen = Array(seen + c.x_bar);
                                            }});
    CHECK(labels == std::vector<std::string>{"value", "recurrence"});
    CHECK(close(seen, Array{8, 17}));
    CHECK(same_bits(watched[x], tape.backward(loss, {x})[x]));
}

TEST_CASE("an observer may read the tape that it watches, not change it") {
    Tape tape;
    const Parameter w(Array{1, 2}, "w");
    const Tensor x = tape.leaf(Array{1, 2}), loss = sum(tanh(x));
    const Tape::Mark mark = tape.mark();
    const auto watched_by = [&](std::function<void()> act) {
        return tape.backward(loss, {x}, {.observer = [act](const Contribution&) { act(); }});
    };
    CHECK_THROWS_WITH(watched_by([&] { (void)(x + 1); }), contains("[add]") && contains("observer"));
    CHECK_THROWS_WITH(watched_by([&] { (void)tape.leaf(Array{1}); }), contains("[leaf]"));
    CHECK_THROWS_WITH(watched_by([&] { (void)tape.leaf(w); }), contains("observer"));
    CHECK_THROWS_WITH(watched_by([&] { tape.rewind(mark); }), contains("[rewind]"));
    Array inner;
    const Gradients g = watched_by([&] {
        inner = tape.backward(loss, {x})[x];
        NoGrad off(tape);
        (void)(x + 1);
    });
    CHECK(same_bits(g[x], inner));
    CHECK(tape.size() == 3);  // and now it may grow again
    CHECK_NOTHROW(x + 1);
}

// (a, 2a, 3a) as three sibling outputs
static std::vector<Tensor> triple(const Tensor& a) {
    return record("triple", {a}, {a.shared(), Array(2 * a.value()), Array(3 * a.value())}, saves::nothing,
                  [](Pullback& p) { p.x_bar(0) += p.y_bar(0) + 2 * p.y_bar(1) + 3 * p.y_bar(2); });
}

TEST_CASE("sibling outputs have one pullback, which reads zeros where nothing flowed") {
    Tape tape;
    const Tensor a = tape.leaf(Array{1, 10});
    const std::vector<Tensor> y = triple(a * 1);
    CHECK(close(tape.backward(sum(y[0] + y[1] + y[2]), {a})[a], Array{6, 6}));
    CHECK(close(tape.backward(sum(y[2]), {a})[a], Array{3, 3}));
    CHECK(close(tape.backward(sum(y[0] * y[2]), {a, y[0], y[2]})[y[2]], Array{1, 10}));
    CHECK(close(tape.backward(y[1], {a}, {.seed = Array{1, 0}})[a], Array{2, 0}));  // a sibling as the root
    CHECK(close(tape.backward(y[2], {y[2]}, {.seed = Array{1, 0}})[y[2]], Array{1, 0}));
    CHECK_FALSE(tape.backward(sum(y[1]), {y[0]}).reached(y[0]));
    const Gradients g = tape.backward(sum(y[1]), {y[2], a});
    CHECK_FALSE(g.reached(y[2]));
    CHECK(close(g[a], Array{2, 2}));
}

TEST_CASE("with recording off the same code computes the same bits and keeps nothing") {
    const Parameter w(Array{0.5, -1}, "w");
    const auto model = [&](const Tensor& x) { return softmax(tanh(x * w) + x, 0); };
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 2});
    const Array recorded = model(x).value();
    const std::size_t size = tape.size();
    {
        const NoGrad guard(tape);
        CHECK_FALSE(tape.recording());
        const Tensor y = model(x);
        CHECK(same_bits(y.value(), recorded));
        CHECK(y.is_constant());
        CHECK(tape.leaf(Array{1, 2}).is_constant());
        CHECK(tape.size() == size);
    }
    CHECK(tape.recording());
    model(x);
    CHECK(tape.size() > size);
}

TEST_CASE("a handle from before a rewind may be read, not used; one from before the mark stays good") {
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 2});
    const Tape::Mark mark = tape.mark();
    const Tensor stale = x * x;
    tape.rewind(mark);
    CHECK(close(stale.value(), Array{1, 4}));
    CHECK_THROWS_WITH(stale + 1, contains("[add]") && contains("rewound"));
    const Tensor fresh = x + 1;  // takes the old record's place
    CHECK(fresh.id() == stale.id());
    CHECK_THROWS_AS(stale * fresh, TapeError);
    CHECK_THROWS_AS(tape.backward(sum(fresh), {stale}), TapeError);
    const Gradients g = tape.backward(sum(fresh), {x, fresh});
    CHECK_THROWS_AS(g[stale], TapeError);
    CHECK(close(g[x], Array{1, 1}));
}

TEST_CASE("marks are checked: another tape's, or one that was itself rewound") {
    Tape tape, other;
    const Tape::Mark empty = tape.mark();
    const Tensor x = tape.leaf(Array{1, 2});
    const Tensor y = x * x;
    const Tape::Mark late = tape.mark();
    CHECK_THROWS_AS(other.rewind(late), TapeError);
    tape.rewind(empty);
    CHECK_THROWS_AS(tape.rewind(late), TapeError);
    const Tensor a = tape.leaf(Array{1, 2}), b = a * a;
    CHECK(tape.size() == 2);
    CHECK_THROWS_AS(tape.rewind(late), TapeError);  // as long as before, but not what it was
}

TEST_CASE("rewinding keeps memory bounded and forgets parameters recorded since") {
    const Parameter w(Array(Real(0.5)), "w");
    Tape tape;
    const Tensor x = tape.leaf(Array(Real(1)));
    const Tape::Mark mark = tape.mark();
    std::ptrdiff_t first = 0;
    for (int i = 0; i < 100; ++i) {
        Tensor h = x;
        for (int t = 0; t < 50; ++t) h = tanh(w * h);
        tape.rewind(mark);
        if (i == 1) first = Recycler::live.bytes;
        if (i > 1) REQUIRE(Recycler::live.bytes == first);
    }
    CHECK(tape.backward(x * w).reached(w));
}

TEST_CASE("a tensor whose tape is gone can be read; using it is an error that says so (C03)") {
    Tensor y;
    {
        Tape tape;
        y = tape.leaf(Array{1, 2}) * 2;
    }
    CHECK(close(y.value(), Array{2, 4}));
    CHECK_THROWS_WITH(y + 1, contains("[add]") && contains("gone"));
    CHECK_THROWS_AS(y.tape(), TapeError);
    CHECK_THROWS_AS(detach(y), TapeError);
    Tape another;
    CHECK_THROWS_AS(another.backward(sum(another.leaf(Array{1, 2}) * 1), {y}), TapeError);
    CHECK_THROWS_AS(another.leaf(Array{1, 2}) + y, TapeError);
}

TEST_CASE("inputs of two tapes, of none, or an empty tensor are errors naming the op") {
    Tape one, two;
    const Parameter w(Array(Real(1)), "w");
    CHECK_THROWS_WITH(one.leaf(Array(Real(1))) * two.leaf(Array(Real(1))), contains("[mul] inputs of two tapes"));
    CHECK_THROWS_WITH(w * w, contains("[mul]") && contains("no input is on a tape"));
    CHECK_THROWS_AS(w * 2, TapeError);
    CHECK_THROWS_AS(one.leaf(Array(Real(1))) + Tensor(), TapeError);
    CHECK_THROWS_AS(Tensor().value(), TapeError);
}

TEST_CASE("backward stops at the lowest wanted record: a Jacobian of one step costs one step") {
    Tape tape;
    static int calls;
    calls = 0;
    Tensor h = tape.leaf(Array{1, 2});
    std::vector<Tensor> states{h};
    for (int t = 0; t < 1000; ++t)
        states.push_back(h = custom(h, saves::nothing, [](Pullback& p) {
                             ++calls;
                             p.x_bar(0) += p.y_bar();
                         }));
    tape.backward(states[1000], {states[998]}, {.keep = Keep::wanted, .seed = Array{1, 0}});
    CHECK(calls == 2);
}

TEST_CASE("a record may have more inputs than 65,536, and gradients reach each of them") {
    Tape tape;
    std::vector<Tensor> leaves;
    for (int i = 0; i < 70'000; ++i) leaves.push_back(tape.leaf(Array(Real(i))));
    const Tensor all = stack(leaves);
    const Gradients g = tape.backward(sum(all * all), leaves);
    CHECK(g[leaves[0]]() == 0);
    CHECK(g[leaves[69'999]]() == 2 * Real(69'999));
}

TEST_CASE("parameters are move-only, keep their identity when moved, and clone into another") {
    STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<Parameter>);
    STATIC_REQUIRE_FALSE(std::is_copy_assignable_v<Parameter>);
    STATIC_REQUIRE(std::is_nothrow_move_constructible_v<Parameter>);
    Parameter w(Array{1, 2}, "w");
    Tape tape;
    const Tensor y = sum(tape.leaf(w) * w);
    const Parameter moved = std::move(w);
    CHECK(close(tape.backward(y)[moved], Array{2, 4}));
}

TEST_CASE("what was moved from, or holds nothing, is an error and not a crash") {
    Parameter w(Array{1, 2}, "w");
    const Parameter moved = std::move(w);
    Tape tape;
    const Tensor x = tape.leaf(Array{1, 2}), loss = sum(x * moved);
    const Gradients g = tape.backward(loss, {x});
    CHECK_THROWS_WITH(w.value(), contains("moved from"));
    CHECK_THROWS_AS(w.shape(), TapeError);
    CHECK_THROWS_AS(w.name(), TapeError);
    CHECK_THROWS_AS(w.clone(), TapeError);
    CHECK_THROWS_AS(w.assign(Array{1, 2}), TapeError);
    CHECK_THROWS_AS(w.edit([](Array&) {}), TapeError);
    CHECK_THROWS_AS(x * w, TapeError);
    CHECK_THROWS_AS(tape.leaf(w), TapeError);
    CHECK_THROWS_AS(tape.leaf(Shared()), TapeError);
    CHECK_THROWS_AS(g[w], TapeError);
    CHECK_THROWS_AS(tape.backward(loss, {w}), TapeError);
    CHECK_THROWS_AS(tape.constant(Shared()) + x, TapeError);
    w = Parameter(Array{5}, "again");
    CHECK(close(w.value(), Array{5}));
}

TEST_CASE("gradients add: parts of a batch are the batch") {
    const Parameter w(Array{1, 2}, "w");
    Gradients total;
    Tape whole;
    Tensor sum_of_all = whole.constant(Array(Real(0)));
    for (int i = 1; i <= 3; ++i) {
        Tape tape;
        total += tape.backward(sum(tanh(Real(i) * tape.leaf(w))));
        sum_of_all = sum_of_all + sum(tanh(Real(i) * whole.leaf(w)));
    }
    CHECK(close(total[w], whole.backward(sum_of_all)[w], 1e-6));
    total.edit(w) = Array(total[w] * 2);
    CHECK(close(total[w], Array(whole.backward(sum_of_all)[w] * 2), 1e-6));
}
