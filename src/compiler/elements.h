// elements.h: which elementwise steps outside of regions over rows run as one region over elements (ElementChain of
// program.h, regions.md), which orders them anew. Found before memory is laid out: order is that of values and
// states, and what stays within a chain needs no memory.
// Contract: the same nodes under the same names in an order that computes the same bits; a number that several chains
// need has a copy in each. What is not elementwise keeps its order; elementwise steps wait until one of those needs
// one of them; then all run that wait, and of those that come later what shares a region with them. `plan` is asked
// about each step, and about each region. Leaves to others: which values are in registers (storage.h), how a region
// runs (the executors).
#pragma once

#include "compiler/regions.h"
#include "compiler/rewrite.h"
#include "graph/ir/graph.h"
#include "graphrun/target.h"

namespace graphrun {

Rewritten fuse_elements(const ir::Graph& graph, const RegionOptions& options, const ElementLimits& limits);

}  // namespace graphrun
