// Ops that read by index. Their pullbacks add: an index that occurs twice receives both cotangents.
#pragma once
#include "engine/indices.hpp"
#include "engine/tape.hpp"

namespace lookback {

// Row ids[i] of a table for every i.   table (V,E), ids (…) → (…,E)
// The form with a tape is how a model of tokens begins, when there is no Tensor yet.
// x̄[ids[i]] += ȳ[i], x being the table      saves nothing but the ids
// throws ShapeError if the table is not 2-D, IndexError on an id outside 0 … V-1
Tensor embedding(const Tensor& table, const Indices& ids);
Tensor embedding(Tape& tape, const Parameter& table, const Indices& ids);

// Entries of x picked along one axis: y[…, j, …] = x[…, ids[…, j, …], …], so y has the shape of ids. Away from that
// axis ids may be shorter than x (as PyTorch has it): the rest of x is then not read.
//   log-probabilities of targets: gather(log_p, -1, ids): (B,T,V), (B,T,1) → (B,T,1)
// x̄[…, ids[…, j, …], …] += ȳ[…, j, …]      saves nothing but the ids
// throws ShapeError on the axis, on ranks that differ, on ids longer than x away from the axis
//        IndexError on an index outside 0 … n-1
Tensor gather(const Tensor& x, int axis, const Indices& ids);

}  // namespace lookback
