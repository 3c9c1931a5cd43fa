// The tilings that a plan compares: all are listed with their costs, and each can be chosen by its name.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>

#include "graphrun/error.h"
#include "graphrun/load_check.h"
#include "graphrun/session.h"
#include "steps/emulated_executor.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun::test {
namespace {

Model peaks() {
  return load_model(source_folder() + "/bench/models/peaks.json");
}

FusionSummary planned(const std::string& tiling, const Model& model = peaks()) {
  EmulationOptions as_planned;
  as_planned.blocks.reset();
  SessionOptions options;
  options.custom_executor = std::make_shared<EmulatedExecutor>(as_planned);
  options.tiling = tiling;
  FusionSummary summary;
  const Program program = plan_program(model, options, &summary);
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

// 2,777 multiplications a row, as straight code.
TEST(Tilings, OfLongCodeAreChosenLast) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "long.json").string();
  std::ofstream(path) << R"json({"format": 1, "data": {"train": {"random": {"rows": 10, "seed": 1, "columns":
    {"a": {"normal": 1, "shape": [43]}, "b": {"normal": 1, "shape": [1]}}}, "x": ["a"], "y": ["b"]}},
    "inputs": {"x": ["batch", 43], "y": ["batch", 1]}, "graph": [
    {"name": "h1", "op": "dense", "inputs": ["x"], "units": 59, "activation": "silu"},
    {"name": "h2", "op": "dense", "inputs": ["h1"], "units": 4, "activation": "silu"},
    {"name": "out", "op": "dense", "inputs": ["h2"], "units": 1}, "loss = mean(square(out - y))"],
    "outputs": {"out": "y"}, "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.001}}, "epochs": 1}})json";
  const FusionSummary summary = planned("", load_model(path));
  const auto evaluated = std::ranges::find(summary.regions, "evaluate.train", &RegionSummary::phase);
  ASSERT_NE(evaluated, summary.regions.end());
  const auto& choices = evaluated->choices;
  const auto pair = std::ranges::find_if(choices, [](const auto& choice) { return choice.first.starts_with("pair:"); });
  ASSERT_NE(pair, choices.end());
  EXPECT_EQ(evaluated->tiling_name.substr(0, 5), "warp:");
  EXPECT_LT(pair->second, choices.front().second);
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

// A Program that is loaded has no edges, which costs depend on: without them these steps would take more than
// single kernels.
TEST(Tilings, AreTakenByWhoeverLoadsThePlan) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "deep.json").string();
  std::ofstream(path) << R"json({"format": 1, "data": {"train": {"random": {"rows": 4096, "seed": 1, "columns":
    {"a": {"normal": 1, "shape": [300]}, "b": {"normal": 1, "shape": [3]}}}, "x": ["a"], "y": ["b"]}},
    "inputs": {"x": ["batch", 300], "y": ["batch", 3]}, "graph": [
    {"name": "h1", "op": "dense", "inputs": ["x"], "units": 253, "activation": "sigmoid"},
    {"name": "h2", "op": "dense", "inputs": ["h1"], "units": 326, "activation": "gelu"},
    {"name": "h3", "op": "dense", "inputs": ["h2"], "units": 224, "activation": "silu"},
    {"name": "h4", "op": "dense", "inputs": ["h3"], "units": 419, "activation": "silu"},
    {"name": "h5", "op": "dense", "inputs": ["h4"], "units": 499, "activation": "selu"},
    {"name": "out", "op": "dense", "inputs": ["h5"], "units": 3}, "loss = mean(abs(out - y))"],
    "outputs": {"out": "y"},
    "train": {"minimize": "loss", "optimizer": {"adamw": {"lr": 0.001}}, "epochs": 1, "batch": 4096}})json";
  EmulationOptions as_planned;
  as_planned.blocks.reset();
  SessionOptions session;
  const auto executor = std::make_shared<EmulatedExecutor>(as_planned);
  session.custom_executor = executor;
  const Program program = plan_program(load_model(path), session);
  EXPECT_EQ(std::get<StepTiling>(program.phases[0].regions.at(0).tiling).tile, RowTile::block);
  EXPECT_NO_THROW(check_loadable(program, *executor));
}

}  // namespace
}  // namespace graphrun::test
