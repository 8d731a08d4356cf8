#include "dropout.hpp"
#include "engine/ops/regularise.hpp"

namespace lookback {

Dropout::Dropout(Real p_) : p(p_) {
    if (!(p >= 0 && p <= 1)) fail<ValueError>("Dropout", "p must be in 0 … 1, not " + std::to_string(p));
}

Tensor Dropout::operator()(const Tensor& x, Mode mode) const {
    return mode.generator ? dropout(x, p, *mode.generator) : x;
}

}  // namespace lookback
