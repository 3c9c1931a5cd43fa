// panels_text.cpp: renders Panels for a terminal: cells as shades, or as numbers if requested and they fit.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graphrun/error.h"
#include "plot/panels.h"

namespace graphrun::plot {
namespace {

using Lines = std::vector<std::string>;

constexpr std::size_t kNameWidth = 12;

std::string to_width(const std::string& text, std::size_t width) {
  const std::string kept = shortened(text, width);
  return kept + std::string(width - std::min(width, characters(kept)), ' ');
}

std::string to_right(const std::string& text, std::size_t width) {
  const std::string kept = shortened(text, width);
  return std::string(width - std::min(width, characters(kept)), ' ') + kept;
}

std::size_t longest(const Lines& texts) {
  std::size_t most = 0;
  for (const std::string& text : texts) most = std::max(most, characters(text));
  return most;
}

const std::vector<std::string>& shades(bool unicode) {
  static const std::vector<std::string> blocks = {" ", "░", "▒", "▓", "█"},
                                        marks = {" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"};
  return unicode ? blocks : marks;
}

std::string shade_of(double value, const CellRange& range, bool unicode) {
  if (!std::isfinite(value)) return "?";
  const std::vector<std::string>& all = shades(unicode);
  const auto place = static_cast<std::size_t>(range.share(value) * static_cast<double>(all.size()));
  return all[std::min(place, all.size() - 1)];
}

Lines printable_names(const Lines& names) {
  Lines result;
  for (const std::string& name : names) result.push_back(shortened(printable(name), kNameWidth));
  return result;
}

Lines map_as_numbers(const HeatMap& map, std::size_t cell, std::size_t margin) {
  Lines lines;
  const Lines rows = printable_names(map.rows), columns = printable_names(map.columns);
  std::string head(margin, ' ');
  for (const std::string& name : columns) head += " " + to_right(name, cell);
  if (!columns.empty()) lines.push_back(head);
  for (std::size_t y = 0; y < map.height; ++y) {
    std::string line = to_right(y < rows.size() ? rows[y] : "", margin);
    for (std::size_t x = 0; x < map.width; ++x) {
      const double value = written_in(map, y * map.width + x);
      line += " " + to_right(std::isfinite(value) ? cell_number(value) : "-", cell);
    }
    lines.push_back(line);
  }
  return lines;
}

Lines map_as_shades(const HeatMap& map, const CellRange& range, std::size_t margin, bool unicode) {
  Lines lines;
  const Lines rows = printable_names(map.rows), columns = printable_names(map.columns);
  for (std::size_t y = 0; y < map.height; ++y) {
    std::string line = to_right(y < rows.size() ? rows[y] : "", margin) + (margin > 0 ? " " : "");
    for (std::size_t x = 0; x < map.width; ++x) {
      const std::string mark = shade_of(map.cells[y * map.width + x], range, unicode);
      line += mark + mark;
    }
    lines.push_back(line);
  }
  std::string names(margin > 0 ? margin + 1 : 0, ' ');
  const std::size_t start = names.size();
  for (std::size_t x = 0; x < columns.size(); ++x) {
    if (columns[x].empty() || characters(names) > start + 2 * x) continue;
    names += std::string(start + 2 * x - characters(names), ' ') + columns[x] + " ";
  }
  if (!columns.empty()) lines.push_back(names);
  return lines;
}

Lines block_of(const HeatMap& whole, const CellRange& range, const Panels& panels, const TextOptions& options,
               std::size_t width, bool& has_shades) {
  const std::size_t margin = longest(printable_names(whole.rows));
  Lines lines;
  if (!whole.title.empty()) lines.push_back(shortened(printable(whole.title), width));
  if (!whole.y_label.empty()) lines.push_back(shortened(printable(whole.y_label), width));
  std::size_t cell = 1;
  if (panels.numbers) {
    for (std::size_t i = 0; i < whole.cells.size(); ++i) {
      const double value = written_in(whole, i);
      cell = std::max(cell, std::isfinite(value) ? cell_number(value).size() : 1);
    }
    cell = std::max(cell, std::min<std::size_t>(longest(printable_names(whole.columns)), 8));
  }
  const bool numbers = panels.numbers && margin + whole.width * (cell + 1) <= width;
  has_shades = has_shades || !numbers;
  const std::size_t most = std::max<std::size_t>(1, (width > margin + 1 ? width - margin - 1 : 1) / 2);
  const Lines cells =
      numbers ? map_as_numbers(whole, cell, margin)
              : map_as_shades(pooled(whole, most, std::max<std::size_t>(most, 8)), range, margin, options.unicode);
  lines.insert(lines.end(), cells.begin(), cells.end());
  if (!whole.x_label.empty())
    lines.push_back(std::string(margin + 1, ' ') + shortened(printable(whole.x_label), width));
  return lines;
}

}  // namespace

std::string as_text(const Panels& panels, const TextOptions& options) {
  const CellRange range = cell_range(panels);
  const auto columns = static_cast<std::size_t>(std::max(options.columns, 16));
  const std::size_t per_row = std::max<std::size_t>(1, std::min(panels.per_row, columns / 18));
  const std::size_t width = (columns + 2) / per_row - 2;
  std::string text;
  bool has_shades = false;
  if (!panels.title.empty()) text += shortened(printable(panels.title), columns) + "\n";
  for (std::size_t first = 0; first < panels.maps.size(); first += per_row) {
    std::vector<Lines> blocks;
    std::size_t height = 0;
    for (std::size_t i = first; i < std::min(first + per_row, panels.maps.size()); ++i) {
      blocks.push_back(block_of(panels.maps[i], range, panels, options, width, has_shades));
      height = std::max(height, blocks.back().size());
    }
    for (std::size_t y = 0; y < height; ++y) {
      std::string line;
      for (const Lines& block : blocks) line += to_width(y < block.size() ? block[y] : "", width) + "  ";
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  }
  if (panels.scale && has_shades) {
    const std::vector<std::string>& all = shades(options.unicode);
    text += fmt::format("'{}': {:.3g}   '{}': {:.3g}{}{}\n", all.front(), range.low, all.back(), range.high,
                        panels.scale_label.empty() ? "" : "   ", panels.scale_label);
  }
  return text;
}

}  // namespace graphrun::plot
