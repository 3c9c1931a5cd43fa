// Layers that normalize, and embeddings: values, gradients and running statistics beside the formulas in double, on
// executors, fused and plain, and however the layer is written.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "graphrun/model.h"
#include "graphrun/session.h"
#include "graphrun/show.h"
#include "graphrun/verify.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

constexpr std::size_t kRows = 5, kIn = 3, kColumns = 4;
constexpr double kX[kRows][kIn] = {
    {0.3, -1.2, 2}, {0.7, 0.1, -0.5}, {-0.4, 0.9, 1.1}, {1.5, 0.2, 0.4}, {-2, 1.3, -0.6}};
constexpr double kY[kRows][kColumns] = {
    {1, 0, -1, 0.5}, {0, 1, 2, -0.5}, {0.3, 0.1, 0, 1}, {-1, 2, 0.7, 0}, {0.2, -0.4, 1, 1}};
constexpr double kEps = 1e-5;
using Matrix = std::vector<std::vector<double>>;

// V, then scale, then b.
std::vector<double> start() {
  return {0.5, -0.3, 0.8, 0.2, -0.6, 0.2, 0.4, -0.9, 0.1, 0.7, -0.2, 0.6, 1.1, 0.9, 1.3, 0.8, 0.1, -0.2, 0.3, 0};
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}
double variance_of(std::vector<double> values) {
  const double mean = mean_of(values);
  for (double& value : values) value = (value - mean) * (value - mean);
  return mean_of(values);
}
std::vector<double> column_of(const Matrix& m, std::size_t j) {
  std::vector<double> column;
  for (const auto& row : m) column.push_back(row[j]);
  return column;
}

Matrix product(const std::vector<double>& p) {
  Matrix h(kRows, std::vector<double>(kColumns, 0));
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t j = 0; j < kColumns; ++j)
      for (std::size_t k = 0; k < kIn; ++k) h[i][j] += kX[i][k] * p[k * kColumns + j];
  return h;
}

// The layer of these rows, all of them one batch in training.
Matrix normalized(const std::string& layer, const Matrix& h, const std::vector<double>& p) {
  Matrix y = h;
  for (std::size_t i = 0; i < h.size(); ++i) {
    for (std::size_t j = 0; j < kColumns; ++j) {
      double mean = 0, square = 0;
      if (layer == "rms_norm") {
        for (const double value : h[i]) square += value * value / kColumns;
      } else {
        const std::vector<double> others = layer == "layer_norm" ? h[i] : column_of(h, j);
        mean = mean_of(others);
        square = variance_of(others);
      }
      const double b = layer == "rms_norm" ? 0 : p[16 + j];
      y[i][j] = (h[i][j] - mean) / std::sqrt(square + kEps) * p[12 + j] + b;
    }
  }
  return y;
}

double loss(const std::string& layer, const std::vector<double>& p) {
  const Matrix y = normalized(layer, product(p), p);
  double sum = 0;
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t j = 0; j < kColumns; ++j) sum += std::pow(y[i][j] - kY[i][j], 2);
  return sum / (kRows * kColumns);
}

template <std::size_t width>
std::string text_of(const double (&rows)[kRows][width]) {
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (const double value : row) line += (line.empty() ? "" : ", ") + std::to_string(value);
    text += (text.empty() ? "[" : ", [") + line + "]";
  }
  return "[" + text + "]";
}

// y = layer(x @ V), with what is said of the layer in `entry`.
std::string model_of(const std::string& entry, const std::string& train) {
  return test::write_model(R"json({"format": 1, "data": {"train": {"inline": {"x": )json" + text_of(kX) +
                           ", \"y\": " + text_of(kY) + R"json(}}},
  "inputs": {"x": ["batch", 3], "y": ["batch", 4]},
  "parameters": {"V": {"shape": [3, 4], "init": [[0.5, -0.3, 0.8, 0.2], [-0.6, 0.2, 0.4, -0.9], [0.1, 0.7, -0.2, 0.6]]}},
  "graph": ["h = x @ V", )json" +
                           entry + R"json(, "loss = mean(square(n - y))"],
  "outputs": {"n": "y"},
  "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 1}}, )json" +
                           train + "}}");
}
std::string entry_of(const std::string& layer) {
  return R"({"name": "n", "op": ")" + layer + R"(", "inputs": ["h"], "scale": [1.1, 0.9, 1.3, 0.8])" +
         (layer == "rms_norm" ? "}" : R"(, "bias": [0.1, -0.2, 0.3, 0]})");
}

Session opened(Model model, const std::string& executor) {
  SessionOptions options;
  options.executor = executor;
  return Session(std::move(model), options);
}

class LayersOn : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Layers, LayersOn, testing::Values("ref", "cpu"), [](const auto& run) { return run.param; });

TEST_P(LayersOn, NormsHaveTheValuesAndGradientsOfTheirFormulas) {
  for (const std::string layer : {"layer_norm", "rms_norm", "batch_norm"}) {
    std::vector<double> p = start();
    Session session = opened(load_model(model_of(entry_of(layer), R"("epochs": 1)")), GetParam());
    EXPECT_NEAR(session.train().losses.at(0), loss(layer, p), 1e-6) << layer;
    std::vector<double> gradient;  // of a step of rate 1: what a parameter lost
    for (const char* name : {"V", "n.scale", "n.b"}) {
      if (layer == "rms_norm" && std::string(name) == "n.b") continue;
      const HostTensor moved = session.read(name);
      for (const float now : moved.elements<float>()) gradient.push_back(p[gradient.size()] - static_cast<double>(now));
    }
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double at = p[i], h = 1e-5;
      p[i] = at + h;
      const double above = loss(layer, p);
      p[i] = at - h;
      const double below = loss(layer, p);
      p[i] = at;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * h), 3e-6) << layer << " parameter " << i;
    }
  }
}

TEST_P(LayersOn, ABatchNormFollowsItsBatchesAndPredictsByWhatItHasSeen) {
  // Batches of 3 rows and of 2; V does not move, for its layer is not trained and the loss ends at stop_gradient.
  const std::string entry = R"({"name": "n", "op": "batch_norm", "inputs": ["k"], "momentum": 0.25})";
  Session session =
      opened(load_model(model_of("\"k = stop_gradient(h)\", " + entry, R"("batch": 3, "epochs": 2)")), GetParam());
  const Matrix h = product(start());
  EXPECT_FLOAT_EQ(session.read("n.variance").elements<float>()[0], 1);
  (void)session.evaluate("train");
  EXPECT_EQ(session.read("n.mean").elements<float>()[0], 0) << "an evaluation assigns nothing";
  session.train();
  const HostTensor means = session.read("n.mean"), variances = session.read("n.variance");
  const HostTensor scale = session.read("n.scale"), bias = session.read("n.b");
  const HostTensor one = session.predict({{"x", HostTensor({1, 3}, std::vector<float>{0.3f, -1.2f, 2})}});
  for (std::size_t j = 0; j < kColumns; ++j) {
    double mean = 0, variance = 1;
    for (int step = 0; step < 4; ++step) {
      const std::vector<double> all = column_of(h, j);
      const auto middle = all.begin() + 3;
      const std::vector<double> batch =
          step % 2 == 0 ? std::vector<double>(all.begin(), middle) : std::vector<double>(middle, all.end());
      const auto n = static_cast<double>(batch.size());
      mean = 0.75 * mean + 0.25 * mean_of(batch);
      variance = 0.75 * variance + 0.25 * variance_of(batch) * n / (n - 1);
    }
    EXPECT_NEAR(means.elements<float>()[j], mean, 1e-6);
    EXPECT_NEAR(variances.elements<float>()[j], variance, 1e-5);
    EXPECT_NEAR(one.elements<float>()[j],
                (h[0][j] - mean) / std::sqrt(variance + kEps) * static_cast<double>(scale.elements<float>()[j]) +
                    static_cast<double>(bias.elements<float>()[j]),
                1e-5);
  }
}

TEST_P(LayersOn, ABatchOfOneRowLeavesAVarianceThatIsFinite) {
  Session session = opened(load_model(model_of(entry_of("batch_norm"), R"("batch": 1, "epochs": 1)")), GetParam());
  session.train();
  const HostTensor variance = session.read("n.variance");
  for (const float value : variance.elements<float>()) EXPECT_NEAR(value, std::pow(0.9, 5), 1e-6);
}

TEST_P(LayersOn, ABatchNormThatIsSharedFollowsAllItsUses) {
  GraphBuilder g(2);
  const Value x = g.input("x", {kBatch, 2});
  const Value first = g.layer("batch_norm", "first", {x});
  const Value second = g.layer("batch_norm", "second", {x * 3.0 + 1.0}, {{"share", "first"}});
  const Value loss = g.op("mean", {first * second});
  Model model(std::move(g));
  model.train.minimize = loss;
  model.train.optimizer.attributes = {{"lr", 0.0}};
  model.outputs = {{first, "first", ""}};
  model.data.splits = {{"train", {{"x", HostTensor({2, 2}, std::vector<float>{1, 2, 5, 4})}}}};
  Session session = opened(std::move(model), GetParam());
  session.train();
  // Columns (1, 5) and (2, 4); three times that and one more.
  EXPECT_NEAR(session.read("first.mean").elements<float>()[0], 0.9 * 0.1 * 3 + 0.1 * 10, 1e-6);
  EXPECT_NEAR(session.read("first.variance").elements<float>()[0], 0.9 * (0.9 + 0.1 * 8) + 0.1 * 72, 1e-5);
}

TEST_P(LayersOn, AnEmbeddingGivesAndMovesTheRowsThatAreNamed) {
  const std::string file = test::write_model(R"json({"format": 1,
    "data": {"train": {"inline": {"word": [[2, 0], [2, 1]]}}},
    "inputs": {"word": {"dtype": "i32", "shape": ["batch", 2]}},
    "graph": [{"name": "v", "op": "embedding", "inputs": ["word"], "entries": 4, "units": 3, "init": {"constant": 2}},
              "loss = sum(v) / 2"],
    "outputs": ["v"], "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 1}}}})json");
  Session session = opened(load_model(file), GetParam());
  session.train();
  const HostTensor table = session.read("v.E");
  const float wanted[] = {1.5f, 1.5f, 1, 2};  // by how often each row is named
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t j = 0; j < 3; ++j) EXPECT_FLOAT_EQ(table.elements<float>()[row * 3 + j], wanted[row]) << row;
}

const char* const kAll = R"json({
  "format": 1,
  "data": {"train": {"grid": {"u": [-1, 1, 40]}, "x": ["u"], "y": "sin(3 * u)"}},
  "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
  "graph": ["a = dense(x, units=12, activation=tanh)", "b = batch_norm(a)", "c = relu(dense(b, units=9, name=c1))",
            {"name": "d", "op": "layer_norm", "inputs": ["c"], "bias": false}, "k = rms_norm(d, scale=false)",
            "f = layer_norm(rms_norm(k, name=inner))", "g = dropout(f, rate=0.2)",
            {"name": "h", "op": "batch_norm", "inputs": ["g"], "scale": {"normal": 1}, "momentum": 0.3, "eps": 0.001},
            "y_hat = dense(h, units=1)", "loss = mse(y_hat, y)"],
  "outputs": {"y_hat": "y"},
  "train": {"minimize": "loss", "metrics": ["r2"], "optimizer": {"adam": {"lr": 0.02}}, "batch": 16, "last_batch": "drop", "shuffle": true,
            "epochs": 200, "seed": 2}
})json";

TEST(Layers, ANetworkOfAllNormsAgreesOnAllExecutorsAndLearns) {
  const std::string file = test::write_model(kAll);
  const VerifyReport report = verify(load_model(file));
  EXPECT_TRUE(report.passed()) << to_string(*report.difference);
  Session fused(load_model(file));
  const std::vector<double> losses = fused.train().losses;
  EXPECT_LT(fused.evaluate("train").loss, 0.1);
  SessionOptions options;
  options.fuse = false;
  Session plain(load_model(file), options);
  const std::vector<double> of_plain = plain.train().losses;
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(of_plain[i], losses[i], 1e-4) << "step " << i;  // then roundings grow
  const std::string canonical = canonical_model(file);
  EXPECT_EQ(canonical_model(test::write_model(canonical)), canonical);
  Session again(load_model(test::write_model(canonical)));
  again.train();
  EXPECT_EQ(again.weights_hash(), fused.weights_hash());
}

TEST(Layers, ErrorsAreReported) {
  const auto told = [](const std::function<void(GraphBuilder&)>& make) -> std::string {
    GraphBuilder g(2);
    g.input("x", {kBatch, 3});
    g.input("flat", {kBatch});
    g.input("n", {kBatch, 3}, DType::i32);
    g.layer("layer_norm", "norm", {g.find("x")});
    try {
      make(g);
    } catch (const Error& error) {
      return error.diagnostics().front().message;
    }
    return "none";
  };
  EXPECT_EQ(told([](auto& g) { g.layer("batch_norm", "k", {g.find("flat")}); }),
            "k: batch_norm needs x of shape (batch, columns) in f32, got flat f32(batch)");
  EXPECT_EQ(told([](auto& g) { g.layer("rms_norm", "k", {g.find("n")}); }),
            "k: rms_norm needs x of shape (batch, columns) in f32, got n i32(batch, 3)");
  EXPECT_EQ(told([](auto& g) {
              g.layer("batch_norm", "k", {g.find("x")}, {{"share", "norm"}});
            }),
            "norm is a layer layer_norm, this is a layer batch_norm: they have not the same parameters");
  EXPECT_EQ(told([](auto& g) {
              g.layer("batch_norm", "k", {g.find("x")}, {{"momentum", 2.0}});
            }).substr(0, 9),
            "momentum ");
  EXPECT_NE(told([](auto& g) {
              g.layer("embedding", "k", {g.find("x")}, {{"entries", std::int64_t{3}}, {"units", std::int64_t{2}}});
            }),
            "none");
}

}  // namespace
}  // namespace graphrun
