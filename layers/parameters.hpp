// How a model shows its parameters. Optimizers, clipping, checkpoints and messages all go through one function, which a
// layer has for its own and a model for its layers:
//   void for_each_parameter(const std::string& prefix, const Visitor& f) {
//       f(join(prefix, "W"), W);
//       cell.for_each_parameter(join(prefix, "cell"), f);
//   }
#pragma once
#include <functional>
#include <string>
#include <vector>
#include "engine/tape.hpp"

namespace lookback {

using Visitor = std::function<void(const std::string& path, Parameter&)>;

// join("encoder", "W") is "encoder.W"; join("", "W") is "W".
std::string join(const std::string& prefix, const std::string& name);

// Names each parameter by its path, which messages and checkpoints then show.
template <class Model> void name_parameters(Model& model) {
    model.for_each_parameter("", [](const std::string& path, Parameter& p) { p.rename(path); });
}

// The parameters of any model with their paths, in its order: what optimizers and checkpoints take, so that a model may
// stand in its place, optimizer.step(model, gradients). It points into the model: use it at once.
// throws ValueError if one parameter has two paths (it would be trained twice a step), or one path two parameters
class Parameters {
public:
    struct Entry {
        std::string path;
        Parameter* parameter;
    };
    template <class Model>
    requires requires(Model& model, const Visitor& f) { model.for_each_parameter("", f); }
    Parameters(Model& model) {
        model.for_each_parameter("", [this](const std::string& path, Parameter& p) { add(path, p); });
        refuse_doubles();
    }
    auto begin() const { return entries_.begin(); }
    auto end() const { return entries_.end(); }
    std::size_t size() const { return entries_.size(); }

private:
    void add(const std::string& path, Parameter& p);
    void refuse_doubles() const;
    std::vector<Entry> entries_;
};

// How many numbers a model has to learn.
template <class Model> std::size_t parameter_count(Model& model) {
    std::size_t count = 0;
    model.for_each_parameter("", [&](const std::string&, Parameter& p) { count += p.size(); });
    return count;
}

}  // namespace lookback
