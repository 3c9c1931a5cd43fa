// What products of regions take along: which steps, which not and why, and that the numbers stay what they were.
#include "executors/cpu/fused_products.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>

#include "compiler/regions.h"
#include "executors/cpu/cpu_executor.h"
#include "graph/builder.h"
#include "graphrun/op.h"
#include "kernels/cpu/cpu_kernels.h"
#include "support/graph_run.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

using ir::NodeId;
using Extents = std::vector<std::int64_t>;

constexpr std::int64_t kRows = 70;

// A graph of one phase whose values have names.
struct Net {
  ir::Graph graph;
  ir::Builder make{graph};
  std::map<std::string, NodeId> nodes;

  Net() {
    graph.phases.push_back({"train", kRows, ir::kNoNode});
    make.enter(0);
  }
  NodeId operator[](const std::string& name) const { return nodes.at(name); }
  void named(const std::string& name, NodeId id) {
    make.rename(id, name);
    nodes[name] = id;
  }
  void input(const std::string& name, std::int64_t width) {
    named(name, make.add("input", {}, {{"shape", Extents{kRows, width}}, {"rows", std::int64_t{1}}}));
  }
  void parameter(const std::string& name, const Extents& shape) {
    named(name, make.add("parameter", {}, {{"shape", shape}}));
  }
  void step(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
            const AttrList& attributes = {}) {
    std::vector<NodeId> ids;
    for (const std::string& input : inputs) ids.push_back(nodes.at(input));
    named(name, make.add(op, ids, attributes));
  }
  void keep(const std::string& name) { graph[nodes.at(name)].keep = true; }
};

ir::Graph in_regions(const ir::Graph& graph) {
  const CpuExecutor cpu;
  RegionOptions options;
  options.supports = [&](const RegionSignature& region) { return cpu.supports_region(region, find_target("host")); };
  options.only_if_it_saves = false;
  return find_regions(graph, options).graph;
}

Program program_of(const ir::Graph& graph) {
  return lower_for(in_regions(graph), CpuExecutor()).program;
}

// "product + bias, op" for each product that takes something along, in the order in which they run.
std::vector<std::string> fused(const Program& program) {
  std::vector<std::string> result;
  const Phase& phase = program.phases[0];
  for (const Region& region : phase.regions) {
    for (const Stage& stage : region.stages) {
      std::uint32_t taken = 0, takes = 0;
      for (const FusedProduct& product : fuse_products(phase, stage, program)) {
        taken += product.taken ? 1 : 0;
        if (product.product == kNoStep) continue;
        takes += (product.bias != kNoBuffer ? 1u : 0u) + (product.epilogue != kNoStep ? 1u : 0u);
        std::string text = phase.steps[product.product].name;
        if (product.bias != kNoBuffer) text += " + " + program.buffers[product.bias].name;
        if (product.epilogue != kNoStep) text += ", " + std::string(name_of(phase.steps[product.epilogue].op));
        result.push_back(text);
      }
      EXPECT_EQ(taken, takes);  // each step runs once
    }
  }
  return result;
}
std::vector<std::string> fused(const Net& net) {
  return fused(program_of(net.graph));
}

using Fused = std::vector<std::string>;

// A layer, its activation and what is made of it.
Net layer(const std::string& activation, std::int64_t inputs = 3) {
  Net net;
  net.input("x", inputs);
  net.parameter("w", {inputs, 5});
  net.parameter("b", {5});
  net.step("xw", "matmul", {"x", "w"});
  net.step("z", "add", {"xw", "b"});
  net.step("h", activation, {"z"});
  net.step("total", "sum", {"h"});
  net.keep("total");
  return net;
}

// The gradient of two layers: between the product dh and its only reader stands the gradient of the weights.
Net two_layers(const std::string& activation) {
  Net net;
  net.input("x", 3);
  net.input("t", 4);
  net.parameter("w", {3, 20});
  net.parameter("b", {20});
  net.parameter("v", {20, 4});
  net.parameter("c", {4});
  net.step("xw", "matmul", {"x", "w"});
  net.step("z", "add", {"xw", "b"});
  net.step("h", activation, {"z"});
  net.step("hv", "matmul", {"h", "v"});
  net.step("y", "add", {"hv", "c"});
  net.step("g", "sub", {"y", "t"});
  net.step("dh", "matmul", {"g", "v"}, {{"transpose_b", true}});
  net.step("dv", "matmul", {"h", "g"}, {{"transpose_a", true}});
  net.step("dz", activation + "_gradient", {"h", "dh"});
  net.step("db", "sum", {"dz"}, {{"axes", Extents{0}}});
  net.step("dw", "matmul", {"x", "dz"}, {{"transpose_a", true}});
  net.step("dx", "matmul", {"dz", "w"}, {{"transpose_b", true}});
  for (const char* name : {"dv", "db", "dw", "dx"}) net.keep(name);
  return net;
}

TEST(FusedProducts, ProductsTakeBiasActivationAndGradient) {
  EXPECT_EQ(fused(two_layers("relu")), (Fused{"xw + b, relu", "hv + c, sub", "dh, relu_gradient"}));
  // tanh is dear: a step of its own; its gradient is not.
  EXPECT_EQ(fused(two_layers("tanh")), (Fused{"xw + b", "hv + c, sub", "dh, tanh_gradient"}));
  EXPECT_EQ(fused(two_layers("sigmoid")), (Fused{"xw + b", "hv + c, sub", "dh, sigmoid_gradient"}));
}

// ---- what is left alone

TEST(FusedProducts, WhatIsStoredIsNotTaken) {
  Net net = layer("relu");
  EXPECT_EQ(fused(net), Fused{"xw + b, relu"});
  net.keep("h");  // the last one may be
  EXPECT_EQ(fused(net), Fused{"xw + b, relu"});
  net.keep("z");
  EXPECT_EQ(fused(net), Fused{"xw + b"});
  net.keep("xw");
  EXPECT_EQ(fused(net), Fused{});
}

TEST(FusedProducts, WhatOthersReadIsNotTaken) {
  Net net = layer("relu");
  net.step("more", "sum", {"z"});
  net.keep("more");
  EXPECT_EQ(fused(net), Fused{"xw + b"});
  net.step("most", "sum", {"xw"});
  net.keep("most");
  EXPECT_EQ(fused(net), Fused{});
}

TEST(FusedProducts, AReaderThatReadsTwiceIsNotTaken) {
  Net net;
  net.input("x", 3);
  net.parameter("w", {3, 5});
  net.step("xw", "matmul", {"x", "w"});
  net.step("y", "mul", {"xw", "xw"});
  net.step("total", "sum", {"y"});
  net.keep("total");
  EXPECT_EQ(fused(net), Fused{});
}

TEST(FusedProducts, TheProductMustBeTheGradientNotTheValue) {
  Net net;
  net.input("x", 3);
  net.input("g", 5);
  net.parameter("w", {3, 5});
  net.step("xw", "matmul", {"x", "w"});
  net.step("dz", "relu_gradient", {"xw", "g"});
  net.step("total", "sum", {"dz"});
  net.keep("total");
  EXPECT_EQ(fused(net), Fused{});
}

TEST(FusedProducts, OtherShapesAreNotTaken) {
  Net net;
  net.input("x", 3);
  net.input("column", 1);
  net.parameter("w", {3, 5});
  net.step("xw", "matmul", {"x", "w"});
  net.step("y", "mul", {"xw", "column"});
  net.step("total", "sum", {"y"});
  net.keep("total");
  EXPECT_EQ(fused(net), Fused{});
}

// The operand g of dh is overwritten before dz is due.
TEST(FusedProducts, AnOperandThatIsGoneIsNotWaitedFor) {
  Program program = program_of(two_layers("relu").graph);
  ASSERT_EQ(fused(program).size(), 3u);
  const auto buffer = [&](const std::string& name) -> Buffer& {
    for (Buffer& b : program.buffers)
      if (b.kind == BufferKind::tile && b.name == name) return b;
    throw std::logic_error("no buffer " + name);
  };
  Buffer& g = buffer("g");
  Buffer& dz = buffer("dz");
  const std::uint64_t place = dz.offset;
  dz.offset = g.offset;
  EXPECT_EQ(fused(program), (Fused{"xw + b, relu", "hv + c, sub"}));
  dz.offset = place;
  EXPECT_EQ(fused(program).size(), 3u);
}

// Nor where a value that is loaded on the way has taken the operand's place.
TEST(FusedProducts, AnOperandThatALoadReplacesIsNotWaitedFor) {
  Net net;
  net.input("x", 3);
  net.input("u", 5);
  net.input("late", 3);
  net.parameter("w", {3, 5});
  net.step("h", "tanh", {"u"});
  net.step("xw", "matmul", {"x", "w"});
  net.step("between", "tanh", {"late"});
  net.step("dz", "tanh_gradient", {"h", "xw"});
  net.step("dw", "matmul", {"x", "dz"}, {{"transpose_a", true}});  // x stays where it is until then
  net.step("total", "sum", {"between"});
  for (const char* name : {"dw", "total"}) net.keep(name);
  Program program = program_of(net.graph);
  ASSERT_EQ(fused(program), Fused{"xw, tanh_gradient"});
  std::map<std::string, Buffer*> loaded;
  for (const TileMove& load : program.phases[0].regions.at(0).stages[0].loads)
    loaded[program.buffers[load.arena].name] = &program.buffers[load.tile];
  ASSERT_TRUE(loaded.count("x") == 1 && loaded.count("late") == 1);
  loaded["late"]->offset = loaded["x"]->offset;
  EXPECT_EQ(fused(program), Fused{});
}

// A product of more than one block of k adds to what it has stored: never to where the other operand lies.
TEST(FusedProducts, LongProductsDoNotOverwriteTheOtherOperand) {
  for (const std::int64_t k : {256, 257}) {
    Net net;
    net.input("x", k);
    net.input("u", 5);
    net.parameter("w", {k, 5});
    net.step("h", "relu", {"u"});
    net.step("xw", "matmul", {"x", "w"});
    net.step("dz", "relu_gradient", {"h", "xw"});
    net.step("total", "sum", {"dz"});
    net.keep("total");
    EXPECT_EQ(fused(net), k == 256 ? Fused{"xw, relu_gradient"} : Fused{}) << k;
    EXPECT_EQ(fused(layer("relu", k)), Fused{"xw + b, relu"}) << k;
  }
}

// ---- the same numbers

class EachIsa : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (const char* before = std::getenv("GRAPHRUN_ISA")) saved_ = before;
    ::setenv("GRAPHRUN_ISA", std::string(name_of(GetParam())).c_str(), 1);
  }
  void TearDown() override {
    if (saved_.empty()) {
      ::unsetenv("GRAPHRUN_ISA");
    } else {
      ::setenv("GRAPHRUN_ISA", saved_.c_str(), 1);
    }
  }

 private:
  std::string saved_;
};

std::vector<std::byte> result(const Net& net, const ir::Graph& graph, const std::string& name) {
  GraphRun run(graph, std::make_shared<CpuExecutor>());
  std::map<std::string, NodeId> ids;
  for (NodeId id = 0; id < graph.size(); ++id) ids[graph[id].name] = id;
  for (const auto& [input, id] : net.nodes) {
    const ir::Node& node = net.graph[id];
    if (node.op == Op::input || node.op == Op::parameter)
      run.write(ids.at(input), random_tensor(DType::f32, node.type.shape, -1, 1, input));
  }
  run.run();
  const HostTensor tensor = run.read(ids.at(name));
  return {tensor.bytes().begin(), tensor.bytes().end()};
}

TEST_P(EachIsa, RowsHaveTheBitsOfPlainSteps) {
  for (const char* activation : {"relu", "tanh", "sigmoid"}) {
    const Net net = two_layers(activation);
    EXPECT_EQ(result(net, in_regions(net.graph), "dx"), result(net, net.graph, "dx")) << activation;
  }
  Net net = layer("relu", 300);
  net.keep("h");
  EXPECT_EQ(result(net, in_regions(net.graph), "h"), result(net, net.graph, "h"));
}

INSTANTIATE_TEST_SUITE_P(Isas, EachIsa, ::testing::ValuesIn(available_isas()),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

}  // namespace
}  // namespace graphrun::test
