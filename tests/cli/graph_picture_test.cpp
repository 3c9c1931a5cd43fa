// The picture of a model's graph: of every model the boxes have places of their own, and all parameters are in them.
#include "cli/pictures/graph_picture.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "plot/render.h"
#include "support/graph_places.h"
#include "support/source_folder.h"

namespace graphrun::test {
namespace {

std::vector<std::filesystem::path> models_drawn() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"/models", "/bench/models", "/bench/models/steps"})
    for (const auto& file : std::filesystem::directory_iterator(source_folder() + folder))
      if (file.path().extension() == ".json" && file.path().stem().extension() != ".schema")
        paths.push_back(file.path());
  return paths;
}

// The areas of boxes: those with round corners.
std::vector<plot::BoxSize> box_sizes(const plot::Drawing& drawing) {
  std::vector<plot::BoxSize> sizes;
  for (const plot::Area& area : drawing.areas)
    if (area.radius > 0) sizes.push_back({area.size.x, area.size.y});
  return sizes;
}

void expect_in_place(const plot::GraphFigure& figure, const std::filesystem::path& path) {
  const plot::Drawing drawing = plot::draw(figure);
  const std::vector<plot::BoxSize> sizes = box_sizes(drawing);
  ASSERT_EQ(sizes.size(), figure.boxes.size()) << path;
  EXPECT_EQ(misplaced(sizes, figure.edges, plot::lay_out(sizes, figure.edges)), "") << path;
  const std::string svg = plot::as_svg(drawing);
  EXPECT_EQ(malformed(svg), "") << path;
  EXPECT_EQ(svg, plot::as_svg(plot::draw(figure))) << path;
  EXPECT_LT(svg.size(), std::size_t{2} << 20) << path;
}

TEST(GraphPictures, OfAllModels) {
  std::size_t count = 0;
  for (const std::filesystem::path& path : models_drawn()) {
    LoadOptions load;
    load.data = DataUse::none;
    const Model model = load_model(path, load);
    const GraphOutline outline = graph_outline(model);
    expect_in_place(cli::graph_picture(outline), path);
    // Every number to learn is in one box.
    std::int64_t elements = 0;
    std::set<std::string> names;
    for (const OutlineValue& value : outline.values) {
      EXPECT_TRUE(names.insert(value.name).second) << path << ": " << value.name;
      if (value.role == OutlineValue::Role::parameter) elements += value.type.shape.elements();
      for (const auto& parameter : value.parameters) elements += parameter.second.elements();
    }
    EXPECT_EQ(elements, outline.parameter_elements) << path;
    EXPECT_GT(elements, 0) << path;
    ++count;
  }
  EXPECT_GE(count, 15u);
}

TEST(GraphPictures, OfAWholeStep) {
  LoadOptions load;
  load.data = DataUse::sizes;
  for (const char* name : {"xor", "digits", "peaks"}) {
    const std::filesystem::path path = source_folder() + "/models/" + name + ".json";
    const GraphOutline step = step_outline(load_model(path, load));
    EXPECT_GT(step.values.size(), 20u);
    expect_in_place(cli::graph_picture(step), path);
  }
}

}  // namespace
}  // namespace graphrun::test
