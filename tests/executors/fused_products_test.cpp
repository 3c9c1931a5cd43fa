// Which steps of a region are fused with a product, which not and why, that what lies between has no bytes, and that
// the numbers stay what they were.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>

#include "compiler/passes.h"
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

constexpr std::int64_t kProductRows = 70;

// A graph of one phase whose values have names.
struct Net {
  ir::Graph graph;
  ir::Builder make{graph};
  std::map<std::string, NodeId> nodes;

  Net() {
    graph.phases.push_back({"train", kProductRows, ir::kNoNode});
    make.enter(0);
  }
  NodeId operator[](const std::string& name) const { return nodes.at(name); }
  void named(const std::string& name, NodeId id) {
    make.rename(id, name);
    nodes[name] = id;
  }
  void input(const std::string& name, std::int64_t width) {
    named(name, make.add("input", {}, {{"shape", Extents{kProductRows, width}}, {"rows", std::int64_t{1}}}));
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

ir::Graph in_regions(const ir::Graph& graph, bool with_fusion = true) {
  const CpuExecutor cpu;
  RegionOptions options;
  options.plan = [&](const RegionSignature& region) { return cpu.region_choices(region, find_target("host")); };
  options.only_if_it_saves = false;
  ir::Graph regions = find_regions(graph, options).graph;
  return with_fusion ? fuse(std::move(regions), options) : regions;
}

Program program_of(const ir::Graph& graph) {
  return lower_for(in_regions(graph), CpuExecutor()).program;
}

// "product + bias, op" for each product that is fused, in the order in which they are due.
std::vector<std::string> fused(const Program& program) {
  std::map<std::uint32_t, std::string> due;
  const Phase& phase = program.phases[0];
  for (const Region& region : phase.regions) {
    for (const Stage& stage : region.stages) {
      for (const FusedSteps& steps : stage.fused) {
        if (steps.sum != kNoStep) continue;
        std::string text = phase.steps[steps.product].name;
        if (steps.bias != kNoStep) text += " + " + program.buffers[phase.steps[steps.bias].inputs[1]].name;
        if (steps.epilogue != kNoStep) text += ", " + std::string(name_of(phase.steps[steps.epilogue].op));
        due[steps.last()] = text;
      }
    }
  }
  std::vector<std::string> result;
  for (const auto& [step, text] : due) result.push_back(text);
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

// ---- memory

const Buffer& tile_buffer(const Program& program, const std::string& name) {
  for (const Buffer& b : program.buffers)
    if (b.kind == BufferKind::tile && b.name == name) return b;
  throw std::logic_error("no buffer " + name);
}
bool meet(const Buffer& a, const Buffer& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

TEST(FusedProducts, WhatLiesBetweenHasNoBytes) {
  const Program program = program_of(two_layers("relu").graph);
  for (const char* name : {"xw", "z", "hv", "y", "dh"}) {
    EXPECT_EQ(tile_buffer(program, name).bytes, 0u) << name;
    EXPECT_EQ(tile_buffer(program, name).layout, graphrun::Layout::registers) << name;
  }
  for (const char* name : {"h", "g", "dz"}) EXPECT_GT(tile_buffer(program, name).bytes, 0u) << name;
  const Program plain = lower_for(in_regions(two_layers("relu").graph, false), CpuExecutor()).program;
  const auto tiling_of = [](const Program& of) { return std::get<HostTiling>(of.phases[0].regions[0].tiling); };
  EXPECT_LT(tiling_of(program).tile_bytes, tiling_of(plain).tile_bytes);
  EXPECT_EQ(tiling_of(program).tile_rows, tiling_of(plain).tile_rows);
}

// dz = relu_gradient(h, dh) runs dh = g V^T: g stays until then, though dh itself comes earlier; dz may lie where h is.
TEST(FusedProducts, OperandsStayUntilTheLastStepIsDue) {
  const Program program = program_of(two_layers("relu").graph);
  EXPECT_FALSE(meet(tile_buffer(program, "g"), tile_buffer(program, "dz")));
  EXPECT_TRUE(meet(tile_buffer(program, "h"), tile_buffer(program, "dz")));
}

// y = h * (h W): the product reads all of a row of h while it writes y.
TEST(FusedProducts, AProductDoesNotOverwriteItsOwnOperand) {
  Net net;
  net.input("x", 5);
  net.parameter("w", {5, 5});
  net.step("h", "tanh", {"x"});
  net.step("hw", "matmul", {"h", "w"});
  net.step("y", "mul", {"hw", "h"});
  net.step("e", "exp", {"y"});
  net.step("total", "sum", {"e"});
  net.keep("total");
  EXPECT_EQ(fused(net), Fused{"hw, mul"});
  const Program program = program_of(net.graph);
  EXPECT_FALSE(meet(tile_buffer(program, "h"), tile_buffer(program, "y")));
}

// A value that is loaded on the way does not take the place of an operand.
TEST(FusedProducts, AnOperandIsNotReplacedByALoad) {
  Net net;
  net.input("x", 3);
  net.input("u", 5);
  net.input("late", 3);
  net.parameter("w", {3, 5});
  net.step("h", "tanh", {"u"});
  net.step("s", "tanh", {"x"});
  net.step("xw", "matmul", {"s", "w"});
  net.step("between", "exp", {"late"});
  net.step("dz", "tanh_gradient", {"h", "xw"});
  for (const char* name : {"dz", "between"}) net.keep(name);
  const Program program = program_of(net.graph);
  EXPECT_EQ(fused(program), Fused{"xw, tanh_gradient"});
  EXPECT_FALSE(meet(tile_buffer(program, "s"), tile_buffer(program, "late:tile")));
}

// A product of more than one block of terms adds to what it has stored: never to where the other operand lies.
TEST(FusedProducts, LongProductsDoNotOverwriteTheOtherOperand) {
  for (const std::int64_t k : {256, 257}) {
    Net net;
    net.input("x", k);
    net.input("u", 5);
    net.parameter("w", {k, 5});
    net.step("h", "relu", {"u"});
    net.step("xw", "matmul", {"x", "w"});
    net.step("dz", "relu_gradient", {"h", "xw"});
    net.step("e", "exp", {"dz"});
    net.step("total", "sum", {"e"});
    net.keep("total");
    EXPECT_EQ(fused(net), Fused{"xw, relu_gradient"}) << k;
    EXPECT_EQ(fused(layer("relu", k)), Fused{"xw + b, relu"}) << k;
    Program program = program_of(net.graph);
    EXPECT_EQ(meet(tile_buffer(program, "h"), tile_buffer(program, "dz")), k == 256) << k;
    if (k == 256) continue;
    for (Buffer& buffer : program.buffers)
      if (buffer.name == "dz") buffer.offset = tile_buffer(program, "h").offset;
    EXPECT_THROW(CpuExecutor().load(program), Error);
  }
}

TEST(FusedProducts, ABrokenGroupIsRejected) {
  const Program good = program_of(two_layers("relu").graph);
  const auto rejected = [&](const std::function<void(Program&, Stage&)>& change) {
    Program program = good;
    change(program, program.phases[0].regions[0].stages[0]);
    try {
      CpuExecutor().load(program);
    } catch (const Error& error) {
      return std::string(error.what()).find("region.fused") != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(rejected([](Program&, Stage& s) { s.fused.clear(); }));  // nobody links what is in registers
  EXPECT_TRUE(rejected([](Program&, Stage& s) { s.fused.push_back(s.fused[0]); }));
  EXPECT_TRUE(rejected([](Program&, Stage& s) { s.fused[0].product = kNoStep; }));
  EXPECT_TRUE(rejected([](Program&, Stage& s) { s.fused[0].product = 1u << 30; }));
  EXPECT_TRUE(rejected([](Program&, Stage& s) { s.fused[0].bias = kNoStep; }));
  EXPECT_TRUE(rejected([](Program&, Stage& s) { s.fused[0].epilogue = kNoStep; }));
  EXPECT_TRUE(rejected([](Program&, Stage& s) { std::swap(s.fused[0].bias, s.fused[0].epilogue); }));
  EXPECT_TRUE(rejected([](Program&, Stage& s) { s.fused[0].sum = s.fused[1].product; }));
  EXPECT_TRUE(rejected([](Program& p, Stage& s) {  // a second writer
    const BufferId link = p.phases[0].steps[s.fused[0].product].output;
    Step again = p.phases[0].steps[s.last - 1];
    again.op = *find_op("relu");
    again.params = {};
    again.inputs = {p.phases[0].steps[s.fused[0].last()].output};
    again.output = link;
    p.phases[0].steps.insert(p.phases[0].steps.begin() + s.last, again);
    ++s.last;
    ++p.phases[0].regions[0].last;
  }));
  EXPECT_TRUE(rejected([](Program& p, Stage& s) {  // another reader of what is in registers
    p.phases[0].steps[s.last - 1].inputs[0] = p.phases[0].steps[s.fused[0].product].output;
  }));
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
