// metric_formula.h: a metric over a split from what its batches gave: parts added up in double, the rest computed once.
// Contract: the constructor plans and allocates; start(), add() and value() allocate nothing. Leaves to others: what
// the parts are (graph/frontend/step/metric_parts.h), where they are recorded (step_graph.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "graph/frontend/step/metric_parts.h"
#include "graphrun/executor.h"

namespace graphrun {

// The value of no rows, and that of some rows with more of them.
double nothing_combined(Combined how);
double combined(Combined how, double before, double more);

class PlannedFormula {
 public:
  explicit PlannedFormula(const MetricFormula& formula);
  // `parts`: the elements of all parts, one after the other. In double, on the host.
  double value(std::span<const double> parts, double samples);

 private:
  std::unique_ptr<Runnable> runnable_;
  std::vector<std::pair<BufferId, std::size_t>> parts_;  // with their numbers of elements
  BufferId samples_ = kNoBuffer, value_ = kNoBuffer;
};

}  // namespace graphrun
