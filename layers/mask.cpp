#include "mask.hpp"
#include "engine/broadcast.hpp"

namespace lookback {

Mask padding(const std::vector<std::size_t>& lengths, std::size_t T) {
    const std::size_t B = lengths.size();
    std::vector<bool> visible(checked_size("padding", {B, 1, T}));
    for (std::size_t b = 0; b < B; ++b) {
        if (lengths[b] > T)
            fail<ShapeError>("padding", "length " + std::to_string(lengths[b]) + " of sequence " + std::to_string(b) +
                                            " is above T = " + std::to_string(T));
        for (std::size_t t = 0; t < lengths[b]; ++t) visible[b * T + t] = true;
    }
    return Mask({B, 1, T}, std::move(visible));
}

Mask padding_by_id(const Indices& ids, std::int64_t pad) {
    if (ids.shape().size() != 2) fail<ShapeError>("padding_by_id", "ids must be (B,T), not " + text(ids.shape()));
    std::vector<bool> visible(ids.size());
    for (std::size_t i = 0; i < visible.size(); ++i) visible[i] = ids[i] != pad;
    return Mask({ids.shape()[0], 1, ids.shape()[1]}, std::move(visible));
}

Mask window(std::size_t T_q, std::size_t T_k, std::size_t before, std::size_t after, Align align) {
    // Keys and queries are counted from the end or the start of the longer: shifted so that nothing is negative.
    const std::size_t longer = std::max(T_q, T_k);
    const std::size_t shift_q = align == Align::end ? longer - T_q : 0,
                      shift_k = align == Align::end ? longer - T_k : 0;
    std::vector<bool> visible(checked_size("window", {T_q, T_k}));
    for (std::size_t i = 0; i < T_q; ++i)
        for (std::size_t j = 0; j < T_k; ++j) {
            const std::size_t p = i + shift_q, q = j + shift_k;
            visible[i * T_k + j] = q <= p ? p - q <= before : q - p <= after;
        }
    return Mask({T_q, T_k}, std::move(visible));
}

Mask causal(std::size_t T_q, std::size_t T_k, Align align) { return window(T_q, T_k, T_k + T_q, 0, align); }

Mask over_batch(const char* layer, const Mask& visible, const Shape& scores) {
    Shape shape = visible.shape();
    const bool ranked = shape.size() == 2 || shape.size() == 3;
    if (!ranked || !broadcasts_to(shape, scores))
        fail<ShapeError>(layer,
                         "a mask must be (T_q,T_k) or (B,T_q,T_k): " + text(shape) + " over scores " + text(scores));
    if (shape.size() == 2) shape.insert_at(0, 1);
    return visible.reshape(shape);
}

}  // namespace lookback
