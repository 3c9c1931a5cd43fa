// Storage decisions and lowering on small graphs built by hand.
#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "compiler/storage.h"
#include "graph/builder.h"
#include "graph/gradients.h"
#include "graph/verifier.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "support/cpu_time.h"
#include "support/passes.h"

namespace graphrun {
namespace {

using ir::NodeId;

AttrList shape(std::vector<std::int64_t> dims) {
  return {{"shape", std::move(dims)}};
}

struct Fixture {
  ir::Graph graph;
  ir::Builder make{graph};

  Fixture() { add_phase("train", 4); }
  void add_phase(const std::string& name, std::int64_t capacity) {
    graph.phases.push_back({name, capacity, ir::kNoNode});
    make.enter(static_cast<std::uint32_t>(graph.phases.size()) - 1);
  }
  NodeId parameter(const std::string& name, std::vector<std::int64_t> dims) {
    const NodeId id = make.add("parameter", {}, shape(std::move(dims)));
    make.rename(id, name);
    return id;
  }
  Program lower(const std::string& target = "host") {
    verify(graph);
    CompileOptions options;
    options.name = "test";
    options.target = target;
    options.supports = [](const StepSignature&) { return Support::with_workspace(0); };
    return compile(graph, options).program;
  }
};

TEST(Storage, AnUpdateHappensInPlaceOfItsState) {
  Fixture f;
  const NodeId w = f.parameter("w", {8});
  f.make.add("assign", {w, f.make.add("sub", {w, f.make.scalar(1, DType::f32)})});
  const Program program = f.lower();
  ASSERT_EQ(program.phases[0].steps.size(), 1u);
  EXPECT_EQ(program.phases[0].steps[0].op, Op::sub);
  EXPECT_EQ(program.buffers[program.phases[0].steps[0].output].storage, find_buffer(program, "w"));
}

TEST(Storage, AnUpdateIsCopiedWhenTheOldValueIsReadLater) {
  Fixture f;
  const NodeId w = f.parameter("w", {8});
  const NodeId next = f.make.add("neg", {w});
  const NodeId both = f.make.add("add", {w, next});  // reads w after next was computed
  f.graph[both].keep = true;
  f.make.add("assign", {w, next});
  const Program program = f.lower();
  ASSERT_EQ(program.phases[0].steps.size(), 3u);
  EXPECT_EQ(program.phases[0].steps[2].op, Op::assign);
  EXPECT_NE(program.buffers[program.phases[0].steps[0].output].storage, find_buffer(program, "w"));
}

TEST(Storage, AnUpdateThatReadsItsStateThroughABroadcastIsCopied) {
  Fixture f;
  const NodeId w = f.parameter("w", {4, 1});
  const NodeId row = f.make.add("reshape", {w}, shape({1, 4}));
  const NodeId outer = f.make.add("add", {w, row});  // (4, 4): each element reads two of w
  const NodeId next = f.make.add("sum", {outer}, {{"axes", std::vector<std::int64_t>{1}}, {"keepdims", true}});
  f.make.add("assign", {w, next});
  const Program program = f.lower();
  // sum is no op that may write in place, but w is not read after outer: the sum goes straight into w.
  ASSERT_EQ(program.phases[0].steps.size(), 2u);
  EXPECT_EQ(program.buffers[program.phases[0].steps[1].output].storage, find_buffer(program, "w"));
}

TEST(Storage, OneValueForTwoStatesIsCopiedOnce) {
  Fixture f;
  const NodeId a = f.parameter("a", {3});
  const NodeId b = f.parameter("b", {3});
  const NodeId next = f.make.add("neg", {a});
  f.make.add("assign", {a, next});
  f.make.add("assign", {b, next});
  const Program program = f.lower();
  ASSERT_EQ(program.phases[0].steps.size(), 2u);
  EXPECT_EQ(program.phases[0].steps[1].op, Op::assign);
  EXPECT_EQ(program.phases[0].steps[1].name, "assign_2");
}

TEST(Storage, TwoStatesThatChangePlacesAreNotLost) {
  Fixture f;
  const NodeId a = f.parameter("a", {3});
  const NodeId b = f.parameter("b", {3});
  const NodeId from_b = f.make.add("neg", {b});
  const NodeId from_a = f.make.add("neg", {a});
  f.make.add("assign", {a, from_b});  // from_b is written before from_a reads a: it cannot live in a
  f.make.add("assign", {b, from_a});
  const Program program = f.lower();
  const auto& steps = program.phases[0].steps;
  EXPECT_NE(program.buffers[steps[0].output].storage, find_buffer(program, "a"));
  EXPECT_EQ(program.buffers[steps[1].output].storage, find_buffer(program, "b"));
}

TEST(Storage, AStateAssignedFromAnotherStateIsCopied) {
  Fixture f;
  const NodeId a = f.parameter("a", {3});
  const NodeId b = f.parameter("b", {3});
  f.make.add("assign", {a, b});
  const Program program = f.lower();
  ASSERT_EQ(program.phases[0].steps.size(), 1u);
  EXPECT_EQ(program.phases[0].steps[0].op, Op::assign);
}

TEST(Storage, AnActivationIsReusedInPlaceWhenItDies) {
  Fixture f;
  const NodeId w = f.parameter("w", {64});
  NodeId x = f.make.add("exp", {w});
  for (int i = 0; i < 10; ++i) x = f.make.add("tanh", {x});
  f.graph[x].keep = true;
  const Program program = f.lower();
  EXPECT_EQ(program.arena_bytes, 256u + 256u);  // w, and one buffer for the whole chain
}

TEST(Storage, ADyingOperandThatIsStillVisibleIsNotOverwritten) {
  Fixture f;
  const NodeId w = f.parameter("w", {64});
  const NodeId x = f.make.add("exp", {w});
  f.graph[x].keep = true;
  const NodeId y = f.make.add("tanh", {x});
  f.graph[y].keep = true;
  const Program program = f.lower();
  EXPECT_NE(program.buffers[find_buffer(program, f.graph[x].name)].offset,
            program.buffers[find_buffer(program, f.graph[y].name)].offset);
}

TEST(Storage, ARecordIsWrittenIntoItsRing) {
  Fixture f;
  const NodeId ring =
      f.make.add("state", {}, {{"shape", std::vector<std::int64_t>{4}}, {"kind", std::string("metric")}});
  const NodeId step = f.make.add("state", {}, {{"dtype", std::string("u64")}, {"kind", std::string("counter")}});
  const NodeId value = f.make.add("sum", {f.parameter("w", {3})});
  f.make.add("assign", {ring, f.make.add("record", {ring, value, step})});
  f.make.add("assign", {step, f.make.add("increment", {step})});
  const Program program = f.lower();
  ASSERT_EQ(program.phases[0].steps.size(), 3u) << to_string(program);
  EXPECT_EQ(program.buffers[program.phases[0].steps[1].output].storage, program.phases[0].steps[1].inputs[0]);
  EXPECT_EQ(program.buffers[program.phases[0].steps[2].output].storage, program.phases[0].steps[2].inputs[0]);
}

TEST(Storage, ARecordBeforeAReaderOfItsRingIsABug) {
  Fixture f;
  const NodeId ring =
      f.make.add("state", {}, {{"shape", std::vector<std::int64_t>{4}}, {"kind", std::string("metric")}});
  const NodeId step = f.make.add("state", {}, {{"dtype", std::string("u64")}, {"kind", std::string("counter")}});
  const NodeId value = f.make.add("sum", {f.parameter("w", {3})});
  const NodeId record = f.make.add("record", {ring, value, step});
  f.graph[f.make.add("sum", {ring})].keep = true;
  f.make.add("assign", {ring, record});
  EXPECT_THROW(f.lower(), std::logic_error);
}

TEST(Plan, PhasesShareTheArena) {
  Fixture f;
  const NodeId w = f.parameter("w", {1024});
  const auto use = [&] {
    const NodeId x = f.make.add("exp", {w});
    const NodeId total = f.make.add("sum", {f.make.add("mul", {x, f.make.add("tanh", {x})})});
    f.graph[total].keep = true;
  };
  use();
  const std::uint64_t alone = f.lower().arena_bytes;
  f.add_phase("evaluate", 4);
  use();
  EXPECT_EQ(f.lower().arena_bytes, alone);
}

// Target::apart: on a GPU the smallest values of a phase do not make each other's steps wait.
TEST(Plan, OnAGpuTheSmallestValuesOfAPhaseShareBytesWithNoOther) {
  const auto place_of = [](const Program& program, const std::string& name) {
    return program.buffers[find_buffer(program, name)].offset;
  };
  for (const std::int64_t n :
       {std::int64_t{1000}, std::int64_t{2} << 20}) {  // 4 KB, and 8 MiB: more than is kept apart
    Fixture f;
    const NodeId w = f.parameter("w", {n});
    for (const std::string phase : {"train", "eval"}) {
      if (phase == "eval") f.add_phase(phase, 4);
      for (const std::string value : {"first", "second"}) {  // the first is dead when the second is computed
        const NodeId v = f.make.add("softmax", {w}, {{"axis", std::int64_t{0}}});
        f.make.rename(v, phase + value);
        const NodeId total = f.make.add("sum", {v}, {{"axes", std::vector<std::int64_t>{0}}});
        f.graph[total].keep = true;
      }
    }
    const Program host = f.lower(), gpu = f.lower("h200");
    EXPECT_EQ(place_of(host, "trainfirst"), place_of(host, "trainsecond"));
    EXPECT_EQ(place_of(gpu, "trainfirst") == place_of(gpu, "trainsecond"), n > 1000) << n << " elements";
    EXPECT_EQ(place_of(gpu, "trainfirst"), place_of(gpu, "evalfirst")) << "phases never run at a time";
    EXPECT_EQ(gpu.arena_bytes, gpu.lower_bound);
  }
}

TEST(Plan, PolledStatesAreOneBlock) {
  Fixture f;
  for (int i = 0; i < 6; ++i) {
    const NodeId ring =
        f.make.add("state", {}, {{"shape", std::vector<std::int64_t>{4}}, {"kind", std::string("metric")}});
    f.graph[ring].poll = i % 2 == 0;
  }
  f.parameter("w", {3});
  const Program program = f.lower();
  std::uint64_t low = ~std::uint64_t{0};
  std::uint64_t high = 0;
  for (const Buffer& buffer : program.buffers) {
    if (!buffer.poll) continue;
    low = std::min(low, buffer.offset);
    high = std::max(high, buffer.offset + kAlignment);
  }
  EXPECT_EQ(high - low, 3 * kAlignment);
}

TEST(Plan, EveryDeclinedStepIsListedWithItsReason) {
  Fixture f;
  const NodeId w = f.parameter("w", {3});
  const NodeId x = f.make.add("exp", {w});
  f.make.rename(x, "x");
  f.make.add("assign", {w, f.make.add("tanh", {x})});
  CompileOptions options;
  options.supports = [](const StepSignature& step) {
    return Support::no("no kernel for " + std::string(name_of(step.op)));
  };
  try {
    compile(f.graph, options);
    FAIL();
  } catch (const Error& error) {
    ASSERT_EQ(error.diagnostics().size(), 2u);
    EXPECT_EQ(error.diagnostics()[0].code, "step.unsupported");
    EXPECT_EQ(error.diagnostics()[0].message, "'x' (exp): no kernel for exp");
  }
}

TEST(Plan, GoldenProgramOfAGradientStep) {
  Fixture f;
  const NodeId x = f.make.add("input", {}, {{"shape", std::vector<std::int64_t>{4, 2}}, {"rows", std::int64_t{1}}});
  f.make.rename(x, "x");
  const NodeId w = f.parameter("w", {2, 1});
  const NodeId y = f.make.add("matmul", {x, w});
  const NodeId loss = f.make.add("sum", {f.make.add("square", {y})});
  const NodeId parameters[] = {w};
  const NodeId gradient = gradients(f.make, loss, parameters)[0];
  f.make.add("assign", {w, f.make.add("sub", {w, f.make.add("mul", {gradient, f.make.scalar(0.1, DType::f32)})})});
  f.graph = run_passes(f.graph);
  const Program program = f.lower();
  std::vector<std::string> ops;
  for (const Step& step : program.phases[0].steps) ops.emplace_back(name_of(step.op));
  // The loss itself is not asked for.
  EXPECT_EQ(ops, (std::vector<std::string>{"matmul", "square_gradient", "matmul", "mul", "sub"})) << to_string(program);
  EXPECT_EQ(to_string(program), to_string(f.lower())) << "the text must be stable";
}

// CPU time of a training step of so many layers, from its graph to its Program.
double seconds_of_layers(int layers) {
  const test::CpuTime time;
  Fixture f;
  std::vector<NodeId> parameters;
  NodeId x = f.make.add("input", {}, {{"shape", std::vector<std::int64_t>{4, 3}}, {"rows", std::int64_t{1}}});
  for (int layer = 0; layer < layers; ++layer) {
    parameters.push_back(f.parameter("W" + std::to_string(layer), {3, 3}));
    parameters.push_back(f.parameter("b" + std::to_string(layer), {3}));
    x = f.make.add(
        "tanh", {f.make.add("add", {f.make.add("matmul", {x, parameters[parameters.size() - 2]}), parameters.back()})});
  }
  const NodeId loss = f.make.add("sum", {f.make.add("square", {x})});
  const std::vector<NodeId> gradient = gradients(f.make, loss, parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const NodeId step = f.make.add("mul", {gradient[i], f.make.scalar(0.1, DType::f32)});
    f.make.add("assign", {parameters[i], f.make.add("sub", {parameters[i], step})});
  }
  EXPECT_GT(f.graph.size(), 15u * static_cast<unsigned>(layers));
  f.graph = run_passes(f.graph);
  const Program program = f.lower();
  EXPECT_GT(program.phases[0].steps.size(), 7u * static_cast<unsigned>(layers));
  return time.seconds();
}

TEST(Plan, TenThousandNodesTakeTimeInProportion) {
  test::expect_linear(seconds_of_layers, 163);
}

}  // namespace
}  // namespace graphrun
