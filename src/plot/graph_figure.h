// graph_figure.h: a directed graph as labelled boxes, and its drawing.
// Contract: each edge leads to a box with a larger index (see graph_layout.h, also for the size limit). Any text is
// valid: long ones are wrapped and truncated. Not handled here: meaning of the boxes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plot/drawing.h"
#include "plot/graph_layout.h"

namespace graphrun::plot {

struct GraphBox {
  std::string name, type;  // first line: name left-aligned, type right-aligned
  std::string formula;     // second line, in monospace
  std::vector<std::string> notes;
  std::size_t kind = 0;  // index into GraphFigure::kinds
};

struct GraphKind {
  std::string name;        // legend entry, shown if a box has this kind
  std::size_t colour = 0;  // index into the series colours
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
