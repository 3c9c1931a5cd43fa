// figure.h: a line or scatter plot as plain data.
// Contract: x and y of a series have equal lengths. A non-finite point breaks its line; a point that a log axis cannot
// show is skipped. Not handled here: layout (drawing.h, text.cpp) and files (render.h).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace graphrun::plot {

struct Axis {
  std::string label;
  bool log = false;
};

struct Series {
  std::string name;
  std::vector<double> x, y;
  std::size_t colour = 0, dash = 0;  // style indices, which wrap around
  bool dots = false;                 // points without a line
  bool marks = false;                // line and points, for a series that lacks x values of other series
};

struct Figure {
  std::string title;
  Axis x, y;
  std::vector<Series> series;
};

}  // namespace graphrun::plot
