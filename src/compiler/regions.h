// regions.h: groups the steps of each phase into regions (regions.md) and reorders the steps for that.
// Contract: the same nodes under the same names, in an order in which every region is contiguous; a state is assigned
// after the readers of its old value. Legality is decided here; `plan` is asked about single row steps and then about
// each region. `notes` gives the reason for each step outside of regions.
// Not here: tiles, partitions and scratch (region_layout.h).
#pragma once

#include <string>
#include <vector>

#include "compiler/graph_analysis.h"
#include "compiler/rewrite.h"
#include "graph/ir/graph.h"

namespace graphrun {

struct RegionOptions {
  PlanRegion plan;
  bool only_if_it_saves = true;   // false for tests that inspect regions
  bool early_reductions = false;  // in phases without regions; for machines that run independent launches at once
};

struct RegionNote {
  std::uint32_t phase = 0;
  std::string node;  // first node concerned
  std::string text;
};

struct Regions {
  ir::Graph graph;  // with its regions
  IdMap ids;        // from the given graph
  std::vector<RegionNote> notes;
};

Regions find_regions(const ir::Graph& graph, const RegionOptions& options);

// Text for people: one line per value with its kind and region, then the notes of the phase.
std::string to_string(const Regions& regions);

}  // namespace graphrun
