#include "plot/glyphs.h"

#include <algorithm>
#include <span>

namespace graphrun::plot {
namespace {

// Code of the next character, whose bytes are removed; 0 for an invalid byte.
std::uint32_t next_code(std::string_view& utf8) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(utf8[at]); };
  const unsigned first = byte(0);
  const std::size_t size = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  std::uint32_t code = size == 1 ? (first < 0x80 ? first : 0) : first & (0xffu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if (i >= utf8.size() || (byte(i) & 0xc0) != 0x80) {
      utf8.remove_prefix(1);
      return 0;
    }
    code = code << 6 | (byte(i) & 0x3f);
  }
  utf8.remove_prefix(size);
  return code;
}

Glyph glyph_of(std::uint32_t code) {
  const std::span glyphs(kOutlineGlyphs, kOutlineGlyphCount);
  const auto found = std::ranges::lower_bound(glyphs, code, {}, &OutlineGlyph::code);
  if (found == glyphs.end() || found->code != code)
    return {
        0.6,
        {{{0.05, 0}, {0.05, -0.7}, {0.55, -0.7}, {0.55, 0}}, {{0.1, -0.05}, {0.5, -0.05}, {0.5, -0.65}, {0.1, -0.65}}}};
  Glyph glyph{found->advance / 1000.0, {}};
  for (const OutlinePoint& point : std::span(kOutlinePoints + found->first, found->count)) {
    if (point.begins) glyph.polygons.emplace_back();
    glyph.polygons.back().push_back({point.x / 1000.0, point.y / 1000.0});
  }
  return glyph;
}

}  // namespace

std::vector<Glyph> glyphs_of(std::string_view utf8) {
  std::vector<Glyph> glyphs;
  while (!utf8.empty()) glyphs.push_back(glyph_of(next_code(utf8)));
  return glyphs;
}

}  // namespace graphrun::plot
