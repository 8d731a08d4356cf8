#include "layers/mask.hpp"
#include "tests/support/catch.hpp"

using namespace lookback;
using namespace lookback::test;

static std::string drawn(const Mask& mask) {
    std::string picture;
    const std::size_t n = mask.shape().back();
    for (std::size_t i = 0; i < mask.size(); ++i) {
        if (i && i % n == 0) picture += ' ';
        picture += mask[i] ? '1' : '0';
    }
    return picture;
}

TEST_CASE("a padding mask shows the first tokens of each sequence to every query", "[layers][mask]") {
    const Mask mask = padding({3, 0, 1}, 3);
    CHECK(mask.shape() == Shape{3, 1, 3});
    CHECK(drawn(mask) == "111 000 100");
    CHECK(padding({}, 3).shape() == Shape{0, 1, 3});
    CHECK(padding({0, 0}, 0).shape() == Shape{2, 1, 0});
    CHECK_THROWS_WITH(padding({3, 4}, 3), "[padding] length 4 of sequence 1 is above T = 3");
}

TEST_CASE("a padding mask can be read off token ids", "[layers][mask]") {
    const Mask mask = padding_by_id(Indices({2, 3}, {5, 0, 7, 1, 1, 0}), 0);
    CHECK(mask.shape() == Shape{2, 1, 3});
    CHECK(drawn(mask) == "101 110");
    CHECK_THROWS_AS(padding_by_id(Indices{1, 2}, 0), ShapeError);
}

TEST_CASE("a causal mask says where queries stand among keys", "[layers][mask]") {
    CHECK(drawn(causal(3, 3, Align::start)) == "100 110 111");
    CHECK(drawn(causal(3, 3, Align::end)) == "100 110 111");
    CHECK(drawn(causal(2, 4, Align::start)) == "1000 1100");
    CHECK(drawn(causal(2, 4, Align::end)) == "1110 1111");
    CHECK(drawn(causal(1, 4, Align::start)) == "1000");
    CHECK(drawn(causal(1, 4, Align::end)) == "1111");
    CHECK(drawn(causal(4, 2, Align::start)) == "10 11 11 11");
    CHECK(drawn(causal(4, 2, Align::end)) == "00 00 10 11");
    CHECK(causal(0, 2, Align::end).shape() == Shape{0, 2});
    CHECK(causal(2, 0, Align::start).shape() == Shape{2, 0});
}

TEST_CASE("a window shows what is near", "[layers][mask]") {
    CHECK(drawn(window(3, 4, 1, 0, Align::start)) == "1000 1100 0110");
    CHECK(drawn(window(3, 4, 0, 1, Align::start)) == "1100 0110 0011");
    CHECK(drawn(window(2, 4, 1, 1, Align::end)) == "0111 0011");
    CHECK(drawn(window(4, 2, 1, 0, Align::end)) == "00 00 10 11");
    CHECK(drawn(window(3, 3, 0, 0, Align::start)) == "100 010 001");
}

TEST_CASE("masks of padding and causality combine", "[layers][mask]") {
    const Mask mask = padding({2, 3}, 3) & causal(3, 3, Align::start);
    CHECK(mask.shape() == Shape{2, 3, 3});
    CHECK(drawn(mask) == "100 110 110 100 110 111");
}

TEST_CASE("attention takes masks of two or three axes and nothing else", "[layers][mask]") {
    const Shape scores = {2, 3, 4};
    CHECK(over_batch("Layer", Mask(Shape{3, 4}, std::vector<bool>(12, true)), scores).shape() == Shape{1, 3, 4});
    CHECK(over_batch("Layer", padding({1, 2}, 4), scores).shape() == Shape{2, 1, 4});
    CHECK_THROWS_WITH(over_batch("Layer", Mask(Shape{4}, std::vector<bool>(4)), scores),
                      "[Layer] a mask must be (T_q,T_k) or (B,T_q,T_k): (4) over scores (2,3,4)");
    CHECK_THROWS_AS(over_batch("Layer", Mask(Shape{2, 4}, std::vector<bool>(8)), scores), ShapeError);
    CHECK_THROWS_AS(over_batch("Layer", Mask(Shape{1, 2, 3, 4}, std::vector<bool>(24)), scores), ShapeError);
    CHECK_THROWS_AS(over_batch("Layer", Mask(Shape{}, {true}), scores), ShapeError);
}
