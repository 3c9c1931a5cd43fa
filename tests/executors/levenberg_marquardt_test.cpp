// The optimizer levenberg_marquardt in training runs: curves that it fits, rejected steps and combinations, reports.
// The equations are in graph/optimizers_test.cpp, Jacobians in graph/gradients_test.cpp, resuming in
// checkpoints_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "graphrun/error.h"
#include "graphrun/session.h"
#include "graphrun/verify.h"
#include "support/source_folder.h"
#include "support/tensors.h"

namespace graphrun::least_squares {
namespace {

using Overrides = std::vector<std::pair<std::string, std::string>>;

Model example(const std::string& name, Overrides overrides = {}) {
  LoadOptions options;
  options.overrides = std::move(overrides);
  return load_model(source_folder() + "/examples/" + name + ".json", options);
}

SessionOptions on_cpu() {
  SessionOptions options;
  options.executor = "cpu";
  return options;
}

double value_of(const std::vector<std::pair<std::string, double>>& values, const std::string& name) {
  for (const auto& [other, value] : values) {
    if (other == name) return value;
  }
  return std::nan("");
}

TEST(LevenbergMarquardt, FindsTheDampingOfAPendulum) {
  Session session(example("fitting/pendulum"), on_cpu());
  const TrainResult result = session.train();
  const Metrics metrics = session.evaluate("train");
  EXPECT_NEAR(value_of(metrics.values, "decay"), 0.12, 0.005);  // the measurements have noise
  EXPECT_NEAR(value_of(metrics.values, "frequency"), 3.1, 0.005);
  EXPECT_NEAR(value_of(metrics.values, "rmse"), 0.005, 0.001);
  EXPECT_EQ(result.stopped, "no further descent");
}

TEST(LevenbergMarquardt, FitsSincAtOtherPoints) {
  Session session(example("fitting/sinc", {{"train.epochs", "300"}}), on_cpu());
  (void)session.train();
  EXPECT_LT(session.evaluate("test").loss, 1e-6);
}

TEST(LevenbergMarquardt, SolvesADifferentialEquation) {
  Session session(example("physics/heat", {{"train.optimizer", "levenberg_marquardt"}, {"train.epochs", "300"}}),
                  on_cpu());
  (void)session.train();
  EXPECT_LT(value_of(session.evaluate("test").values, "rmse"), 5e-3);
}

// A step is accepted or leaves the parameters as they are. The report has the values of the last step.
TEST(LevenbergMarquardt, RejectedStepsKeepTheParameters) {
  std::set<std::string> hashes;
  double accepted = 0, damping = 0;
  std::size_t rejected = 0;
  Session session(example("fitting/sinc", {{"train.epochs", "60"}, {"train.log_every", "1"}}), on_cpu());
  TrainOptions options;
  options.hash_weights = true;
  std::uint64_t before = 0;
  options.on_report = [&](const Report& report) {
    ASSERT_EQ(report.optimizer.size(), 3U);
    const bool moved = report.weights.value() != before;
    EXPECT_TRUE(report.step == 1 || moved == (report.optimizer[0] == accepted + 1)) << report.step;
    if (report.step > 1 && !moved) {
      ++rejected;
      EXPECT_GT(report.optimizer[1], damping);
    }
    before = report.weights.value();
    accepted = report.optimizer[0], damping = report.optimizer[1];
    EXPECT_GT(report.optimizer[2], 0);
  };
  (void)session.train(options);
  EXPECT_GT(rejected, 2U);
  EXPECT_EQ(value_of(session.optimizer_numbers(), "accepted"), accepted);
  EXPECT_EQ(value_of(session.optimizer_numbers(), "damping"), damping);
  EXPECT_TRUE(Session(example("physics/heat"), on_cpu()).optimizer_numbers().empty());
}

// Two parameters with the same effect: without damping, the second pivot is 0.
TEST(LevenbergMarquardt, RejectsAStepAfterAFailedPivot) {
  Overrides overrides = {{"graph.curve", "curve = amplitude + decay + 0 * (frequency + phase) + 0 * t"},
                         {"train.optimizer.levenberg_marquardt.damping", "1e-30"},
                         {"train.optimizer.levenberg_marquardt.min_damping", "1e-30"},
                         {"train.epochs", "1"}};
  Session first(example("fitting/pendulum", overrides), on_cpu());
  const std::string start = first.weights_hash();
  const TrainResult result = first.train();
  EXPECT_EQ(first.weights_hash(), start);
  EXPECT_EQ(value_of(first.optimizer_numbers(), "accepted"), 0);
  EXPECT_GT(value_of(first.optimizer_numbers(), "damping"), 1e-30);
  overrides.back().second = "100";
  Session session(example("fitting/pendulum", overrides), on_cpu());
  EXPECT_LT(session.train().losses.back(), result.losses.front());
}

TEST(LevenbergMarquardt, TakesBatchesAndAnyNumberOfThreads) {
  const Overrides overrides = {{"train.batch", "300"}, {"train.shuffle", "true"}, {"train.epochs", "20"}};
  std::set<std::string> hashes;
  for (const int threads : {1, 2, 3}) {
    SessionOptions options = on_cpu();
    options.threads = threads;
    Session session(example("fitting/sinc", overrides), options);
    (void)session.train();
    EXPECT_LT(session.evaluate("test").loss, 1e-3);
    hashes.insert(session.weights_hash());
  }
  EXPECT_EQ(hashes.size(), 1U);
}

TEST(LevenbergMarquardt, IsVerified) {
  for (const char* name : {"fitting/pendulum", "fitting/sinc"}) {
    Model model = example(name, {{"train.epochs", "3"}});
    VerifyOptions options;
    options.executor = "cpu";
    const VerifyReport report = verify(model, options);
    EXPECT_TRUE(report.passed()) << name;
  }
}

TEST(LevenbergMarquardt, StopsAtASmallGradient) {
  Session session(example("fitting/pendulum", {{"train.stop_at", R"({"loss": 0, "gradient": 1e-4})"}}), on_cpu());
  const TrainResult result = session.train();
  EXPECT_EQ(result.stopped, "gradient at most 0.0001");
  EXPECT_LE(value_of(session.optimizer_numbers(), "gradient_norm"), 2e-4);  // it has four elements
  Session adam(example("fitting/pendulum", {{"train.stop_at", R"({"loss": 0, "gradient": 100})"},
                                            {"train.optimizer", R"({"adam": {"lr": 0.01}})"}}),
               on_cpu());
  EXPECT_EQ(adam.train().steps, 1U);
}

void expect_interval(const ParameterInterval& one, double value, double std_error, double t, double tolerance) {
  EXPECT_NEAR(one.value, value, tolerance * std::abs(value)) << one.parameter;
  EXPECT_NEAR(one.std_error, std_error, tolerance * std_error) << one.parameter;
  EXPECT_NEAR(one.low, one.value - t * one.std_error, 1e-9 * std::abs(one.value)) << one.parameter;
  EXPECT_NEAR(one.high, one.value + t * one.std_error, 1e-9 * std::abs(one.value)) << one.parameter;
}

// Standard errors of scipy.optimize.curve_fit; t is the 97.5 % quantile for 146 degrees of freedom. They do not change
// the parameters, and batches do not change them.
TEST(Intervals, AreThoseOfSciPyForThePendulum) {
  for (const auto& [precision, tolerance] : {std::pair{"fp32", 1e-3}, {"fp64", 1e-5}}) {
    Session session(example("fitting/pendulum", {{"train.precision", precision}}), on_cpu());
    (void)session.train();
    const std::string before = session.weights_hash();
    const FitIntervals fit = session.intervals();
    EXPECT_EQ(session.weights_hash(), before);
    ASSERT_EQ(fit.parameters.size(), 4U);
    EXPECT_EQ(fit.parameters[1].parameter, "decay");
    expect_interval(fit.parameters[0], 0.297023073, 0.001876190824, 1.9763456545938, tolerance);
    expect_interval(fit.parameters[1], 0.1189009962, 0.001270203111, 1.9763456545938, tolerance);
    expect_interval(fit.parameters[2], 3.098952768, 0.001256451851, 1.9763456545938, tolerance);
    expect_interval(fit.parameters[3], 0.2028482732, 0.006286428766, 1.9763456545938, tolerance);
    EXPECT_EQ(fit.residuals, 150U);
    EXPECT_LT(fit.offset, 0.01);
    EXPECT_EQ(session.train().stopped, "no further descent");  // the model trains as before
  }
  Session session(
      example("fitting/pendulum", {{"train.batch", "64"}, {"train.optimizer", R"({"adam": {"lr": 0.01}})"}}), on_cpu());
  (void)session.train();
  EXPECT_NEAR(session.intervals().parameters[1].std_error, 0.00127, 0.0001);
  EXPECT_GT(Session(example("fitting/pendulum"), on_cpu()).intervals().offset, 1);  // not trained
}

// Misra1a of the NIST Statistical Reference Datasets, with certified standard deviations (b2 is in units of 0.001).
Model misra(const std::string& loss, std::int64_t rows = 14) {
  GraphBuilder graph(rows);
  graph.input("x", {kBatch, 1});
  graph.input("y", {kBatch, 1});
  graph.parameter("b1", {}, Init::constant(250));
  graph.parameter("b2", {}, Init::constant(0.5));
  graph.expression("curve = b1 * (1 - exp(-0.001 * b2 * x))");
  Model model(std::move(graph));
  model.train.minimize = model.graph.expression("loss = " + loss);
  model.train.optimizer = {"levenberg_marquardt", {}, {}, {}};
  model.train.precision = Precision::fp64;
  model.train.epochs = 300;
  const std::vector<double> y = {10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02,
                                 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78},
                            x = {77.6,  114.9, 141.1, 190.8, 239.9, 289.0, 332.8,
                                 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0};
  model.data.splits = {
      {"train",
       {{"x", test::tensor_of(DType::f32, {rows, 1}, x)}, {"y", test::tensor_of(DType::f32, {rows, 1}, y)}},
       0}};
  return model;
}

TEST(Intervals, AreTheCertifiedOnesOfNist) {
  for (const char* loss : {"mse(curve, y)", "1000 * sum(square(curve - y))"}) {  // no scale of the loss changes them
    Session session(misra(loss), on_cpu());
    (void)session.train();
    const FitIntervals fit = session.intervals();
    EXPECT_NEAR(fit.std_dev, 0.1018787633, 1e-6);
    expect_interval(fit.parameters[0], 238.94212918, 2.7070075241, 2.1788128296672, 1e-5);
    expect_interval(fit.parameters[1], 0.55015643181, 7.2668688436e-3, 2.1788128296672, 1e-5);
  }
}

// curve_fit with sigma = sqrt(y). Rows of weight 0 do not count as residuals.
TEST(Intervals, UseWeights) {
  Session weighted(misra("mean(square(curve - y) / y)"), on_cpu());
  (void)weighted.train();
  const FitIntervals fit = weighted.intervals();
  expect_interval(fit.parameters[0], 234.5347189, 2.682371839, 2.1788128296672, 1e-5);
  expect_interval(fit.parameters[1], 0.5622792955, 7.363734838e-3, 2.1788128296672, 1e-5);
  Session masked(misra("mean(square(curve - y) * cast(y > 20, dtype=f32))"), on_cpu());
  (void)masked.train();
  EXPECT_EQ(masked.intervals().residuals, 11U);
}

TEST(Intervals, NameElementsOfAMatrix) {
  GraphBuilder graph(5);
  graph.input("x", {kBatch, 1});
  graph.input("y", {kBatch, 2});
  graph.parameter("W", {1, 2});
  Model model(std::move(graph));
  model.train.minimize = model.graph.expression("loss = mean(square(x @ W - y))");
  model.train.optimizer = {"levenberg_marquardt", {}, {}, {}};
  model.train.epochs = 100;
  model.data.splits = {{"train",
                        {{"x", test::tensor_of(DType::f32, {5, 1}, {1, 2, 3, 4, 5})},
                         {"y", test::tensor_of(DType::f32, {5, 2}, {1, 5, 2, 4, 3, 3, 4, 2, 5, 1})}},
                        0}};
  Session session(std::move(model), on_cpu());
  (void)session.train();
  const FitIntervals fit = session.intervals();
  ASSERT_EQ(fit.parameters.size(), 2U);
  EXPECT_EQ(fit.parameters[1].parameter, "W[0,1]");
  EXPECT_EQ(fit.residuals, 10U);
  EXPECT_NEAR(fit.parameters[1].value, 35.0 / 55, 1e-5);
  EXPECT_NEAR(fit.parameters[1].std_error, std::sqrt((55 - 35.0 * 35 / 55) / 8 / 55), 1e-5);
}

// The square root has a value at 0, and no slope: no step can be right.
TEST(LevenbergMarquardt, SaysWhenTheGradientIsNotANumber) {
  Session session(misra("mse(b1 + sqrt(abs(b2 - 0.5)) * x, y)"), on_cpu());
  EXPECT_EQ(session.train().stopped, "the gradient is not a number: start at other values");
}

TEST(Intervals, SayWhyThereAreNone) {
  const auto rejects = [](Model model, const std::string& part) {
    Session session(std::move(model), on_cpu());
    try {
      (void)session.intervals();
      ADD_FAILURE() << "accepted; expected: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  rejects(misra("mse(curve, y)", 2), "the training rows have 2 residuals for 2 parameters");
  rejects(misra("mean(square(b1 + 2 * b2 - y))"), "J^T w J is singular: the training rows do not determine 'b2'");
  rejects(misra("mean(square(b1 + 0 * b2 - y))"), "do not determine 'b2'");
  Model decayed = misra("mse(curve, y)");
  decayed.train.optimizer.attributes = {{"l2", 0.1}};
  rejects(std::move(decayed), "l2 biases the parameters towards 0");
  rejects(example("physics/heat", {{"graph.loss", "loss = abs(equation + boundary)"}, {"train.optimizer", "adam"}}),
          "needs a sum of squares");
}

TEST(LevenbergMarquardt, NamesWhatItDoesNotSupport) {
  const auto rejects = [](Overrides overrides, const std::string& part) {
    try {
      Session session(example("fitting/sinc", std::move(overrides)), on_cpu());
      ADD_FAILURE() << "accepted; expected: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  rejects({{"graph.loss", "loss = huber(p, y)"}}, "sum of squares as the loss: 'train/mul");
  rejects({{"graph.loss", "loss = mean(square(p - y)) + 0.01 * mean(square(W))"}}, "has an attribute l2");
  rejects({{"graph.loss", "loss = mean(softmax_cross_entropy(p, 0 * y))"}}, "needs a sum of squares");
  rejects({{"graph.loss", "loss = mse(p, y) * mean(square(p))"}}, "'train/loss' (mul) depends");
  rejects({{"train.optimizer.levenberg_marquardt.damping", R"({"runtime": 0.1})"}}, "no runtime hyperparameters");
  rejects({{"train.clip_norm", "1"}}, "clip_norm is not supported: the damping limits the step");
  rejects({{"train.lr_plateau", "{}"}}, "lr_plateau is not supported: levenberg_marquardt has no learning rate");
  rejects({{"train.optimizer.levenberg_marquardt.weight_decay", "0.1"}}, "levenberg_marquardt has no weight_decay");
  rejects({{"graph.h", "h = dropout(tanh(x @ W + b), rate=0.1)"}}, "the loss depends on dropout");
  rejects({{"graph.h", "h = batch_norm(tanh(x @ W + b))"}}, "a state of the model changes");
  rejects({{"graph.h", "h = tanh(x @ transpose(transpose(W)) + b)"}}, "(transpose): of parameters, only");
  rejects({{"graph.h", "h = tanh(x @ W + b) - mean(tanh(x @ W + b), axes=[0], keepdims=true)"}}, "it combines rows");
  rejects({{"parameters.W.shape", "[1, 1000]"}, {"parameters.b.shape", "[1000]"}}, "at most 2048; the model has 3001");
}

}  // namespace
}  // namespace graphrun::least_squares
