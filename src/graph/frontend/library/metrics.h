// metrics.h: the built-in metrics: what a model file may name without defining it.
// Contract: each is the mean over the samples of a function of (output, target) in original units; `finish` is
// applied once to the mean over the whole split.
#pragma once

#include <string_view>
#include <vector>

#include "graph/frontend/library/entry.h"

namespace graphrun {

struct MetricDef : Entry {
  std::string_view function;  // the one that gives the mean over a batch
  // Of the unit of the target that the metric is in, where it knows differences only; 0: it looks at the values.
  int power = 0;
  // What becomes of the mean over the split: itself, its root, or 1 - mean / (variance of the target over the split).
  enum class Finish { none, root, r2 } finish = Finish::none;
  bool more_is_better = false;
};

const std::vector<MetricDef>& metrics();
inline const MetricDef* find_metric(std::string_view name) {
  return find_row(metrics(), name);
}

}  // namespace graphrun
