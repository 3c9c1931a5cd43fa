// storage.h: which nodes share bytes, decided from their overlays (graph_analysis.h) before memory is laid out.
// Contract: root[id] is the node whose storage holds the value of node id. A root that is a state is always live; any
// other is live from `first` to `last`. Times count through the step lists of all phases, one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/graph_analysis.h"
#include "compiler/views.h"
#include "graph/ir/graph.h"

namespace graphrun::plan {

struct Storage {
  std::vector<ir::NodeId> root;      // per node
  std::vector<std::uint32_t> first;  // per root: time of the first step that writes it
  std::vector<std::uint32_t> last;   // per root: time of the last step that reads or writes it
  std::vector<std::uint32_t> time;   // per node: time at which its step runs
  std::vector<std::uint32_t> ends;   // per phase: a separate time after its last step
  std::vector<bool> no_step;         // per node: a state, a view, shown, or an assign in place
  std::vector<bool> in_registers;    // per node: read only in its own chain (ir::Region::chains), or a view of one
};

// `lend`: operands of a state's new value may use the state's bytes after the last read of its old value.
Storage assign_storage(const ir::Graph& graph, const GraphAnalysis& analysis, const Views& views, bool lend = false);

}  // namespace graphrun::plan
