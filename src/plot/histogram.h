// histogram.h: a histogram as the outline of its bars.
// Contract: a pure function. Non-finite values are ignored; all others must be in [low, high]. Not handled here: range,
// axes and names (figure.h).
#pragma once

#include <vector>

#include "plot/figure.h"

namespace graphrun::plot {

// Square root of the number of values, clamped to [5, 60].
std::size_t histogram_bins(std::size_t values);

// `share`: y is the percentage of all values, which makes sets of different sizes comparable in equal bins; otherwise
// the count. `bins`: 0: histogram_bins().
Series histogram(const std::vector<double>& values, double low, double high, bool share = false, std::size_t bins = 0);

}  // namespace graphrun::plot
