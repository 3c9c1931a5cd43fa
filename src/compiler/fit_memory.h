// fit_memory.h: contents and offsets of the arena; shrinks a plan that is larger than CompileOptions::max_memory.
// Contract: regions and their tilings are those of the given graph, and results are bitwise identical with any limit. A
// plan that is too large is changed in this order, no further than needed: workspaces give up their spare bytes,
// partitions of regions run in groups, and values that were kept apart share bytes; states lend their bytes during
// their update (storage.h); steps are reordered (step_order.h); values are recomputed (recompute.h), products last. A
// plan that is still too large is the smallest found. Effort is counted in nodes, not seconds. Throws Error
// "step.unsupported" (lives.h). Not here: messages to the user (session/compiling/fit_batch.h).
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/compile.h"
#include "compiler/layouts.h"
#include "compiler/lives.h"
#include "compiler/offsets.h"
#include "compiler/rewrite.h"
#include "graph/ir/graph.h"
#include "graphrun/budget.h"

namespace graphrun::plan {

struct Arena {
  GivenBytes given;
  std::vector<Life> lives;
  Packing packing;  // offsets of the live ranges, above the states
};

struct FittedGraph {
  ir::Graph graph;
  IdMap ids;  // from the given graph
  Layouts layouts;
  Arena arena;
  BudgetSummary budget;
};

FittedGraph fit_memory(ir::Graph graph, const CompileOptions& options);

}  // namespace graphrun::plan
