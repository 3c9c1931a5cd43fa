// cancel(): means the training under way and no other, is heard after a few steps, and leaves whole steps behind.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "graphrun/session.h"
#include "support/graph_run.h"
#include "support/mutant_executor.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

constexpr std::int64_t kManyRows = 5000;

// One row a step: 5,000 steps an epoch, one report an epoch.
Model model(std::int64_t epochs) {
  GraphBuilder graph(1);
  graph.input("x", {kBatch, 2});
  graph.parameter("W", {2, 1}, Init::uniform(-1, 1));
  graph.expression("p = x @ W");
  graph.expression("loss = mean(square(p - 1))");
  Model model(std::move(graph));
  model.train.minimize = model.graph.find("loss");
  model.train.optimizer.attributes = {{"lr", 0.001}};
  model.train.epochs = epochs;
  model.data.splits = {{"train", {{"x", test::random_tensor(DType::f32, {kManyRows, 2}, -1, 1, "x")}}},
                       {"validation", {{"x", test::random_tensor(DType::f32, {kManyRows, 2}, -1, 1, "v")}}}};
  return model;
}

// The executor `cpu`, with steps of two milliseconds in a phase, which it counts.
struct SlowExecutor {
  std::shared_ptr<std::atomic<int>> steps = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<Executor> executor;

  explicit SlowExecutor(const std::string& phase) {
    test::Mutation slow;
    slow.pick = [phase](const Program&, const Step& step) { return step.name == phase + "/p"; };
    slow.after = [count = steps](const test::Hands&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++*count;
    };
    executor = std::make_shared<test::MutantExecutor>(test::executor("cpu"), slow);
  }
  // Cancels after 50 steps; returns the number of steps done by then.
  int cancel(Session& session) const {
    while (*steps < 50) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    session.cancel();
    return *steps;
  }
};
constexpr int kSoon = 200;  // steps; 25 ms are a dozen

TEST(Cancel, WithoutATrainingNothingHappens) {
  Session session(model(1));
  session.cancel();
  const TrainResult result = session.train();
  EXPECT_FALSE(result.cancelled);
  EXPECT_EQ(result.steps, static_cast<std::uint64_t>(kManyRows));
  session.cancel();
  EXPECT_FALSE(session.train().cancelled);
}

TEST(Cancel, IsHeardAfterAFewSteps) {
  const SlowExecutor slow("train");
  SessionOptions options;
  options.custom_executor = slow.executor;
  Session session(model(1), options);
  int before = 0;
  std::thread other([&] { before = slow.cancel(session); });
  const TrainResult result = session.train();
  other.join();
  EXPECT_TRUE(result.cancelled);
  EXPECT_GE(result.steps, 50u);
  EXPECT_LT(*slow.steps - before, kSoon);
  EXPECT_EQ(result.losses.size(), result.steps);

  Session straight(model(1));
  straight.advance(result.steps);
  EXPECT_EQ(session.weights_hash(), straight.weights_hash());
}

TEST(Cancel, AnEvaluationHearsItToo) {
  const SlowExecutor slow("evaluate.validation");
  SessionOptions options;
  options.custom_executor = slow.executor;
  Model evaluated = model(2);
  evaluated.train.evaluate_every = 1;
  Session session(std::move(evaluated), options);
  int reports = 0, before = 0;
  std::thread other([&] { before = slow.cancel(session); });
  const TrainResult result = session.train([&](const Report&) { ++reports; });
  other.join();
  EXPECT_TRUE(result.cancelled);
  EXPECT_EQ(result.steps, static_cast<std::uint64_t>(kManyRows));
  EXPECT_EQ(reports, 0);  // its figures would not be of the whole split
  EXPECT_LT(*slow.steps - before, kSoon);
}

TEST(Cancel, FromACallbackEndsTheTrainingThere) {
  Session session(model(3));
  const TrainResult result = session.train([&](const Report& report) {
    if (report.epoch == 2) session.cancel();
  });
  EXPECT_TRUE(result.cancelled);
  EXPECT_EQ(result.epochs, 2);
  EXPECT_EQ(result.steps, static_cast<std::uint64_t>(2 * kManyRows));
}

}  // namespace
}  // namespace graphrun
