// A plan that does not fit: the message names what is large and a batch that fits, found by planning alone.
#include <gtest/gtest.h>

#include "graph/frontend/builder_impl.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "session/compiling/fit_batch.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

// Attributes and constants that could hold the batch: reshapes, draws, means over rows, a batch that does not divide.
constexpr const char* kModel = R"json({
  "format": 1,
  "name": "shapes",
  "data": {"train": {"inline": {
    "x": [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6], [4, 5, 6, 7], [5, 6, 7, 8], [6, 7, 8, 9]],
    "y": [[1], [3], [5], [7], [9], [11], [13]]}}},
  "inputs": {"x": ["batch", 4], "y": ["batch", 1]},
  "graph": [
    {"name": "h", "op": "dense", "inputs": ["x"], "units": 300, "activation": "tanh"},
    "d = dropout(h, rate=0.25)",
    "n = d + random_uniform(h) * 0.01",
    {"name": "t", "op": "reshape", "inputs": ["n"], "shape": [-1, 3]},
    {"name": "m", "op": "mean", "inputs": ["t"], "axis": [1], "keepdims": true},
    {"name": "r", "op": "reshape", "inputs": ["m"], "shape": [-1, 100]},
    {"name": "p", "op": "dense", "inputs": ["r"], "units": 1},
    "loss = mean((p - y) ^ 2)"
  ],
  "outputs": {"p": "y"},
  "train": {"minimize": "loss", "metrics": ["rmse"], "optimizer": {"adam": {"lr": 0.05}}, "batch": 7, "epochs": 2}
})json";

Model model_with(std::int64_t batch) {
  const test::TemporaryFolder folder;
  LoadOptions options;
  options.overrides = {{"train.batch", std::to_string(batch)}};
  return load_model(folder.write("shapes.json", kModel), options);
}

// The cpu executor on a machine that has so many bytes.
class Budget final : public Executor {
 public:
  explicit Budget(std::uint64_t bytes) : bytes_(bytes) {}
  std::string_view name() const override { return "budget"; }
  std::string_view default_target() const override { return "host"; }
  Support supports(const StepSignature& step, const Target& target) const override {
    return cpu_->supports(step, target);
  }
  std::unique_ptr<Runnable> load(const Program& program) override {
    if (program.arena_bytes > bytes_)
      throw OutOfMemory("budget.memory", "it is too much", program.arena_bytes, bytes_, "buy more");
    return cpu_->load(program);
  }

 private:
  std::shared_ptr<Executor> cpu_ = find_executor("cpu");
  std::uint64_t bytes_;
};

SessionOptions with_budget(std::uint64_t bytes) {
  SessionOptions options;
  options.custom_executor = std::make_shared<Budget>(bytes);
  return options;
}

std::uint64_t arena_of(std::int64_t batch) {
  SessionOptions plain;  // in tiles the activations would need no memory
  plain.fuse = false;
  return plan_program(model_with(batch), plain).arena_bytes;
}

TEST(OutOfMemory, AnotherBatchIsTheModelOfThatBatch) {
  const std::shared_ptr<Executor> executor = find_executor("cpu");
  for (const bool passes : {true, false}) {
    const Model given = model_with(7);
    const StepGraph step = build_step_graph(given);
    for (const std::int64_t batch : {1, 2, 3, 6, 7}) {
      const PlanOptions options{"", passes};
      const Program got = compile_step(step, batch, given, {&executor, 1}, options).program;
      const Program want = compile_model(model_with(batch), {&executor, 1}, options).program;
      EXPECT_EQ(to_string(got), to_string(want)) << batch;
      EXPECT_EQ(got, want) << batch;
    }
  }
}

TEST(OutOfMemory, TheMessageNamesABatchThatFits) {
  const std::uint64_t budget = arena_of(4);
  ASSERT_LT(budget, arena_of(7)) << "the batches must differ in what they need";
  try {
    Session session(model_with(7), with_budget(budget));
    FAIL() << "it must not fit";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(error.needed(), arena_of(7));
    ASSERT_EQ(error.diagnostics().size(), 1u);
    const Diagnostic& told = error.diagnostics().front();
    EXPECT_EQ(told.code, "budget.memory");
    EXPECT_EQ(told.message.rfind("it is too much; the largest values: ", 0), 0u) << told.message;
    EXPECT_NE(told.message.find("train/loss:ring"), std::string::npos) << "the largest of this plan: " << told.message;
    std::size_t values = 0;
    for (std::size_t at = told.message.find(" bytes)"); at != std::string::npos; ++values)
      at = told.message.find(" bytes)", at + 1);
    EXPECT_EQ(values, 5u) << told.message;

    const std::string words = "--batch=";
    ASSERT_EQ(told.hint.rfind(words, 0), 0u) << told.hint;
    const std::int64_t batch = std::stoll(told.hint.substr(words.size()));
    EXPECT_GE(batch, 4);
    EXPECT_LT(batch, 7);
    EXPECT_NE(told.hint.find(std::to_string(arena_of(batch)) + " bytes"), std::string::npos) << told.hint;
    Session fits(model_with(batch), with_budget(budget));
    EXPECT_EQ(fits.train().epochs, 2);
    EXPECT_THROW(Session(model_with(batch + 1), with_budget(budget)), OutOfMemory) << "it is the largest";
  }
}

TEST(OutOfMemory, OrSaysThatNoBatchFits) {
  try {
    Session session(model_with(7), with_budget(arena_of(1) - 1));
    FAIL() << "it must not fit";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.diagnostics().front().hint,
              "no batch fits: with a batch of 1 the plan still needs " + std::to_string(arena_of(1)) + " bytes");
  }
}

// Linux would give out the memory, and kill the process when it is used.
TEST(OutOfMemory, OfTheHostIsReportedBeforeItIsUsed) {
  for (const std::string executor : {"cpu", "ref"}) {
    GraphBuilder graph(std::int64_t{1} << 20);
    const Value x = graph.input("x", {kBatch, 1});
    const Value hidden = graph.dense("hidden", x, std::int64_t{1} << 20);  // 4 TiB
    const Value loss = graph.op("mean", {hidden});
    Model model(std::move(graph));
    model.train.minimize = loss;
    model.data.splits.push_back({"train", {{"x", HostTensor(DType::f32, {1 << 20, 1})}}});
    SessionOptions options;
    options.executor = executor;
    try {
      Session session(std::move(model), options);
      FAIL() << "it must not fit";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.diagnostics().front().code, "memory.host");
      EXPECT_GT(error.needed(), std::uint64_t{1} << 42);
      EXPECT_LT(error.usable(), error.needed());
      EXPECT_EQ(error.diagnostics().front().hint.rfind("--batch=", 0), 0u) << error.what();
    }
  }
}

}  // namespace
}  // namespace graphrun
