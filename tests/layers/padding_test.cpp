// Properties that attention and all built on it must have for any shapes and lengths: padding and batch-mates do not
// leak, and nothing looks ahead. Each runs over a thousand random cases; a failure names its case, which is a seed.
#include "engine/ops/movement.hpp"
#include "layers/transformer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

namespace {

constexpr std::size_t E = 4, longest = 24;
constexpr std::uint64_t cases = 1000;

// Attention over tokens x (B,T,E). Either each token asks, and y has a row for each; or queries (B,T_q,E) do.
struct Model {
    std::string name;
    bool tokens_ask;
    std::function<Tensor(const Tensor& x, const Tensor& queries, const Mask& visible)> run;
    std::function<void(const Visitor&)> parameters;
};

template <class Layer, class F> void add(std::vector<Model>& models, const std::string& name, Layer&& made, F run) {
    const auto layer = std::make_shared<Layer>(std::move(made));
    const auto parameters = [layer](const Visitor& f) { layer->for_each_parameter("", f); };
    models.push_back({name + ", tokens ask", true,
                      [=](const Tensor& x, const Tensor&, const Mask& m) { return run(*layer, x, x, m); }, parameters});
    models.push_back({name + ", queries ask", false,
                      [=](const Tensor& x, const Tensor& q, const Mask& m) { return run(*layer, q, x, m); },
                      parameters});
}

std::vector<Model> attentions() {
    std::vector<Model> models;
    Generator generator(1);
    const auto attend = [](const auto& layer, const Tensor& q, const Tensor& x, const Mask& visible) {
        return layer(q, layer.remember(x, visible)).context;
    };
    add(models, "dot", Attention{DotScore{}}, attend);
    add(models, "scaled dot", Attention{ScaledDotScore{}}, attend);
    add(models, "bilinear", Attention{BilinearScore(E, E, generator)}, attend);
    add(models, "additive", Attention{AdditiveScore(E, E, 3, generator)}, attend);
    add(models, "concat", Attention{ConcatScore(E, E, 3, generator)}, attend);
    add(models, "location", Attention{LocationScore(E, longest, generator)}, attend);
    add(models, "local, monotonic", LocalAttention(Attention{BilinearScore(E, E, generator)}, 1), attend);
    add(models, "multi-head", MultiHead(E, 2, generator),
        [](const MultiHead& layer, const Tensor& q, const Tensor& x, const Mask& visible) {
            return layer(q, x, x, visible).context;
        });
    return models;
}

TransformerOptions small(Norm norm) { return {.width = E, .heads = 2, .inner = 5, .layers = 2, .norm = norm}; }

std::vector<Model> padded_models() {
    std::vector<Model> models = attentions();
    Generator generator(2);
    add(models, "local, predictive",
        LocalAttention(Attention{DotScore{}}, 2, LocalAttention::predicted(E, 3, generator)),
        [](const LocalAttention& layer, const Tensor& q, const Tensor& x, const Mask& visible) {
            return layer(q, layer.remember(x, visible)).context;
        });
    for (const Norm norm : {Norm::before, Norm::after}) {
        const auto encoder = std::make_shared<Encoder>(generator, small(norm));
        models.push_back({"encoder", true,
                          [=](const Tensor& x, const Tensor&, const Mask& m) { return (*encoder)(x, m).y; },
                          [=](const Visitor& f) { encoder->for_each_parameter("", f); }});
        const auto decoder = std::make_shared<Decoder>(generator, small(norm));
        models.push_back({"decoder over a source", false,
                          [=](const Tensor& x, const Tensor& q, const Mask& m) { return (*decoder)(q, x, m).y; },
                          [=](const Visitor& f) { decoder->for_each_parameter("", f); }});
    }
    return models;
}

std::vector<Model> causal_models() {
    std::vector<Model> models = attentions();
    Generator generator(3);
    for (const Norm norm : {Norm::before, Norm::after}) {
        const auto encoder = std::make_shared<Encoder>(generator, small(norm));
        models.push_back({"decoder alone", true,
                          [=](const Tensor& x, const Tensor&, const Mask& m) { return (*encoder)(x, m).y; },
                          [=](const Visitor& f) { encoder->for_each_parameter("", f); }});
        const auto decoder = std::make_shared<Decoder>(generator, small(norm));
        models.push_back({"decoder over a target", true,  // hides what is later by itself
                          [=](const Tensor& x, const Tensor& q, const Mask&) { return (*decoder)(x, q).y; },
                          [=](const Visitor& f) { decoder->for_each_parameter("", f); }});
    }
    return models;
}

std::size_t size_between(Generator& generator, std::int64_t low, std::int64_t high) {
    return std::size_t(generator.integer(low, high + 1));
}
std::vector<std::size_t> lengths_up_to(Generator& generator, std::size_t B, std::size_t T) {
    std::vector<std::size_t> lengths(B);
    for (std::size_t& n : lengths) n = size_between(generator, 0, std::int64_t(T));
    return lengths;
}

// The first n of T rows of sequence b of x (B,T,D).
Array rows(const Array& x, std::size_t b, std::size_t n) {
    const std::size_t T = x.shape()[1], D = x.shape()[2];
    Array part = filled({n, D}, 0);
    std::copy_n(x.data() + b * T * D, n * D, part.data());
    return part;
}
void put_rows(Array& x, std::size_t b, const Array& part) {
    std::copy_n(part.data(), part.size(), x.data() + b * x.shape()[1] * x.shape()[2]);
}
double largest(const Array& x) {
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(double(x.data()[i])));
    return most;
}
bool all_zero(const Array& x, std::size_t from, std::size_t to) {
    return std::all_of(x.data() + from, x.data() + to, [](Real v) { return v == 0; });
}

struct Run {
    Array y, x_bar;
    std::vector<Array> parameter_bars;
};
// With the gradients of Σ seed ⊙ y.
Run run(const Model& model, const Array& x, const Array& queries, const Mask& visible, const Array& seed) {
    Tape tape;
    const Tensor leaf = tape.leaf(x);
    const Tensor y = model.run(leaf, tape.constant(queries), visible);
    const Gradients g = tape.backward(y, {leaf}, {.seed = seed});
    Run result{y.value(), g[leaf], {}};
    model.parameters([&](const std::string&, Parameter& p) { result.parameter_bars.push_back(g[p]); });
    return result;
}
Array values(const Model& model, const Array& x, const Array& queries, const Mask& visible) {
    Tape tape;
    const NoGrad pause(tape);
    return model.run(tape.constant(x), tape.constant(queries), visible).value();
}

}  // namespace

TEST_CASE("what padding holds changes no bit, and gradients into it are exactly 0", "[layers][padding]") {
    const std::vector<Model> models = padded_models();
    for (std::uint64_t seed = 0; seed < cases; ++seed) {
        const Model& model = models[seed % models.size()];
        INFO(model.name << ", case " << seed);
        Generator generator(seed);
        const std::size_t B = size_between(generator, 1, 4), T = size_between(generator, 1, 7),
                          T_q = size_between(generator, 1, 4), T_y = model.tokens_ask ? T : T_q;
        const std::vector<std::size_t> lengths = lengths_up_to(generator, B, T);
        const Mask visible = padding(lengths, T);
        const Array x = generator.normal({B, T, E}), queries = generator.normal({B, T_q, E});
        Array poisoned = x, y_bar = generator.normal({B, T_y, E});
        for (std::size_t b = 0; b < B; ++b)
            for (std::size_t i = lengths[b] * E; i < T * E; ++i) {
                poisoned.data()[b * T * E + i] = generator.uniform() < 0.5 ? Real(1e30) : Real(-1e30);
                if (model.tokens_ask) y_bar.data()[b * T * E + i] = 0;  // what padding answers is not read
            }
        const Run plain = run(model, x, queries, visible, y_bar), other = run(model, poisoned, queries, visible, y_bar);
        for (std::size_t b = 0; b < B; ++b) {
            const std::size_t n = model.tokens_ask ? lengths[b] : T_q;
            REQUIRE(same_bits(rows(plain.y, b, n), rows(other.y, b, n)));
            REQUIRE(same_bits(rows(plain.x_bar, b, lengths[b]), rows(other.x_bar, b, lengths[b])));
            for (const Run* r : {&plain, &other})
                REQUIRE(all_zero(r->x_bar, (b * T + lengths[b]) * E, (b + 1) * T * E));
        }
        for (std::size_t k = 0; k < plain.parameter_bars.size(); ++k)
            REQUIRE(same_bits(plain.parameter_bars[k], other.parameter_bars[k]));
    }
}

TEST_CASE("other sequences of the batch change no bit", "[layers][padding]") {
    const std::vector<Model> models = padded_models();
    for (std::uint64_t seed = 0; seed < cases; ++seed) {
        const Model& model = models[seed % models.size()];
        INFO(model.name << ", case " << seed);
        Generator generator(seed);
        const std::size_t B = size_between(generator, 2, 4), T = size_between(generator, 1, 7),
                          T_q = size_between(generator, 1, 4),
                          watched = size_between(generator, 0, std::int64_t(B) - 1);
        std::vector<std::size_t> lengths = lengths_up_to(generator, B, T), others = lengths_up_to(generator, B, T);
        others[watched] = lengths[watched];
        const Array x = generator.normal({B, T, E}), queries = generator.normal({B, T_q, E});
        Array x_other = generator.normal({B, T, E}, 0, 3), queries_other = generator.normal({B, T_q, E}, 0, 3);
        put_rows(x_other, watched, rows(x, watched, T));
        put_rows(queries_other, watched, rows(queries, watched, T_q));
        const std::size_t n = model.tokens_ask ? lengths[watched] : T_q;
        REQUIRE(same_bits(rows(values(model, x, queries, padding(lengths, T)), watched, n),
                          rows(values(model, x_other, queries_other, padding(others, T)), watched, n)));
    }
}

TEST_CASE("more padding and more sequences change nothing but rounding", "[layers][padding]") {
    const std::vector<Model> models = padded_models();
    for (std::uint64_t seed = 0; seed < cases; ++seed) {
        const Model& model = models[seed % models.size()];
        INFO(model.name << ", case " << seed);
        Generator generator(seed);
        const std::size_t B = size_between(generator, 1, 3), T = size_between(generator, 1, 7),
                          T_q = size_between(generator, 1, 4), B_more = B + size_between(generator, 0, 3),
                          T_more = T + size_between(generator, 0, 9);
        const std::vector<std::size_t> lengths = lengths_up_to(generator, B, T);
        std::vector<std::size_t> lengths_more = lengths_up_to(generator, B_more, T_more);
        std::copy(lengths.begin(), lengths.end(), lengths_more.begin());
        const Array x = generator.normal({B, T, E}), queries = generator.normal({B, T_q, E});
        Array x_more = generator.normal({B_more, T_more, E}), queries_more = generator.normal({B_more, T_q, E});
        for (std::size_t b = 0; b < B; ++b) {
            put_rows(x_more, b, rows(x, b, lengths[b]));
            put_rows(queries_more, b, rows(queries, b, T_q));
        }
        const Array y = values(model, x, queries, padding(lengths, T)),
                    y_more = values(model, x_more, queries_more, padding(lengths_more, T_more));
        for (std::size_t b = 0; b < B; ++b) {
            const std::size_t n = model.tokens_ask ? lengths[b] : T_q;
            const Array one = rows(y, b, n);
            REQUIRE(close(one, rows(y_more, b, n), 0, 1e-12 * std::max(1.0, largest(one))));
        }
    }
}

TEST_CASE("nothing looks ahead: what is hidden by order changes no bit and gets exactly no gradient",
          "[layers][padding]") {
    const std::vector<Model> models = causal_models();
    for (std::uint64_t seed = 0; seed < cases; ++seed) {
        const Model& model = models[seed % models.size()];
        INFO(model.name << ", case " << seed);
        Generator generator(seed);
        const std::size_t B = size_between(generator, 1, 3), T = size_between(generator, 1, 7),
                          T_q = size_between(generator, 1, 9), T_y = model.tokens_ask ? T : T_q,
                          j = size_between(generator, 0, std::int64_t(T) - 1);
        const Mask order = causal(T_y, T, generator.uniform() < 0.5 ? Align::start : Align::end);
        const Array x = generator.normal({B, T, E}), queries = generator.normal({B, T_q, E});
        Array changed = x, y_bar = generator.normal({B, T_y, E});
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t e = 0; e < E; ++e) changed(b, j, e) = Real(100 * generator.normal());
            for (std::size_t i = 0; i < T_y; ++i)
                for (std::size_t e = 0; e < E; ++e)
                    if (order[i * T + j]) y_bar(b, i, e) = 0;  // leaves the queries from which token j is hidden
        }
        const Run before = run(model, x, queries, order, y_bar), after = run(model, changed, queries, order, y_bar);
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t i = 0; i < T_y; ++i) {
                const std::size_t at = (b * T_y + i) * E;
                const bool same = std::equal(before.y.data() + at, before.y.data() + at + E, after.y.data() + at);
                REQUIRE((order[i * T + j] || same));
            }
            for (const Run* r : {&before, &after}) REQUIRE(all_zero(r->x_bar, (b * T + j) * E, (b * T + j + 1) * E));
        }
    }
}
