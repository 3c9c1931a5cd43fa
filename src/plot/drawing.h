// drawing.h: a page: areas, strokes and labels at places, in points from the upper left corner, each over the former.
// Contract: of a Figure laid out on it nothing overlaps that should not: labels have room for kAdvance of their size a
// character, and the legend stands above the plot. A long series keeps the points that can be seen.
// Leaves to others: how they are drawn (svg.cpp, png.cpp).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "plot/figure.h"

namespace graphrun::plot {

inline constexpr double kAdvance = 0.6;  // width of a character, of the size of the font

struct Point {
  double x, y;
};

struct Colour {
  unsigned light, dark;  // 0xRRGGBB, on light and on dark
};

// What pages are drawn with beside the colours of series.
inline constexpr Colour kPaper{0xffffff, 0x16191d}, kTextColour{0x222222, 0xe6e6e6}, kAxisColour{0x555555, 0xaaaaaa},
    kGridColour{0xe4e4e4, 0x343a40};

// A filled rectangle.
struct Area {
  Point corner, size;  // the upper left; width and height
  Colour fill;
  double radius = 0;  // of its corners
};

enum class Ink { axis, grid, series, own };

struct Stroke {
  std::vector<Point> points;
  Ink ink;
  double width;
  std::size_t colour = 0, dash = 0;  // of a series
  bool dots = false;                 // a dot at each point, as wide, and no line
  Colour own = {};                   // of Ink::own
};

enum class Anchor { start, middle, end };

struct Label {
  Point at;  // of the baseline
  std::string text;
  double size;
  Anchor anchor = Anchor::start;
  bool upwards = false;  // turned by a quarter
  Colour colour = kTextColour;
  bool bold = false, mono = false;  // mono: a character is kAdvance wide, not up to that
};

struct Drawing {
  std::string title;  // what the picture is called; it is written only where a label says it
  double width = 640, height = 400;
  std::vector<Area> areas;
  std::vector<Stroke> strokes;
  std::vector<Label> labels;
};

Drawing draw(const Figure& figure);

std::size_t characters(std::string_view utf8);

double width_of(std::string_view text, double size);  // the room that a label needs

// `share` of the second, the rest of the first.
Colour mixed(Colour one, Colour other, double share);

// The first characters, and dots where there are more.
std::string shortened(std::string_view utf8, std::size_t most);

// The looks of series: colours that are told apart by those who see few of them; dashes and gaps in points.
inline constexpr Colour kColours[] = {{0x0072b2, 0x56b4e9}, {0xd55e00, 0xff8c42}, {0x009e73, 0x2fd6a6},
                                      {0xcc79a7, 0xe79bc6}, {0xb8860b, 0xf0d050}, {0x6a3d9a, 0xb794f4},
                                      {0x56616b, 0xc0c8d0}, {0x8b4513, 0xd2976b}};
inline constexpr std::size_t kColourCount = sizeof kColours / sizeof kColours[0];
inline constexpr std::size_t kDashCount = 4;
const std::vector<double>& dash_of(std::size_t number);  // empty: a full line

}  // namespace graphrun::plot
