// curve_points.h: points of a training's curves and frames of its weights, limited to as many as the page draws.
// Contract: beyond `max` points, drops every other one and doubles the sampling interval; always keeps the last. A
// point with the same step as its predecessor replaces it. Points are JSON.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace graphrun::cli {

class CurvePoints {
 public:
  explicit CurvePoints(std::size_t max = 4000) : max_(max) {}

  // Returns whether the next report becomes a point.
  bool wants(bool is_last) { return seen_++ % stride_ == 0 || is_last; }

  void add(const std::string& point, std::uint64_t step) {
    if (!points_.empty() && last_step_ == step) points_.pop_back();
    points_.push_back(point);
    last_step_ = step;
    if (points_.size() <= max_) return;
    const std::size_t half = points_.size() / 2;  // keeps the last point
    for (std::size_t i = 1; i < half; ++i) points_[i] = std::move(points_[2 * i]);
    points_[half] = std::move(points_.back());
    points_.resize(half + 1);
    stride_ *= 2;
  }

  const std::vector<std::string>& all() const { return points_; }

 private:
  std::size_t max_;
  std::vector<std::string> points_;
  std::uint64_t stride_ = 1, seen_ = 0, last_step_ = 0;
};

}  // namespace graphrun::cli
