// An executor with one kernel of its own (support/matmul_executor.cpp) trains, and reports which ops it has none for.
// Each sample of each op on it is part of the conformance suite.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "executors/common/host_executor.h"
#include "graphrun/op.h"
#include "graphrun/session.h"
#include "graphrun/verify.h"
#include "support/matmul_executor.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

Model model_of_layers() {
  GraphBuilder graph(3);
  const Value x = graph.input("x", {kBatch, 4});
  graph.input("y", {kBatch, 2});
  const Value out = graph.dense("out", graph.dense("hidden", x, 5, "tanh"), 2);
  Model model(std::move(graph));
  model.name = "layers";
  model.outputs = {{out, "out", "y"}};
  model.train.minimize = model.graph.expression("loss = mean(square(out - y))");
  model.train.optimizer.attributes = {{"lr", 0.1}};
  model.train.epochs = 20;
  model.data.splits = {{"train",
                        {{"x", test::random_tensor(DType::f32, {7, 4}, -1, 1, "x")},
                         {"y", test::random_tensor(DType::f32, {7, 2}, -1, 1, "y")}}}};
  return model;
}

TEST(Fallback, AnExecutorOfOneKernelTrainsAsCpuDoes) {
  SessionOptions options;
  options.custom_executor = test::matmul_executor();
  Session session(model_of_layers(), options);
  Session cpu(model_of_layers());
  const std::vector<double> losses = session.train().losses, expected = cpu.train().losses;
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-5) << "step " << i;
  EXPECT_LT(losses.back(), losses.front());
}

TEST(Fallback, OpsThatFellBackAreReported) {
  SessionOptions options;
  options.custom_executor = test::matmul_executor();
  const Session session(model_of_layers(), options);
  std::uint64_t others = 0;
  std::set<std::string_view> ops;
  for (const Phase& phase : session.program().phases) {
    for (const Step& step : phase.steps) {
      if (step.op == Op::matmul) continue;
      ++others;
      ops.insert(name_of(step.op));
    }
  }
  EXPECT_EQ(session.counters(), (std::vector<std::pair<std::string, std::uint64_t>>{{"fallback_steps", others}}));
  const std::vector<std::string> told = session.fusion().fallbacks;
  EXPECT_EQ(told.size(), ops.size()) << "a line for each op";
  EXPECT_EQ(std::count(told.begin(), told.end(), "matmul_only has no kernel for tanh: cpu's runs 3 steps"), 1);

  FusionSummary fusion;
  plan_program(model_of_layers(), options, &fusion);
  EXPECT_EQ(fusion.fallbacks, told) << "a plan says it, too";
  EXPECT_TRUE(Session(model_of_layers()).fusion().fallbacks.empty()) << "cpu has kernels of its own";
}

TEST(Fallback, IsVerifiedAgainstTheReference) {
  VerifyOptions options;
  options.custom_executor = test::matmul_executor();
  options.steps = 3;
  const VerifyReport report = verify(model_of_layers(), options);
  EXPECT_TRUE(report.passed()) << to_string(*report.difference);
  EXPECT_FALSE(report.fallbacks.empty());
}

TEST(Fallback, TheKernelOfADoubleIsTheReferences) {
  const std::vector<TensorType> inputs(2, {DType::f64, {2}, 0});
  const Params none = NoParams{};
  EXPECT_EQ(find_kernel({*find_op("mod"), none, inputs, inputs[0]}).fallback, "ref");
  const std::vector<TensorType> floats(2, {DType::f32, {2}, 0});
  EXPECT_EQ(find_kernel({*find_op("mod"), none, floats, floats[0]}).fallback, "cpu");
}

TEST(Fallback, OneExecutorIsThereForComparisons) {
  EXPECT_TRUE(find_executor("ref")->is_reference());
  EXPECT_FALSE(find_executor("cpu")->is_reference());
  EXPECT_FALSE(test::matmul_executor()->is_reference());
}

}  // namespace
}  // namespace graphrun
