// A training does not grow: the process has no more memory of its own after epoch 200 than after epoch 5, evaluations
// included, with checkpoints and without.
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>

#include "graphrun/checkpoint.h"
#include "model_runs.h"
#include "support/graph_run.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

// Pages with contents of our own, in memory or swapped out. Of these the kernel counts every one, while statm may be
// off by many pages a processor and has those of files, which come and go with what else the machine does.
std::int64_t own_bytes() {
  std::int64_t sum = 0;
  std::ifstream file("/proc/self/smaps");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t kilobytes = 0;
    if (words >> name >> kilobytes && (name == "Anonymous:" || name == "Swap:")) sum += 1024 * kilobytes;
  }
  return sum;
}

// Large data with fewer rows, so that 200 epochs take seconds: an epoch is still more than one batch.
Overrides fewer_rows(const std::string& model) {
  if (model == "stock") return {{"data.source.random.rows", "20000"}, {"train.batch", "2000"}};
  if (model.rfind("mnist", 0) != 0) return {};
  if (model == "mnist_lenet") {
    return {
        {"data.train.range", "[0, 200]"}, {"data.validation.range", "[50000, 50200]"}, {"data.test.range", "[0, 200]"}};
  }
  return {
      {"data.train.range", "[0, 2000]"}, {"data.validation.range", "[50000, 52000]"}, {"data.test.range", "[0, 2000]"}};
}

class Memory : public testing::TestWithParam<std::tuple<std::string, const char*>> {
 protected:
  const std::string model = std::get<0>(GetParam()), executor = std::get<1>(GetParam());

  void SetUp() override {
    GRAPHRUN_SKIP_WITHOUT_DATA(model);
    GRAPHRUN_SKIP_WHEN_SANITIZED();
    for (const auto& [name, why] : test::executors().missing)
      if (name == executor) GTEST_SKIP() << name << ": " << why;
  }
};
INSTANTIATE_TEST_SUITE_P(Models, Memory,
                         testing::Combine(testing::ValuesIn(model_names()), testing::Values("cpu", "cuda")),
                         [](const auto& run) { return std::get<0>(run.param) + "_" + std::get<1>(run.param); });

void expect_no_growth(const std::string& model, const std::string& executor, const std::string& checkpoints) {
  Overrides overrides = fewer_rows(model);
  overrides.insert(overrides.end(), {{"train.epochs", "200"}, {"train.log_every", "1"}, {"train.evaluate_every", "1"}});
  ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // the kernel would give 2 MiB where a page was touched, whenever it likes
  Session session = open_model(model, executor, overrides);
  std::int64_t after_5 = 0, after_200 = 0;
  TrainOptions options;
  std::optional<CheckpointFolder> folder;
  if (!checkpoints.empty()) {
    folder.emplace(checkpoints, CheckpointEvery{.epochs = 1}).begin(session);
    folder->connect(options);
  }
  options.on_report = [&](const Report& report) {
    for (const char* split : {"train", "validation", "test"})
      if (session.has_split(split)) session.evaluate(split);
    if (report.epoch == 5) after_5 = own_bytes();
    if (report.epoch == 200) after_200 = own_bytes();
  };
  session.train(options);
  ASSERT_GT(after_5, 0);
  ASSERT_GT(after_200, 0);
  EXPECT_LT(after_200, after_5 + 1024 * 1024);
}

TEST_P(Memory, EpochsDoNotGrow) {
  expect_no_growth(model, executor, "");
}

TEST_P(Memory, NorDoEpochsWithCheckpoints) {
  const test::TemporaryFolder folder;
  expect_no_growth(model, executor, folder.file("checkpoints"));
}

// 0.9, 0.8 and 0.7 of what an unfused step of mnist_mlp holds at its peak (memory.md, "A budget").
TEST(MemoryBudget, MnistMlpHasTheSameWeightsAtEveryBudget) {
  GRAPHRUN_SKIP_WITHOUT_DATA("mnist_mlp");
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  const auto trained = [&](bool fuse, std::uint64_t budget) {
    Overrides overrides = fewer_rows("mnist_mlp");
    overrides.insert(overrides.end(), {{"train.epochs", "2"}, {"train.max_memory", std::to_string(budget)}});
    SessionOptions options;
    options.fuse = fuse;
    LoadOptions load;
    load.overrides = overrides;
    load.data_dir = data_folder();
    Session session(load_model(source_folder() + "/models/mnist_mlp.json", load), options);
    session.train();
    EXPECT_LE(session.program().arena_bytes, budget);
    return std::pair{session.weights_hash(), session.program()};
  };
  constexpr std::uint64_t kPlenty = std::uint64_t{1} << 40;
  const auto [unfused_hash, unfused] = trained(false, kPlenty);
  const auto [fused_hash, fused] = trained(true, kPlenty);
  std::uint64_t states = 0;
  for (const Buffer& buffer : unfused.buffers)
    if (is_state(buffer.kind)) states += (buffer.bytes + kAlignment - 1) / kAlignment * kAlignment;
  for (const std::uint64_t tenths : {1u, 2u, 3u}) {
    const std::uint64_t budget = unfused.arena_bytes - (unfused.lower_bound - states) * tenths / 10;
    EXPECT_EQ(trained(false, budget).first, unfused_hash) << tenths;
    EXPECT_EQ(trained(true, budget).first, fused_hash) << tenths;
  }
}

}  // namespace
}  // namespace graphrun
