// What makes a plan smaller, on small graphs built by hand: what may come again, and where.
#include <gtest/gtest.h>

#include <set>

#include "compiler/budget/fit_memory.h"
#include "compiler/budget/orders.h"
#include "graph/builder.h"
#include "graph/verifier.h"
#include "graphrun/op.h"

namespace graphrun::plan {
namespace {

using ir::NodeId;

constexpr std::int64_t kWide = 256;  // elements of a value: 1024 bytes

struct MemoryGraph {
  ir::Graph graph;
  ir::Builder make{graph};
  CompileOptions options;
  std::uint64_t workspace = 0, spare = 0;  // of each product

  MemoryGraph() {
    graph.phases.push_back({"train", 4, ir::kNoNode});
    make.enter(0);
    options.name = "test";
    options.target = "host";
    options.supports = [this](const StepSignature& step) {
      Support support = Support::with_workspace(step.op == Op::matmul ? workspace : 0);
      support.spare_workspace_bytes = step.op == Op::matmul ? spare : 0;
      return support;
    };
  }
  NodeId add(const std::string& op, std::vector<NodeId> inputs, const AttrList& attrs = {}) {
    return make.add(op, std::move(inputs), attrs);
  }
  NodeId parameter(std::vector<std::int64_t> shape = {kWide}) {
    return add("parameter", {}, {{"shape", std::move(shape)}});
  }
  NodeId sum(NodeId value) { return add("sum", {value}, {{"axes", std::vector<std::int64_t>{0}}}); }
  void keep(NodeId id) { graph[id].keep = true; }
  Plan fit(std::uint64_t bytes) {
    options.max_memory = bytes;
    verify(graph);
    Plan fitted = plan_arena(graph, options);
    if (bytes > 0 && fitted.budget.bytes_before > bytes) fitted = fit_memory(std::move(fitted), options);
    verify(fitted.graph);
    return fitted;
  }
  std::uint64_t bytes() { return fit(0).budget.bytes_before; }
};

std::vector<std::string> recomputed_in(const Plan& fitted) {
  std::vector<std::string> values;
  for (const RecomputedValue& one : fitted.budget.recomputed) values.push_back(one.value + " before " + one.step);
  return values;
}

// early is needed at the end, and much else in between.
struct Late {
  NodeId state, early, end;
  explicit Late(MemoryGraph& g, const std::string& op = "exp") {
    state = g.parameter();
    early = g.add(op, {state});
    g.make.rename(early, "early");
    g.keep(g.sum(early));
    NodeId a = g.add("sin", {state}), b = g.add("cos", {state});
    g.keep(g.sum(g.add("mul", {a, b})));
    end = g.sum(g.add("mul", {early, g.add("tanh", {state})}));
    g.make.rename(end, "end");
    g.keep(end);
  }
};

TEST(FitMemory, ComputesAgainWhatIsNeededLate) {
  MemoryGraph g;
  Late late(g);
  const std::uint64_t before = g.bytes();
  const Plan fitted = g.fit(before - 512);
  ASSERT_EQ(fitted.budget.recomputed.size(), 1u);
  EXPECT_EQ(fitted.budget.recomputed[0].value, "early");
  EXPECT_EQ(fitted.budget.recomputed[0].bytes, 1024u);
  EXPECT_EQ(fitted.graph.size(), g.graph.size() + 1);
  EXPECT_EQ(fitted.budget.bytes_before, before);
  std::set<std::string> names;
  for (const ir::Node& node : fitted.graph.nodes) EXPECT_TRUE(names.insert(node.name).second) << node.name;
  EXPECT_EQ(names.count("early:again"), 1u);
  EXPECT_EQ(fitted.graph[fitted.ids[late.end]].name, "end") << "ids lead to what there was";
}

TEST(FitMemory, DoesNothingThatIsNotNeeded) {
  MemoryGraph g;
  Late late(g);
  const std::uint64_t before = g.bytes();
  const Plan fitted = g.fit(before);
  EXPECT_FALSE(fitted.budget.is_changed());
  EXPECT_EQ(ir::to_string(fitted.graph), ir::to_string(g.graph));
}

// What was read has another value by then.
TEST(FitMemory, NotAfterItsStateWasWritten) {
  MemoryGraph g;
  const NodeId state = g.parameter(), other = g.parameter();
  const NodeId early = g.add("exp", {state});
  g.keep(g.sum(early));
  g.add("assign", {state, g.add("neg", {state})});
  g.keep(g.sum(g.add("mul", {g.add("sin", {other}), g.add("cos", {other})})));
  g.keep(g.sum(g.add("mul", {early, g.add("tanh", {other})})));
  const Plan fitted = g.fit(g.bytes() - 1024);
  EXPECT_EQ(recomputed_in(fitted), std::vector<std::string>{});
}

// What is cheap comes first.
TEST(FitMemory, AProductWhereNothingElseHelps) {
  MemoryGraph g;
  const NodeId a = g.parameter({16, 16}), b = g.parameter({16, 16});
  const NodeId early = g.add("matmul", {a, b});
  g.make.rename(early, "early");
  const NodeId total = g.sum(early);
  g.keep(total);
  g.keep(g.sum(g.add("mul", {g.add("mul", {a, total}), g.add("add", {a, total})})));
  g.keep(g.sum(g.add("mul", {early, g.add("tanh", {a})})));
  const Plan fitted = g.fit(g.bytes() - 256);
  ASSERT_EQ(fitted.budget.recomputed.size(), 1u);
  EXPECT_EQ(fitted.budget.recomputed[0].value, "early");
}

// A chain of two comes again where the first of them is gone.
TEST(FitMemory, WhatItNeedsComesAgainToo) {
  MemoryGraph g;
  const NodeId state = g.parameter();
  const NodeId first = g.add("sin", {state});
  const NodeId early = g.add("exp", {first});
  const NodeId total = g.sum(early);  // which what follows waits for
  g.keep(total);
  g.keep(g.sum(g.add("mul", {g.add("mul", {state, total}), g.add("add", {state, total})})));
  g.keep(g.sum(g.add("mul", {early, g.add("tanh", {state})})));
  EXPECT_EQ(recomputed_in(g.fit(g.bytes() - 512)).size(), 2u);
}

TEST(FitMemory, WorkspacesShrinkFirst) {
  MemoryGraph g;
  g.workspace = 8192;
  g.spare = 8192 - 512;
  const NodeId a = g.parameter({16, 16});
  g.keep(g.sum(g.add("matmul", {a, a})));
  const std::uint64_t before = g.bytes();
  Plan fitted = g.fit(before - 1024);
  ASSERT_EQ(fitted.budget.workspaces.size(), 1u);
  EXPECT_EQ(fitted.budget.workspaces[0].bytes, 8192u - 1024);
  EXPECT_FALSE(fitted.budget.reordered);
  EXPECT_EQ(g.fit(before - 8192 + 512).budget.workspaces.at(0).bytes, 512u);
  fitted = g.fit(1);
  EXPECT_EQ(fitted.budget.workspaces.at(0).bytes, 512u) << "the least there is, where nothing fits";
}

// All values are made before the first is used; the other order has one at a time.
TEST(FitMemory, AnotherOrderHoldsLess) {
  MemoryGraph g;
  const NodeId a = g.parameter({16, 16});
  std::vector<NodeId> values;
  for (int i = 0; i < 6; ++i) values.push_back(g.add("matmul", {a, a}, {{"transpose_a", i % 2 == 1}}));
  for (const NodeId value : values) g.keep(g.sum(value));
  const std::uint64_t before = g.bytes();
  const Plan fitted = g.fit(before - 3 * 1024);
  EXPECT_TRUE(fitted.budget.reordered);
  EXPECT_TRUE(fitted.budget.recomputed.empty());
  EXPECT_LE(fitted.arena.packing.height + 1024, before - 3 * 1024);
}

// Each order is one: operands first, old values read before they are overwritten, and all nodes in it.
TEST(StepOrder, KeepsWhatIsRead) {
  MemoryGraph g;
  const NodeId w = g.parameter(), v = g.parameter();
  const NodeId ring = g.add("state", {}, {{"shape", std::vector<std::int64_t>{4}}, {"kind", std::string("metric")}});
  const NodeId step = g.add("state", {}, {{"dtype", std::string("u64")}, {"kind", std::string("counter")}});
  const NodeId old = g.add("exp", {w});
  const NodeId next = g.add("sub", {w, v});
  const NodeId written = g.add("assign", {w, next});
  const NodeId after = g.add("sin", {w});  // of the new value
  g.keep(after);
  g.keep(g.sum(old));
  const NodeId record = g.add("record", {ring, g.sum(v), step});
  g.add("assign", {ring, record});
  const NodeId counted = g.add("increment", {step});
  const NodeId stepped = g.add("assign", {step, counted});
  verify(g.graph);
  const Layouts layouts = lay_out(g.graph, g.options);
  for (const std::vector<NodeId>& order : other_orders(g.graph, layouts)) {
    ASSERT_EQ(order.size(), g.graph.size());
    std::vector<std::size_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    for (NodeId id = 0; id < g.graph.size(); ++id)
      for (const NodeId input : g.graph[id].inputs) EXPECT_LT(place[input], place[id]);
    EXPECT_LT(place[old], place[written]);
    EXPECT_LT(place[written], place[after]);
    EXPECT_LT(place[record], place[stepped]);
  }
}

}  // namespace
}  // namespace graphrun::plan
