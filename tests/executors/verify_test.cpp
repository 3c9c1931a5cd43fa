// The verifier: passes what is right, and says how rounding grows.
#include "graphrun/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "executors/verify_models.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/session.h"
#include "support/graph_run.h"
#include "support/mutant_executor.h"
#include "support/source_folder.h"

namespace graphrun {
namespace {

using Floats = std::vector<float>;
using test::after;
using test::classifier;
using test::kNan;
using test::MutantExecutor;
using test::named;
using test::verified_model;

// ---- what is right

TEST(Verify, ExecutorsAgree) {
  for (const auto& [name, executor] : test::executors().present) {
    for (const char* optimizer : {"sgd", "momentum", "nesterov", "rmsprop", "adagrad", "adam", "adamw"}) {
      for (const bool passes : {true, false}) {
        VerifyOptions options;
        options.executor = name;
        options.passes = passes;
        const VerifyReport report = verify(verified_model(optimizer), options);
        ASSERT_TRUE(report.passed()) << name << " " << optimizer << "\n" << to_string(*report.difference);
        EXPECT_EQ(report.training_steps, 3u);
        EXPECT_EQ(report.evaluation_steps, 3u + 2u);
        EXPECT_EQ(report.predictions, 2u);
        EXPECT_EQ(report.regions > 0, passes && name != "ref") << name << report.regions;
        EXPECT_GT(report.fused_values, 500u);
        EXPECT_GT(report.values, 1000u);
        ASSERT_FALSE(report.ops.empty());
        EXPECT_LE(report.ops.front().worst, 0.25);
        std::uint64_t values = 0;
        for (const OpAgreement& op : report.ops) values += op.values;
        EXPECT_EQ(values, report.values);
      }
    }
  }
}

TEST(Verify, ExecutorsAgreeOnClassesAndDraws) {
  for (const auto& [name, executor] : test::executors().present) {
    std::set<std::string> ops;
    for (const bool passes : {true, false}) {  // with passes some ops are shown to their readers, and are no steps
      VerifyOptions options;
      options.executor = name;
      options.passes = passes;
      options.steps = 7;
      const VerifyReport report = verify(classifier(), options);
      ASSERT_TRUE(report.passed()) << name << "\n" << to_string(*report.difference);
      for (const OpAgreement& entry : report.ops) ops.insert(entry.op);
    }
    for (const char* op : {"dropout", "softmax", "log_softmax", "softmax_cross_entropy", "logsumexp", "max", "prod",
                           "argmax", "one_hot", "gather", "transpose", "slice", "concat", "minibatch"})
      EXPECT_EQ(ops.count(op), 1u) << op;
  }
}

TEST(Verify, ModelsOfTheRepositoryAgree) {
  const std::string folder = source_folder() + "/models/";
  for (const char* batch : {"all", "3", "1"}) {
    const Model model = load_model(folder + "xor.json", {"", {{"train.batch", batch}}});
    const VerifyReport report = verify(model);
    EXPECT_TRUE(report.passed()) << to_string(*report.difference);
  }
  for (const char* batch : {"all", "100"}) {
    const VerifyReport report = verify(load_model(folder + "linear_regression.json", {"", {{"train.batch", batch}}}));
    EXPECT_TRUE(report.passed()) << to_string(*report.difference);
  }
}

TEST(Verify, AShortLastBatchIsAlwaysAmongTheSteps) {
  VerifyOptions options;
  options.steps = 1;
  const VerifyReport report = verify(verified_model(), options);
  EXPECT_EQ(report.training_steps, 2u);
  EXPECT_EQ(report.evaluation_steps, 2u + 2u);
  options.steps = 5;
  EXPECT_EQ(verify(verified_model(), options).training_steps, 5u);
  options.steps = 1;
  const Model divides = load_model(source_folder() + "/models/xor.json", {"", {{"train.batch", "2"}}});
  EXPECT_EQ(verify(divides, options).training_steps, 1u);
}

TEST(Verify, NothingIsReportedAsAnError) {
  VerifyOptions options;
  options.steps = 0;
  EXPECT_THROW(verify(verified_model(), options), Error);
  Model model = load_model(source_folder() + "/models/xor.json");
  model.train.minimize = {};
  model.outputs = {};
  for (const bool trajectory : {false, true}) {
    try {
      options.steps = 1;
      options.trajectory = trajectory;
      verify(model, options);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostics()[0].code, "verify.nothing");
    }
  }
}

TEST(Verify, AStepWithoutANameIsReportedByItsNumber) {
  Difference difference;
  difference.kind = Difference::Kind::fused;
  difference.op = "matmul";
  difference.step = 2;
  difference.steps = 3;
  EXPECT_NE(to_string(difference).find("(matmul, 2 of 3) differs"), std::string::npos) << to_string(difference);
  difference.step = 0;
  EXPECT_NE(to_string(difference).find("differs after the whole phase"), std::string::npos) << to_string(difference);
}

// ---- side by side

TEST(Verify, ATrajectoryTellsHowRoundingGrows) {
  VerifyOptions options;
  options.trajectory = true;
  options.steps = 40;
  const VerifyReport report = verify(verified_model(), options);
  EXPECT_TRUE(report.passed());
  ASSERT_EQ(report.growth.size(), 40u);
  EXPECT_EQ(report.growth[7].step, 8u);
  for (const Divergence& at : report.growth) EXPECT_LT(at.difference, 1e-4) << at.step << " " << at.parameter;
  EXPECT_GT(report.growth.back().difference, 0);
}

TEST(Verify, ATrajectoryFailsBeyondItsBoundOnly) {
  VerifyOptions options;
  options.trajectory = true;
  options.steps = 5;
  options.custom_executor = std::make_shared<MutantExecutor>(
      test::executor("cpu"), after(named("train/V:gradient"), [](Floats& m) { m[5] += 0.01f; }));
  const VerifyReport free = verify(verified_model(), options);
  EXPECT_TRUE(free.passed());
  EXPECT_EQ(free.growth.back().parameter, "V");
  options.tolerance = 1e-4;
  const VerifyReport bounded = verify(verified_model(), options);
  ASSERT_FALSE(bounded.passed());
  EXPECT_EQ(bounded.difference->kind, Difference::Kind::parameter);
  EXPECT_EQ(bounded.difference->buffer, "V");
  EXPECT_EQ(bounded.difference->index, (std::vector<std::int64_t>{1, 1}));
}

TEST(Verify, ATrajectoryOfNanFails) {
  VerifyOptions options;
  options.trajectory = true;
  options.custom_executor = std::make_shared<MutantExecutor>(
      test::executor("cpu"), after(named("train/V:gradient"), [](Floats& m) { m[5] = kNan; }));
  const VerifyReport report = verify(verified_model(), options);
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.difference->got, "nan");
}

}  // namespace
}  // namespace graphrun
