// Heat maps: pooled, on a terminal, and as pages.
#include "plot/panels.h"

#include <gtest/gtest.h>

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
