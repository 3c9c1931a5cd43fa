// histogram.h: how often which values are there, as the outline of a histogram.
// Contract: a pure function; values that are not finite are left out, others lie from `low` to `high`. The bins are as
// many as the root of the number of values, from 5 to 60. Leaves to others: the range, axes and names (figure.h).
#pragma once

#include <vector>

#include "plot/figure.h"

namespace graphrun::plot {

// `share`: y is a share of all values in percent, so that sets of different sizes compare; else how many there are.
Series histogram(const std::vector<double>& values, double low, double high, bool share = false);

}  // namespace graphrun::plot
