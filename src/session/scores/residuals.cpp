#include "session/scores/residuals.h"

#include <algorithm>
#include <cmath>

namespace graphrun {
namespace {

constexpr std::size_t kMaxSorted = std::size_t{1} << 24;  // residuals: 128 MiB
constexpr double kShares[] = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};
constexpr double kNoZero = 1e-7;  // relative to the largest: smaller values may be zero in single precision

// Interpolates between the two nearest values, as NumPy does.
double quantile(std::span<const double> sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1), below = std::floor(at);
  const auto i = static_cast<std::size_t>(below);
  if (i + 1 >= sorted.size()) return sorted.back();
  return sorted[i] + (at - below) * (sorted[i + 1] - sorted[i]);
}

}  // namespace

Residuals::Residuals(std::size_t rows, std::size_t columns) : columns_(columns) {
  if (rows * columns > kMaxSorted) return;
  residuals_.resize(columns);
  for (std::vector<double>& one : residuals_) one.reserve(rows);
}

void Residuals::add(std::span<const double> predicted, std::span<const double> targets) {
  const std::size_t width = columns_.size();
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const std::size_t column = i % width;
    if (column == 0) ++seen_;
    Sums& sums = columns_[column];
    const double target = targets[i], residual = predicted[i] - target, size = std::abs(target);
    const double from_mean = target - sums.mean;
    sums.mean += from_mean / static_cast<double>(seen_);
    sums.squares += from_mean * (target - sums.mean);
    sums.smallest = seen_ == 1 ? size : std::min(sums.smallest, size);
    sums.largest = std::max(sums.largest, size);
    sums.residuals += residual;
    sums.sizes += std::abs(residual);
    sums.squared += residual * residual;
    sums.shares += std::abs(residual) / size;
    if (!residuals_.empty()) residuals_[column].push_back(residual);
  }
}

RegressionScores Residuals::scores() const {
  RegressionScores scores;
  const auto rows = static_cast<double>(seen_);
  const auto number = [](const ColumnScores& of, int i) {
    return i == 0 ? of.r2 : i == 1 ? of.mae : i == 2 ? of.rmse : i == 3 ? of.mape : of.mean_residual;
  };
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Sums& sums = columns_[c];
    ColumnScores& one = scores.columns.emplace_back();
    // Same as scikit-learn if the target is constant.
    one.r2 = seen_ < 2 ? kNoScore : sums.squares > 0 ? 1 - sums.squared / sums.squares : sums.squared == 0 ? 1 : 0;
    one.mae = sums.sizes / rows;
    one.rmse = std::sqrt(sums.squared / rows);
    one.mape = sums.smallest > kNoZero * sums.largest ? sums.shares / rows : kNoScore;
    one.mean_residual = sums.residuals / rows;
    if (residuals_.empty()) continue;
    std::vector<double> sorted = residuals_[c];
    std::sort(sorted.begin(), sorted.end());
    for (const double share : kShares) one.quantiles.emplace_back(share, quantile(sorted, share));
  }
  double means[5] = {};
  for (const ColumnScores& one : scores.columns)
    for (int i = 0; i < 5; ++i) means[i] += number(one, i) / static_cast<double>(scores.columns.size());
  scores.mean = {means[0], means[1], means[2], means[3], means[4], {}};
  return scores;
}

}  // namespace graphrun
