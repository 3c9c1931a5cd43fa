// Sessions that train at a time end with the bits of single runs, whatever happens to the others.
#include "graphrun/train_many.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "compiler/compile.h"
#include "support/graph_run.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

constexpr std::size_t kDiverges = 3;
constexpr std::int64_t kEpochs = 12;

// Network i of a group: seeds, optimizers and numbers of epochs differ. Shuffled rows, a partial batch, dropout, early
// stopping.
Model network(std::size_t i) {
  constexpr const char* kOptimizers[] = {"sgd", "momentum", "adam", "sgd", "rmsprop", "adamw", "levenberg_marquardt"};
  const std::string optimizer = kOptimizers[i % std::size(kOptimizers)];
  const bool joint = optimizer == "levenberg_marquardt";
  GraphBuilder graph(joint ? 7 : 3);
  graph.input("x", {kBatch, 2});
  graph.input("y", {kBatch, 1});
  const Value h = graph.dense("h", graph.find("x"), 5, "tanh");
  const Value p = graph.dense("p", joint ? h : graph.op("dropout", {h}, {{"rate", 0.25}}), 1);
  Model model(std::move(graph));
  model.outputs = {{p, "p", "y"}};
  model.train.minimize = model.graph.expression("loss = mean(square(p - y))");
  model.train.optimizer.name = optimizer;
  model.train.optimizer.attributes.clear();
  if (!joint) model.train.optimizer.attributes = {{"lr", i == kDiverges ? 1e30 : 0.05}};
  model.train.epochs = kEpochs + static_cast<std::int64_t>(i);
  model.train.seed = i;
  model.train.shuffle = !joint;
  model.train.evaluate_every = 1;
  model.train.log_every = 1;
  if (i % 2 == 0) model.train.early_stopping.emplace().patience = 3;
  model.data.splits = {{"train",
                        {{"x", test::random_tensor(DType::f32, {7, 2}, -1, 1, "x")},
                         {"y", test::random_tensor(DType::f32, {7, 1}, -1, 1, "y")}}},
                       {"validation",
                        {{"x", test::random_tensor(DType::f32, {4, 2}, -1, 1, "vx")},
                         {"y", test::random_tensor(DType::f32, {4, 1}, -1, 1, "vy")}}}};
  return model;
}

struct Group {
  std::vector<Session> opened;
  std::vector<Session*> sessions;

  explicit Group(std::size_t networks, const std::string& executor = "cpu") {
    for (std::size_t i = 0; i < networks; ++i) {
      SessionOptions options;
      options.custom_executor = test::executor(executor);
      options.threads = 1;
      opened.emplace_back(network(i), options);
    }
    for (Session& session : opened) sessions.push_back(&session);
  }
};

std::string message_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const NotFinite& failure) {
    return failure.what();
  }
  return {};
}

// Outcome of network i on its own, cancelled after some epochs if given.
struct Alone {
  std::string hash, message;
  TrainResult result;
};
Alone alone(std::size_t i, const std::string& executor, std::optional<std::int64_t> stop = {}) {
  SessionOptions options;
  options.custom_executor = test::executor(executor);
  Session session(network(i), options);
  Alone one;
  try {
    one.result = session.train([&](const Report& report) {
      if (stop && report.epoch == *stop) session.cancel();
    });
  } catch (const NotFinite& failure) {
    one.message = failure.what();
  }
  one.hash = session.weights_hash();
  return one;
}

void expect_as_alone(const Group& group, const std::vector<NetworkResult>& results, std::size_t i, const Alone& one) {
  EXPECT_EQ(group.sessions[i]->weights_hash(), one.hash) << "network " << i;
  EXPECT_EQ(message_of(results[i].error), one.message) << "network " << i;
  EXPECT_EQ(results[i].training.steps, one.result.steps) << "network " << i;
  EXPECT_EQ(results[i].training.stopped_early, one.result.stopped_early) << "network " << i;
  EXPECT_EQ(results[i].training.cancelled, one.result.cancelled) << "network " << i;
}

TEST(TrainMany, EndsWithTheBitsOfSingleRuns) {
  for (const std::string executor : {"cpu", "ref"}) {
    for (const std::size_t at_once : {0u, 1u, 3u, 100u}) {
      Group group(14, executor);
      const auto results = train_many(group.sessions, {.at_once = at_once});
      ASSERT_EQ(results.size(), 14u);
      for (std::size_t i = 0; i < results.size(); ++i) expect_as_alone(group, results, i, alone(i, executor));
      EXPECT_NE(message_of(results[kDiverges].error), "");
    }
  }
}

// All rows in a batch: networks of several seeds have the same step.
std::string without_shuffle(std::uint64_t seed, double lr, const std::shared_ptr<Executor>& executor,
                            std::vector<Session>& opened) {
  Model model = network(6);
  model.train.optimizer.name = "sgd";
  model.train.optimizer.attributes = {{"lr", lr}};
  model.train.seed = seed;
  SessionOptions options;
  options.custom_executor = executor;
  opened.emplace_back(std::move(model), options).train();
  return opened.back().weights_hash();
}

TEST(TrainMany, EqualStepsOnOneExecutorAreCompiledOnce) {
  const auto compiled = [before = compilations()] { return compilations() - before; };
  const std::shared_ptr<Executor> executor = find_executor("cpu");
  std::vector<std::string> together, alone;
  {
    std::vector<Session> opened;
    for (const std::uint64_t seed : {1u, 2u, 3u}) together.push_back(without_shuffle(seed, 0.05, executor, opened));
    EXPECT_EQ(compiled(), 1u);
    together.push_back(without_shuffle(3, 0.01, executor, opened));
    EXPECT_EQ(compiled(), 2u);
  }
  for (const auto& [seed, lr] : {std::pair(1, 0.05), {2, 0.05}, {3, 0.05}, {3, 0.01}}) {
    std::vector<Session> opened;
    alone.push_back(without_shuffle(static_cast<std::uint64_t>(seed), lr, find_executor("cpu"), opened));
  }
  EXPECT_EQ(compiled(), 6u);  // another executor may plan otherwise
  EXPECT_EQ(together, alone);
  EXPECT_NE(together[0], together[1]);
}

TEST(TrainMany, ReportsInTheCallingThreadAndStopsOne) {
  constexpr std::size_t kStopped = 5;
  Group group(8);
  std::map<std::size_t, std::vector<std::int64_t>> epochs;
  TrainManyOptions options{.at_once = 4};
  options.on_report = [&, caller = std::this_thread::get_id()](std::size_t i, const Report& report) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    if (i != kDiverges) {
      EXPECT_EQ(report.validation->loss, group.sessions[i]->evaluate("validation").loss) << "network " << i;
    }
    epochs[i].push_back(report.epoch);
    return i == kStopped && report.epoch == 7 ? AfterReport::stop : AfterReport::resume;
  };
  const auto results = train_many(group.sessions, options);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto stop = i == kStopped ? std::optional<std::int64_t>(7) : std::nullopt;
    expect_as_alone(group, results, i, alone(i, "cpu", stop));
    if (results[i].error) continue;
    EXPECT_EQ(epochs[i].back(), results[i].training.epochs) << "network " << i;
    EXPECT_EQ(epochs[i].size(), static_cast<std::size_t>(results[i].training.epochs)) << "network " << i;
  }
  EXPECT_TRUE(results[kStopped].training.cancelled);
}

TEST(TrainMany, StopsAll) {
  Group group(8);
  TrainManyOptions options{.at_once = 2};
  options.on_report = [](std::size_t, const Report&) { return AfterReport::stop_all; };
  const auto results = train_many(group.sessions, options);
  for (const NetworkResult& one : results) EXPECT_TRUE(one.training.cancelled);
  EXPECT_EQ(results.back().training.steps, 0u);  // it did not begin
  EXPECT_EQ(group.sessions.back()->step(), 0u);
  group.sessions.back()->train();  // a later training is not cancelled
  EXPECT_GT(group.sessions.back()->step(), 0u);
}

TEST(TrainMany, AnExceptionOfTheCallbackEndsAllTraining) {
  Group group(8);
  TrainManyOptions options{.at_once = 3};
  int calls = 0;
  options.on_report = [&](std::size_t, const Report&) -> AfterReport {
    ++calls;
    throw std::runtime_error("mine");
  };
  EXPECT_THROW(train_many(group.sessions, options), std::runtime_error);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(group.sessions.back()->step(), 0u);
}

TEST(TrainMany, RejectsInvalidSessions) {
  Group group(2);
  EXPECT_TRUE(train_many({}).empty());
  const std::vector<std::pair<std::vector<Session*>, std::string>> cases = {
      {{group.sessions[0], nullptr}, "session 1 is null"},
      {{group.sessions[1], group.sessions[0], group.sessions[1]}, "session 2 is given twice"}};
  for (const auto& [sessions, message] : cases) {
    try {
      train_many(sessions);
      ADD_FAILURE() << "no error; expected " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(group.sessions[0]->step(), 0u);
}

}  // namespace
}  // namespace graphrun
