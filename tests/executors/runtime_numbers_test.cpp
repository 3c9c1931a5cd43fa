// A norm of gradients and a rate of dropout that are set at run time. The numbers of optimizers are in
// embedding_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "graphrun/error.h"
#include "graphrun/session.h"
#include "graphrun/show.h"
#include "graphrun/verify.h"
#include "support/graph_run.h"
#include "support/source_folder.h"

namespace graphrun {
namespace {

// 64 rows of 8 columns; `hidden` makes h of x, `train` are further keys of its section.
Model sines(const std::string& hidden, const std::string& train = "") {
  LoadOptions options;
  options.text = std::make_shared<std::optional<std::string>>(
      R"J({"format": 1, "data": {"train": {"grid": {"t": [-1, 1, 64]}, "x": "t", "y": "sin(3 * t)"}},
         "constants": {"rate": {"runtime": 0.25}}, "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
         "graph": ["g = dense(x, units=8, activation=tanh)", ")J" +
      hidden + R"J(", "p = dense(h, units=1)", "loss = mean(square(p - y)) + 0 * rate"],
         "outputs": {"p": "y"}, "train": {"minimize": "loss", "optimizer": {"momentum": {"lr": 0.05}}, "batch": 16,
         "epochs": 3, "seed": 3)J" +
      train + "}}");
  return load_model("<text>", options);
}

std::string code_of(const std::string& hidden, const std::string& train = "") {
  try {
    sines(hidden, train);
  } catch (const Error& error) {
    return error.diagnostics().front().code;
  }
  return "accepted";
}

void set(Session& session, std::string_view name, float number) {
  session.write(session.find(name), std::as_bytes(std::span(&number, 1)));
}

class NumbersOf : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const auto& [name, executor] : test::executors().present) {
      if (name == GetParam()) return;
    }
    GTEST_SKIP() << "no device for " << GetParam();
  }
  static Session open(Model model) {
    SessionOptions options;
    options.executor = GetParam();
    return Session(std::move(model), options);
  }
  // Of models that are not the same: on a device they may be planned in another way, and sums go by that.
  static void expect_same(Session& one, Session& other) {
    if (GetParam() != "cuda") {
      EXPECT_EQ(one.weights_hash(), other.weights_hash());
    } else {
      EXPECT_NEAR(one.evaluate("train").loss, other.evaluate("train").loss, 1e-4);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Executors, NumbersOf, testing::Values("ref", "cpu", "cuda"),
                         [](const auto& run) { return run.param; });

TEST_P(NumbersOf, ANormHasTheBitsOfAConstant) {
  Session plain = open(sines("h = g", R"(, "clip_norm": 0.1)"));
  Session free = open(sines("h = g"));
  Session other = open(sines("h = g", R"(, "clip_norm": {"runtime": 0.1})"));
  for (Session* const session : {&plain, &free, &other}) session->advance(20);
  EXPECT_EQ(plain.weights_hash(), other.weights_hash());
  EXPECT_NE(plain.weights_hash(), free.weights_hash()) << "it clips something";
}

TEST_P(NumbersOf, ANormOfZeroIsNone) {
  Session free = open(sines("h = g"));
  Session other = open(sines("h = g", R"(, "clip_norm": {"runtime": 0})"));
  free.advance(20);
  other.advance(20);
  expect_same(free, other);
  const std::string before = other.weights_hash();
  set(other, "train:clip_norm", 1e-3F);
  free.advance(20);
  other.advance(20);
  EXPECT_NE(before, other.weights_hash());
  EXPECT_GT(std::abs(free.evaluate("train").loss - other.evaluate("train").loss), 1e-3);
}

TEST_P(NumbersOf, ARateOfZeroKeepsAll) {
  Session plain = open(sines("h = g"));
  Session other = open(sines("h = dropout(g, rate=rate)"));
  set(other, "rate", 0);
  plain.advance(20);
  other.advance(20);
  expect_same(plain, other);
}

TEST_P(NumbersOf, ARateCountsInTrainingOnly) {
  Model model = sines("h = dropout(g, rate=rate)");
  const Value dropped = model.graph.expression("dropped = mean(where(h == 0, 1, 0))");
  const Value share = model.graph.state("share", {});
  model.graph.assign(share, dropped);
  model.graph.assign(model.graph.state("size", {}), model.graph.expression("size_now = mean(abs(h)) / mean(abs(g))"));
  Session session = open(std::move(model));
  for (const float rate : {0.25F, 0.75F, 2.0F, -1.0F}) {
    set(session, "rate", rate);
    double zeros = 0, size = 0;
    for (int step = 0; step < 40; ++step) {  // of 128 numbers each
      session.advance(1);
      zeros += static_cast<double>(session.read("share").elements<float>()[0]) / 40;
      size += static_cast<double>(session.read("size").elements<float>()[0]) / 40;
    }
    const double wanted = std::clamp(static_cast<double>(rate), 0.0, 0.999999);
    EXPECT_NEAR(zeros, wanted, 0.03) << rate;
    if (rate < 1) {
      EXPECT_NEAR(size, 1, 0.1) << "what is kept makes up for the rest";
    }
  }
  const HostTensor rows({2, 1}, std::vector<float>{0.5F, -0.5F});
  const HostTensor before = session.predict({{"x", rows}});
  set(session, "rate", 0.9F);
  const HostTensor after = session.predict({{"x", rows}});
  EXPECT_TRUE(std::ranges::equal(before.bytes(), after.bytes()));
}

TEST(RuntimeNumbers, AgreeOnAllExecutorsAndRunInRegions) {
  const auto model = [] { return sines("h = dropout(g, rate=rate)", R"(, "clip_norm": {"runtime": 0.1})"); };
  EXPECT_TRUE(verify(model()).passed());
  Session session(model());
  const FusionSummary fusion = session.fusion();
  ASSERT_FALSE(fusion.regions.empty());
  EXPECT_TRUE(std::ranges::none_of(fusion.notes, [](const std::string& note) {
    return note.find("less") != note.npos;
  })) << testing::PrintToString(fusion.notes);
}

TEST(RuntimeNumbers, AreOfAllObjectives) {
  LoadOptions options;
  options.overrides = {{"train.clip_norm", R"({"runtime": 1})"}};
  Session session(load_model(source_folder() + "/models/gan.json", options));
  const std::string before = session.weights_hash();
  set(session, "train:clip_norm", 1e-30F);
  session.advance(1);
  EXPECT_NE(session.weights_hash(), before) << "Adam goes by directions";
  EXPECT_EQ(session.read("train:clip_norm").elements<float>()[0], 1e-30F);
}

TEST(RuntimeNumbers, AreWrittenAsTheyAreRead) {
  LoadOptions options;
  options.overrides = {{"train.clip_norm", R"({"runtime": 0})"}};
  const std::string text = canonical_model(source_folder() + "/models/gan.json", options);
  EXPECT_NE(text.find(R"("clip_norm": {"runtime": 0})"), text.npos) << text;
  GraphBuilder graph(4);
  const Value x = graph.input("x", {kBatch, 3});
  const Value rate = graph.runtime_scalar("rate", 0.5);
  EXPECT_EQ(to_string(graph.type(rate)), "f32()");
  EXPECT_EQ(to_string(graph.type(graph.op("dropout", {x}, {{"rate", std::string("rate")}}))), "f32(batch, 3)");
}

TEST(RuntimeNumbers, OfTheWrongKindAreRejected) {
  EXPECT_EQ(code_of("h = dropout(g, rate=rat)"), "attribute.value");
  EXPECT_EQ(code_of("h = dropout(g, rate=x)"), "attribute.value") << "a value that is computed";
  EXPECT_EQ(code_of("h = dropout(g, rate=1.5)"), "attribute.value");
  EXPECT_EQ(code_of("h = leaky_relu(g, slope=rate)"), "attribute.value") << "part of the plan";
  EXPECT_EQ(code_of("h = g + dropout(cast(g, dtype=i32), rate=rate)"), "dtype.float");
  EXPECT_EQ(code_of("h = g", R"(, "clip_norm": {"runtime": -1})"), "model.range");
  EXPECT_EQ(code_of("h = g", R"(, "clip_norm": {"runtime": "1"})"), "model.type");
  EXPECT_EQ(code_of("h = g", R"(, "clip_norm": {"runtime": 1, "more": 2})"), "model.unknown_key");
  EXPECT_EQ(code_of("h = g", R"(, "clip_norm": 0)"), "model.range");
}

}  // namespace
}  // namespace graphrun
