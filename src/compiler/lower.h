// lower.h: the last pass: writes buffers and steps of a Program. Contract: regions of the graph become regions of the
// Program; what lives only in a tile gets no bytes of the arena. Leaves to others: order of steps (insertion order of
// the graph), what shares storage (storage.h), what lies in the arena and where (fit_memory.h), tiles and partitions
// (region_layout.h).
#pragma once

#include <vector>

#include "compiler/compile.h"
#include "compiler/fit_memory.h"
#include "compiler/layouts.h"
#include "graph/ir/graph.h"
#include "graphrun/program.h"

namespace graphrun::plan {

struct Lowered {
  Program program;
  std::vector<BufferId> buffer_of;  // by node; the state's for an assign
};

Lowered lower(const ir::Graph& graph, const Layouts& layouts, const Arena& arena, const CompileOptions& options);

}  // namespace graphrun::plan
