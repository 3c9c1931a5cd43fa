// Initializers: spread of random values; as a model file writes them: what is written is read back, and every layer's
// defaults can be written.
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/format/json_values.h"
#include "graph/frontend/library/layers.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

Init read_back(const Init& init) {
  const json::Document document = json::parse("init.json", json::line(json_of(init)));
  json::Reader reader(document);
  const std::optional<Init> read = read_init(reader, reader.root(), {});
  reader.throw_if_failed();
  return read.value();
}

void expect_read_back(const Init& init) {
  const Init again = read_back(init);
  EXPECT_EQ(again.kind, init.kind);
  EXPECT_EQ(again.a, init.a);
  EXPECT_EQ(again.b, init.b);
}

TEST(InitValues, AreReadBack) {
  for (const Init& init : {Init::zeros(), Init::constant(1), Init::constant(-0.25), Init::normal(0.02), Init::normal(0),
                           Init::uniform(-0.5, 2)})
    expect_read_back(init);
  for (const FanInit& fan : kFanInits) expect_read_back(Init::by_fan(fan.kind));
}

TEST(InitValues, AreWordsWhereThereAreWords) {
  EXPECT_EQ(json::line(json_of(Init::zeros())), "\"zeros\"");
  EXPECT_EQ(json::line(json_of(Init::constant(1))), "\"ones\"");
  EXPECT_EQ(json::line(json_of(Init::glorot_uniform())), "\"glorot_uniform\"");
}

// 300 inputs, 100 outputs: mean and std of 30,000 samples, and the largest one, by formulas that are written out here.
TEST(InitValues, HaveTheSpreadOfTheirFans) {
  const std::map<std::string, double> deviations = {
      {"glorot_uniform", std::sqrt(2.0 / 400)}, {"glorot_normal", std::sqrt(2.0 / 400)},
      {"he_uniform", std::sqrt(2.0 / 300)},     {"he_normal", std::sqrt(2.0 / 300)},
      {"lecun_uniform", std::sqrt(1.0 / 300)},  {"lecun_normal", std::sqrt(1.0 / 300)}};
  ASSERT_EQ(std::size(kFanInits), deviations.size());
  for (const auto& [name, deviation] : deviations) {
    SCOPED_TRACE(name);
    const json::Document document = json::parse("init.json", "\"" + name + "\"");
    json::Reader reader(document);
    GraphBuilder graph(1);
    graph.input("x", {kBatch, 300});
    graph.parameter("W", {300, 100}, read_init(reader, reader.root(), {}).value());
    graph.expression("loss = mean(x @ W)");
    Model model(std::move(graph));
    model.train.minimize = model.graph.find("loss");
    model.train.optimizer.name = "sgd";
    model.train.optimizer.attributes = {{"lr", 0.0}};
    model.data.splits = {{"train", {{"x", HostTensor(DType::f32, {1, 300})}}}};
    Session session(std::move(model), {});
    const std::vector<double> values = test::to_doubles(session.read("W"));
    double sum = 0, squares = 0, largest = 0;
    for (const double value : values) {
      sum += value, squares += value * value;
      largest = std::fmax(largest, std::fabs(value));
    }
    EXPECT_NEAR(sum / 30000, 0, 0.03 * deviation);
    EXPECT_NEAR(std::sqrt(squares / 30000), deviation, 0.02 * deviation);
    const double limit = std::sqrt(3) * deviation;
    if (name.ends_with("uniform"))
      EXPECT_NEAR(largest, limit, 0.001 * limit);
    else
      EXPECT_GT(largest, 3 * deviation);
  }
}

TEST(InitValues, OfNguyenAndWidrowSpreadTheUnits) {
  GraphBuilder graph(1);
  const Init init = Init::by_fan(Init::Kind::nguyen_widrow);
  expect_read_back(init);
  graph.input("x", {kBatch, 1});
  graph.parameter("W", {1, 5}, init);
  graph.parameter("b", {5}, init);
  graph.parameter("one", {1}, init);
  EXPECT_THROW(graph.parameter("several", {2, 5}, init), Error);
  EXPECT_THROW(graph.parameter("scalar", {}, init), Error);
  graph.expression("loss = mean(tanh(x @ W + b) + one)");
  Model model(std::move(graph));
  model.train.minimize = model.graph.find("loss");
  model.train.optimizer.name = "sgd";
  model.train.optimizer.attributes = {{"lr", 0.0}};
  model.data.splits = {{"train", {{"x", HostTensor(DType::f32, {1, 1})}}}};
  Session session(std::move(model), {});
  EXPECT_EQ(test::to_doubles(session.read("W")), std::vector<double>(5, 3.5));
  EXPECT_EQ(test::to_doubles(session.read("b")), (std::vector<double>{-3.5, -1.75, 0, 1.75, 3.5}));
  EXPECT_EQ(test::to_doubles(session.read("one")), std::vector<double>{0});
}

// `show` and the reference write what a model file leaves out.
TEST(InitValues, EveryLayersDefaultsCanBeWritten) {
  for (const Layer& layer : layers()) {
    for (const LayerInit& init : layer.inits) {
      SCOPED_TRACE(std::string(layer.name) + "." + std::string(init.name));
      expect_read_back(init.fallback);
    }
  }
}

}  // namespace
}  // namespace graphrun
