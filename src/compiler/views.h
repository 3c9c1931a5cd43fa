// views.h: values that are shown instead of computed: a slice, transpose or broadcast, or windows, whose readers all
// read its elements in the storage of its operand.
// Contract: a pure function. A `shown` node has the elements of operand 0; `view` locates them relative to the start of
// the storage of `root`. A reshape of a view that is not dense is shown, too, with the axes of the view. A value is
// computed if the host reads it, if regions read it tile by tile, if a chain computes it, or if its storage has been or
// may have been overwritten when it is read. Not here: bytes and live ranges (storage.h), support by an executor (its
// takes_views()).
#pragma once

#include <functional>
#include <vector>

#include "compiler/graph_analysis.h"
#include "graph/ir/graph.h"
#include "graphrun/executor.h"
#include "graphrun/view.h"

namespace graphrun {

// Indexed by node.
struct Views {
  std::vector<bool> shown;
  std::vector<ir::NodeId> root;  // node whose elements these are; itself unless it is shown or a view
  std::vector<View> view;
};

Views find_views(const ir::Graph& graph, const GraphAnalysis& analysis,
                 const std::function<bool(const StepSignature&)>& takes_views);

}  // namespace graphrun
