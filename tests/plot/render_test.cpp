// The same figure on a terminal, as SVG and as PNG, which is decoded again.
#include "plot/render.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <limits>

#include "plot/drawing.h"

namespace graphrun::plot {
namespace {

Figure slope() {
  return {"", {"epoch"}, {"loss"}, {{"loss", {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}}}};
}

Figure crossing() {
  Figure figure = slope();
  figure.y.label.clear();
  figure.series.push_back({"accuracy", {0, 4}, {0, 4}, 1, 0});
  return figure;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(TextPictures, Braille) {
  EXPECT_EQ(as_text(slope(), {24, 5, true, false}), R"(loss
4 ┤⠒⠤⢄⡀
  │   ⠉⠒⠤⢄⡀
2 ┤       ⠈⠑⠢⢄⡀
  │           ⠈⠑⠒⠤⣀
0 ┤               ⠈⠑⠒⠤
  └┬────────┬────────┬
   0        2        4
          epoch
)");
}

TEST(TextPictures, Ascii) {
  const std::string text = as_text(crossing(), {30, 6, false, false});
  EXPECT_EQ(text, R"(4 +**                   ++ b
  |  *****         +++++
  |      ***** ++++
2 +       +++++*****
  |  +++++          ****
0 +++                   ** a
  ++----------+----------+
   0          2          4
            epoch
* a loss   + b accuracy
)");
  for (const char c : text) EXPECT_TRUE((c >= ' ' && c <= '~') || c == '\n');
}

TEST(TextPictures, ColourOnlyWhereItIsAskedFor) {
  EXPECT_EQ(count(as_text(crossing(), {40, 8, true, false}), "\033"), 0u);
  EXPECT_GT(count(as_text(crossing(), {40, 8, true, true}), "\033[34m"), 0u);
  EXPECT_GT(count(as_text(crossing(), {40, 8, true, true}), "\033[33m"), 0u);
}

TEST(TextPictures, FitTheirWidth) {
  Figure figure = crossing();
  figure.title = std::string(300, 't');
  figure.series[1].name = std::string(300, 'n');
  for (const int columns : {1, 20, 33, 80, 200}) {
    const std::string text = as_text(figure, {columns, 12, true, false});
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      EXPECT_LE(characters(text.substr(at, end - at)), static_cast<std::size_t>(std::max(columns, 20))) << text;
    }
  }
}

TEST(Svg, IsWholeAndEscaped) {
  Figure figure = crossing();
  figure.title = "<script>\"a\" & b\x01";
  const std::string svg = as_svg(figure);
  EXPECT_EQ(svg.find("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"400\""), 0u);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(count(svg, "<script"), 0u);
  EXPECT_EQ(count(svg, "&lt;script&gt;&quot;a&quot; &amp; b\\x01</text>"), 1u);
  EXPECT_EQ(count(svg, "prefers-color-scheme:dark"), 1u);
  EXPECT_EQ(count(svg, "http"), 1u);                // the name space: nothing is fetched
  EXPECT_EQ(count(svg, "<path class=\"s0\""), 2u);  // the line and its piece in the legend
  EXPECT_EQ(count(svg, "<path class=\"s1\""), 2u);
  EXPECT_EQ(count(svg, ">accuracy</text>"), 1u);
}

TEST(Svg, OfOneLine) {
  const std::string svg = as_svg(slope());
  const std::size_t line = svg.find("<path class=\"s0\"");
  EXPECT_EQ(svg.substr(line, svg.find('\n', line) - line),
            R"(<path class="s0" stroke-width="1.8" d="M48.2 26.4L191.1 104.0L334.1 181.5L477.0 259.0L620.0 336.6"/>)");
}

// A point that is not finite breaks the line, one that a log axis cannot show does not.
TEST(Drawings, BrokenLines) {
  Figure figure = slope();
  figure.series[0].y[2] = std::nan("");
  const auto lines = [&] {
    std::vector<std::size_t> points;
    for (const Stroke& stroke : draw(figure).strokes) {
      if (stroke.ink == Ink::series) points.push_back(stroke.points.size());
    }
    return points;
  };
  EXPECT_EQ(lines(), (std::vector<std::size_t>{2, 2}));
  figure.series[0].y[2] = -1;
  figure.y.log = true;
  EXPECT_EQ(lines(), (std::vector<std::size_t>{3}));  // without the -1 and the 0 at its end
}

TEST(Drawings, ALongSeriesKeepsItsPeaks) {
  Figure figure = slope();
  Series& series = figure.series[0];
  series.x.clear();
  series.y.clear();
  for (int i = 0; i < 200000; ++i) {
    series.x.push_back(i);
    series.y.push_back(i == 123457 ? 5 : i % 2);
  }
  const Drawing drawing = draw(figure);
  const Stroke* line = nullptr;
  for (const Stroke& stroke : drawing.strokes) {
    if (stroke.ink == Ink::series) line = &stroke;
  }
  ASSERT_NE(line, nullptr);
  EXPECT_LT(line->points.size(), 6000u);
  double highest = 1e9;
  for (const Point& point : line->points) highest = std::min(highest, point.y);
  EXPECT_LT(highest, 30);
}

TEST(Drawings, NothingLeavesThePage) {
  Figure figure = crossing();
  for (std::size_t i = 0; i < 40; ++i)
    figure.series.push_back({"run " + std::to_string(i) + std::string(i * 5, 'x'), {0, 4}, {1e-9, 1e9}, i, i});
  figure.title = std::string(500, 't');
  const Drawing drawing = draw(figure);
  for (const Label& label : drawing.labels) {
    const double width = label.upwards ? 0 : kAdvance * label.size * static_cast<double>(characters(label.text));
    const double left = label.anchor == Anchor::start    ? label.at.x
                        : label.anchor == Anchor::middle ? label.at.x - width / 2
                                                         : label.at.x - width;
    EXPECT_GE(left, 0) << label.text;
    EXPECT_LE(left + width, drawing.width) << label.text;
    EXPECT_LE(label.at.y, drawing.height) << label.text;
  }
  for (const Stroke& stroke : drawing.strokes) {
    for (const Point& point : stroke.points) EXPECT_TRUE(point.x >= 0 && point.x <= drawing.width && point.y >= 0);
  }
}

std::size_t number_at(const std::string& bytes, std::size_t at) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return number;
}

struct Image {
  std::size_t width = 0, height = 0;
  std::string rows;  // each begins with its filter
  unsigned at(std::size_t x, std::size_t y) const {
    const std::size_t place = y * (3 * width + 1) + 1 + 3 * x;
    return number_at('\0' + rows.substr(place, 3), 0) & 0xFFFFFF;
  }
};

Image decoded(const std::string& png) {
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  Image image;
  for (std::size_t at = 8; at < png.size();) {
    const std::size_t size = number_at(png, at);
    const std::string kind = png.substr(at + 4, 4), content = png.substr(at + 8, size);
    const std::string checked = kind + content;
    const auto* bytes = reinterpret_cast<const Bytef*>(checked.data());
    EXPECT_EQ(number_at(png, at + 8 + size), crc32(0, bytes, static_cast<uInt>(checked.size()))) << kind;
    if (kind == "IHDR") {
      image.width = number_at(content, 0);
      image.height = number_at(content, 4);
      EXPECT_EQ(content.substr(8), std::string("\x08\x02\0\0\0", 5));
    }
    if (kind == "IDAT") {
      uLongf length = (3 * image.width + 1) * image.height;
      image.rows.resize(length);
      EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(image.rows.data()), &length,
                           reinterpret_cast<const Bytef*>(content.data()), static_cast<uLong>(content.size())),
                Z_OK);
      EXPECT_EQ(length, image.rows.size());
    }
    at += 12 + size;
    EXPECT_EQ(at >= png.size(), kind == "IEND");
  }
  return image;
}

// Where the drawing has a line there is its colour; where it has nothing there is paper.
TEST(Png, ShowsTheDrawing) {
  const std::string png = as_png(slope());
  EXPECT_LT(png.size(), 60000u);
  const Image image = decoded(png);
  ASSERT_EQ(image.width, 1280u);
  ASSERT_EQ(image.height, 800u);
  for (std::size_t y = 0; y < image.height; ++y) EXPECT_EQ(image.rows[y * (3 * image.width + 1)], '\0');
  EXPECT_EQ(image.at(1, 1), 0xFFFFFFu);
  for (const Stroke& stroke : draw(slope()).strokes) {
    if (stroke.ink != Ink::series) continue;
    const Point at = stroke.points[2];
    EXPECT_EQ(image.at(static_cast<std::size_t>(2 * at.x), static_cast<std::size_t>(2 * at.y)), kColours[0].light);
  }
}

// A triangle is filled with its colour, and half a pixel at its edge with half of it.
TEST(Png, FillsPolygons) {
  Drawing drawing;
  drawing.width = drawing.height = 20;
  drawing.strokes.push_back(
      {{{2, 2}, {12.25, 2}, {12.25, 18}, {2, 18}, {2, 2}}, Ink::own, 0, 0, 0, false, {}, Colour{0x204060, 0}});
  const Image image = decoded(as_png(drawing));
  EXPECT_EQ(image.at(10, 20), 0x204060u);
  EXPECT_EQ(image.at(30, 20), 0xffffffu);
  EXPECT_EQ(image.at(24, 20) >> 16, 0x90u);
}

// Letters have the widths of their font; characters without a glyph are boxes, which have a hole.
TEST(Png, DrawsTextInAFont) {
  const auto inked = [](const std::string& text, std::size_t from, std::size_t to) {
    Drawing drawing;
    drawing.width = 60;
    drawing.height = 20;
    drawing.labels.push_back({{2, 15}, text, 12});
    const Image image = decoded(as_png(drawing));
    std::size_t dark = 0;
    for (std::size_t y = 0; y < image.height; ++y)
      for (std::size_t x = from; x < to; ++x) dark += image.at(x, y) != 0xffffffu ? 1u : 0u;
    return dark;
  };
  EXPECT_GT(inked("il", 4, 20), 10u);
  EXPECT_EQ(inked("il", 20, 120), 0u) << "two narrow letters";
  EXPECT_GT(inked("mm", 26, 44), 10u);
  EXPECT_GT(inked("\u00e4", 4, 20), inked("a", 4, 20)) << "two dots more";
  EXPECT_GT(inked("\U0001f600", 4, 20), 10u);
  EXPECT_GT(inked("\xff", 4, 20), 10u);
  EXPECT_EQ(inked(" ", 0, 120), 0u);
}

TEST(Drawings, AreStacked) {
  const Drawing one = draw(slope()), both = stacked({one, one});
  EXPECT_EQ(both.height, 2 * one.height);
  EXPECT_EQ(both.strokes.size(), 2 * one.strokes.size());
  EXPECT_EQ(both.labels.back().at.y, one.labels.back().at.y + one.height);
  EXPECT_EQ(both.strokes.back().points[0].y, one.strokes.back().points[0].y + one.height);
}

TEST(Png, AnyFigureHasOne) {
  constexpr double kMax = std::numeric_limits<double>::max();
  Figure figure = crossing();
  figure.series.push_back({"\xff\xfe ü", {-kMax, kMax, 0}, {kMax, -kMax, std::nan("")}, 99, 7});
  figure.series.push_back({"one", {2}, {2}, 3, 3});
  figure.series.push_back({"", {}, {}});
  for (const bool log : {false, true}) {
    figure.x.log = figure.y.log = log;
    EXPECT_GT(decoded(as_png(figure)).width, 0u);
    EXPECT_TRUE(as_svg(figure).ends_with("</svg>\n"));
    EXPECT_FALSE(as_text(figure, {}).empty());
  }
  EXPECT_GT(decoded(as_png(Figure{})).height, 0u);
}

// Areas, of which those of one colour are one path, lie below the labels, which may have colours of their own.
TEST(Drawings, AreasAndColouredLabels) {
  Drawing drawing;
  drawing.title = "squares";
  drawing.width = drawing.height = 40;
  drawing.areas = {{{0, 0}, {10, 20}, {0x102030, 0x405060}}, {{20, 0}, {10, 10}, {0x102030, 0x405060}}};
  drawing.areas.push_back({{-5, 30}, {500, 500}, kGridColour});
  drawing.strokes.push_back({{{35, 5}, {35, 15}}, Ink::series, 4, 0, 0, true});
  drawing.labels.push_back({{2, 12}, "", 12, Anchor::start, false, {0xffffff, 0x000000}});
  drawing.labels.push_back({{2, 12}, "a", 12, Anchor::start, false, {0xffffff, 0x000000}});
  const Image image = decoded(as_png(drawing));
  EXPECT_EQ(image.at(19, 39), 0x102030u);
  EXPECT_EQ(image.at(20, 39), 0xffffffu);
  EXPECT_EQ(image.at(45, 5), 0x102030u);
  EXPECT_EQ(image.at(79, 79), kGridColour.light);
  EXPECT_EQ(image.at(70, 10), kColours[0].light);
  EXPECT_EQ(image.at(70, 20), 0xffffffu);  // dots, no line
  const std::string svg = as_svg(drawing);
  EXPECT_EQ(count(svg, "<path class=\"f"), 2u) << svg;
  EXPECT_EQ(count(svg, "M0.00 0.00h10.00v20.00h-10.00zM20.00 0.00h10.00v10.00h-10.00z"), 1u) << svg;
  EXPECT_EQ(count(svg, ".f0{fill:#102030}") + count(svg, ".f0{fill:#405060}"), 2u) << svg;
  EXPECT_EQ(count(svg, "class=\"f2\""), 2u) << svg;
  EXPECT_EQ(count(svg, "<title>squares</title>"), 1u);
}

}  // namespace
}  // namespace graphrun::plot
