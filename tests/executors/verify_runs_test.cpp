// The verifier runs what a Session runs: predictions, many steps in one call, regions.
#include "graphrun/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "executors/verify_models.h"
#include "graphrun/op.h"
#include "graphrun/session.h"
#include "support/graph_run.h"
#include "support/temporary_folder.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using test::classifier;
using test::kNan;
using test::verified_model;

// The executor `cpu` with regions, and a mistake in what it runs whole: in run(), or in regions.
struct Faults {
  bool predicts = true;  // run() of the prediction does its steps
  bool repeats = true;   // run(n) does n steps
  // After the first region of the phase the last element of a value that it combines over rows is off.
  std::string phase = {};
  float by = 0;
};
class FaultyRunnable final : public Runnable {
 public:
  FaultyRunnable(Program program, const Faults& faults)
      : program_(std::move(program)), faults_(faults), inner_(test::executor("cpu")->load(program_)) {}
  void write(BufferId buffer, std::span<const std::byte> bytes) override { inner_->write(buffer, bytes); }
  void read(BufferId buffer, std::span<std::byte> bytes) override { inner_->read(buffer, bytes); }
  void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) override {
    inner_->read_range(buffer, first, bytes);
  }
  void write_rows(BufferId buffer, std::int64_t first, std::span<const std::byte> bytes) override {
    inner_->write_rows(buffer, first, bytes);
  }
  void run(PhaseId phase, std::uint64_t n) override {
    const std::string& name = program_.phases[phase].name;
    if (name == "predict" && !faults_.predicts) return;
    if (!faults_.repeats) n = std::min<std::uint64_t>(n, 2);
    inner_->run(phase, n);
  }
  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override {
    inner_->run_steps(phase, first, last);
    const Phase& whole = program_.phases[phase];
    if (whole.name != faults_.phase || whole.regions.empty()) return;
    if (first > whole.regions[0].first() || last < whole.regions[0].last) return;
    const BufferId id = whole.regions[0].stages.back().combines.at(0).value;
    std::vector<float> values(program_.buffers.at(id).type.bytes() / sizeof(float));
    inner_->read(id, std::as_writable_bytes(std::span(values)));
    values.back() += faults_.by;
    inner_->write(id, std::as_bytes(std::span(values)));
  }

 private:
  Program program_;
  Faults faults_;
  std::unique_ptr<Runnable> inner_;
};
class FaultyExecutor final : public Executor {
 public:
  explicit FaultyExecutor(Faults faults) : faults_(std::move(faults)), inner_(test::executor("cpu")) {}
  std::string_view name() const override { return "faulty"; }
  std::string_view default_target() const override { return "host"; }
  Support supports(const StepSignature& step, const Target& target) const override {
    return inner_->supports(step, target);
  }
  RegionPlan region_choices(const RegionSignature& region, const Target& target) const override {
    return inner_->region_choices(region, target);
  }
  std::unique_ptr<Runnable> load(const Program& program) override {
    return std::make_unique<FaultyRunnable>(program, faults_);
  }

 private:
  Faults faults_;
  std::shared_ptr<Executor> inner_;
};

VerifyReport verify_with(Faults faults, const Model& model) {
  VerifyOptions options;
  options.custom_executor = std::make_shared<FaultyExecutor>(std::move(faults));
  return verify(model, options);
}

TEST(VerifyRuns, NoFaultPasses) {
  for (const Model& model : {verified_model(), classifier()}) {
    const VerifyReport report = verify_with({}, model);
    EXPECT_TRUE(report.passed()) << to_string(*report.difference);
    EXPECT_GT(report.regions, 0u);
  }
}

TEST(VerifyRuns, APredictionThatDoesNothingIsFound) {
  const VerifyReport report = verify_with({.predicts = false}, verified_model());
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.difference->kind, Difference::Kind::fused);
  EXPECT_EQ(report.difference->buffer, "predict/p");
  EXPECT_NE(to_string(*report.difference).find("predict/p differs after the whole phase"), std::string::npos)
      << to_string(*report.difference);
}

TEST(VerifyRuns, ManyStepsThatAreTooFewAreFound) {
  const VerifyReport report = verify_with({.repeats = false}, verified_model());
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.difference->kind, Difference::Kind::repeat) << to_string(*report.difference);
}

TEST(VerifyRuns, AValueThatLeavesARegionWrongIsFound) {
  for (const char* phase : {"train", "evaluate.test"}) {
    for (const float by : {1e-3f, 1.0f, kNan}) {
      const VerifyReport report = verify_with({.phase = phase, .by = by}, verified_model());
      ASSERT_FALSE(report.passed()) << phase << " " << by;
      EXPECT_EQ(report.difference->kind, Difference::Kind::fused);
      EXPECT_EQ(report.difference->phase, phase);
      EXPECT_FALSE(report.difference->node.empty());
    }
  }
}

// The bytes of the product's gradient are written over by a value that is written over itself before the unit ends.
TEST(VerifyRuns, AValueUnderTwoOthersIsNotCompared) {
  for (const std::int64_t width : {65, 68, 120}) {
    GraphBuilder graph(7);
    graph.input("x", {kBatch, width});
    graph.input("y", {kBatch, 1});
    graph.parameter("s", {}, Init::constant(0.3));
    graph.parameter("w", {width, 1}, Init::normal(0.3));
    graph.expression("p = tanh(x * s) @ w");
    graph.expression("loss = mean(square(p - y))");
    Model model(std::move(graph));
    model.outputs = {{model.graph.find("p"), "p", ""}};
    model.train.minimize = model.graph.find("loss");
    model.train.optimizer = {"adam", {{"lr", 0.01}}, {}};
    model.data.splits = {{"train",
                          {{"x", test::random_tensor(DType::f32, {20, width}, -2, 2, "x")},
                           {"y", test::random_tensor(DType::f32, {20, 1}, -2, 2, "y")}}}};
    const VerifyReport report = verify(model);
    EXPECT_TRUE(report.passed()) << to_string(*report.difference);
  }
}

// The mean's gradient, which is not read by rows, lies where the region's accumulators are then.
TEST(VerifyRuns, AValueUnderScratchIsNotCompared) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("model.json", R"json({"format": 1, "name": "m",
 "data": {"train": {"random": {"rows": 24, "seed": 1, "columns": {"a": {"normal": 1, "shape": [76]},
  "b": {"normal": 1, "shape": [2]}}}, "x": ["a"], "y": ["b"]}},
 "inputs": {"x": ["batch", 76], "y": ["batch", 2]},
 "parameters": {"p": {"shape": [76, 8], "init": {"normal": 1}}, "q": {"shape": [8, 2], "init": {"normal": 1}}},
 "graph": ["z = logsumexp(x @ p, axis=0, keepdims=true)", {"name": "h", "op": "dense", "inputs": ["x"], "units": 2},
  "loss = mean(square(h - y)) + 0.5 * mean(z @ q)"],
 "outputs": {"h": "y"}, "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.01}}, "batch": "all", "epochs": 1}})json");
  const VerifyReport report = verify(load_model(file));
  EXPECT_TRUE(report.passed()) << to_string(*report.difference);
}

// Other outputs are computed from the input that one of them shows.
TEST(VerifyRuns, AnOutputMayBeAViewOfAnInput) {
  GraphBuilder graph(3);
  graph.input("x", {kBatch, 2, 3});
  graph.parameter("w", {6, 1}, Init::normal(1));
  graph.expression("flat = reshape(x, shape=[-1, 6])");
  graph.expression("p = flat @ w");
  graph.expression("loss = mean(square(p - 1))");
  Model model(std::move(graph));
  model.outputs = {{model.graph.find("flat"), "flat", ""}, {model.graph.find("p"), "p", ""}};
  model.train.minimize = model.graph.find("loss");
  model.data.splits = {{"train", {{"x", test::random_tensor(DType::f32, {20, 2, 3}, -1, 1, "x")}}}};
  const VerifyReport report = verify(model);
  EXPECT_TRUE(report.passed()) << to_string(*report.difference);
}

// Rounding is let through, wherever a comparison stands in its way.
TEST(VerifyRuns, ValuesOnTheEdgeOfAComparisonMayFallEitherWay) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GraphBuilder graph(64);
    graph.input("x", {kBatch, 8});
    graph.parameter("W", {8, 16}, Init::uniform(-1, 1));
    graph.parameter("V", {16, 1}, Init::uniform(-1, 1));
    graph.expression("h = relu(x @ W)");
    graph.expression("p = h @ V");
    graph.expression("loss = mean(abs(p - p * p))");
    Model model(std::move(graph));
    model.outputs = {{model.graph.find("p"), "p", ""}};
    model.train.minimize = model.graph.find("loss");
    model.train.seed = seed;
    model.data.splits = {{"train", {{"x", test::random_tensor(DType::f32, {100, 8}, -1, 1, fmt::format("{}", seed))}}}};
    const VerifyReport report = verify(model);
    EXPECT_TRUE(report.passed()) << to_string(*report.difference);
  }
}

}  // namespace
}  // namespace graphrun
