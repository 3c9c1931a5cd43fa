// Several objectives in a step, gradients as values, states and assignments, shared layers: trained, and compared with
// what was worked out by hand or by differences.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "graphrun/model.h"
#include "graphrun/session.h"
#include "graphrun/verify.h"
#include "graphrun/weights.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

HostTensor column(const std::vector<float>& values) {
  return HostTensor({static_cast<std::int64_t>(values.size()), 1}, values);
}

float scalar(Session& session, const std::string& name) {
  const HostTensor value = session.read(name);
  return value.elements<float>()[0];
}

Session open_on(Model model, const std::string& executor, bool passes = true) {
  SessionOptions options;
  options.executor = executor;
  options.passes = passes;
  return Session(std::move(model), options);
}

class OnExecutor : public testing::TestWithParam<std::string> {
 protected:
  Session open(Model model) const { return open_on(std::move(model), GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Objectives, OnExecutor, testing::Values("ref", "cpu"),
                         [](const auto& run) { return run.param; });

// Two numbers: a goes to b + 1, then b to 2 a' of the a that has just moved.
Model two_numbers(std::int64_t epochs, const std::string& optimizer = "sgd") {
  GraphBuilder g(2);
  const Value x = g.input("x", {kBatch, 1});
  const Value a = g.parameter("a", {}, Init::constant(1)), b = g.parameter("b", {}, Init::constant(3));
  const Value none = g.op("mean", {x}) * 0.0;
  const Value first = a - b - 1, second = b - 2 * a;
  g.name(first * first + none, "first");
  g.name(second * second + none, "second");
  const Value out = x * a;
  Model model(std::move(g));
  const OptimizerSpec steps{optimizer, {{"lr", 0.1}}, {}};
  model.train.objectives = {{"one", model.graph.find("first"), {a}, steps},
                            {"two", model.graph.find("second"), {b}, steps}};
  model.train.epochs = epochs;
  model.outputs = {{out, "out", ""}};
  model.data.splits = {{"train", {{"x", column({1, 2})}}}};
  return model;
}

TEST_P(OnExecutor, EachObjectiveSeesWhatThoseBeforeItHaveMoved) {
  Session session = open(two_numbers(3));
  double a = 1, b = 3, one = 0, two = 0;
  for (int step = 0; step < 3; ++step) {
    one = (a - b - 1) * (a - b - 1);
    a -= 0.1 * 2 * (a - b - 1);
    two = (b - 2 * a) * (b - 2 * a);
    b -= 0.1 * 2 * (b - 2 * a);  // no gradient comes through the update of a
  }
  std::vector<double> told;
  TrainOptions options;
  options.on_report = [&](const Report& report) { told.assign(report.objectives.begin(), report.objectives.end()); };
  const TrainResult result = session.train(options);
  EXPECT_NEAR(scalar(session, "a"), a, 1e-5);
  EXPECT_NEAR(scalar(session, "b"), b, 1e-5);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_NEAR(told[0], one, 1e-5);
  EXPECT_NEAR(told[1], two, 1e-5);
  EXPECT_NEAR(result.losses.back(), one + two, 1e-5) << "the loss is their sum";
  const Metrics metrics = session.evaluate("train");
  ASSERT_EQ(metrics.values.size(), 2u);
  EXPECT_EQ(metrics.values[0].first, "one");
  EXPECT_NEAR(metrics.values[0].second, (a - b - 1) * (a - b - 1), 1e-5);
  EXPECT_NEAR(metrics.values[1].second, (b - 2 * a) * (b - 2 * a), 1e-5);
  EXPECT_NEAR(metrics.loss, metrics.values[0].second + metrics.values[1].second, 1e-5);
}

TEST_P(OnExecutor, LossesOfObjectivesAreMeansOverTheEpochAsTheLossIs) {
  GraphBuilder g(1);
  const Value x = g.input("x", {kBatch, 1});
  const Value a = g.parameter("a", {}, Init::constant(1)), b = g.parameter("b", {}, Init::constant(3));
  const Value first = g.op("mean", {x * a}), second = g.op("mean", {x * b * b});
  const Value out = x * a;
  Model model(std::move(g));
  const OptimizerSpec steps{"sgd", {{"lr", 0.1}}, {}};
  model.train.objectives = {{"one", first, {a}, steps}, {"two", second, {b}, steps}};
  model.train.epochs = 2;
  model.train.log_every = 1;
  model.outputs = {{out, "out", ""}};
  model.data.splits = {{"train", {{"x", column({1, 2, 4})}}}};  // three steps an epoch
  Session session = open(std::move(model));
  std::vector<double> told, losses;
  TrainOptions options;
  options.on_report = [&](const Report& report) {
    told.insert(told.end(), report.objectives.begin(), report.objectives.end());
    losses.push_back(report.loss);
  };
  session.train(options);
  double now_a = 1, now_b = 3;
  std::vector<double> wanted;
  for (int epoch = 0; epoch < 2; ++epoch) {
    double one = 0, two = 0;
    for (const double row : {1.0, 2.0, 4.0}) {
      one += row * now_a / 3;
      two += row * now_b * now_b / 3;
      now_a -= 0.1 * row;
      now_b -= 0.1 * 2 * row * now_b;
    }
    wanted.insert(wanted.end(), {one, two});
  }
  ASSERT_EQ(told.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(told[i], wanted[i], 1e-5) << i;
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(losses[i], wanted[2 * i] + wanted[2 * i + 1], 1e-5);
}

// The second objective moves in the third and the sixth of seven steps, as if they were its first and second.
TEST_P(OnExecutor, AnObjectiveCanTakeATurnInEverySoManySteps) {
  for (const std::string optimizer : {"sgd", "momentum", "adam"}) {
    Model model = two_numbers(7, optimizer);
    model.train.objectives[1].every = 3;
    Session session = open(std::move(model));
    double a = 1, b = 3, v_a = 0, v_b = 0, m_a = 0, m_b = 0;
    const auto move = [&](double& p, double& m, double& v, double g, int t) {
      if (optimizer == "sgd") p -= 0.1 * g;
      if (optimizer == "momentum") p -= 0.1 * (m = 0.9 * m + g);
      if (optimizer != "adam") return;
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      p -= 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    };
    for (int step = 1; step <= 7; ++step) {
      move(a, m_a, v_a, 2 * (a - b - 1), step);
      if (step % 3 == 0) move(b, m_b, v_b, 2 * (b - 2 * a), step / 3);
    }
    session.train();
    EXPECT_NEAR(scalar(session, "a"), a, 2e-5) << optimizer;
    EXPECT_NEAR(scalar(session, "b"), b, 2e-5) << optimizer;
  }
  Model verified = two_numbers(1, "adam");
  verified.train.objectives[1].every = 2;
  EXPECT_TRUE(verify(verified).passed());
}

TEST(Objectives, WaitingIsSavedWithTheStateAndErrorsAreReported) {
  Model model = two_numbers(1);
  model.train.objectives[1].every = 3;
  Session session = open_on(std::move(model), "cpu");
  session.advance(2);
  std::vector<std::byte> state(session.state_bytes());
  session.save_state(state);
  session.advance(1);
  const float moved = scalar(session, "b");
  EXPECT_NE(moved, 3);
  session.load_state(state);
  EXPECT_EQ(scalar(session, "b"), 3);
  session.advance(1);
  EXPECT_EQ(scalar(session, "b"), moved);
  Model never = two_numbers(1);
  never.train.objectives[0].every = 0;
  try {
    open_on(std::move(never), "ref");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().message, "the objective 'one': every 0 steps: from 1 to 16777216");
  }
}

TEST(Objectives, ExecutorsAgreeWithAndWithoutPasses) {
  for (const char* optimizer : {"sgd", "adam", "momentum"}) {
    Session plain = open_on(two_numbers(5, optimizer), "cpu", false);
    Session fused = open_on(two_numbers(5, optimizer), "cpu");
    plain.train();
    fused.train();
    EXPECT_NEAR(scalar(plain, "b"), scalar(fused, "b"), 1e-6) << optimizer;
  }
  EXPECT_TRUE(verify(two_numbers(5)).passed());
}

// Mistakes of a model that was built.
TEST(Objectives, ErrorsOfAModelThatWasBuilt) {
  const auto code = [](const std::function<void(Model&)>& change) -> std::string {
    Model model = two_numbers(1);
    change(model);
    try {
      const Session session = open_on(std::move(model), "ref");
    } catch (const Error& error) {
      return error.diagnostics().front().message;
    }
    return "none";
  };
  EXPECT_EQ(code([](Model&) {}), "none");
  EXPECT_EQ(code([](Model& m) { m.train.objectives[0].parameters.clear(); }),
            "the objective 'one': it has no parameters: there is nothing to train");
  EXPECT_EQ(code([](Model& m) { m.train.objectives[1].parameters = m.train.objectives[0].parameters; }),
            "the objective 'two': a is updated by 'one' already");
  EXPECT_EQ(code([](Model& m) { m.train.objectives[1].name = "one"; }), "the objective 'one': the name is taken");
  EXPECT_EQ(code([](Model& m) { m.train.minimize = m.train.objectives[0].minimize; }),
            "train: minimize and objectives are both given");
  EXPECT_EQ(code([](Model& m) { m.graph.trainable(m.train.objectives[0].parameters[0], false); }),
            "the objective 'one': a is not a trained parameter");
  EXPECT_EQ(code([](Model& m) { m.train.objectives[0].minimize = {}; }),
            "the objective 'one': the value is empty: it was never given one");
}

// ---- gradients as values

// mean((|d critic / d x| - 1)^2) of a critic of two layers with every weight in one list.
const char* const kPenalty = R"json({
  "format": 1,
  "data": {"train": {"inline": {"x": [[0.3, -1.2], [0.7, 0.1], [-0.4, 0.9]]}}},
  "inputs": {"x": ["batch", 2]},
  "parameters": {"V": {"shape": [2, 3], "init": [[0.5, -0.3, 0.8], [-0.6, 0.2, 0.4]]},
                 "c": {"shape": [3], "init": [0.1, -0.2, 0.3]},
                 "w": {"shape": [3, 1], "init": [[0.7], [-0.9], [0.5]]}},
  "graph": [
    "critic = ACTIVATION(x @ V + c) @ w",
    "slope = gradient(sum(critic), x)",
    "penalty = mean(square(sqrt(sum(square(slope), axis=1) + 1e-6) - 1))",
    "g = gradient(penalty, V)"
  ],
  "outputs": ["critic"],
  "train": {"minimize": "penalty", "optimizer": {"sgd": {"lr": 1}}}
})json";

std::string penalty_model(const std::string& activation) {
  std::string text = kPenalty;
  const std::string word = "ACTIVATION";
  return test::write_model(text.replace(text.find(word), word.size(), activation));
}

// The same in double, by the chain rule for the slope only; its own derivative by differences.
double penalty(const std::string& activation, const std::vector<double>& v) {
  const double x[3][2] = {{0.3, -1.2}, {0.7, 0.1}, {-0.4, 0.9}};
  const double c[] = {0.1, -0.2, 0.3}, w[] = {0.7, -0.9, 0.5};
  const auto slope_of = [&](double z) {
    if (activation == "tanh") return 1 - std::tanh(z) * std::tanh(z);
    if (activation == "softplus") return 1 / (1 + std::exp(-z));
    const double s = 1 / (1 + std::exp(-z));  // silu
    return s * (1 + z * (1 - s));
  };
  double total = 0;
  for (const auto& row : x) {
    double slope[2] = {0, 0};
    for (std::size_t j = 0; j < 3; ++j) {
      const double d = slope_of(row[0] * v[j] + row[1] * v[3 + j] + c[j]) * w[j];
      slope[0] += d * v[j];
      slope[1] += d * v[3 + j];
    }
    const double off = std::sqrt(slope[0] * slope[0] + slope[1] * slope[1] + 1e-6) - 1;
    total += off * off / 3;
  }
  return total;
}

TEST_P(OnExecutor, AGradientPenaltyHasTheGradientOfDifferences) {
  for (const std::string activation : {"tanh", "softplus", "silu"}) {
    std::vector<double> v = {0.5, -0.3, 0.8, -0.6, 0.2, 0.4};
    Session session = open(load_model(penalty_model(activation)));
    EXPECT_NEAR(session.evaluate("train").loss, penalty(activation, v), 1e-6) << activation;
    session.train();  // one step of rate 1: what V lost is its gradient
    const HostTensor moved = session.read("V");
    for (std::size_t i = 0; i < v.size(); ++i) {
      const double h = 1e-5, at = v[i];
      v[i] = at + h;
      const double above = penalty(activation, v);
      v[i] = at - h;
      const double below = penalty(activation, v);
      v[i] = at;
      EXPECT_NEAR(at - static_cast<double>(moved.elements<float>()[i]), (above - below) / (2 * h), 2e-6)
          << activation << " V[" << i << "]";
    }
  }
}

// The gradient of a sum of what is kept is what it was scaled by; it must be that of the numbers that were dropped.
TEST_P(OnExecutor, AGradientGoesBackThroughTheMaskOfItsDropout) {
  GraphBuilder g(1);
  const Value x = g.input("x", {kBatch, 64}), w = g.parameter("w", {}, Init::constant(1));
  const Value other = g.expression("other = dropout(x, rate=0.5)");
  const Value kept = g.expression("kept = dropout(x * w, rate=0.5)");
  const Value slope = g.gradient(g.op("sum", {kept}), x), again = g.gradient(g.op("sum", {slope * slope}), w);
  g.assign(g.state("kept.run", {64}), g.op("sum", {kept}, {{"axis", std::int64_t{0}}}));
  g.assign(g.state("slope.run", {64}), g.op("sum", {slope}, {{"axis", std::int64_t{0}}}));
  g.assign(g.state("again.run", {}), again);
  g.name(g.op("sum", {kept}) + 0.0 * g.op("sum", {other}), "loss");
  Model model(std::move(g));
  model.train.minimize = model.graph.find("loss");
  model.train.optimizer = {"sgd", {{"lr", 0.001}}, {}};
  model.outputs = {{model.graph.find("kept"), "kept", ""}};
  model.data.splits = {{"train", {{"x", HostTensor({4, 64}, std::vector<float>(256, 1.0F))}}}};
  Session session = open(std::move(model));
  for (int step = 0; step < 3; ++step) {
    const double weight = static_cast<double>(scalar(session, "w"));
    session.advance(1);
    const HostTensor kept_now = session.read("kept.run"), slope_now = session.read("slope.run");
    double squares = 0;
    for (std::size_t i = 0; i < 64; ++i) {  // x is 1
      const auto scale = static_cast<double>(slope_now.elements<float>()[i]);
      ASSERT_EQ(static_cast<double>(kept_now.elements<float>()[i]), scale) << "step " << step << ", " << i;
      squares += scale * scale;
    }
    EXPECT_GT(squares, 0);
    EXPECT_NEAR(static_cast<double>(scalar(session, "again.run")), 2 * squares / weight, 1e-4 * squares / weight);
  }
}

TEST_P(OnExecutor, StopGradientEndsAGradient) {
  GraphBuilder g(2);
  const Value x = g.input("x", {kBatch, 1});
  const Value w = g.parameter("w", {}, Init::constant(2));
  const Value stopped = g.op("stop_gradient", {w});
  const Value loss = g.op("mean", {x}) * w * stopped;  // 3 w w, but only the first w moves: 3 * 2
  const Value out = x * w;
  Model model(std::move(g));
  model.train.minimize = loss;
  model.train.optimizer.attributes = {{"lr", 1.0}};
  model.outputs = {{out, "out", ""}};
  model.data.splits = {{"train", {{"x", column({2, 4})}}}};
  Session session = open(std::move(model));
  session.train();
  EXPECT_FLOAT_EQ(scalar(session, "w"), 2 - 6);
}

// ---- states

const char* const kNorm = R"json({
  "format": 1,
  "data": {"train": {"inline": {"x": [[1], [3], [5], [11]], "y": [1, 2, 3, 4]}}},
  "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
  "parameters": {"gain": {"shape": [1], "init": {"constant": 1}},
                 "fixed": {"shape": [1], "init": {"constant": 0.5}, "trainable": false}},
  "states": {"mean.run": {"shape": [1]}, "variance.run": {"shape": [1], "init": {"constant": 1}},
             "gain.average": {"shape": [1], "init": {"constant": 1}}},
  "graph": [
    "m = mean(x, axis=0)",
    "v = variance(x, axis=0)",
    "assign(mean.run, 0.5 * mean.run + 0.5 * m)",
    "assign(variance.run, 0.5 * variance.run + 0.5 * v)",
    "normed = (x - in_training(m, mean.run)) / sqrt(in_training(v, variance.run) + 1e-5)",
    "y_hat = normed * gain + fixed",
    "loss = mean(square(y_hat - y))",
    "assign(gain.average, 0.75 * gain.average + 0.25 * gain, after=true)"
  ],
  "outputs": {"y_hat": "y"},
  "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "batch": 2, "epochs": 1}
})json";

TEST_P(OnExecutor, StatesAreAssignedInTrainingOnlyAndKeptWithTheWeights) {
  Session session = open(load_model(test::write_model(kNorm)));
  EXPECT_FALSE(std::isnan(session.evaluate("train").loss));
  EXPECT_EQ(scalar(session, "mean.run"), 0) << "an evaluation assigns nothing";
  session.train();  // batches (1, 3) and (5, 11)
  double mean = 0, variance = 1, gain = 1, average = 1;
  const double x[2][2] = {{1, 3}, {5, 11}}, y[2][2] = {{1, 2}, {3, 4}};
  for (int step = 0; step < 2; ++step) {
    const double m = (x[step][0] + x[step][1]) / 2, v = std::pow((x[step][1] - x[step][0]) / 2, 2);
    double slope = 0;
    for (int row = 0; row < 2; ++row) {
      const double normed = (x[step][row] - m) / std::sqrt(v + 1e-5);
      slope += (normed * gain + 0.5 - y[step][row]) * normed;
    }
    gain -= 0.1 * slope;
    mean = 0.5 * mean + 0.5 * m;
    variance = 0.5 * variance + 0.5 * v;
    average = 0.75 * average + 0.25 * gain;
  }
  EXPECT_NEAR(scalar(session, "mean.run"), mean, 1e-5);
  EXPECT_NEAR(scalar(session, "variance.run"), variance, 1e-5);
  EXPECT_NEAR(scalar(session, "gain"), gain, 1e-5);
  EXPECT_NEAR(scalar(session, "gain.average"), average, 1e-5) << "of the gain as the step left it";
  EXPECT_EQ(scalar(session, "fixed"), 0.5f) << "it is not trained";
  // Predictions use the running statistics, so that one row has an answer of its own.
  const HostTensor one = session.predict({{"x", column({7})}});
  EXPECT_NEAR(one.elements<float>()[0], (7 - mean) / std::sqrt(variance + 1e-5) * gain + 0.5, 1e-4);

  const test::TemporaryFolder folder;
  const std::string file = folder.file("norm.npz");
  save_weights(session, file);
  LoadOptions load;
  load.weights = file;
  Session again = open(load_model(test::write_model(kNorm), load));
  EXPECT_EQ(scalar(again, "mean.run"), scalar(session, "mean.run"));
  EXPECT_EQ(scalar(again, "gain.average"), scalar(session, "gain.average"));
}

TEST(Objectives, AModelWithStatesAgreesOnAllExecutors) {
  EXPECT_TRUE(verify(load_model(test::write_model(kNorm))).passed());
  EXPECT_TRUE(verify(load_model(penalty_model("tanh"))).passed());
}

// ---- shared layers, and layers in expressions

TEST_P(OnExecutor, ALayerUsedTwiceHasOneSetOfParameters) {
  GraphBuilder g(2);
  const Value x = g.input("x", {kBatch, 2});
  const Value y = g.input("y", {kBatch, 2});
  const Value first = g.layer("dense", "first", {x}, {{"units", std::int64_t{3}}, {"activation", "tanh"}});
  const Value twice = g.layer("dense", "twice", {y}, {{"share", "first"}});
  const Value text = g.expression("text = dense(y, share=first)");
  const Value apart = g.expression("apart = relu(dense(x, units=2, bias=false, name=inner)) + 0");
  EXPECT_EQ(to_string(g.type(twice)), "f32(batch, 3)");
  EXPECT_EQ(to_string(g.type(apart)), "f32(batch, 2)");
  Model model(std::move(g));
  model.outputs = {{first, "first", ""}, {twice, "twice", ""}, {text, "text", ""}, {apart, "apart", ""}};
  const HostTensor rows({2, 2}, std::vector<float>{1, 2, -1, 0.5f});
  Session session = open(std::move(model));
  const auto found = session.predict_all({{"x", rows}, {"y", rows}});
  ASSERT_EQ(found.size(), 4u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(found[0].second.elements<float>()[i], found[1].second.elements<float>()[i]);
    EXPECT_EQ(found[0].second.elements<float>()[i], found[2].second.elements<float>()[i]);
  }
}

}  // namespace
}  // namespace graphrun
