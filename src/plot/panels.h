// panels.h: heat maps of matrices and images, one or several per page.
// Contract: a non-finite cell is left blank. All maps of a page share one colour scale. A map with too many cells to
// display is pooled: each drawn cell is the mean of the cells it covers. All sizes and values are valid.
// Not handled here: computation of the cells.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plot/drawing.h"
#include "plot/render.h"

namespace graphrun::plot {

struct HeatMap {
  std::string title, x_label, y_label;
  std::size_t width = 0, height = 0;
  std::vector<double> cells;               // (height, width), top row first
  std::vector<std::string> columns, rows;  // labels of the axes' cells; empty: no labels
  // Values printed in the cells if Panels::numbers is set; empty: the same as `cells`.
  std::vector<double> written;
  bool contours = false;  // contour lines at the ticks of the colour scale; not on a terminal
  // Rows of data on top of the cells, not on a terminal: positions in cells, from the upper left corner, and values.
  std::vector<Point> points = {};
  std::vector<double> point_values = {};
};

struct Panels {
  std::string title;
  std::vector<HeatMap> maps;
  std::size_t per_row = 1;
  bool numbers = false;    // print values in the cells if they fit
  bool scale = true;       // draw the colour bar next to the maps
  bool is_signed = false;  // diverging colours around zero, if there are cells of both signs
  bool is_3d = false;      // draw the maps as surfaces over a plane; on a terminal as maps
  std::string scale_label;
};

// Mean-pools the map to at most `columns` by `rows` cells.
HeatMap pooled(const HeatMap& map, std::size_t columns, std::size_t rows);

struct CellRange {
  double low = 0, high = 1;  // over all finite cells and points; symmetrical if signed
  bool is_signed = false;
  double share(double) const;  // position in the range, 0 to 1
  Colour colour(double) const;
};
CellRange cell_range(const Panels& panels);

std::string cell_number(double value);
inline double written_in(const HeatMap& map, std::size_t cell) {
  return map.written.empty() ? map.cells[cell] : map.written[cell];
}

Drawing draw(const Panels& panels);
std::string as_text(const Panels& panels, const TextOptions& options);

}  // namespace graphrun::plot
