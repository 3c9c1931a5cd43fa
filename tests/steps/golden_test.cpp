// The text of the step kernels of six networks, with rows of threads, of pairs and of warps, tiles of blocks, with a
// clipped norm too, and split tiles: what a change of the generator does to it. After one: GRAPHRUN_WRITE_GOLDEN=1
// test_steps
// --gtest_filter='StepKernelText*', and read the difference.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executors/cuda_planner/print/step_kernel.h"
#include "session/compiling/compiled_model.h"
#include "steps/emulated_executor.h"
#include "support/rounds.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun::test {
namespace {

std::string source_of(const std::string& model, const std::string& tiling,
                      std::vector<std::pair<std::string, std::string>> overrides = {}) {
  EmulationOptions as_planned;
  as_planned.blocks.reset();
  const std::shared_ptr<Executor> executor = std::make_shared<EmulatedExecutor>(as_planned);
  PlanOptions options;
  options.fuse = true;
  options.tiling = tiling;
  LoadOptions load;
  load.overrides = std::move(overrides);
  return cuda::step_source(compile_model(load_model(source_folder() + model, load), {&executor, 1}, options).program);
}

TEST(StepKernelText, IsAsItWas) {
  if (is_too_slow()) GTEST_SKIP() << "compares texts; other tests plan step kernels under a sanitizer";
  const std::filesystem::path folder = source_folder() + "/tests/steps/golden";
  for (const auto& [name, text] :
       {std::pair{"xor_thread", source_of("/models/xor.json", "thread:128x1x1")},
        std::pair{"realestate_pair", source_of("/bench/models/realestate_2h.json", "pair:128x4x1")},
        std::pair{"stock_warp", source_of("/bench/models/stock_800k.json", "warp:512x2x66")},
        std::pair{"mnist_block", source_of("/bench/models/mnist_mlp.json", "block:256x1x132")},
        std::pair{"realestate_clipped_block",
                  source_of("/bench/models/realestate_1h.json", "block:256x1x132", {{"train.clip_norm", "1"}})},
        std::pair{"mnist_split", source_of("/bench/models/mnist_logreg.json", "split:512x8x15")}}) {
    const std::filesystem::path golden = folder / (std::string(name) + ".txt");
    if (std::getenv("GRAPHRUN_WRITE_GOLDEN") != nullptr) std::ofstream(golden) << text;
    EXPECT_EQ(text, content_of(golden)) << name;
  }
}

}  // namespace
}  // namespace graphrun::test
