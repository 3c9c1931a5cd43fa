// ranking.h: areas under the ROC and precision-recall curves of a class.
// Contract: pure functions; tied rows share a threshold. NaN unless there are both positive and negative rows.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace graphrun {

struct CurveAreas {
  double auc = 0;                // ROC: probability that a positive row ranks above a negative one
  double average_precision = 0;  // sum over thresholds of precision times recall gain
};

// `rows`: (predicted value, whether the row is positive); sorted in place.
CurveAreas curve_areas(std::vector<std::pair<double, bool>>& rows);

}  // namespace graphrun
