// contour.h: the lines along which a field of numbers has a value, by marching squares.
// Contract: a pure function. Numbers stand at the middles of cells, (0.5, 0.5) being that of the first; between them
// they change linearly. There is no line where one of four neighbours is not finite. Of a saddle the mean of the four
// decides. Leaves to others: which values, and how lines are drawn (panels.h).
#pragma once

#include <cstddef>
#include <vector>

#include "plot/drawing.h"

namespace graphrun::plot {

// `cells`: (height, width). A line that is closed ends where it begins.
std::vector<std::vector<Point>> contour(const std::vector<double>& cells, std::size_t width, std::size_t height,
                                        double level);

}  // namespace graphrun::plot
