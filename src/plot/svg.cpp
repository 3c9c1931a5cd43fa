// svg.cpp: renders a Drawing as SVG. Styles are CSS classes, so that the reader's theme selects the colours.
#include <fmt/format.h>

#include <iterator>
#include <map>
#include <utility>

#include "graphrun/error.h"
#include "plot/drawing.h"
#include "plot/render.h"

namespace graphrun::plot {
namespace {

// XML cannot represent most control characters or invalid UTF-8: printable() escapes them.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

// Custom colours, one class each, with the areas that each fills, merged into one or two paths.
struct FilledPaths {
  std::string sharp, rounded;
  bool is_stroked = false;
};
using Fills = std::map<std::pair<unsigned, unsigned>, FilledPaths>;

std::pair<unsigned, unsigned> key_of(Colour colour) {
  return {colour.light, colour.dark};
}

Fills fills_of(const Drawing& drawing) {
  Fills fills;
  for (const Area& area : drawing.areas) {
    FilledPaths& paths = fills[key_of(area.fill)];
    if (area.radius > 0) {
      const double r = area.radius, across = area.size.x - 2 * r, down = area.size.y - 2 * r;
      fmt::format_to(std::back_inserter(paths.rounded),
                     "M{0:.2f} {1:.2f}h{2:.2f}a{4} {4} 0 0 1 {4} {4}v{3:.2f}a{4} {4} 0 0 1 -{4} {4}h{5:.2f}"
                     "a{4} {4} 0 0 1 -{4} -{4}v{6:.2f}a{4} {4} 0 0 1 {4} -{4}z",
                     area.corner.x + r, area.corner.y, across, down, r, -across, -down);
      continue;
    }
    fmt::format_to(std::back_inserter(paths.sharp), "M{:.2f} {:.2f}h{:.2f}v{:.2f}h{:.2f}z", area.corner.x,
                   area.corner.y, area.size.x, area.size.y, -area.size.x);
  }
  for (const Label& label : drawing.labels) {
    if (key_of(label.colour) != key_of(kTextColour)) fills[key_of(label.colour)];
  }
  for (const Stroke& stroke : drawing.strokes) {
    if (stroke.ink == Ink::own) fills[key_of(stroke.own)].is_stroked = true;
    if (stroke.fill) fills[key_of(*stroke.fill)];
  }
  return fills;
}

std::size_t class_of(const Fills& fills, Colour colour) {
  return static_cast<std::size_t>(std::distance(fills.begin(), fills.find(key_of(colour))));
}

// Colours that are equal in both themes need no rule for dark.
std::string fill_rules(const Fills& fills, bool dark) {
  std::string css;
  std::size_t number = 0;
  for (const auto& [fill, paths] : fills) {
    const std::size_t at = number++;
    if (dark && fill.first == fill.second) continue;
    const unsigned colour = dark ? fill.second : fill.first;
    css += fmt::format(".f{}{{fill:#{:06x}}}", at, colour);
    if (paths.is_stroked) css += fmt::format(".l{}{{stroke:#{:06x}}}", at, colour);
  }
  return css;
}

std::string rules(unsigned Colour::*of) {
  std::string css =
      fmt::format(".paper{{fill:#{:06x}}}text{{fill:#{:06x}}}.axis{{stroke:#{:06x}}}.grid{{stroke:#{:06x}}}",
                  kPaper.*of, kTextColour.*of, kAxisColour.*of, kGridColour.*of);
  for (std::size_t i = 0; i < kColourCount; ++i) css += fmt::format(".s{}{{stroke:#{:06x}}}", i, kColours[i].*of);
  return css;
}

std::string svg_stroke(const Stroke& stroke, const Fills& fills) {
  std::string text = "<path class=\"";
  switch (stroke.ink) {
    case Ink::axis:
      text += "axis";
      break;
    case Ink::grid:
      text += "grid";
      break;
    case Ink::series:
      text += fmt::format("s{}", stroke.colour % kColourCount);
      break;
    case Ink::own:
      text += fmt::format("l{}", class_of(fills, stroke.own));
      break;
  }
  if (stroke.fill) text += fmt::format(" f{}", class_of(fills, *stroke.fill));
  text += fmt::format("\" stroke-width=\"{:g}\"", stroke.width);
  if (const auto& dash = dash_of(stroke.dash); !dash.empty())
    text += fmt::format(" stroke-dasharray=\"{}\"", fmt::join(dash, " "));
  if (stroke.dots) text += " stroke-linecap=\"round\"";
  text += " d=\"";
  char command = 'M';
  for (const Point& point : stroke.points) {
    fmt::format_to(std::back_inserter(text), "{}{:.1f} {:.1f}", command, point.x, point.y);
    if (stroke.dots)
      text += "h0";
    else
      command = 'L';
  }
  if (stroke.fill) text += 'z';
  if (stroke.points.size() == 1 && !stroke.dots) text += "h0\" stroke-linecap=\"round";  // a dot
  return text + "\"/>\n";
}

std::string svg_label(const Label& label, const Fills& fills) {
  static constexpr const char* kAnchors[] = {"start", "middle", "end"};
  std::string text = fmt::format("<text font-size=\"{:g}\" text-anchor=\"{}\" ", label.size,
                                 kAnchors[static_cast<std::size_t>(label.anchor)]);
  if (key_of(label.colour) != key_of(kTextColour)) text += fmt::format("class=\"f{}\" ", class_of(fills, label.colour));
  if (label.bold) text += "font-weight=\"600\" ";
  if (label.mono) text += "font-family=\"ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace\" ";
  if (label.upwards)
    text += fmt::format("transform=\"translate({:.1f} {:.1f}) rotate(-90)\"", label.at.x, label.at.y);
  else
    text += fmt::format("x=\"{:.1f}\" y=\"{:.1f}\"", label.at.x, label.at.y);
  return text + fmt::format(">{}</text>\n", escaped(label.text));
}

}  // namespace

std::string as_svg(const Figure& figure) {
  return as_svg(draw(figure));
}

std::string as_svg(const Drawing& drawing) {
  const Fills fills = fills_of(drawing);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\" "
      "role=\"img\" font-family=\"Helvetica,Arial,sans-serif\">\n<title>{2}</title>\n",
      drawing.width, drawing.height, escaped(drawing.title));
  svg += fmt::format(
      "<style>path{{fill:none;stroke-linejoin:round}}{}\n@media(prefers-color-scheme:dark){{{}}}</style>\n"
      "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
      rules(&Colour::light) + fill_rules(fills, false), rules(&Colour::dark) + fill_rules(fills, true));
  std::size_t number = 0;
  for (const auto& [fill, paths] : fills) {
    const std::size_t at = number++;
    if (!paths.sharp.empty())
      svg += fmt::format("<path class=\"f{}\" shape-rendering=\"crispEdges\" d=\"{}\"/>\n", at, paths.sharp);
    if (!paths.rounded.empty()) svg += fmt::format("<path class=\"f{}\" d=\"{}\"/>\n", at, paths.rounded);
  }
  for (const Stroke& stroke : drawing.strokes) svg += svg_stroke(stroke, fills);
  for (const Label& label : drawing.labels) svg += svg_label(label, fills);
  return svg + "</svg>\n";
}

}  // namespace graphrun::plot
