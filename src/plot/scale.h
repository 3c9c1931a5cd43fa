// scale.h: from values to places on an axis, and the round numbers that are written beside it.
// Contract: any values do; those that are not finite, and on a log axis those not above 0, have no part in the range.
// The range is never empty, ticks lie in it in ascending order, and their labels differ.
#pragma once

#include <string>
#include <vector>

#include "plot/figure.h"

namespace graphrun::plot {

struct Tick {
  double value;
  std::string label;  // empty: a small tick between others
};

struct Scale {
  double from = 0, to = 1;
  bool log = false;
  std::vector<Tick> ticks;

  bool shows(double value) const;
  double place(double value) const;  // 0 to 1; for a value that it shows
};

// About so many labels; `margin` is the part of the range that stays free on either side.
Scale make_scale(const std::vector<const std::vector<double>*>& values, bool log, int labels, double margin);

Scale x_scale(const Figure& figure, int labels);
Scale y_scale(const Figure& figure, int labels);

}  // namespace graphrun::plot
