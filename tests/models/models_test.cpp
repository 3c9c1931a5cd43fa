// The models of models/ on the real data: the figures they must reach, on every host executor.
#include <gtest/gtest.h>

#include <cmath>

#include "model_runs.h"

namespace graphrun {
namespace {

void expect_near_lists(const std::vector<double>& a, const std::vector<double>& b, double relative) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], relative * std::fabs(b[i])) << "step " << i;
}

class OnHost : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, OnHost, testing::Values("cpu", "ref"), [](const auto& run) { return run.param; });

TEST_P(OnHost, LinearRegressionReachesLeastSquares) {
  const Metrics test = train("linear_regression", GetParam()).test;
  EXPECT_NEAR(metric(test, "mse"), 59.67785, 0.002);
  EXPECT_NEAR(metric(test, "rmse"), 7.72514, 0.0001);
  EXPECT_NEAR(metric(test, "mae"), 5.91594, 0.0001);
}

TEST_P(OnHost, LogisticRegressionOnSpam) {
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  GRAPHRUN_REF_AT_NIGHT(GetParam());
  EXPECT_GE(metric(train("logistic_regression", GetParam()).test, "accuracy"), 0.9309);  // 364 of 391
}

TEST_P(OnHost, Xor) {
  const Trained run = train("xor", GetParam());
  EXPECT_LT(run.train.loss, 1e-3);  // so no answer is further than 0.064 from 0 or 1: four of four
  EXPECT_LT(metric(run.train, "mse"), 1e-3);
}

TEST_P(OnHost, TheGeneratorDrawsWhatTheDiscriminatorTakesForTrue) {
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  GRAPHRUN_REF_AT_NIGHT(GetParam());
  const Trained run = train("gan", GetParam());
  EXPECT_NEAR(metric(run.train, "sample_mean"), 3, 0.1);
  EXPECT_NEAR(metric(run.train, "sample_deviation"), 0.5, 0.1);
  EXPECT_NEAR(metric(run.train, "discriminator"), 2 * std::log(2.0), 0.1) << "it cannot tell one from the other";
}

TEST_P(OnHost, Digits) {
  const Trained run = train("digits", GetParam());
  EXPECT_EQ(metric(run.train, "accuracy"), 1);
  EXPECT_GE(metric(run.validation, "accuracy"), 0.975);  // 264 of 269 when this was written
  EXPECT_GE(metric(run.test, "accuracy"), 0.96);         // 262 of 271
}

TEST_P(OnHost, DigitsCnn) {
  GRAPHRUN_REF_AT_NIGHT(GetParam());
  const Trained run = train("digits_cnn", GetParam());
  EXPECT_GE(metric(run.validation, "accuracy"), 0.97);  // 263 of 269 when this was written
  EXPECT_GE(metric(run.test, "accuracy"), 0.96);        // 263 of 271
}

// Its own start is of the same distribution as the reference's, which losses_test.cpp trains from.
TEST(Models, TheNetworkOnMnistNeedsNoFileOfWeights) {
  GRAPHRUN_SKIP_WITHOUT_DATA("mnist_mlp");
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  EXPECT_GE(metric(train("mnist_mlp", "cpu").validation, "accuracy"), 0.965);
}

TEST_P(OnHost, OneHiddenLayerOnRealEstate) {
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  GRAPHRUN_REF_AT_NIGHT(GetParam());
  const Metrics test = train("realestate_mlp", GetParam()).test;
  EXPECT_LE(metric(test, "mse"), 56);
  EXPECT_LE(metric(test, "mae"), 5.7);
}

TEST_P(OnHost, TwoHiddenLayersOnRealEstate) {
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  GRAPHRUN_REF_AT_NIGHT(GetParam());
  const Metrics test = train("realestate_mlp2", GetParam()).test;
  EXPECT_LE(metric(test, "mse"), 56);
  EXPECT_LE(metric(test, "mae"), 5.7);
}

TEST(Models, ForecastOfASine) {
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  EXPECT_LE(metric(train("forecast", "cpu").test, "mae"), 0.03);  // 0.1 by a linear model
}

// On ref 2000 epochs of 40,000 rows take minutes; its first steps are in losses_test.cpp.
TEST(Models, PeaksFromThreeStarts) {
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  for (const char* seed : {"2", "3", "5"}) {
    const Trained run = train("peaks", "cpu", {{"train.seed", seed}});
    EXPECT_LE(metric(run.train, "mse"), 0.25) << "seed " << seed;
  }
}

TEST(Models, StockLearnsForFortyEpochs) {
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  std::vector<double> validation;
  Session session = open_model("stock", "cpu");
  session.train([&](const Report& report) {
    if (report.validation) validation.push_back(report.validation->loss);
  });
  ASSERT_EQ(validation.size(), 8u);
  for (std::size_t i = 1; i < validation.size(); ++i) EXPECT_LT(validation[i], validation[i - 1]) << "report " << i;
  const double test = metric(session.evaluate("test"), "mse");
  EXPECT_NEAR(test, validation.back(), 0.1 * validation.back());
  RecordProperty("test_mse", std::to_string(test));
}

TEST_P(OnHost, TwoRunsGiveTheSameBytes) {
  const Trained first = train("linear_regression", GetParam(), {{"train.epochs", "50"}});
  const Trained second = train("linear_regression", GetParam(), {{"train.epochs", "50"}});
  EXPECT_EQ(first.hash, second.hash);
  EXPECT_EQ(first.result.losses, second.result.losses);
}

TEST(Models, LinearRegressionOnCpuFollowsRef) {
  expect_near_lists(train("linear_regression", "cpu").result.losses, train("linear_regression", "ref").result.losses,
                    1e-5);
}

TEST(Models, ABatchThatDoesNotDivideTrainsAlike) {
  const Overrides batches = {{"train.batch", "50"}, {"train.epochs", "20"}};
  const Trained ref = train("linear_regression", "ref", batches);
  const Trained cpu = train("linear_regression", "cpu", batches);
  ASSERT_EQ(cpu.result.losses.size(), 7u * 20u);
  expect_near_lists(cpu.result.losses, ref.result.losses, 1e-4);
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

}  // namespace
}  // namespace graphrun
