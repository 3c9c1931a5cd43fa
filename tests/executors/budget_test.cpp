// Budgets of memory: a plan that is made smaller gives the bits of the one that is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "graphrun/target.h"
#include "support/rounds.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun::test {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

// Deep enough for a step to hold many values at once; the last batch is not full.
std::string network_text(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto any = [&](std::uint64_t n) { return static_cast<std::size_t>(random() % n); };
  const std::size_t inputs = 8 + any(56);
  std::string text =
      R"({"format": 1, "name": "random", "data": {"train": {"random": {"rows": 700, "seed": 3, "columns": {)";
  text += R"("a": {"normal": 1, "shape": [)" + std::to_string(inputs) + R"(]}, "b": {"normal": 1, "shape": [4]}}}, )";
  text +=
      R"("x": ["a"], "y": ["b"]}}, "inputs": {"x": ["batch", )" + std::to_string(inputs) + R"(], "y": ["batch", 4]}, )";
  text += R"("graph": [)";
  std::string last = "x";
  const std::size_t layers = 3 + any(5);
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string name = "h" + std::to_string(i);
    const std::string activation = std::vector<std::string>{"tanh", "relu", "sigmoid", "gelu", "softplus"}[any(5)];
    text += R"({"name": ")" + name + R"(", "op": "dense", "inputs": [")" + last + R"("], "units": )" +
            std::to_string(32 + any(160)) + R"(, "activation": ")" + activation + R"("}, )";
    last = name;
    if (any(3) == 0) {
      text += "\"d" + std::to_string(i) + " = dropout(" + last + ", rate=0.25)\", ";
      last = "d" + std::to_string(i);
    }
    if (any(3) == 0) {
      text += "\"s" + std::to_string(i) + " = " + last + " + 0.125 * sin(" + last + ")\", ";
      last = "s" + std::to_string(i);
    }
  }
  text += R"j({"name": "out", "op": "dense", "inputs": [")j" + last +
          R"j("], "units": 4}, "loss = mean(square(out - y))"], )j";
  text += R"("outputs": {"out": "y"}, "train": {"minimize": "loss", "optimizer": )";
  text += any(2) == 0 ? R"({"adam": {"lr": 0.01}})" : R"({"sgd": {"lr": 0.01}})";
  text += R"(, "batch": 256, "epochs": 2, "seed": 7}})";
  return text;
}

Model random_network(std::uint64_t seed, const Settings& settings = {}) {
  const TemporaryFolder folder;
  LoadOptions load;
  load.overrides = settings;
  return load_model(folder.write("random.json", network_text(seed)), load);
}

Model small_wide_mlp(const Settings& settings = {}) {
  LoadOptions load;
  load.overrides = {{"data.train.random.rows", "1024"}, {"train.batch", "512"}, {"train.epochs", "1"}};
  load.overrides.insert(load.overrides.end(), settings.begin(), settings.end());
  return load_model(source_folder() + "/bench/models/wide_mlp.json", load);
}

SessionOptions with(const std::string& executor, bool fuse) {
  SessionOptions options;
  options.executor = executor;
  options.fuse = fuse;
  return options;
}

// What lives beside the states where most does.
std::uint64_t peak_activations(const Program& program) {
  std::uint64_t states = 0;
  for (const Buffer& buffer : program.buffers)
    if (is_state(buffer.kind) && &program.buffers[buffer.storage] == &buffer)
      states += round_up(buffer.bytes, kAlignment);
  return program.lower_bound - states;
}

struct BudgetRun {
  std::string hash;
  std::uint64_t arena = 0;
  BudgetSummary budget;
  double seconds = 0;  // of a step
};

BudgetRun run(Model model, const SessionOptions& options) {
  Session session(std::move(model), options);
  const TrainResult result = session.train();
  return {session.weights_hash(), session.program().arena_bytes, session.fusion().budget,
          result.seconds / static_cast<double>(result.steps)};
}

Settings budget_of(std::uint64_t bytes) {
  return {{"train.max_memory", std::to_string(bytes)}};
}

// 0.9, 0.8 and 0.7 of what an unfused step holds at its peak.
template <class MakeModel>
void expect_the_same_weights(const std::string& what, MakeModel make) {
  const Program plain = plan_program(make({}), with("cpu", false));
  const std::uint64_t tenth = peak_activations(plain) / 10;
  for (const char* executor : {"cpu", "ref"}) {
    for (const bool fuse : {false, true}) {
      const SessionOptions options = with(executor, fuse);
      const BudgetRun unlimited = run(make({}), options);
      for (const std::uint64_t off : {1u, 2u, 3u}) {
        const std::uint64_t limit = plain.arena_bytes - off * tenth;
        const std::string where =
            what + " on " + executor + (fuse ? "" : " unfused") + " at 0." + std::to_string(10 - off);
        const BudgetRun limited = run(make(budget_of(limit)), options);
        EXPECT_EQ(limited.hash, unlimited.hash) << where;
        EXPECT_LE(limited.arena, limit) << where;
        EXPECT_EQ(limited.budget.is_changed(), unlimited.arena > limit) << where;
        std::cout << where << ": " << limited.budget.recomputed.size() << " computed again, "
                  << limited.budget.workspaces.size() << " smaller workspaces, " << limited.seconds / unlimited.seconds
                  << " times as long\n";
      }
    }
  }
}

TEST(Budget, WeightsOfWideMlp) {
  if (!all_cases()) GTEST_SKIP() << "random networks stand for it: runs in scripts/test --nightly";
  expect_the_same_weights("wide_mlp", small_wide_mlp);
}

TEST(Budget, WeightsOfRandomNetworks) {
  if (is_too_slow()) GTEST_SKIP() << "takes a minute under a sanitizer; FitsOrIsRejected runs the same code";
  for (std::uint64_t seed = 1; seed <= (all_cases() ? 3 : 1); ++seed)
    expect_the_same_weights("network " + std::to_string(seed),
                            [&](const Settings& settings) { return random_network(seed, settings); });
}

// Regions whose partial results are most of what they hold: fewer at a time, or refused.
TEST(Budget, FewerPartialResultsAtATime) {
  const SessionOptions options = with("cpu", true);
  const BudgetRun unlimited = run(random_network(1), options);
  const std::uint64_t tenth = peak_activations(plan_program(random_network(1), options)) / 10;
  std::size_t grouped = 0;
  for (std::uint64_t off = 1; off < 4; ++off) {
    const BudgetRun limited = run(random_network(1, budget_of(unlimited.arena - off * tenth)), options);
    EXPECT_EQ(limited.hash, unlimited.hash) << off;
    for (const SmallerWorkspace& one : limited.budget.workspaces)
      grouped += one.step == "region_1.accumulators" && one.bytes < one.wanted ? 1 : 0;
  }
  EXPECT_EQ(grouped, 3u);
}

// However small: it fits and gives the same weights, or is refused with what was reached.
TEST(Budget, FitsOrIsRejected) {
  int rejected = 0, recomputed = 0;
  for (std::uint64_t seed = 10; seed < (all_cases() ? 60 : is_too_slow() ? 11 : 12); ++seed) {
    for (const bool fuse : {false, true}) {
      const SessionOptions options = with("cpu", fuse);
      const BudgetRun unlimited = run(random_network(seed), options);
      const std::uint64_t tenth = peak_activations(plan_program(random_network(seed), options)) / 10;
      for (std::uint64_t off = 2; off < 10; off += 2) {
        const std::uint64_t limit = unlimited.arena - off * tenth;
        try {
          const BudgetRun limited = run(random_network(seed, budget_of(limit)), options);
          EXPECT_EQ(limited.hash, unlimited.hash) << "seed " << seed << ", " << limit << " bytes";
          EXPECT_LE(limited.arena, limit);
          EXPECT_EQ(limited.budget.bytes_before, unlimited.arena);
          recomputed += limited.budget.recomputed.empty() ? 0 : 1;
        } catch (const Error& error) {
          EXPECT_EQ(error.diagnostics().front().code, "memory.budget") << error.what();
          ++rejected;
        }
      }
    }
  }
  EXPECT_GT(recomputed, is_too_slow() ? 0 : 3);
  EXPECT_GT(rejected, is_too_slow() ? 0 : 3);
}

TEST(Budget, IsTheSamePlanEachTime) {
  const std::uint64_t arena = plan_program(random_network(2), with("cpu", false)).arena_bytes;
  const Model model = random_network(2, budget_of(arena * 9 / 10));
  EXPECT_EQ(to_string(plan_program(model, with("cpu", false))), to_string(plan_program(model, with("cpu", false))));
}

// Which steps run as regions, and how, is settled before the budget.
TEST(Budget, LeavesRegionsAlone) {
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u, 5u, 6u}) {
    FusionSummary before, after;
    const std::uint64_t arena = plan_program(random_network(seed), with("cpu", true), &before).arena_bytes;
    const std::uint64_t tenth = peak_activations(plan_program(random_network(seed), with("cpu", true))) / 10;
    try {
      plan_program(random_network(seed, budget_of(arena - tenth)), with("cpu", true), &after);
    } catch (const Error&) {
      continue;
    }
    const auto texts = [](const FusionSummary& fusion) {
      std::vector<std::string> all;
      for (const RegionSummary& region : fusion.regions)
        all.push_back(region.phase + " " + std::to_string(region.steps) + " " + to_string(region.tiling));
      std::sort(all.begin(), all.end());
      return all;
    };
    EXPECT_EQ(texts(after), texts(before)) << "seed " << seed;
  }
}

// The step is run again op by op for it, in a plan of its own that no budget was meant for.
TEST(Budget, DoesNotHideWhatIsNotFinite) {
  const Settings rate = {{"train.optimizer", R"({"adam": {"lr": 1e30}})"}};
  Settings both = budget_of(plan_program(random_network(2, rate), with("cpu", true)).arena_bytes);
  both.insert(both.end(), rate.begin(), rate.end());
  EXPECT_THROW(plan_program(random_network(2, both), with("cpu", false)), Error) << "unfused it does not fit";
  Session session(random_network(2, both), with("cpu", true));
  EXPECT_THROW(session.train(), NotFinite);
}

// A GPU that is not there: values that would be kept apart share bytes first.
TEST(Budget, OfAGpu) {
  SessionOptions options = with("cuda", false);
  options.target = "h200";
  const Program plain = plan_program(random_network(1), options);
  const std::uint64_t tenth = peak_activations(plain) / 10;
  for (const std::uint64_t off : {1u, 2u, 3u}) {
    FusionSummary fusion;
    const std::uint64_t limit = plain.arena_bytes - off * tenth;
    EXPECT_LE(plan_program(random_network(1, budget_of(limit)), options, &fusion).arena_bytes, limit);
    EXPECT_TRUE(fusion.budget.shares_all);
  }
}

}  // namespace
}  // namespace graphrun::test
