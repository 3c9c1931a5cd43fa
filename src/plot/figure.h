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
  double shade = -1;                 // 0 to 1: colour of the scale of heat maps (drawing.h), instead of `colour`
};

// A vertical axis of parallel coordinates: equidistant values, the first at y = 0 and the last at y = 1.
struct ParallelAxis {
  std::string label;
  std::vector<std::string> values;
};

struct Figure {
  std::string title;
  Axis x, y;
  std::vector<Series> series;
  std::vector<ParallelAxis> parallel = {};  // at x = 0, 1, ...; empty: x and y are ordinary axes
};

}  // namespace graphrun::plot
