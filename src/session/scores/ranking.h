// ranking.h: areas under the ROC and precision-recall curves of a class.
// Contract: pure functions; tied rows share a threshold. NaN unless there are both positive and negative rows.
#pragma once

#include <utility>
#include <vector>

#include "graphrun/model.h"
#include "graphrun/scores.h"

namespace graphrun {

struct CurveAreas {
  double auc = 0;                // ROC: probability that a positive row ranks above a negative one
  double average_precision = 0;  // sum over thresholds of precision times recall gain
};

// `rows`: (predicted value, whether the row is positive); sorted in place. Appends to `curve`, unless it is null.
CurveAreas curve_areas(std::vector<std::pair<double, bool>>& rows, std::vector<CurvePoint>* curve = nullptr);

// Threshold of the curve by this rule; of equally good ones, the one with the most true positives. 1/2 if the curve has
// no positive row. By cost, it may be above all rows. At most
// 2e-7 below a threshold of the curve, and above the next one.
double threshold_by(const ThresholdRule& rule, const std::vector<CurvePoint>& curve);

}  // namespace graphrun
