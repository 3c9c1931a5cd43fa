#include "session/scores/ranking.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace graphrun {

namespace {
constexpr double kThresholdMargin = 2e-7;
}

CurveAreas curve_areas(std::vector<std::pair<double, bool>>& rows, std::vector<CurvePoint>* curve) {
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  double all = 0;
  for (const auto& [score, is_one] : rows) all += is_one ? 1 : 0;
  const double others = static_cast<double>(rows.size()) - all;
  double found = 0, wrong = 0, area = 0, precisions = 0;
  for (std::size_t i = 0; i < rows.size();) {
    const double threshold = rows[i].first, found_before = found, wrong_before = wrong;
    for (; i < rows.size() && rows[i].first == threshold; ++i) ++(rows[i].second ? found : wrong);
    area += (wrong - wrong_before) * (found + found_before) / 2;
    precisions += (found - found_before) / all * (found / (found + wrong));
    if (curve) curve->push_back({threshold, static_cast<std::uint64_t>(found), static_cast<std::uint64_t>(wrong)});
  }
  if (all == 0) return {kNoScore, kNoScore};
  return {others == 0 ? kNoScore : area / (all * others), precisions};
}

double threshold_by(const ThresholdRule& rule, const std::vector<CurvePoint>& curve) {
  using By = ThresholdRule::By;
  if (rule.by == By::value) return rule.at;
  if (curve.empty() || curve.back().true_positives == 0) return 0.5;
  const auto all = static_cast<double>(curve.back().true_positives),
             others = static_cast<double>(curve.back().false_positives);
  const auto goodness = [&](double found, double wrong) -> std::array<double, 3> {  // compared in this order
    const double precision = found + wrong == 0 ? 1 : found / (found + wrong), recall = found / all;
    const auto& [true_negative, false_positive, false_negative, true_positive] = rule.cost;
    switch (rule.by) {
      case By::recall:
        return {recall >= rule.at ? 1.0 : 0.0, precision, found};
      case By::precision:
        return {precision >= rule.at ? 1 : precision - 1, found, 0};
      case By::cost:
        return {-(true_negative * (others - wrong) + false_positive * wrong + false_negative * (all - found) +
                  true_positive * found),
                found, -wrong};
      default:
        return {2 * found / (found + wrong + all), found, 0};
    }
  };
  const CurvePoint* chosen = nullptr;  // no row
  std::array<double, 3> best = goodness(0, 0);
  if (rule.by != By::cost) best[0] = -2;  // a threshold above all rows is of use for costs only
  for (const CurvePoint& point : curve) {
    const std::array<double, 3> own =
        goodness(static_cast<double>(point.true_positives), static_cast<double>(point.false_positives));
    if (own > best) best = own, chosen = &point;
  }
  if (chosen == nullptr) return std::nextafter(curve.front().threshold, std::numeric_limits<double>::infinity());
  // Slightly below the row, so that it stays positive where another executor or language rounds differently.
  const double next = chosen == &curve.back() ? 0 : chosen[1].threshold;
  return chosen->threshold - std::clamp((chosen->threshold - next) / 2, 0.0, kThresholdMargin);
}

}  // namespace graphrun
