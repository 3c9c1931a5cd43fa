#include "plot/panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "plot/contour.h"
#include "plot/scale.h"
#include "plot/surface.h"

namespace graphrun::plot {
namespace {

constexpr double kWords = 11, kHeading = 15, kRim = 14, kBetween = 18;
constexpr std::size_t kMaxCells = 160;  // per direction; smaller cells would be invisible

// Text colour with enough contrast on `fill`.
Colour ink_on(Colour fill) {
  const auto bright = [](unsigned rgb) {
    return 0.299 * (rgb >> 16 & 255u) + 0.587 * (rgb >> 8 & 255u) + 0.114 * (rgb & 255u) > 140;
  };
  return {bright(fill.light) ? 0x222222u : 0xffffffu, bright(fill.dark) ? 0x111111u : 0xe6e6e6u};
}

double wide(std::string_view text) {
  return width_of(text, kWords);
}

Stroke contour_stroke(std::vector<Point> points, const CellRange& range, double level) {
  return {std::move(points), Ink::own, 1.1, 0, 0, false, ink_on(range.colour(level))};
}

double length_of(const std::vector<Point>& line) {
  double length = 0;
  for (std::size_t i = 1; i < line.size(); ++i)
    length += std::hypot(line[i].x - line[i - 1].x, line[i].y - line[i - 1].y);
  return length;
}

// Finds the flattest stretch of a line, at least `half` wide to either side and clear of other labels.
std::optional<Point> flattest(const std::vector<Point>& line, double half, const std::vector<Point>& taken) {
  std::optional<Point> best;
  double least = 1e300;
  for (const Point& at : line) {
    const auto is_near = [&](const Point& other) {
      return std::abs(other.x - at.x) < 2.5 * half && std::abs(other.y - at.y) < 1.4 * kWords;
    };
    if (std::ranges::any_of(taken, is_near)) continue;
    double low = at.y, high = at.y, left = at.x, right = at.x;
    for (const Point& other : line) {
      if (std::abs(other.x - at.x) > half || std::abs(other.y - at.y) > 3 * half) continue;
      low = std::min(low, other.y);
      high = std::max(high, other.y);
      left = std::min(left, other.x);
      right = std::max(right, other.x);
    }
    const double steepness = high - low + 2 * (2 * half - (right - left));
    if (steepness < least) least = steepness, best = at;
  }
  return best;
}

double widest(const std::vector<std::string>& names) {
  double most = 0;
  for (const std::string& name : names) most = std::max(most, wide(shortened(name, 14)));
  return most;
}

// Margins around the cells of a map.
struct Margins {
  double left, top, bottom;
};

Margins margins_of(const HeatMap& map) {
  return {widest(map.rows) + (map.rows.empty() ? 0 : 6) + (map.y_label.empty() ? 0 : kWords + 8),
          map.title.empty() ? 4 : kWords + 7,
          (map.columns.empty() ? 0 : kWords + 6) + (map.x_label.empty() ? 2 : kWords + 9)};
}

bool numbers_fit(const HeatMap& map, Point cell) {
  for (std::size_t i = 0; i < map.cells.size(); ++i)
    if (std::isfinite(map.cells[i]) && wide(cell_number(written_in(map, i))) >= cell.x) return false;
  return cell.y > kWords;
}

void add_cells(Drawing& drawing, const HeatMap& map, const CellRange& range, Point corner, Point cell, bool numbers) {
  for (std::size_t y = 0; y < map.height; ++y) {
    const double top = corner.y + static_cast<double>(y) * cell.y;
    for (std::size_t x = 0; x < map.width;) {
      const double value = map.cells[y * map.width + x];
      const std::size_t begin = x++;
      if (!std::isfinite(value)) continue;
      const Colour fill = range.colour(value);
      const double left = corner.x + static_cast<double>(begin) * cell.x;
      const std::string number = numbers ? cell_number(written_in(map, y * map.width + begin)) : "";
      if (numbers)
        drawing.labels.push_back({{left + cell.x / 2, top + cell.y / 2 + 0.36 * kWords},
                                  number,
                                  kWords,
                                  Anchor::middle,
                                  false,
                                  ink_on(fill)});
      const auto is_same = [&](double other) {
        return std::isfinite(other) && range.colour(other).light == fill.light;
      };
      while (!numbers && x < map.width && is_same(map.cells[y * map.width + x])) ++x;
      drawing.areas.push_back({{left, top}, {static_cast<double>(x - begin) * cell.x, cell.y}, fill});
    }
  }
}

// Draws as many names as fit.
void add_names(Drawing& drawing, const HeatMap& map, Point corner, Point cell) {
  const double bottom = corner.y + cell.y * static_cast<double>(map.height);
  double taken = -1e9;
  for (std::size_t i = 0; i < map.columns.size(); ++i) {
    const double middle = corner.x + (static_cast<double>(i) + 0.5) * cell.x;
    const std::string name = shortened(map.columns[i], 14);
    if (name.empty() || middle - wide(name) / 2 < taken + 4) continue;
    drawing.labels.push_back({{middle, bottom + kWords + 4}, name, kWords, Anchor::middle});
    taken = middle + wide(name) / 2;
  }
  taken = -1e9;
  for (std::size_t i = 0; i < map.rows.size(); ++i) {
    const double middle = corner.y + (static_cast<double>(i) + 0.5) * cell.y;
    if (map.rows[i].empty() || middle < taken + kWords + 1) continue;
    drawing.labels.push_back({{corner.x - 6, middle + 0.36 * kWords}, shortened(map.rows[i], 14), kWords, Anchor::end});
    taken = middle;
  }
}

// Ticks of the colour bar.
std::vector<Tick> levels_of(const CellRange& range, int labels) {
  const std::vector<double> ends = {range.low, range.high};
  std::vector<Tick> levels = make_scale({&ends}, false, labels, 0).ticks;
  std::erase_if(levels, [&](const Tick& tick) {
    return tick.label.empty() || tick.value < range.low || tick.value > range.high;
  });
  return levels;
}

constexpr int kScaleLabels = 5, kContourLabels = 8;

void add_scale(Drawing& drawing, const CellRange& range, bool contours, double left, double top, double bottom) {
  constexpr int kSteps = 41;
  const double step = (bottom - top) / kSteps;
  for (int i = 0; i < kSteps; ++i)
    drawing.areas.push_back({{left, bottom - (i + 1) * step},
                             {12, step},
                             range.colour(range.low + (range.high - range.low) * i / (kSteps - 1))});
  for (const Tick& tick : levels_of(range, contours ? kContourLabels : kScaleLabels)) {
    const double y = bottom - range.share(tick.value) * (bottom - top);
    if (contours) drawing.strokes.push_back(contour_stroke({{left, y}, {left + 12, y}}, range, tick.value));
    drawing.labels.push_back({{left + 17, y + 0.36 * kWords}, tick.label, kWords});
  }
}

// Contour lines at the ticks of the colour bar; the longest line of each level is labelled if it fits.
void add_contours(Drawing& drawing, const HeatMap& map, const CellRange& range, Point corner, Point cell) {
  std::vector<Point> taken;  // positions of labels
  for (const Tick& tick : levels_of(range, kContourLabels)) {
    std::vector<std::vector<Point>> lines = contour(map.cells, map.width, map.height, tick.value);
    for (auto& line : lines)
      for (Point& point : line) point = {corner.x + point.x * cell.x, corner.y + point.y * cell.y};
    const auto longest = std::ranges::max_element(lines, {}, &length_of);
    for (auto line = lines.begin(); line != lines.end(); ++line) {
      std::optional<Point> middle;
      const double half = wide(tick.label) / 2 + 2;
      if (line == longest && length_of(*line) > 8 * half) middle = flattest(*line, half, taken);
      std::vector<Point> part;
      for (const Point& point : *line) {
        if (!middle || std::abs(point.x - middle->x) > half || std::abs(point.y - middle->y) > 0.6 * kWords) {
          part.push_back(point);
        } else if (!part.empty()) {
          drawing.strokes.push_back(contour_stroke(std::exchange(part, {}), range, tick.value));
        }
      }
      if (!part.empty()) drawing.strokes.push_back(contour_stroke(std::move(part), range, tick.value));
      if (!middle) continue;
      taken.push_back(*middle);
      drawing.labels.push_back({{middle->x, middle->y + 0.36 * kWords},
                                tick.label,
                                kWords - 1,
                                Anchor::middle,
                                false,
                                ink_on(range.colour(tick.value))});
    }
  }
}

// A dot in the colour of its value, on a larger one in the colour of text.
void add_points(Drawing& drawing, const HeatMap& map, const CellRange& range, Point corner, Point cell) {
  for (std::size_t i = 0; i < map.points.size(); ++i) {
    const Point at{corner.x + map.points[i].x * cell.x, corner.y + map.points[i].y * cell.y};
    drawing.strokes.push_back({{at}, Ink::own, 4.5, 0, 0, true, kTextColour});
    drawing.strokes.push_back({{at}, Ink::own, 3, 0, 0, true, range.colour(map.point_values[i])});
  }
}

}  // namespace

HeatMap pooled(const HeatMap& map, std::size_t columns, std::size_t rows) {
  const auto parts = [](std::size_t size, std::size_t most) {
    return (size + most - 1) / std::max<std::size_t>(most, 1);
  };
  const std::size_t across = std::max<std::size_t>(1, parts(map.width, columns)),
                    down = std::max<std::size_t>(1, parts(map.height, rows));
  if (across == 1 && down == 1) return map;
  HeatMap small = map;
  small.width = parts(map.width, across);
  small.height = parts(map.height, down);
  small.cells.assign(small.width * small.height, 0);
  for (Point& point : small.points)
    point = {point.x / static_cast<double>(across), point.y / static_cast<double>(down)};
  small.written.clear();  // not meaningful as means
  std::vector<double> counts(small.cells.size());
  for (std::size_t i = 0; i < map.cells.size(); ++i) {
    if (!std::isfinite(map.cells[i])) continue;
    const std::size_t to = i / map.width / down * small.width + i % map.width / across;
    small.cells[to] += (map.cells[i] - small.cells[to]) / ++counts[to];
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) small.cells[i] = std::nan("");
  }
  const auto first_of_each = [](std::vector<std::string>& names, std::size_t part) {
    for (std::size_t i = 0; i * part < names.size(); ++i) names[i] = names[i * part];
    names.resize((names.size() + part - 1) / part);
  };
  first_of_each(small.columns, across);
  first_of_each(small.rows, down);
  return small;
}

double CellRange::share(double value) const {
  const double size = high / 2 - low / 2;  // halved to avoid overflow
  return size > 0 ? std::clamp((value / 2 - low / 2) / size, 0.0, 1.0) : 0.5;
}

Colour CellRange::colour(double value) const {
  return is_signed ? signed_shade(share(value)) : shade(share(value));
}

CellRange cell_range(const Panels& panels) {
  CellRange range;
  bool any = false;
  for (const HeatMap& map : panels.maps) {
    for (const std::vector<double>* values : {&map.cells, &map.point_values}) {
      for (const double value : *values) {
        if (!std::isfinite(value)) continue;
        range.low = any ? std::min(range.low, value) : value;
        range.high = any ? std::max(range.high, value) : value;
        any = true;
      }
    }
  }
  range.is_signed = panels.is_signed && range.low < 0 && range.high > 0;
  if (range.is_signed) range.high = std::max(range.high, -range.low), range.low = -range.high;
  return range;
}

std::string cell_number(double value) {
  return value == std::floor(value) && std::abs(value) < 1e9 ? fmt::format("{:.0f}", value)
                                                             : fmt::format("{:.3g}", value);
}

Drawing draw(const Panels& panels) {
  Drawing drawing;
  drawing.title = panels.title;
  Panels shown = panels;
  for (HeatMap& map : shown.maps) map = pooled(map, kMaxCells, kMaxCells);
  const CellRange range = cell_range(shown);  // after pooling
  const double right = drawing.width - kRim - (panels.scale ? 70 : 0);
  double top = kRim;
  if (!panels.title.empty()) {
    drawing.labels.push_back({{kRim, top + 0.8 * kHeading}, shortened(panels.title, 66), kHeading});
    top += kHeading + 8;
  }
  if (!panels.scale_label.empty()) top += kWords;
  const std::size_t per_row = std::max<std::size_t>(1, panels.per_row);
  const double slot = (right - kRim + kBetween) / static_cast<double>(per_row) - kBetween;
  double bottom = top, first_bottom = top, first_top = top, end_of_maps = kRim;
  for (std::size_t i = 0; i < panels.maps.size(); ++i) {
    const HeatMap& map = shown.maps[i];
    if (i % per_row == 0) top = i == 0 ? top : bottom + 4;
    const Margins room = margins_of(map);
    const double across = std::max(slot - room.left, 20.0);
    const auto width = static_cast<double>(std::max<std::size_t>(map.width, 1)),
               height = static_cast<double>(std::max<std::size_t>(map.height, 1));
    // Cells are square if the page has enough space; long matrices are stretched to fit.
    const double side = std::min({across / width, 420 / height, 60.0});
    const Point cell{std::max(side, std::min(across, 160.0) / width / 4), std::max(side, 40 / height)};
    const Point corner{kRim + static_cast<double>(i % per_row) * (slot + kBetween) + room.left, top + room.top};
    const Point end{corner.x + cell.x * width, corner.y + cell.y * height};
    if (panels.is_3d) {
      add_surface(drawing, map, range, corner, {end.x - corner.x, end.y - corner.y});
    } else {
      add_cells(drawing, map, range, corner, cell, panels.numbers && numbers_fit(map, cell));
      if (map.contours) add_contours(drawing, map, range, corner, cell);
      add_points(drawing, map, range, corner, cell);
      add_names(drawing, map, corner, cell);
      drawing.strokes.push_back({{corner, {end.x, corner.y}, end, {corner.x, end.y}, corner}, Ink::axis, 0.6});
    }
    const auto fits = static_cast<std::size_t>(std::max(3.0, slot / (kAdvance * kWords)));
    if (!map.title.empty()) drawing.labels.push_back({{corner.x, corner.y - 5}, shortened(map.title, fits), kWords});
    if (!map.x_label.empty() && !panels.is_3d)
      drawing.labels.push_back(
          {{(corner.x + end.x) / 2, end.y + room.bottom - 4}, shortened(map.x_label, fits), kWords, Anchor::middle});
    if (!map.y_label.empty() && !panels.is_3d)
      drawing.labels.push_back({{corner.x - room.left + kWords, (corner.y + end.y) / 2},
                                shortened(map.y_label, 30),
                                kWords,
                                Anchor::middle,
                                true});
    bottom = std::max(bottom, end.y + room.bottom);
    end_of_maps = std::max(end_of_maps, end.x);
    if (i == 0) {
      first_top = corner.y;
      first_bottom = end.y;
    }
  }
  if (panels.scale && !panels.maps.empty()) {
    const double left = std::min(right, end_of_maps) + 14;
    if (!panels.scale_label.empty())
      drawing.labels.push_back({{left, first_top - 5}, shortened(panels.scale_label, 10), kWords});
    add_scale(drawing, range, std::ranges::any_of(panels.maps, &HeatMap::contours), left, first_top,
              std::max(first_bottom, first_top + 60));
  }
  drawing.height = std::max(bottom, panels.scale ? first_top + 60 : 0) + kRim;
  return drawing;
}

}  // namespace graphrun::plot
