// Which keys each query may look at. True is visible, everywhere. A mask is (T_q,T_k), the same for a whole batch, or
// (B,T_q,T_k) with 1 for an axis it doesn't depend on; masks combine:
//   padding(lengths, T) & causal(T, T, Align::start)
#pragma once
#include <vector>
#include "engine/indices.hpp"

namespace lookback {

// The first lengths[b] of T places are visible, for every query.   → (B,1,T)
// throws ShapeError on a length above T
Mask padding(const std::vector<std::size_t>& lengths, std::size_t T);
// The places whose id is not `pad` are visible.   ids (B,T) → (B,1,T)      throws ShapeError if ids are not 2-D
Mask padding_by_id(const Indices& ids, std::int64_t pad);

// How positions of T_q queries and T_k keys correspond, where these differ.
enum class Align {
    start,  // query i stands at key i
    end     // the last query stands at the last key: decoding the newest tokens against all keys so far
};

// Each query sees its own position and those before it.   → (T_q,T_k)
//   T_q = 2, T_k = 4:   start  1 0 0 0    end  1 1 1 0
//                              1 1 0 0         1 1 1 1
Mask causal(std::size_t T_q, std::size_t T_k, Align align);
// Each query sees its own position, up to `before` earlier ones and up to `after` later ones.   → (T_q,T_k)
Mask window(std::size_t T_q, std::size_t T_k, std::size_t before, std::size_t after, Align align);

// A mask as attention takes it, over scores (B,T_q,T_k): with three axes.
// throws ShapeError naming the layer, on a mask that isn't (T_q,T_k) or (B,T_q,T_k) up to axes of 1
Mask over_batch(const char* layer, const Mask& visible, const Shape& scores);

}  // namespace lookback
