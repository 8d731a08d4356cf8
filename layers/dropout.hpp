// Dropout, and how a model is told that it is being trained.
#pragma once
#include "engine/random.hpp"
#include "engine/tape.hpp"

namespace lookback {

// Training or evaluation: said at each call and kept in no layer, so it can't be left on.
//   model(x)      evaluation: nothing is drawn, equal inputs give equal bits
//   model(x, training(generator))
struct Mode {
    Generator* generator = nullptr;  // what training draws from
};
inline constexpr Mode evaluation{};
inline Mode training(Generator& generator) { return {&generator}; }

// In training each entry is dropped with probability p, and the others grow by 1/(1−p); else y = x.   any → same
// throws ValueError unless 0 ≤ p ≤ 1      Srivastava et al. 2014
struct Dropout {
    Real p;

    explicit Dropout(Real p);
    Tensor operator()(const Tensor& x, Mode mode) const;
};

}  // namespace lookback
