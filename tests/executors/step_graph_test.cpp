// What training does with data: which rows a step sees, what an epoch's loss is, the rings, prediction in chunks, and
// draws. The models have a learning rate of 0, so that a loss says which rows were seen.
#include "graph/frontend/step/step_graph.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "graphrun/error.h"
#include "graphrun/session.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using Reals = std::vector<double>;

HostTensor reals(const Reals& values) {
  return test::tensor_of(DType::f32, {static_cast<std::int64_t>(values.size()), 1}, values);
}
// Row i holds 2^i: the sum over any rows tells which they were.
Reals powers(int rows) {
  Reals values;
  for (int i = 0; i < rows; ++i) values.push_back(std::ldexp(1.0, i));
  return values;
}
// Multiples of 1/4 without a pattern: sums and means are exact.
Reals uneven(int rows) {
  Reals values;
  for (int i = 0; i < rows; ++i) values.push_back((i * i * 7 + i * 3) % 41 / 4.0);
  return values;
}
double mean_loss(const Reals& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// loss = `loss`, an expression of the input x (batch, 1) and the parameter w, which is 1 and stays so.
Model model_of(const Reals& train, std::int64_t batch, std::string_view loss) {
  GraphBuilder graph(batch);
  graph.input("x", {kBatch, 1});
  graph.parameter("w", {}, Init::constant(1));
  graph.expression(fmt::format("loss = {}", loss));
  Model model(std::move(graph));
  model.name = "rows";
  model.train.minimize = model.graph.find("loss");
  model.train.optimizer = {"sgd", {{"lr", 0.0}}, {}};
  model.data.splits = {{"train", {{"x", reals(train)}}}};
  return model;
}

class StepGraphOn : public ::testing::TestWithParam<const char*> {
 protected:
  Session session(Model model) const {
    SessionOptions options;
    options.executor = GetParam();
    return Session(std::move(model), options);
  }
  Reals losses(Model model) const { return session(std::move(model)).train().losses; }
};

// The rows that each epoch saw, one list of batches an epoch; from losses that are sums of powers.
using Epoch = std::vector<std::vector<int>>;
std::vector<Epoch> epochs_of(const Reals& losses, std::size_t batches) {
  std::vector<Epoch> epochs;
  for (std::size_t step = 0; step < losses.size(); ++step) {
    if (step % batches == 0) epochs.emplace_back();
    std::vector<int> rows;
    const auto bits = static_cast<std::uint32_t>(losses[step]);
    EXPECT_EQ(static_cast<double>(bits), losses[step]) << "a row was seen twice or in parts at step " << step;
    for (int row = 0; row < 24; ++row) {
      if ((bits >> row & 1) != 0) rows.push_back(row);
    }
    epochs.back().push_back(rows);
  }
  return epochs;
}
std::vector<int> all_rows(const Epoch& epoch) {
  std::vector<int> rows;
  for (const std::vector<int>& batch : epoch) rows.insert(rows.end(), batch.begin(), batch.end());
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST_P(StepGraphOn, BatchesAreTheRowsInOrder) {
  Model model = model_of(powers(11), 4, "sum(x * w)");
  model.train.epochs = 2;
  const Epoch expected = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10}};
  for (const Epoch& epoch : epochs_of(losses(std::move(model)), 3)) EXPECT_EQ(epoch, expected);
}

TEST_P(StepGraphOn, ShuffleVisitsEveryRowOnceAnEpoch) {
  for (const std::int64_t batch : {1, 4, 5, 20}) {
    Model model = model_of(powers(20), batch, "sum(x * w)");
    model.train.epochs = 6;
    model.train.shuffle = true;
    std::vector<int> every;
    for (int row = 0; row < 20; ++row) every.push_back(row);
    const auto batches = static_cast<std::size_t>((20 + batch - 1) / batch);
    std::set<Epoch> orders;
    for (const Epoch& epoch : epochs_of(losses(std::move(model)), batches)) {
      EXPECT_EQ(all_rows(epoch), every) << "batch " << batch;
      orders.insert(epoch);
    }
    EXPECT_EQ(orders.size(), batch == 20 ? 1U : 6U) << "batch " << batch << ": epochs have orders of their own";
  }
}

TEST_P(StepGraphOn, ShuffleVisitsEveryRowOnceWithAShortLastBatch) {
  Model model = model_of(powers(11), 4, "sum(x * w)");
  model.train.epochs = 5;
  model.train.shuffle = true;
  std::vector<int> every;
  for (int row = 0; row < 11; ++row) every.push_back(row);
  std::set<std::vector<int>> last;
  for (const Epoch& epoch : epochs_of(losses(std::move(model)), 3)) {
    EXPECT_EQ(all_rows(epoch), every);
    EXPECT_EQ(epoch.back().size(), 3U);
    last.insert(epoch.back());
  }
  EXPECT_GT(last.size(), 1U) << "it is not always the same rows that come last";
}

TEST_P(StepGraphOn, ShuffleKeepsTheColumnsTogether) {
  GraphBuilder graph(3);
  graph.input("x", {kBatch, 1});
  graph.input("y", {kBatch, 1});
  graph.parameter("w", {}, Init::constant(1));
  graph.expression("loss = sum(square(x - y)) * w");
  Model model(std::move(graph));
  model.name = "columns";
  model.train.minimize = model.graph.find("loss");
  model.train.optimizer = {"sgd", {{"lr", 0.0}}, {}};
  model.train.shuffle = true;
  model.train.epochs = 3;
  model.data.splits = {{"train", {{"x", reals(uneven(10))}, {"y", reals(uneven(10))}}}};
  for (const double loss : losses(std::move(model))) EXPECT_EQ(loss, 0);
}

TEST_P(StepGraphOn, DropLastLeavesOutTheShortBatch) {
  Model model = model_of(powers(11), 4, "sum(x * w)");
  model.train.drop_last = true;
  model.train.epochs = 3;
  const Epoch expected = {{0, 1, 2, 3}, {4, 5, 6, 7}};
  const std::vector<Epoch> epochs = epochs_of(losses(std::move(model)), 2);
  EXPECT_EQ(epochs.size(), 3U);
  for (const Epoch& epoch : epochs) EXPECT_EQ(epoch, expected);
}

TEST_P(StepGraphOn, DropLastWithShuffleDropsOthersEachEpoch) {
  Model model = model_of(powers(11), 4, "sum(x * w)");
  model.train.drop_last = model.train.shuffle = true;
  model.train.epochs = 20;
  std::set<int> seen;
  for (const Epoch& epoch : epochs_of(losses(std::move(model)), 2)) {
    const std::vector<int> rows = all_rows(epoch);
    EXPECT_EQ(rows.size(), 8U);
    EXPECT_EQ(std::set<int>(rows.begin(), rows.end()).size(), 8U) << "no row twice";
    seen.insert(rows.begin(), rows.end());
  }
  EXPECT_EQ(seen.size(), 11U) << "in 20 epochs each row has its turn";
}

// Whatever the batch size, and however short the last batch is.
TEST_P(StepGraphOn, TheLossOfAnEpochIsTheMeanOverAllRows) {
  const Reals rows = uneven(13);
  for (const std::int64_t batch : {1, 2, 3, 4, 5, 6, 7, 12, 13}) {
    for (const bool shuffle : {false, true}) {
      Model model = model_of(rows, batch, "mean(x * w)");
      model.train.epochs = 3;
      model.train.log_every = 1;
      model.train.shuffle = shuffle;
      Session run = session(std::move(model));
      Reals reported;
      run.train([&](const Report& report) { reported.push_back(report.loss); });
      ASSERT_EQ(reported.size(), 3U);
      for (const double loss : reported) EXPECT_NEAR(loss, mean_loss(rows), 1e-6) << "batch " << batch;
      EXPECT_NEAR(run.evaluate("train").loss, mean_loss(rows), 1e-6) << "evaluation, batch " << batch;
    }
  }
}

TEST_P(StepGraphOn, EvaluationCoversItsOwnSplit) {
  Model model = model_of(uneven(9), 4, "mean(x * w)");
  model.data.splits.push_back({"test", {{"x", reals({1, 2, 3, 4, 5, 60})}}});
  model.data.splits.push_back({"validation", {{"x", reals({8})}}});
  Session run = session(std::move(model));
  for (int again = 0; again < 2; ++again) {
    EXPECT_DOUBLE_EQ(run.evaluate("test").loss, 12.5);
    EXPECT_DOUBLE_EQ(run.evaluate("validation").loss, 8);
  }
}

// Rings hold 4096 steps; every loss of a longer training is seen, and in order.
TEST_P(StepGraphOn, RingsWrapAround) {
  const Reals rows = uneven(7);
  Model model = model_of(rows, 1, "sum(x * w)");
  model.train.epochs = 1500;
  model.train.log_every = 1500;
  Session run = session(std::move(model));
  double reported = 0;
  const TrainResult result = run.train([&](const Report& report) { reported = report.loss; });
  EXPECT_EQ(result.steps, 7U * 1500U);
  ASSERT_GT(result.steps, 2U * static_cast<std::uint64_t>(kRingSize));
  ASSERT_EQ(result.losses.size(), result.steps);
  for (std::size_t step = 0; step < result.losses.size(); ++step) {
    ASSERT_EQ(result.losses[step], rows[step % 7]) << "step " << step;
  }
  EXPECT_NEAR(reported, mean_loss(rows), 1e-6);
}

TEST_P(StepGraphOn, EvaluationRingsWrapAround) {
  Reals rows(static_cast<std::size_t>(kRingSize) + 404, 1.0);
  rows.back() = 4501;
  Model model = model_of({1, 2}, 1, "mean(x * w)");
  model.data.splits.push_back({"test", {{"x", reals(rows)}}});
  Session run = session(std::move(model));
  for (int again = 0; again < 2; ++again) EXPECT_DOUBLE_EQ(run.evaluate("test").loss, 2);
}

// ---- prediction

TEST_P(StepGraphOn, PredictionGoesInChunks) {
  GraphBuilder graph(4);
  graph.input("x", {kBatch, 3});
  graph.parameter("W", {3, 2}, Init::values(test::tensor_of(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6})));
  graph.expression("p = x @ W + 1");
  graph.expression("loss = mean(p)");
  Model model(std::move(graph));
  model.name = "chunks";
  model.outputs = {{model.graph.find("p"), "p", ""}};
  Session run = session(std::move(model));
  for (const std::int64_t rows : {10, 3, 4, 1, 8, 0, 9}) {
    Reals x;
    for (std::int64_t i = 0; i < rows * 3; ++i) x.push_back(static_cast<double>(i * i % 11));
    HostTensor given(DType::f32, {rows, 3});
    if (rows > 0) given = test::tensor_of(DType::f32, {rows, 3}, x);
    const HostTensor predicted = run.predict({{"x", given}});
    ASSERT_EQ(predicted.shape(), (Shape{rows, 2}));
    const Reals got = test::to_doubles(predicted);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
      EXPECT_EQ(got[2 * i], x[3 * i] + 3 * x[3 * i + 1] + 5 * x[3 * i + 2] + 1) << "row " << i << " of " << rows;
      EXPECT_EQ(got[2 * i + 1], 2 * x[3 * i] + 4 * x[3 * i + 1] + 6 * x[3 * i + 2] + 1)
          << "row " << i << " of " << rows;
    }
  }
}

// ---- draws

Model dropout_model(std::uint64_t seed, std::string_view before = {}) {
  GraphBuilder graph(10);
  graph.input("x", {kBatch, 50});
  if (!before.empty()) graph.expression(before);
  graph.parameter("w", {}, Init::constant(1));
  graph.parameter("U", {4, 4}, Init::uniform(-1, 1));
  graph.expression("kept = dropout(x, rate=0.25)");
  graph.expression("loss = mean(kept) * w + 0 * sum(U)");
  if (!before.empty()) graph.expression("total = loss + 0 * mean(first)");
  Model model(std::move(graph));
  model.name = "draws";
  model.train.minimize = model.graph.find(before.empty() ? "loss" : "total");
  model.train.optimizer = {"sgd", {{"lr", 0.0}}, {}};
  model.train.seed = seed;
  model.train.epochs = 40;
  model.data.splits = {{"train", {{"x", test::tensor_of(DType::f32, {20, 50}, {1})}}}};
  return model;
}

TEST_P(StepGraphOn, DropoutKeepsTheMeanInTrainingAndIsTheIdentityInEvaluation) {
  Session run = session(dropout_model(1));
  const Reals losses = run.train().losses;
  ASSERT_EQ(losses.size(), 80U);
  // 40000 elements that are 0 or 4/3 with deviation sqrt(1/3): the mean's own deviation is 0.0029.
  EXPECT_NEAR(mean_loss(losses), 1, 0.015);
  EXPECT_GT(std::set<double>(losses.begin(), losses.end()).size(), 20U) << "each step draws again";
  for (const double loss : losses) {
    const double kept = loss * 500 * 0.75;  // a whole number of elements times 4/3
    EXPECT_NEAR(kept, std::round(kept), 1e-2);
  }
  EXPECT_EQ(run.evaluate("train").loss, 1);
}

TEST_P(StepGraphOn, SeedsChangeDraws) {
  const Reals one = losses(dropout_model(1));
  EXPECT_EQ(one, losses(dropout_model(1)));
  EXPECT_NE(one, losses(dropout_model(2)));
}

TEST_P(StepGraphOn, SeedsChangeTheOrderAndTheStart) {
  const auto order = [&](std::uint64_t seed) {
    Model model = model_of(powers(20), 1, "sum(x * w)");
    model.train.shuffle = true;
    model.train.seed = seed;
    return losses(std::move(model));
  };
  EXPECT_EQ(order(5), order(5));
  EXPECT_NE(order(5), order(6));
  const auto start = [&](std::uint64_t seed) { return test::to_doubles(session(dropout_model(seed)).read("U")); };
  EXPECT_EQ(start(5), start(5));
  EXPECT_NE(start(5), start(6));
}

// Streams are keyed by names: what stands before a layer does not matter to its draws.
TEST_P(StepGraphOn, ANewLayerChangesNoOtherLayersDraws) {
  Session without = session(dropout_model(3));
  Session with = session(dropout_model(3, "first = dropout(x, rate=0.5)"));
  EXPECT_EQ(without.train().losses, with.train().losses);
  EXPECT_EQ(test::to_doubles(without.read("U")), test::to_doubles(with.read("U")));
}

std::string executor_name(const ::testing::TestParamInfo<const char*>& info) {
  return info.param;
}
INSTANTIATE_TEST_SUITE_P(Executors, StepGraphOn, ::testing::Values("ref", "cpu"), executor_name);

}  // namespace
}  // namespace graphrun
