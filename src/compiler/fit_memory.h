// fit_memory.h: what lies in the arena and where; and how a plan is made smaller where CompileOptions::max_memory wants
// that. Contract: regions and their tilings are those of the graph that is given, and no bit of a result depends on the
// limit. Where the plan is too large, in this order and no further than needed: workspaces that steps can spare are
// made smaller, partitions of regions run in groups, and values that were kept apart share bytes; states lend their
// bytes while they are updated (storage.h); steps come in another order (step_order.h); values are computed again
// (recompute.h), products last. A plan that is still too large is the smallest that was found. Effort is counted in
// nodes, not seconds. Throws Error "step.unsupported" (lives.h). Leaves to others: what to tell
// (session/compiling/fit_batch.h).
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
  Packing packing;  // of the lives, above the states
};

struct FittedGraph {
  ir::Graph graph;
  IdMap ids;  // from the graph that was given
  Layouts layouts;
  Arena arena;
  BudgetSummary budget;
};

FittedGraph fit_memory(ir::Graph graph, const CompileOptions& options);

}  // namespace graphrun::plan
