// A new executor needs no change to the graph: one that is defined here, supports everything and computes nothing, is
// given to a Session, which plans, loads and runs on it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "graphrun/session.h"

namespace graphrun {
namespace {

struct Log {
  std::set<Op> asked;  // that supports() was asked about
  int loads = 0;
  std::map<std::string, std::uint64_t> steps;  // by phase: how many it was told to run
};

class NullRunnable final : public Runnable {
 public:
  NullRunnable(const Program& program, Log& log) : program_(program), memory_(program.arena_bytes), log_(log) {
    for (const InitialValue& value : program.initial) write(value.buffer, value.bytes);
  }
  void write(BufferId buffer, std::span<const std::byte> bytes) override {
    std::copy(bytes.begin(), bytes.end(), at(buffer, bytes.size()));
  }
  void read(BufferId buffer, std::span<std::byte> bytes) override {
    std::copy_n(at(buffer, bytes.size()), bytes.size(), bytes.begin());
  }
  void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) override {
    const Buffer& from = program_.buffers.at(buffer);
    check_range(from, first, bytes.size());
    std::copy_n(at(buffer, from.bytes) + static_cast<std::ptrdiff_t>(first), bytes.size(), bytes.begin());
  }
  void write_rows(BufferId buffer, std::int64_t first, std::span<const std::byte> bytes) override {
    const Buffer& to = program_.buffers.at(buffer);
    const auto row = static_cast<std::int64_t>(check_rows(to, first, bytes.size()));
    std::copy(bytes.begin(), bytes.end(), at(buffer, to.bytes) + static_cast<std::ptrdiff_t>(first * row));
  }
  void run(PhaseId phase, std::uint64_t n) override { log_.steps[program_.phases.at(phase).name] += n; }
  void run_steps(PhaseId, std::uint32_t, std::uint32_t) override {}

 private:
  std::vector<std::byte>::iterator at(BufferId buffer, std::size_t bytes) {
    EXPECT_EQ(bytes, program_.buffers.at(buffer).bytes);
    return memory_.begin() + static_cast<std::ptrdiff_t>(program_.buffers[buffer].offset);
  }
  Program program_;
  std::vector<std::byte> memory_;
  Log& log_;
};

class NullExecutor final : public Executor {
 public:
  explicit NullExecutor(Log& log) : log_(log) {}
  std::string_view name() const override { return "null"; }
  std::string_view default_target() const override { return "host"; }
  Support supports(const StepSignature& step, const Target& target) const override {
    EXPECT_EQ(target.name, "host");
    log_.asked.emplace(step.op);
    return Support::with_workspace(64);
  }
  std::unique_ptr<Runnable> load(const Program& program) override {
    check(program);
    ++log_.loads;
    return std::make_unique<NullRunnable>(program, log_);
  }

 private:
  Log& log_;
};

constexpr std::int64_t kSamples = 10;
constexpr std::int64_t kCapacity = 4;

Model small_model() {
  GraphBuilder graph(kCapacity);
  const Value x = graph.input("x", {kBatch, 3});
  const Value y = graph.input("y", {kBatch, 1});
  const Value prediction = graph.dense("layer", x, 1);
  const Value loss = graph.op("mean", {graph.op("square", {graph.op("sub", {prediction, y})})});
  Model model(std::move(graph));
  model.name = "small";
  model.outputs = {{prediction, "prediction", "y"}};
  model.train.minimize = loss;
  model.train.epochs = 7;
  model.data.splits = {
      {"train", {{"x", HostTensor(DType::f32, {kSamples, 3})}, {"y", HostTensor(DType::f32, {kSamples, 1})}}}};
  return model;
}

TEST(NullExecutor, ASessionPlansLoadsAndRunsOnIt) {
  Log log;
  SessionOptions options;
  options.custom_executor = std::make_shared<NullExecutor>(log);
  Session session(small_model(), options);
  EXPECT_EQ(session.executor(), "null");
  EXPECT_EQ(log.loads, 1);
  EXPECT_TRUE(log.steps.empty()) << "a session that was made has not run yet";

  // The workspace that supports() asked for is in the plan, one for each step.
  std::size_t steps = 0;
  for (const Phase& phase : session.program().phases) {
    for (const Step& step : phase.steps) {
      ++steps;
      EXPECT_EQ(log.asked.count(step.op), 1u) << name_of(step.op);
      ASSERT_NE(step.workspace, kNoBuffer);
      EXPECT_EQ(session.program().buffers[step.workspace].bytes, 64u);
    }
  }
  EXPECT_GT(steps, 5u);

  const TrainResult result = session.train();
  EXPECT_EQ(result.steps, 7u * 3u) << "epochs times batches, the last one partial";
  EXPECT_EQ(log.steps.at("train"), result.steps);
  EXPECT_EQ(result.losses, std::vector<double>(result.steps, 0.0)) << "nothing was computed";

  const HostTensor out = session.predict({{"x", HostTensor(DType::f32, {9, 3})}});
  EXPECT_EQ(out.shape(), (Shape{9, 1}));
  EXPECT_EQ(log.steps.at("predict"), 3u);
}

TEST(NullExecutor, WritingAndReadingGoThroughIt) {
  Log log;
  SessionOptions options;
  options.custom_executor = std::make_shared<NullExecutor>(log);
  Session session(small_model(), options);
  const float values[] = {1, 2, 3};
  session.write("layer.W", HostTensor({3, 1}, values));
  EXPECT_EQ(session.read("layer.W").elements<float>()[2], 3);
}

}  // namespace
}  // namespace graphrun
