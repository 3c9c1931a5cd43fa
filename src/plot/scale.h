// scale.h: maps values to axis positions, and chooses round tick values.
// Contract: any values are valid. Non-finite values, and on a log axis values that are not positive, do not affect the
// range. The range is never empty; ticks are within it, in ascending order, with distinct labels.
#pragma once

#include <string>
#include <vector>

#include "plot/figure.h"

namespace graphrun::plot {

struct Tick {
  double value;
  std::string label;  // empty: minor tick
};

struct Scale {
  double from = 0, to = 1;
  bool log = false;
  std::vector<Tick> ticks;

  bool shows(double value) const;
  double place(double value) const;  // 0 to 1; requires shows(value)
};

// Aims for `labels` labelled ticks. `margin` is the fraction of the range left free at each end.
Scale make_scale(const std::vector<const std::vector<double>*>& values, bool log, int labels, double margin);

Scale x_scale(const Figure& figure, int labels);
Scale y_scale(const Figure& figure, int labels);

}  // namespace graphrun::plot
