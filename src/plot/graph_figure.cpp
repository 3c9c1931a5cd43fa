#include "plot/graph_figure.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graphrun/error.h"

namespace graphrun::plot {
namespace {

constexpr double kName = 13, kSmall = 11, kHead = 16, kPad = 10, kLine = 15, kMargin = 18, kCorner = 7;
constexpr double kIndent = 14;                             // indent of continuation lines
constexpr std::size_t kMaxCharacters = 46, kMaxLines = 3;  // limits of a formula

// Wraps the text at spaces, into at most kMaxLines lines.
std::vector<std::string> broken(const std::string& text, std::size_t most) {
  std::vector<std::string> lines;
  std::string line;
  std::size_t at = 0;  // SVG drops leading spaces, so continuation lines are indented by position
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && characters(line) + 1 + characters(word) > most && lines.size() + 1 < kMaxLines) {
      lines.push_back(std::move(line));
      line = word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    at = end + 1;
  }
  if (!line.empty()) lines.push_back(line);
  for (std::string& one : lines) one = shortened(one, most);
  return lines;
}

// Text of a box after wrapping, and its size.
struct Written {
  std::string name, type;
  std::vector<std::string> formula, notes;
  BoxSize size;
};

Written written(const GraphBox& box) {
  Written made;
  made.name = shortened(printable(box.name), 32);
  made.type = shortened(printable(box.type), 32);
  made.formula = broken(printable(box.formula), kMaxCharacters);
  double width = width_of(made.name, kName) + (made.type.empty() ? 0 : 14 + width_of(made.type, kSmall));
  for (const std::string& line : made.formula)
    width = std::max(width, width_of(line, kSmall) + (made.formula.size() > 1 ? kIndent : 0));
  for (const std::string& note : box.notes) {
    made.notes.push_back(shortened(printable(note), kMaxCharacters));
    width = std::max(width, width_of(made.notes.back(), kSmall));
  }
  const auto lines = static_cast<double>(made.formula.size() + made.notes.size());
  made.size = {std::ceil(width + 2 * kPad), kPad * 2 + kName + lines * kLine + (lines > 0 ? 2 : -2)};
  return made;
}

// Polyline through the vertical segments, with curves between them; nearly straight curves get fewer pieces.
std::vector<Point> curve(const std::vector<Point>& knots) {
  constexpr double kStraight = 0.2, kMaxPieces = 14;
  std::vector<Point> points = {knots.front()};
  for (std::size_t i = 1; i < knots.size(); ++i) {
    const Point a = knots[i - 1], b = knots[i];
    const double aside = std::abs(a.x - b.x), bend = (b.y - a.y) / 2;
    const double pieces = aside < kStraight ? 1 : std::min(kMaxPieces, std::ceil(3 + aside / 3));
    for (double k = 1; k < pieces; ++k) {
      const double t = k / pieces, s = 1 - t;
      points.push_back(
          {a.x * s * s * (s + 3 * t) + b.x * t * t * (t + 3 * s),
           a.y * s * s * s + 3 * s * s * t * (a.y + bend) + 3 * s * t * t * (b.y - bend) + b.y * t * t * t});
    }
    const bool goes_on = pieces == 1 && points.size() > 1 && std::abs(points[points.size() - 2].x - b.x) < kStraight;
    if (goes_on) points.pop_back();  // straight down through several rows
    points.push_back(b);
  }
  return points;
}

// Closed outline with rounded corners.
std::vector<Point> outline(Point corner, BoxSize size) {
  std::vector<Point> points;
  constexpr int kPieces = 5;
  const Point centres[4] = {{corner.x + size.width - kCorner, corner.y + kCorner},
                            {corner.x + size.width - kCorner, corner.y + size.height - kCorner},
                            {corner.x + kCorner, corner.y + size.height - kCorner},
                            {corner.x + kCorner, corner.y + kCorner}};
  for (int quarter = 0; quarter < 4; ++quarter) {
    for (int k = 0; k <= kPieces; ++k) {
      const double angle = (quarter - 1 + static_cast<double>(k) / kPieces) * std::acos(0.0);
      points.push_back(
          {centres[quarter].x + kCorner * std::cos(angle), centres[quarter].y + kCorner * std::sin(angle)});
    }
  }
  points.push_back(points.front());
  return points;
}

class GraphPicture {
 public:
  explicit GraphPicture(const GraphFigure& figure) : figure_(figure) {}

  Drawing run() {
    std::vector<Written> boxes;
    std::vector<BoxSize> sizes;
    for (const GraphBox& box : figure_.boxes) {
      boxes.push_back(written(box));
      sizes.push_back(boxes.back().size);
    }
    const GraphLayout layout = lay_out(sizes, figure_.edges);
    drawing_.title = figure_.title;
    heading(layout.width);
    drawing_.width = std::ceil(std::max(width_, layout.width) + 2 * kMargin);
    drawing_.height = std::ceil(top_ + layout.height + kMargin);
    const Point shift{(drawing_.width - layout.width) / 2, top_};
    for (const auto& line : layout.lines) add_line(line, shift);
    for (std::size_t i = 0; i < boxes.size(); ++i)
      add_box(boxes[i], figure_.boxes[i].kind, {layout.corners[i].x + shift.x, layout.corners[i].y + shift.y});
    return std::move(drawing_);
  }

 private:
  static constexpr Colour kQuiet = kAxisColour;

  void label(Point at, std::string text, double size, Colour colour = kTextColour, Anchor anchor = Anchor::start,
             bool bold = false, bool mono = false) {
    drawing_.labels.push_back({at, std::move(text), size, anchor, false, colour, bold, mono});
  }

  void heading(double width) {
    width_ = std::max(width, 420.0);
    const auto most = [&](double size) { return static_cast<std::size_t>(width_ / (kAdvance * size)); };
    top_ = kMargin;
    if (!figure_.title.empty()) {
      label({kMargin, top_ + kHead}, shortened(printable(figure_.title), most(kHead)), kHead, kTextColour,
            Anchor::start, true);
      top_ += kHead + 8;
    }
    for (const std::string& subtitle : figure_.subtitles) {
      for (const std::string& line : broken(printable(subtitle), most(kSmall))) {
        label({kMargin, top_ + kSmall}, line, kSmall, kQuiet);
        top_ += kLine;
      }
    }
    top_ += 8;
    legend();
    top_ += 16;
  }

  void legend() {
    double x = kMargin;
    bool any = false;
    for (std::size_t kind = 0; kind < figure_.kinds.size(); ++kind) {
      if (std::ranges::none_of(figure_.boxes, [&](const GraphBox& box) { return box.kind == kind; })) continue;
      const std::string& name = figure_.kinds[kind].name;
      if (any && x + 16 + width_of(name, kSmall) > width_ + kMargin) x = kMargin, top_ += 18;
      const std::vector<Point> swatch = {{x, top_}, {x + 11, top_}, {x + 11, top_ + 11}, {x, top_ + 11}, {x, top_}};
      drawing_.areas.push_back({{x, top_}, {11, 11}, tint(kind)});
      drawing_.strokes.push_back({swatch, Ink::series, 1.2, figure_.kinds[kind].colour});
      label({x + 16, top_ + 9.5}, name, kSmall, kQuiet);
      x += 16 + width_of(name, kSmall) + 14;
      any = true;
    }
    if (any) top_ += 12;
  }

  Colour tint(std::size_t kind) const {
    return mixed(kPaper, kColours[figure_.kinds[kind].colour % kColourCount], 0.12);
  }

  void add_line(std::vector<Point> knots, Point shift) {
    for (Point& point : knots) point = {point.x + shift.x, point.y + shift.y};
    const Point tip = knots.back();
    drawing_.strokes.push_back({curve(knots), Ink::axis, 1.2});
    drawing_.strokes.push_back({{{tip.x - 3.5, tip.y - 5.5}, tip, {tip.x + 3.5, tip.y - 5.5}}, Ink::axis, 1.2});
  }

  void add_box(const Written& box, std::size_t kind, Point corner) {
    drawing_.areas.push_back({corner, {box.size.width, box.size.height}, tint(kind), kCorner});
    drawing_.strokes.push_back({outline(corner, box.size), Ink::series, 1.2, figure_.kinds[kind].colour});
    const double left = corner.x + kPad;
    const bool alone = box.formula.empty() && box.notes.empty();
    double y = corner.y + kPad + (alone ? 0.74 : 0.85) * kName;
    label({left, y}, box.name, kName, kTextColour, Anchor::start, true);
    if (!box.type.empty()) label({corner.x + box.size.width - kPad, y}, box.type, kSmall, kQuiet, Anchor::end);
    y += 3;
    double indent = 0;
    for (const std::string& line : box.formula) {
      label({left + indent, y += kLine}, line, kSmall, kTextColour, Anchor::start, false, true);
      indent = kIndent;
    }
    for (const std::string& note : box.notes) label({left, y += kLine}, note, kSmall, kQuiet);
  }

  const GraphFigure& figure_;
  Drawing drawing_;
  double width_ = 0, top_ = 0;
};

}  // namespace

Drawing draw(const GraphFigure& figure) {
  return GraphPicture(figure).run();
}

}  // namespace graphrun::plot
