// fit_memory.h: shrinks a plan that is larger than CompileOptions::max_memory.
// Contract: regions and their tilings are those of the given plan, and results are bitwise identical with any limit.
// The plan is changed in this order, no further than needed: workspaces give up their spare bytes, partitions of
// regions run in groups, and values that were kept apart share bytes; states lend their bytes during their update
// (storage.h); steps are reordered; values are recomputed, products last (orders.h). A plan that is
// still too large is the smallest found. Effort is counted in nodes, not seconds. Not here: messages to the user
// (session/compiling/fit_batch.h).
#pragma once

#include "compiler/arena.h"

namespace graphrun::plan {

// Requires a plan of plan_arena().
Plan fit_memory(Plan plan, const CompileOptions& options);

}  // namespace graphrun::plan
