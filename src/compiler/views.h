// views.h: values that are shown instead of computed: a slice, a transpose or a broadcast whose readers all take its
// elements where they lie in what it shows.
// Contract: a pure function; operand 0 of a node that is `shown` has its elements, as `view` tells from the start of
// the storage of `root` on. What the host reads, what regions read tile by tile, what a chain computes, and what is
// read when its storage was or may have been written again is computed. Leaves to others: bytes and lifetimes
// (storage.h), what an executor takes (its takes_views()).
#pragma once

#include <functional>
#include <vector>

#include "compiler/graph_analysis.h"
#include "graph/ir/graph.h"
#include "graphrun/executor.h"
#include "graphrun/view.h"

namespace graphrun {

// By node.
struct Views {
  std::vector<bool> shown;
  std::vector<ir::NodeId> root;  // whose elements these are; its own id, unless it is shown or a view
  std::vector<View> view;
};

Views find_views(const ir::Graph& graph, const GraphAnalysis& analysis,
                 const std::function<bool(const StepSignature&)>& takes_views);

}  // namespace graphrun
