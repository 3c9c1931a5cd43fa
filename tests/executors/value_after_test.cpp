// Any value after a number of steps, as the command line dumps it.
#include "graphrun/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "executors/verify_models.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using test::verified_model;

bool same_bytes(const HostTensor& a, const HostTensor& b) {
  return std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

TEST(ValueAfter, StatesAreWhatTrainingLeaves) {
  Model model = verified_model();
  model.train.epochs = 2;
  Session session(verified_model());
  ValueOptions options;
  const HostTensor start = value_after(model, "W", options);
  EXPECT_TRUE(same_bytes(start, session.read("W")));
  Session trained(std::move(model));
  trained.train();
  options.steps = 6;
  EXPECT_TRUE(same_bytes(value_after(verified_model(), "W", options), trained.read("W")));
  EXPECT_EQ(value_after(verified_model(), "train/step:counter", options).elements<std::uint64_t>()[0], 6u);
}

TEST(ValueAfter, OtherValuesAreThoseOfTheNextStep) {
  const Model model = verified_model();
  ValueOptions options;
  options.steps = 2;  // the third batch has one row: the last of the split
  const HostTensor x = value_after(model, "x", options);
  const std::span<const float> all = model.data.splits[0].columns[0].second.elements<float>();
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(x.elements<float>()[i], i < 4 ? all[24 + i] : 0.0f) << i;
  const HostTensor a = value_after(model, "a", options), h = value_after(model, "train/h", options);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_NEAR(h.elements<float>()[i], std::tanh(a.elements<float>()[i]), 1e-6);
  const HostTensor evaluated = value_after(model, "evaluate.test/x");
  EXPECT_EQ(evaluated.elements<float>()[0], model.data.splits[1].columns[0].second.elements<float>()[0]);
}

TEST(ValueAfter, AWrongNameIsAnsweredWithTheNearest) {
  const auto code = [](std::string_view name) {
    try {
      value_after(verified_model(), name);
      return std::string("none");
    } catch (const Error& error) {
      return error.diagnostics()[0].code + " " + error.diagnostics()[0].hint;
    }
  };
  EXPECT_EQ(code("train/leakx"), "value.unknown did you mean 'train/leaky'?");
  EXPECT_EQ(code("predict/h").substr(0, 13), "value.predict");
}

// `every` divides the counter of the samples: they change after as many steps, on every executor.
TEST(ValueAfter, RandomSamplesAreKeptForEverySteps) {
  GraphBuilder graph(4);
  graph.input("x", {kBatch, 2});
  graph.expression("noise = random_uniform(x, every=3) + random_normal(x, every=2)");
  graph.expression("kept = random_uniform(x, every=3)");
  graph.expression("p = dense(x * noise + kept, units=1)");
  graph.expression("loss = mean(square(p - 1))");
  Model model(std::move(graph));
  model.train.minimize = model.graph.find("loss");
  model.train.optimizer = {"sgd", {{"lr", 0.1}}, {}};
  model.data.splits = {{"train", {{"x", test::random_tensor(DType::f32, {12, 2}, -1, 1, "x")}}}};
  std::vector<HostTensor> kept;
  for (const char* executor : {"cpu", "ref"}) {
    ValueOptions options;
    options.executor = executor;
    for (options.steps = 0; options.steps < 7; ++options.steps)
      kept.push_back(value_after(model, "train/kept", options));
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_TRUE(same_bytes(kept[i], kept[i % 7])) << i;
    EXPECT_EQ(same_bytes(kept[i % 7], kept[0]), i % 7 < 3) << i;
    EXPECT_EQ(same_bytes(kept[i % 7], kept[3]), i % 7 / 3 == 1) << i;
  }
  VerifyOptions options;
  options.executor = "cpu";
  options.steps = 7;
  const VerifyReport report = verify(model, options);
  EXPECT_TRUE(report.passed()) << to_string(*report.difference);
  GraphBuilder wrong(4);
  wrong.input("x", {kBatch, 2});
  EXPECT_THROW(wrong.expression("n = random_uniform(x, every=0)"), Error);
  EXPECT_THROW(wrong.expression("n = random_uniform(x, every=1.5)"), Error);
}

}  // namespace
}  // namespace graphrun
