// Regions over elements mean what their steps mean one by one, chains in whatever order: random graphs of all ops, with
// states that are read and written, on the reference, where values in registers are given memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "compiler/compile.h"
#include "graph/builder.h"
#include "graphrun/op.h"
#include "support/graph_run.h"
#include "support/random_graph.h"
#include "support/rounds.h"
#include "support/seed.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

using ir::NodeId;

Compiled compiled(const ir::Graph& graph, const std::optional<ElementLimits>& elements) {
  CompileOptions options;
  options.name = "test";
  options.target = "host";
  options.tiles.elements = elements;
  options.supports = [](const StepSignature& step) { return executor("ref")->supports(step, find_target("host")); };
  options.fuse = elements.has_value();
  options.plan_region = [](const RegionSignature& region) {
    return region.over_elements() ? RegionPlan::with(HostTiling{}) : RegionPlan::no("over rows");
  };
  return compile(graph, options);
}

// The same steps without regions, the chains of each in the opposite order.
Program taken_apart(Program program) {
  for (Buffer& buffer : program.buffers) {
    if (buffer.layout != graphrun::Layout::registers) continue;
    buffer.layout = graphrun::Layout::rows;
    buffer.kind = BufferKind::activation;
    buffer.bytes = buffer.type.bytes();
    buffer.offset = program.arena_bytes;
    program.arena_bytes += (buffer.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  for (Buffer& buffer : program.buffers)  // views
    if (buffer.kind == BufferKind::activation) buffer.offset = program.buffers[buffer.storage].offset;
  for (Phase& phase : program.phases) {
    for (const Region& region : phase.regions) {
      std::vector<Step> steps;
      for (auto chain = region.chains.rbegin(); chain != region.chains.rend(); ++chain)
        steps.insert(steps.end(), phase.steps.begin() + chain->first, phase.steps.begin() + chain->last);
      std::copy(steps.begin(), steps.end(), phase.steps.begin() + region.first());
    }
    phase.regions.clear();
  }
  return program;
}

// Every third value goes into a state, which others read before and after; one with rows meets a number.
RandomGraph with_states(RandomGraph random, std::uint64_t seed) {
  ir::Builder make(random.graph);
  make.enter(0);
  std::mt19937_64 draw(seed);
  const NodeId count = random.graph.size();
  const auto named = [&](NodeId made) {
    make.rename(made, "with_states_" + std::to_string(made));
    return made;
  };
  // A number that is stored, and that others need again after it; its state goes on at the end.
  const NodeId time = named(make.add("state", {}, {{"shape", std::vector<std::int64_t>{}}}));
  const NodeId rate = named(make.add("exp", {named(make.add("neg", {time}))}));
  random.graph[rate].keep = draw() % 2 == 0;
  for (NodeId id = 0; id < count; ++id) {
    const ir::Node node = random.graph[id];
    if (node.def->state != nullptr || node.type.dtype != DType::f32 || draw() % 3 != 0) continue;
    if (node.type.rows > 0) {
      const NodeId value = named(make.add("neg", {named(make.add("mul", {id, rate}))}));
      random.graph[value].keep = true;
      random.kept.emplace_back(value, HostTensor(DType::f32, node.type.shape));
      continue;
    }
    const auto shape = node.type.shape.dims();
    const NodeId state = make.add("state", {}, {{"shape", std::vector<std::int64_t>(shape.begin(), shape.end())}});
    named(state);
    NodeId value = named(make.add("add", {id, state}));
    if (draw() % 2 == 0)
      value = named(make.add("mul", {value, named(make.add("exp", {named(make.add("neg", {state}))}))}));
    if (draw() % 3 == 0) value = named(make.add("mul", {value, rate}));
    if (node.type.shape.rank() > 0 && draw() % 3 == 0) {  // no elementwise step, so what waits runs
      const NodeId alone = named(make.add("softmax", {value}, {{"axis", std::int64_t{0}}}));
      random.graph[alone].keep = true;
    }
    named(make.add("assign", {state, value}));
    random.inputs.emplace_back(state, HostTensor(DType::f32, node.type.shape));
  }
  named(make.add("assign", {time, named(make.add("add", {time, rate}))}));
  random.inputs.emplace_back(time, HostTensor(DType::f32, Shape{}));
  return random;
}

class Steps {
 public:
  Steps(const Compiled& compiled, const Program& program) : compiled_(compiled) {
    runnable_ = executor("ref")->load(program);
  }
  // Each value that can be seen, after two steps.
  std::vector<std::vector<std::byte>> after(const RandomGraph& random) {
    for (const auto& [node, tensor] : random.inputs) runnable_->write(compiled_.buffer(node), tensor.bytes());
    runnable_->run(0, 2);
    std::vector<std::vector<std::byte>> all;
    const auto add = [&](NodeId node, const TensorType& type) {
      runnable_->read(compiled_.buffer(node), all.emplace_back(type.bytes()));
    };
    for (const auto& [node, tensor] : random.inputs) add(node, random.graph[node].type);
    for (const auto& [node, tensor] : random.kept) add(node, random.graph[node].type);
    return all;
  }

 private:
  const Compiled& compiled_;
  std::unique_ptr<Runnable> runnable_;
};

TEST(ElementsOfRandomGraphs, MeanWhatTheirStepsMean) {
  std::size_t regions = 0, chains = 0, registers = 0, copies = 0;
  for (std::uint64_t seed = 0; seed < cases(150, 300); ++seed) {
    const AtSeed at{seed};
    const RandomGraph random = with_states(random_graph(seed, *executor("cpu")), seed);
    const Compiled plain = compiled(random.graph, {});
    const std::vector<std::vector<std::byte>> expected = Steps(plain, plain.program).after(random);
    for (const ElementLimits& limits :
         {ElementLimits{1, 64, 64, 200, 12}, ElementLimits{1, 1, 64, 200, 0}, ElementLimits{1, 3, 5, 12, 3}}) {
      const Compiled fused = compiled(random.graph, limits);
      for (const Region& region : fused.program.phases[0].regions) {
        ++regions;
        chains += region.chains.size();
      }
      for (const Buffer& buffer : fused.program.buffers) {
        registers += buffer.layout == graphrun::Layout::registers ? 1 : 0;
        copies += buffer.name.find(".copy") != std::string::npos ? 1 : 0;
      }
      const std::vector<std::vector<std::byte>> got = Steps(fused, taken_apart(fused.program)).after(random);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::size_t inputs = random.inputs.size();
        const NodeId node = i < inputs ? random.inputs[i].first : random.kept[i - inputs].first;
        ASSERT_EQ(got[i], expected[i]) << "seed " << seed << ", " << random.graph[node].name << "\n"
                                       << to_string(fused.program);
      }
    }
  }
  EXPECT_GT(regions, cases(150, 300) * 3);
  EXPECT_GT(chains, regions);
  EXPECT_GT(registers, regions);
  EXPECT_GT(copies, 10u);
}

}  // namespace
}  // namespace graphrun::test
