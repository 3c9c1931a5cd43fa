// Where a node of the given graph is in the Program.
#include "compiler/compile.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "graph/builder.h"

namespace graphrun {
namespace {

using ir::NodeId;
using List = std::vector<std::int64_t>;

struct SmallStep {
  ir::Graph graph;
  ir::Builder make{graph};
  NodeId x, w, h, again, dead, kept;

  SmallStep() {
    graph.phases.push_back({"train", 64, ir::kNoNode});
    make.enter(0);
    x = make.add("input", {}, {{"shape", List{64, 3}}, {"rows", std::int64_t{1}}});
    w = make.add("parameter", {}, {{"shape", List{3, 4}}});
    make.rename(w, "W");
    h = make.add("tanh", {make.add("matmul", {x, w})});
    again = make.add("tanh", {make.add("matmul", {x, w})});
    dead = make.add("exp", {h});
    kept = make.add("sum", {make.add("mul", {h, again})}, {{"axes", List{0}}});
    graph[kept].keep = true;
  }
};

CompileOptions options() {
  CompileOptions result;
  result.name = "test";
  result.target = "host";
  result.supports = [](const StepSignature&) { return Support::with_workspace(0); };
  return result;
}

TEST(Compile, WithoutPassesEachNodeHasABufferOfItsOwn) {
  const SmallStep step;
  const Compiled compiled = compile(step.graph, options());
  ASSERT_EQ(compiled.buffer_of.size(), step.graph.size());
  for (NodeId id = 0; id < step.graph.size(); ++id)
    EXPECT_EQ(compiled.program.buffers[compiled.buffer(id)].name, step.graph[id].name);
}

TEST(Compile, IdsLeadToWhatIsLeftOfANode) {
  const SmallStep step;
  CompileOptions simplifying = options();
  simplifying.simplify = true;
  const Compiled compiled = compile(step.graph, simplifying);
  EXPECT_EQ(compiled.buffer(step.h), compiled.buffer(step.again));
  EXPECT_EQ(compiled.program.buffers[compiled.buffer(step.kept)].name, step.graph[step.kept].name);
  EXPECT_EQ(compiled.buffer(step.w), compiled.find("W"));
  EXPECT_EQ(compiled.find("V"), kNoBuffer);
  EXPECT_EQ(compiled.values[step.dead], ir::kNoNode);
  EXPECT_THROW(compiled.buffer(step.dead), std::logic_error);
}

TEST(Compile, RegionsChangeNoValues) {
  const SmallStep step;
  CompileOptions simplifying = options();
  simplifying.simplify = true;
  const Compiled plain = compile(step.graph, simplifying);
  simplifying.plan_region = [](const RegionSignature& region) {
    HostTiling tiling;
    tiling.tile_rows = region.capacity;
    tiling.accumulator_bytes = region.size.accumulator_bytes;
    return RegionPlan::with(tiling);
  };
  simplifying.fuse = true;
  const Compiled fused = compile(step.graph, simplifying);
  ASSERT_FALSE(fused.program.phases[0].regions.empty());
  ASSERT_EQ(plain.buffer_of.size(), fused.buffer_of.size());
  for (std::size_t value = 0; value < plain.buffer_of.size(); ++value) {
    EXPECT_EQ(plain.program.buffers[plain.buffer_of[value]].name, fused.program.buffers[fused.buffer_of[value]].name);
  }
}

}  // namespace
}  // namespace graphrun
