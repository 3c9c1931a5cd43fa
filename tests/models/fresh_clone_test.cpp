// Every model of models/ trains on a fresh clone: in a copy of the folder, with no other place to look for data. Those
// on MNIST have its files as scripts/get-data brings them, and are skipped where they are not.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "model_runs.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"
#include "support/variable.h"

namespace graphrun {
namespace {

namespace fs = std::filesystem;

// What git has of models/.
void clone_models(const fs::path& to) {
  const fs::path from = fs::path(source_folder()) / "models";
  for (const auto& entry : fs::directory_iterator(from)) {
    if (entry.is_regular_file()) fs::copy(entry.path(), to);
  }
  fs::copy(from / "data", to / "data");
}

void get_mnist(const fs::path& to) {
  fs::create_directory(to / "mnist");
  for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                           "t10k-labels-idx1-ubyte.gz"})
    fs::create_symlink(data_file("mnist/" + std::string(name)), to / "mnist" / name);
}

class FreshClone : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, FreshClone, testing::ValuesIn(model_names()),
                         [](const auto& run) { return run.param; });

TEST_P(FreshClone, TrainsForAnEpoch) {
  GRAPHRUN_SKIP_WITHOUT_DATA(GetParam());
  const test::Variable nowhere("GRAPHRUN_DATA", "");
  const test::TemporaryFolder clone;
  clone_models(clone.path());
  if (GetParam().starts_with("mnist")) get_mnist(clone.path());
  LoadOptions options;
  options.overrides = {{"train.epochs", "1"}};
  if (test::is_too_slow() && GetParam().starts_with("mnist"))
    options.overrides.emplace_back("data.train.range", "[0, 2000]");
  Session session(load_model(clone.file(GetParam() + ".json"), options));
  const TrainResult result = session.train();
  EXPECT_GT(result.steps, 0u);
  for (const double loss : result.losses) ASSERT_TRUE(std::isfinite(loss));
}

}  // namespace
}  // namespace graphrun
