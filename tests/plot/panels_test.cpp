// Heat maps: pooled, on a terminal, and as pages.
#include "plot/panels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace graphrun::plot {
namespace {

HeatMap square(std::size_t side) {
  HeatMap map;
  map.width = map.height = side;
  map.cells.resize(side * side);
  std::iota(map.cells.begin(), map.cells.end(), 0.0);
  return map;
}

Panels panels_of(HeatMap map) {
  Panels panels;
  panels.maps.push_back(std::move(map));
  return panels;
}

TEST(Panels, PooledCellsAreMeans) {
  HeatMap map = square(4);
  map.cells[0] = std::nan("");
  map.columns = {"a", "b", "c", "d"};
  const HeatMap small = pooled(map, 2, 3);
  EXPECT_EQ(small.width, 2u);
  EXPECT_EQ(small.height, 2u);
  EXPECT_EQ(small.cells, (std::vector<double>{10.0 / 3, 4.5, 10.5, 12.5}));
  EXPECT_EQ(small.columns, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(pooled(map, 4, 4).cells.size(), 16u);
  for (double& cell : map.cells) cell *= 1e-20;
  EXPECT_DOUBLE_EQ(pooled(map, 2, 3).cells[1], 4.5e-20);
}

TEST(Panels, AsText) {
  HeatMap map = square(2);
  map.columns = map.rows = {"cat", "dog"};
  map.x_label = "predicted";
  map.y_label = "true";
  Panels panels = panels_of(map);
  panels.numbers = true;
  EXPECT_EQ(as_text(panels, {}), "true\n    cat dog\ncat   0   1\ndog   2   3\n    predicted\n");
  panels.numbers = false;
  panels.maps[0].x_label = panels.maps[0].y_label = "";
  panels.maps[0].columns = {};
  EXPECT_EQ(as_text(panels, {}), "cat   ░░\ndog ▓▓██\n' ': 0   '█': 3\n");
  TextOptions ascii;
  ascii.unicode = false;
  EXPECT_EQ(as_text(panels, ascii), "cat   --\ndog **@@\n' ': 0   '@': 3\n");
}

// The lowest cell is the lightest on light and the darkest on dark; those of one colour beside each other are one area.
TEST(Panels, AsAPage) {
  HeatMap map = square(2);
  map.cells = {0, 0, std::nan(""), 1};
  Panels panels = panels_of(map);
  panels.scale = false;
  const Drawing drawing = draw(panels);
  ASSERT_EQ(drawing.areas.size(), 2u);
  const Area &low = drawing.areas[0], &high = drawing.areas[1];
  EXPECT_EQ(low.size.x, 2 * high.size.x);
  EXPECT_GT(low.fill.light, high.fill.light);
  EXPECT_LT(low.fill.dark, high.fill.dark);
  EXPECT_EQ(high.corner.x, low.corner.x + high.size.x);
  EXPECT_EQ(high.corner.y, low.corner.y + low.size.y);
  panels.numbers = true;
  EXPECT_EQ(draw(panels).areas.size(), 3u);
  EXPECT_EQ(draw(panels).labels.size(), 3u);
}

// Numbers in the cells may be others than those that colours say; what the scale says has room below the title.
TEST(Panels, WrittenNumbersAndALabelOfTheScale) {
  HeatMap map = square(2);
  map.written = {10, 20, 30, 40};
  Panels panels = panels_of(map);
  panels.title = "a title that goes over the whole page, above the cells and the scale";
  panels.numbers = true;
  panels.scale_label = "% of row";
  EXPECT_EQ(as_text(panels, {}).substr(panels.title.size()), "\n 10 20\n 30 40\n");
  const Drawing drawing = draw(panels);
  double title = 0, scale = 0;
  std::string numbers;
  for (const Label& label : drawing.labels) {
    if (label.text == panels.scale_label) scale = label.at.y;
    if (label.text.starts_with("a title")) title = label.at.y;
    if (label.anchor == Anchor::middle) numbers += label.text + " ";
  }
  EXPECT_EQ(numbers, "10 20 30 40 ");
  EXPECT_GT(scale, title + 11);
  EXPECT_EQ(drawing.areas[0].fill.light, draw(panels_of(square(2))).areas[0].fill.light);
  EXPECT_TRUE(pooled(map, 1, 1).written.empty());
}

// Zero is neutral, also if one sign has larger values; the text has the same order.
TEST(Panels, SignedCellsDivergeFromZero) {
  HeatMap map = square(2);
  map.cells = {-1, 0, 1, 4};
  Panels panels = panels_of(map);
  panels.is_signed = true;
  panels.scale = false;
  const std::vector<Area> areas = draw(panels).areas;
  ASSERT_EQ(areas.size(), 4u);
  EXPECT_EQ(areas[1].fill.light, signed_shade(0.5).light);
  EXPECT_EQ(areas[0].fill.light, signed_shade(0.375).light);
  EXPECT_EQ(areas[3].fill.light, signed_shade(1).light);
  panels.maps[0].cells[0] = 1;  // no negative cell
  EXPECT_EQ(draw(panels).areas.back().fill.light, shade(1).light);
}

// Numbers of 3 and of 300 cells: all or none.
TEST(Panels, NumbersAreWrittenIfAllFit) {
  HeatMap map = square(3);
  map.cells[4] = 1.0 / 3;
  Panels panels = panels_of(map);
  panels.numbers = true;
  panels.scale = false;
  EXPECT_EQ(draw(panels).labels.size(), 9u);
  map = square(30);
  panels.maps = {map};
  EXPECT_EQ(draw(panels).labels.size(), 0u);
}

TEST(Panels, PointsAreAboveTheCells) {
  Panels panels = panels_of(square(2));
  panels.maps[0].points = {{0.5, 1.5}, {2, 0}};
  panels.maps[0].point_values = {3, 0};
  const Drawing drawing = draw(panels);
  std::vector<Stroke> dots;
  for (const Stroke& stroke : drawing.strokes)
    if (stroke.dots) dots.push_back(stroke);
  ASSERT_EQ(dots.size(), 4u);  // each with a rim
  const Area& lower_left = drawing.areas[2];
  EXPECT_NEAR(dots[0].points[0].x, lower_left.corner.x + lower_left.size.x / 2, 1e-9);
  EXPECT_NEAR(dots[0].points[0].y, lower_left.corner.y + lower_left.size.y / 2, 1e-9);
  EXPECT_EQ(dots[1].own.light, shade(1).light);
  EXPECT_EQ(dots[3].own.light, shade(0).light);
}

// A pyramid: the nearest face is painted last, the highest point is highest on the page; a missing cell has no face.
TEST(Panels, SurfacesIn3d) {
  HeatMap map = square(5);
  for (std::size_t i = 0; i < 25; ++i)
    map.cells[i] = 2 - std::max(std::abs(static_cast<double>(i % 5) - 2), std::abs(static_cast<double>(i / 5) - 2));
  map.x_label = "east";
  map.y_label = "north";
  Panels panels = panels_of(map);
  panels.is_3d = true;
  std::vector<Stroke> faces;
  const auto draw_faces = [&] {
    faces.clear();
    for (const Stroke& stroke : draw(panels).strokes)
      if (stroke.fill) faces.push_back(stroke);
  };
  draw_faces();
  ASSERT_EQ(faces.size(), 16u);
  Point top = faces[0].points[0];
  for (const Stroke& face : faces)
    for (const Point& point : face.points)
      if (point.y < top.y) top = point;
  std::size_t touching = 0;
  for (const Stroke& face : faces)
    touching += std::ranges::any_of(face.points, [&](Point point) { return point.y == top.y; }) ? 1u : 0u;
  EXPECT_EQ(touching, 4u);
  EXPECT_LT(faces.front().points[0].y, faces.back().points[0].y);
  EXPECT_TRUE(std::ranges::any_of(draw(panels).labels, [](const Label& label) { return label.text == "north"; }));
  panels.maps[0].cells[6] = std::nan("");
  draw_faces();
  EXPECT_EQ(faces.size(), 12u);
  EXPECT_GT(as_png(draw(panels)).size(), 1000u);
}

TEST(Panels, AnyMapsHaveOne) {
  constexpr double kMax = std::numeric_limits<double>::max();
  Panels panels = panels_of(square(1));
  panels.maps.push_back(square(0));
  panels.maps.push_back(square(1000));
  panels.maps.push_back(square(2));
  panels.maps.back().cells = {kMax, -kMax, std::nan(""), HUGE_VAL};
  panels.maps.back().title = panels.maps.back().x_label = std::string(1000, '\xff');
  panels.maps.back().columns = panels.maps.back().rows = {std::string(300, 'x'), ""};
  for (const std::size_t per_row : {0u, 1u, 3u, 1000u}) {
    panels.per_row = per_row;
    panels.numbers = !panels.numbers;
    panels.is_signed = per_row == 3;
    panels.is_3d = per_row == 1000;
    const std::string svg = as_svg(draw(panels));
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
    EXPECT_LT(svg.size(), 1200000u);
    EXPECT_FALSE(as_png(draw(panels)).empty());
    EXPECT_FALSE(as_text(panels, {}).empty());
  }
  EXPECT_FALSE(as_svg(draw(Panels{})).empty());
  EXPECT_EQ(as_text(Panels{}, {}), "");
}

}  // namespace
}  // namespace graphrun::plot
