// svg.cpp: a Drawing as SVG. Looks are classes, so that the reader's light or dark chooses the colours.
#include <fmt/format.h>

#include <iterator>
#include <map>
#include <utility>

#include "graphrun/error.h"
#include "plot/drawing.h"
#include "plot/render.h"

namespace graphrun::plot {
namespace {

// XML has no place for most control characters and for bytes that are no UTF-8: printable() writes them out.
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

// Fills and colours of labels that are no named ones, a class each, and the areas of each fill, which are one path.
using Fills = std::map<std::pair<unsigned, unsigned>, std::string>;

std::pair<unsigned, unsigned> key_of(Colour colour) {
  return {colour.light, colour.dark};
}

Fills fills_of(const Drawing& drawing) {
  Fills fills;
  for (const Area& area : drawing.areas) {
    fmt::format_to(std::back_inserter(fills[key_of(area.fill)]), "M{:.2f} {:.2f}h{:.2f}v{:.2f}h{:.2f}z", area.corner.x,
                   area.corner.y, area.size.x, area.size.y, -area.size.x);
  }
  for (const Label& label : drawing.labels) {
    if (key_of(label.colour) != key_of(kTextColour)) fills[key_of(label.colour)];
  }
  return fills;
}

std::size_t class_of(const Fills& fills, Colour colour) {
  return static_cast<std::size_t>(std::distance(fills.begin(), fills.find(key_of(colour))));
}

// The same on light and on dark needs no second rule.
std::string fill_rules(const Fills& fills, bool dark) {
  std::string css;
  std::size_t number = 0;
  for (const auto& [fill, areas] : fills) {
    const std::size_t at = number++;
    if (!dark || fill.first != fill.second)
      css += fmt::format(".f{}{{fill:#{:06x}}}", at, dark ? fill.second : fill.first);
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

std::string svg_stroke(const Stroke& stroke) {
  std::string text = "<path class=\"";
  switch (stroke.ink) {
    case Ink::text:
    case Ink::axis:
      text += "axis";
      break;
    case Ink::grid:
      text += "grid";
      break;
    case Ink::series:
      text += fmt::format("s{}", stroke.colour % kColourCount);
      break;
  }
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
  if (stroke.points.size() == 1 && !stroke.dots) text += "h0\" stroke-linecap=\"round";  // a dot
  return text + "\"/>\n";
}

std::string svg_label(const Label& label, const Fills& fills) {
  static constexpr const char* kAnchors[] = {"start", "middle", "end"};
  std::string text = fmt::format("<text font-size=\"{:g}\" text-anchor=\"{}\" ", label.size,
                                 kAnchors[static_cast<std::size_t>(label.anchor)]);
  if (key_of(label.colour) != key_of(kTextColour)) text += fmt::format("class=\"f{}\" ", class_of(fills, label.colour));
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
  for (const auto& [fill, areas] : fills) {
    const std::size_t at = number++;
    if (!areas.empty())
      svg += fmt::format("<path class=\"f{}\" shape-rendering=\"crispEdges\" d=\"{}\"/>\n", at, areas);
  }
  for (const Stroke& stroke : drawing.strokes) svg += svg_stroke(stroke);
  for (const Label& label : drawing.labels) svg += svg_label(label, fills);
  return svg + "</svg>\n";
}

}  // namespace graphrun::plot
