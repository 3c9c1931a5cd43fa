// cancel(): means the training under way and no other, is heard soon, and leaves whole steps behind.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "graphrun/session.h"
#include "support/graph_run.h"
#include "support/mutant_executor.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using Clock = std::chrono::steady_clock;
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

// The executor `cpu`, with steps of two milliseconds in a phase.
std::shared_ptr<Executor> slow_executor(const std::string& phase) {
  test::Mutation slow;
  slow.pick = [phase](const Program&, const Step& step) { return step.name == phase + "/p"; };
  slow.after = [](const test::Hands&) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  return std::make_shared<test::MutantExecutor>(test::executor("cpu"), slow);
}

TEST(Cancel, WithoutATrainingNothingHappens) {
  Session session(model(1));
  session.cancel();
  const TrainResult result = session.train();
  EXPECT_FALSE(result.cancelled);
  EXPECT_EQ(result.steps, static_cast<std::uint64_t>(kManyRows));
  session.cancel();
  EXPECT_FALSE(session.train().cancelled);
}

TEST(Cancel, IsHeardWithinAFractionOfASecond) {
  SessionOptions options;
  options.custom_executor = slow_executor("train");
  Session session(model(1), options);
  Clock::time_point asked;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    asked = Clock::now();
    session.cancel();
  });
  const TrainResult result = session.train();
  const double seconds = std::chrono::duration<double>(Clock::now() - asked).count();
  other.join();
  EXPECT_TRUE(result.cancelled);
  EXPECT_GT(result.steps, 0u);
  EXPECT_LT(result.steps, 2000u);
  EXPECT_LT(seconds, 1.0);  // 0.025 s of steps; the rest is for a busy machine
  EXPECT_EQ(result.losses.size(), result.steps);

  Session straight(model(1));
  straight.advance(result.steps);
  EXPECT_EQ(session.weights_hash(), straight.weights_hash());
}

TEST(Cancel, AnEvaluationHearsItToo) {
  SessionOptions options;
  options.custom_executor = slow_executor("evaluate.validation");
  Model slow = model(2);
  slow.train.evaluate_every = 1;
  Session session(std::move(slow), options);
  int reports = 0;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    session.cancel();
  });
  const Clock::time_point begun = Clock::now();
  const TrainResult result = session.train([&](const Report&) { ++reports; });
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  other.join();
  EXPECT_TRUE(result.cancelled);
  EXPECT_EQ(result.steps, static_cast<std::uint64_t>(kManyRows));
  EXPECT_EQ(reports, 0);    // its figures would not be of the whole split
  EXPECT_LT(seconds, 5.0);  // the split takes 10
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
