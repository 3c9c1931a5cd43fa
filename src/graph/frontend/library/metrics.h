// metrics.h: the built-in metrics, which a model file names without defining them.
// Contract: each is in original units, over a whole split. The steps of an evaluation record the mean over the samples
// of a function of (output, target), to which `finish` is applied once. The host computes all other metrics
// (graphrun/scores.h).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/frontend/library/entry.h"
#include "graphrun/scores.h"

namespace graphrun {

struct MetricDef : Entry {
  double (*of_classes)(const ClassScores& scores) = nullptr;  // at most one of the two is set; none for mse
  double ColumnScores::*of_numbers = nullptr;
  std::optional<bool> more_is_better = false;
  std::string_view function = {};  // its mean over a batch; empty: the host computes it
  // Power of the target's unit, if the metric depends only on differences; 0: it depends on the values.
  int power = 0;
  // Applied to the mean over the split. r2: 1 - mean / (variance of the target over the split).
  enum class Finish { none, root, r2 } finish = Finish::none;
};

const std::vector<MetricDef>& metrics();
inline const MetricDef* find_metric(std::string_view name) {
  return find_row(metrics(), name == "matthews" ? "mcc" : name);  // an older name
}

}  // namespace graphrun
