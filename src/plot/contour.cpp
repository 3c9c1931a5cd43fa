#include "plot/contour.h"

#include <cmath>
#include <map>

namespace graphrun::plot {
namespace {

// Edge of a square, numbered by its first cell: 2 * cell points right, 2 * cell + 1 points down.
using Side = std::size_t;

class Marching {
 public:
  Marching(const std::vector<double>& cells, std::size_t width, std::size_t height, double level)
      : cells_(cells), width_(width), height_(height), level_(level) {}

  std::vector<std::vector<Point>> run() {
    for (std::size_t y = 0; y + 1 < height_; ++y)
      for (std::size_t x = 0; x + 1 < width_; ++x) cross(y * width_ + x);
    std::vector<std::vector<Point>> lines;
    // Open lines first, each from an end; the remaining ones are closed.
    for (const bool closed : {false, true}) {
      for (const auto& [side, next] : joined_)
        if (!seen_.contains(side) && (closed || next.size() == 1)) lines.push_back(follow(side, closed));
    }
    return lines;
  }

 private:
  void cross(std::size_t cell) {
    // Corners clockwise from the upper left, and the edge from each corner to the next.
    const double corners[4] = {cells_[cell], cells_[cell + 1], cells_[cell + width_ + 1], cells_[cell + width_]};
    const Side sides[4] = {2 * cell, 2 * (cell + 1) + 1, 2 * (cell + width_), 2 * cell + 1};
    std::vector<Side> crossed;
    bool above[4];
    for (int i = 0; i < 4; ++i) {
      if (!std::isfinite(corners[i])) return;
      above[i] = corners[i] > level_;
    }
    for (int i = 0; i < 4; ++i)
      if (above[i] != above[(i + 1) % 4]) crossed.push_back(sides[i]);
    if (crossed.size() == 2) return join(crossed[0], crossed[1]);
    if (crossed.size() != 4) return;
    const bool middle = corners[0] / 4 + corners[1] / 4 + corners[2] / 4 + corners[3] / 4 > level_;
    const bool around_first = middle != above[0];  // saddle: cuts off the corners that differ from the mean
    join(sides[0], sides[around_first ? 3 : 1]);
    join(sides[2], sides[around_first ? 1 : 3]);
  }
  void join(Side one, Side other) {
    joined_[one].push_back(other);
    joined_[other].push_back(one);
  }

  std::vector<Point> follow(Side from, bool closed) {
    std::vector<Point> line;
    const Side first = from;
    for (bool on = true; on;) {
      seen_[from] = true;
      line.push_back(point(from));
      on = false;
      for (const Side next : joined_[from]) {
        if (seen_.contains(next)) continue;
        from = next;
        on = true;
        break;
      }
    }
    if (closed) line.push_back(point(first));
    return line;
  }

  Point point(Side side) const {
    const std::size_t cell = side / 2, other = side % 2 == 0 ? cell + 1 : cell + width_;
    const double a = cells_[cell], b = cells_[other];
    const double share = b / 2 - a / 2 == 0 ? 0.5 : (level_ / 2 - a / 2) / (b / 2 - a / 2);
    const std::size_t row = cell / width_;
    const double x = static_cast<double>(cell % width_) + 0.5, y = static_cast<double>(row) + 0.5;
    return side % 2 == 0 ? Point{x + share, y} : Point{x, y + share};
  }

  const std::vector<double>& cells_;
  std::size_t width_, height_;
  double level_;
  std::map<Side, std::vector<Side>> joined_;  // one or two neighbours per edge
  std::map<Side, bool> seen_;
};

}  // namespace

std::vector<std::vector<Point>> contour(const std::vector<double>& cells, std::size_t width, std::size_t height,
                                        double level) {
  return Marching(cells, width, height, level).run();
}

}  // namespace graphrun::plot
