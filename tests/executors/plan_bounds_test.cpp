// How near plans come to what no plan can be below: all models of the repository and random graphs, with and without
// regions, for hosts and GPUs.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "graphrun/target.h"
#include "support/random_graph.h"
#include "support/rounds.h"
#include "support/source_folder.h"

namespace graphrun::test {
namespace {

constexpr double kMaxOver = 1.01;

double over(const Program& program) {
  return program.lower_bound == 0 ? 1
                                  : static_cast<double>(program.arena_bytes) / static_cast<double>(program.lower_bound);
}

TEST(PlanBounds, OfAllModels) {
  std::size_t plans = 0;
  for (const char* folder : {"/models", "/bench/models"}) {
    for (const auto& file : std::filesystem::directory_iterator(source_folder() + folder)) {
      if (file.path().extension() != ".json" || file.path().stem() == "graphrun.schema") continue;
      LoadOptions load;
      load.data = DataUse::sizes;
      std::optional<Model> model;
      try {
        model.emplace(load_model(file.path(), load));
      } catch (const Error& error) {  // MNIST is no part of a clone
        if (error.diagnostics().front().code.rfind("data", 0) == 0) continue;
        throw;
      }
      for (const bool fuse : {true, false}) {
        for (const char* target : {"", "h200"}) {
          SessionOptions options;
          options.fuse = fuse;
          options.target = target;
          if (*target != '\0') options.executor = "cuda";
          EXPECT_LE(over(plan_program(*model, options)), kMaxOver)
              << file.path() << (fuse ? "" : " without regions") << " for " << target;
          ++plans;
        }
      }
    }
  }
  EXPECT_GE(plans, 4u * 15);
}

TEST(PlanBounds, OfRandomGraphs) {
  const std::shared_ptr<Executor> cpu = find_executor("cpu");
  const Target& host = find_target("host");
  for (std::uint64_t seed = 0; seed < test::cases(50, 200); ++seed) {
    const RandomGraph random = random_graph(seed, *cpu);
    for (const bool fuse : {true, false}) {
      CompileOptions options;
      options.target = "host";
      options.supports = [&](const StepSignature& step) { return cpu->supports(step, host); };
      options.takes_views = [&](const StepSignature& step) { return cpu->takes_views(step); };
      options.plan_region = [&](const RegionSignature& region) { return cpu->region_choices(region, host); };
      options.fuse = fuse;
      options.simplify = true;
      EXPECT_LE(over(compile(random.graph, options).program), kMaxOver) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace graphrun::test
