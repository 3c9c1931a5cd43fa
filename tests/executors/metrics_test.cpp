// metrics_test.cpp: the built-in metrics of model files, worked out by hand, on every host executor.
#include <gtest/gtest.h>

#include <cmath>

#include "graphrun/session.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

Metrics evaluated(const std::string& text, const std::string& split, const std::string& executor) {
  const test::TemporaryFolder folder;
  SessionOptions options;
  options.executor = executor;
  Session session(load_model(folder.write("model.json", text)), options);
  return session.evaluate(split);
}

double value(const Metrics& metrics, const std::string& name) {
  for (const auto& [known, v] : metrics.values) {
    if (known == name) return v;
  }
  ADD_FAILURE() << "no metric " << name;
  return std::nan("");
}

class MetricsOn : public testing::TestWithParam<std::string> {};

// Errors 0.25, -0.5, 0.5 (the bound) and 3: quadratic up to 0.5, linear above. Slopes are errors clipped to 0.5, times
// x.
TEST_P(MetricsOn, HuberByItsFormula) {
  const std::string text = R"json({
    "format": 1,
    "data": {"train": {"inline": {"x": [1, 2, 3, 4], "y": [0.75, 2.5, 2.5, 1]}}},
    "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
    "parameters": {"w": {"shape": [1, 1], "init": "ones"}},
    "graph": ["p = x @ w", "loss = huber(p, y, delta=0.5)", "usual = huber(p, y)", "slope = sum(gradient(loss, w))"],
    "outputs": {"p": "y"},
    "train": {"minimize": "loss", "metrics": ["usual", "slope"], "optimizer": {"sgd": {"lr": 0.1}}}
  })json";
  const Metrics train = evaluated(text, "train", GetParam());
  EXPECT_NEAR(train.loss, (0.25 * 0.25 / 2 + 0.125 + 0.125 + 0.5 * (3 - 0.25)) / 4, 1e-6);
  EXPECT_NEAR(value(train, "usual"), (0.25 * 0.25 / 2 + 0.125 + 0.125 + 2.5) / 4, 1e-6);
  EXPECT_NEAR(value(train, "slope"), (0.25 * 1 - 0.5 * 2 + 0.5 * 3 + 0.5 * 4) / 4, 1e-6);
}

// y_hat = 2 x + 10000: errors -1, 0, 1, 0 on train; the variance of y is far below its square, and the last batch is
// short. Batches of 3.
TEST_P(MetricsOn, RegressionInOriginalUnits) {
  const std::string text = R"json({
    "format": 1,
    "data": {"train": {"inline": {"x": [0, 1, 2, 3], "y": [10001, 10002, 10003, 10006]}},
             "test": {"inline": {"x": [4, 5], "y": [10007, 10007]}}},
    "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
    "parameters": {"w": {"shape": [1, 1], "init": {"constant": 2}}, "c": {"shape": [1], "init": {"constant": 10000}}},
    "graph": ["y_hat = x @ w + c", "loss = mse(y_hat, y)"],
    "outputs": {"y_hat": "y"},
    "train": {"minimize": "loss", "metrics": ["mse", "rmse", "mae", "r2"], "optimizer": {"sgd": {"lr": 0.1}}, "batch": 3}
  })json";
  const Metrics train = evaluated(text, "train", GetParam());
  EXPECT_NEAR(value(train, "mse"), 0.5, 1e-6);
  EXPECT_NEAR(value(train, "rmse"), std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(value(train, "mae"), 0.5, 1e-6);
  // y - 10003 is -2, -1, 0, 3: its sum of squares about the mean is 14.
  EXPECT_NEAR(value(train, "r2"), 1 - 2.0 / 14, 1e-6);
  // A constant target has no variance to explain.
  EXPECT_EQ(value(evaluated(text, "test", GetParam()), "r2"), 0);
}

TEST_P(MetricsOn, R2IsTheSameForStandardizedTargets) {
  const std::string text = R"json({
    "format": 1,
    "data": {"train": {"inline": {"x": [0, 1, 2, 4], "y": [[1, 500], [2, 400], [3, 900], [6, 100]]}},
             "transform": {"y": ["standardize"]}},
    "inputs": {"x": ["batch", 1], "y": ["batch", 2]},
    "parameters": {"w": {"shape": [1, 2], "init": "zeros"}},
    "graph": ["y_hat = x @ w", "loss = mse(y_hat, y)"],
    "outputs": {"y_hat": "y"},
    "train": {"minimize": "loss", "metrics": ["r2", "mse"], "optimizer": {"sgd": {"lr": 0.1}}}
  })json";
  // The prediction is the mean of each column.
  const Metrics train = evaluated(text, "train", GetParam());
  EXPECT_NEAR(value(train, "r2"), 0, 1e-6);
  EXPECT_NEAR(value(train, "mse"), (14 + (25.0 * 25 + 75 * 75 + 425 * 425 + 375 * 375)) / 8, 0.5);
}

// In f32 numbers near 1.7e9 are 128 apart; their differences are known well all the same.
TEST_P(MetricsOn, LargeTargetsAreComparedByTheirDifferences) {
  const std::string text = R"json({
    "format": 1,
    "data": {"train": {"inline": {"x": [0, 1, 2, 4], "y": [1700000000, 1700000010, 1700000020, 1700000050]}},
             "transform": {"y": ["standardize"]}},
    "inputs": {"x": ["batch", 1], "y": ["batch"]},
    "parameters": {"w": {"shape": [1, 1], "init": "zeros"}},
    "graph": ["y_hat = sum(x @ w, axis=1)", "loss = mse(y_hat, y)"],
    "outputs": {"y_hat": "y"},
    "train": {"minimize": "loss", "metrics": ["mse", "rmse", "mae", "r2"], "optimizer": {"sgd": {"lr": 0.1}}}
  })json";
  // The prediction is the mean; what is off are -20, -10, 0 and 30.
  const Metrics train = evaluated(text, "train", GetParam());
  EXPECT_NEAR(value(train, "mse"), 350, 1e-3);
  EXPECT_NEAR(value(train, "rmse"), std::sqrt(350), 1e-4);
  EXPECT_NEAR(value(train, "mae"), 15, 1e-4);
  EXPECT_NEAR(value(train, "r2"), 0, 1e-5);
}

// A sample that is a table has a number of each kind for each of its places.
TEST_P(MetricsOn, TablesAsTargets) {
  const std::string text = R"json({
    "format": 1,
    "data": {"train": {"inline": {"x": [0, 1], "y": [[[1, 10, 100], [5, 5, 5]], [[3, 30, 300], [7, 9, 5]]]}},
             "transform": {"y": ["standardize"]}},
    "inputs": {"x": ["batch", 1], "y": ["batch", 2, 3]},
    "parameters": {"w": {"shape": [1, 6], "init": "zeros"}},
    "graph": ["y_hat = reshape(x @ w, shape=[-1, 2, 3])", "loss = mse(y_hat, y)"],
    "outputs": {"y_hat": "y"},
    "train": {"minimize": "loss", "metrics": ["mse"], "optimizer": {"sgd": {"lr": 0.1}}}
  })json";
  const double mse = (1 + 100 + 10000 + 1 + 4 + 0) / 6.0;
  EXPECT_NEAR(value(evaluated(text, "train", GetParam()), "mse"), mse, 1e-4 * mse);
}

// Scores of three classes against class numbers, and against the same one-hot.
TEST_P(MetricsOn, AccuracyTakesClassNumbers) {
  const auto text = [](const std::string& y, const std::string& shape) {
    return R"json({
    "format": 1,
    "data": {"train": {"inline": {"x": [[5, 1, 0], [0, 2, 9], [1, 7, 3], [4, 0, 1]], "y": )json" +
           y + R"json(}}},
    "inputs": {"x": ["batch", 3], "y": )json" +
           shape + R"json(},
    "parameters": {"gain": {"shape": [], "init": "ones"}},
    "graph": ["scores = x * gain", "loss = mean(softmax_cross_entropy(scores, y))"],
    "outputs": {"scores": "y"},
    "train": {"minimize": "loss", "metrics": ["accuracy"], "optimizer": {"sgd": {"lr": 0.1}}, "batch": 3}
  })json";
  };
  const std::string classes = text("[0, 2, 0, 0]", R"({"dtype": "i32", "shape": ["batch"]})");
  EXPECT_NEAR(value(evaluated(classes, "train", GetParam()), "accuracy"), 0.75, 1e-6);
  const std::string one_hot = text("[[1, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 0]]", R"(["batch", 3])");
  EXPECT_NEAR(value(evaluated(one_hot, "train", GetParam()), "accuracy"), 0.75, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Hosts, MetricsOn, testing::Values("ref", "cpu"));

}  // namespace
}  // namespace graphrun
