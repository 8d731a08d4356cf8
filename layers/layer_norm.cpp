#include "layer_norm.hpp"
#include "check.hpp"
#include "engine/ops/regularise.hpp"

namespace lookback {

LayerNorm::LayerNorm(std::size_t width, Real eps_)
    : gain(filled({width}, 1), "gain"), bias(filled({width}, 0), "bias"), eps(eps_) {
    if (width == 0) fail<ValueError>("LayerNorm", "the width may not be 0");
    if (!(eps >= 0)) fail<ValueError>("LayerNorm", "eps may not be negative: " + std::to_string(eps));
}

Tensor LayerNorm::operator()(const Tensor& x) const {
    check_product("LayerNorm", "x", x, "gain", gain);
    return layer_norm(x, gain, bias, eps);
}

void LayerNorm::for_each_parameter(const std::string& prefix, const Visitor& f) {
    f(join(prefix, "gain"), gain);
    f(join(prefix, "bias"), bias);
}

}  // namespace lookback
