// graph_layout.h: where the boxes of a directed graph go: in rows, each box below all those that lead to it.
// Contract: a pure function, the same places for the same graph, in time about linear in the boxes and in the rows that
// edges pass. No two boxes overlap. A line leaves the lower side of a box, goes down only, meets the upper side of
// another and passes through none. Every edge leads to a box of a larger number; others are a std::logic_error.
// Throws Error (kind input) where boxes and rows that edges pass are more than kMaxPlaces.
// Leaves to others: what is in the boxes (graph_figure.h).
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
  std::vector<Point> corners;  // of each box, the upper left
  // Of each edge: where its line is upright. Between two such points it is straight where one is above the other, and
  // bends where not. Edges of one box share what they can.
  std::vector<std::vector<Point>> lines;
};

GraphLayout lay_out(const std::vector<BoxSize>& boxes, const std::vector<GraphEdge>& edges);

}  // namespace graphrun::plot
