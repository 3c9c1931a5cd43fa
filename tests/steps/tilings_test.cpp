// The tilings that a plan compares: all are listed with their costs, and each can be chosen by its name.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "executors/common/load_check.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/session.h"
#include "steps/emulated_executor.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun::test {
namespace {

Model peaks() {
  return load_model(source_folder() + "/bench/models/peaks.json");
}

// Trained by all rows at once.
Model network(int rows, int inputs, int targets, std::string_view graph) {
  const TemporaryFolder folder;
  return load_model(folder.write("network.json", fmt::format(R"({{"format": 1, "data": {{"train": {{"random":
      {{"rows": {}, "seed": 1, "columns": {{"a": {{"normal": 1, "shape": [{}]}}, "b": {{"normal": 1, "shape": [{}]}}}}}},
      "x": ["a"], "y": ["b"]}}}}, "inputs": {{"x": ["batch", {}], "y": ["batch", {}]}}, "graph": [{}],
      "outputs": {{"out": "y"}}, "train": {{"minimize": "loss", "optimizer": {{"adamw": {{"lr": 0.001}}}}, "epochs": 1}}}})",
                                                             rows, inputs, targets, inputs, targets, graph)));
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
  const Model model = network(10, 43, 1, R"js("h1 = dense(x, units=59, activation=silu)",
    "h2 = dense(h1, units=4, activation=silu)", "out = dense(h2, units=1)", "loss = mean(square(out - y))")js");
  const FusionSummary summary = planned("", model);
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

// The largest error, which rows have it, its gradient: three stages, between which rows wait in the arena. More bytes
// than stay in registers, and yet one kernel.
TEST(Tilings, OfAllOfAPhaseAreTakenWhateverTheyMove) {
  EmulationOptions as_planned;
  as_planned.blocks.reset();
  SessionOptions options;
  options.custom_executor = std::make_shared<EmulatedExecutor>(as_planned);
  const Program program =
      plan_program(network(5, 3, 2, R"js("out = dense(x, units=2)", "loss = max(abs(out - y))")js"), options);
  const Phase& train = program.phases[0];
  ASSERT_EQ(train.regions.size(), 1u);
  EXPECT_EQ(train.regions[0].stages.size(), 3u);
  EXPECT_EQ(train.regions[0].last - train.regions[0].first(), train.steps.size());
}

// Gradients of gradients: values of a row that wait take more registers than a lane has, and no other tile can.
TEST(Tilings, OfSecondDerivativesAreOneKernel) {
  LoadOptions adam;
  adam.overrides = {{"train.optimizer", R"({"adam": {"lr": 0.001}})"}};
  EmulationOptions as_planned;
  as_planned.blocks.reset();
  SessionOptions options;
  options.custom_executor = std::make_shared<EmulatedExecutor>(as_planned);
  for (const char* name : {"/examples/physics/burgers.json", "/bench/physics/heat.json"}) {
    const Program program = plan_program(load_model(source_folder() + name, adam), options);
    const Phase& train = program.phases[0];
    ASSERT_EQ(train.regions.size(), 1u) << name;
    EXPECT_EQ(std::get<StepTiling>(train.regions[0].tiling).tile, RowTile::warp) << name;
    EXPECT_EQ(train.regions[0].last - train.regions[0].first(), train.steps.size()) << name;
  }
}

// The matrix of bfgs does not fit into shared memory: its steps run after the region of the rows, which has all sums.
TEST(Tilings, OfRowsDoNotNeedTheStepsThatFollow) {
  EmulationOptions as_planned;
  as_planned.blocks.reset();
  SessionOptions options;
  options.custom_executor = std::make_shared<EmulatedExecutor>(as_planned);
  for (const char* name : {"heat", "burgers"}) {
    const Program program =
        plan_program(load_model(fmt::format("{}/examples/physics/{}.json", source_folder(), name)), options);
    const Phase& train = program.phases[0];
    ASSERT_FALSE(train.regions.empty()) << name;
    const Region& rows = train.regions[0];
    EXPECT_LT(rows.last, train.steps.size()) << name;
    for (std::size_t i = 0; i < train.steps.size(); ++i) {
      const Step& step = train.steps[i];
      const bool reads_rows = std::ranges::any_of(step.inputs, [&](BufferId input) {
        return program.buffers[input].type.rows > 0 && step.op != Op::minibatch;
      });
      EXPECT_TRUE(!reads_rows || (i >= rows.first() && i < rows.last)) << name << ", " << i;
    }
  }
}

TEST(Tilings, OfASmallMatrixOfBfgsAreOneKernel) {
  LoadOptions ten;
  ten.overrides = {{"parameters.Wt.shape.1", "10"}, {"parameters.Wx.shape.1", "10"}, {"parameters.b.shape.0", "10"}};
  const Model model = load_model(source_folder() + "/examples/physics/heat.json", ten);
  EXPECT_EQ(planned("", model).regions[0].phase, "train");
  EXPECT_EQ(planned("pair", model).regions[0].tiling_name.substr(0, 5), "pair:");
}

// One weight is no matrix: it is in a variable of each thread.
TEST(Tilings, TakeProductsWithOneWeight) {
  const char* const graph =
      R"js("h = dense(x, units=1, activation=tanh)", "out = dense(h, units=1)", "loss = mean(square(out - y))")js";
  for (const std::string tiling : {"thread", "pair", "warp"})
    EXPECT_EQ(planned(tiling, network(5, 3, 1, graph)).regions[0].tiling_name.substr(0, tiling.size()), tiling);
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

// Measured on an H100, in cycles of 1.755 GHz: 82,000 for 2,048 rows, 131,000 as single kernels; 159,000 and 140,000
// for 4,096, before products ran the steps after them.
TEST(Tilings, OfBlocksAreForStepsThatTakeLongerAsSingleKernels) {
  EmulationOptions as_planned;
  as_planned.blocks.reset();
  SessionOptions session;
  session.custom_executor = std::make_shared<EmulatedExecutor>(as_planned);
  for (const int rows : {2048, 4096}) {
    const Model model = network(rows, 32, 10, R"js("h1 = dense(x, units=128, activation=relu)",
      "h2 = dense(h1, units=128, activation=relu)", "h3 = dense(h2, units=128, activation=relu)",
      "out = dense(h3, units=10)", "loss = mean(square(out - y))")js");
    EXPECT_EQ(plan_program(model, session).phases[0].regions.size(), rows == 2048 ? 1u : 0u) << rows;
  }
}

// A Program that is loaded has no edges, which costs depend on: without them these steps would take more than
// single kernels.
TEST(Tilings, AreTakenByWhoeverLoadsThePlan) {
  const Model model = network(500, 300, 3, R"js("h1 = dense(x, units=253, activation=sigmoid)",
    "h2 = dense(h1, units=326, activation=gelu)", "h3 = dense(h2, units=224, activation=silu)",
    "h4 = dense(h3, units=419, activation=silu)", "h5 = dense(h4, units=499, activation=selu)",
    "out = dense(h5, units=3)", "loss = mean(abs(out - y))")js");
  EmulationOptions as_planned;
  as_planned.blocks.reset();
  SessionOptions session;
  const auto executor = std::make_shared<EmulatedExecutor>(as_planned);
  session.custom_executor = executor;
  const Program program = plan_program(model, session);
  EXPECT_EQ(std::get<StepTiling>(program.phases[0].regions.at(0).tiling).tile, RowTile::block);
  EXPECT_NO_THROW(check_loadable(program, *executor));
}

}  // namespace
}  // namespace graphrun::test
