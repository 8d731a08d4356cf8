// Writing a sequence token by token, by any model that can say what comes next: greedily, or with a beam.
//   Seq2SeqDecoding decoding(model, padded(sources));
//   for (const Generated& answer : greedy(decoding)) alphabet.tokens(answer.ids);
// Nothing is recorded meanwhile: however long the output, memory is that of one step (and of a Transformer's cache).
#pragma once
#include <vector>
#include "data.hpp"
#include "engine/tape.hpp"

namespace lookback {

// What decoding asks of a model that has read its sources. A row is one sequence that is being written; at first there
// is one for each source.
class Decoding {
public:
    struct Next {
        Array logits;   // (rows,V)
        Array weights;  // (rows,T) on source tokens, or (0) if the model doesn't attend
    };
    virtual ~Decoding() = default;
    virtual std::size_t rows() const = 0;
    virtual Next step(const Ids& previous) = 0;  // the newest token of each row
    // From now on row i is what row kept[i] was; a row may be kept more than once, or not.
    virtual void keep(const std::vector<std::size_t>& kept) = 0;
};

// Rows of x (B,…), in that order; a mask of one row stands for any.   throws IndexError
Tensor rows_of(const Tensor& x, const std::vector<std::size_t>& rows);
Mask rows_of(const Mask& mask, const std::vector<std::size_t>& rows);

struct Generated {
    Ids ids;                     // without marks
    bool ended;                  // false: cut at the longest length
    double log_probability;      // of the ids, and of the end mark if it came
    std::vector<Array> weights;  // of each id (T); none if the model doesn't attend
};

struct DecodeOptions {
    std::size_t longest = 64, shortest = 0;  // in tokens, marks not counted: before `shortest` the end is not taken
    std::int64_t begin = Alphabet::begin, end = Alphabet::end;
};

// The most probable token at each step, until the end mark; the lower id if two are equal. One answer a row.
// A row that has ended leaves the batch: the end mark is never fed.
// throws ValueError if shortest > longest, the model's scores are NaN, or no token can follow
std::vector<Generated> greedy(Decoding& model, const DecodeOptions& options = {});

struct BeamOptions {
    std::size_t width = 4;      // hypotheses that are carried on
    double length_penalty = 0;  // α: answers compare by log p / ((5 + length) / 6)^α, the end mark counted
    DecodeOptions decode = {};
};

// The best answers of one source, best first, at most `width`: at each step the hypotheses, each with each next token,
// compete for the `width` places. It stops once no hypothesis can still become better than the last of `width` answers.
// Width 1 without penalty is greedy; a width that leaves nothing out finds the most probable answer. Ties go to the
// hypothesis that was ahead, then to the lower id. An answer that has not ended appears only if fewer than `width`
// have.
// throws as greedy does; ValueError unless the model begins with one row and width > 0
// Sutskever et al. 2014, § 3.2; the penalty: Wu et al. 2016, § 7
std::vector<Generated> beam_search(Decoding& model, const BeamOptions& options = {});

}  // namespace lookback
