// drawing.h: a page of areas, strokes and labels, positioned in points from the upper left corner, in painting order.
// Contract: the layout of a Figure avoids overlaps: it reserves kAdvance times the font size per character of a label,
// and places the legend above the plot. Points of a long series that would be invisible are dropped.
// Not handled here: rendering (svg.cpp, png.cpp).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plot/figure.h"

namespace graphrun::plot {

inline constexpr double kAdvance = 0.6;  // width of a character, relative to the font size

struct Point {
  double x, y;
};

struct Colour {
  unsigned light, dark;  // 0xRRGGBB, for the light and the dark theme
};

// Colours of a page, in addition to those of the series.
inline constexpr Colour kPaper{0xffffff, 0x16191d}, kTextColour{0x222222, 0xe6e6e6}, kAxisColour{0x555555, 0xaaaaaa},
    kGridColour{0xe4e4e4, 0x343a40};

// A filled rectangle.
struct Area {
  Point corner, size;  // upper left corner; width and height
  Colour fill;
  double radius = 0;  // corner radius
};

enum class Ink { axis, grid, series, own };

struct Stroke {
  std::vector<Point> points;
  Ink ink;
  double width;
  std::size_t colour = 0, dash = 0;  // indices into the series styles
  bool dots = false;                 // a dot of this width at each point instead of a line
  Colour own = {};                   // for Ink::own
  std::optional<Colour> fill = {};   // fills the closed polygon of the points
};

enum class Anchor { start, middle, end };

struct Label {
  Point at;  // anchor point on the baseline
  std::string text;
  double size;
  Anchor anchor = Anchor::start;
  bool upwards = false;  // rotated by 90 degrees
  Colour colour = kTextColour;
  bool bold = false, mono = false;  // mono: each character is exactly kAdvance wide instead of at most
};

struct Drawing {
  std::string title;  // for accessibility; drawn only if a label repeats it
  double width = 640, height = 400;
  std::vector<Area> areas;
  std::vector<Stroke> strokes;
  std::vector<Label> labels;
};

Drawing draw(const Figure& figure);

// One page with the drawings below each other. There is at least one.
Drawing stacked(std::vector<Drawing> drawings);

std::size_t characters(std::string_view utf8);

double width_of(std::string_view text, double size);  // width to reserve for a label

// Linear interpolation: `share` is the weight of `other`.
Colour mixed(Colour one, Colour other, double share);

// Sequential colour map in few steps, so that equal cells merge. Larger is darker on light, lighter on dark.
Colour shade(double share);
// Diverging colour map with as many steps: 0.5 is neutral.
Colour signed_shade(double share);

// Truncates a long text to `most` characters, with an ellipsis.
std::string shortened(std::string_view utf8, std::size_t most);

// Styles of series: colours that remain distinct with colour vision deficiency; dashes and gaps in points.
inline constexpr Colour kColours[] = {{0x0072b2, 0x56b4e9}, {0xd55e00, 0xff8c42}, {0x009e73, 0x2fd6a6},
                                      {0xcc79a7, 0xe79bc6}, {0xb8860b, 0xf0d050}, {0x6a3d9a, 0xb794f4},
                                      {0x56616b, 0xc0c8d0}, {0x8b4513, 0xd2976b}};
inline constexpr std::size_t kColourCount = sizeof kColours / sizeof kColours[0];
inline constexpr std::size_t kDashCount = 4;
const std::vector<double>& dash_of(std::size_t number);  // empty: solid line

}  // namespace graphrun::plot
