// Paths on the tape, against counts known from the graph's shape.
#include "engine/paths.hpp"
#include <cmath>
#include "engine/ops/arithmetic.hpp"
#include "engine/pullback.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"
#include "tests/support/small_stack.hpp"

using namespace lookback;
using namespace lookback::test;

static Array one() { return filled({}, 1); }

TEST_CASE("a chain has one path, as long as its ops") {
    Tape tape;
    const Tensor x = tape.leaf(one());
    Tensor y = x;
    for (int i = 0; i < 7; ++i) y = -y;
    const PathReport p = paths(y, {x})[0];
    CHECK(p.reached);
    CHECK(p.shortest == 7);
    CHECK(p.longest == 7);
    CHECK(p.log2_count == 0);
    const PathReport self = paths(y, {y})[0];
    CHECK((self.reached && self.shortest == 0 && self.longest == 0 && self.log2_count == 0));
}

TEST_CASE("shortest and longest differ where a path skips, and every way through is counted") {
    Tape tape;
    const Tensor x = tape.leaf(one()), w = tape.leaf(one());
    const Tensor a = -x, b = a * w, c = b * w, y = c + x;  // to x: c b a x (4 ops) and directly (1); to w: by c, by b
    const std::vector<PathReport> p = paths(y, {x, w, a});
    CHECK((p[0].shortest == 1 && p[0].longest == 4));
    CHECK((p[1].shortest == 2 && p[1].longest == 3));
    CHECK((p[2].shortest == 3 && p[2].longest == 3));
    CHECK(close(p[0].log2_count, 1, 0, 1e-12));
    CHECK(close(p[1].log2_count, 1, 0, 1e-12));
    CHECK(p[2].log2_count == 0);
}

TEST_CASE("the same input twice is two paths, and counts beyond any integer stay exact in log2") {
    Tape tape;
    const Tensor x = tape.leaf(one());
    Tensor y = x;
    for (int i = 0; i < 5000; ++i) y = y + y;
    CHECK(paths(y, {x})[0].log2_count == 5000);

    // f(n) = f(n-1) + f(n-2): as many paths as Fibonacci numbers count.
    Tensor before = tape.leaf(one()), now = before + tape.leaf(one());
    const Tensor start = before;
    for (int i = 0; i < 84; ++i) before = std::exchange(now, now + before);
    CHECK(close(paths(now, {start})[0].log2_count, std::log2(420196140727489673.0), 1e-13, 0));
}

TEST_CASE("a path through any sibling output enters the inputs") {
    Tape tape;
    const Tensor x = tape.leaf(one());
    const std::vector<Tensor> parts = record("parts", {x}, std::vector<Shared>{one(), one(), one()}, saves::nothing,
                                             [](Pullback& p) { p.x_bar(0) += p.y_bar(0) + p.y_bar(1) + p.y_bar(2); });
    const Tensor y = parts[1] + -parts[2];
    const PathReport p = paths(y, {x})[0];
    CHECK((p.shortest == 2 && p.longest == 3));
    CHECK(close(p.log2_count, 1, 0, 1e-12));
    CHECK(!paths(y, {parts[0]})[0].reached);
    CHECK(paths(parts[2], {x})[0].longest == 1);
}

TEST_CASE("what is detached, unrelated or later is not reached") {
    Tape tape;
    const Tensor x = tape.leaf(one()), other = tape.leaf(one()), y = x * detach(other * other), later = y + x;
    const std::vector<PathReport> p = paths(y, {other, later, x});
    CHECK(!p[0].reached);
    CHECK(!p[1].reached);
    CHECK(p[2].reached);
    CHECK(p[0].log2_count == -std::numeric_limits<double>::infinity());
    CHECK(p[0].longest == 0);
}

TEST_CASE("roots and targets that are on no tape, or on another, are refused") {
    const Parameter w(one(), "w");
    Tape tape, another;
    const Tensor x = tape.leaf(one()), y = x * w;
    CHECK_THROWS_AS(paths(tape.constant(one()), {x}), TapeError);
    CHECK_THROWS_AS(paths(y, {tape.constant(one())}), TapeError);
    CHECK_THROWS_AS(paths(y, {another.leaf(one())}), TapeError);
    CHECK_THROWS_AS(paths(y, {Tensor(w)}), TapeError);
    CHECK(paths(y, {tape.leaf(w)})[0].shortest == 1);
}

TEST_CASE("a million records need no stack") {
    on_small_stack([] {
        Tape tape;
        const Tensor x = tape.leaf(one());
        Tensor y = x;
        for (int i = 0; i < 1000000; ++i) y = -y;
        const PathReport p = paths(y, {x})[0];
        CHECK(p.shortest == 1000000);
        CHECK(p.longest == 1000000);
    });
}
