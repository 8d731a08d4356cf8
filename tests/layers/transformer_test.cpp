#include "layers/transformer.hpp"
#include "engine/gradcheck.hpp"
#include "engine/ops/activation.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/movement.hpp"
#include "engine/ops/reduce.hpp"
#include "tests/support/array.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

static TransformerOptions small(Norm norm = Norm::after) {
    return {.width = 6, .heads = 2, .inner = 8, .layers = 2, .norm = norm, .dropout = Real(0.1)};
}
// What only matrices count: "….W".
template <class Model> static std::size_t matrices(Model& model) {
    std::size_t count = 0;
    model.for_each_parameter("", [&](const std::string& path, Parameter& p) {
        if (path.ends_with("W") || path.ends_with("table")) count += p.size();
    });
    return count;
}
static Indices ids(Generator& generator, std::size_t B, std::size_t T, std::int64_t V) {
    return generator.integers({B, T}, 0, V);
}

TEST_CASE("blocks of the paper's base model have as many weights as the paper's", "[layers][transformer]") {
    Generator generator(1);
    const TransformerOptions base;
    EncoderBlock encoder(generator, base);
    DecoderBlock decoder(generator, base);
    CHECK(matrices(encoder) == 3'145'728);
    CHECK(matrices(decoder) == 4'194'304);
    CHECK(6 * (matrices(encoder) + matrices(decoder)) + 37000 * 512 == 62'984'192);
    CHECK(parameter_count(encoder) == 3'145'728 + 4 * 512 + 2048 + 512 + 4 * 512);  // biases, and two norms of two each
}

TEST_CASE("a Transformer has its blocks' parameters and one table, or two", "[layers][transformer]") {
    Generator generator(2);
    TransformerOptions options = small();
    EncoderBlock encoder(generator, options);
    DecoderBlock decoder(generator, options);
    const std::size_t blocks = 2 * (parameter_count(encoder) + parameter_count(decoder));
    Transformer two(11, 7, generator, options);
    CHECK(parameter_count(two) == blocks + (11 + 7) * 6);
    options.one_vocabulary = true;
    Transformer one(7, 7, generator, options);
    CHECK(parameter_count(one) == blocks + 7 * 6);
    options.norm = Norm::before;  // a last norm after each stack
    options.learned_positions = 5;
    Transformer before(7, 7, generator, options);
    CHECK(parameter_count(before) == blocks + 7 * 6 + 2 * 12 + 5 * 6);
    name_parameters(before);
    CHECK(before.decoder.blocks[1].cross.query.W.name() == "decoder.1.cross.query.W");
    CHECK(before.encoder.norm->gain.name() == "encoder.norm.gain");
}

TEST_CASE("feed-forward works token by token", "[layers][transformer]") {
    Generator generator(3);
    for (const Activation activation : {Activation::relu, Activation::gelu}) {
        TransformerOptions options = small();
        options.activation = activation;
        const FeedForward layer(generator, options);
        Tape tape;
        const Tensor x = tape.constant(generator.normal({2, 3, 6}));
        const Tensor inner = layer.in(x);
        CHECK(
            same_bits(layer(x).value(), layer.out(activation == Activation::relu ? relu(inner) : gelu(inner)).value()));
        CHECK(close(layer(slice(x, 1, 1, 2)).value(), slice(layer(x), 1, 1, 2).value(), 1e-13, 1e-13));
        CHECK_THROWS_WITH(layer(tape.leaf(filled({2, 5}, 1))), "[FeedForward] x (2,5) does not match W_1 (6,8)");
    }
}

TEST_CASE("a block normalises before its parts or after them", "[layers][transformer]") {
    for (const Norm norm : {Norm::before, Norm::after}) {
        Generator generator(4);
        const EncoderBlock block(generator, small(norm));
        const DecoderBlock decoder(generator, small(norm));
        Tape tape;
        const Tensor x = tape.constant(generator.normal({2, 3, 6})),
                     source = tape.constant(generator.normal({2, 4, 6}));
        const Mask order = causal(3, 3, Align::start), visible = padding({4, 2}, 4);
        const auto self = [&](const Tensor& z) { return block.attention(z, z, z, order).context; };
        Tensor a, y;
        if (norm == Norm::before) {
            a = x + self(block.norm_attention(x));
            y = a + block.feed_forward(block.norm_feed_forward(a));
        } else {
            a = block.norm_attention(x + self(x));
            y = block.norm_feed_forward(a + block.feed_forward(a));
        }
        CHECK(same_bits(block(x, order).y.value(), y.value()));

        const auto self_d = [&](const Tensor& z) { return decoder.attention(z, z, z, order).context; };
        const auto cross = [&](const Tensor& z) { return decoder.cross(z, source, source, visible).context; };
        Tensor b;
        if (norm == Norm::before) {
            a = x + self_d(decoder.norm_attention(x));
            b = a + cross(decoder.norm_cross(a));
            y = b + decoder.feed_forward(decoder.norm_feed_forward(b));
        } else {
            a = decoder.norm_attention(x + self_d(x));
            b = decoder.norm_cross(a + cross(a));
            y = decoder.norm_feed_forward(b + decoder.feed_forward(b));
        }
        const DecoderBlock::Output out = decoder(x, source, order, visible);
        CHECK(same_bits(out.y.value(), y.value()));
        CHECK(out.weights.shape() == Shape{2, 2, 3, 3});
        CHECK(out.cross_weights.shape() == Shape{2, 2, 3, 4});
    }
}

TEST_CASE("the gradients of encoder and decoder agree with central differences", "[layers][transformer]") {
    for (const Norm norm : {Norm::before, Norm::after}) {
        Generator generator(5);
        TransformerOptions options = small(norm);
        options.activation = Activation::gelu;  // without kinks
        const Encoder encoder(generator, options);
        const Decoder decoder(generator, options);
        const auto report = gradcheck(
            [&](const std::vector<Tensor>& x) {
                const Mask visible = padding({3, 2}, 3);
                return decoder(x[1], encoder(x[0], visible).y, visible).y;
            },
            {generator.normal({2, 3, 6}), generator.normal({2, 2, 6})});
        INFO(report.why);
        CHECK(report.ok);
    }
}

TEST_CASE("the gradients of a Transformer's parameters agree with central differences", "[layers][transformer]") {
    Generator generator(6);
    TransformerOptions options = small(Norm::before);
    options.learned_positions = 4;
    options.activation = Activation::gelu;
    Transformer model(5, 4, generator, options);
    const Indices source = ids(generator, 2, 3, 5), target = ids(generator, 2, 4, 4);
    const Mask visible = padding({3, 1}, 3);
    const Array seed = generator.normal({2, 4, 4});
    const auto loss = [&](Tape& tape) {
        return sum(model(tape, source, target, visible).logits * tape.constant(seed));
    };
    Tape tape;
    const Gradients g = tape.backward(loss(tape));
    model.for_each_parameter("", [&](const std::string& path, Parameter& p) {
        const std::size_t i = std::size_t(generator.integer(0, std::int64_t(p.size())));
        const Real before = p.value().data()[i];
        const auto at = [&](Real value) {
            p.edit([&](Array& w) { w.data()[i] = value; });
            Tape other;
            return double(loss(other).item());
        };
        const double difference = (at(before + Real(1e-6)) - at(before - Real(1e-6))) / 2e-6;
        at(before);
        INFO(path << " " << i);
        CHECK(close(double(g[p].data()[i]), difference, 1e-6, 1e-7));
    });
}

TEST_CASE("decoding token by token equals the whole pass", "[layers][transformer]") {
    for (const Norm norm : {Norm::before, Norm::after})
        for (const std::size_t learned : {0, 9}) {
            Generator generator(7);
            TransformerOptions options = small(norm);
            options.learned_positions = learned;
            const Transformer model(8, 7, generator, options);
            const Indices source = ids(generator, 3, 5, 8), target = ids(generator, 3, 9, 7);
            const Mask visible = padding({5, 0, 2}, 5);
            Tape tape;
            const Transformer::Output whole = model(tape, source, target, visible);

            const NoGrad pause(tape);
            Decoder::Past past = model.start(tape, source, visible);
            std::size_t at = 0;
            for (const std::size_t chunk : {1, 1, 3, 1, 2, 1}) {  // also several tokens at once
                std::vector<std::int64_t> some;
                for (std::size_t b = 0; b < 3; ++b)
                    for (std::size_t t = at; t < at + chunk; ++t) some.push_back(target[b * 9 + t]);
                const Transformer::Output step = model.next(tape, Indices({3, chunk}, some), past);
                const auto part = [&](const Tensor& x, int axis) {
                    return slice(x, axis, std::int64_t(at), std::int64_t(at + chunk)).value();
                };
                CHECK(close(step.logits.value(), part(whole.logits, 1), 1e-12, 1e-12));
                CHECK(close(step.cross_weights[1].value(), part(whole.cross_weights[1], 2), 1e-12, 1e-12));
                at += chunk;
                CHECK(past.length == at);
            }
        }
}

TEST_CASE("a language model decodes token by token as at once", "[layers][transformer]") {
    for (const Norm norm : {Norm::before, Norm::after}) {
        Generator generator(8);
        const LanguageModel model(7, generator, small(norm));
        const Indices text = ids(generator, 2, 6, 7);
        Tape tape;
        const Tensor whole = model(tape, text).logits;
        CHECK(whole.shape() == Shape{2, 6, 7});
        const NoGrad pause(tape);
        Encoder::Past past;
        for (std::size_t t = 0; t < 6; ++t) {
            const Indices now({2, 1}, {text[t], text[6 + t]});
            CHECK(close(model.next(tape, now, past).logits.value(),
                        slice(whole, 1, std::int64_t(t), std::int64_t(t + 1)).value(), 1e-12, 1e-12));
        }
    }
}

TEST_CASE("a language model's padding is hidden beside what is later", "[layers][transformer]") {
    Generator generator(15);
    const LanguageModel model(7, generator, small());
    Tape tape;
    const Indices text({2, 4}, {1, 2, 3, 4, 5, 6, 0, 0});
    const auto [logits, weights] = model(tape, text, padding({4, 2}, 4));
    for (const Tensor& w : weights)
        for (std::size_t b = 0; b < 2; ++b)
            for (std::size_t i = 0; i < 4; ++i)
                for (std::size_t j = 0; j < 4; ++j) CHECK((w.value()(b, 0, i, j) > 0) == (j <= i && (b == 0 || j < 2)));
    CHECK(close(slice(slice(logits, 0, 1, 2), 1, 0, 2).value(), model(tape, Indices({1, 2}, {5, 6})).logits.value(),
                1e-12, 1e-12));
}

TEST_CASE("a copied past is a branch of its own", "[layers][transformer]") {
    Generator generator(9);
    const LanguageModel model(7, generator, small());
    Tape tape;
    const NoGrad pause(tape);
    Encoder::Past past;
    model.next(tape, Indices({1, 2}, {1, 2}), past);
    Encoder::Past branch = past;
    model.next(tape, Indices({1, 1}, {5}), branch);
    const Array after = model.next(tape, Indices({1, 1}, {3}), past).logits.value();
    const Tensor whole = model(tape, Indices({1, 3}, {1, 2, 3})).logits;
    CHECK(close(after, slice(whole, 1, 2, 3).value(), 1e-12, 1e-12));
}

TEST_CASE("no token sees a later one, in training or not", "[layers][transformer]") {
    for (const Norm norm : {Norm::before, Norm::after}) {
        Generator generator(10);
        const LanguageModel model(7, generator, small(norm));
        const Indices text({1, 4}, {1, 2, 3, 4}), other({1, 4}, {1, 2, 6, 4});
        for (const bool dropping : {false, true}) {
            Generator a(1), b(1);
            Tape tape;
            const Array y = model(tape, text, {}, dropping ? training(a) : evaluation).logits.value();
            const Array z = model(tape, other, {}, dropping ? training(b) : evaluation).logits.value();
            for (std::size_t t = 0; t < 4; ++t) {
                bool same = true;
                for (std::size_t v = 0; v < 7; ++v) same = same && y(0, t, v) == z(0, t, v);
                CHECK(same == (t < 2));
            }
        }
    }
}

TEST_CASE("dropout acts in training only", "[layers][transformer]") {
    Generator generator(11);
    const Transformer model(7, 7, generator, small());
    const Indices source = ids(generator, 2, 3, 7), target = ids(generator, 2, 3, 7);
    Generator a(5), b(5);
    Tape tape;
    const Array calm = model(tape, source, target).logits.value();
    CHECK(same_bits(calm, model(tape, source, target).logits.value()));
    const Array dropped = model(tape, source, target, {}, training(a)).logits.value();
    CHECK_FALSE(close(calm, dropped));
    CHECK(same_bits(dropped, model(tape, source, target, {}, training(b)).logits.value()));
}

TEST_CASE("without positions a decoder-less model is blind to order, and with them it isn't", "[layers][transformer]") {
    Generator generator(12);
    const Encoder encoder(generator, small());
    Tape tape;
    const Tensor x = tape.constant(generator.normal({1, 3, 6}));
    const auto reversed = [](const Tensor& t) { return slice(t, 1, -1, end, -1); };
    CHECK(close(encoder(reversed(x)).y.value(), reversed(encoder(x).y).value(), 1e-12, 1e-12));
    const SinusoidalPosition position;
    CHECK_FALSE(close(encoder(position(reversed(x))).y.value(), reversed(encoder(position(x)).y).value()));
}

TEST_CASE("empty sources, targets and batches pass through", "[layers][transformer]") {
    Generator generator(13);
    const Transformer model(5, 4, generator, small(Norm::before));
    Tape tape;
    const Indices none({2, 0}, {}), some({2, 3}, {1, 2, 3, 0, 1, 2});
    CHECK(model(tape, some, none).logits.shape() == Shape{2, 0, 4});
    const Tensor logits = model(tape, none, some).logits;
    CHECK(logits.shape() == Shape{2, 3, 4});
    for (std::size_t i = 0; i < logits.size(); ++i) CHECK(std::isfinite(logits.value().data()[i]));
    CHECK(model(tape, Indices({0, 3}, {}), Indices({0, 2}, {})).logits.shape() == Shape{0, 2, 4});
}

TEST_CASE("Transformers refuse what doesn't fit", "[layers][transformer]") {
    Generator generator(14);
    TransformerOptions options = small();
    options.learned_positions = 3;
    const Transformer model(5, 4, generator, options);
    Tape tape;
    const Indices good({1, 2}, {1, 2});
    CHECK_THROWS_WITH(model(tape, Indices{1, 2}, good), "[Transformer] ids must be (B,T), not (2)");
    CHECK_THROWS_AS(model(tape, good, Indices({1, 1}, {4})), IndexError);
    CHECK_THROWS_AS(model(tape, good, Indices({1, 4}, {1, 1, 1, 1})), IndexError);
    CHECK_THROWS_AS(model(tape, good, Indices({2, 1}, {1, 1})), ShapeError);
    CHECK_THROWS_AS(model(tape, good, good, padding({1}, 3)), ShapeError);
    options.one_vocabulary = true;
    CHECK_THROWS_WITH(Transformer(5, 4, generator, options), "[Transformer] one vocabulary can't have 5 and 4 tokens");
    options.layers = 0;
    CHECK_THROWS_AS(Encoder(generator, options), ValueError);
    options = small();
    options.heads = 4;
    CHECK_THROWS_WITH(Encoder(generator, options), "[MultiHead] width 6 is not divisible by 4 heads");
    options = small();
    options.dropout = 2;
    CHECK_THROWS_AS(Encoder(generator, options), ValueError);
    CHECK_THROWS_AS(Transformer(0, 4, generator, small()), ValueError);
    const LanguageModel language(4, generator, small());
    CHECK_THROWS_WITH(language(tape, good, padding({1}, 3)),
                      "[LanguageModel] a mask must be (T_q,T_k) or (B,T_q,T_k): (1,1,3) over scores (1,2,2)");
    const Encoder encoder(generator, small());
    CHECK_THROWS_WITH(encoder(tape.leaf(filled({1, 2, 5}, 1))), "[EncoderBlock] x (1,2,5) does not match W_q (6,6)");
    const Decoder decoder(generator, small());
    Decoder::Past foreign;
    CHECK_THROWS_AS(decoder.next(tape.leaf(filled({1, 2, 6}, 1)), foreign), ValueError);
}
