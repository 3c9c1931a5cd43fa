// Step kernels on a device: random graphs with their regions beside the reference, and training of models: a thousand
// steps in one run leave the bytes of a thousand runs, and two runs the same bytes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "executors/verify_models.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "session/compiling/compiled_model.h"
#include "steps/region_case.h"
#include "steps/states.h"
#include "support/rounds.h"
#include "support/seed.h"
#include "support/source_folder.h"

namespace graphrun::test {
namespace {

class StepKernelsOnADevice : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      Program nothing;
      nothing.name = "nothing";
      nothing.target = std::string(cuda->default_target());
      cuda->load(nothing);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;
      if (std::getenv("GRAPHRUN_REQUIRE_DEVICE") != nullptr) FAIL() << error.what();
      GTEST_SKIP() << error.what();
    }
  }
  std::shared_ptr<Executor> cuda = find_executor("cuda");
};

TEST_F(StepKernelsOnADevice, AgreeWithTheReferenceOnRandomGraphs) {
  const std::uint64_t wanted = step_graphs(all_cases() ? 500 : 60), first = first_step_graph();
  std::uint64_t run = 0;
  for (std::uint64_t seed = first; run < wanted && seed < first + 4 * wanted; ++seed) {
    const AtSeed at{seed};
    const RandomGraph random = random_graph(seed, *cuda, seed % 2 == 0 ? 40 : 400);
    RegionCase some(random, cuda, RegionCase::Keep::some), all(random, cuda, RegionCase::Keep::all);
    if (!some.has_regions() && !all.has_regions()) continue;
    ++run;
    some.run(1 + seed % 3);
    all.run(1 + seed % 2);
    EXPECT_EQ(all.compare_steps(), "") << "seed " << seed;
    EXPECT_EQ(some.compare_kept(), "") << "seed " << seed;
  }
  EXPECT_EQ(run, wanted);
}

// All states after `runs` runs of `steps` steps.
std::vector<std::byte> trained(const Model& model, const std::shared_ptr<Executor>& cuda, int runs, int steps) {
  PlanOptions options;
  options.fuse = true;
  const CompiledModel compiled = compile_model(model, {&cuda, 1}, options);
  const auto runnable = cuda->load(compiled.program);
  write_start(model, compiled, {runnable.get()});
  for (int i = 0; i < runs; ++i) runnable->run(0, static_cast<std::uint64_t>(steps));
  return states_of(*runnable, compiled.program);
}

TEST_F(StepKernelsOnADevice, LeaveTheSameBytesHoweverManyStepsALaunchHas) {
  std::vector<Model> models;
  for (const char* name : {"models/xor", "bench/models/realestate_1h", "bench/models/realestate_2h",
                           "bench/models/spam_logreg", "bench/models/peaks"})
    models.push_back(load_model(source_folder() + "/" + name + ".json"));
  models.push_back(verified_model("adam"));
  models.push_back(classifier());
  for (const Model& model : models) {
    const std::vector<std::byte> once = trained(model, cuda, 1, 1000);
    EXPECT_EQ(trained(model, cuda, 1, 1000), once) << model.name << ": two runs";
    EXPECT_EQ(trained(model, cuda, 1000, 1), once) << model.name << ": one by one";
    EXPECT_EQ(trained(model, cuda, 10, 100), once) << model.name << ": by hundreds";
  }
}

// Hash of the weights, or the first line of the error.
std::string hash_of(const std::string& path, const std::shared_ptr<Executor>& executor, int run) {
  try {
    LoadOptions load;
    load.overrides = {{"train.seed", std::to_string(run)}, {"train.epochs", std::to_string(200 + 37 * (run % 5))}};
    if (run % 7 == 6) load.overrides.emplace_back("train.optimizer", R"({"sgd": {"lr": 1e30}})");  // not finite
    SessionOptions options;
    options.custom_executor = executor;
    Session session(load_model(path, load), options);
    session.train();
    return session.weights_hash();
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  }
}

TEST_F(StepKernelsOnADevice, ShareLaunchesWithTheBitsOfARunAlone) {
  for (const char* name : {"models/xor", "bench/models/realestate_1h", "bench/models/realestate_2h"}) {
    const std::string path = source_folder() + "/" + name + ".json";
    const std::shared_ptr<Executor> sharing = find_executor("cuda");
    SessionOptions options;
    options.executor = "cuda";
    EXPECT_GT(sharing->share_launches(plan_program(load_model(path), options)), 1u);
    std::vector<std::string> together(24);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < together.size(); ++i)
        threads.emplace_back([&, i] { together[i] = hash_of(path, sharing, static_cast<int>(i)); });
    }
    for (std::size_t i = 0; i < together.size(); ++i)
      EXPECT_EQ(together[i], hash_of(path, cuda, static_cast<int>(i))) << name << ", run " << i;
  }
}

}  // namespace
}  // namespace graphrun::test
