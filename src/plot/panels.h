// panels.h: pictures made of cells: matrices and images as heat maps, one or several on a page.
// Contract: a cell that is not finite is empty. All maps of a page share one scale of colours; a map of more cells than
// can be seen is pooled: each cell drawn is the mean of those it stands for. Any sizes and values do.
// Leaves to others: what is in the cells.
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
  std::vector<double> cells;               // (height, width), the upper row first
  std::vector<std::string> columns, rows;  // names beside the cells; empty: none
  // In the cells, where Panels::numbers asks for them, in place of what the colours say; empty: the same.
  std::vector<double> written;
  bool contours = false;  // lines over it, at the numbers of the scale; not on a terminal
};

struct Panels {
  std::string title;
  std::vector<HeatMap> maps;
  std::size_t per_row = 1;
  bool numbers = false;  // written in the cells where they have room
  bool scale = true;     // beside the maps: what the colours say
  std::string scale_label;
};

// Of so many cells at most, in either direction.
HeatMap pooled(const HeatMap& map, std::size_t columns, std::size_t rows);

struct CellRange {
  double low = 0, high = 1;    // of all cells that are finite
  double share(double) const;  // 0 to 1
};
CellRange cell_range(const Panels& panels);

std::string cell_number(double value);
inline double written_in(const HeatMap& map, std::size_t cell) {
  return map.written.empty() ? map.cells[cell] : map.written[cell];
}

Drawing draw(const Panels& panels);
std::string as_text(const Panels& panels, const TextOptions& options);

}  // namespace graphrun::plot
