#include "session/scores/ranking.h"

#include <algorithm>
#include <cstddef>

#include "graphrun/scores.h"

namespace graphrun {

CurveAreas curve_areas(std::vector<std::pair<double, bool>>& rows) {
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  double all = 0;
  for (const auto& [score, is_one] : rows) all += is_one ? 1 : 0;
  const double others = static_cast<double>(rows.size()) - all;
  if (all == 0) return {kNoScore, kNoScore};
  double found = 0, wrong = 0, area = 0, precisions = 0;
  for (std::size_t i = 0; i < rows.size();) {
    const double threshold = rows[i].first, found_before = found, wrong_before = wrong;
    for (; i < rows.size() && rows[i].first == threshold; ++i) ++(rows[i].second ? found : wrong);
    area += (wrong - wrong_before) * (found + found_before) / 2;
    precisions += (found - found_before) / all * (found / (found + wrong));
  }
  return {others == 0 ? kNoScore : area / (all * others), precisions};
}

}  // namespace graphrun
