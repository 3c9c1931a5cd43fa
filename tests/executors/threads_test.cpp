// The cpu executor's threads: the same bits for any number of them, no allocation, nothing left behind.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "executors/cpu/cpu_executor.h"
#include "graph/builder.h"
#include "graph/gradients.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/threads/parallel.h"
#include "support/allocations.h"
#include "support/graph_run.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

using ir::NodeId;
using Extents = std::vector<std::int64_t>;

constexpr int kThreads[] = {1, 2, 3, 8};

std::shared_ptr<Executor> cpu_with(int threads) {
  const auto executor = std::make_shared<CpuExecutor>();
  executor->set_threads(threads);
  return executor;
}

std::uint64_t counter(const Runnable& runnable, std::string_view name) {
  for (const auto& [key, value] : runnable.counters()) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

// Threads of this process.
std::size_t thread_count() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

// A thread that has been joined may be listed for a moment more, longer on a busy machine. If there are others for
// good, the test does not end.
void wait_for(std::size_t threads) {
  while (thread_count() != threads) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class Threads : public ::testing::Test {
 protected:
  void SetUp() override { forget(); }
  void TearDown() override { forget(); }
  static void forget() {
    ::unsetenv("GRAPHRUN_ISA");
    ::unsetenv("GRAPHRUN_THREADS");
  }
  static void use(Isa isa) { ::setenv("GRAPHRUN_ISA", std::string(name_of(isa)).c_str(), 1); }
};

// ---- the pool

TEST(Pool, EveryPartRunsOnceInEveryJob) {
  for (const int threads : kThreads) {
    cpu::Pool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::uint64_t jobs = 0;
    for (int round = 0; round < 300; ++round) {
      for (const int parts : {1, 2, 7, cpu::kMaxParts}) {
        int seen[cpu::kMaxParts] = {};  // not atomic: a part has one thread, and run() returns after all
        pool.run(
            parts, [](void* context, int part) { ++static_cast<int*>(context)[part]; }, seen);
        for (int part = 0; part < cpu::kMaxParts; ++part) ASSERT_EQ(seen[part], part < parts ? 1 : 0) << part;
        ++jobs;
      }
    }
    EXPECT_EQ(pool.jobs(), jobs);
  }
}

TEST(Pool, PartsRunAtTheSameTime) {
  cpu::Pool pool(3);
  for (const auto idle : {std::chrono::milliseconds(0), std::chrono::milliseconds(20)}) {  // spinning, sleeping
    std::this_thread::sleep_for(idle);
    std::atomic<int> started{0};
    const auto meet = [](void* context, int) {
      auto& count = *static_cast<std::atomic<int>*>(context);
      ++count;
      while (count < 3) std::this_thread::yield();
    };
    pool.run(3, meet, &started);
    EXPECT_EQ(started, 3);
  }
}

// The first part that a worker begins waits until all parts but those begun have been done: by whoever runs.
TEST(Pool, AThreadThatIsHeldUpHoldsUpOneOfItsPartsOnly) {
  for (const int threads : {2, 3}) {
    cpu::Pool pool(threads);
    struct Work {
      std::atomic<int> done{0}, held{0};
    };
    for (int round = 0; round < 200; ++round) {
      Work work;
      const auto part = [](void* context, int) {
        Work& w = *static_cast<Work*>(context);
        if (cpu::Pool::current() == 1 && w.held++ == 0) {
          while (w.done < 15) std::this_thread::yield();
        }
        ++w.done;
      };
      pool.run(16, part, &work);
      ASSERT_EQ(work.done, 16);
    }
  }
}

TEST(Pool, RangesCoverEachElementOnceAndFollowFromTheNumbersAlone) {
  cpu::Pool pool(3);
  for (const int parts : {1, 2, 3, 63, 64}) {
    for (const std::int64_t n : {0, 1, 63, 64, 65, 1000, 4097}) {
      for (const std::int64_t grain : {1, 16, 64}) {
        std::vector<std::atomic<int>> first(static_cast<std::size_t>(n) + 1);
        std::vector<std::atomic<int>> covered(static_cast<std::size_t>(n) + 1);
        const auto visit = [&](std::int64_t begin, std::int64_t end) {
          EXPECT_LT(begin, end);
          EXPECT_EQ(begin % grain, 0);
          ++first[static_cast<std::size_t>(begin)];
          for (std::int64_t i = begin; i < end; ++i) ++covered[static_cast<std::size_t>(i)];
        };
        cpu::for_ranges(nullptr, parts, n, grain, visit);
        cpu::for_ranges(&pool, parts, n, grain, visit);
        for (std::int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(covered[static_cast<std::size_t>(i)], 2);
          ASSERT_NE(first[static_cast<std::size_t>(i)], 1) << "a range of one run is not one of the other";
        }
      }
    }
  }
}

// ---- programs

// Two layers on 7003 samples of 6 numbers in batches of 5000: the last batch is short. Its sums over rows are long, its
// weight gradients are small products over a long axis.
struct Network {
  static constexpr std::int64_t kSamples = 7003, kBatch = 5000, kHidden = 20;
  ir::Graph graph;
  NodeId x, y, w1, b1, w2, step, ring;

  Network() {
    ir::Builder builder(graph);
    const auto state = [&](const char* op, Extents shape) {
      return builder.add(op, {}, {{"shape", std::move(shape)}});
    };
    x = state("input", {kSamples, 6});
    y = state("input", {kSamples, 2});
    w1 = state("parameter", {6, kHidden});
    b1 = state("parameter", {kHidden});
    w2 = state("parameter", {kHidden, 2});
    step = builder.add("state", {}, {{"dtype", std::string("u64")}, {"kind", std::string("counter")}});
    ring = builder.add("state", {}, {{"shape", Extents{8}}, {"kind", std::string("metric")}});
    graph.phases.push_back({"train", kBatch, ir::kNoNode});
    builder.enter(0);
    graph.phases[0].row_count = builder.add("row_count", {step}, {{"total", kSamples}, {"capacity", kBatch}});
    const AttrList batch = {{"capacity", kBatch}};
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

  void start(GraphRun& run) const {
    run.write(x, random_tensor(DType::f32, {kSamples, 6}, -1, 1, "x"));
    run.write(y, random_tensor(DType::f32, {kSamples, 2}, -1, 1, "y"));
    run.write(w1, random_tensor(DType::f32, {6, kHidden}, -0.3, 0.3, "w1"));
    run.write(w2, random_tensor(DType::f32, {kHidden, 2}, -0.3, 0.3, "w2"));
  }
  // All that training changes, as bytes.
  std::vector<std::byte> results(GraphRun& run) const {
    std::vector<std::byte> bytes;
    for (const NodeId node : {w1, b1, w2, ring}) {
      const HostTensor tensor = run.read(node);
      bytes.insert(bytes.end(), tensor.bytes().begin(), tensor.bytes().end());
    }
    return bytes;
  }
  std::vector<std::byte> train(int threads, std::uint64_t steps) const {
    GraphRun run(graph, cpu_with(threads), Layout::guarded);
    start(run);
    run.run(0, steps);
    EXPECT_EQ(run.broken_guard(), "");
    EXPECT_EQ(counter(run.runnable(), "threads"), static_cast<std::uint64_t>(threads));
    if (threads > 1) {
      EXPECT_GE(counter(run.runnable(), "shared_loops"), 8 * steps);
    } else {
      EXPECT_EQ(counter(run.runnable(), "shared_loops"), 0u);
    }
    return results(run);
  }
};

TEST_F(Threads, TrainingHasTheSameBitsForAnyNumberAndInstructionSet) {
  const Network network;
  std::vector<std::byte> first;
  for (const Isa isa : available_isas()) {
    use(isa);
    for (const int threads : kThreads) {
      const std::vector<std::byte> results = network.train(threads, 6);
      if (first.empty()) first = results;
      EXPECT_TRUE(results == first) << threads << " threads, " << name_of(isa);
    }
  }
  GraphRun run(network.graph, cpu_with(1));
  network.start(run);
  run.run(0, 6);
  const std::vector<double> losses = to_doubles(run.read(network.ring));
  EXPECT_LT(losses[5], losses[1]) << "it did learn";
  EXPECT_GT(losses[5], 0);
}

TEST_F(Threads, EachLoopHasTheSameBitsAndIsCloseToTheReference) {
  struct Case {
    const char* op;
    std::vector<Extents> inputs;
    AttrList attributes;
    bool shared = true;
    std::int64_t indices = 0;  // the first operand holds whole numbers below
  };
  const AttrList from_left = {{"transpose_a", true}};
  const AttrList from_right = {{"transpose_b", true}};
  const Case cases[] = {
      {"matmul", {{301, 40}, {40, 330}}, {}},              // blocks of rows and columns
      {"matmul", {{100, 200}, {200, 160}}, {}},            // columns only
      {"matmul", {{20011, 3}, {3, 5}}, {}},                // rows only
      {"matmul", {{300, 160}, {300, 130}}, from_left},     // a wide weight gradient
      {"matmul", {{300, 200}, {300, 130}}, from_left},     // shared panels
      {"matmul", {{503, 70}, {70, 130}}, {}},              //
      {"matmul", {{170, 1100}, {130, 1100}}, from_right},  //
      {"matmul", {{40007, 2}, {40007, 20}}, from_left},    // partitions
      {"matmul", {{40007, 20}, {40007, 1}}, from_left},    //
      {"matmul", {{3000, 100}, {3000, 40}}, from_left},    // partitions of blocks
      {"matmul", {{213, 60}, {170, 60}}, from_right},      //
      {"matmul", {{70, 9, 33}, {33, 65}}, {}},             // matrices
      {"matmul", {{2, 200, 90}, {2, 90, 100}}, {}},        // blocks of few matrices
      {"matmul", {{30, 20}, {20, 10}}, {}, false},         // too small
      {"sum", {{300001}}, {}},                             // chunks of one sum
      {"sum", {{3, 50021}}, {{"axes", Extents{1}}}},       // of a few
      {"sum", {{30011, 20}}, {{"axes", Extents{0}}}},      // of columns
      {"sum", {{4, 3000, 70}}, {{"axes", Extents{1}}}},    //
      {"sum", {{900, 300}}, {{"axes", Extents{0}}}},       // blocks of columns
      {"sum", {{900, 300}}, {{"axes", Extents{1}}}},       // rows
      {"sum", {{60, 30, 50}}, {{"axes", Extents{0, 2}}}},  // neither
      {"sum", {{100, 10}}, {}, false},                     // too small
      {"exp", {{100003}}, {}},                             //
      {"add", {{100003}, {100003}}, {}},                   //
      {"mul", {{2001, 33}, {33}}, {}},                     // rows
      {"sub", {{3, 70001}, {3, 1}}, {}},                   // long rows
      {"div", {{70, 3, 70, 5}, {3, 1, 5}}, {}},            // slabs
      {"less", {{61, 1, 401}, {1, 3, 401}}, {}},           //
      {"broadcast_to", {{1, 401}}, {{"shape", Extents{101, 401}}}},
      {"tanh", {{100, 100}}, {}, false},
      {"softmax", {{1003, 10}}, {}},
      {"softmax", {{40, 3003}}, {}},                                 // long lines
      {"log_softmax", {{30, 70, 90}}, {{"axis", std::int64_t{1}}}},  // side by side
      {"logsumexp", {{5003, 40}}, {{"axes", Extents{0}}}},           // chunks of columns
      {"logsumexp", {{200001}}, {}},                                 // of one line
      {"transpose", {{301, 401}}, {}},
      {"transpose", {{40, 33, 65}}, {{"axes", Extents{0, 2, 1}}}},
      {"slice", {{301, 401}}, {{"axis", std::int64_t{1}}, {"start", std::int64_t{7}}}},
      {"concat", {{301, 201}, {301, 203}}, {{"axis", std::int64_t{1}}}},
      {"logsumexp", {{10, 3003}}, {{"axes", Extents{0}}}},
      {"max", {{3001, 40}}, {{"axes", Extents{1}}}},
      {"cast", {{50001}}, {{"dtype", std::string("i32")}}},
      {"scatter_add", {{901}, {901, 16}}, {{"entries", std::int64_t{20000}}}, true, 20003},       // few of many rows
      {"scatter_add", {{30011, 3}, {30011, 3, 5}}, {{"entries", std::int64_t{300}}}, true, 290},  // chunks of places
      {"scatter_add", {{20000}, {20000, 8}}, {{"entries", std::int64_t{70000}}}, true, 3},        // long sums
      {"scatter_add", {{100}, {100, 8}}, {{"entries", std::int64_t{50}}}, false, 50},
  };
  for (const Case& c : cases) {
    std::string what = c.op;
    ir::Graph graph;
    ir::Builder builder(graph);
    std::vector<NodeId> inputs;
    std::vector<HostTensor> values;
    for (const Extents& shape : c.inputs) {
      const bool whole = c.indices > 0 && inputs.empty();
      const DType dtype = whole ? DType::i32 : DType::f32;
      inputs.push_back(builder.add("input", {}, {{"dtype", std::string(name_of(dtype))}, {"shape", shape}}));
      values.push_back(
          random_tensor(dtype, Shape(shape), whole ? 0 : 0.5, whole ? static_cast<double>(c.indices) : 1.5, what));
      what += " " + to_string(Shape(shape));
    }
    SCOPED_TRACE(what);
    graph.phases.push_back({"run", 1, ir::kNoNode});
    builder.enter(0);
    const NodeId out = builder.add(c.op, inputs, c.attributes);
    const auto result = [&](const std::shared_ptr<Executor>& machine, Layout layout) {
      GraphRun run(graph, machine, layout);
      for (std::size_t i = 0; i < inputs.size(); ++i) run.write(inputs[i], values[i]);
      run.run();
      EXPECT_EQ(run.broken_guard(), "");
      if (machine->name() == "cpu" && counter(run.runnable(), "threads") > 1) {
        EXPECT_EQ(counter(run.runnable(), "shared_loops") > 0, c.shared);
      }
      return run.read(out);
    };
    std::vector<HostTensor> all;
    for (const Isa isa : available_isas()) {
      use(isa);
      for (const int threads : kThreads) {
        if (isa != available_isas().back() && threads != 1 && threads != 3) continue;  // these are slow
        all.push_back(result(cpu_with(threads), Layout::guarded));
        ASSERT_EQ(all.back().bytes().size(), all[0].bytes().size());
        EXPECT_EQ(std::memcmp(all.back().bytes().data(), all[0].bytes().data(), all[0].bytes().size()), 0)
            << threads << " threads, " << name_of(isa);
      }
    }
    const std::vector<double> got = to_doubles(all[0]);
    const std::vector<double> want = to_doubles(result(executor("ref"), Layout::planned));
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5 * std::abs(want[i])) << i;
  }
}

TEST_F(Threads, NoThreadAllocatesAfterTheFirstStep) {
  const Network network;
  GraphRun run(network.graph, cpu_with(4));
  network.start(run);
  run.run();
  const std::uint64_t before = allocations();
  run.run(0, 50);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // what the workers do last
  run.run(0, 50);
  EXPECT_EQ(allocations() - before, 0u);
  EXPECT_GT(counter(run.runnable(), "shared_loops"), 500u);
}

TEST_F(Threads, RunnablesRunAtTheSameTime) {
  const Network network;
  const std::vector<std::byte> alone = network.train(1, 4);
  std::vector<std::byte> results[4];
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = network.train(3, 4); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_TRUE(result == alone);
}

TEST_F(Threads, StartInLoadAndEndWithTheRunnable) {
  const Network network;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // those of the tests before have left
  const std::size_t before = thread_count();
  for (const auto idle : {std::chrono::milliseconds(0), std::chrono::milliseconds(20)}) {
    for (const bool runs : {false, true}) {
      GraphRun run(network.graph, cpu_with(5));
      wait_for(before + 4);
      network.start(run);
      if (runs) run.run();
      std::this_thread::sleep_for(idle);
    }
    wait_for(before);
  }
  const GraphRun one(network.graph, cpu_with(1));
  EXPECT_EQ(thread_count(), before);
}

TEST_F(Threads, TheirNumberIsThatOfTheCallerThenOfTheEnvironmentThenTheCores) {
  const Network network;
  const auto threads_of = [&](const std::shared_ptr<Executor>& machine) {
    GraphRun run(network.graph, machine);
    return counter(run.runnable(), "threads");
  };
  const int cores = std::min(cpu::available_cores(), cpu::kMaxParts);
  EXPECT_GE(cores, 1);
  EXPECT_EQ(threads_of(std::make_shared<CpuExecutor>()), static_cast<std::uint64_t>(cores));
  ::setenv("GRAPHRUN_THREADS", "3", 1);
  EXPECT_EQ(threads_of(std::make_shared<CpuExecutor>()), 3u);
  EXPECT_EQ(threads_of(cpu_with(2)), 2u);
  EXPECT_EQ(threads_of(cpu_with(kMaxThreads)), static_cast<std::uint64_t>(cpu::kMaxParts)) << "more have no work";
  for (const char* wrong : {"many", "3x", "-1", "1025", "1.5"}) {
    ::setenv("GRAPHRUN_THREADS", wrong, 1);
    try {
      threads_of(std::make_shared<CpuExecutor>());
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostics()[0].code, "threads.count");
      EXPECT_NE(error.diagnostics()[0].message.find(wrong), std::string::npos);
    }
  }
  ::setenv("GRAPHRUN_THREADS", "0", 1);
  EXPECT_EQ(threads_of(std::make_shared<CpuExecutor>()), static_cast<std::uint64_t>(cores));
  EXPECT_THROW(CpuExecutor().set_threads(-1), Error);
  EXPECT_THROW(CpuExecutor().set_threads(kMaxThreads + 1), Error);
}

// The workspace is for the shapes of a full batch; one that another executor asked for changes nothing.
TEST_F(Threads, ScratchFollowsFromShapes) {
  const auto workspace = [](Op op, const Params& params, std::vector<Shape> in, Shape out) {
    std::vector<TensorType> types;
    for (const Shape& shape : in) types.push_back({DType::f32, shape, 0});
    return cpu_workspace(op, params, types, {DType::f32, out, 0});
  };
  EXPECT_EQ(workspace(Op::matmul, MatmulParams{true, false}, {{100, 2}, {100, 20}}, {2, 20}), 0u);
  const std::uint64_t partitions = workspace(Op::matmul, MatmulParams{true, false}, {{40000, 2}, {40000, 20}}, {2, 20});
  EXPECT_GT(partitions, 2 * 40 * sizeof(float));
  EXPECT_EQ(partitions % (40 * sizeof(float)), 0u);
  EXPECT_LE(partitions, cpu::kMaxParts * 40 * sizeof(float));
  EXPECT_EQ(workspace(Op::matmul, MatmulParams{}, {{1000, 784}, {784, 250}}, {1000, 250}), 784 * 256 * sizeof(float));
  EXPECT_EQ(workspace(Op::sum, ReduceParams{1, false}, {{1000}}, {}), 0u);
  EXPECT_EQ(workspace(Op::sum, ReduceParams{1, false}, {{1024 * 100 + 1}}, {}), 101 * sizeof(float));
  EXPECT_EQ(workspace(Op::add, NoParams{}, {{1000000}, {1000000}}, {1000000}), 0u);

  ir::Graph graph;
  ir::Builder builder(graph);
  const NodeId x = builder.add("input", {}, {{"shape", Extents{3000}}});
  graph.phases.push_back({"run", 1, ir::kNoNode});
  builder.enter(0);
  const NodeId total = builder.add("sum", {x});
  GraphRun own(graph, cpu_with(1));
  own.write(x, random_tensor(DType::f32, {3000}, -1, 1, "x"));
  own.run();
  Program program = own.program();
  const auto given = static_cast<BufferId>(program.buffers.size());
  program.buffers.push_back(
      {"workspace", {DType::boolean, {64}, 0}, BufferKind::workspace, given, program.arena_bytes, 64, false});
  program.arena_bytes += kAlignment;
  program.phases[0].steps[0].workspace = given;
  const std::unique_ptr<Runnable> runnable = cpu_with(1)->load(program);
  runnable->write(own.buffer(x), random_tensor(DType::f32, {3000}, -1, 1, "x").bytes());
  runnable->run(0, 1);
  HostTensor got(DType::f32, {});
  runnable->read(own.buffer(total), got.bytes());
  EXPECT_EQ(got.elements<float>()[0], own.read(total).elements<float>()[0]);
}

}  // namespace
}  // namespace graphrun::test
