#include "plot/drawing.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "plot/scale.h"

namespace graphrun::plot {
namespace {

constexpr double kText = 12, kTitle = 15, kEdge = 14, kSwatch = 24, kGap = 8;

std::size_t fitting(double width, double size) {
  return static_cast<std::size_t>(std::max(1.0, std::floor(width / (kAdvance * size))));
}

// Plot area inside the axes.
struct Frame {
  double left, right, top, bottom;
  Scale x, y;

  Point at(double px, double py) const {
    return {left + x.place(px) * (right - left), bottom - y.place(py) * (bottom - top)};
  }
};

// Keeps the first, lowest, highest and last point of each pixel column; the others would be invisible.
class Thinned {
 public:
  void add(Point point) {
    const double column = std::floor(point.x * 2);
    if (held_.empty() || column != column_) {
      flush();
      column_ = column;
    }
    held_.push_back(point);
    if (held_.size() == 64) held_ = seen();
  }
  std::vector<Point> take() {
    flush();
    return std::move(points_);
  }

 private:
  std::vector<Point> seen() const {
    if (held_.size() < 5) return held_;
    const auto lower = [](const Point& a, const Point& b) { return a.y < b.y; };
    auto [low, high] = std::minmax_element(held_.begin() + 1, held_.end() - 1, lower);
    if (high < low) std::swap(low, high);
    return {held_.front(), *low, *high, held_.back()};
  }
  void flush() {
    for (const Point& point : seen()) points_.push_back(point);
    held_.clear();
  }

  std::vector<Point> points_, held_;
  double column_ = 0;
};

// Draws dots that coincide only once.
void add_dots(Drawing& drawing, const Frame& frame, const Series& series) {
  std::set<std::pair<long, long>> places;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!frame.x.shows(series.x[i]) || !frame.y.shows(series.y[i])) continue;
    const Point at = frame.at(series.x[i], series.y[i]);
    places.emplace(std::lround(at.x), std::lround(at.y));
  }
  Stroke dots{{}, Ink::series, 3, series.colour, 0, true};
  for (const auto& [x, y] : places) dots.points.push_back({static_cast<double>(x), static_cast<double>(y)});
  if (!dots.points.empty()) drawing.strokes.push_back(std::move(dots));
}

void add_series(Drawing& drawing, const Frame& frame, const Series& series) {
  if (series.dots) return add_dots(drawing, frame, series);
  Thinned line;
  const auto end_line = [&] {
    std::vector<Point> points = line.take();
    if (points.empty()) return;
    drawing.strokes.push_back({points, Ink::series, 1.8, series.colour, series.dash});
    if (series.shade < 0) return;
    drawing.strokes.back().ink = Ink::own;
    drawing.strokes.back().own = shade(series.shade);
  };
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) {
      end_line();
    } else if (frame.x.shows(series.x[i]) && frame.y.shows(series.y[i])) {
      line.add(frame.at(series.x[i], series.y[i]));
    }
  }
  end_line();
  if (series.marks) add_dots(drawing, frame, series);
}

// Draws the legend from `top` downwards; returns its lower end.
double add_legend(Drawing& drawing, const Figure& figure, double left, double right, double top) {
  if (figure.series.size() < 2 || !figure.parallel.empty()) return top;
  double widest = 0;
  const std::size_t most = fitting(right - left - kSwatch - kGap, kText);
  for (const Series& series : figure.series)
    widest = std::max(widest, width_of(shortened(series.name, most), kText) + kSwatch + 3 * kGap);
  const auto columns = static_cast<std::size_t>(std::max(1.0, std::floor((right - left + 2 * kGap) / widest)));
  double bottom = top;
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    const Series& series = figure.series[i];
    const double x = left + static_cast<double>(i % columns) * widest;
    const std::size_t line = i / columns;
    const double y = top + kText + static_cast<double>(line) * (kText + 6);
    const double middle = y - 0.35 * kText;
    if (series.dots)
      drawing.strokes.push_back({{{x + kSwatch / 2, middle}}, Ink::series, 4, series.colour, 0, true});
    else
      drawing.strokes.push_back({{{x, middle}, {x + kSwatch, middle}}, Ink::series, 2, series.colour, series.dash});
    drawing.labels.push_back({{x + kSwatch + kGap, y}, shortened(series.name, most), kText});
    bottom = y + kGap;
  }
  return bottom;
}

void add_x_axis(Drawing& drawing, const Frame& frame) {
  double taken = -1e9;
  for (const Tick& tick : frame.x.ticks) {
    const double x = frame.left + frame.x.place(tick.value) * (frame.right - frame.left);
    const double half = width_of(tick.label, kText) / 2;
    const bool labelled = !tick.label.empty() && x - half > taken + kGap && x + half < drawing.width;
    drawing.strokes.push_back({{{x, frame.bottom}, {x, frame.bottom + (tick.label.empty() ? 2.5 : 4)}}, Ink::axis, 1});
    if (!labelled) continue;
    drawing.labels.push_back({{x, frame.bottom + 5 + kText}, tick.label, kText, Anchor::middle});
    taken = x + half;
  }
}

void add_y_axis(Drawing& drawing, const Frame& frame) {
  for (const Tick& tick : frame.y.ticks) {
    const double y = frame.bottom - frame.y.place(tick.value) * (frame.bottom - frame.top);
    drawing.strokes.push_back({{{frame.left, y}, {frame.left - (tick.label.empty() ? 2.5 : 4), y}}, Ink::axis, 1});
    if (tick.label.empty()) continue;
    drawing.strokes.push_back({{{frame.left, y}, {frame.right, y}}, Ink::grid, 1});
    drawing.labels.push_back({{frame.left - 7, y + 0.36 * kText}, tick.label, kText, Anchor::end});
  }
}

// Draws as many values as fit next to each axis, on a background of paper.
void add_parallel_axes(Drawing& drawing, const Frame& frame, const Figure& figure) {
  for (std::size_t i = 0; i < figure.parallel.size(); ++i) {
    const std::vector<std::string>& values = figure.parallel[i].values;
    const auto x = static_cast<double>(i);
    drawing.strokes.push_back({{frame.at(x, 0), frame.at(x, 1)}, Ink::axis, 1});
    double taken = 1e9;
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double share = static_cast<double>(k) / static_cast<double>(std::max<std::size_t>(values.size(), 2) - 1);
      const Point at = frame.at(x, values.size() == 1 ? 0.5 : share), start{at.x - 6, at.y};
      if (at.y > taken - kText - 2) continue;
      taken = at.y;
      const std::string text = shortened(values[k], 14);
      const Point end{start.x - width_of(text, kText) - 2, at.y};
      drawing.strokes.push_back({{start, end}, Ink::own, kText, 0, 0, false, kPaper});
      drawing.labels.push_back({{start.x - 1, at.y + 0.36 * kText}, text, kText, Anchor::end});
    }
  }
}

}  // namespace

Drawing draw(const Figure& figure) {
  Drawing drawing;
  drawing.title = figure.title.empty() ? figure.y.label : figure.title;
  Frame frame{0, drawing.width - kEdge - 6, kEdge, 0, x_scale(figure, 7), y_scale(figure, 6)};
  double widest = 0;
  for (const Tick& tick : frame.y.ticks) widest = std::max(widest, width_of(tick.label, kText));
  const bool is_parallel = !figure.parallel.empty();
  if (is_parallel) widest = 80, frame.right -= 60;
  frame.left = kEdge + widest + 7 + (figure.y.label.empty() ? 0 : kText + kGap);
  if (!figure.title.empty()) {
    const std::string title = shortened(figure.title, fitting(frame.right - frame.left, kTitle));
    drawing.labels.push_back({{frame.left, frame.top + 0.8 * kTitle}, title, kTitle});
    frame.top += kTitle + kGap;
  }
  const double legend = add_legend(drawing, figure, frame.left, frame.right, frame.top - 4);
  frame.top = figure.series.size() < 2 ? frame.top : legend;
  // A long legend extends the page instead of shrinking the plot.
  frame.bottom = std::max(frame.top + 240, drawing.height - kEdge - kText - 5 - (figure.x.label.empty() ? 0 : 20));
  drawing.height = frame.bottom + kEdge + kText + 5 + (figure.x.label.empty() ? 0 : 20);

  add_y_axis(drawing, frame);
  add_x_axis(drawing, frame);
  for (std::size_t i = 0; i < figure.series.size(); ++i)  // with parallel axes, the first is on top
    add_series(drawing, frame, figure.series[is_parallel ? figure.series.size() - 1 - i : i]);
  if (is_parallel) add_parallel_axes(drawing, frame, figure);
  drawing.strokes.push_back(
      {{{frame.left, frame.top}, {frame.left, frame.bottom}, {frame.right, frame.bottom}}, Ink::axis, 1});
  if (!figure.x.label.empty()) {
    const std::string label = shortened(figure.x.label, fitting(frame.right - frame.left, kText));
    drawing.labels.push_back({{(frame.left + frame.right) / 2, drawing.height - kEdge}, label, kText, Anchor::middle});
  }
  if (!figure.y.label.empty()) {
    const std::string label = shortened(figure.y.label, fitting(frame.bottom - frame.top, kText));
    drawing.labels.push_back(
        {{kEdge + 0.8 * kText, (frame.top + frame.bottom) / 2}, label, kText, Anchor::middle, true});
  }
  return drawing;
}

Drawing stacked(std::vector<Drawing> drawings) {
  Drawing page = std::move(drawings.front());
  for (std::size_t i = 1; i < drawings.size(); ++i) {
    Drawing& next = drawings[i];
    for (Area& area : next.areas) area.corner.y += page.height;
    for (Stroke& stroke : next.strokes)
      for (Point& point : stroke.points) point.y += page.height;
    for (Label& label : next.labels) label.at.y += page.height;
    page.areas.insert(page.areas.end(), next.areas.begin(), next.areas.end());
    page.strokes.insert(page.strokes.end(), next.strokes.begin(), next.strokes.end());
    page.labels.insert(page.labels.end(), next.labels.begin(), next.labels.end());
    page.width = std::max(page.width, next.width);
    page.height += next.height;
  }
  return page;
}

std::size_t characters(std::string_view utf8) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), begins));
}

double width_of(std::string_view text, double size) {
  return kAdvance * size * static_cast<double>(characters(text));
}

Colour mixed(Colour one, Colour other, double share) {
  const auto of = [&](unsigned from, unsigned to) {
    unsigned result = 0;
    for (const unsigned shift : {16u, 8u, 0u}) {
      const double a = from >> shift & 255u, b = to >> shift & 255u;
      result |= static_cast<unsigned>(std::lround(a + share * (b - a))) << shift;
    }
    return result;
  };
  return {of(one.light, other.light), of(one.dark, other.dark)};
}

namespace {

Colour in_steps(const Colour (&stops)[3], double share) {
  const double step = std::round(share * 40) / 40;
  return step < 0.5 ? mixed(stops[0], stops[1], 2 * step) : mixed(stops[1], stops[2], 2 * step - 1);
}

}  // namespace

Colour shade(double share) {
  static constexpr Colour kStops[3] = {{0xf2f7fc, 0x1f2a36}, {0x5ba3cf, 0x2f7fb8}, {0x08306b, 0xd9eeff}};
  return in_steps(kStops, share);
}

Colour signed_shade(double share) {
  static constexpr Colour kStops[3] = {{0x0b5394, 0x6fb7f0}, {0xf4f4f2, 0x23282e}, {0xb4460a, 0xff9a5a}};
  return in_steps(kStops, share);
}

std::string shortened(std::string_view utf8, std::size_t most) {
  if (characters(utf8) <= most) return std::string(utf8);
  const std::size_t kept = most < 4 ? most : most - 3;
  std::size_t count = 0, end = 0;
  for (; end < utf8.size(); ++end) {
    if ((static_cast<unsigned char>(utf8[end]) & 0xC0) != 0x80 && count++ == kept) break;
  }
  return std::string(utf8.substr(0, end)) + (most < 4 ? "" : "...");
}

const std::vector<double>& dash_of(std::size_t number) {
  static const std::vector<double> dashes[kDashCount] = {{}, {6, 3}, {2, 2.5}, {8, 3, 2, 3}};
  return dashes[number % kDashCount];
}

}  // namespace graphrun::plot
