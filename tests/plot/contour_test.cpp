// Contour lines: where they lie, where they are closed, and where there are none.
#include "plot/contour.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "plot/panels.h"
#include "plot/render.h"

namespace graphrun::plot {
namespace {

template <class Height>
std::vector<double> field(std::size_t width, std::size_t height, Height&& of) {
  std::vector<double> cells;
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x)
      cells.push_back(of(static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5));
  return cells;
}

TEST(Contours, OfAConeAreCircles) {
  const auto cells = field(41, 41, [](double x, double y) { return std::hypot(x - 20.5, y - 20.5); });
  const auto lines = contour(cells, 41, 41, 10);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].front().x, lines[0].back().x);
  EXPECT_EQ(lines[0].front().y, lines[0].back().y);
  EXPECT_GT(lines[0].size(), 60u);
  for (const Point& point : lines[0]) EXPECT_NEAR(std::hypot(point.x - 20.5, point.y - 20.5), 10, 0.02);
  EXPECT_EQ(contour(cells, 41, 41, 25).size(), 4u);  // an arc in each corner
  EXPECT_EQ(contour(cells, 41, 41, 100).size(), 0u);
}

TEST(Contours, OfAPlaneAreStraight) {
  const auto cells = field(6, 4, [](double x, double) { return x; });
  const auto lines = contour(cells, 6, 4, 2.25);
  ASSERT_EQ(lines.size(), 1u);
  ASSERT_EQ(lines[0].size(), 4u);
  for (const Point& point : lines[0]) EXPECT_DOUBLE_EQ(point.x, 2.25);
}

// Of a saddle the lines keep apart, and the mean tells on which side.
TEST(Contours, OfASaddle) {
  const auto high = contour({1, 0, 0, 1}, 2, 2, 0.4), low = contour({1, 0, 0, 1}, 2, 2, 0.6);
  ASSERT_EQ(high.size(), 2u);
  ASSERT_EQ(low.size(), 2u);
  // Above 0.4 the two ones are joined over the middle: each line is around a zero, upper right or lower left.
  for (const auto& line : high) EXPECT_GT(std::abs((line[0].x + line[1].x) / 2 - (line[0].y + line[1].y) / 2), 0.5);
  for (const auto& line : low) EXPECT_LT(std::abs((line[0].x + line[1].x) / 2 - (line[0].y + line[1].y) / 2), 0.1);
}

TEST(Contours, OfAnyNumbers) {
  constexpr double kMax = std::numeric_limits<double>::max();
  EXPECT_TRUE(contour({}, 0, 0, 0).empty());
  EXPECT_TRUE(contour({1}, 1, 1, 0).empty());
  EXPECT_TRUE(contour({0, 1, std::nan(""), 1}, 2, 2, 0.5).empty());
  for (const auto& line : contour({-kMax, kMax, -kMax, kMax}, 2, 2, 0))
    for (const Point& point : line) EXPECT_DOUBLE_EQ(point.x, 1);
  // Every crossing of a random field is on one line, once.
  std::mt19937 draw(1);
  std::vector<double> cells(400);
  for (double& cell : cells) cell = static_cast<double>(draw() % 1000);
  std::size_t crossings = 0, points = 0;
  for (std::size_t y = 0; y < 20; ++y)
    for (std::size_t x = 0; x < 20; ++x) {
      const auto above = [&](std::size_t i) { return cells[i] > 500.5; };
      crossings += x < 19 && above(y * 20 + x) != above(y * 20 + x + 1) ? 1 : 0;
      crossings += y < 19 && above(y * 20 + x) != above(y * 20 + x + 20) ? 1 : 0;
    }
  for (const auto& line : contour(cells, 20, 20, 500.5)) {
    const bool closed = line.front().x == line.back().x && line.front().y == line.back().y;
    points += line.size() - (closed ? 1 : 0);
  }
  EXPECT_EQ(points, crossings);
}

// On a page: a line for each number beside the scale, and the numbers in the longest of them.
TEST(Contours, OfAHeatMap) {
  HeatMap map;
  map.width = map.height = 40;
  map.cells = field(40, 40, [](double x, double y) { return std::hypot(x - 20, y - 20); });
  map.contours = true;
  Panels panels;
  panels.maps.push_back(map);
  const Drawing drawing = draw(panels);
  std::size_t strokes = 0, tens = 0;
  for (const Stroke& stroke : drawing.strokes) strokes += stroke.ink == Ink::own ? 1 : 0;
  for (const Label& label : drawing.labels) tens += label.text == "10" ? 1 : 0;
  EXPECT_GT(strokes, 10u);
  EXPECT_EQ(tens, 2u);
  panels.maps[0].contours = false;
  for (const Stroke& stroke : draw(panels).strokes) EXPECT_NE(stroke.ink, Ink::own);
  EXPECT_NE(as_svg(drawing), as_svg(draw(panels)));
}

}  // namespace
}  // namespace graphrun::plot
