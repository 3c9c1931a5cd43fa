// region_signature.h: steps of a graph in the form that Executor::region_choices() takes. Contract: an element region
// if chains were added; otherwise a row region. Not here: selection of steps (regions.h), fused steps (fuse.cpp), sizes
// (region_layout.h), the steps of a Program (executors/common/load_check.cpp).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "compiler/graph_analysis.h"
#include "graph/ir/graph.h"
#include "graphrun/executor.h"

namespace graphrun {

// Executor::region_choices() for one target.
using PlanRegion = std::function<RegionPlan(const RegionSignature&)>;

class RegionQuestion {
 public:
  RegionQuestion(const ir::Graph& graph, const GraphAnalysis& analysis, std::uint32_t phase)
      : graph_(graph), analysis_(analysis) {
    region_.capacity = graph.phases[phase].capacity;
  }

  // Adds a step that runs over the rows of a stage, or once.
  void add(ir::NodeId id, std::optional<std::uint32_t> stage);
  void add(const ir::FusedNodes& nodes);
  void add_chain(std::span<const ir::NodeId> steps);
  RegionPlan ask(const PlanRegion& plan, const RegionSize& size = {});  // once

 private:
  const ir::Graph& graph_;
  const GraphAnalysis& analysis_;
  RegionSignature region_;
  std::vector<ir::NodeId> row_ids_, once_ids_;
};

}  // namespace graphrun
