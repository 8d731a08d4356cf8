// How a model shows its parameters. Optimizers, clipping, checkpoints and messages all go through one function, which a
// layer has for its own and a model for its layers:
//   void for_each_parameter(const std::string& prefix, const Visitor& f) {
//       f(join(prefix, "W"), W);
//       cell.for_each_parameter(join(prefix, "cell"), f);
//   }
#pragma once
#include <functional>
#include <string>
#include "engine/tape.hpp"

namespace lookback {

using Visitor = std::function<void(const std::string& path, Parameter&)>;

// join("encoder", "W") is "encoder.W"; join("", "W") is "W".
inline std::string join(const std::string& prefix, const std::string& name) {
    return prefix.empty() ? name : prefix + "." + name;
}

// Names each parameter by its path, which messages and checkpoints then show.
template <class Model> void name_parameters(Model& model) {
    model.for_each_parameter("", [](const std::string& path, Parameter& p) { p.rename(path); });
}

// How many numbers a model has to learn.
template <class Model> std::size_t parameter_count(Model& model) {
    std::size_t count = 0;
    model.for_each_parameter("", [&](const std::string&, Parameter& p) { count += p.size(); });
    return count;
}

}  // namespace lookback
