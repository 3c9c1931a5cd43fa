// A training does not grow: the process has no more memory of its own after epoch 200 than after epoch 5, evaluations
// included, with checkpoints and without.
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "graphrun/checkpoint.h"
#include "model_runs.h"
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
  return {
      {"data.train.range", "[0, 2000]"}, {"data.validation.range", "[50000, 52000]"}, {"data.test.range", "[0, 2000]"}};
}

class Memory : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, Memory, testing::ValuesIn(model_names()), [](const auto& run) { return run.param; });

void expect_no_growth(const std::string& model, const std::string& checkpoints) {
  Overrides overrides = fewer_rows(model);
  overrides.insert(overrides.end(), {{"train.epochs", "200"}, {"train.log_every", "1"}, {"train.evaluate_every", "1"}});
  ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // the kernel would give 2 MiB where a page was touched, whenever it likes
  Session session = open_model(model, "cpu", overrides);
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
  GRAPHRUN_SKIP_WITHOUT_DATA(GetParam());
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  expect_no_growth(GetParam(), "");
}

TEST_P(Memory, NorDoEpochsWithCheckpoints) {
  GRAPHRUN_SKIP_WITHOUT_DATA(GetParam());
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  const test::TemporaryFolder folder;
  expect_no_growth(GetParam(), folder.file("checkpoints"));
}

}  // namespace
}  // namespace graphrun
