#include "layers/linear.hpp"
#include "engine/ops/reduce.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

TEST_CASE("Linear is x W + b, with its gradients", "[layers][linear]") {
    Linear linear(Parameter(Array{{1, 2, 3}, {4, 5, 6}}), Parameter(Array{10, 20, 30}));
    Tape tape;
    const Tensor x = tape.leaf(Array{{1, 0}, {1, -1}});
    const Tensor y = linear(x);
    CHECK(close(y.value(), {{11, 22, 33}, {7, 17, 27}}));
    const Gradients g = tape.backward(sum(y), {x});
    CHECK(close(g[x], {{6, 15}, {6, 15}}));
    CHECK(close(g[linear.W], {{2, 2, 2}, {-1, -1, -1}}));
    CHECK(close(g[*linear.b], {2, 2, 2}));
}

TEST_CASE("Linear takes any leading axes, also none and empty ones", "[layers][linear]") {
    Generator generator(1);
    Linear linear(2, 3, generator);
    Tape tape;
    CHECK(linear(tape.leaf(filled({2}, 1))).shape() == Shape{3});
    CHECK(linear(tape.leaf(filled({4, 5, 2}, 1))).shape() == Shape{4, 5, 3});
    CHECK(linear(tape.leaf(filled({0, 2}, 1))).shape() == Shape{0, 3});
}

TEST_CASE("Linear starts within one over the root of its inputs", "[layers][linear]") {
    Generator generator(1);
    Linear linear(100, 50, generator);
    double largest = 0;
    for (std::size_t i = 0; i < linear.W.size(); ++i)
        largest = std::max(largest, std::abs(double(linear.W.value().data()[i])));
    CHECK(largest <= 0.1);
    CHECK(largest > 0.099);
}

TEST_CASE("Linear shows its parameters by their paths", "[layers][linear]") {
    Generator generator(1);
    Linear with(3, 2, generator), without(3, 2, generator, Linear::Bias::no);
    CHECK(parameter_count(with) == 8);
    CHECK(parameter_count(without) == 6);
    name_parameters(with);
    CHECK(with.W.name() == "W");
    with.for_each_parameter("out", [](const std::string& path, Parameter& p) { p.rename(path); });
    CHECK(with.b->name() == "out.b");
}

TEST_CASE("Linear refuses what doesn't fit by its own name", "[layers][linear]") {
    Generator generator(1);
    Linear linear(4, 5, generator);
    Tape tape;
    CHECK_THROWS_WITH(linear(tape.leaf(filled({2, 3}, 1))), "[Linear] x (2,3) does not match W (4,5)");
    CHECK_THROWS_WITH(linear(tape.leaf(filled({}, 1))), "[Linear] x () does not match W (4,5)");
    CHECK_THROWS_AS(Linear(0, 5, generator), ValueError);
    CHECK_THROWS_AS(Linear(5, 0, generator), ValueError);
    CHECK_THROWS_AS(Linear(Parameter(filled({2, 3}, 0)), Parameter(filled({2}, 0))), ShapeError);
    CHECK_THROWS_AS(Linear(Parameter(filled({3}, 0))), ShapeError);
}
