#include "plot/surface.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace graphrun::plot {
namespace {

constexpr std::size_t kMeshCells = 40;  // per direction; more would hide the mesh
constexpr double kTextSize = 11, kHeight = 0.65;

// Parallel projection of the unit cube. The camera looks from the front left, from 30 degrees above the plane.
struct View {
  Point centre;
  double unit;  // page points per edge of the plane

  static constexpr double kSide = 37.5 * std::numbers::pi / 180, kUp = 30 * std::numbers::pi / 180;
  double depth(double x, double y) const { return (x - 0.5) * std::sin(kSide) + (y - 0.5) * std::cos(kSide); }
  Point at(double x, double y, double z) const {
    const double right = (x - 0.5) * std::cos(kSide) - (y - 0.5) * std::sin(kSide);
    const double up = depth(x, y) * std::sin(kUp) + (z - 0.5) * kHeight * std::cos(kUp);
    return {centre.x + unit * right, centre.y - unit * up};
  }
};

// The largest projection of the cube that fits, with space for labels below.
View view_in(Point corner, Point size) {
  const View one{{0, 0}, 1};
  const double width = 2 * one.at(1, 0, 0).x, height = one.at(0, 0, 0).y - one.at(1, 1, 1).y, labels = 2 * kTextSize;
  const double unit = std::min(size.x / width, (size.y - labels) / height);
  return {{corner.x + size.x / 2, corner.y + unit * height / 2}, unit};
}

using Painted = std::pair<double, Stroke>;  // with its depth

void add_faces(std::vector<Painted>& painted, const HeatMap& map, const CellRange& range, const View& view) {
  const auto across = [&](std::size_t x) { return (static_cast<double>(x) + 0.5) / static_cast<double>(map.width); };
  const auto back = [&](std::size_t y) { return 1 - (static_cast<double>(y) + 0.5) / static_cast<double>(map.height); };
  for (std::size_t y = 0; y + 1 < map.height; ++y) {
    for (std::size_t x = 0; x + 1 < map.width; ++x) {
      Stroke face{{}, Ink::own, 0.4};
      double sum = 0;
      for (const auto& [dx, dy] : {std::pair{0u, 0u}, {1u, 0u}, {1u, 1u}, {0u, 1u}}) {
        const double value = map.cells[(y + dy) * map.width + x + dx];
        sum += value;
        face.points.push_back(view.at(across(x + dx), back(y + dy), range.share(value)));
      }
      if (!std::isfinite(sum)) continue;
      face.points.push_back(face.points.front());
      face.fill = range.colour(sum / 4);
      face.own = mixed(*face.fill, kTextColour, 0.35);
      painted.emplace_back(view.depth((across(x) + across(x + 1)) / 2, (back(y) + back(y + 1)) / 2), std::move(face));
    }
  }
}

void add_dots_3d(std::vector<Painted>& painted, const HeatMap& map, const CellRange& range, const View& view) {
  for (std::size_t i = 0; i < map.points.size(); ++i) {
    const double x = map.points[i].x / static_cast<double>(map.width),
                 y = 1 - map.points[i].y / static_cast<double>(map.height), value = map.point_values[i];
    painted.emplace_back(view.depth(x, y), Stroke{{view.at(x, y, range.share(value))},
                                                  Ink::own,
                                                  3.5,
                                                  0,
                                                  0,
                                                  true,
                                                  mixed(range.colour(value), kTextColour, 0.3)});
  }
}

void add_edge(Drawing& drawing, const std::string& name, const std::vector<std::string>& ends, Point from, Point to) {
  const double below = kTextSize + 2;
  drawing.labels.push_back({{(from.x + to.x) / 2, (from.y + to.y) / 2 + below + 6},
                            shortened(name, 20),
                            kTextSize,
                            from.x < to.x ? Anchor::start : Anchor::end});
  if (ends.empty()) return;
  drawing.labels.push_back({{to.x, to.y + below}, ends.back(), kTextSize, Anchor::middle});
}

}  // namespace

void add_surface(Drawing& drawing, const HeatMap& whole, const CellRange& range, Point corner, Point size) {
  const HeatMap map = pooled(whole, kMeshCells, kMeshCells);
  const View view = view_in(corner, size);
  const Point front = view.at(0, 0, 0), right = view.at(1, 0, 0), left = view.at(0, 1, 0), back = view.at(1, 1, 0);
  drawing.strokes.push_back({{right, back, left}, Ink::grid, 1});
  drawing.strokes.push_back({{left, view.at(0, 1, 1), view.at(1, 1, 1), view.at(1, 0, 1), right}, Ink::grid, 1});
  drawing.strokes.push_back({{back, view.at(1, 1, 1)}, Ink::grid, 1});
  std::vector<Painted> painted;
  add_faces(painted, map, range, view);
  add_dots_3d(painted, map, range, view);
  std::ranges::stable_sort(painted, std::ranges::greater{}, &Painted::first);  // the nearest last
  for (Painted& one : painted) drawing.strokes.push_back(std::move(one.second));
  drawing.strokes.push_back({{left, front, right}, Ink::axis, 1});
  std::vector<std::string> rows(whole.rows.rbegin(), whole.rows.rend());
  add_edge(drawing, map.x_label, whole.columns, front, right);
  add_edge(drawing, map.y_label, rows, front, left);
  if (!whole.columns.empty() && !rows.empty())
    drawing.labels.push_back(
        {{front.x, front.y + kTextSize + 2}, whole.columns.front() + ", " + rows.front(), kTextSize, Anchor::middle});
}

}  // namespace graphrun::plot
