// png.cpp: renders a Drawing as PNG with antialiased lines on white, at two pixels per point.
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>

#include "plot/drawing.h"
#include "plot/glyphs.h"
#include "plot/render.h"

namespace graphrun::plot {
namespace {

constexpr double kPixels = 2;  // per point

class Page {
 public:
  Page(double width, double height)
      : width_(static_cast<int>(std::lround(width * kPixels))),
        height_(static_cast<int>(std::lround(height * kPixels))) {
    const std::size_t pixels = static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_);
    colours_.assign(pixels * 3, 255);
    cover_.assign(pixels, 0);
  }

  // Adds a segment, in points. Pixels keep the maximum coverage, so that joints of segments are not drawn twice.
  void add(Point from, Point to, double width) {
    const Point a{from.x * kPixels, from.y * kPixels}, b{to.x * kPixels, to.y * kPixels};
    const double reach = width * kPixels / 2 + 1, dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
    const int top = std::max(0, static_cast<int>(std::floor(std::min(a.y, b.y) - reach)));
    const int bottom = std::min(height_ - 1, static_cast<int>(std::ceil(std::max(a.y, b.y) + reach)));
    for (int y = top; y <= bottom; ++y) {
      const auto [left, right] = span(a, b, y, reach);
      for (int x = left; x <= right; ++x) {
        const double px = x + 0.5 - a.x, py = y + 0.5 - a.y;
        const double t = length2 > 0 ? std::clamp((px * dx + py * dy) / length2, 0.0, 1.0) : 0;
        const double cover = std::clamp(
            reach - 0.5 - std::sqrt((px - t * dx) * (px - t * dx) + (py - t * dy) * (py - t * dy)), 0.0, 1.0);
        float& covered = cover_[index(x, y)];
        covered = std::max(covered, static_cast<float>(std::lround(cover * 15)) / 15);  // few shades compress better
      }
    }
    touched_top_ = std::min(touched_top_, top);
    touched_bottom_ = std::max(touched_bottom_, bottom);
  }

  // Adds the inside of closed polygons, by the nonzero winding rule. Each pixel row is sampled at `kLines` heights.
  void add(const std::vector<std::vector<Point>>& polygons) {
    constexpr int kLines = 5;
    double low = 1e300, high = -1e300;
    for (const std::vector<Point>& polygon : polygons)
      for (const Point& point : polygon) low = std::min(low, point.y), high = std::max(high, point.y);
    if (low > high) return;  // a blank
    const auto pixel_row = [&](double y) {
      return static_cast<int>(std::clamp(std::floor(y * kPixels), 0.0, height_ - 1.0));
    };
    const int top = pixel_row(low), bottom = pixel_row(high);
    std::vector<std::pair<double, int>> crossings;  // x in pixels, direction of the edge
    for (int y = top; y <= bottom; ++y) {
      for (int line = 0; line < kLines; ++line) {
        crossings_at((y + (line + 0.5) / kLines) / kPixels, polygons, crossings);
        int winding = 0;
        for (std::size_t i = 0; i + 1 < crossings.size(); ++i) {
          winding += crossings[i].second;
          if (winding != 0) cover(y, crossings[i].first, crossings[i + 1].first, 1.0 / kLines);
        }
      }
    }
    touched_top_ = std::min(touched_top_, top);
    touched_bottom_ = std::max(touched_bottom_, bottom);
  }

  // Fills whole pixels, so that adjacent areas leave no gap, also if rounding errors move their common edge.
  void fill(const Area& area) {
    if (area.radius > 0) return fill_rounded(area);
    const auto pixel = [](double at, int most) {
      return static_cast<int>(std::clamp(std::round(at * kPixels + 1e-6), 0.0, static_cast<double>(most)));
    };
    const int left = pixel(area.corner.x, width_), right = pixel(area.corner.x + area.size.x, width_);
    const int bottom = pixel(area.corner.y + area.size.y, height_);
    for (int y = pixel(area.corner.y, height_); y < bottom; ++y) {
      for (int x = left; x < right; ++x) {
        for (unsigned channel = 0; channel < 3; ++channel)
          colours_[index(x, y) * 3 + channel] = static_cast<std::uint8_t>(area.fill.light >> (16 - 8 * channel));
      }
    }
  }

  // Blends the colour into everything added since the last call.
  void paint(unsigned rgb) {
    for (int y = touched_top_; y <= touched_bottom_; ++y) {
      for (int x = 0; x < width_; ++x) {
        float& cover = cover_[index(x, y)];
        if (cover == 0) continue;
        for (unsigned channel = 0; channel < 3; ++channel) {
          std::uint8_t& value = colours_[index(x, y) * 3 + channel];
          const auto ink = static_cast<float>(rgb >> (16 - 8 * channel) & 255);
          value = static_cast<std::uint8_t>(std::lround(static_cast<float>(value) * (1 - cover) + ink * cover));
        }
        cover = 0;
      }
    }
    touched_top_ = height_;
    touched_bottom_ = -1;
  }

  std::string png() const;

 private:
  std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x);
  }
  static void crossings_at(double y, const std::vector<std::vector<Point>>& polygons,
                           std::vector<std::pair<double, int>>& crossings) {
    crossings.clear();
    for (const std::vector<Point>& polygon : polygons) {
      for (std::size_t i = 0; i < polygon.size(); ++i) {
        const Point a = polygon[i], b = polygon[(i + 1) % polygon.size()];
        if ((a.y <= y) == (b.y <= y)) continue;
        crossings.emplace_back((a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x)) * kPixels, a.y < b.y ? 1 : -1);
      }
    }
    std::sort(crossings.begin(), crossings.end());
  }
  // Adds `part` of the coverage of the pixels from `left` to `right`.
  void cover(int y, double left, double right, double part) {
    left = std::max(left, 0.0), right = std::min(right, static_cast<double>(width_));
    if (left >= right) return;
    for (int x = static_cast<int>(left); x < right; ++x) {
      const double share = std::min(right, x + 1.0) - std::max(left, static_cast<double>(x));
      float& covered = cover_[index(x, y)];
      covered = std::min(1.0F, covered + static_cast<float>(share * part));
    }
  }
  // Two rectangles that form a cross, and a disc in each corner.
  void fill_rounded(const Area& area) {
    const double r = area.radius, right = area.corner.x + area.size.x, bottom = area.corner.y + area.size.y;
    for (const double x : {area.corner.x + r, right - r})
      for (const double y : {area.corner.y + r, bottom - r}) add({x, y}, {x, y}, 2 * r);
    paint(area.fill.light);
    fill({{area.corner.x + r, area.corner.y}, {area.size.x - 2 * r, area.size.y}, area.fill});
    fill({{area.corner.x, area.corner.y + r}, {area.size.x, area.size.y - 2 * r}, area.fill});
  }
  // Range of pixels in row y within reach of the segment.
  std::pair<int, int> span(Point a, Point b, int y, double reach) const {
    double low = std::min(a.x, b.x), high = std::max(a.x, b.x);
    if (std::abs(b.y - a.y) > 1) {
      const double slope = (b.x - a.x) / (b.y - a.y), one = a.x + (y - reach - a.y) * slope,
                   other = a.x + (y + 1 + reach - a.y) * slope;
      low = std::max(low, std::min(one, other));
      high = std::min(high, std::max(one, other));
    }
    return {std::max(0, static_cast<int>(std::floor(low - reach))),
            std::min(width_ - 1, static_cast<int>(std::ceil(high + reach)))};
  }

  int width_, height_;
  std::vector<std::uint8_t> colours_;  // (height, width, 3)
  std::vector<float> cover_;           // (height, width)
  int touched_top_ = 0, touched_bottom_ = -1;
};

std::string big_endian(std::size_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 255);
  return bytes;
}

std::string chunk(std::string_view kind, std::string_view content) {
  std::string bytes = std::string(kind) + std::string(content);
  const auto* from = reinterpret_cast<const Bytef*>(bytes.data());
  return big_endian(content.size()) + bytes + big_endian(crc32(0, from, static_cast<uInt>(bytes.size())));
}

std::string Page::png() const {
  const std::size_t row = static_cast<std::size_t>(width_) * 3;
  std::string lines;
  for (std::size_t y = 0; y < static_cast<std::size_t>(height_); ++y) {
    lines += '\0';  // filter type none: suits flat areas
    lines.append(reinterpret_cast<const char*>(colours_.data()) + y * row, row);
  }
  uLongf size = compressBound(static_cast<uLong>(lines.size()));
  std::string packed(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(lines.data()),
                static_cast<uLong>(lines.size()), Z_BEST_COMPRESSION) != Z_OK)
    throw std::bad_alloc();
  packed.resize(size);
  const std::string header = big_endian(static_cast<std::size_t>(width_)) +
                             big_endian(static_cast<std::size_t>(height_)) + std::string("\x08\x02\0\0\0", 5);
  const std::string resolution = big_endian(5669) + big_endian(5669) + '\x01';  // 144 pixels per inch
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("pHYs", resolution) + chunk("IDAT", packed) +
         chunk("IEND", "");
}

// Splits a line into its dashes.
void add_dashed(Page& page, const Stroke& stroke) {
  if (stroke.dots) {
    for (const Point& point : stroke.points) page.add(point, point, stroke.width);
    return;
  }
  const std::vector<double>& dash = dash_of(stroke.dash);
  std::size_t part = 0;
  double left = dash.empty() ? 1e300 : dash[0];
  for (std::size_t i = 1; i < stroke.points.size(); ++i) {
    Point from = stroke.points[i - 1];
    const Point to = stroke.points[i];
    double length = std::hypot(to.x - from.x, to.y - from.y);
    while (length > left) {
      const double t = left / length;
      const Point cut{from.x + t * (to.x - from.x), from.y + t * (to.y - from.y)};
      if (part % 2 == 0) page.add(from, cut, stroke.width);
      from = cut;
      length -= left;
      left = dash[++part % dash.size()];
    }
    if (part % 2 == 0) page.add(from, to, stroke.width);
    left -= length;
  }
  if (stroke.points.size() == 1) page.add(stroke.points[0], stroke.points[0], stroke.width + 1);
}

void add_label(Page& page, const Label& label) {
  const std::vector<Glyph> glyphs = glyphs_of(label.text);
  const auto advance = [&](const Glyph& glyph) { return label.size * (label.mono ? kAdvance : glyph.advance); };
  double width = 0, at = 0;
  for (const Glyph& glyph : glyphs) width += advance(glyph);
  if (label.anchor != Anchor::start) at = label.anchor == Anchor::middle ? -width / 2 : -width;
  for (const Glyph& glyph : glyphs) {
    const double left = at + (advance(glyph) - label.size * glyph.advance) / 2;
    std::vector<std::vector<Point>> polygons = glyph.polygons;
    for (std::vector<Point>& polygon : polygons) {
      for (Point& point : polygon) {
        const double along = left + point.x * label.size, down = point.y * label.size;
        point =
            label.upwards ? Point{label.at.x + down, label.at.y - along} : Point{label.at.x + along, label.at.y + down};
      }
    }
    page.add(polygons);
    if (label.bold)
      for (const std::vector<Point>& polygon : polygons)
        for (std::size_t i = 0; i < polygon.size(); ++i)
          page.add(polygon[i], polygon[(i + 1) % polygon.size()], label.size / 16);
    at += advance(glyph);
  }
}

unsigned ink_of(const Stroke& stroke) {
  switch (stroke.ink) {
    case Ink::axis:
      return kAxisColour.light;
    case Ink::grid:
      return kGridColour.light;
    case Ink::own:
      return stroke.own.light;
    case Ink::series:
      break;
  }
  return kColours[stroke.colour % kColourCount].light;
}

}  // namespace

std::string as_png(const Figure& figure) {
  return as_png(draw(figure));
}

std::string as_png(const Drawing& drawing) {
  Page page(drawing.width, drawing.height);
  for (const Area& area : drawing.areas) page.fill(area);
  for (const Stroke& stroke : drawing.strokes) {
    if (stroke.fill) {
      page.add({stroke.points});
      page.paint(stroke.fill->light);
    }
    if (stroke.width > 0) add_dashed(page, stroke);
    page.paint(ink_of(stroke));
  }
  for (const Label& label : drawing.labels) {
    add_label(page, label);
    page.paint(label.colour.light);
  }
  return page.png();
}

}  // namespace graphrun::plot
