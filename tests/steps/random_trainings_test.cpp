// Random trainings whose steps are kernels, run by the emulator as `graphrun verify` looks at them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "graphrun/model.h"
#include "graphrun/verify.h"
#include "steps/emulated_executor.h"
#include "steps/random_trainings.h"
#include "support/rounds.h"
#include "support/temporary_folder.h"

namespace graphrun::test {
namespace {

constexpr Blocks kTrainingShapes[] = {{32, 1, 1}, {32, 2, 2}, {64, 1, 1}, {32, 1, 3},
                                      {32, 4, 1}, {96, 1, 1}, {32, 4, 3}};
constexpr RowTile kTiles[] = {RowTile::thread, RowTile::warp, RowTile::block, RowTile::pair, RowTile::split};

TEST(StepKernelsOfRandomTrainings, AreVerified) {
  if (is_too_slow()) GTEST_SKIP() << "takes minutes under a sanitizer: runs in builds without one";
  const TemporaryFolder folder;
  const std::uint64_t trainings = step_graphs(all_cases() ? 300 : 6);
  std::uint64_t fused = 0;
  for (std::uint64_t seed = first_step_graph(); seed < first_step_graph() + trainings; ++seed) {
    EmulationOptions emulation;
    if (seed % 5 != 4)
      emulation.blocks = kTrainingShapes[seed % std::size(kTrainingShapes)];  // or what is chosen for a GPU
    emulation.tile = kTiles[seed / 2 % std::size(kTiles)];
    emulation.schedule = seed;
    const bool shows = std::getenv("GRAPHRUN_SHOW_KERNELS") != nullptr;
    if (shows) emulation.edit = [](const std::string& kernel) { fmt::print("{}\n", kernel); };
    VerifyOptions options;
    options.custom_executor = std::make_shared<EmulatedExecutor>(emulation);
    options.steps = 3;
    const std::string text = random_training(seed);
    try {
      const VerifyReport report = verify(load_model(folder.write("model.json", text)), options);
      EXPECT_TRUE(report.passed()) << "seed " << seed << ": " << to_string(*report.difference) << "\n" << text;
      fused += report.regions > 0 ? 1 : 0;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what() << "\n" << text;
    }
  }
  EXPECT_GE(fused, trainings / 4 * 3);
}

// A network of t and x whose loss has second derivatives: weights get several gradients, and rows have many values.
std::string random_equation(std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto one_of = [&](const std::vector<std::string>& list) { return list[engine() % list.size()]; };
  const std::vector<std::string> activations = {"tanh", "sin", "softplus", "sigmoid"};
  const std::vector<std::string> units = {"1", "3", "4", "5", "8", "13", "20", "24"};
  const std::string first = one_of(units), rows = one_of({"7", "33", "60"});
  std::string graph = fmt::format("\"h0 = {}(t @ Wt + x @ Wx + b)\", ", one_of(activations)), last = "h0";
  for (std::uint64_t layer = 0; layer < seed % 3; ++layer) {
    const std::string name = fmt::format("h{}", layer + 1);
    graph += fmt::format("\"{0}_z = dense({1}, units={2})\", \"{0} = {3}({0}_z)\", ", name, last, one_of(units),
                         one_of(activations));
    last = name;
  }
  const std::string equation = one_of({"u_t - 0.1 * u_xx", "u_xx + u_tt + sin(u)", "u_t + u * u_x - 0.01 * u_xx"});
  return fmt::format(
      R"js({{"format": 1, "data": {{"train": {{"random": {{"rows": {0}, "columns": {{"t": {{"uniform": [0, 1]}},
  "x": {{"uniform": [-1, 1]}}}}}}, "t": "t", "x": "x"}}}}, "inputs": {{"t": ["batch", 1], "x": ["batch", 1]}},
 "parameters": {{"Wt": {{"shape": [1, {1}], "init": "glorot_uniform"}}, "Wx": {{"shape": [1, {1}], "init": "glorot_uniform"}},
  "b": {{"shape": [{1}], "init": {{"normal": 0.1}}}}}},
 "graph": [{2}"u = dense({3}, units=1)", "u_t = gradient(sum(u), t)", "u_x = gradient(sum(u), x)",
  "u_xx = gradient(sum(u_x), x)", "u_tt = gradient(sum(u_t), t)", "loss = mean(square({4})) + mean(square(u - x))"],
 "outputs": ["u"], "train": {{"minimize": "loss", "optimizer": {{"{5}": {{"lr": 0.01}}}}, "batch": {6}, "math": "{7}",
  "epochs": 3, "seed": {8}}}}})js",
      rows, first, graph, last, equation, one_of({"adam", "sgd", "momentum"}),
      one_of({"\"all\"", rows == "60" ? "40" : "7"}), one_of({"exact", "fast"}), seed);
}

TEST(StepKernelsOfRandomTrainings, WithSecondDerivativesAreVerified) {
  if (is_too_slow()) GTEST_SKIP() << "takes minutes under a sanitizer: runs in builds without one";
  const TemporaryFolder folder;
  for (std::uint64_t seed = first_step_graph(); seed < first_step_graph() + step_graphs(all_cases() ? 100 : 3);
       ++seed) {
    EmulationOptions emulation;
    emulation.blocks = kTrainingShapes[seed % std::size(kTrainingShapes)];
    emulation.tile = RowTile::warp;
    emulation.schedule = seed;
    VerifyOptions options;
    options.custom_executor = std::make_shared<EmulatedExecutor>(emulation);
    options.steps = 2;
    const std::string text = random_equation(seed);
    const VerifyReport report = verify(load_model(folder.write("model.json", text)), options);
    EXPECT_TRUE(report.passed()) << "seed " << seed << ": " << to_string(*report.difference) << "\n" << text;
    EXPECT_GT(report.regions, 0u) << "seed " << seed << "\n" << text;
  }
}

}  // namespace
}  // namespace graphrun::test
