// The models of models/ on the real data: the figures they must reach, on every host executor.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "graphrun/session.h"

namespace graphrun {
namespace {

namespace fs = std::filesystem;

// "" when the data is not there.
std::string data_folder() {
  const char* named = std::getenv("GRAPHRUN_TEST_DATA");
  const fs::path folder = named != nullptr ? fs::path(named) : fs::path(GRAPHRUN_SOURCE_DIR) / ".." / "shared" / "data";
  return fs::exists(folder / "realestate.json") ? folder.string() : "";
}

struct Trained {
  TrainResult result;
  Metrics train, test;
  std::string hash;
};

Trained train(const std::string& name, const std::string& executor,
              std::vector<std::pair<std::string, std::string>> overrides = {}) {
  LoadOptions load;
  load.data_dir = data_folder();
  load.overrides = std::move(overrides);
  SessionOptions options;
  options.executor = executor;
  Session session(load_model(std::string(GRAPHRUN_SOURCE_DIR) + "/models/" + name + ".json", load), options);
  Trained trained;
  trained.result = session.train();
  trained.train = session.evaluate("train");
  if (session.has_split("test")) trained.test = session.evaluate("test");
  trained.hash = session.weights_hash();
  return trained;
}

double metric(const Metrics& metrics, std::string_view name) {
  for (const auto& [known, value] : metrics.values) {
    if (known == name) return value;
  }
  ADD_FAILURE() << "no metric " << name;
  return std::nan("");
}

void expect_near_lists(const std::vector<double>& a, const std::vector<double>& b, double relative) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], relative * std::fabs(b[i])) << "step " << i;
}

struct RealData : testing::Test {
  void SetUp() override {
    if (data_folder().empty()) GTEST_SKIP() << "no data: set GRAPHRUN_TEST_DATA to the folder with realestate.json";
  }
};

TEST_F(RealData, LinearRegressionReachesLeastSquares) {
  const Trained ref = train("linear_regression", "ref");
  const Trained cpu = train("linear_regression", "cpu");
  for (const Trained& run : {ref, cpu}) {
    EXPECT_NEAR(metric(run.test, "mse"), 59.67785, 0.002);
    EXPECT_NEAR(metric(run.test, "rmse"), 7.72514, 0.0001);
    EXPECT_NEAR(metric(run.test, "mae"), 5.91594, 0.0001);
  }
  expect_near_lists(cpu.result.losses, ref.result.losses, 1e-5);
}

TEST_F(RealData, TwoRunsGiveTheSameBytes) {
  for (const std::string executor : {"ref", "cpu"}) {
    const Trained first = train("linear_regression", executor, {{"train.epochs", "50"}});
    const Trained second = train("linear_regression", executor, {{"train.epochs", "50"}});
    EXPECT_EQ(first.hash, second.hash);
    EXPECT_EQ(first.result.losses, second.result.losses);
  }
}

TEST_F(RealData, ABatchThatDoesNotDivideTrainsAlike) {
  const std::vector<std::pair<std::string, std::string>> batches = {{"train.batch", "50"}, {"train.epochs", "20"}};
  const Trained ref = train("linear_regression", "ref", batches);
  const Trained cpu = train("linear_regression", "cpu", batches);
  ASSERT_EQ(cpu.result.losses.size(), 7u * 20u);
  expect_near_lists(cpu.result.losses, ref.result.losses, 1e-4);
}

TEST_F(RealData, LogisticRegression) {
  EXPECT_GE(metric(train("logistic_regression", "cpu").test, "accuracy"), 0.9309);
}

TEST_F(RealData, NetworkOnRealEstate) {
  const Trained run = train("realestate_mlp", "cpu");
  EXPECT_LE(metric(run.test, "mse"), 56);
  EXPECT_LE(metric(run.test, "mae"), 5.7);
}

// Numbers of the model and numbers that the library needs are nodes of their own: their names must not meet.
TEST(Models, XorWithALossOfManyNumbers) {
  const Trained run =
      train("xor", "cpu",
            {{"train.batch", "2"},
             {"train.epochs", "5"},
             {"graph.2", "loss = mean(square(y_hat - y)) + 0.5 * mean(square(y_hat)) + 3 * mean(y_hat)"}});
  EXPECT_EQ(run.result.steps, 10u);
}

TEST(Models, Xor) {
  for (const std::string executor : {"ref", "cpu"}) EXPECT_LT(train("xor", executor).train.loss, 1e-3);
}

}  // namespace
}  // namespace graphrun
