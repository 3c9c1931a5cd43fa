// Random trainings whose steps are kernels, run by the emulator as `graphrun verify` looks at them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>

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

}  // namespace
}  // namespace graphrun::test
