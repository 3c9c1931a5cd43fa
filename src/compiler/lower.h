// lower.h: the last pass: writes buffers and steps of a Program. Contract: regions of the graph become regions of the
// Program; values that exist only in a tile get no bytes in the arena. Not here: order of steps (insertion order of the
// graph), sharing of storage (storage.h), contents and offsets of the arena (arena.h), tiles and partitions
// (region_layout.h).
#pragma once

#include <vector>

#include "compiler/arena.h"
#include "compiler/compile.h"
#include "graph/ir/graph.h"
#include "graphrun/program.h"

namespace graphrun::plan {

struct Lowered {
  Program program;
  std::vector<BufferId> buffer_of;  // per node; an assign has its state's buffer
};

Lowered lower(const ir::Graph& graph, const Layouts& layouts, const Arena& arena, const CompileOptions& options);

}  // namespace graphrun::plan
