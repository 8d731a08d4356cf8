// Greedy and beam search, on models whose every probability is known.
#include "layers/decoding.hpp"
#include <cmath>
#include <functional>
#include <map>
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

namespace {

// A model whose next token depends on all tokens so far, by any function from them to logits. It demands never to be
// fed the end mark, and remembers how many rows it was asked for.
class Scripted : public Decoding {
public:
    using Rule = std::function<Array(const Ids& so_far)>;
    Scripted(std::size_t rows, Rule rule) : so_far_(rows), rule_(std::move(rule)) {}
    std::size_t rows() const override { return so_far_.size(); }
    Next step(const Ids& previous) override {
        REQUIRE(previous.size() == so_far_.size());
        asked += previous.size();
        std::vector<Array> rows;
        for (std::size_t r = 0; r < previous.size(); ++r) {
            REQUIRE(previous[r] != Alphabet::end);
            so_far_[r].push_back(previous[r]);
            rows.push_back(rule_(so_far_[r]));
        }
        Next next{Array::from_shape({rows.size(), rows[0].size()}), Array::from_shape({rows.size(), 2})};
        for (std::size_t r = 0; r < rows.size(); ++r) {
            std::copy_n(rows[r].data(), rows[r].size(), next.logits.data() + r * rows[r].size());
            next.weights(r, 0) = Real(so_far_[r].size());  // tells whose weights these are
            next.weights(r, 1) = Real(previous[r]);
        }
        return next;
    }
    void keep(const std::vector<std::size_t>& kept) override {
        std::vector<Ids> now;
        for (const std::size_t r : kept) now.push_back(so_far_.at(r));
        so_far_ = now;
    }
    std::size_t asked = 0;

private:
    std::vector<Ids> so_far_;
    Rule rule_;
};

constexpr std::int64_t begin = Alphabet::begin, stop = Alphabet::end, a = 3, b = 4;

// Random logits for each prefix: 5 tokens, of which pad and begin never come.
Scripted::Rule random_rule(std::uint64_t seed, double end_bias = 0) {
    return [=](const Ids& so_far) {
        std::uint64_t hash = seed;
        for (const std::int64_t id : so_far) hash = hash * 1'000'003 + std::uint64_t(id) + 17;
        Generator generator(hash);
        Array logits = generator.normal({5}, 0, 2);
        logits(0) = logits(1) = -std::numeric_limits<Real>::infinity();
        logits(2) += Real(end_bias);
        return logits;
    };
}

double log_softmax(const Array& logits, std::int64_t id) {
    double sum = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) sum += std::exp(double(logits(i)));
    return double(logits(std::size_t(id))) - std::log(sum);
}

// Every sequence of a and b that ends within `longest` tokens, with its log-probability.
std::map<Ids, double> all_answers(const Scripted::Rule& rule, std::size_t longest) {
    std::map<Ids, double> answers;
    const std::function<void(const Ids&, double)> extend = [&](const Ids& ids, double log_probability) {
        Ids fed{begin};
        fed.insert(fed.end(), ids.begin(), ids.end());
        const Array logits = rule(fed);
        answers[ids] = log_probability + log_softmax(logits, stop);
        if (ids.size() == longest) return;
        for (const std::int64_t id : {a, b}) {
            Ids longer = ids;
            longer.push_back(id);
            extend(longer, log_probability + log_softmax(logits, id));
        }
    };
    extend({}, 0);
    return answers;
}

}  // namespace

TEST_CASE("greedy takes the most probable token until the end, for each row by itself") {
    const auto rule = [](const Ids& so_far) {  // a b a b …, and the end after three
        Array logits = filled({5}, 0);
        logits(so_far.size() == 4 ? 2 : so_far.back() == a ? 4 : 3) = 3;
        return logits;
    };
    Scripted model(2, rule);
    const std::vector<Generated> answers = greedy(model);
    REQUIRE(answers.size() == 2);
    for (const Generated& answer : answers) {
        CHECK(answer.ids == Ids{a, b, a});
        CHECK(answer.ended);
        CHECK(close(answer.log_probability, 4 * (3 - std::log(4 + std::exp(3)))));
        REQUIRE(answer.weights.size() == 3);
        CHECK(close(answer.weights[0], Array{1, double(begin)}));
        CHECK(close(answer.weights[2], Array{3, double(b)}));
    }
}

TEST_CASE("a row that has ended leaves the batch, and the others go on as they would alone") {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const Scripted::Rule rule = random_rule(seed);
        // Rows are told apart by their first token, which stands for the source.
        const auto by_row = [&](std::vector<Ids> sources) {
            class Sourced : public Scripted {
            public:
                Sourced(const std::vector<Ids>& s, const Rule& r) : Scripted(s.size(), r) { step_all(s); }
                void step_all(const std::vector<Ids>& s) {
                    Ids firsts;
                    for (const Ids& ids : s) firsts.push_back(ids[0]);
                    Scripted::step(firsts);
                    asked = 0;
                }
            };
            Sourced model(sources, rule);
            std::vector<Generated> answers = greedy(model, {.longest = 12});
            std::size_t needed = 0;
            for (const Generated& answer : answers) needed += answer.ids.size() + 1;
            CHECK(model.asked == needed);
            return answers;
        };
        const std::vector<Generated> together = by_row({{a}, {b}, {begin}});
        std::size_t row = 0;
        for (const std::int64_t source : {a, b, begin}) {
            const Generated alone = by_row({{source}})[0];
            CHECK(together[row].ids == alone.ids);
            CHECK(together[row].log_probability == alone.log_probability);
            ++row;
        }
    }
}

TEST_CASE("equal scores go to the lower id, and to the hypothesis that was ahead") {
    const auto rule = [](const Ids&) { return Array{-9, -9, -20, 1, 1}; };
    Scripted one(1, rule), other(1, rule);
    CHECK(greedy(one, {.longest = 3})[0].ids == Ids{a, a, a});
    const std::vector<Generated> answers =
        beam_search(other, {.width = 4, .length_penalty = 0, .decode = {.longest = 2, .shortest = 2}});
    REQUIRE(answers.size() == 4);
    CHECK_THROWS_AS(beam_search(other, {.width = 1, .length_penalty = std::nan(""), .decode = {.longest = 2}}),
                    ValueError);
    const Ids expected[] = {{a, a}, {a, b}, {b, a}, {b, b}};
    for (std::size_t i = 0; i < 4; ++i) CHECK(answers[i].ids == expected[i]);
}

TEST_CASE("lengths are limited on both sides") {
    const auto never = [](const Ids&) { return Array{-9, -9, -50, 1, 0}; };
    const auto at_once = [](const Ids&) { return Array{-9, -9, 50, 1, 0}; };
    for (const std::size_t longest : {0, 1, 5}) {
        Scripted cut(1, never), beam(1, never);
        const Generated answer = greedy(cut, {.longest = longest})[0];
        CHECK(answer.ids == Ids(longest, a));
        CHECK(!answer.ended);
        const Generated best = beam_search(beam, {.width = 1, .length_penalty = 0, .decode = {.longest = longest}})[0];
        CHECK(best.ids == answer.ids);
        CHECK(!best.ended);
    }
    for (const std::size_t shortest : {0, 1, 5}) {
        Scripted late(1, at_once), beam(1, at_once);
        const Generated answer = greedy(late, {.shortest = shortest})[0];
        CHECK(answer.ids == Ids(shortest, a));
        CHECK(answer.ended);
        for (const Generated& g :
             beam_search(beam, {.width = 3, .length_penalty = 0, .decode = {.longest = 7, .shortest = shortest}}))
            CHECK(g.ids.size() >= shortest);
    }
}

TEST_CASE("no limit is no wrong bound on what may still come") {
    // p(end) = 0.6 at once, or 0.4 and then 32 certain tokens: with a length penalty the long answer is better.
    const auto rule = [](const Ids& so_far) {
        const Real none = -std::numeric_limits<Real>::infinity();
        if (so_far.size() == 1) return Array{none, none, std::log(Real(0.6)), std::log(Real(0.4)), none};
        return so_far.size() <= 33 ? Array{none, none, none, 0, none} : Array{none, none, 0, none, none};
    };
    for (const std::size_t longest : {std::size_t(100), std::size_t(-1)}) {
        Scripted model(1, rule);
        const auto answers = beam_search(model, {.width = 1, .length_penalty = 1, .decode = {.longest = longest}});
        CHECK(answers.at(0).ids.size() == 33);
    }
}

TEST_CASE("where no token can follow, that is an error") {
    const auto only_end = [](const Ids&) {
        const Real none = -std::numeric_limits<Real>::infinity();
        return Array{none, none, 0, none, none};
    };
    Scripted one(1, only_end), other(1, only_end);
    const DecodeOptions options{.longest = 4, .shortest = 2};
    CHECK_THROWS_WITH(greedy(one, options), contains("[greedy] no token can follow"));
    CHECK_THROWS_WITH(beam_search(other, {.width = 1, .decode = options}),
                      contains("[beam_search] no token can follow"));
}

TEST_CASE("a beam of one is greedy") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Scripted one(1, random_rule(seed)), other(1, random_rule(seed));
        const Generated answer = greedy(one, {.longest = 9})[0];
        const std::vector<Generated> beam =
            beam_search(other, {.width = 1, .length_penalty = 0, .decode = {.longest = 9}});
        REQUIRE(beam.size() == 1);
        CHECK(beam[0].ids == answer.ids);
        CHECK(beam[0].ended == answer.ended);
        CHECK(close(beam[0].log_probability, answer.log_probability, 1e-12, 1e-12));
        REQUIRE(beam[0].weights.size() == answer.weights.size());
        for (std::size_t i = 0; i < answer.weights.size(); ++i) CHECK(same_bits(beam[0].weights[i], answer.weights[i]));
    }
}

TEST_CASE("a beam that leaves nothing out finds the most probable answers, with a length penalty or without") {
    constexpr std::size_t longest = 4;  // 31 answers
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const double alpha = std::vector{0.0, 0.6, 1.0, -0.5}[seed % 4];
        const Scripted::Rule rule = random_rule(seed, -1);
        std::vector<std::pair<double, Ids>> expected;
        for (const auto& [ids, log_probability] : all_answers(rule, longest))
            expected.emplace_back(log_probability / std::pow((6 + double(ids.size())) / 6, alpha), ids);
        std::sort(expected.rbegin(), expected.rend());
        Scripted model(1, rule);
        const std::vector<Generated> answers =
            beam_search(model, {.width = 64, .length_penalty = alpha, .decode = {.longest = longest}});
        REQUIRE(answers.size() >= 31);
        for (std::size_t i = 0; i < 31; ++i) {
            CHECK(answers[i].ids == expected[i].second);
            CHECK(answers[i].ended);
        }
    }
}

TEST_CASE("a wider beam's answer is never what a plain search would rule out: it is as probable as it says") {
    std::size_t better = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const Scripted::Rule rule = random_rule(seed, -1);
        const std::map<Ids, double> all = all_answers(rule, 8);
        Scripted one(1, rule), other(1, rule);
        const Generated plain = greedy(one, {.longest = 8})[0];
        const std::vector<Generated> beam =
            beam_search(other, {.width = 4, .length_penalty = 0, .decode = {.longest = 8}});
        for (const Generated& g : beam)
            if (g.ended) CHECK(close(g.log_probability, all.at(g.ids), 1e-12, 1e-12));
        for (std::size_t i = 1; i < beam.size(); ++i)
            CHECK((beam[i - 1].log_probability >= beam[i].log_probability || beam[i - 1].ended > beam[i].ended));
        better += beam[0].ended && plain.ended && beam[0].log_probability > plain.log_probability + 1e-9;
    }
    CHECK(better > 20);  // else the beam would be no use
}

TEST_CASE("a beam search stops as soon as nothing better can come") {
    const auto rule = [](const Ids& so_far) {
        return so_far.size() < 3 ? Array{-99, -99, -99, 9, 0} : Array{-99, -99, 9, 0, 0};
    };
    Scripted model(1, rule);
    beam_search(model, {.width = 1, .length_penalty = 0, .decode = {.longest = 1000}});
    CHECK(model.asked == 3);
}

TEST_CASE("impossible options, scores and models are errors") {
    const auto ones = [](const Ids&) { return filled({5}, 1); };
    const auto nan = [](const Ids&) { return filled({5}, std::numeric_limits<Real>::quiet_NaN()); };
    Scripted model(1, ones), two(2, ones), bad(1, nan), few(1, [](const Ids&) { return filled({2}, 1); });
    CHECK_THROWS_AS(greedy(model, {.longest = 1, .shortest = 2}), ValueError);
    CHECK_THROWS_AS(beam_search(model, {.width = 0}), ValueError);
    CHECK_THROWS_WITH(beam_search(two), contains("one source at a time"));
    CHECK_THROWS_WITH(greedy(bad), contains("[greedy]") && contains("NaN"));
    CHECK_THROWS_WITH(beam_search(bad), contains("[beam_search]") && contains("NaN"));
    CHECK_THROWS_WITH(greedy(few), contains("2 tokens"));
    Scripted none(0, ones);
    CHECK(greedy(none).empty());
}

TEST_CASE("rows of tensors and masks are picked, also more than once or not at all") {
    Tape tape;
    const Tensor x = tape.constant(Array{{{1, 2}}, {{3, 4}}, {{5, 6}}});
    CHECK(close(rows_of(x, {2, 0, 2}).value(), Array{{{5, 6}}, {{1, 2}}, {{5, 6}}}));
    CHECK(rows_of(x, {}).shape() == Shape{0, 1, 2});
    CHECK_THROWS_AS(rows_of(x, {3}), IndexError);
    const Mask mask({2, 1, 2}, {true, false, false, true});
    const Mask picked = rows_of(mask, {1, 1, 0});
    CHECK(picked.shape() == Shape{3, 1, 2});
    CHECK((!picked[0] && picked[1] && !picked[2] && picked[3] && picked[4] && !picked[5]));
    CHECK_THROWS_AS(rows_of(mask, {2}), IndexError);
}
