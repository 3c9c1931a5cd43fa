// region_layout.h: layout of the tiles and accumulators of a region, and its tiling: pure functions of the graph and
// the executor's answers.
// Contract: every value with rows that row steps of a stage read or write has a place in the tile, except values
// between fused steps. Values that are live at the same row step do not overlap; the packer of the arena places them
// (packing/pack.h). Fused steps read and write when the last of them is due. Sizes grow with the rows of a tile, so
// places are found for one vector of rows and scaled. In a StepTiling rows are in registers and have no places. Not
// here: numbers of rows and partitions (Executor::region_choices), buffers and steps of the Program (lower.h), legality
// (regions.h).
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/data_layout.h"
#include "compiler/graph_analysis.h"
#include "graph/ir/graph.h"
#include "graphrun/program.h"

namespace graphrun::plan {

struct TileValue {
  ir::NodeId node = ir::kNoNode;
  ir::NodeId storage = ir::kNoNode;  // value whose place it shares; its own node when it has one
  bool loaded = false;               // from the arena
  bool stored = false;               // read outside of the stage's rows
  bool in_registers = false;         // between fused steps: no bytes
  std::uint64_t offset = 0, bytes = 0;
  ir::NodeId first = 0, last = 0;  // live range of its own place: nodes of the stage
};

struct StageLayout {
  std::vector<TileValue> values;  // in order of first use
  std::vector<std::pair<ir::NodeId, Combine>> combines;
  std::vector<std::pair<ir::NodeId, ir::NodeId>> sums;  // a weight gradient, and the sum over rows computed with it
};

struct RegionLayout {
  std::vector<StageLayout> stages;
  RegionPlan plan = {};
};

// One per region of the graph. Values read in place in a data set have no bytes in a tile. `plan` chooses the tiling of
// a region that has no plan.
std::vector<RegionLayout> lay_out_regions(const ir::Graph& graph, const GraphAnalysis& analysis, const DataLayout& data,
                                          const PlanRegion& plan, const TileChoice& choice);

}  // namespace graphrun::plan
