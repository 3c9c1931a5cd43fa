// contour.h: contour lines of a scalar field, by marching squares.
// Contract: a pure function. Values are located at cell centres, the first at (0.5, 0.5), with linear interpolation
// between them. A square with a non-finite corner has no line. The mean of the four corners resolves a saddle. Not
// handled here: choice of levels, and drawing (panels.h).
#pragma once

#include <cstddef>
#include <vector>

#include "plot/drawing.h"

namespace graphrun::plot {

// `cells`: (height, width). The last point of a closed line equals its first.
std::vector<std::vector<Point>> contour(const std::vector<double>& cells, std::size_t width, std::size_t height,
                                        double level);

}  // namespace graphrun::plot
