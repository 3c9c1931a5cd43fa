// region_signature.h: steps of a graph as Executor::plan_region() is asked about them.
// Contract: a region over elements where chains were added; else over rows, with reductions where a row step's output
// has no rows. Leaves to others: which steps (regions.h), what is fused (fuse.h), the size of it all (region_layout.h).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "compiler/graph_analysis.h"
#include "graph/ir/graph.h"
#include "graphrun/executor.h"

namespace graphrun {

// An executor's, for one target.
using PlanRegion = std::function<RegionPlan(const RegionSignature&)>;

class RegionQuestion {
 public:
  RegionQuestion(const ir::Graph& graph, std::uint32_t phase) : graph_(graph), phase_(graph.phases[phase]) {}

  // Over the rows of a stage, or once.
  void add(ir::NodeId id, std::optional<std::uint32_t> stage);
  void add(const ir::FusedNodes& fused);
  void add_chain(std::span<const ir::NodeId> steps);
  RegionPlan ask(const PlanRegion& plan, const RegionSize& size = {}) const;

 private:
  const ir::Graph& graph_;
  const ir::Phase& phase_;
  std::vector<NodeSignature> rows_, once_, products_;
  std::vector<ir::NodeId> row_ids_, once_ids_;
  std::vector<ir::FusedNodes> fused_;  // of the products
  std::vector<std::int64_t> chains_;   // elements of each
  std::vector<std::uint32_t> stages_;  // of the row steps
};

}  // namespace graphrun
