// text.cpp: renders a Figure for a terminal: Braille characters with eight dots per cell, or one ASCII mark per cell.
// Without colour, a letter at the right end of each line identifies its series.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "graphrun/error.h"
#include "plot/drawing.h"
#include "plot/render.h"
#include "plot/scale.h"

namespace graphrun::plot {
namespace {

constexpr int kNobody = -1;
constexpr int kAnsi[] = {34, 33, 32, 35, 36, 31};
constexpr std::string_view kMarks = "*+ox#@%&";
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// Cells of the plot and their dots.
class Canvas {
 public:
  Canvas(int columns, int rows, bool braille)
      : columns_(columns), rows_(rows), across_(braille ? 2 : 1), down_(braille ? 4 : 1), braille_(braille) {
    cells_.resize(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows));
  }

  // Endpoints are in [0, 1]; y points upwards.
  void line(Point from, Point to, int owner) {
    const double x0 = from.x * (columns_ * across_ - 1), x1 = to.x * (columns_ * across_ - 1);
    const double y0 = (1 - from.y) * (rows_ * down_ - 1), y1 = (1 - to.y) * (rows_ * down_ - 1);
    const int steps = static_cast<int>(std::ceil(std::max(std::abs(x1 - x0), std::abs(y1 - y0))));
    for (int i = 0; i <= steps; ++i) {
      const double t = steps == 0 ? 0 : static_cast<double>(i) / steps;
      dot(static_cast<int>(std::lround(x0 + t * (x1 - x0))), static_cast<int>(std::lround(y0 + t * (y1 - y0))), owner);
    }
  }

  std::string row(int number, bool colour) const {
    std::string text;
    for (int x = 0; x < columns_; ++x) {
      const Cell& cell = cells_[index(x, number)];
      if (cell.owner == kNobody) {
        text += ' ';
        continue;
      }
      const auto owner = static_cast<std::size_t>(cell.owner);
      std::string mark(1, kMarks[owner % kMarks.size()]);
      if (braille_)
        mark = {'\xE2', static_cast<char>(0xA0 | cell.dots >> 6), static_cast<char>(0x80 | (cell.dots & 63))};
      text += colour ? fmt::format("\033[{}m{}\033[0m", kAnsi[owner % std::size(kAnsi)], mark) : mark;
    }
    return text;
  }

 private:
  struct Cell {
    std::uint8_t dots = 0;
    int owner = kNobody;  // series that drew here last
  };

  std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(x);
  }
  void dot(int x, int y, int owner) {
    static constexpr std::uint8_t kDots[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    Cell& cell = cells_[index(x / across_, y / down_)];
    cell.dots = static_cast<std::uint8_t>(cell.dots | kDots[y % down_][x % across_]);
    cell.owner = owner;
  }

  int columns_, rows_, across_, down_;
  bool braille_;
  std::vector<Cell> cells_;
};

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, characters(text)), ' ') + text;
}

std::string without_end(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

// Draws the series; returns the y position of its last point, or a negative number.
double draw_line(Canvas& canvas, const Series& series, const Scale& x, const Scale& y, int owner) {
  bool open = false;
  Point last{-1, -1};
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) {
      open = false;
    } else if (x.shows(series.x[i]) && y.shows(series.y[i])) {
      const Point next{x.place(series.x[i]), y.place(series.y[i])};
      canvas.line(open && !series.dots ? last : next, next, owner);
      last = next;
      open = true;
    }
  }
  return last.y;
}

// Labels of the y axis by row, without minor ticks.
std::vector<std::string> y_labels(const Scale& y, int rows) {
  std::vector<std::string> labels(static_cast<std::size_t>(rows));
  for (const Tick& tick : y.ticks) {
    const auto row = static_cast<std::size_t>(std::lround((1 - y.place(tick.value)) * (rows - 1)));
    if (labels[row].empty()) labels[row] = tick.label;
  }
  return labels;
}

struct XAxis {
  std::string line, labels;
};

XAxis x_axis(const Scale& x, int columns, const TextOptions& options) {
  XAxis axis;
  std::vector<bool> ticks(static_cast<std::size_t>(columns));
  std::size_t taken = 0;
  for (const Tick& tick : x.ticks) {
    if (tick.label.empty()) continue;
    const auto place = static_cast<std::size_t>(std::lround(x.place(tick.value) * (columns - 1)));
    const std::size_t half = tick.label.size() / 2, start = place < half ? 0 : place - half;
    if (taken > 0 && start < taken + 1) continue;
    if (start + tick.label.size() > static_cast<std::size_t>(columns) + 3) continue;
    axis.labels += std::string(start - axis.labels.size(), ' ') + tick.label;
    taken = axis.labels.size();
    ticks[place] = true;
  }
  for (const bool tick : ticks) axis.line += options.unicode ? (tick ? "┬" : "─") : (tick ? "+" : "-");
  return axis;
}

std::string legend(const Figure& figure, const TextOptions& options) {
  std::string text, line;
  std::size_t used = 0;
  const auto width = static_cast<std::size_t>(options.columns);
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    const std::string name = shortened(printable(figure.series[i].name), width < 8 ? 4 : width - 4);
    std::string key(1, options.unicode ? kLetters[i % kLetters.size()] : kMarks[i % kMarks.size()]);
    if (!options.unicode && !options.colour) key += std::string(" ") + kLetters[i % kLetters.size()];
    if (options.colour)
      key = fmt::format("\033[{}m{}\033[0m", kAnsi[i % std::size(kAnsi)], options.unicode ? "━━" : key);
    const std::size_t length = characters(name) + 3 + (options.unicode && !options.colour ? 0 : 2);
    if (used > 0 && used + length + 2 > width) {
      text += line + "\n";
      line.clear();
      used = 0;
    }
    line += fmt::format("{}{} {}", used > 0 ? "   " : "", key, name);
    used += length + 2;
  }
  return text + line + "\n";
}

}  // namespace

std::string as_text(const Figure& figure, const TextOptions& options) {
  const int rows = std::max(options.rows, 4);
  const Scale y = y_scale(figure, std::max(2, rows / 3));
  std::vector<std::string> labels = y_labels(y, rows);
  std::size_t margin = 0;
  for (const std::string& label : labels) margin = std::max(margin, label.size());
  const bool several = figure.series.size() > 1, letters = several && !options.colour;
  const int columns = std::clamp(options.columns - static_cast<int>(margin) - 4 - (letters ? 2 : 0), 8, 400);
  const Scale x = x_scale(figure, std::max(2, columns / 12));

  Canvas canvas(columns, rows, options.unicode);
  std::vector<std::string> ends(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    const double last = draw_line(canvas, figure.series[i], x, y, static_cast<int>(i));
    if (!letters || last < 0) continue;
    ends[static_cast<std::size_t>(std::lround((1 - last) * (rows - 1)))] += kLetters[i % kLetters.size()];
  }

  std::string text;
  if (!figure.title.empty()) {
    text += std::string(margin + 2, ' ') +
            shortened(printable(figure.title), static_cast<std::size_t>(std::max(8, columns))) + "\n";
  }
  if (!figure.y.label.empty()) text += shortened(printable(figure.y.label), static_cast<std::size_t>(columns)) + "\n";
  for (int row = 0; row < rows; ++row) {
    const std::string& label = labels[static_cast<std::size_t>(row)];
    const char* edge = options.unicode ? (label.empty() ? "│" : "┤") : (label.empty() ? "|" : "+");
    const std::string& end = ends[static_cast<std::size_t>(row)];
    text += without_end(fmt::format("{} {}{} {}", padded(label, margin), edge, canvas.row(row, options.colour),
                                    end.size() > 2 ? end.substr(0, 1) + "+" : end)) +
            "\n";
  }
  const XAxis axis = x_axis(x, columns, options);
  text += std::string(margin + 1, ' ') + (options.unicode ? "└" : "+") + axis.line + "\n";
  text += std::string(margin + 2, ' ') + axis.labels + "\n";
  if (!figure.x.label.empty()) {
    const std::string label = shortened(printable(figure.x.label), static_cast<std::size_t>(columns));
    const auto half = (static_cast<std::size_t>(columns) - characters(label)) / 2;
    text += std::string(margin + 2 + half, ' ') + label + "\n";
  }
  for (const ParallelAxis& one : figure.parallel)
    text += shortened(printable(fmt::format("{}: {} to {} (top)", one.label, one.values.front(), one.values.back())),
                      static_cast<std::size_t>(std::max(options.columns, 8))) +
            "\n";
  return several ? text + legend(figure, options) : text;
}

}  // namespace graphrun::plot
