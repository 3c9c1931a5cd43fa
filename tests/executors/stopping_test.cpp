// Early stopping and learning rates lowered on a plateau: the decisions by themselves, then in trainings.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graphrun/error.h"
#include "graphrun/session.h"
#include "session/stopping.h"
#include "support/graph_run.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// A line through noisy points: the validation's loss falls, then rises.
Model noisy_line(std::int64_t epochs = 400) {
  GraphBuilder graph(8);
  graph.input("x", {kBatch, 6});
  graph.input("y", {kBatch, 1});
  graph.parameter("W", {6, 1}, Init::zeros());
  graph.expression("p = x @ W");
  graph.expression("loss = mean(square(p - y))");
  Model model(std::move(graph));
  model.outputs = {{model.graph.find("p"), "p", "y"}};
  model.train.minimize = model.graph.find("loss");
  model.train.optimizer.attributes = {{"lr", 0.05}};
  model.train.epochs = epochs;
  model.train.metrics = {{"mae", {}}, {"r2", {}}};
  const auto split = [](const char* name, std::int64_t rows) {
    const HostTensor x = test::random_tensor(DType::f32, {rows, 6}, -1, 1, name);
    HostTensor y = test::random_tensor(DType::f32, {rows, 1}, -1, 1, std::string(name) + ".noise");
    const float slope = std::string(name) == "train" ? 2.0F : 1.0F;  // between the two it is passed
    for (std::int64_t i = 0; i < rows; ++i)
      y.elements<float>()[static_cast<std::size_t>(i)] += slope * x.elements<float>()[static_cast<std::size_t>(i * 6)];
    return Split{name, {{"x", x}, {"y", y}}};
  };
  model.data.splits = {split("train", 16), split("validation", 16)};
  return model;
}

Metrics of(double loss, double mae = 0, double r2 = 0) {
  return {loss, {{"mae", mae}, {"r2", r2}}};
}

TEST(Stopping, CountsEvaluationsWithoutABetterOne) {
  Model model = noisy_line();
  model.train.early_stopping.emplace().patience = 2;
  model.train.early_stopping->min_delta = 0.1;
  StoppingState state;
  Stopping stopping(model, of(0), state);
  EXPECT_TRUE(stopping.see(of(kNoNumber), 1, 10).is_best == false);
  EXPECT_TRUE(stopping.see(of(1.0), 2, 20).is_best);
  EXPECT_FALSE(stopping.see(of(0.95), 3, 30).is_best);  // by no more than min_delta
  EXPECT_TRUE(stopping.see(of(0.8), 4, 40).is_best);
  EXPECT_FALSE(stopping.see(of(0.8), 5, 50).stops);
  const Stopping::Decision last = stopping.see(of(kNoNumber), 6, 60);  // is no better one
  EXPECT_TRUE(last.stops);
  EXPECT_EQ(stopping.best().epoch, 4);
  EXPECT_EQ(stopping.best().step, 40u);
  EXPECT_EQ(stopping.best().value, 0.8);
  // A training that goes on from this state stops at once.
  StoppingState copy = state;
  EXPECT_TRUE(Stopping(model, of(0), copy).stops());
}

TEST(Stopping, KnowsWhatIsBetter) {
  Model model = noisy_line();
  model.train.early_stopping.emplace().monitor = "r2";
  StoppingState state;
  Stopping stopping(model, of(0), state);
  EXPECT_TRUE(stopping.see(of(1, 1, 0.1), 1, 1).is_best);
  EXPECT_FALSE(stopping.see(of(0, 0, 0.05), 2, 2).is_best);
  EXPECT_TRUE(stopping.see(of(2, 2, 0.2), 3, 3).is_best);
}

TEST(Stopping, LowersTheFactorAndWaits) {
  Model model = noisy_line();
  LrPlateau& plateau = model.train.lr_plateau.emplace();
  plateau.patience = 2;
  plateau.factor = 0.1;
  plateau.cooldown = 1;
  plateau.min_factor = 0.05;
  StoppingState state;
  Stopping stopping(model, of(0), state);
  std::vector<double> factors;
  for (int epoch = 1; epoch <= 8; ++epoch) {
    (void)stopping.see(of(1), epoch, static_cast<std::uint64_t>(epoch));
    factors.push_back(state.lr_factor);
  }
  // Better; 1, 2: lowered; one that does not count; 1, 2: lowered to the least; no further.
  EXPECT_EQ(factors, (std::vector<double>{1, 1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05}));
}

class StoppingRuns : public ::testing::TestWithParam<const char*> {
 protected:
  static SessionOptions options() {
    SessionOptions how;
    how.executor = GetParam();
    return how;
  }
};

TEST_P(StoppingRuns, KeepTheBestWeights) {
  const auto model = [] {
    Model made = noisy_line();
    made.train.early_stopping.emplace().patience = 5;
    made.train.evaluate_every = 1;
    return made;
  };
  Session session(model(), options());
  std::vector<double> seen;
  TrainOptions how;
  how.on_report = [&](const Report& report) {
    if (report.validation != nullptr) seen.push_back(report.validation->loss);
  };
  const TrainResult result = session.train(how);
  ASSERT_TRUE(result.stopped_early);
  EXPECT_FALSE(result.cancelled);
  EXPECT_LT(result.epochs, 400);
  ASSERT_TRUE(result.best);
  const auto least = std::min_element(seen.begin(), seen.end());
  EXPECT_EQ(result.best->value, *least);
  EXPECT_EQ(result.best->epoch, least - seen.begin() + 1);
  EXPECT_EQ(result.epochs, result.best->epoch + 5);
  EXPECT_TRUE(result.restored);
  EXPECT_EQ(session.evaluate("validation").loss, *least);

  // The same weights as those of a training of so many epochs.
  Session other(noisy_line(result.best->epoch), options());
  (void)other.train();
  EXPECT_EQ(session.weights_hash(), other.weights_hash());

  Model kept = model();
  kept.train.early_stopping->restore_best = false;
  Session last(std::move(kept), options());
  EXPECT_FALSE(last.train().restored);
  EXPECT_GT(last.evaluate("validation").loss, *least);
}

// Divided by two from a step on: as by a schedule that does it there.
TEST_P(StoppingRuns, LowerTheLearningRate) {
  Model model = noisy_line(20);
  model.train.optimizer.name = "momentum";
  LrPlateau& plateau = model.train.lr_plateau.emplace();
  plateau.patience = 1;
  plateau.min_delta = 1e6;  // nothing is better than the first
  plateau.factor = 0.5;
  plateau.cooldown = 1000;
  Session session(std::move(model), options());
  const TrainResult result = session.train();
  EXPECT_EQ(result.lr_factor, 0.5);

  Model scheduled = noisy_line(20);
  scheduled.train.optimizer.name = "momentum";
  scheduled.train.optimizer.lr =
      ScheduleSpec{"piecewise", {{"values", std::vector<double>{0.05, 0.025}}, {"steps", std::vector<double>{4}}}};
  Session other(std::move(scheduled), options());
  const TrainResult expected = other.train();
  EXPECT_EQ(result.losses, expected.losses);
  EXPECT_EQ(session.weights_hash(), other.weights_hash());
}

TEST_P(StoppingRuns, EvaluateBySteps) {
  Model model = noisy_line(3);  // of two steps
  model.train.evaluate_every_steps = 3;
  Session session(std::move(model), options());
  std::vector<std::uint64_t> steps;
  std::vector<double> losses;
  TrainOptions how;
  how.on_report = [&](const Report& report) {
    if (report.validation != nullptr) steps.push_back(report.step);
    if (report.step == 3) losses.push_back(report.loss);
  };
  const TrainResult result = session.train(how);
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{3, 6}));
  // In mid-epoch the mean over what it has seen of the epoch: one step.
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0], result.losses[2]);
}

INSTANTIATE_TEST_SUITE_P(Executors, StoppingRuns, ::testing::Values("cpu", "ref"));

std::string code_of(Model model) {
  try {
    Session session(std::move(model));
  } catch (const Error& error) {
    return error.diagnostics().front().code;
  }
  return "";
}

TEST(Stopping, RejectsWhatItCannotGoBy) {
  const auto with = [](auto change) {
    Model model = noisy_line();
    change(model, model.train.early_stopping.emplace());
    return code_of(std::move(model));
  };
  EXPECT_EQ(with([](Model&, EarlyStopping&) {}), "");
  EXPECT_EQ(with([](Model&, EarlyStopping& s) { s.monitor = "accuracy"; }), "train.monitor");
  EXPECT_EQ(with([](Model&, EarlyStopping& s) { s.patience = 0; }), "train.range");
  EXPECT_EQ(with([](Model&, EarlyStopping& s) { s.min_delta = kNoNumber; }), "train.range");
  EXPECT_EQ(with([](Model& m, EarlyStopping&) { m.data.splits.pop_back(); }), "train.no_validation");
  EXPECT_EQ(with([](Model& m, EarlyStopping& s) {
              m.train.metrics.push_back({"gain", m.graph.expression("gain = mean(p)")});
              s.monitor = "gain";
            }),
            "train.monitor_mode");
  EXPECT_EQ(with([](Model& m, EarlyStopping& s) {
              m.train.metrics = {{s.monitor = "nothing", {}}};
            }),
            "metric.unknown");
  EXPECT_EQ(with([](Model& m, EarlyStopping&) { m.train.lr_plateau.emplace().factor = 0; }), "train.range");
  EXPECT_EQ(with([](Model& m, EarlyStopping&) { m.train.evaluate_every = m.train.evaluate_every_steps = 2; }),
            "train.evaluate_every");
}

}  // namespace
}  // namespace graphrun
