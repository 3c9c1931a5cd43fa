// metric_formula.h: a metric over a split from its batches: parts are accumulated in double, the rest is computed once.
// Contract: the constructor plans and allocates; start(), add() and value() allocate nothing. Not here: definition of
// the parts (graph/frontend/step/metric_parts.h), their recording (step_graph.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "graph/frontend/step/metric_parts.h"
#include "graphrun/executor.h"

namespace graphrun {

// Value for zero rows, and the combination of two partial values.
double nothing_combined(Combined how);
double combined(Combined how, double before, double more);

class PlannedFormula {
 public:
  explicit PlannedFormula(const MetricFormula& formula);
  // `parts`: elements of all parts, concatenated. Computed in double, on the host.
  double value(std::span<const double> parts, double samples);

 private:
  std::unique_ptr<Runnable> runnable_;
  std::vector<std::pair<BufferId, std::size_t>> parts_;  // with element counts
  BufferId samples_ = kNoBuffer, value_ = kNoBuffer;
};

}  // namespace graphrun
