// regions.h: groups the steps of each phase into regions (regions.md), which orders them anew.
// Contract: the same nodes under the same names, in an order in which every region is contiguous; a state is assigned
// after whoever read it before. All questions of legality are settled here; `plan` is asked about single row steps
// and then about each region. What is not in a region, and why, is told in `notes`.
// Leaves to others: tiles, partitions and scratch (region_layout.h).
#pragma once

#include <string>
#include <vector>

#include "compiler/region_signature.h"
#include "compiler/rewrite.h"
#include "compiler/row_analysis.h"
#include "graph/ir/graph.h"

namespace graphrun {

struct RegionOptions {
  PlanRegion plan;
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
