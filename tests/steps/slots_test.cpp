// Kernels that run several networks in one launch: with the arguments of a network they give the bits of its own
// kernel, and programs that differ only in constants and keys have the same text.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executors/cuda_planner/print/step_kernel.h"
#include "graphrun/model.h"
#include "graphrun/session.h"
#include "steps/emulated_executor.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun::test {
namespace {

using Overrides = std::vector<std::pair<std::string, std::string>>;

// Shuffled batches, the last one of 6, dropout, and numbers that are drawn in each step.
constexpr const char* kModel = R"json({
  "format": 1, "name": "slots",
  "data": {"train": {"random": {"seed": 3, "rows": 30, "columns": {
    "a": {"normal": [0, 1], "shape": [3]}, "b": {"normal": [0, 1]}}}, "x": "a", "y": "b"}},
  "inputs": {"x": ["batch", 3], "y": ["batch", 1]},
  "graph": [
    {"name": "h", "op": "dense", "inputs": ["x"], "units": 5, "activation": "tanh"},
    {"name": "d", "op": "dropout", "inputs": ["h"], "rate": 0.2},
    {"name": "y_hat", "op": "dense", "inputs": ["d"], "units": 1},
    "loss = mean(square(y_hat - y))"
  ],
  "outputs": ["y_hat"],
  "train": {"minimize": "loss", "optimizer": {"adam": {"lr": 0.01}}, "batch": 8, "shuffle": true, "epochs": 4,
            "seed": 1}
})json";

const std::vector<std::string>& optimizers() {
  static const std::vector<std::string> list = {
      R"({"sgd": {"lr": 0.05}})",      R"({"momentum": {"lr": 0.02, "momentum": 0.8}})",
      R"({"adam": {"lr": 0.01}})",     R"({"adamw": {"lr": 0.003}})",
      R"({"rmsprop": {"lr": 0.002}})", R"({"adagrad": {"lr": 0.1}})",
  };
  return list;
}

Model model_with(const TemporaryFolder& folder, const Overrides& overrides) {
  LoadOptions load;
  load.overrides = overrides;
  return load_model(folder.write("model.json", kModel), load);
}

std::string trained(Model model, const EmulationOptions& emulation) {
  SessionOptions options;
  options.custom_executor = std::make_shared<EmulatedExecutor>(emulation);
  Session session(std::move(model), options);
  session.train();
  return session.weights_hash();
}

std::string trained(Model model, bool in_slots, RowTile tile) {
  EmulationOptions emulation;
  emulation.in_slots = in_slots;
  emulation.tile = tile;
  emulation.blocks = Blocks{32, 2, 1};
  return trained(std::move(model), emulation);
}

TEST(Slots, GiveTheBitsOfANetworkAlone) {
  const TemporaryFolder folder;
  constexpr RowTile kRowTiles[] = {RowTile::thread, RowTile::pair, RowTile::warp};
  for (std::size_t i = 0; i < optimizers().size(); ++i) {
    const RowTile tile = kRowTiles[i % 3];
    const Overrides overrides = {{"train.optimizer", optimizers()[i]}, {"train.math", i < 3 ? "exact" : "fast"}};
    EXPECT_EQ(trained(model_with(folder, overrides), true, tile), trained(model_with(folder, overrides), false, tile))
        << optimizers()[i];
  }
}

// Bits of a cluster, by a block whose warps compute those of the cluster one after the other or some at a time. Batches
// of 30 rows leave warps without rows; those of 8 with a last one of 6 vary. The table of shuffled rows is that of all
// blocks. Forty units have more sums than the registers of a thread, so groups of warps divide them.
// Blocks of 64 threads have two warps, which one warp plays; rows of a whole batch stay in registers (cases 7 and 10).
TEST(Slots, InOneBlockGiveTheBitsOfACluster) {
  const TemporaryFolder folder;
  for (const std::size_t i : {0u, 1u, 2u, 3u, 4u, 5u, 7u, 10u}) {
    const std::string& optimizer = optimizers()[i % optimizers().size()];
    const Overrides overrides = {{"train.optimizer", optimizer},
                                 {"train.batch", i % 3 == 0 ? "8" : "30"},
                                 {"train.shuffle", i % 3 == 1 ? "false" : "true"},
                                 {"graph.h.units", i == 4 || i == 5 ? "40" : "5"},
                                 {"train.math", i < 3 ? "exact" : "fast"}};
    EmulationOptions emulation;
    emulation.in_slots = true;
    emulation.tile = i % 2 == 0 ? RowTile::pair : RowTile::thread;
    emulation.blocks = Blocks{i < 3 ? 32u : 64u, i % 2 == 0 ? 4u : 8u, 1};
    const std::string cluster = trained(model_with(folder, overrides), emulation);
    for (const std::uint32_t together : {1u, 2u, 3u}) {
      emulation.together = together;
      EXPECT_EQ(trained(model_with(folder, overrides), emulation), cluster) << optimizer << " " << together;
    }
  }
}

// All threads of a block fold the norm of the gradients, and their number decides the order.
TEST(Slots, InOneBlockAreLeftOutWhereTheirBitsWouldDiffer) {
  const auto has_training_in_one_block = [](const Overrides& overrides) {
    LoadOptions load;
    load.overrides = overrides;
    SessionOptions options;
    options.executor = "cuda";
    const Program program =
        plan_program(load_model(source_folder() + "/bench/models/realestate_2h.json", load), options);
    const std::vector<cuda::StepKernel> kernels = cuda::step_sources(program, true);
    EXPECT_EQ(kernels.at(0).name, "steps_0_1");
    EXPECT_FALSE(kernels.at(0).in_one_block);
    const cuda::StepKernel& second = kernels.at(1);
    EXPECT_EQ(second.pointers == kernels[0].pointers, second.in_one_block);
    return second.name == "steps_0_1_in_one_block";
  };
  EXPECT_TRUE(has_training_in_one_block({}));
  EXPECT_FALSE(has_training_in_one_block({{"train.clip_norm", "1"}}));
}

std::string slot_text(const Model& model) {
  SessionOptions options;
  options.executor = "cuda";
  const Program program = plan_program(model, options);
  std::string text;
  for (const cuda::StepKernel& kernel : cuda::step_sources(program, true)) {
    EXPECT_TRUE(kernel.in_slots);
    text += kernel.text;
  }
  return text;
}

TEST(Slots, OfAlikeProgramsHaveOneText) {
  const TemporaryFolder folder;
  const std::string text = slot_text(model_with(folder, {}));
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(text, slot_text(model_with(folder, {{"train.optimizer.adam.lr", "0.03"}, {"train.seed", "9"}})));
  EXPECT_NE(text, slot_text(model_with(folder, {{"train.batch", "9"}})));
  EXPECT_NE(text, slot_text(model_with(folder, {{"graph.d.rate", "0.3"}})));
}

}  // namespace
}  // namespace graphrun::test
