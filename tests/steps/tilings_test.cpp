// The tilings that a plan compares: all are listed with their costs, and each can be chosen by its name.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "graphrun/error.h"
#include "graphrun/session.h"
#include "steps/emulated_executor.h"
#include "support/source_folder.h"

namespace graphrun::test {
namespace {

Model peaks() {
  return load_model(source_folder() + "/bench/models/peaks.json");
}

FusionSummary planned(const std::string& tiling) {
  EmulationOptions as_planned;
  as_planned.blocks.reset();
  SessionOptions options;
  options.custom_executor = std::make_shared<EmulatedExecutor>(as_planned);
  options.tiling = tiling;
  FusionSummary summary;
  const Program program = plan_program(peaks(), options, &summary);
  EXPECT_EQ(summary.regions.size(), program.phases.size());
  return summary;
}

TEST(Tilings, AreListedByTheirCosts) {
  for (const RegionSummary& region : planned("").regions) {
    ASSERT_GT(region.choices.size(), 5u) << region.phase;
    EXPECT_EQ(region.tiling_name, region.choices.front().first);
    for (std::size_t i = 1; i < region.choices.size(); ++i)
      EXPECT_LE(region.choices[i - 1].second, region.choices[i].second) << region.phase;
  }
}

TEST(Tilings, AreChosenByName) {
  for (const RegionSummary& region : planned("warp").regions) {
    EXPECT_EQ(region.tiling_name.substr(0, 5), "warp:") << region.phase;
    EXPECT_EQ(std::get<StepTiling>(region.tiling).tile, RowTile::warp);
  }
  const std::string last = planned("").regions[0].choices.back().first;
  EXPECT_EQ(planned(last).regions[0].tiling_name, last);
  EXPECT_THROW(planned("warp:1x1x1"), Error);
}

// Rows of 784 numbers: no step by itself, that could have another tile, makes up for the region that can't.
TEST(Tilings, MustBeARegions) {
  EmulationOptions as_planned;
  as_planned.blocks.reset();
  SessionOptions options;
  options.custom_executor = std::make_shared<EmulatedExecutor>(as_planned);
  options.tiling = "warp";
  LoadOptions small;
  small.overrides = {{"data.train.random.rows", "60"}, {"train.batch", "20"}};
  const Model wide = load_model(source_folder() + "/bench/models/mnist_logreg.json", small);
  EXPECT_THROW(plan_program(wide, options), Error);
  options.tiling = "block";
  EXPECT_EQ(std::get<StepTiling>(plan_program(wide, options).phases[0].regions.at(0).tiling).tile, RowTile::block);
}

}  // namespace
}  // namespace graphrun::test
