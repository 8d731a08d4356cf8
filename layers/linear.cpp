#include "linear.hpp"
#include "check.hpp"
#include "engine/ops/linear.hpp"
#include "init.hpp"

namespace lookback {

static Parameter uniform(const char* name, const Shape& shape, std::size_t fan_in, Generator& generator) {
    if (fan_in == 0 || shape.back() == 0)
        fail<ValueError>(
            "Linear", "no width may be 0: " + std::to_string(fan_in) + " in, " + std::to_string(shape.back()) + " out");
    return Parameter(init::uniform_by_fan(generator, shape, fan_in), name);
}

Linear::Linear(std::size_t in, std::size_t out, Generator& generator, Bias bias)
    : W(uniform("W", {in, out}, in, generator)) {
    if (bias == Bias::yes) b = uniform("b", {out}, in, generator);
}

Linear::Linear(Parameter W_, std::optional<Parameter> b_) : W(std::move(W_)), b(std::move(b_)) {
    if (W.shape().size() != 2 || (b && b->shape() != Shape{W.shape()[1]}))
        fail<ShapeError>("Linear",
                         "W must be (I,O) and b (O): " + text(W.shape()) + (b ? " and " + text(b->shape()) : ""));
}

Tensor Linear::operator()(const Tensor& x) const {
    check_product("Linear", "x", x, "W", W);
    return b ? affine(x, W, *b) : matmul(x, W);
}

void Linear::for_each_parameter(const std::string& prefix, const Visitor& f) {
    f(join(prefix, "W"), W);
    if (b) f(join(prefix, "b"), *b);
}

}  // namespace lookback
