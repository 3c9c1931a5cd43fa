// histogram.h: a histogram as the outline of its bars.
// Contract: a pure function. Non-finite values are ignored; all others must be in [low, high]. The number of bins is
// the square root of the number of values, clamped to [5, 60]. Not handled here: range, axes and names (figure.h).
#pragma once

#include <vector>

#include "plot/figure.h"

namespace graphrun::plot {

// `share`: y is the percentage of all values, which makes sets of different sizes comparable; otherwise the count.
Series histogram(const std::vector<double>& values, double low, double high, bool share = false);

}  // namespace graphrun::plot
