// glyphs.h: outlines of characters, for pictures that contain no font. The build takes them from a TrueType font
// (cmake/Font.cmake).
// Contract: the font size is 1000 units; x to the right, y downwards from the baseline. Characters that the font or the
// build lacks are drawn as a box.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "plot/drawing.h"

namespace graphrun::plot {

struct OutlinePoint {
  std::int16_t x, y;
  bool begins;  // first point of a closed polygon
};

struct OutlineGlyph {
  std::uint32_t code;  // Unicode
  std::int32_t advance;
  std::uint32_t first, count;  // points
};

// In order of their codes.
extern const OutlinePoint kOutlinePoints[];
extern const OutlineGlyph kOutlineGlyphs[];
extern const std::size_t kOutlineGlyphCount;

struct Glyph {
  double advance;  // relative to the font size, as are the points
  std::vector<std::vector<Point>> polygons;
};

// One glyph per character. Text is valid UTF-8 or each invalid byte is a box.
std::vector<Glyph> glyphs_of(std::string_view utf8);

}  // namespace graphrun::plot
