// figure.h: a picture as plain data: axes and the lines and points in them.
// Contract: x and y of a series have equal lengths. A point that is not finite breaks its line; one that a log axis
// cannot show is left out. Leaves to others: where things go (drawing.h, text.cpp) and files (render.h).
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
  std::size_t colour = 0, dash = 0;  // any number: the looks repeat
  bool dots = false;                 // points, and no line through them
  bool marks = false;                // both: the line leaves out what others of the figure have
};

struct Figure {
  std::string title;
  Axis x, y;
  std::vector<Series> series;
};

}  // namespace graphrun::plot
