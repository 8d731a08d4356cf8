#include "gradcheck.hpp"
#include <cmath>
#include <sstream>
#include "pullback.hpp"
#include "random.hpp"

namespace lookback {

namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
using Seeds = std::vector<Array>;

// One call of f, on a tape of its own.
struct Call {
    Tape tape;
    std::vector<Tensor> leaves, outputs;

    Call(const Function& f, const std::vector<Array>& inputs) {
        for (const Array& x : inputs) leaves.push_back(tape.leaf(x));
        outputs = f(leaves);
    }
    // L = Σ ⟨seed, output⟩, whose gradient is checked.
    double weighed(const Seeds& seeds) const {
        double sum = 0;
        for (std::size_t k = 0; k < outputs.size(); ++k)
            for (std::size_t i = 0; i < outputs[k].size(); ++i)
                sum += double(seeds[k].data()[i]) * double(outputs[k].value().data()[i]);
        return sum;
    }
    // ∂L/∂inputs by the pullbacks: all outputs at once, so that siblings are pulled back together.
    std::vector<Array> gradients(Seeds seeds) const {
        const Tensor root = record(
            "gradcheck", Inputs(outputs), filled({}, 0), saves::nothing,
            [](Pullback& p) {
                for (std::size_t k = 0; k < p.inputs(); ++k) p.x_bar(k) += p.attributes<Seeds>()[k];
            },
            std::move(seeds));
        std::vector<Array> result;
        if (root.is_constant()) {
            for (const Tensor& x : leaves) result.push_back(filled(x.shape(), 0));
            return result;
        }
        const Gradients g = tape.backward(root, leaves, {.keep = Keep::wanted});
        for (const Tensor& x : leaves) result.push_back(g[x]);
        return result;
    }
};

bool same_values(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tensor& y, const Tensor& z) {
        return y.shape() == z.shape() && std::equal(y.value().data(), y.value().data() + y.size(), z.value().data());
    });
}

// Steps one element of the inputs.
class Stepper {
public:
    Stepper(const Function& f, const std::vector<Array>& inputs, const Seeds& seeds, double middle)
        : f_(f), inputs_(inputs), seeds_(seeds), middle_(middle) {}

    struct Slopes {
        double left, right, central;
        double gap() const { return std::abs(right - left); }
    };
    Slopes slopes(std::size_t input, std::size_t element, double step) {
        Real& e = inputs_[input].data()[element];
        const Real x = e;
        step *= std::max(1.0, std::abs(double(x)));              // 1e-6 would vanish beside 1e12
        const Real low = Real(x - step), high = Real(x + step);  // as rounded, these are the steps taken
        e = high;
        const double above = Call(f_, inputs_).weighed(seeds_);
        e = low;
        const double below = Call(f_, inputs_).weighed(seeds_);
        e = x;
        return {(middle_ - below) / (double(x) - low), (above - middle_) / (double(high) - x),
                (above - below) / (double(high) - low)};
    }

private:
    const Function& f_;
    std::vector<Array> inputs_;
    const Seeds& seeds_;
    double middle_;
};

GradcheckReport check(const Function& f, const std::vector<Array>& inputs, const GradcheckOptions& options) {
    GradcheckReport report;
    const auto failed = [&](const std::string& why) {
        report.ok = false;
        report.why = why;
        return report;
    };
    if (inputs.empty()) return failed("no inputs, so nothing is checked");

    const Call call(f, inputs);
    if (call.outputs.empty()) return failed("no outputs, so nothing is checked");
    for (const Tensor& y : call.outputs)
        if (!std::all_of(y.value().data(), y.value().data() + y.size(), [](Real v) { return std::isfinite(v); }))
            return failed("an output is not finite");
    if (!same_values(call.outputs, Call(f, inputs).outputs))
        return failed("two calls with the same inputs give different values");

    // Away from 0, of both signs, no two alike.
    Seeds seeds;
    Generator random(options.seed);
    for (const Tensor& y : call.outputs) {
        seeds.push_back(random.uniform(y.shape(), 0.5, 1.5));
        for (Real& s : seeds.back().storage())
            if (random.bits() >> 63) s = -s;
    }

    std::vector<Array> gradients;
    try {
        gradients = call.gradients(seeds);
    } catch (const std::exception& e) {
        return failed(std::string("backward threw: ") + e.what());
    }

    Stepper stepper(f, inputs, seeds, call.weighed(seeds));
    double worst = 0;  // how far outside the tolerance
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (gradients[i].shape() != inputs[i].shape())
            return failed("input " + std::to_string(i) + " has shape " + text(inputs[i].shape()) + ", its gradient " +
                          text(gradients[i].shape()));
        for (std::size_t j = 0; j < inputs[i].size(); ++j) {
            const double pullback = gradients[i].data()[j] * options.scale_x_bar;
            const auto slopes = stepper.slopes(i, j, options.step);
            const double difference = slopes.central;
            double excess =
                std::abs(pullback - difference) - (options.absolute + options.relative * std::abs(difference));
            std::ostringstream why;
            why.precision(10);
            why << "input " << i << ", element " << j << ": pullback " << pullback << ", ";
            // The two sides of a smooth function come together as the step shrinks; at a kink they stay apart, and
            // their mean is no derivative, whatever the pullback says.
            const double doubtful = std::sqrt(options.step) * std::max(1.0, std::abs(difference));
            if (slopes.gap() > doubtful && stepper.slopes(i, j, options.step / 8).gap() > slopes.gap() / 2) {
                excess = std::numeric_limits<double>::infinity();
                why << "but here is a kink: slope " << slopes.left << " on the left, " << slopes.right
                    << " on the right";
            } else {
                why << "central difference " << difference;
            }
            if (!std::isfinite(pullback) || !std::isfinite(difference))
                excess = std::numeric_limits<double>::infinity();
            if (excess > worst) {
                worst = excess;
                report = {false, i, j, pullback, difference, why.str()};
            }
        }
    }
    return report;
}

}  // namespace

GradcheckReport gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Array>& inputs,
                          const GradcheckOptions& options) {
    return check([&](const std::vector<Tensor>& x) { return std::vector{f(x)}; }, inputs, options);
}

GradcheckReport gradcheck(const Function& f, const std::vector<Array>& inputs, const GradcheckOptions& options) {
    return check(f, inputs, options);
}

Array jacobian(const Tensor& y, const Tensor& x) {
    Array result = filled({y.size(), x.size()}, 0);
    BackwardOptions options{.keep = Keep::wanted, .seed = filled(y.shape(), 0)};
    for (std::size_t i = 0; i < y.size(); ++i) {
        options.seed.edit().data()[i] = 1;
        const Gradients g = y.tape().backward(y, {x}, options);
        std::copy_n(g[x].data(), x.size(), result.data() + i * x.size());
        options.seed.edit().data()[i] = 0;
    }
    return result;
}

}  // namespace lookback
