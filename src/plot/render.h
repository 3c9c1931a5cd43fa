// render.h: a Figure as text for a terminal, and a Figure or any Drawing as SVG and as PNG.
// Contract: pure functions; the same figure gives the same bytes. The SVG stands alone: no script, nothing is fetched,
// and it is readable on light and on dark. Text of other hands is escaped. Leaves to others: files and terminals.
#pragma once

#include <string>

#include "plot/figure.h"

namespace graphrun::plot {

struct Drawing;

struct TextOptions {
  int columns = 80, rows = 20;  // columns of the whole, rows of the plot itself
  bool unicode = true;          // otherwise ASCII only
  bool colour = false;          // ANSI escapes
};

std::string as_text(const Figure& figure, const TextOptions& options);
std::string as_svg(const Figure& figure);
std::string as_svg(const Drawing& drawing);
std::string as_png(const Figure& figure);
std::string as_png(const Drawing& drawing);

}  // namespace graphrun::plot
