// regions.h: groups the steps of each phase into regions (docs/regions.md), which orders them anew.
// Contract: the same nodes under the same names, in an order in which every region is contiguous; a state is assigned
// after whoever read it before. All questions of legality are settled here; `supports` is asked about single row steps
// and then about each region. What is not in a region, and why, is told in `notes`.
// Leaves to others: tiles, partitions and scratch (region_layout.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/rewrite.h"
#include "compiler/row_analysis.h"
#include "graph/ir/graph.h"
#include "graphrun/executor.h"

namespace graphrun {

// Where a matrix product is left to its own kernel, with a region on either side. A region reads all weights for each
// tile and keeps the gradient's accumulators for each partition, so both must stay near the core, in a second-level
// cache of some hundred KiB; beyond it the kernel that blocks over all rows reads less. docs/regions.md has a sweep.
struct RegionLimits {
  std::uint64_t weights = 256 * 1024;       // bytes of the matrix that rows are multiplied with
  std::uint64_t accumulators = 256 * 1024;  // bytes of one reduced value
  std::uint64_t row = 16 * 1024;            // bytes of one sample's part of a value
};

struct RegionOptions {
  std::function<Support(const RegionSignature&)> supports;
  RegionLimits limits;
  bool only_if_it_saves = true;  // false: for tests, which look into regions
};

struct RegionNote {
  std::uint32_t phase = 0;
  std::string node;  // the first of the nodes that it is about
  std::string text;
};

struct Regions {
  ir::Graph graph;  // with its regions
  IdMap ids;        // from the graph that was given
  std::vector<RegionNote> notes;
};

Regions find_regions(const ir::Graph& graph, const RegionOptions& options);

// One line a value with its kind and place, the regions, and the notes: for people.
std::string to_string(const Regions& regions);

}  // namespace graphrun
