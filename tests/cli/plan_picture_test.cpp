// Picture of a memory plan: no two values overlap, for every model, with and without regions.
#include "cli/plans/plan_picture.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "graphrun/session.h"
#include "support/source_folder.h"

namespace graphrun::test {
namespace {

bool overlap(const plot::Area& a, const plot::Area& b) {
  constexpr double kRounding = 1e-6;
  return a.corner.x + a.size.x > b.corner.x + kRounding && b.corner.x + b.size.x > a.corner.x + kRounding &&
         a.corner.y + a.size.y > b.corner.y + kRounding && b.corner.y + b.size.y > a.corner.y + kRounding;
}

// Areas of values, below the legend.
std::vector<plot::Area> values_of(const plot::Drawing& drawing) {
  std::vector<plot::Area> values;
  for (const plot::Area& area : drawing.areas)
    if (area.corner.y >= 100) values.push_back(area);
  return values;
}

std::vector<std::filesystem::path> models() {
  std::vector<std::filesystem::path> paths{source_folder() + "/models/xor.json",
                                           source_folder() + "/models/digits.json"};
  for (const auto& file : std::filesystem::directory_iterator(source_folder() + "/bench/models"))
    if (file.path().extension() == ".json") paths.push_back(file.path());
  return paths;
}

TEST(PlanPicture, HasNoTwoValuesOverEachOther) {
  std::size_t drawn = 0;
  for (const std::filesystem::path& path : models()) {
    LoadOptions load;
    load.data = DataUse::sizes;
    const Model model = load_model(path, load);
    for (const bool fuse : {true, false}) {
      SessionOptions options;
      options.fuse = fuse;
      const std::vector<plot::Area> values = values_of(cli::plan_picture(plan_program(model, options), "cpu"));
      EXPECT_FALSE(values.empty()) << path;
      drawn += values.size();
      std::size_t overlaps = 0;
      for (std::size_t i = 0; i < values.size(); ++i)
        for (std::size_t k = 0; k < i; ++k) overlaps += overlap(values[i], values[k]) ? 1 : 0;
      EXPECT_EQ(overlaps, 0u) << path << (fuse ? "" : " without regions");
    }
  }
  EXPECT_GT(drawn, 200u);
}

TEST(PlanPicture, IsTheSameEachTimeAndNamesWhatIsLarge) {
  LoadOptions load;
  load.data = DataUse::sizes;
  const Model model = load_model(source_folder() + "/bench/models/mnist_mlp.json", load);
  const plot::Drawing drawing = cli::plan_picture(plan_program(model, {}), "cpu"),
                      again = cli::plan_picture(plan_program(model, {}), "cpu");
  EXPECT_EQ(drawing.areas.size(), again.areas.size());
  std::string labels;
  for (const plot::Label& label : drawing.labels) labels += label.text + "\n";
  for (const char* word : {"mnist_mlp on cpu", "lower bound", "peak at step", "activation", "train/matmul_1"})
    EXPECT_NE(labels.find(word), std::string::npos) << word << " is not in\n" << labels;
}

}  // namespace
}  // namespace graphrun::test
