// fuse.h: which row steps of a region run as one: a product takes the addition of a bias and then one more step on its
// result, and does both before it stores anything (FusedSteps of program.h, regions.md).
// Contract: the same graph, with RegionStage::fused filled in. Intermediate results have one reader and are neither
// kept nor polled, so they need no memory; this is decided before memory is laid out. `plan` of the region options is
// asked about each group, first whether its result may overwrite the last step's other operand.
// Not here: places in the tile (region_layout.h), sums over rows fused with weight gradients (also there: they depend
// on the tiling).
#pragma once

#include "compiler/regions.h"
#include "graph/ir/graph.h"

namespace graphrun {

ir::Graph fuse(ir::Graph graph, const RegionOptions& options);

}  // namespace graphrun
