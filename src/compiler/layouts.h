// layouts.h: facts about a graph that is to be lowered, found once: which nodes share bytes, and how tiles are laid
// out. Contract: pure. A region that has a plan keeps it, so a graph with reordered or repeated steps runs its regions
// unchanged.
#pragma once

#include <vector>

#include "compiler/compile.h"
#include "compiler/data_layout.h"
#include "compiler/graph_analysis.h"
#include "compiler/region_layout.h"
#include "compiler/storage.h"
#include "compiler/views.h"
#include "graph/ir/graph.h"

namespace graphrun::plan {

struct Layouts {
  GraphAnalysis analysis;
  Views views;
  Storage storage;
  DataLayout data;
  std::vector<RegionLayout> regions;  // per region of the graph
  std::vector<bool> in_tile_only;     // per node: no bytes in the arena
};

// `lend`: states lend their bytes (storage.h).
Layouts lay_out(const ir::Graph& graph, const CompileOptions& options, bool lend = false);

}  // namespace graphrun::plan
