// Which sums over rows a weight gradient also does, and that their bits are those of a sum of its own.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "compiler/compile.h"
#include "compiler/passes.h"
#include "compiler/regions.h"
#include "executors/cpu/cpu_executor.h"
#include "graph/builder.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

using ir::NodeId;
using List = std::vector<std::int64_t>;
using Floats = std::vector<float>;

constexpr std::int64_t kBiasRows = 85;

// Rows x (85, 3) and dz = tanh(x) @ W (85, width), to sum and multiply.
struct Rows {
  ir::Graph graph;
  ir::Builder make{graph};
  NodeId x, w, dz;

  explicit Rows(std::int64_t width) {
    graph.phases.push_back({"train", kBiasRows, ir::kNoNode});
    make.enter(0);
    x = named("x", make.add("input", {}, {{"shape", List{kBiasRows, 3}}, {"rows", std::int64_t{1}}}));
    w = named("w", make.add("parameter", {}, {{"shape", List{3, width}}}));
    dz = make.add("matmul", {make.add("tanh", {x}), w});
  }
  NodeId named(const std::string& name, NodeId id) {
    make.rename(id, name);
    return id;
  }
  void gradient(const std::string& name, NodeId of) {
    graph[named(name, make.add("matmul", {x, of}, {{"transpose_a", true}}))].keep = true;
  }
  void sum(const std::string& name, NodeId of, const List& axes) {
    graph[named(name, make.add("sum", {of}, {{"axes", axes}}))].keep = true;
  }
};

Program lowered(const Rows& rows) {
  const Target& target = find_target("host");
  RegionOptions options;
  options.plan = [&](const RegionSignature& region) { return CpuExecutor().region_choices(region, target); };
  options.only_if_it_saves = false;
  CompileOptions lower;
  lower.name = "pairs";
  lower.target = "host";
  lower.supports = [&](const StepSignature& step) { return CpuExecutor().supports(step, target); };
  lower.plan_region = options.plan;
  lower.tiles = {32, 2};
  return compile(fuse(find_regions(rows.graph, options).graph, options), lower).program;
}

// "sum in gradient" for each pair.
std::vector<std::string> pairs_of(const Program& program) {
  const Phase& phase = program.phases[0];
  std::vector<std::string> result;
  for (const FusedSteps& fused : phase.regions.at(0).stages.at(0).fused)
    if (fused.sum != kNoStep) result.push_back(phase.steps[fused.sum].name + " in " + phase.steps[fused.product].name);
  return result;
}
using Names = std::vector<std::string>;

TEST(BiasGradients, TheSumOfAGradientsSecondOperandBeforeOrAfterIt) {
  Rows before(5);
  before.sum("db", before.dz, {0});
  before.gradient("dw", before.dz);
  EXPECT_EQ(pairs_of(lowered(before)), Names{"db in dw"});
  Rows after(5);
  after.gradient("dw", after.dz);
  after.sum("db", after.dz, {0});
  EXPECT_EQ(pairs_of(lowered(after)), Names{"db in dw"});
}

TEST(BiasGradients, ASumOfAllWhereRowsHaveOneFeature) {
  for (const std::int64_t width : {1, 2}) {
    Rows rows(width);
    rows.sum("db", rows.dz, {0, 1});
    rows.gradient("dw", rows.dz);
    EXPECT_EQ(pairs_of(lowered(rows)), width == 1 ? Names{"db in dw"} : Names{});
  }
}

TEST(BiasGradients, EachOnce) {
  Rows rows(5);
  rows.gradient("dw", rows.dz);
  rows.graph[rows.named("dv",
                        rows.make.add("matmul", {rows.make.add("exp", {rows.x}), rows.dz}, {{"transpose_a", true}}))]
      .keep = true;
  rows.sum("db", rows.dz, {0});
  EXPECT_EQ(pairs_of(lowered(rows)), Names{"db in dw"});
}

TEST(BiasGradients, NotOfAnotherValueNorAnotherReduction) {
  Rows rows(5);
  rows.sum("first", rows.x, {0});
  rows.sum("features", rows.dz, {1});
  rows.sum("other", rows.make.add("exp", {rows.dz}), {0});
  rows.graph[rows.named("largest", rows.make.add("max", {rows.dz}, {{"axes", List{0}}}))].keep = true;
  rows.gradient("dw", rows.dz);
  EXPECT_EQ(pairs_of(lowered(rows)), Names{});
}

// The values of `names` after a run.
std::vector<Floats> values(const Rows& rows, const Names& names) {
  const Program program = lowered(rows);
  CpuExecutor cpu;
  const auto runnable = cpu.load(program);
  const HostTensor x = random_tensor(DType::f32, {kBiasRows, 3}, -2, 2, "x");
  const HostTensor w = random_tensor(DType::f32, {3, rows.graph[rows.w].type.shape[1]}, -1, 1, "w");
  const auto buffer = [&](const std::string& name) {
    for (BufferId id = 0; id < program.buffers.size(); ++id)
      if (program.buffers[id].name == name && program.buffers[id].kind != BufferKind::tile) return id;
    throw std::logic_error("no buffer " + name);
  };
  runnable->write(buffer("x"), x.bytes());
  runnable->write(buffer("w"), w.bytes());
  runnable->run(0, 1);
  std::vector<Floats> result;
  for (const std::string& name : names) {
    Floats& value = result.emplace_back(program.buffers[buffer(name)].type.bytes() / sizeof(float));
    runnable->read(buffer(name), std::as_writable_bytes(std::span(value)));
  }
  return result;
}

TEST(BiasGradients, HaveTheBitsOfSumsOfTheirOwn) {
  for (const std::int64_t width : {1, 2, 6, 11}) {
    Rows paired(width), gradient(width), sum(width);
    paired.gradient("dw", paired.dz);
    paired.sum("db", paired.dz, {0});
    gradient.gradient("dw", gradient.dz);
    sum.sum("db", sum.dz, {0});
    ASSERT_EQ(pairs_of(lowered(paired)).size(), 1u);
    const std::vector<Floats> both = values(paired, {"dw", "db"});
    EXPECT_EQ(both[0], values(gradient, {"dw"})[0]) << width;
    EXPECT_EQ(both[1], values(sum, {"db"})[0]) << width;
    EXPECT_NE(both[1], Floats(both[1].size(), 0.0f));
  }
}

// Partitions that add up their lanes tile by tile have other kernels.
TEST(BiasGradients, NotWherePartitionsKeepNoLanes) {
  Rows paired(400), sum(400);
  paired.gradient("dw", paired.dz);
  paired.sum("db", paired.dz, {0});
  sum.sum("db", sum.dz, {0});
  EXPECT_EQ(pairs_of(lowered(paired)), Names{});
  const Floats db = values(paired, {"db"})[0], alone = values(sum, {"db"})[0];
  for (std::size_t i = 0; i < db.size(); ++i) EXPECT_NEAR(db[i], alone[i], 1e-4) << i;
}

}  // namespace
}  // namespace graphrun::test
