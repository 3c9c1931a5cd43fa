// ranking.h: areas under the curves that a threshold draws as it moves through the scores of a class.
// Contract: pure functions; equal scores move together. NaN where there are no rows of one kind.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace graphrun {

struct CurveAreas {
  double auc = 0;                // ROC: the chance that a row of the class has a larger score than another row
  double average_precision = 0;  // sum over thresholds of precision times the recall gained
};

// (score, whether the row is of the class) of each row; sorted by it.
CurveAreas curve_areas(std::vector<std::pair<double, bool>>& rows);

}  // namespace graphrun
