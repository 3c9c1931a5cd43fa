// elements.h: groups elementwise steps outside of row regions into element regions (ElementChain of program.h,
// regions.md) and reorders steps for that. Runs before memory is laid out: only dependencies through values and states
// restrict the order, and values that stay within a chain need no memory.
// Contract: the same nodes under the same names, in an order that gives the same bits; a scalar that several chains
// need has a copy in each. Other steps keep their order. Elementwise steps wait until one of those needs a waiting
// step; then all waiting steps run, together with later steps that can share a region with them. `plan` is asked about
// each step and each region. Not here: which values are in registers (storage.h), how a region runs (the executors).
#pragma once

#include "compiler/regions.h"
#include "compiler/rewrite.h"
#include "graph/ir/graph.h"
#include "graphrun/target.h"

namespace graphrun {

Rewritten fuse_elements(const ir::Graph& graph, const RegionOptions& options, const ElementLimits& limits);

}  // namespace graphrun
