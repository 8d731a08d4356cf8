// y = x W + b.
#pragma once
#include <optional>
#include "engine/random.hpp"
#include "parameters.hpp"

namespace lookback {

// y = x W + b.   x (…,I) → (…,O)
// From the start W and b are uniform in ±1/√I (PyTorch's default).
// throws ShapeError if x's last axis is not I; ValueError if I or O is 0
struct Linear {
    Parameter W;                 // (I,O)
    std::optional<Parameter> b;  // (O)

    enum class Bias { yes, no };
    Linear(std::size_t in, std::size_t out, Generator& generator, Bias bias = Bias::yes);
    Linear(Parameter W, std::optional<Parameter> b = std::nullopt);

    Tensor operator()(const Tensor& x) const;
    void for_each_parameter(const std::string& prefix, const Visitor& f);
};

}  // namespace lookback
