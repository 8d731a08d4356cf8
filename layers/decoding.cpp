#include "decoding.hpp"
#include <algorithm>
#include <cmath>
#include <numeric>
#include "engine/kernels.hpp"
#include "engine/ops/gather.hpp"
#include "engine/ops/movement.hpp"

namespace lookback {

Tensor rows_of(const Tensor& x, const std::vector<std::size_t>& rows) {
    if (x.rank() == 0) fail<ShapeError>("rows_of", "a scalar has no rows");
    Shape shape = x.shape();
    const std::size_t B = shape[0], inner = B ? x.size() / B : 0;
    shape[0] = rows.size();
    return reshape(embedding(reshape(x, {B, inner}), Indices({rows.size()}, Ids(rows.begin(), rows.end()))), shape);
}

Mask rows_of(const Mask& mask, const std::vector<std::size_t>& rows) {
    Shape shape = mask.shape();
    const std::size_t B = shape[0], inner = B ? mask.size() / B : 0;
    if (B == 1) return mask;
    std::vector<bool> kept;
    for (const std::size_t row : rows) {
        if (row >= B) fail<IndexError>("rows_of", "row " + std::to_string(row) + " of a mask " + text(shape));
        kept.insert(kept.end(), mask.data() + row * inner, mask.data() + (row + 1) * inner);
    }
    shape[0] = rows.size();
    return Mask(shape, std::move(kept));
}

namespace {

void check(const char* op, const DecodeOptions& options) {
    if (options.shortest > options.longest)
        fail<ValueError>(op, "shortest " + std::to_string(options.shortest) + " is above longest " +
                                 std::to_string(options.longest));
}

[[noreturn]] void refuse_nothing(const char* op, const DecodeOptions& options) {
    fail<ValueError>(op, "no token can follow: all have probability 0 (the end mark among them, before `shortest` = " +
                             std::to_string(options.shortest) + " tokens)");
}

// Log-probabilities (rows,V) of what may come after `length` tokens: before `shortest`, the end mark may not.
Array log_probabilities(const char* op, const Array& logits, std::size_t length, const DecodeOptions& options) {
    Array p = log_softmax_along(logits, 1);
    const std::size_t V = p.shape()[1];
    if (options.end < 0 || std::size_t(options.end) >= V || options.begin < 0 || std::size_t(options.begin) >= V)
        fail<ValueError>(op, "the marks are not among the " + std::to_string(V) + " tokens of the model");
    for (std::size_t i = 0; i < p.size(); ++i)
        if (std::isnan(p.data()[i])) fail<ValueError>(op, "the model's scores are NaN or infinite");
    if (length < options.shortest)
        for (std::size_t i = std::size_t(options.end); i < p.size(); i += V)
            p.data()[i] = -std::numeric_limits<Real>::infinity();
    return p;
}

Array row(const Array& x, std::size_t i) {
    Array out = Array::from_shape({x.shape()[1]});
    std::copy_n(x.data() + i * out.size(), out.size(), out.data());
    return out;
}

void append(Generated& g, std::int64_t id, double log_probability, const Array& weights, std::size_t from) {
    g.ids.push_back(id);
    g.log_probability = log_probability;
    if (weights.shape().size() == 2) g.weights.push_back(row(weights, from));
}

}  // namespace

std::vector<Generated> greedy(Decoding& model, const DecodeOptions& options) {
    check("greedy", options);
    std::vector<Generated> answers(model.rows(), {{}, false, 0, {}});
    std::vector<std::size_t> live(model.rows());  // the answer that each row writes
    std::iota(live.begin(), live.end(), 0);
    Ids previous(live.size(), options.begin);
    for (std::size_t length = 0; !live.empty(); ++length) {
        const Decoding::Next next = model.step(previous);
        const Array p = log_probabilities("greedy", next.logits, length, options);
        const std::size_t V = p.shape()[1];
        std::vector<std::size_t> kept;
        previous.clear();
        for (std::size_t r = 0; r < live.size(); ++r) {
            const Real* of_row = p.data() + r * V;
            const auto best = std::size_t(std::max_element(of_row, of_row + V) - of_row);  // the first of equals
            Generated& answer = answers[live[r]];
            const double log_probability = answer.log_probability + double(of_row[best]);
            if (std::isinf(log_probability)) refuse_nothing("greedy", options);
            if (std::int64_t(best) == options.end) {
                answer.ended = true;
                answer.log_probability = log_probability;
            } else if (length < options.longest) {
                append(answer, std::int64_t(best), log_probability, next.weights, r);
                kept.push_back(r);
                previous.push_back(std::int64_t(best));
            }
        }
        if (kept.size() == live.size()) continue;
        model.keep(kept);
        for (std::size_t i = 0; i < kept.size(); ++i) live[i] = live[kept[i]];
        live.resize(kept.size());
    }
    return answers;
}

std::vector<Generated> beam_search(Decoding& model, const BeamOptions& options) {
    const DecodeOptions& limits = options.decode;
    check("beam_search", limits);
    if (options.width == 0) fail<ValueError>("beam_search", "a width of 0");
    if (!std::isfinite(options.length_penalty)) fail<ValueError>("beam_search", "a length penalty that is no number");
    if (model.rows() != 1) fail<ValueError>("beam_search", "one source at a time, not " + std::to_string(model.rows()));

    const auto penalty = [&](double length) { return std::pow((5 + length) / 6, options.length_penalty); };
    const auto score = [&](const Generated& g) { return g.log_probability / penalty(double(g.ids.size() + g.ended)); };
    const auto better = [&](const Generated& a, const Generated& b) { return score(a) > score(b); };
    const auto enough = [&](const std::vector<Generated>& answers, const std::vector<Generated>& live) {
        if (live.empty()) return true;
        if (answers.size() < options.width) return false;
        // log p only falls, and the penalty is largest, in what is still to come, at one of two lengths.
        const double most = live[0].log_probability /
                            std::max(penalty(double(live[0].ids.size()) + 1), penalty(double(limits.longest) + 1));
        return score(answers[options.width - 1]) >= most;
    };

    struct Candidate {
        std::size_t parent;
        std::int64_t id;
        double log_probability;
    };
    std::vector<Generated> live{{{}, false, 0, {}}}, answers;
    for (std::size_t length = 0; !enough(answers, live); ++length) {
        Ids previous;
        for (const Generated& g : live) previous.push_back(g.ids.empty() ? limits.begin : g.ids.back());
        const Decoding::Next next = model.step(previous);
        const Array p = log_probabilities("beam_search", next.logits, length, limits);
        const std::size_t V = p.shape()[1];

        std::vector<Candidate> candidates;
        for (std::size_t i = 0; i < p.size(); ++i)
            if (p.data()[i] > -std::numeric_limits<Real>::infinity())
                candidates.push_back({i / V, std::int64_t(i % V), live[i / V].log_probability + double(p.data()[i])});
        std::stable_sort(candidates.begin(), candidates.end(),
                         [](const Candidate& a, const Candidate& b) { return a.log_probability > b.log_probability; });

        std::vector<Generated> longer;
        std::vector<std::size_t> parents;
        for (std::size_t i = 0; i < candidates.size() && longer.size() < options.width; ++i) {
            const auto& [parent, id, log_probability] = candidates[i];
            if (id != limits.end) {
                Generated& g = longer.emplace_back(live[parent]);
                append(g, id, log_probability, next.weights, parent);
                parents.push_back(parent);
            } else if (i < options.width) {  // an end must win a place as any other token
                Generated& g = answers.emplace_back(live[parent]);
                g.log_probability = log_probability;
                g.ended = true;
            }
        }
        std::stable_sort(answers.begin(), answers.end(), better);
        if (answers.size() > options.width) answers.resize(options.width);
        if (length == limits.longest) break;  // `live` is as long as it may get
        live = std::move(longer);
        model.keep(parents);
    }
    if (answers.size() < options.width) {  // then by what has not ended
        std::stable_sort(live.begin(), live.end(), better);
        answers.insert(answers.end(), live.begin(), live.end());
    }
    if (answers.size() > options.width) answers.resize(options.width);
    if (answers.empty()) refuse_nothing("beam_search", limits);
    return answers;
}

}  // namespace lookback
