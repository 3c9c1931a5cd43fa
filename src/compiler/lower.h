// lower.h: the last pass: writes buffers and steps of a Program and packs the arena.
// Contract: throws Error (kind input, code "step.unsupported") that lists every step that `supports` declines. All
// phases are planned together: they share one arena, which is as large as the largest needs, not their sum. Regions of
// the graph become regions of the Program; what lives only in a tile gets no bytes of the arena. Leaves to others:
// order of steps (insertion order of the graph), what shares storage (storage.h), offsets (offsets.h), tiles and
// partitions (region_layout.h).
#pragma once

#include <vector>

#include "compiler/compile.h"
#include "compiler/data_layout.h"
#include "compiler/region_layout.h"
#include "compiler/storage.h"
#include "compiler/views.h"
#include "graph/ir/graph.h"
#include "graphrun/program.h"

namespace graphrun::plan {

struct Layouts {
  const Views& views;
  const Storage& storage;
  const DataLayout& data;
  const std::vector<RegionLayout>& regions;
};

struct Lowered {
  Program program;
  std::vector<BufferId> buffer_of;  // by node; the state's for an assign
};

Lowered lower(const ir::Graph& graph, const Layouts& layouts, const CompileOptions& options);

}  // namespace graphrun::plan
