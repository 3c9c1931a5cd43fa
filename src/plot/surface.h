// surface.h: a heat map as a surface over a plane, in parallel projection.
#pragma once

#include "plot/panels.h"

namespace graphrun::plot {

// Draws the surface into the rectangle, whose upper left corner is `corner`: x to the right, y to the back, height and
// colour by value. Faces next to a cell without a value are omitted. Points of the map are dots.
void add_surface(Drawing& drawing, const HeatMap& map, const CellRange& range, Point corner, Point size);

}  // namespace graphrun::plot
