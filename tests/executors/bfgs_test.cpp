// The optimizer bfgs and "stop_at" in training runs: accepted points, causes to stop, rejected combinations. The
// equations are in graph/optimizers_test.cpp, resuming is in checkpoints_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graphrun/error.h"
#include "graphrun/session.h"
#include "support/source_folder.h"

namespace graphrun {
namespace {

Model example(const std::string& name, std::vector<std::pair<std::string, std::string>> overrides = {}) {
  LoadOptions options;
  options.overrides = std::move(overrides);
  return load_model(source_folder() + "/examples/physics/" + name + ".json", options);
}

SessionOptions on_cpu() {
  SessionOptions options;
  options.executor = "cpu";
  return options;
}

double value_of(const Metrics& metrics, const std::string& name) {
  for (const auto& [other, value] : metrics.values) {
    if (other == name) return value;
  }
  return std::nan("");
}

TEST(Bfgs, SolvesTheHeatEquationAtOtherPoints) {
  Session session(example("heat"), on_cpu());
  const TrainResult result = session.train();
  EXPECT_LT(value_of(session.evaluate("test"), "rmse"), 3e-3);  // 6.3e-4; the worst of five seeds is 6.7e-4
  EXPECT_TRUE(std::is_sorted(result.losses.rbegin(), result.losses.rend())) << "a recorded loss rises";
  EXPECT_EQ(result.stopped, "no further descent");
}

TEST(Bfgs, FindsACoefficientOfTheEquation) {
  Session session(example("heat_inverse"), on_cpu());
  (void)session.train();
  EXPECT_NEAR(session.read("alpha").elements<float>()[0], 0.4, 0.02);
}

// Evaluation, prediction and weights see the accepted point, whose loss is recorded, also after a rejected trial.
TEST(Bfgs, EvaluatesTheAcceptedPoint) {
  std::size_t rejected = 0;
  for (int steps = 1; steps <= 40; ++steps) {
    Session session(example("heat", {{"train.epochs", std::to_string(steps)}}), on_cpu());
    const TrainResult result = session.train();
    const double loss = result.losses.back();
    rejected += steps > 1 && loss == result.losses[result.losses.size() - 2] ? 1 : 0;
    EXPECT_NEAR(session.evaluate("train").loss, loss, 1e-5 * loss) << steps << " steps";
  }
  EXPECT_GT(rejected, 0U);
}

TEST(Bfgs, RejectsWhatChangesTheLossBetweenSteps) {
  const auto rejects = [](std::vector<std::pair<std::string, std::string>> overrides, const std::string& part) {
    try {
      Session session(example("heat", std::move(overrides)), on_cpu());
      ADD_FAILURE() << "accepted; expected: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  rejects({{"train.batch", "100"}}, "a batch must hold the whole split");
  rejects({{"train.shuffle", "true"}}, "shuffle would change the order of the sums");
  rejects({{"train.clip_norm", "1"}}, "clip_norm is not supported");
  rejects({{"train.clip_value", "1"}}, "clip_value is not supported");
  rejects({{"train.lr_plateau", "{}"}}, "lr_plateau is not supported");
  rejects({{"train.optimizer.bfgs.lr", "0.1"}}, "bfgs has no learning rate");
  rejects({{"graph.h", "h = dropout(tanh(t @ Wt + x @ Wx + b), rate=0.1)"}}, "the loss depends on dropout");
  rejects({{"graph.h", "h = batch_norm(tanh(t @ Wt + x @ Wx + b))"}}, "a state of the model changes");
  rejects(
      {{"parameters.Wt.shape", "[1, 1000]"}, {"parameters.Wx.shape", "[1, 1000]"}, {"parameters.b.shape", "[1000]"}},
      "at most 2048; the model has 4001");
}

// The step that reaches the loss is the last: how steps are grouped into launches changes neither steps nor weights.
TEST(StopAt, EndsAtTheSameStepForEveryOptimizer) {
  for (const char* optimizer : {"bfgs", "adam", "momentum"}) {
    const auto model = [&](const std::string& epochs) {
      return example("heat", {{"train.optimizer", optimizer}, {"train.epochs", epochs}});
    };
    Session whole(model("60"), on_cpu());
    const std::vector<double> losses = whole.train().losses;
    const double limit = *std::min_element(losses.begin(), losses.begin() + 40);
    const auto reached = std::find_if(losses.begin(), losses.end(), [&](double loss) { return loss <= limit; });
    const auto steps = static_cast<std::uint64_t>(reached - losses.begin() + 1);

    Model stops = model("60");
    stops.train.stop_at = StopAt{limit};
    Session session(std::move(stops), on_cpu());
    const TrainResult result = session.train();
    EXPECT_EQ(result.steps, steps) << optimizer;
    EXPECT_EQ(result.losses.size(), steps);
    EXPECT_TRUE(result.stopped_early);
    EXPECT_FALSE(result.cancelled);
    EXPECT_NE(result.stopped.find("loss at most"), std::string::npos);

    Session same(model(std::to_string(steps)), on_cpu());
    (void)same.train();
    EXPECT_EQ(session.weights_hash(), same.weights_hash()) << optimizer;
  }
}

}  // namespace
}  // namespace graphrun
