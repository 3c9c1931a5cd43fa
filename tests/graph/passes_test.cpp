// The passes and the verifier, rule by rule.
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/verifier.h"
#include "graphrun/op.h"
#include "support/passes.h"

namespace graphrun {
namespace {

using ir::NodeId;

struct PassFixture : testing::Test {
  ir::Graph graph;
  ir::Builder make{graph};
  NodeId x = 0;
  NodeId w = 0;

  PassFixture() {
    graph.phases.push_back({"train", 4, ir::kNoNode});
    make.enter(0);
    x = make.add("input", {}, {{"shape", std::vector<std::int64_t>{4, 3}}, {"rows", std::int64_t{1}}});
    w = make.add("parameter", {}, {{"shape", std::vector<std::int64_t>{3}}});
  }
  NodeId keep(NodeId id) {
    graph[id].keep = true;
    return id;
  }
  std::string broken() {
    try {
      verify(graph);
    } catch (const std::logic_error& error) {
      return error.what();
    }
    return "";
  }
};
using Simplify = PassFixture;
using Verifier = PassFixture;

int count(const ir::Graph& graph, std::string_view op) {
  int n = 0;
  for (const ir::Node& node : graph.nodes) n += name_of(node.op) == op;
  return n;
}

TEST_F(Simplify, EqualNodesAreComputedOnce) {
  const NodeId a = make.add("tanh", {x});
  const NodeId b = make.add("tanh", {x});
  keep(make.add("add", {a, b}));
  EXPECT_EQ(count(run_passes(graph), "tanh"), 1);
}

// As heads of attention are: rows stay where they are, and the product takes the turned matrices by its flags.
TEST_F(Simplify, ATransposedOperandOfRowsIsAFlagOfTheProduct) {
  const NodeId q = make.add("input", {}, {{"shape", std::vector<std::int64_t>{4, 3, 5}}, {"rows", std::int64_t{1}}});
  const NodeId turned = make.add("transpose", {q}, {{"axes", std::vector<std::int64_t>{0, 2, 1}}});
  const NodeId m = make.add("parameter", {}, {{"shape", std::vector<std::int64_t>{3, 2}}});
  const NodeId left = keep(make.add("matmul", {turned, m})), right = keep(make.add("matmul", {q, turned}));
  const TensorType types[] = {graph[left].type, graph[right].type};
  const ir::Graph after = run_passes(graph);
  EXPECT_EQ(count(after, "transpose"), 0);
  int products = 0;
  for (const ir::Node& node : after.nodes) {
    if (node.op != Op::matmul) continue;
    EXPECT_EQ(node.type, types[products]);
    EXPECT_EQ(node.attrs.boolean("transpose_a"), products == 0);
    EXPECT_EQ(node.attrs.boolean("transpose_b"), products == 1);
    ++products;
  }
  EXPECT_EQ(products, 2);
}

TEST_F(Simplify, NodesOfDifferentAttributesStayApart) {
  const NodeId a = make.add("leaky_relu", {x}, {{"slope", 0.1}});
  const NodeId b = make.add("leaky_relu", {x}, {{"slope", 0.2}});
  keep(make.add("add", {a, b}));
  EXPECT_EQ(count(run_passes(graph), "leaky_relu"), 2);
}

TEST_F(Simplify, AnElementwiseReaderBroadcastsByItself) {
  const NodeId wide =
      make.add("broadcast_to", {w}, {{"shape", std::vector<std::int64_t>{4, 3}}, {"rows", std::int64_t{1}}});
  keep(make.add("mul", {x, wide}));
  const ir::Graph result = run_passes(graph);
  EXPECT_EQ(count(result, "broadcast_to"), 0);
  EXPECT_EQ(result.nodes.back().type.rows, 1);
}

TEST_F(Simplify, ANumberThatIsRepeatedIsReadAsItIsThroughAReshape) {
  const auto shown = [&](NodeId of) {
    return make.add("reshape", {make.add("broadcast_to", {of}, {{"shape", std::vector<std::int64_t>{2, 3}}})},
                    {{"shape", std::vector<std::int64_t>{6}}});
  };
  const NodeId six = make.add("parameter", {}, {{"shape", std::vector<std::int64_t>{6}}});
  keep(make.add("mul", {six, shown(make.scalar(2, DType::f32))}));
  EXPECT_EQ(count(run_passes(graph), "broadcast_to"), 0);
  keep(make.add("mul", {six, shown(w)}));
  EXPECT_EQ(count(run_passes(graph), "broadcast_to"), 1) << "three numbers are not one";
}

TEST_F(Simplify, ABroadcastThatGivesTheShapeStays) {
  const NodeId wide =
      make.add("broadcast_to", {w}, {{"shape", std::vector<std::int64_t>{4, 3}}, {"rows", std::int64_t{1}}});
  keep(make.add("tanh", {wide}));
  EXPECT_EQ(count(run_passes(graph), "broadcast_to"), 1);
}

TEST_F(Simplify, WhatIsOnlyRepeatedIsComputedOnce) {
  const AttrList rows = {{"shape", std::vector<std::int64_t>{4, 3}}, {"rows", std::int64_t{1}}};
  const NodeId wide = make.add("broadcast_to", {w}, rows);
  const NodeId number = make.add("broadcast_to", {make.scalar(2, DType::f32)}, rows);
  const NodeId y = make.add("mul", {make.add("neg", {wide}), number});
  keep(make.add("add", {x, make.add("exp", {y})}));
  const ir::Graph result = run_passes(graph);
  EXPECT_EQ(count(result, "broadcast_to"), 0) << to_string(result);
  for (const ir::Node& node : result.nodes) {
    if (node.op == *find_op("neg") || node.op == Op::mul || node.op == *find_op("exp")) {
      EXPECT_EQ(to_string(node.type), "f32(3)") << name_of(node.op);
    }
  }
}

TEST_F(Simplify, DropoutWithRateZeroIsItsOperand) {
  const NodeId step = make.add("state", {}, {{"dtype", std::string("u64")}, {"kind", std::string("counter")}});
  const auto dropout = [&](double rate) {
    return make.add("dropout", {make.add("tanh", {x}), step}, {{"rate", rate}, {"key", std::int64_t{7}}});
  };
  keep(make.add("neg", {dropout(0)}));
  EXPECT_EQ(count(run_passes(graph), "dropout"), 0);
  keep(make.add("neg", {dropout(0.25)}));
  EXPECT_EQ(count(run_passes(graph), "dropout"), 1);
}

TEST_F(Simplify, AKeptValueIsComputedAsItStands) {
  const NodeId wide =
      make.add("broadcast_to", {w}, {{"shape", std::vector<std::int64_t>{4, 3}}, {"rows", std::int64_t{1}}});
  const NodeId y = keep(make.add("neg", {wide}));
  make.rename(y, "y");
  const ir::Graph result = run_passes(graph);
  EXPECT_EQ(result.nodes.back().op, *find_op("neg"));
  EXPECT_EQ(result.nodes.back().name, "y");
}

TEST_F(Simplify, DeadNodesGoAndStatesStay) {
  make.add("tanh", {x});
  const ir::Graph result = run_passes(graph);
  EXPECT_EQ(result.size(), 2u);
}

TEST_F(Simplify, TheStatesOfTwoParametersAreNotOne) {
  const NodeId v = make.add("parameter", {}, {{"shape", std::vector<std::int64_t>{3}}});
  keep(make.add("add", {v, w}));
  EXPECT_EQ(count(run_passes(graph), "parameter"), 2);
}

TEST_F(Verifier, AcceptsAGoodGraph) {
  keep(make.add("mul", {x, w}));
  EXPECT_EQ(broken(), "");
}

TEST_F(Verifier, NamesTheRuleAndTheNode) {
  const NodeId y = make.add("tanh", {x});
  make.rename(y, "y");
  const ir::Graph good = graph;

  graph[y].inputs[0] = y;
  EXPECT_EQ(broken(), "verifier: order: y (tanh): reads a node that comes after it");
  graph = good;
  graph[y].type.shape = {4, 4};
  EXPECT_EQ(broken(), "verifier: type: y (tanh): is f32(batch, 4), inference says f32(batch, 3)");
  graph = good;
  graph[y].name = graph[x].name;
  EXPECT_EQ(broken().substr(0, 14), "verifier: name");
  graph = good;
  graph[y].inputs.push_back(x);
  EXPECT_EQ(broken(), "verifier: arity: y (tanh): wrong number of inputs");
  graph = good;
  graph[y].phase = 7;
  EXPECT_EQ(broken(), "verifier: phase: y (tanh): no such phase");
  graph = good;
  graph.phases[0].capacity = 5;
  EXPECT_EQ(broken(), "verifier: rows: y (tanh): dimension 0 of f32(batch, 3) is not its rows times the capacity");
  graph = good;
  graph.phases[0].row_count = y;
  EXPECT_EQ(broken(), "verifier: count: phase train: row_count must be an i32 scalar");
}

TEST_F(Verifier, FindsAStateAssignedTwice) {
  make.add("assign", {w, make.add("neg", {w})});
  EXPECT_EQ(broken(), "");
  make.add("assign", {w, make.add("exp", {w})});
  EXPECT_EQ(broken(), "verifier: effect: assign_2 (assign): assigns a state twice in a phase");
}

}  // namespace
}  // namespace graphrun
