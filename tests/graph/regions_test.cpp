// Row analysis and the region pass: kinds, stages, cuts, order of effects; and what a Program with regions must keep.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "compiler/compile.h"
#include "compiler/regions.h"
#include "graph/builder.h"
#include "graph/verifier.h"
#include "graphrun/op.h"
#include "support/cpu_time.h"

namespace graphrun {
namespace {

using ir::NodeId;
using List = std::vector<std::int64_t>;

constexpr std::int64_t kBatchRows = 100;

// x (100, 3) -> h = tanh(x W) (100, 4); gradient-like dW = x^T h; W := W - dW
struct RegionStep {
  ir::Graph graph;
  ir::Builder make{graph};
  NodeId x, w, h, dw;

  explicit RegionStep(std::int64_t rows = kBatchRows) {
    graph.phases.push_back({"train", rows, ir::kNoNode});
    make.enter(0);
    x = named("x", make.add("input", {}, {{"shape", List{rows, 3}}, {"rows", std::int64_t{1}}}));
    w = named("W", make.add("parameter", {}, {{"shape", List{3, 4}}}));
    h = named("h", make.add("tanh", {named("z", make.add("matmul", {x, w}))}));
    dw = named("dW", make.add("matmul", {x, h}, {{"transpose_a", true}}));
    make.add("assign", {w, named("next", make.add("sub", {w, dw}))});
  }
  NodeId named(const std::string& name, NodeId id) {
    make.rename(id, name);
    return id;
  }
};

RegionPlan on_cpu(const RegionSignature& region, const Target& target = find_target("host")) {
  return find_executor("cpu")->region_choices(region, target);
}
RegionPlan always(const RegionSignature&) {
  return RegionPlan::with({});
}
Regions regions_of(const ir::Graph& graph, PlanRegion plan = always) {
  RegionOptions options;
  options.plan = std::move(plan);
  Regions regions = find_regions(graph, options);
  verify(regions.graph);
  return regions;
}

NodeId find(const ir::Graph& graph, std::string_view name) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph[id].name == name) return id;
  }
  throw std::logic_error("no node " + std::string(name));
}
RowKind kind_of(const ir::Graph& graph, std::string_view name) {
  return row_kinds(graph)[find(graph, name)];
}
bool over_rows(const Regions& regions, std::string_view name) {
  const NodeId id = find(regions.graph, name);
  for (const ir::Region& region : regions.graph.regions) {
    for (const ir::RegionStage& stage : region.stages) {
      if (id >= stage.rows && id < stage.last) return true;
    }
  }
  return false;
}

Program lowered(const ir::Graph& graph, plan::TileChoice tiles = {}, const Target& target = find_target("host")) {
  CompileOptions options;
  options.name = "test";
  options.target = "host";
  options.tiles = tiles;
  options.plan_region = [&](const RegionSignature& region) { return on_cpu(region, target); };
  options.supports = [](const StepSignature&) { return Support::with_workspace(0); };
  return compile(graph, options).program;
}

HostTiling tiling_of(const Program& program) {
  return std::get<HostTiling>(program.phases[0].regions.at(0).tiling);
}

TEST(RowAnalysis, FollowsTheRulesOfTheOps) {
  RegionStep step;
  step.named("total", step.make.add("sum", {step.h}));
  step.named("by_row", step.make.add("sum", {step.h}, {{"axes", List{1}}}));
  EXPECT_EQ(kind_of(step.graph, "x"), RowKind::row);
  EXPECT_EQ(kind_of(step.graph, "h"), RowKind::row);
  EXPECT_EQ(kind_of(step.graph, "by_row"), RowKind::row);
  EXPECT_EQ(kind_of(step.graph, "W"), RowKind::shared);
  EXPECT_EQ(kind_of(step.graph, "next"), RowKind::shared);
  EXPECT_EQ(kind_of(step.graph, "dW"), RowKind::reduced);
  EXPECT_EQ(kind_of(step.graph, "total"), RowKind::reduced);
}

TEST(RegionPass, AStepIsOneRegionWithAnEpilogue) {
  const Regions regions = regions_of(RegionStep().graph);
  ASSERT_EQ(regions.graph.regions.size(), 1u);
  EXPECT_TRUE(regions.notes.empty());
  EXPECT_EQ(regions.graph.regions[0].stages.size(), 1u);
  for (const char* name : {"z", "h", "dW"}) EXPECT_TRUE(over_rows(regions, name)) << name;
  EXPECT_FALSE(over_rows(regions, "next"));
}

TEST(RegionPass, AReducedValueThatRowsReadBackBeginsAStage) {
  RegionStep step;
  const NodeId mean = step.named("mean", step.make.add("sum", {step.h}, {{"axes", List{0}}, {"keepdims", true}}));
  const NodeId centred = step.named("centred", step.make.add("sub", {step.h, mean}));
  step.graph[step.named("spread", step.make.add("sum", {step.make.add("square", {centred})}))].keep = true;
  const Regions regions = regions_of(step.graph);
  ASSERT_EQ(regions.graph.regions.size(), 1u);
  const ir::Region& region = regions.graph.regions[0];
  ASSERT_EQ(region.stages.size(), 2u);
  EXPECT_GE(find(regions.graph, "centred"), region.stages[1].rows);
  // h is made in the first stage and read in the second: the arena holds it in between.
  const Program program = lowered(regions.graph);
  EXPECT_EQ(program.buffers[find_buffer(program, "h")].kind, BufferKind::activation);
  EXPECT_EQ(program.buffers[find_buffer(program, "z")].kind, BufferKind::tile);
  EXPECT_EQ(program.phases[0].regions[0].stages[1].loads.size(), 1u);
}

// What a table's rows add up to is a reduced value; a large table is not worth accumulators for each partition.
TEST(RegionPass, AScatterIsACutWhenItsTableIsLargerThanTheBatch) {
  const auto scattered = [](std::int64_t entries) {
    RegionStep step;
    const NodeId ids = step.make.add(
        "input", {}, {{"dtype", std::string("i32")}, {"shape", List{kBatchRows}}, {"rows", std::int64_t{1}}});
    const NodeId table = step.make.add("scatter_add", {ids, step.h}, {{"entries", entries}});
    step.graph[step.named("table", table)].keep = true;
    step.graph[step.named("spread", step.make.add("sum", {step.make.add("square", {step.h})}))].keep = true;
    return step;
  };
  const RegionStep small = scattered(kBatchRows), large = scattered(kBatchRows + 1);
  EXPECT_EQ(kind_of(small.graph, "table"), RowKind::reduced);
  const PlanRegion cpu = [](const RegionSignature& region) { return on_cpu(region); };
  EXPECT_TRUE(over_rows(regions_of(small.graph, cpu), "table"));
  const Regions regions = regions_of(large.graph, cpu);
  EXPECT_FALSE(over_rows(regions, "table"));
  EXPECT_TRUE(over_rows(regions, "h")) << "the rest of the step stays fused";
  ASSERT_EQ(regions.notes.size(), 1u);
  EXPECT_EQ(regions.notes[0].node, "table");
  EXPECT_EQ(regions.notes[0].text, "a cut: accumulators of 1616 bytes for each partition are too many to add 1600 to");
}

TEST(RegionPass, WhatTheExecutorDoesNotRunOverRowsIsACutWithItsReason) {
  RegionStep step;
  const NodeId s = step.named("s", step.make.add("sin", {step.make.add("exp", {step.make.add("neg", {step.h})})}));
  const NodeId after = step.named("after", step.make.add("square", {step.make.add("exp", {s})}));
  step.graph[step.named("total", step.make.add("sum", {step.make.add("neg", {after})}))].keep = true;
  const Regions regions = regions_of(step.graph, [](const RegionSignature& region) {
    for (const StepSignature& row : region.rows) {
      if (row.op == *find_op("sin")) return RegionPlan::no("no sin today");
    }
    return RegionPlan::with({});
  });
  ASSERT_EQ(regions.graph.regions.size(), 2u);
  EXPECT_FALSE(over_rows(regions, "s"));
  EXPECT_TRUE(over_rows(regions, "after"));
  ASSERT_EQ(regions.notes.size(), 1u);
  EXPECT_EQ(regions.notes[0].node, "s");
  EXPECT_NE(regions.notes[0].text.find("no sin today"), std::string::npos);
  EXPECT_NE(to_string(regions).find("no sin today"), std::string::npos);
}

TEST(RegionPass, TheListOfManyRegionsIsMadeInLinearTime) {
  if (!test::kTimesHold) GTEST_SKIP() << "times are not compared under a sanitizer";
  const auto seconds = [](NodeId n) {
    RegionStep step;
    const NodeId first = step.graph.size();
    for (NodeId i = 0; i < n; ++i) step.make.add("neg", {i == 0 ? step.h : first + i - 1});
    Regions regions;
    regions.graph = step.graph;
    for (NodeId id = first; id < first + n; ++id) regions.graph.regions.push_back({0, {}, id + 1, {{id, id + 1}}});
    return test::cpu_seconds([&] { to_string(regions); });
  };
  test::expect_linear(seconds, NodeId{4000});
}

TEST(RegionPass, WideProductsAreLeftToTheirKernel) {
  Target narrow = find_target("host");
  narrow.regions.max_weights = 40;  // of W: 48
  const Regions regions =
      regions_of(RegionStep().graph, [&](const RegionSignature& region) { return on_cpu(region, narrow); });
  EXPECT_FALSE(over_rows(regions, "z"));
  ASSERT_FALSE(regions.notes.empty());
  EXPECT_NE(regions.notes[0].text.find("48 bytes of weights"), std::string::npos) << regions.notes[0].text;
}

TEST(RegionPass, ADeclinedRegionIsDissolvedWithItsReason) {
  const Regions regions = regions_of(RegionStep().graph, [](const RegionSignature& region) {
    return region.rows.size() > 1 ? RegionPlan::no("one at a time") : RegionPlan::with({});
  });
  EXPECT_TRUE(regions.graph.regions.empty());
  ASSERT_EQ(regions.notes.size(), 1u);
  EXPECT_NE(regions.notes[0].text.find("one at a time"), std::string::npos);
}

// Sums that do not fit into a kernel become cuts, the largest first, as long as the executor asks for it.
TEST(RegionPass, SumsAreCutUntilTheRestFits) {
  ir::Graph graph;
  ir::Builder make{graph};
  graph.phases.push_back({"train", kBatchRows, ir::kNoNode});
  make.enter(0);
  const NodeId x = make.add("input", {}, {{"shape", List{kBatchRows, 3}}, {"rows", std::int64_t{1}}});
  const NodeId h = make.add("exp", {make.add("neg", {make.add("exp", {x})})});
  const auto keep = [&](const char* name, NodeId id) {
    graph[id].name = name;
    graph[id].keep = true;
  };
  keep("product", make.add("matmul", {h, h}, {{"transpose_a", true}}));
  keep("columns", make.add("sum", {h}, {{"axis", std::int64_t{0}}}));
  keep("total", make.add("sum", {h}));
  const auto regions_with = [&](std::int64_t most) {
    return regions_of(graph, [=](const RegionSignature& region) {
      std::int64_t sums = 0;
      for (const StepSignature& row : region.rows) sums += row.output.rows == 0 ? row.output.shape.elements() : 0;
      RegionPlan plan = sums > most && region.rows.size() > 1 ? RegionPlan::no("sums") : RegionPlan::with({});
      plan.too_many_sums = !plan.yes;
      return plan;
    });
  };
  const auto inside = [](const Regions& regions) {
    std::string names;
    for (const char* name : {"product", "columns", "total"})
      if (over_rows(regions, name)) names += names.empty() ? name : std::string(" ") + name;
    return names;
  };
  EXPECT_EQ(inside(regions_with(13)), "product columns total");
  EXPECT_EQ(inside(regions_with(12)), "columns total");
  const Regions one = regions_with(1);
  EXPECT_EQ(inside(one), "total");
  ASSERT_EQ(one.notes.size(), 2u);
  EXPECT_EQ(one.notes[0].node, "product");
  EXPECT_NE(one.notes[1].text.find("too many for one kernel"), std::string::npos) << one.notes[1].text;
}

// An assign in the middle of the list: whoever read the state before it must still see the old value.
TEST(RegionPass, AStateIsAssignedAfterItsReaders) {
  ir::Graph graph;
  ir::Builder make{graph};
  graph.phases.push_back({"train", kBatchRows, ir::kNoNode});
  make.enter(0);
  const NodeId x = make.add("input", {}, {{"shape", List{kBatchRows, 3}}, {"rows", std::int64_t{1}}});
  const NodeId w = make.add("parameter", {}, {{"shape", List{3}}});
  const NodeId doubled = make.add("add", {w, w});
  const NodeId scaled = make.add("mul", {make.add("exp", {x}), w});  // reads w over rows
  const NodeId total = make.add("sum", {scaled});
  graph[total].keep = true;
  make.add("assign", {w, doubled});
  const Regions regions = regions_of(graph);
  NodeId assign = 0, reader = 0;
  for (NodeId id = 0; id < regions.graph.size(); ++id) {
    if (regions.graph[id].op == Op::assign) assign = id;
    if (regions.graph[id].op == Op::mul) reader = id;
  }
  EXPECT_GT(assign, reader);
  EXPECT_TRUE(std::any_of(regions.graph.regions.begin(), regions.graph.regions.end(),
                          [&](const ir::Region& region) { return assign >= region.stages.back().last; }));
}

TEST(RegionPlan, WhatLivesInATileTakesNoBytesOfTheArena) {
  const ir::Graph plain = RegionStep().graph;
  const Program with = lowered(regions_of(plain).graph), without = lowered(plain);
  EXPECT_LT(with.arena_bytes, without.arena_bytes);
  for (const char* name : {"z", "h"}) {
    EXPECT_EQ(with.buffers[find_buffer(with, name)].kind, BufferKind::tile) << name;
    EXPECT_EQ(without.buffers[find_buffer(without, name)].kind, BufferKind::activation) << name;
  }
  const Region& region = with.phases[0].regions.at(0);
  EXPECT_EQ(tiling_of(with).tile_rows, 112);  // all 100, in whole vectors
  EXPECT_EQ(tiling_of(with).partitions, 1);
  ASSERT_EQ(region.stages[0].combines.size(), 1u);
  EXPECT_EQ(with.buffers[region.stages[0].combines[0].value].name, "dW");
  EXPECT_NE(to_string(with).find("combine dW"), std::string::npos);
}

TEST(RegionPlan, TilesAndPartitionsComeFromShapesAndTarget) {
  const Program a = lowered(regions_of(RegionStep().graph).graph), b = lowered(regions_of(RegionStep().graph).graph);
  EXPECT_EQ(a, b);
  const HostTiling chosen = tiling_of(lowered(regions_of(RegionStep().graph).graph, {7, 3}));
  EXPECT_EQ(chosen.tile_rows, 7);
  EXPECT_EQ(chosen.partitions, 3);
}

// Each number of the target has a say.
TEST(RegionPlan, LimitsAndCostsAreTheTargets) {
  const Target& host = find_target("host");
  const auto tiling = [&](const std::function<void(RegionCosts&)>& change) {
    Target other = host;
    change(other.regions);
    return tiling_of(lowered(regions_of(RegionStep(10000).graph).graph, {}, other));
  };
  const HostTiling usual = tiling([](RegionCosts&) {});
  EXPECT_LT(tiling([](RegionCosts& r) { r.tile_bytes /= 4; }).tile_rows, usual.tile_rows);
  EXPECT_LT(tiling([](RegionCosts& r) { r.partition_work *= 4; }).partitions, usual.partitions);
  EXPECT_EQ(tiling([](RegionCosts& r) { r.max_partitions = 2; }).partitions, 2);
  EXPECT_TRUE(usual.lanes);
  EXPECT_FALSE(tiling([](RegionCosts& r) { r.lane_bytes = 0; }).lanes);
  const auto least = [](RegionCosts& r) {
    r.tile_bytes = 0;
    r.min_rows = 32;
  };
  EXPECT_EQ(tiling(least).tile_rows, 32);

  const auto note = [&](const std::function<void(RegionCosts&)>& change) {
    Target other = host;
    change(other.regions);
    const Regions regions =
        regions_of(RegionStep().graph, [&](const RegionSignature& region) { return on_cpu(region, other); });
    return regions.notes.empty() ? std::string() : regions.notes[0].text;
  };
  EXPECT_EQ(note([](RegionCosts&) {}), "");
  EXPECT_EQ(note([](RegionCosts& r) { r.max_weights = 47; }),
            "a cut: 48 bytes of weights are too many to read for each tile");
  EXPECT_EQ(note([](RegionCosts& r) { r.max_reduced = 47; }),
            "a cut: 48 bytes are too many for the accumulators of a partition");
  EXPECT_EQ(note([](RegionCosts& r) { r.max_row = 15; }), "a cut: 16 bytes of a sample are too many for a tile");
}

TEST(RegionPlan, AnEmptyReducedValueNeedsNoAccumulators) {
  ir::Graph graph;
  ir::Builder make{graph};
  graph.phases.push_back({"train", kBatchRows, ir::kNoNode});
  make.enter(0);
  const NodeId x = make.add("input", {}, {{"shape", List{kBatchRows, 3}}, {"rows", std::int64_t{1}}});
  const NodeId h = make.add("tanh", {x});
  const NodeId none =
      make.add("slice", {h}, {{"axis", std::int64_t{1}}, {"start", std::int64_t{0}}, {"stop", std::int64_t{0}}});
  for (const NodeId id : {make.add("exp", {h}), make.add("sum", {none}, {{"axes", List{0}}})}) graph[id].keep = true;
  RegionOptions options;
  options.plan = always;
  options.only_if_it_saves = false;
  const Program program = lowered(find_regions(graph, options).graph);
  ASSERT_EQ(program.phases[0].regions.size(), 1u);
  EXPECT_EQ(program.phases[0].regions[0].stages[0].combines.size(), 1u);
  EXPECT_EQ(tiling_of(program).accumulator_bytes, 0u);
  check(program);
}

TEST(RegionPlan, AccumulatorsLieSideBySideInWholeLines) {
  RegionStep step;
  step.graph[step.make.add("sum", {step.h}, {{"axes", List{0}}})].keep = true;
  step.graph[step.make.add("sum", {step.h})].keep = true;
  const Program program = lowered(regions_of(step.graph).graph);
  const Region& region = program.phases[0].regions.at(0);
  std::uint64_t end = 0;
  for (const Combine& combine : region.stages.at(0).combines) {
    EXPECT_EQ(combine.offset, end);
    end += program.buffers[combine.value].type.bytes();
  }
  EXPECT_EQ(end, (12 + 4 + 1) * sizeof(float));
  EXPECT_EQ(tiling_of(program).accumulator_bytes, 128u);
}

TEST(RegionPlan, PartitionsAreEqualSharesForTwoAndMoreThreads) {
  std::int32_t before = 1;
  for (const std::int64_t rows : {1, 100, 321, 1000, 1500, 3530, 10000, 40000, 123457, 800000}) {
    SCOPED_TRACE(rows);
    const HostTiling region = tiling_of(lowered(regions_of(RegionStep(rows).graph).graph));
    const std::int64_t partitions = region.partitions;
    EXPECT_EQ(partitions & (partitions - 1), 0) << "a power of two";
    EXPECT_GE(partitions, before);
    EXPECT_LE(partitions, 64);
    EXPECT_TRUE(partitions == 1 || rows >= partitions * 64);
    const std::int64_t tiles = (rows + region.tile_rows - 1) / region.tile_rows;
    EXPECT_GE(tiles, partitions) << "each has work";
    for (std::int64_t s = 0; s < partitions; ++s) {
      const std::int64_t share = (tiles * (s + 1) / partitions - tiles * s / partitions) * region.tile_rows;
      EXPECT_LE(share, rows / partitions * 5 / 4 + 16) << "partition " << s;
    }
    before = region.partitions;
  }
  EXPECT_EQ(before, 64);
  EXPECT_GT(tiling_of(lowered(regions_of(RegionStep(3530).graph).graph)).partitions, 1) << "small work is shared";
}

// Each rule of a Region, broken.
TEST(RegionCheck, BrokenRegionsAreFound) {
  const Program good = lowered(regions_of(RegionStep().graph).graph);
  check(good);
  const auto host = [](Region& region) -> HostTiling& { return std::get<HostTiling>(region.tiling); };
  const auto broken = [&](std::string_view rule, const std::function<void(Program&, Region&)>& change) {
    Program program = good;
    change(program, program.phases[0].regions[0]);
    try {
      check(program);
      ADD_FAILURE() << "not found: " << rule;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(rule), std::string::npos) << error.what();
    }
  };
  broken("region.stages", [](Program&, Region& r) { r.stages.clear(); });
  broken("region.tiling", [](Program&, Region& r) { r.tiling = GpuTiling{256, 1}; });
  broken("region.tiles", [&](Program&, Region& r) { host(r).tile_rows = 0; });
  broken("region.tiles", [&](Program&, Region& r) { host(r).partitions = 0; });
  broken("region.order", [](Program&, Region& r) { r.last = 99; });
  broken("region.order", [](Program&, Region& r) { r.stages[0].rows = r.stages[0].last + 1; });
  broken("region.load", [](Program&, Region& r) { r.stages[0].loads.clear(); });
  broken("region.combine", [](Program&, Region& r) { r.stages[0].combines.clear(); });
  broken("region.combine", [](Program&, Region& r) { r.stages[0].combines.push_back(r.stages[0].combines[0]); });
  broken("region.accumulators", [&](Program&, Region& r) { host(r).accumulator_bytes = 16; });
  broken("region.accumulators", [&](Program&, Region& r) { host(r).partitions = 1000; });
  broken("region.accumulators", [&](Program&, Region& r) { host(r).accumulator_bytes -= 4; });
  broken("region.accumulators", [](Program&, Region& r) { r.stages[0].combines[0].offset += 2; });
  broken("region.accumulators", [](Program& p, Region& r) {  // in the place of another
    Combine second = r.stages[0].combines[0];
    second.value = find_buffer(p, "W");
    r.stages[0].combines.push_back(second);
  });
  broken("region.accumulators", [](Program& p, Region& r) {  // partial results where the sum goes
    Buffer& value = p.buffers[p.buffers[r.stages[0].combines[0].value].storage];
    p.buffers[r.accumulators].offset = value.offset;
  });
  broken("region.inside_tile", [&](Program&, Region& r) { host(r).tile_bytes = 64; });
  broken("region.inside_tile", [&](Program&, Region& r) { host(r).tile_rows = 1000; });
  broken("region.in_place", [](Program& p, Region& r) {  // its data lie in rows
    p.buffers[r.stages[0].loads[0].tile].layout = Layout::vectors;
  });
  const auto added = [](Program& p, const Buffer& buffer) {
    p.buffers.push_back(buffer);
    p.buffers.back().storage = static_cast<BufferId>(p.buffers.size() - 1);
    return p.buffers.back().storage;
  };
  broken("region.combine", [&](Program& p, Region& r) {  // partial results of two types
    Buffer wide = p.buffers[find_buffer(p, "W")];
    wide.type = {DType::f64, {6}, 0};
    Combine second = r.stages[0].combines[0];
    second.value = added(p, wide);
    r.stages[0].combines.push_back(second);
  });
  broken("region.accumulators", [&](Program& p, Region& r) {  // one set for two, and the rows read where the sum goes
    host(r).partitions = 2;
    p.buffers[r.accumulators].bytes = host(r).accumulator_bytes;
    check(p);
    Buffer weights = p.buffers[find_buffer(p, "W")];
    weights.offset = p.buffers[p.buffers[r.stages[0].combines[0].value].storage].offset;
    for (BufferId& input : p.phases[0].steps[r.stages[0].rows].inputs)
      if (input == find_buffer(p, "W")) input = added(p, weights);
  });
  broken("region.move", [&](Program& p, Region& r) {  // from a workspace, whose bytes no type bounds
    Buffer workspace = p.buffers[r.stages[0].loads[0].arena];
    workspace.kind = BufferKind::workspace;
    workspace.bytes = 0;
    r.stages[0].loads[0].arena = added(p, workspace);
  });
  broken("row_count", [&](Program& p, Region& r) {  // in a tile, whose place nothing bounds
    Buffer count = p.buffers[r.stages[0].loads[0].tile];
    count.type = {DType::i32, {1}, 1};
    count.offset = std::uint64_t{1} << 40;
    p.phases[0].steps[r.stages[0].rows].row_count = added(p, count);
  });
  broken("tile", [](Program& p, Region& r) {  // more features in place than there are
    const BufferId data = r.stages[0].loads[0].tile;
    p.buffers[data].layout = Layout::vectors;
    Buffer wide = p.buffers[data];
    wide.storage = data;
    wide.type.shape = {wide.type.shape[0], 100};
    p.buffers.push_back(wide);
  });
  broken("rule 'tile'", [](Program& p, Region&) { p.buffers[find_buffer(p, "h")].layout = Layout::vectors; });
  broken("region.tile", [](Program& p, Region&) { p.phases[0].regions.clear(); });
  broken("region.order", [](Program& p, Region& r) { p.phases[0].regions.push_back(Region(r)); });
  broken("tile", [](Program& p, Region&) { p.buffers[find_buffer(p, "h")].storage = find_buffer(p, "x"); });
}

}  // namespace
}  // namespace graphrun
