// font_outlines.cpp: writes the outlines of a TrueType font as C++, for src/plot/glyphs.h.
// Usage: graphrun_font_outlines FONT OUTPUT. Curves become line segments that deviate by at most 1/500 of the
// font size. Characters: Latin, Greek and Cyrillic letters, and mathematical signs.
#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_OUTLINE_H

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

namespace {

constexpr struct {
  FT_ULong first, last;
} kRanges[] = {{0x20, 0x7e},     {0xa0, 0x17f},    {0x370, 0x3ff},   {0x400, 0x45f},
               {0x2010, 0x2026}, {0x2190, 0x2193}, {0x2200, 0x2265}, {0x20ac, 0x20ac}};

struct Writer {
  std::string points;
  long count = 0;
  double unit = 1;  // font units per unit of the output, of which the font size has 1000
  FT_Vector last{};

  void add(double x, double y, bool begins) {
    points += "{" + std::to_string(std::lround(x / unit)) + "," + std::to_string(std::lround(-y / unit)) +
              (begins ? ",true}," : ",false},");
    ++count;
  }
};

int move_to(const FT_Vector* to, void* user) {
  auto& writer = *static_cast<Writer*>(user);
  writer.add(static_cast<double>(to->x), static_cast<double>(to->y), true);
  writer.last = *to;
  return 0;
}

int line_to(const FT_Vector* to, void* user) {
  auto& writer = *static_cast<Writer*>(user);
  writer.add(static_cast<double>(to->x), static_cast<double>(to->y), false);
  writer.last = *to;
  return 0;
}

int conic_to(const FT_Vector* control, const FT_Vector* to, void* user) {
  auto& writer = *static_cast<Writer*>(user);
  const auto x0 = static_cast<double>(writer.last.x), y0 = static_cast<double>(writer.last.y);
  const auto x1 = static_cast<double>(control->x), y1 = static_cast<double>(control->y);
  const auto x2 = static_cast<double>(to->x), y2 = static_cast<double>(to->y);
  const double bend = std::hypot(x0 - 2 * x1 + x2, y0 - 2 * y1 + y2) / 4 / writer.unit;  // distance from the chord
  const int parts = std::max(1, static_cast<int>(std::ceil(std::sqrt(bend / 2))));
  for (int i = 1; i <= parts; ++i) {
    const double t = static_cast<double>(i) / parts, s = 1 - t;
    writer.add(s * s * x0 + 2 * s * t * x1 + t * t * x2, s * s * y0 + 2 * s * t * y1 + t * t * y2, false);
  }
  writer.last = *to;
  return 0;
}

int cubic_to(const FT_Vector*, const FT_Vector*, const FT_Vector*, void*) {
  return 1;  // not in TrueType fonts
}

}  // namespace

int main(int argc, char** argv) {
  FT_Library library = nullptr;
  FT_Face face = nullptr;
  if (argc != 3 || FT_Init_FreeType(&library) != 0 || FT_New_Face(library, argv[1], 0, &face) != 0) {
    std::fprintf(stderr, "usage: graphrun_font_outlines FONT OUTPUT\n");
    return 1;
  }
  Writer writer;
  writer.unit = face->units_per_EM / 1000.0;
  const FT_Outline_Funcs calls = {move_to, line_to, conic_to, cubic_to, 0, 0};
  std::string glyphs;
  for (const auto& [first, last] : kRanges) {
    for (FT_ULong code = first; code <= last; ++code) {
      const FT_UInt index = FT_Get_Char_Index(face, code);
      if (index == 0) continue;
      const long begin = writer.count;
      if (FT_Load_Glyph(face, index, FT_LOAD_NO_SCALE) != 0 ||
          FT_Outline_Decompose(&face->glyph->outline, &calls, &writer) != 0) {
        std::fprintf(stderr, "graphrun_font_outlines: '%s' is not a TrueType font\n", argv[1]);
        return 1;
      }
      glyphs += "{" + std::to_string(code) + "," +
                std::to_string(std::lround(static_cast<double>(face->glyph->advance.x) / writer.unit)) + "," +
                std::to_string(begin) + "," + std::to_string(writer.count - begin) + "},\n";
    }
  }
  std::ofstream file(argv[2]);
  file << "#include \"plot/glyphs.h\"\n\nnamespace graphrun::plot {\n\n"
       << "const OutlinePoint kOutlinePoints[] = {" << writer.points << "};\n"
       << "const OutlineGlyph kOutlineGlyphs[] = {" << glyphs << "};\n"
       << "const std::size_t kOutlineGlyphCount = sizeof kOutlineGlyphs / sizeof kOutlineGlyphs[0];\n\n"
       << "}  // namespace graphrun::plot\n";
  return file.flush() ? 0 : 1;
}
