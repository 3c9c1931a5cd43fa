// A number that is not finite: the step, the op, the element and its operands are named, and the weights before it are
// kept.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>

#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/session.h"
#include "session/not_finite.h"
#include "session/statistics.h"
#include "support/graph_run.h"
#include "support/mutant_executor.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();

SessionOptions on(const char* executor) {
  SessionOptions options;
  options.executor = executor;
  return options;
}

struct NotFiniteCase {
  const char* name;
  std::vector<const char*> formulas;
  std::uint64_t step;  // that begins it, from 1 on
  std::vector<const char*> told;
};

// c falls by 1/8 a step, from 1: 0 before step 9, -1/8 before step 10. The loss takes it along times zero.
Model falling(const std::vector<const char*>& formulas) {
  GraphBuilder graph(4);
  graph.input("x", {kBatch, 2});
  graph.parameter("c", {2}, Init::constant(1));
  graph.parameter("W", {2, 3}, Init::uniform(-1, 1));
  graph.expression("z = x @ W");
  for (const char* formula : formulas) graph.expression(formula);
  Model model(std::move(graph));
  model.train.minimize = model.graph.find("loss");
  model.train.optimizer.attributes = {{"lr", 0.125}};
  model.train.epochs = 50;
  model.data.splits = {{"train", {{"x", test::random_tensor(DType::f32, {8, 2}, -1, 1, "x")}}}};
  return model;
}

const NotFiniteCase kNotFiniteCases[] = {
    {"log",
     {"g = log(c)", "loss = sum(c) + 0 * sum(g) + 0 * mean(z)"},
     9,
     {"op log", "g[0] is -inf", "c[0] = 0", "log(x + 1e-7)"}},
    {"division",
     {"q = 1 / c", "loss = sum(c) + 0 * sum(q)+ 0 * mean(z)"},
     9,
     {"q[0] is inf", "c[0] = 0", "division by 0"}},
    {"root",
     {"r = sqrt(c + 0.0625)", "loss = sum(c) + 0 * sum(r) + 0 * mean(z)"},
     10,
     {"op sqrt", "r[0] is nan", "= -0.0625", "root of a negative number"}},
    {"exp",
     {"v = exp(99 - 99 * c)", "loss = sum(c) + 0 * sum(v) + 0 * mean(z)"},
     9,
     {"op exp", "v[0] is inf", "= 99", "88.7"}},
    // An infinity on purpose, which reaches nothing, is passed over.
    {"mask",
     {"m = -1 / relu(c - 5)", "w = exp(m)", "g = log(c)", "loss = sum(c) + 0 * sum(g) + 0 * sum(w) + 0 * mean(z)"},
     9,
     {"op log", "g[0] is -inf"}},
};

class NotFiniteOps : public ::testing::TestWithParam<std::tuple<NotFiniteCase, const char*>> {};

TEST_P(NotFiniteOps, AreNamed) {
  const auto& [planted, executor] = GetParam();
  Session session(falling(planted.formulas), on(executor));
  try {
    (void)session.train();
    FAIL() << "it stayed finite";
  } catch (const NotFinite& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("at step " + std::to_string(planted.step) + " "), std::string::npos) << text;
    for (const char* part : planted.told)
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in:\n" << text;
    // What is left are the weights before that step.
    EXPECT_EQ(error.steps(), planted.step - 1);
    EXPECT_EQ(session.step(), planted.step - 1);
  }
  Session before(falling(planted.formulas), on(executor));
  before.advance(planted.step - 1);
  EXPECT_EQ(session.weights_hash(), before.weights_hash());
}

INSTANTIATE_TEST_SUITE_P(Each, NotFiniteOps,
                         ::testing::Combine(::testing::ValuesIn(kNotFiniteCases), ::testing::Values("cpu", "ref")),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param).name) + "_" + std::get<1>(one.param);
                         });

// The states before the step are those that a callback has written, so no step is run again to find it.
TEST(NotFinite, LeavesTheStepOfTheStatesThatWereWritten) {
  Session session(falling(kNotFiniteCases[0].formulas), on("cpu"));
  TrainOptions options;
  options.step_end_every = 8;
  options.on_step_end = [&](const StepEnd&) { session.write("c", session.read("c")); };
  EXPECT_THROW((void)session.train(options), NotFinite);
  EXPECT_EQ(session.step(), 8u);
}

std::string told(Session& session, const TrainOptions& options = {}) {
  try {
    (void)session.train(options);
  } catch (const NotFinite& error) {
    return error.what();
  }
  return "";
}

TEST(NotFinite, InTheData) {
  Model model = falling({"loss = mean(square(z))"});
  HostTensor x = test::random_tensor(DType::f32, {8, 2}, -1, 1, "x");
  x.elements<float>()[2 * 5 + 1] = kNanF;  // of the second batch
  model.data.splits = {{"train", {{"x", x}}}};
  Session session(std::move(model));
  const std::string text = told(session);
  EXPECT_NE(text.find("at step 2 (epoch 1)"), std::string::npos) << text;
  EXPECT_NE(text.find("in the data: x[5, 1] of the split train is nan"), std::string::npos) << text;
}

// Steps are too large from the first on: a product, a sum or a square overflows, and the weights before are finite.
TEST(NotFinite, ATrainingThatDiverges) {
  Model model = falling({"loss = mean(square(z - 1)) + 0 * sum(c)"});
  model.train.optimizer.attributes = {{"lr", 1000}};
  model.train.epochs = 1000;
  Session session(std::move(model));
  const std::string text = told(session);
  EXPECT_NE(text.find("too large for f32"), std::string::npos) << text;
  const HostTensor weights = session.read("W");
  for (const float w : weights.elements<float>()) EXPECT_TRUE(std::isfinite(w));
  EXPECT_GT(session.step(), 3u);
}

// Each step reads one row of a table, and the root of the seventh has no finite gradient. No loss sees that row again:
// the step after which a parameter is not finite is found all the same.
TEST(NotFinite, AParameterBesideAFiniteLoss) {
  constexpr std::int64_t kRowsOfData = 1000;
  for (const char* executor : {"cpu", "ref"}) {
    GraphBuilder graph(1);
    graph.input("i", {kBatch}, DType::i32);
    HostTensor table(DType::f32, {kRowsOfData, 1});
    for (float& value : table.elements<float>()) value = 1;
    table.elements<float>()[6] = 0;
    graph.parameter("T", {kRowsOfData, 1}, Init::values(table));
    graph.expression("loss = mean(sqrt(square(gather(T, i))))");
    Model model(std::move(graph));
    model.train.minimize = model.graph.find("loss");
    model.train.epochs = 1;
    HostTensor rows(DType::i32, {kRowsOfData});
    for (std::int32_t i = 0; i < kRowsOfData; ++i) rows.elements<std::int32_t>()[static_cast<std::size_t>(i)] = i;
    model.data.splits = {{"train", {{"i", rows}}}};
    Session session(std::move(model), on(executor));
    try {
      (void)session.train();
      FAIL() << "nobody noticed";
    } catch (const NotFinite& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("a parameter is not finite after step 7 (epoch 1)"), std::string::npos) << text;
      EXPECT_NE(text.find("began with the op div"), std::string::npos) << text;
      EXPECT_EQ(error.steps(), 6u);
    }
    const HostTensor kept = session.read("T");
    for (const float w : kept.elements<float>()) EXPECT_TRUE(std::isfinite(w));
  }
}

// NotFiniteCase once only: run again, op by op, it does not recur, and that is said.
TEST(NotFinite, WhatDoesNotRecur) {
  test::Mutation planted;
  planted.pick = test::writes("train/loss:ring");
  planted.after = [](const test::Hands& hands) {
    if (hands.runs == 6) hands.change_output([](std::vector<float>& ring) { ring[6] = kNanF; });
  };
  const auto executor = std::make_shared<test::MutantExecutor>(test::executor("cpu"), planted);
  SessionOptions options;
  options.custom_executor = executor;
  Session session(falling({"loss = mean(square(z)) + 0 * sum(c)"}), options);
  const std::string text = told(session);
  EXPECT_NE(text.find("at step 7 "), std::string::npos) << text;
  EXPECT_NE(text.find("the same step stays finite"), std::string::npos) << text;
}

// From 1/4 on, which a callback writes after step 2, c is 0 before step 5: from what it was before, only before step 9.
TEST(NotFinite, IsTracedFromStatesThatACallbackWrote) {
  Session session(falling({"g = log(c)", "loss = sum(c) + 0 * sum(g) + 0 * mean(z)"}));
  TrainOptions options;
  options.step_end_every = 2;
  options.on_step_end = [&](const StepEnd& at) {
    const float quarters[] = {0.25f, 0.25f};
    if (at.step == 2) session.write(session.find("c"), std::as_bytes(std::span(quarters)));
  };
  const std::string text = told(session, options);
  for (const char* wanted : {"at step 5 ", "op log", "c[0] = 0"})
    EXPECT_NE(text.find(wanted), std::string::npos) << text;
}

TEST(NotFinite, IsFoundInTheRegionsOfAStep) {
  const Model model = falling({"h = tanh(z)", "g = log(c)", "loss = mean(square(h)) + sum(c) + 0 * sum(g)"});
  const std::shared_ptr<Executor> executor = test::executor("cpu");
  const CompiledModel compiled = compile_model(model, {&executor, 1}, plan_options({}));
  ASSERT_FALSE(compiled.program.phases[0].regions.empty());
  const std::unique_ptr<Runnable> runnable = load_program(*executor, compiled.program);
  write_start(model, compiled, {runnable.get()});
  StateCopy states(compiled.program,
                   trained_states(compiled.program, compiled.buffer(compiled.step.phases[0].counter)));
  states.take(*runnable);
  EXPECT_FALSE(find_in_regions(compiled, states, *runnable));
  states.put(*runnable);
  runnable->run(0, 8);
  states.take(*runnable);
  const std::optional<Diagnostic> found = find_in_regions(compiled, states, *runnable);
  ASSERT_TRUE(found);
  EXPECT_NE(found->message.find("with regions it shows first in"), std::string::npos) << found->message;
}

TEST(NotFinite, WithoutATraceTheStepIsNamed) {
  Session session(falling(kNotFiniteCases[0].formulas));
  TrainOptions options;
  options.trace_not_finite = false;
  const std::string text = told(session, options);
  EXPECT_NE(text.find("at step 9 "), std::string::npos) << text;
  EXPECT_EQ(text.find("op log"), std::string::npos) << text;
}

TEST(Watch, ReportsStatisticsAndChangesNoBit) {
  const auto model = [] {
    Model made = falling({"h = tanh(z)", "loss = mean(square(h - 1)) + 0 * sum(c)"});
    made.train.epochs = 6;  // of two steps
    return made;
  };
  const auto watching = [](std::vector<std::string> names) {
    SessionOptions how;
    how.watch = std::move(names);
    return how;
  };
  Session plain(model()), session(model(), watching({"h", "W"}));
  TrainOptions options;
  options.watch_every = 5;
  std::vector<std::uint64_t> steps;
  std::vector<Statistics> last;
  options.on_report = [&](const Report& report) {
    if (report.watched.empty()) return;
    steps.push_back(report.step);
    last.assign(report.watched.begin(), report.watched.end());
    const HostTensor weights = session.read("W");
    const Statistics expected = statistics(DType::f32, weights.bytes());
    EXPECT_EQ(last[1].mean, expected.mean);
    EXPECT_EQ(last[1].max, expected.max);
  };
  (void)session.train(options);
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{5, 10}));
  ASSERT_EQ(last.size(), 2u);
  EXPECT_LE(last[0].max, 1);
  EXPECT_LT(last[0].min, last[0].max);
  (void)plain.train();
  EXPECT_EQ(session.weights_hash(), plain.weights_hash());
  EXPECT_THROW(Session(model(), watching({"hh"})), Error);
}

TEST(Watch, CountsWhatIsNotFinite) {
  const std::vector<float> values = {0, 2, kNanF, 4, std::numeric_limits<float>::infinity(), 0, 0, 0};
  const Statistics s = statistics(DType::f32, std::as_bytes(std::span(values)));
  EXPECT_EQ(s.min, 0);
  EXPECT_EQ(s.max, 4);
  EXPECT_EQ(s.mean, 1);
  EXPECT_EQ(s.zeros, 0.5);
  EXPECT_EQ(s.nonfinite, 0.25);
  EXPECT_DOUBLE_EQ(s.std_dev, std::sqrt((4 * 1.0 + 1 + 9) / 6));
}

}  // namespace
}  // namespace graphrun
