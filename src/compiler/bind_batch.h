// bind_batch.h: the first pass: the batch, a symbol in the graph, becomes the capacity of each phase.
// Contract: a pure function; the same nodes with numbers for extents, and what follows from how the samples of a phase
// fall into batches: rings, the steps of an epoch, and a constant in place of the count of rows where every batch is
// full. Types are inferred anew from the bound inputs. Throws Error, with the node's place in the model file, where a
// value would be too large or the samples make no batch.
// Leaves to others: which capacities (session), all else that a pass may do.
#pragma once

#include <cstdint>
#include <span>

#include "compiler/rewrite.h"

namespace graphrun {

// One capacity for each phase.
Rewritten bind_batch(const ir::Graph& graph, std::span<const std::int64_t> capacities);

}  // namespace graphrun
