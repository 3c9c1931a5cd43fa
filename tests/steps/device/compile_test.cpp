// The step kernels of random graphs, compiled as a load would, with no register spilled to memory. Needs no device.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executors/cuda/nvrtc.h"
#include "executors/cuda_planner/print/step_kernel.h"
#include "graphrun/session.h"
#include "steps/emulated_executor.h"
#include "steps/region_case.h"
#include "support/rounds.h"
#include "support/seed.h"
#include "support/source_folder.h"

namespace graphrun::test {
namespace {

TEST(StepKernelsOfRandomGraphs, CompileWithoutSpills) {
  EmulationOptions as_planned;
  as_planned.blocks.reset();
  const auto executor = std::make_shared<EmulatedExecutor>(as_planned);
  const std::uint64_t wanted = all_cases() ? 500 : 30;
  const std::vector<std::pair<const char*, const char*>> machines =
      all_cases()
          ? std::vector<std::pair<const char*, const char*>>{{"h200", "sm_90a"}, {"a100", "sm_80"}, {"h200", "sm_100"}}
          : std::vector<std::pair<const char*, const char*>>{{"h200", "sm_90a"}};
  std::uint64_t compiled = 0, spilled = 0;
  for (std::uint64_t seed = 0; compiled < wanted && seed < 4 * wanted; ++seed) {
    const AtSeed at{seed};
    const RandomGraph random = random_graph(seed, *executor, seed % 2 == 0 ? 40 : 400);
    bool any = false;
    for (const auto& [target, architecture] : machines) {
      const RegionCase one(random, executor, RegionCase::Keep::some, target);
      for (const cuda::StepKernel& source : cuda::step_sources(one.program())) {
        any = true;
        const cuda::CompiledCode code =
            cuda::obtain_code({source.text, source.pieces, source.threads}, architecture, cuda::KernelCache("")).code;
        EXPECT_FALSE(code.kernels().empty()) << "seed " << seed;
        for (const cuda::KernelResources& kernel : code.kernels()) {
          if (kernel.spill_bytes == 0) continue;
          ++spilled;
          std::printf("seed %d on %s spills %u bytes\n", static_cast<int>(seed), architecture, kernel.spill_bytes);
        }
      }
    }
    compiled += any ? 1 : 0;
  }
  EXPECT_EQ(compiled, wanted);
  // How many values of a row are alive at a time is not looked at when a region is planned: few have too many.
  EXPECT_LE(spilled, compiled * machines.size() / 100);
}

// A kernel that needs more registers than a lane has: it compiles, and spills.
TEST(StepKernelsOfRandomGraphs, OfSecondDerivativesCompile) {
  EmulationOptions as_planned;
  as_planned.blocks.reset();
  SessionOptions options;
  options.custom_executor = std::make_shared<EmulatedExecutor>(as_planned);
  LoadOptions load;
  load.overrides = {{"train.optimizer", R"({"adam": {"lr": 0.001}})"},
                    {"graph.2", "h3 = dense(h2, units=6, activation=tanh)"}};
  const Model model = load_model(source_folder() + "/examples/physics/burgers.json", load);
  const Program program = plan_program(model, options);
  ASSERT_EQ(program.phases[0].regions.size(), 1u);
  const cuda::StepKernel source = cuda::step_sources(program).at(0);
  const cuda::CompiledCode code =
      cuda::obtain_code({source.text, source.pieces, source.threads}, "sm_90a", cuda::KernelCache("")).code;
  ASSERT_FALSE(code.kernels().empty());
  EXPECT_LT(code.kernels()[0].spill_bytes, 4096u);
}

}  // namespace
}  // namespace graphrun::test
