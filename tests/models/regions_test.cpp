// Every model with regions and without: the same losses, metrics and predictions within what another order of sums
// brings; whole steps are regions, and activations take no bytes of the arena.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/compile.h"
#include "model_runs.h"
#include "support/rounds.h"
#include "support/source_folder.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

Overrides short_run(const std::string& model) {
  if (model == "stock") return {{"train.epochs", "1"}, {"data.source.random.rows", "40000"}, {"train.batch", "5600"}};
  if (model.rfind("mnist", 0) == 0) {
    return {{"train.epochs", "1"},
            {"data.train.range", "[0, 3000]"},
            {"data.validation.range", "[50000, 51700]"},  // the last batch is not full
            {"data.test.range", "[0, 2000]"}};
  }
  return {{"train.epochs", "5"}};
}

Session open(const std::string& name, bool fuse, Overrides overrides, int threads = 0) {
  LoadOptions load;
  load.data_dir = data_folder();
  load.overrides = std::move(overrides);
  SessionOptions options;
  options.fuse = fuse;
  options.threads = threads;
  return Session(load_model(source_folder() + "/models/" + name + ".json", load), options);
}

void expect_near(double a, double b, const std::string& what) {
  EXPECT_NEAR(a, b, 2e-5 * std::max(std::fabs(b), 1e-3)) << what;
}

class RegionsOfModels : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, RegionsOfModels, testing::ValuesIn(model_names()),
                         [](const auto& run) { return run.param; });

TEST_P(RegionsOfModels, TrainAndEvaluateLikePlainSteps) {
  GRAPHRUN_SKIP_WITHOUT_DATA(GetParam());
  Session fused = open(GetParam(), true, short_run(GetParam()));
  Session plain = open(GetParam(), false, short_run(GetParam()));
  const TrainResult a = fused.train(), b = plain.train();
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) expect_near(a.losses[i], b.losses[i], "step " + std::to_string(i));
  for (const char* split : {"train", "validation", "test"}) {
    if (!fused.has_split(split)) continue;
    const Metrics x = fused.evaluate(split), y = plain.evaluate(split);
    expect_near(x.loss, y.loss, split);
    // A prediction on the edge may fall to the other side.
    for (std::size_t i = 0; i < x.values.size(); ++i)
      EXPECT_NEAR(x.values[i].second, y.values[i].second, 1e-3 * std::fabs(y.values[i].second) + 1e-6) << split;
  }
}

TEST_P(RegionsOfModels, GiveTheSameBitsForAnyNumberOfThreads) {
  if (test::is_too_slow() && GetParam() == "mnist_mlp")
    GTEST_SKIP() << "takes a minute under a sanitizer; smaller models run the same code";
  GRAPHRUN_SKIP_WITHOUT_DATA(GetParam());
  Session one = open(GetParam(), true, short_run(GetParam()), 1);
  one.train();
  for (const int threads : {2, 3}) {
    Session more = open(GetParam(), true, short_run(GetParam()), threads);
    more.train();
    EXPECT_EQ(more.weights_hash(), one.weights_hash()) << threads << " threads";
  }
}

TEST_P(RegionsOfModels, HoldEveryPhase) {
  GRAPHRUN_SKIP_WITHOUT_DATA(GetParam());
  if (GetParam() == "mnist_lenet") GTEST_SKIP() << "the windows of an image are too large for a tile";
  const Session session = open(GetParam(), true, short_run(GetParam()));
  const bool wide = GetParam() == "mnist_mlp";  // its first layer is a product of its own
  const bool in_turns = GetParam() == "gan";    // the second objective reads rows that the first one's stages made
  for (const Phase& phase : session.program().phases) {
    // A prediction by one product: nothing would stay in a tile.
    if (phase.name.rfind("predict", 0) == 0 && phase.regions.empty()) continue;
    std::vector<Region> over_rows;
    std::copy_if(phase.regions.begin(), phase.regions.end(), std::back_inserter(over_rows),
                 [](const Region& region) { return region.chains.empty(); });
    ASSERT_EQ(over_rows.size(), 1u) << phase.name;
    const Region& region = over_rows[0];
    if (wide) continue;
    EXPECT_EQ(region.first(), 0u) << phase.name;
    EXPECT_EQ(region.last, phase.steps.size()) << phase.name;
    for (const Stage& stage : region.stages) {
      EXPECT_TRUE(in_turns || stage.stores.empty() || phase.name.rfind("predict", 0) == 0) << phase.name;
    }
  }
  for (const Buffer& buffer : session.program().buffers) {
    const bool activation = buffer.kind == BufferKind::activation && buffer.type.rows > 0 &&
                            !is_state(session.program().buffers[buffer.storage].kind);
    EXPECT_TRUE(wide || in_turns || !activation || buffer.name.rfind("predict", 0) == 0)
        << buffer.name << " is in the arena";
  }
}

// Rows in the units of the data, for a prediction.
std::vector<std::pair<std::string, HostTensor>> some_rows(const Session& session, std::int64_t rows) {
  std::vector<std::pair<std::string, HostTensor>> inputs;
  for (const auto& [name, tensor] : session.model().data.splits.front().columns) {
    const auto used = [&, of = "predict/" + name](const Buffer& buffer) { return buffer.name == of; };
    const auto& buffers = session.program().buffers;
    if (std::none_of(buffers.begin(), buffers.end(), used)) continue;  // what is predicted
    Shape shape = tensor.shape();
    shape[0] = rows;
    inputs.emplace_back(name, test::random_tensor(DType::f32, shape, -1, 2, name));
  }
  return inputs;
}

// With the weights of the plain run: what is predicted for a row has its bits, losses and metrics are sums over rows.
TEST_P(RegionsOfModels, EvaluateAndPredictLikePlainStepsWithTheSameWeights) {
  if (test::is_too_slow() && GetParam() == "mnist_mlp")
    GTEST_SKIP() << "takes a minute under a sanitizer; smaller models run the same code";
  GRAPHRUN_SKIP_WITHOUT_DATA(GetParam());
  Session fused = open(GetParam(), true, short_run(GetParam()));
  Session plain = open(GetParam(), false, short_run(GetParam()));
  plain.train();
  for (const Buffer& buffer : plain.program().buffers) {
    if (buffer.kind == BufferKind::parameter) fused.write(buffer.name, plain.read(buffer.name));
  }
  ASSERT_EQ(fused.weights_hash(), plain.weights_hash());
  for (const char* split : {"train", "validation", "test"}) {
    if (!fused.has_split(split)) continue;
    const Metrics a = fused.evaluate(split), b = plain.evaluate(split);
    EXPECT_NEAR(a.loss, b.loss, 2e-6 * std::fabs(b.loss)) << split;
    ASSERT_EQ(a.values.size(), b.values.size());
    for (std::size_t i = 0; i < a.values.size(); ++i)
      EXPECT_NEAR(a.values[i].second, b.values[i].second, 2e-6 * std::fabs(b.values[i].second)) << a.values[i].first;
  }
  std::int64_t batch = 0;
  for (const Phase& phase : fused.program().phases) {
    if (phase.name == "predict") batch = phase.capacity;
  }
  ASSERT_GT(batch, 0);
  for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{7}, batch, batch + 3}) {
    const auto inputs = some_rows(fused, rows);
    const auto a = fused.predict_all(inputs), b = plain.predict_all(inputs);
    ASSERT_FALSE(a.empty());
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].second.shape()[0], rows);
      EXPECT_TRUE(std::ranges::equal(a[i].second.bytes(), b[i].second.bytes()))
          << a[i].first << " of " << rows << " rows has other bits";
    }
  }
}

TEST(Compile, ATrainingCompilesOnce) {
  const std::uint64_t before = compilations();
  Session session(load_model(source_folder() + "/models/xor.json", {}));
  EXPECT_FALSE(session.fusion().regions.empty());
  session.train();
  session.evaluate("train");
  session.predict({{"x", HostTensor(Shape{1, 2}, std::vector<float>{0, 1})}});
  EXPECT_FALSE(session.fusion().regions.empty());
  EXPECT_EQ(compilations() - before, 1u);
}

TEST(FusionSummary, SaysWhatRegionsSave) {
  LoadOptions load;
  const Model model = load_model(source_folder() + "/models/xor.json", load);
  FusionSummary with;
  plan_program(model, {}, &with);
  ASSERT_FALSE(with.regions.empty());
  EXPECT_EQ(with.regions[0].phase, "train");
  EXPECT_GT(with.regions[0].row_steps, 10u);
  EXPECT_GT(with.regions[0].bytes_in_tiles, 0u);
  EXPECT_TRUE(with.notes.empty());

  SessionOptions ref;  // runs steps one by one: declined, and the reason is told
  ref.executor = "ref";
  FusionSummary declined;
  plan_program(model, ref, &declined);
  EXPECT_TRUE(declined.regions.empty());
  ASSERT_FALSE(declined.notes.empty());
  EXPECT_NE(declined.notes[0].find("ref: it runs steps one by one"), std::string::npos) << declined.notes[0];

  const std::string text = rows_text(model);
  for (const char* word : {"Row ", "Shared ", "Reduced ", "region 1 rows", "region 1 once"})
    EXPECT_NE(text.find(word), std::string::npos) << word << " is not in\n" << text;
}

}  // namespace
}  // namespace graphrun
