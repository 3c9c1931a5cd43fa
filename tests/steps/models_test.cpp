// Models with the emulated executor as the candidate: every step alone, regions from equal states, many steps of one
// launch beside as many launches of one; and the same bytes whatever the order in which threads run.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executors/verify_models.h"
#include "graphrun/session.h"
#include "graphrun/verify.h"
#include "session/compiling/compiled_model.h"
#include "steps/emulated_executor.h"
#include "steps/states.h"
#include "support/rounds.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun::test {
namespace {

std::shared_ptr<EmulatedExecutor> emulated(std::optional<Blocks> shape, RowTile tile, std::uint64_t schedule) {
  EmulationOptions options;
  options.tile = tile;
  options.blocks = shape;
  options.schedule = schedule;
  return std::make_shared<EmulatedExecutor>(options);
}

constexpr RowTile kAllTiles[] = {RowTile::thread, RowTile::warp, RowTile::block, RowTile::pair, RowTile::split};
constexpr const char* kTileNames[] = {"rows of threads", "rows of warps", "tiles of blocks", "rows of pairs",
                                      "split tiles"};

// With data of their own and few rows.
struct Case {
  std::string name;
  std::vector<Blocks> shapes;
  std::vector<std::pair<std::string, std::string>> overrides = {};
  std::optional<RowTile> tile = {};  // the only one
};

Model load(const Case& c) {
  LoadOptions options;
  options.overrides = c.overrides;
  const std::string folder = c.name == "xor" || c.name == "forecast"   ? "/models/"
                             : c.name == "burgers" || c.name == "heat" ? "/examples/physics/"
                                                                       : "/bench/models/";
  return load_model(source_folder() + folder + c.name + ".json", options);
}

constexpr const char* kAdam = R"({"adam": {"lr": 0.01}})";

const std::vector<Case>& step_cases() {
  static const std::vector<Case> list = {
      {"xor", {{32, 1, 1}, {32, 2, 2}}},
      {"realestate_1h", {{128, 1, 1}, {32, 2, 1}}},
      {"realestate_1h", {{32, 2, 3}}, {{"train.batch", "100"}}},  // the last batch has 21 rows
      {"realestate_2h", {{32, 4, 1}, {64, 1, 3}}, {{"data.train.random.rows", "150"}}},
      {"spam_logreg", {{32, 2, 2}}, {{"data.train.random.rows", "150"}}},
      {"peaks", {{32, 2, 2}}, {{"data.train.random.rows", "150"}}},
      {"stock_800k", {{32, 2, 2}}, {{"data.train.random.rows", "150"}}},
      {"stock_800k", {{32, 4, 1}}, {{"data.train.random.rows", "5"}}},  // most threads have none
      // Rows of warps only: products of 40 by 20, and of 13 by 6, which fill no block of eight.
      {"peaks", {{64, 2, 1}}, {{"data.train.random.rows", "90"}, {"graph.0.units", "40"}, {"graph.1.units", "20"}}},
      {"stock_800k",
       {{32, 2, 2}},
       {{"data.train.random.rows", "150"}, {"train.batch", "70"}, {"graph.0.units", "13"}, {"graph.1.units", "6"}}},
      // Tiles of blocks only: rows that no registers hold, batches in any order, the last one of 20.
      {"mnist_logreg", {{64, 1, 3}}, {{"data.train.random.rows", "100"}, {"train.batch", "40"}}},
      {"mnist_mlp",
       {{32, 1, 2}, {128, 1, 3}},
       {{"data.train.random.rows", "100"},
        {"data.train.random.columns.a.shape.0", "20"},
        {"inputs.x.1", "20"},
        {"train.batch", "40"},
        {"train.shuffle", "true"},
        {"graph.0.units", "90"},
        {"graph.1.units", "70"}}},
      // Split tiles: slices of 784 features, of 30 that four blocks have unequal parts of, several turns.
      {"mnist_logreg", {{64, 4, 2}, {32, 2, 2}}, {{"data.train.random.rows", "100"}, {"train.batch", "40"}}},
      {"mnist_mlp",
       {{64, 4, 1}, {32, 8, 2}},
       {{"data.train.random.rows", "150"},
        {"data.train.random.columns.a.shape.0", "30"},
        {"inputs.x.1", "30"},
        {"train.batch", "70"},
        {"train.shuffle", "true"},
        {"graph.0.units", "21"},
        {"graph.1.units", "12"}}},
      // Of 4 features the first block has all: what the others write must not go behind the array.
      {"mnist_mlp",
       {{64, 4, 1}, {32, 8, 1}},
       {{"data.train.random.rows", "40"},
        {"data.train.random.columns.a.shape.0", "4"},
        {"inputs.x.1", "4"},
        {"train.batch", "20"},
        {"train.optimizer", R"({"adam": {"lr": 0.01}})"},
        {"graph.0.units", "21"},
        {"graph.1.units", "12"}},
       RowTile::split},
      // Unrolled time steps: gradients of slices are joined, and weights are shared by many products.
      {"forecast",
       {{32, 2, 1}},
       {{"data.source.random.rows", "150"}, {"graph.1.op", "rnn"}, {"graph.1.units", "4"}},
       RowTile::thread},
      {"forecast", {{32, 2, 2}}, {{"data.source.random.rows", "150"}, {"graph.1.units", "1"}}, RowTile::thread},
      // Gradients of gradients: each weight is in five products, whose sum has one accumulator.
      {"burgers", {{64, 2, 1}}, {{"data.train.random.rows", "90"}, {"train.optimizer", kAdam}}, RowTile::warp},
      {"burgers",
       {{32, 2, 2}},
       {{"data.train.random.rows", "75"},
        {"train.batch", "40"},
        {"train.optimizer", kAdam},
        {"graph.1", "h2 = dense(h1, units=13, activation=tanh)"},
        {"graph.2", "h3 = dense(h2, units=4, activation=tanh)"}},
       RowTile::warp},
      // The matrix of bfgs, in shared memory.
      {"heat",
       {{32, 2, 1}},
       {{"data.train.grid.t.2", "7"},
        {"data.train.grid.x.2", "9"},
        {"data.test", "null"},
        {"parameters.Wt.shape.1", "10"},
        {"parameters.Wx.shape.1", "10"},
        {"parameters.b.shape.0", "10"}},
       RowTile::pair},
  };
  return list;
}

void expect_verified(const Model& model, const Blocks& shape, RowTile tile) {
  SCOPED_TRACE(kTileNames[static_cast<std::size_t>(tile)]);
  VerifyOptions options;
  options.custom_executor = emulated(shape, tile, 7);
  options.steps = 2;
  const VerifyReport report = verify(model, options);
  EXPECT_TRUE(report.passed()) << shape.threads << " threads, " << shape.clusters << " clusters of " << shape.cluster
                               << ": " << (report.difference ? to_string(*report.difference) : "");
  EXPECT_GT(report.regions, 0u);
  EXPECT_GT(report.fused_values, 0u);
}

// Each case by itself, so that processes share them.
class StepKernelsOfCases : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Models, StepKernelsOfCases, ::testing::Range(std::size_t{0}, step_cases().size()));

TEST_P(StepKernelsOfCases, AreVerified) {
  if (is_too_slow()) GTEST_SKIP() << "takes minutes under a sanitizer: runs in builds without one";
  const Case& c = step_cases()[GetParam()];
  SCOPED_TRACE(c.name);
  Model model = load(c);
  std::size_t run = 0;  // counted over all cases
  for (std::size_t i = 0; i < GetParam(); ++i) run += step_cases()[i].shapes.size();
  for (const Blocks& shape : c.shapes) {
    model.train.math = model.train.math == MathMode::fast ? MathMode::exact : MathMode::fast;
    for (const RowTile tile : kAllTiles)
      if (c.tile ? tile == *c.tile : all_cases() || tile == kAllTiles[run % std::size(kAllTiles)])
        expect_verified(model, shape, tile);
    if (!all_cases()) return;  // the other shapes at night
    ++run;
  }
}

class StepKernelsOfTiles : public ::testing::TestWithParam<RowTile> {};
INSTANTIATE_TEST_SUITE_P(Models, StepKernelsOfTiles, ::testing::ValuesIn(kAllTiles));

TEST_P(StepKernelsOfTiles, AreVerified) {
  if (is_too_slow()) GTEST_SKIP() << "takes minutes under a sanitizer: runs in builds without one";
  expect_verified(verified_model("momentum"), {32, 1, 1}, GetParam());
  expect_verified(verified_model("adam"), {32, 2, 1}, GetParam());
  expect_verified(classifier(), {32, 2, 2}, GetParam());
}

TEST_P(StepKernelsOfTiles, KeepRandomSamplesForSeveralSteps) {
  if (is_too_slow()) GTEST_SKIP() << "takes minutes under a sanitizer: runs in builds without one";
  const TemporaryFolder folder;
  const Model model = load_model(folder.write("every.json", R"json({"format": 1,
 "data": {"train": {"random": {"rows": 90, "seed": 1, "columns": {"a": {"normal": 1, "shape": [4]}}}, "x": ["a"]}},
 "inputs": {"x": ["batch", 4]},
 "graph": ["z = x + random_normal(x, every=2)", "h = dense(z, units=8, activation=tanh)", "p = dense(h, units=4)",
           "loss = mse(p, x)"],
 "outputs": ["p"],
 "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "batch": 30, "epochs": 2}})json"));
  VerifyOptions options;
  options.custom_executor = emulated(Blocks{32, 1, 2}, GetParam(), 7);
  options.steps = 5;
  const VerifyReport report = verify(model, options);
  EXPECT_TRUE(report.passed()) << to_string(*report.difference);
  EXPECT_GT(report.regions, 0u);
}

// A norm of all gradients, which no block has: the step goes on after all have told theirs. Adam's moments are made
// after it; with a penalty on weights, a number that only the loss reads is made of arrays, too.
const Case& clipped_case() {
  static const Case c{"mnist_mlp",
                      {},
                      {{"data.train.random.rows", "100"},
                       {"data.train.random.columns.a.shape.0", "20"},
                       {"inputs.x.1", "20"},
                       {"train.batch", "40"},
                       {"train.shuffle", "true"},
                       {"graph.0.units", "45"},
                       {"graph.1.units", "70"},
                       {"train.clip_norm", "0.01"},
                       {"train.optimizer", R"({"adamw": {"lr": 0.01}})"}}};
  return c;
}

TEST(StepKernelsOfModels, WithAClippedNormAreVerified) {
  if (is_too_slow()) GTEST_SKIP() << "takes minutes under a sanitizer: runs in builds without one";
  Case loose = clipped_case(), plain = clipped_case(), lone = clipped_case();
  loose.overrides.back() = {"train.optimizer", R"({"sgd": {"lr": 0.01}})"};
  loose.overrides[7] = {"train.clip_norm", "1000"};  // which changes nothing
  plain.overrides.pop_back();
  lone.overrides.emplace_back("train.math", "exact");
  for (const Case& c : all_cases() ? std::vector{clipped_case(), lone, loose, plain} : std::vector{lone}) {
    expect_verified(load(c), {32, 1, 3}, RowTile::block);
    if (all_cases()) expect_verified(load(c), {64, 1, 1}, RowTile::block);
  }
  const std::shared_ptr<Executor> executor = emulated(Blocks{32, 1, 3}, RowTile::block, 0);
  PlanOptions options;
  options.fuse = true;
  const CompiledModel compiled = compile_model(load(clipped_case()), {&executor, 1}, options);
  ASSERT_EQ(compiled.program.phases[0].regions.size(), 1u);
  EXPECT_EQ(compiled.program.phases[0].regions[0].last, compiled.program.phases[0].steps.size());
}

// All that a model has after ten steps.
std::vector<std::byte> after_ten(const Model& model, const Blocks& shape, RowTile tile, std::uint64_t schedule,
                                 bool together) {
  const std::shared_ptr<Executor> executor = emulated(shape, tile, schedule);
  PlanOptions options;
  options.fuse = true;
  const CompiledModel compiled = compile_model(model, {&executor, 1}, options);
  EXPECT_FALSE(compiled.program.phases[0].regions.empty());
  const auto runnable = executor->load(compiled.program);
  write_start(model, compiled, {runnable.get()});
  for (int i = 0; i < (together ? 1 : 10); ++i) runnable->run(0, together ? 10 : 1);
  return states_of(*runnable, compiled.program);
}

TEST_P(StepKernelsOfTiles, LeaveTheSameBytesHoweverTheyRun) {
  if (is_too_slow()) GTEST_SKIP() << "takes minutes under a sanitizer: runs in builds without one";
  const RowTile tile = GetParam();
  const Case partial{"realestate_1h", {}, {{"train.batch", "100"}}};
  const Case peaks{"peaks", {}, {{"data.train.random.rows", "150"}}};
  std::vector<std::pair<Model, Blocks>> runs;
  runs.emplace_back(load(partial), Blocks{32, 2, 2});
  runs.emplace_back(load(peaks), tile == RowTile::thread ? Blocks{32, 2, 1} : Blocks{64, 2, 1});
  runs.emplace_back(classifier(), Blocks{32, 1, 3});
  if (tile == RowTile::block) runs.emplace_back(load(clipped_case()), Blocks{32, 1, 3});
  for (const auto& [model, shape] : runs) {
    const std::vector<std::byte> once = after_ten(model, shape, tile, 0, true);
    EXPECT_EQ(after_ten(model, shape, tile, 1, false), once) << model.name;
    for (std::uint64_t schedule = 2; schedule < (all_cases() ? 32 : 4); ++schedule)
      ASSERT_EQ(after_ten(model, shape, tile, schedule, true), once) << model.name << ", schedule " << schedule;
  }
}

}  // namespace
}  // namespace graphrun::test
