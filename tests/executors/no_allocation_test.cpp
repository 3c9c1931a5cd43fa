// After the first run a step allocates nothing: counted over a training step of a small model, on each executor.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <vector>

#include "graph/builder.h"
#include "graph/gradients.h"
#include "support/allocations.h"
#include "support/graph_run.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

using ir::NodeId;

std::uint64_t allocations_during(const std::function<void()>& work) {
  const std::uint64_t before = allocations();
  work();
  return allocations() - before;
}

NodeId input(ir::Builder& builder, std::vector<std::int64_t> shape) {
  return builder.add("input", {}, {{"shape", std::move(shape)}});
}

// minibatch, dense, tanh, dense, mean squared error, gradients, sgd, a recorded loss, a counter.
struct Training {
  ir::Graph graph;
  NodeId x, y, w1, w2, b1, step, ring;

  Training() {
    ir::Builder builder(graph);
    x = input(builder, {11, 6});
    y = input(builder, {11, 2});
    w1 = builder.add("parameter", {}, {{"shape", std::vector<std::int64_t>{6, 33}}});
    b1 = builder.add("parameter", {}, {{"shape", std::vector<std::int64_t>{33}}});
    w2 = builder.add("parameter", {}, {{"shape", std::vector<std::int64_t>{33, 2}}});
    step = builder.add("state", {}, {{"dtype", std::string("u64")}, {"kind", std::string("counter")}});
    ring = builder.add("state", {}, {{"shape", std::vector<std::int64_t>{64}}, {"kind", std::string("metric")}});
    graph.phases.push_back({"train", 4, ir::kNoNode});
    builder.enter(0);
    const NodeId count = builder.add("row_count", {step}, {{"total", std::int64_t{11}}, {"capacity", std::int64_t{4}}});
    graph.phases[0].row_count = count;
    const AttrList batch = {{"capacity", std::int64_t{4}}};
    const NodeId x_batch = builder.add("minibatch", {x, step}, batch);
    const NodeId y_batch = builder.add("minibatch", {y, step}, batch);
    const NodeId hidden = builder.add("tanh", {builder.add("add", {builder.add("matmul", {x_batch, w1}), b1})});
    const NodeId output = builder.add("matmul", {hidden, w2});
    const NodeId squared = builder.add("square", {builder.add("sub", {output, y_batch})});
    const NodeId loss = builder.add("div", {builder.add("sum", {squared}), builder.sample_count(DType::f32)});
    const NodeId weights[] = {w1, b1, w2};
    const std::vector<NodeId> slopes = gradients(builder, loss, weights);
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      const NodeId change = builder.add("mul", {slopes[i], builder.scalar(0.05, DType::f32)});
      builder.add("assign", {weights[i], builder.add("sub", {weights[i], change})});
    }
    builder.add("assign", {ring, builder.add("record", {ring, loss, step})});
    builder.add("assign", {step, builder.add("increment", {step})});
  }
};

TEST(NoAllocation, AThousandStepsAllocateNothing) {
  for (const auto& [name, machine] : executors().present) {
    SCOPED_TRACE(name);
    const Training training;
    GraphRun run(training.graph, machine);
    run.write(training.x, random_tensor(DType::f32, {11, 6}, -1, 1, "x"));
    run.write(training.y, random_tensor(DType::f32, {11, 2}, -1, 1, "y"));
    run.write(training.w1, random_tensor(DType::f32, {6, 33}, -0.3, 0.3, "w1"));
    run.write(training.w2, random_tensor(DType::f32, {33, 2}, -0.3, 0.3, "w2"));
    run.run();
    EXPECT_EQ(allocations_during([&] { run.run(0, 1000); }), 0u);
    EXPECT_EQ(run.read(training.step).elements<std::uint64_t>()[0], 1001u);
    const std::vector<double> losses = to_doubles(run.read(training.ring));
    EXPECT_GT(losses[0], 0) << "it did work";
    EXPECT_LT(losses[63], 1);
    const auto steps = static_cast<std::uint32_t>(run.program().phases[0].steps.size());
    EXPECT_EQ(allocations_during([&] { run.runnable().run_steps(0, 0, steps); }), 0u);
  }
}

// A Runnable that works like another, but makes a vector in run(): what the count must see.
class Allocating final : public Runnable {
 public:
  explicit Allocating(Runnable& inner) : inner_(inner) {}
  void write(BufferId buffer, std::span<const std::byte> bytes) override { inner_.write(buffer, bytes); }
  void read(BufferId buffer, std::span<std::byte> bytes) override { inner_.read(buffer, bytes); }
  void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) override {
    inner_.read_range(buffer, first, bytes);
  }
  void write_rows(BufferId buffer, std::int64_t first, std::span<const std::byte> bytes) override {
    inner_.write_rows(buffer, first, bytes);
  }
  void run(PhaseId phase, std::uint64_t n) override {
    for (std::uint64_t i = 0; i < n; ++i) {
      std::vector<float> scratch(8);
      last_ = scratch.data();  // seen from outside: the vector cannot be optimised away
      inner_.run(phase, 1);
    }
  }
  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override {
    inner_.run_steps(phase, first, last);
  }
  volatile const float* last_ = nullptr;

 private:
  Runnable& inner_;
};

TEST(NoAllocation, AVectorInRunIsCounted) {
  const Training training;
  GraphRun run(training.graph, executor("ref"));
  Allocating allocating(run.runnable());
  EXPECT_EQ(allocations_during([&] { allocating.run(0, 1000); }), 1000u);
}

TEST(NoAllocation, EveryWayToAllocateIsCounted) {
  void* volatile pointer = nullptr;  // volatile: a pair of malloc and free that no one looks at may be left out
  EXPECT_EQ(allocations_during([&] { pointer = std::malloc(64); }), 1u);
  EXPECT_EQ(allocations_during([&] { pointer = std::realloc(pointer, 4096); }), 1u);
  std::free(pointer);
  EXPECT_EQ(allocations_during([&] { pointer = std::calloc(4, 16); }), 1u);
  std::free(pointer);
#if !defined(__SANITIZE_THREAD__)  // whose hooks do not see these two
  EXPECT_EQ(allocations_during([&] { pointer = std::aligned_alloc(256, 1024); }), 1u);
  std::free(pointer);
  void* aligned = nullptr;
  EXPECT_EQ(allocations_during([&] { ASSERT_EQ(posix_memalign(&aligned, 64, 64), 0); }), 1u);
  std::free(aligned);
#endif
  EXPECT_EQ(allocations_during([&] { pointer = ::operator new(64); }), 1u);
  ::operator delete(pointer);
  EXPECT_EQ(allocations_during([&] { pointer = ::operator new (64, std::align_val_t{128}); }), 1u);
  ::operator delete (pointer, std::align_val_t{128});
}

}  // namespace
}  // namespace graphrun::test
