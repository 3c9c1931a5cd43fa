// bind_batch.h: the first pass: the batch, a symbol in the graph, becomes the capacity of each phase.
// Contract: a pure function. The same nodes with numbers for extents, adapted to how the samples of a phase form
// batches: sizes of rings, steps per epoch, and a constant in place of the row count if every batch is full. Types are
// inferred again from the bound inputs. Throws Error, with the node's position in the model file, if a value would be
// too large or the samples form no batch.
// Not here: choice of the capacities (session), all other rewriting.
#pragma once

#include <cstdint>
#include <span>

#include "compiler/rewrite.h"

namespace graphrun {

// Takes one capacity per phase.
Rewritten bind_batch(const ir::Graph& graph, std::span<const std::int64_t> capacities);

}  // namespace graphrun
