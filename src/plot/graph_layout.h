// graph_layout.h: layered layout of a directed graph: each box is below all its predecessors.
// Contract: a pure, deterministic function. Time is roughly linear in boxes plus rows crossed by edges. Boxes never
// overlap. A line starts at the lower side of a box, only goes down, ends at the upper side of another box and crosses
// no box. An edge must lead to a box with a larger index; otherwise throws std::logic_error. Throws Error (kind input)
// if the boxes plus the rows crossed by edges exceed kMaxPlaces.
// Not handled here: content of the boxes (graph_figure.h).
#pragma once

#include <cstddef>
#include <vector>

#include "plot/drawing.h"

namespace graphrun::plot {

inline constexpr std::size_t kMaxPlaces = 20'000;

struct BoxSize {
  double width, height;
};

struct GraphEdge {
  std::size_t from, to;
};

struct GraphLayout {
  double width = 0, height = 0;
  std::vector<Point> corners;  // upper left corner of each box
  // Ends of the vertical segments of each edge. Consecutive points are joined by a straight line if one is above the
  // other, otherwise by a curve. Edges of one box share segments where possible.
  std::vector<std::vector<Point>> lines;
};

GraphLayout lay_out(const std::vector<BoxSize>& boxes, const std::vector<GraphEdge>& edges);

}  // namespace graphrun::plot
