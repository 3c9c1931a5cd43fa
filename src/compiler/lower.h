// lower.h: from a graph to a Program: decides storage (views, in-place reuse, updates in place of states), packs the
// arena, and writes the steps. Contract: throws Error (kind input, code "step.unsupported") that lists every step that
// `supports` declines, with its reason. All phases are planned together: they share one arena, which is as large as the
// largest needs, not their sum. Regions of the graph become regions of the Program; what lives only in a tile gets no
// bytes of the arena. Leaves to others: order of steps (insertion order of the graph), offsets (offsets.h), tiles and
// strands (region_layout.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/region_layout.h"
#include "graph/ir/graph.h"
#include "graphrun/executor.h"
#include "graphrun/program.h"

namespace graphrun::plan {

struct LowerOptions {
  std::string name;
  std::string target;
  std::function<Support(const StepSignature&)> supports;
  TileChoice tiles;
  Precision precision = Precision::fp32;  // of all products
};

struct Lowered {
  Program program;
  std::vector<BufferId> buffer_of;  // by node; kNoBuffer for effects
};

Lowered lower(const ir::Graph& graph, const LowerOptions& options);

}  // namespace graphrun::plan
