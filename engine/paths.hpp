// How far gradients travel: the paths from a root back to earlier tensors, as the tape recorded them. A path goes from
// an output to an input of its op, again and again; its length is the number of ops on it.
//   paths(loss, {h[0], h[9]})[0].longest
#pragma once
#include <span>
#include <vector>
#include "tape.hpp"

namespace lookback {

struct PathReport {
    bool reached;                   // is there any path; if not, the lengths are 0
    std::size_t shortest, longest;  // 0 from the root to itself
    double log2_count;              // of the number of paths, which outgrows any integer; -infinity if there are none
};

// One report a target, all from one loop downwards over the records between. x * x has two paths to x; detach ends a
// path.
// throws TapeError if the root or a target is a constant or not of one tape (for a parameter p: tape.leaf(p))
std::vector<PathReport> paths(const Tensor& root, std::span<const Tensor> targets);
inline std::vector<PathReport> paths(const Tensor& root, std::initializer_list<Tensor> targets) {
    return paths(root, std::span(targets.begin(), targets.size()));
}

}  // namespace lookback
