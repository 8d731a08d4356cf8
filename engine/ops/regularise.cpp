#include "regularise.hpp"
#include "engine/kernels.hpp"
#include "engine/pullback.hpp"

namespace lookback {

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, Real eps) {
    const Shape& s = x.shape();
    if (s.empty() || s.back() == 0)
        fail<ShapeError>("layer_norm", "nothing to normalise along the last axis: " + text(s));
    if (gain.shape() != Shape{s.back()} || bias.shape() != gain.shape())
        fail<ShapeError>("layer_norm", "gain and bias are one number for each of the last axis: " + text(gain.shape()) +
                                           ", " + text(bias.shape()) + " and " + text(s));
    if (!(eps >= 0)) fail<ValueError>("layer_norm", "eps is below 0: " + std::to_string(eps));
    Array y(s), statistics(Shape{x.size() / s.back(), 4});
    layer_norm_rows(x.value(), gain.value(), bias.value(), eps, y, statistics);
    return record("layer_norm", {x, gain, bias}, std::move(y), saves::input(0) | saves::input(1),
                  [](Pullback& p) {
                      Array x_bar = p.needs(0) ? Array(p.x(0).shape()) : Array();
                      Array gain_bar(p.x(1).shape()), bias_bar(p.x(1).shape());
                      layer_norm_rows_pullback(p.x(0), p.x(1), p.kept(0), p.y_bar(), p.needs(0) ? &x_bar : nullptr,
                                               gain_bar, bias_bar);
                      p.x_bar(0) += std::move(x_bar);
                      p.x_bar(1) += std::move(gain_bar);
                      p.x_bar(2) += std::move(bias_bar);
                  },
                  {}, {std::move(statistics)});
}

Tensor dropout(const Tensor& x, Real drop, Generator& generator) {
    if (!(drop >= 0 && drop <= 1))
        fail<ValueError>("dropout", "the chance to drop must be in 0 … 1, not " + std::to_string(drop));
    if (drop == 0) return x;
    Array mask(x.shape());
    for (Real& m : mask.storage()) m = drop < 1 && generator.uniform() >= double(drop) ? 1 / (1 - drop) : Real(0);
    Array y = chain(mask, x.value());  // 0 where dropped, whatever x holds there
    return record("dropout", {x}, std::move(y), saves::nothing,
                  [](Pullback& p) { p.x_bar(0) += chain(p.kept(0), p.y_bar()); }, {}, {std::move(mask)});
}

}  // namespace lookback
