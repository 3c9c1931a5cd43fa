// storage.h: which nodes share bytes: decided from the nodes' aliases (graph_analysis.h) before anything is packed.
// Contract: root[id] is the node whose storage holds the value of node id. A root that is a state lives for ever; any
// other lives from `first` to `last`, times counted over the step lists of all phases one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/graph_analysis.h"
#include "compiler/views.h"
#include "graph/ir/graph.h"

namespace graphrun::plan {

struct Storage {
  std::vector<ir::NodeId> root;      // by node
  std::vector<std::uint32_t> first;  // by root: time of the step that writes it first
  std::vector<std::uint32_t> last;   // by root: time of the last step that reads or writes it
  std::vector<std::uint32_t> time;   // by node: when its step runs
  std::vector<std::uint32_t> ends;   // by phase: a time of its own after its last step
  std::vector<bool> no_step;         // by node: a state, a view, shown, or an assign that happens in place
  std::vector<bool> in_registers;    // by node: read in its own chain alone (ir::Region::chains), or a view of that
};

// `lend`: values on the way to a state's new one lie where the state does, from the last look at its old value on.
Storage assign_storage(const ir::Graph& graph, const GraphAnalysis& analysis, const Views& views, bool lend = false);

}  // namespace graphrun::plan
