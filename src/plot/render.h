// render.h: renders a Figure as terminal text, and a Figure or any Drawing as SVG or PNG.
// Contract: pure functions; equal input gives identical bytes. The SVG is self-contained (no scripts, no external
// resources) and supports light and dark themes. Untrusted text is escaped. Not handled here: files and terminals.
#pragma once

#include <string>

#include "plot/figure.h"

namespace graphrun::plot {

struct Drawing;

struct TextOptions {
  int columns = 80, rows = 20;  // total columns; rows of the plot area
  bool unicode = true;          // false: ASCII only
  bool colour = false;          // ANSI escape sequences
};

std::string as_text(const Figure& figure, const TextOptions& options);
std::string as_svg(const Figure& figure);
std::string as_svg(const Drawing& drawing);
std::string as_png(const Figure& figure);
std::string as_png(const Drawing& drawing);

}  // namespace graphrun::plot
