// graph_analysis.h: what passes ask of a graph, found once: who reads a node, what it may share memory with, and what a
// view shows. Contract: a pure function of the graph; vectors by node id.
// Leaves to others: what follows from it: storage (storage.h), regions (regions.h), layouts.
#pragma once

#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/op_def.h"

namespace graphrun {

struct GraphAnalysis {
  std::vector<std::vector<ir::NodeId>> consumers;  // in order
  std::vector<Alias> aliases;                      // by OpDef::view and the traits
  std::vector<ir::NodeId> roots;                   // what a view shows, through others; of any other node itself

  bool is_view(ir::NodeId id) const { return aliases[id] == Alias::view; }
};

std::int64_t elements_of(const ir::Node& node);  // that it computes: a record writes one

GraphAnalysis analyze(const ir::Graph& graph);

}  // namespace graphrun
