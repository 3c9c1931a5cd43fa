#include "plot/histogram.h"

#include <algorithm>
#include <cmath>

namespace graphrun::plot {

std::size_t histogram_bins(std::size_t values) {
  return static_cast<std::size_t>(std::clamp(std::sqrt(static_cast<double>(values)), 5.0, 60.0));
}

Series histogram(const std::vector<double>& values, double low, double high, bool share, std::size_t bins) {
  if (bins == 0) bins = histogram_bins(values.size());
  std::vector<double> counts(bins);
  const double width = high / static_cast<double>(bins) - low / static_cast<double>(bins);
  double all = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const double place = width > 0 ? value / width - low / width : 0;
    ++counts[static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(bins - 1)))];
    ++all;
  }
  Series series{{}, {low}, {0}};
  for (std::size_t i = 0; i < bins; ++i) {
    for (const std::size_t side : {i, i + 1}) {
      series.x.push_back(low + width * static_cast<double>(side));
      series.y.push_back(share && all > 0 ? 100 * counts[i] / all : counts[i]);
    }
  }
  series.x.push_back(high);
  series.y.push_back(0);
  return series;
}

}  // namespace graphrun::plot
