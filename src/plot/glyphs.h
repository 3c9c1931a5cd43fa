// glyphs.h: monospaced stroke font for ASCII, used where no other font is available.
// Contract: strokes are on a grid of 4 by 8 units, y downwards: capitals from 0 to the baseline at 6, descenders down
// to 8. Non-ASCII characters are drawn as a box.
#pragma once

#include <string_view>
#include <vector>

#include "plot/drawing.h"

namespace graphrun::plot {

inline constexpr double kBaseline = 6;

std::vector<std::vector<Point>> glyph(char c);

}  // namespace graphrun::plot
