// svg.cpp: a Drawing as SVG. Looks are classes, so that the reader's light or dark chooses the colours.
#include <fmt/format.h>

#include <iterator>

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

std::string rules(unsigned Colour::*of, const char* text, const char* axis, const char* grid) {
  std::string css = fmt::format("text{{fill:{}}}.axis{{stroke:{}}}.grid{{stroke:{}}}", text, axis, grid);
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
  text += " d=\"";
  char command = 'M';
  for (const Point& point : stroke.points) {
    fmt::format_to(std::back_inserter(text), "{}{:.1f} {:.1f}", command, point.x, point.y);
    command = 'L';
  }
  if (stroke.points.size() == 1) text += "h0\" stroke-linecap=\"round";  // a dot
  return text + "\"/>\n";
}

std::string svg_label(const Label& label) {
  static constexpr const char* kAnchors[] = {"start", "middle", "end"};
  std::string text = fmt::format("<text font-size=\"{:g}\" text-anchor=\"{}\" ", label.size,
                                 kAnchors[static_cast<std::size_t>(label.anchor)]);
  if (label.upwards)
    text += fmt::format("transform=\"translate({:.1f} {:.1f}) rotate(-90)\"", label.at.x, label.at.y);
  else
    text += fmt::format("x=\"{:.1f}\" y=\"{:.1f}\"", label.at.x, label.at.y);
  return text + fmt::format(">{}</text>\n", escaped(label.text));
}

}  // namespace

std::string as_svg(const Figure& figure) {
  const Drawing drawing = draw(figure);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\" "
      "role=\"img\" font-family=\"Helvetica,Arial,sans-serif\">\n<title>{2}</title>\n",
      drawing.width, drawing.height, escaped(figure.title.empty() ? figure.y.label : figure.title));
  svg += fmt::format(
      "<style>.paper{{fill:#fff}}path{{fill:none;stroke-linejoin:round}}{}\n"
      "@media(prefers-color-scheme:dark){{.paper{{fill:#16191d}}{}}}</style>\n"
      "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
      rules(&Colour::light, "#222", "#555", "#e4e4e4"), rules(&Colour::dark, "#e6e6e6", "#aaa", "#343a40"));
  for (const Stroke& stroke : drawing.strokes) svg += svg_stroke(stroke);
  for (const Label& label : drawing.labels) svg += svg_label(label);
  return svg + "</svg>\n";
}

}  // namespace graphrun::plot
