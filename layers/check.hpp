// What layers check before they compute, so that an error names the layer and not an op inside it.
#pragma once
#include <string>
#include "engine/tape.hpp"

namespace lookback {

// throws ShapeError "[Linear] x (2,3) does not match W (4,5)" unless x's last axis is `width`
inline void check_width(const char* layer, const char* name, const Shape& x, std::size_t width, const char* weight,
                        const Shape& W) {
    if (x.empty() || x.back() != width)
        fail<ShapeError>(layer, std::string(name) + " " + text(x) + " does not match " + weight + " " + text(W));
}
// The same where x is multiplied by W.
inline void check_product(const char* layer, const char* name, const Tensor& x, const char* weight,
                          const Parameter& W) {
    check_width(layer, name, x.shape(), W.shape()[0], weight, W.shape());
}

}  // namespace lookback
