// graph_figure.h: a directed graph as boxes with text in them, and its picture.
// Contract: edges lead to boxes of larger numbers (graph_layout.h, which also says what is too large). Any texts do:
// long ones are broken and cut. Leaves to others: what the boxes stand for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plot/drawing.h"
#include "plot/graph_layout.h"

namespace graphrun::plot {

struct GraphBox {
  std::string name, type;  // on the first line, to the left and to the right
  std::string formula;     // below it, in a font of its own
  std::vector<std::string> notes;
  std::size_t kind = 0;  // of GraphFigure::kinds
};

struct GraphKind {
  std::string name;        // in the legend, where there are boxes of it
  std::size_t colour = 0;  // of series
};

struct GraphFigure {
  std::string title;
  std::vector<std::string> subtitles;
  std::vector<GraphKind> kinds;
  std::vector<GraphBox> boxes;
  std::vector<GraphEdge> edges;
};

Drawing draw(const GraphFigure& figure);

}  // namespace graphrun::plot
