// Slices, transposes, broadcasts and windows that are shown instead of computed: the values of computed ones, and what
// check() says of views that show what is not theirs.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "graph/builder.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "support/graph_run.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

using ir::NodeId;
using Extents = std::vector<std::int64_t>;

struct Values {
  ir::Graph graph;
  ir::Builder make{graph};
  std::vector<NodeId> states, shown, results;

  Values() { graph.phases.push_back({"train", 1, ir::kNoNode}); }
  NodeId state(const Extents& shape) {
    make.enter(ir::kShared);
    states.push_back(make.add("state", {}, {{"shape", shape}}));
    make.enter(0);
    return states.back();
  }
  NodeId show(std::string_view op, NodeId of, const AttrList& attrs) {
    shown.push_back(make.add(op, {of}, attrs));
    return shown.back();
  }
  NodeId slice(NodeId of, std::int64_t axis, std::int64_t start, std::int64_t stop) {
    return show("slice", of, {{"axis", axis}, {"start", start}, {"stop", stop}});
  }
  NodeId transpose(NodeId of, Extents axes) { return show("transpose", of, {{"axes", std::move(axes)}}); }
  NodeId broadcast(NodeId of, Extents shape) { return show("broadcast_to", of, {{"shape", std::move(shape)}}); }
  NodeId result(std::string_view op, std::vector<NodeId> inputs, const AttrList& attrs = {}) {
    results.push_back(make.add(op, std::move(inputs), attrs));
    graph[results.back()].keep = true;
    return results.back();
  }
};

std::vector<std::byte> bytes_of(GraphRun& run, const std::vector<NodeId>& nodes) {
  std::vector<std::byte> all;
  for (const NodeId id : nodes) {
    const HostTensor tensor = run.read(id);
    all.insert(all.end(), tensor.bytes().begin(), tensor.bytes().end());
  }
  return all;
}

void write_states(GraphRun& run, const Values& values) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  for (const NodeId id : values.states) {
    HostTensor tensor(DType::f32, values.graph[id].type.shape);
    for (float& x : tensor.elements<float>()) x = uniform(random);
    run.write(id, tensor);
  }
}

bool is_step(const GraphRun& run, NodeId id) {
  const std::vector<Step>& steps = run.program().phases[0].steps;
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) { return step.output == run.buffer(id); });
}

// The results, and what is shown, have the bits of a graph that computes it all. `of_cpu`: what cpu shows, too.
void expect_same_values(const std::function<void(Values&)>& build, std::vector<bool> of_cpu) {
  for (const std::string_view name : {"ref", "cpu"}) {
    SCOPED_TRACE(name);
    Values views, computed;
    build(views);
    build(computed);
    for (const NodeId id : computed.shown) computed.graph[id].keep = true;
    GraphRun run(views.graph, executor(name), Layout::guarded), expected(computed.graph, executor(name));
    write_states(run, views);
    write_states(expected, computed);
    run.run();
    expected.run();
    for (std::size_t i = 0; i < views.shown.size(); ++i) {
      EXPECT_EQ(is_step(run, views.shown[i]), name == "cpu" && !of_cpu[i]) << i;
      EXPECT_TRUE(is_step(expected, computed.shown[i])) << i;
    }
    EXPECT_EQ(bytes_of(run, views.results), bytes_of(expected, computed.results));
    EXPECT_EQ(run.broken_guard(), "");
  }
}

TEST(ShownValues, SlicesAndBroadcastsOfElementwiseSteps) {
  expect_same_values(
      [](Values& v) {
        const NodeId x = v.state({6, 40}), row = v.state({1, 7});
        const NodeId part = v.slice(x, 1, 3, 10), rows = v.slice(x, 0, 2, 5), wide = v.broadcast(row, {6, 7});
        v.result("add", {part, wide});
        v.result("tanh", {part});
        v.result("mul", {rows, rows});
        v.result("greater", {v.slice(rows, 1, 5, 33), v.slice(rows, 1, 0, 1)});
      },
      {true, true, true, true, true});
}

TEST(ShownValues, TransposesOfWhatTakesThem) {
  expect_same_values(
      [](Values& v) {
        const NodeId x = v.state({2, 3, 4, 5}), y = v.state({5, 6}), z = v.state({7, 3});
        const NodeId heads = v.transpose(x, {0, 2, 1, 3});  // rows stay whole
        v.result("exp", {heads});
        v.result("matmul", {heads, y});
        v.result("add", {v.transpose(z, {1, 0}), v.transpose(z, {1, 0})});
        v.result("sum", {v.transpose(x, {3, 0, 1, 2})}, {{"axes", Extents{1}}});
      },
      {true, false, false, false});
}

TEST(ShownValues, OthersMoveElementsOnce) {
  expect_same_values(
      [](Values& v) {
        const NodeId x = v.state({9, 8});
        const NodeId turned = v.transpose(x, {1, 0});
        v.result("pad", {turned}, {{"axis", std::int64_t{0}}, {"before", std::int64_t{2}}, {"after", std::int64_t{1}}});
        v.result("concat", {turned, v.slice(turned, 1, 1, 4)}, {{"axis", std::int64_t{1}}});
        v.result("slice", {turned}, {{"axis", std::int64_t{0}}, {"start", std::int64_t{1}}});
      },
      {true, true});
}

TEST(ShownValues, AStepDoesNotWriteOverWhatItStillShows) {
  expect_same_values(
      [](Values& v) {
        const NodeId x = v.state({8, 8, 4});
        const NodeId negative = v.make.add("neg", {x});
        v.result("sub", {negative, v.transpose(negative, {1, 0, 2})});
      },
      {true});
}

TEST(ShownValues, AnOldValueIsKeptWhereItsStateIsWrittenFirst) {
  for (const bool first : {false, true}) {
    Values v;
    const NodeId w = v.state({3, 4});
    const NodeId part = v.slice(w, 0, 1, 3), twice = v.make.add("add", {w, w});
    if (first) v.make.add("assign", {w, twice});
    const NodeId result = v.result("neg", {part});
    if (!first) v.make.add("assign", {w, twice});
    GraphRun run(v.graph, executor("ref"));
    EXPECT_EQ(is_step(run, part), first);
    write_states(run, v);
    const HostTensor old = run.read(w);
    run.run();
    const HostTensor seen = run.read(result);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(seen.elements<float>()[i], -old.elements<float>()[i + 4]);
  }
}

Compiled planned_for_gpu(const Values& v) {
  const std::shared_ptr<Executor> cuda = find_executor("cuda");  // which needs no device to plan
  return lower_for(v.graph, *cuda, find_target("h200").elements);
}
bool is_step(const Compiled& compiled, NodeId id) {
  const std::vector<Step>& steps = compiled.program.phases[0].steps;
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) { return step.output == compiled.buffer(id); });
}

TEST(ShownValues, AGpuTakesThemInElementwiseStepsAndInRegionsOfThem) {
  Values v;
  const NodeId x = v.state({64, 40}), small = v.state({40, 1}), large = v.state({512, 256});
  const NodeId part = v.slice(x, 1, 3, 10), turned = v.transpose(x, {1, 0});
  const NodeId in_chain = v.make.add("tanh", {v.make.add("exp", {part})});
  v.result("mul", {in_chain, part});
  v.result("sub", {turned, small});
  const NodeId rows = v.slice(x, 0, 8, 16), far = v.transpose(large, {1, 0});
  v.result("softmax", {rows});  // which reads dense operands only
  v.result("neg", {far});       // neighbours of a large transpose lie far apart
  const NodeId made = v.make.add("sigmoid", {v.make.add("neg", {x})});
  const NodeId of_chain = v.slice(made, 1, 20, 40);
  v.result("sqrt", {of_chain});
  const Compiled compiled = planned_for_gpu(v);
  for (const NodeId id : {part, turned, of_chain}) EXPECT_FALSE(is_step(compiled, id)) << v.graph[id].name;
  for (const NodeId id : {rows, far}) EXPECT_TRUE(is_step(compiled, id)) << v.graph[id].name;
  EXPECT_FALSE(compiled.program.phases[0].regions.empty());
  EXPECT_THROW(executor("cpu")->load(compiled.program), Error);
}

// Windows are read in place by reductions and elementwise steps, and by both products of a convolution in the shape of
// a matrix, but not as a right factor.
TEST(ShownValues, AGpuReadsWindowsInPlace) {
  Values v;
  const auto windows = [&](NodeId of) { return v.show("windows", of, {{"size", Extents{3, 2}}}); };
  const auto matrix = [&](NodeId of) { return v.make.add("reshape", {of}, {{"shape", Extents{4 * 6 * 7, 18}}}); };
  const NodeId x = v.state({4, 8, 8, 3}), w = v.state({18, 5}), gradient = v.state({4 * 6 * 7, 5});
  const NodeId image = v.make.add("neg", {x}), shown = windows(image), pooled = windows(x);
  const NodeId rows = matrix(shown);
  v.result("matmul", {rows, w});
  v.result("matmul", {rows, gradient}, {{"transpose_a", true}});
  const NodeId most = v.result("max", {pooled}, {{"axes", Extents{3, 4}}, {"keepdims", true}});
  v.result("equal", {pooled, most});
  const NodeId right = matrix(windows(v.make.add("exp", {x})));
  v.result("matmul", {gradient, right}, {{"transpose_a", true}});
  const Compiled compiled = planned_for_gpu(v);
  for (const NodeId id : {shown, pooled}) EXPECT_FALSE(is_step(compiled, id)) << v.graph[id].name;
  EXPECT_TRUE(is_step(compiled, v.shown.back()));
  const Buffer& buffer = compiled.program.buffers[compiled.buffer(rows)];
  EXPECT_EQ(buffer.layout, graphrun::Layout::strided);
  EXPECT_EQ(buffer.extents, (Shape{4, 6, 7, 3, 2, 3}));
  EXPECT_EQ(buffer.strides, (std::vector<std::int64_t>{192, 24, 3, 24, 3, 1}));
  EXPECT_EQ(storage_root(compiled.program, compiled.buffer(rows)), compiled.buffer(image));
  EXPECT_NE(to_string(compiled.program).find("strides (192, 24, 3, 24, 3, 1) of extents (4, 6, 7, 3, 2, 3)"),
            std::string::npos);
  EXPECT_THROW(executor("cpu")->load(compiled.program), Error);
}

// All of a region happens at once: what one of its steps shows, none of them writes.
TEST(ShownValues, ARegionDoesNotWriteWhatItShows) {
  Values v;
  const NodeId w = v.state({16, 16}), other = v.state({16, 16});
  const NodeId turned = v.transpose(w, {1, 0}), seen = v.transpose(other, {1, 0});
  v.make.add("assign", {w, v.make.add("sub", {w, v.make.add("mul", {turned, seen})})});
  const Compiled compiled = planned_for_gpu(v);
  EXPECT_TRUE(is_step(compiled, turned));
  EXPECT_FALSE(is_step(compiled, seen));
}

// In a chain, too, a value does not take the place of one that an earlier step was shown.
TEST(ShownValues, AChainDoesNotWriteOverWhatItShows) {
  Values v;
  const NodeId x = v.state({16, 16}), y = v.state({16, 8});
  const NodeId product = v.make.add("matmul", {x, x});
  const NodeId turned = v.transpose(product, {1, 0});
  const NodeId sum = v.make.add("exp", {turned});
  const NodeId result = v.make.add("add", {sum, product});
  v.result("matmul", {v.make.add("neg", {result}), y});
  const Compiled compiled = planned_for_gpu(v);
  EXPECT_FALSE(is_step(compiled, turned));
  const std::vector<Buffer>& buffers = compiled.program.buffers;
  const std::vector<Step>& steps = compiled.program.phases[0].steps;
  const auto negated =
      std::find_if(steps.begin(), steps.end(), [](const Step& step) { return step.op == *find_op("neg"); });
  ASSERT_NE(negated, steps.end());
  EXPECT_NE(storage_root(compiled.program, negated->output), storage_root(compiled.program, compiled.buffer(product)));
  EXPECT_EQ(buffers[negated->output].kind, BufferKind::activation);
}

// x (4, 6), and 3 columns of it.
Program columns_of_a_matrix() {
  Program program;
  program.name = "views";
  program.target = "host";
  Buffer x{"x", {DType::f32, {4, 6}, 0}, BufferKind::parameter, 0, 0, 96};
  Buffer part{"part", {DType::f32, {4, 3}, 0}, BufferKind::activation, 0, 8, 84};
  part.layout = graphrun::Layout::strided;
  part.strides = {6, 1};
  Buffer out{"out", {DType::f32, {4, 3}, 0}, BufferKind::activation, 2, 256, 48};
  program.buffers = {x, part, out};
  program.arena_bytes = 512;
  Step step;
  step.op = *find_op("neg");
  step.name = "out";
  step.inputs = {1};
  step.output = 2;
  program.phases.push_back({"train", 1, {step}});
  return program;
}

std::string fault_of(const Program& program) {
  try {
    check(program);
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  }
  return "";
}

TEST(ShownValues, RulesOfAStridedBuffer) {
  EXPECT_EQ(fault_of(columns_of_a_matrix()), "");
  const auto fault_with = [](auto&& change) {
    Program program = columns_of_a_matrix();
    change(program, program.buffers[1]);
    return fault_of(program);
  };
  EXPECT_NE(fault_with([](Program&, Buffer& b) { b.offset = 16; }), "");        // the last row leaves x
  EXPECT_NE(fault_with([](Program&, Buffer& b) { b.strides = {7, 1}; }), "");   // more bytes than it says
  EXPECT_NE(fault_with([](Program&, Buffer& b) { b.strides = {6}; }), "");      // not for each axis
  EXPECT_NE(fault_with([](Program&, Buffer& b) { b.strides = {-6, 1}; }), "");  // before its offset
  EXPECT_NE(fault_with([](Program&, Buffer& b) { b.strides = {1LL << 62, 1}; }), "");
  EXPECT_NE(fault_with([](Program&, Buffer& b) { b.strides = {6, 1LL << 62}; }), "");
  const auto with_extents = [&](const Shape& extents, std::vector<std::int64_t> strides) {
    return fault_with([&](Program&, Buffer& b) { b.extents = extents, b.strides = strides; });
  };
  EXPECT_EQ(with_extents({2, 2, 3}, {12, 6, 1}), "");  // the same elements, as a reshape of a view
  EXPECT_NE(with_extents({2, 2, 4}, {12, 6, 1}), "");  // more elements than its type
  EXPECT_NE(with_extents({2, 2, 3}, {12, 6}), "");
  EXPECT_NE(with_extents({-2, -2, 3}, {12, 6, 1}), "");
  EXPECT_NE(fault_with([](Program& p, Buffer&) { p.buffers[0].extents = Shape{4, 6}; }), "");  // not strided
  EXPECT_NE(fault_with([](Program&, Buffer& b) { b.poll = true; }), "");
  EXPECT_NE(fault_with([](Program&, Buffer& b) { b.storage = 1; }), "");
  EXPECT_NE(fault_with([](Program&, Buffer& b) { b.layout = graphrun::Layout::rows; }), "");
  EXPECT_NE(
      fault_with([](Program& p, Buffer&) { std::swap(p.phases[0].steps[0].output, p.phases[0].steps[0].inputs[0]); }),
      "");
}

}  // namespace
}  // namespace graphrun::test
