// region_layout.h: tiles, strands and scratch of a region: pure functions of (graph, target).
// Contract: every value that row steps of a stage read or write with rows has a place in the tile; two that are alive
// at the same row step do not overlap, packed by the function that packs the arena (offsets.h). Sizes grow with the
// rows of a tile, so places are found for one vector of rows and scaled. Leaves to others: buffers and steps of the
// Program (lower.h), legality (passes/regions.h).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ir/graph.h"
#include "graphrun/program.h"
#include "graphrun/target.h"

namespace graphrun::plan {

struct TileValue {
  ir::NodeId node = ir::kNoNode;
  ir::NodeId storage = ir::kNoNode;  // the value whose place it shares; its own node when it has one
  bool loaded = false;               // comes from the arena
  bool stored = false;               // is read outside of the stage's rows
  std::uint64_t offset = 0, bytes = 0;
};

struct StageLayout {
  std::vector<TileValue> values;  // in order of first use
  std::vector<std::pair<ir::NodeId, Combine>> combines;
};

struct RegionLayout {
  std::vector<StageLayout> stages;
  std::int64_t tile_rows = 0;
  std::int32_t strands = 1;
  std::uint64_t tile_bytes = 0, accumulator_bytes = 0;
  bool lanes = false;
};

// For tests: 0 is chosen from shapes and target.
struct TileChoice {
  std::int64_t rows = 0;
  std::int32_t strands = 0;
};

// `in_place`, by node: values that are read where they lie and have no bytes in the tile (data_layout.h); `consumers`:
// those of the graph, once for all regions.
RegionLayout lay_out(const ir::Graph& graph, const ir::Region& region, const Target& target, const TileChoice& choice,
                     const std::vector<bool>& in_place, const std::vector<std::vector<ir::NodeId>>& consumers);

}  // namespace graphrun::plan
