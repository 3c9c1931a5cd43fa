// A training does not grow: the resident size of the process after epoch 200 is that after epoch 5, evaluations
// included.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "model_runs.h"

namespace graphrun {
namespace {

std::int64_t resident_bytes() {
  std::int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
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

TEST_P(Memory, EpochsDoNotGrow) {
  GRAPHRUN_SKIP_WITHOUT_DATA(GetParam());
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  Overrides overrides = fewer_rows(GetParam());
  overrides.insert(overrides.end(), {{"train.epochs", "200"}, {"train.log_every", "1"}, {"train.evaluate_every", "1"}});
  Session session = open_model(GetParam(), "cpu", overrides);
  std::int64_t after_5 = 0, after_200 = 0;
  session.train([&](const Report& report) {
    for (const char* split : {"train", "validation", "test"})
      if (session.has_split(split)) session.evaluate(split);
    if (report.epoch == 5) after_5 = resident_bytes();
    if (report.epoch == 200) after_200 = resident_bytes();
  });
  ASSERT_GT(after_5, 0);
  ASSERT_GT(after_200, 0);
  EXPECT_NEAR(static_cast<double>(after_200), static_cast<double>(after_5), 1024.0 * 1024.0);
}

}  // namespace
}  // namespace graphrun
