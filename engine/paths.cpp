#include "paths.hpp"
#include <cmath>

namespace lookback {

std::vector<PathReport> paths(const Tensor& root, std::span<const Tensor> targets) {
    constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
    constexpr PathReport unreached{false, 0, 0, minus_infinity};
    const Tape& tape = root.tape();
    tape.check("paths", root);
    if (root.is_constant()) fail<TapeError>("paths", "the root is a constant: no leaf or parameter leads to it");
    Id low = root.id();
    for (const Tensor& x : targets) {
        tape.check("paths", x);
        if (x.is_constant())
            fail<TapeError>("paths", "a target " + text(x.shape()) + " is a constant: no path leads to it");
        low = std::min(low, x.id());
    }

    std::vector<PathReport> from_root(std::size_t(root.id()) - low + 1, unreached);
    from_root.back() = {true, 0, 0, 0};
    for (Id id = root.id() + 1; id-- > low;) {
        const PathReport here = from_root[id - low];  // complete: consumers have larger ids
        if (!here.reached) continue;
        // siblings share their inputs: a path through any of them goes on
        for (const Edge& edge : tape.inputs(tape[id])) {
            if (edge.from == Tensor::constant || edge.from < low) continue;
            PathReport& next = from_root[edge.from - low];
            next.shortest = next.reached ? std::min(next.shortest, here.shortest + 1) : here.shortest + 1;
            next.longest = std::max(next.longest, here.longest + 1);
            next.reached = true;
            const auto [less, more] = std::minmax(next.log2_count, here.log2_count);  // log₂(2^less + 2^more)
            next.log2_count = more + std::log2(1 + std::exp2(less - more));
        }
    }

    std::vector<PathReport> reports;
    for (const Tensor& x : targets) reports.push_back(x.id() <= root.id() ? from_root[x.id() - low] : unreached);
    return reports;
}

}  // namespace lookback
