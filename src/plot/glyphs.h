// glyphs.h: a font of strokes for pictures that have no other: ASCII, all characters equally wide.
// Contract: strokes lie on a grid of 4 by 8 units, y downwards: capitals from 0 to the baseline at 6, descenders to 8.
// What is not ASCII is a box.
#pragma once

#include <string_view>
#include <vector>

#include "plot/drawing.h"

namespace graphrun::plot {

inline constexpr double kBaseline = 6;

std::vector<std::vector<Point>> glyph(char c);

}  // namespace graphrun::plot
