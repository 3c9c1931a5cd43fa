// region_signature.h: steps of a graph in the form that Executor::plan_region() takes. Contract: an element region if
// chains were added; otherwise a row region, with reductions if a row step's output has no rows. Not here: selection of
// steps (regions.h), fused steps (fuse.h), sizes (region_layout.h).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "compiler/graph_analysis.h"
#include "graph/ir/graph.h"
#include "graphrun/executor.h"

namespace graphrun {

// Executor::plan_region() for one target.
using PlanRegion = std::function<RegionPlan(const RegionSignature&)>;

class RegionQuestion {
 public:
  RegionQuestion(const ir::Graph& graph, std::uint32_t phase) : graph_(graph), phase_(graph.phases[phase]) {}

  // Adds a step that runs over the rows of a stage, or once.
  void add(ir::NodeId id, std::optional<std::uint32_t> stage);
  void add(const ir::FusedNodes& fused);
  void add_chain(std::span<const ir::NodeId> steps);
  RegionPlan ask(const PlanRegion& plan, const RegionSize& size = {}) const;

 private:
  const ir::Graph& graph_;
  const ir::Phase& phase_;
  std::vector<NodeSignature> rows_, once_, products_;
  std::vector<ir::NodeId> row_ids_, once_ids_;
  std::vector<ir::FusedNodes> fused_;  // parallel to products_
  std::vector<std::int64_t> chains_;   // elements of each chain
  std::vector<std::uint32_t> stages_;  // parallel to rows_
};

}  // namespace graphrun
