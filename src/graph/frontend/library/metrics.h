// metrics.h: the built-in metrics: what a model file may name without defining it.
// Contract: each is in original units, over a whole split. The mean over the samples of a function of (output, target)
// is recorded by the evaluation's steps, and `finish` is applied once to it; the others, and those of several columns
// that no such mean gives, are scores (graphrun/scores.h).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/frontend/library/entry.h"
#include "graphrun/scores.h"

namespace graphrun {

struct MetricDef : Entry {
  double (*of_classes)(const ClassScores& scores) = nullptr;  // one of the two; both null: mse, which has no score
  double ColumnScores::*of_numbers = nullptr;
  std::optional<bool> more_is_better = false;
  std::string_view function = {};  // the one that gives the mean over a batch; empty: it is a score only
  // Of the unit of the target that the metric is in, where it knows differences only; 0: it looks at the values.
  int power = 0;
  // What becomes of the mean over the split: itself, its root, or 1 - mean / (variance of the target over the split).
  enum class Finish { none, root, r2 } finish = Finish::none;
};

const std::vector<MetricDef>& metrics();
inline const MetricDef* find_metric(std::string_view name) {
  return find_row(metrics(), name == "matthews" ? "mcc" : name);  // an older name
}

}  // namespace graphrun
