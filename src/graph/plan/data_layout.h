// data_layout.h: which data sets may lie in vectors of rows, as tiles want them (Layout::vectors).
// Contract: a pure function. A data set may when nothing but regions reads it, in tiles that begin at whole vectors:
// then a load is a copy instead of a transposition. Leaves to others: what a region is, buffers (lower.h).
#pragma once

#include <span>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/plan/region_layout.h"

namespace graphrun::plan {

// By node: data sets, and the views of them. `layouts` belong to the graph's regions.
std::vector<bool> data_in_vectors(const ir::Graph& graph, std::span<const RegionLayout> layouts);

}  // namespace graphrun::plan
