// fuse.h: which row steps of a region run as one: a product takes the addition of a bias and then one more step on its
// result, and does both before it stores anything (FusedSteps of program.h, regions.md).
// Contract: the same graph, with RegionStage::fused filled in. What lies between has one reader and is neither kept nor
// polled, so that it needs no memory; this is decided before memory is laid out. `plan` of the region options is asked
// about each group, first whether its result may lie where the last step's other operand is.
// Leaves to others: places in the tile (region_layout.h), sums over rows beside weight gradients (there too: they
// depend on the tiling).
#pragma once

#include "compiler/regions.h"
#include "graph/ir/graph.h"

namespace graphrun {

ir::Graph fuse(ir::Graph graph, const RegionOptions& options);

}  // namespace graphrun
