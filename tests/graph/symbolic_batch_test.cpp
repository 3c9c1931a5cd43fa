// The batch is a symbol in a graph: no number is taken for it, whatever the numbers are, and compiling gives it one for
// each phase.
#include <gtest/gtest.h>

#include <functional>

#include "compiler/passes.h"
#include "graph/builder.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/format/model_file.h"
#include "graph/gradients.h"
#include "graph/verifier.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

using ir::NodeId;
using List = std::vector<std::int64_t>;

constexpr std::int64_t kBatches[] = {1, 2, 7, 8191, 8192};

std::string code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.diagnostics().front().code;
  }
  return "accepted";
}

TEST(SymbolicBatch, IsNoNumber) {
  EXPECT_EQ(batch_rows(kBatch), 1);
  EXPECT_EQ(batch_rows(batch_extent(5)), 5);
  for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, std::int64_t{8191}})
    EXPECT_EQ(batch_rows(extent), 0) << extent;
  EXPECT_EQ(to_string(Shape{kBatch, 3}), "(batch, 3)");
  EXPECT_EQ(to_string(Shape{batch_extent(2)}), "(2*batch)");
  EXPECT_EQ(code_of([] { (void)Shape{kBatch, 3}.elements(); }), "shape.batch");
  EXPECT_EQ((Shape{batch_extent(2), 3}).with_batch(7), (Shape{14, 3}));
}

// x is as wide as the batch is long, and so are W and v: nobody confuses them.
std::string square_model(std::int64_t batch, std::int64_t width) {
  GraphBuilder g(batch);
  g.input("x", {kBatch, width});
  g.parameter("W", {width, width});
  g.parameter("v", {width});
  const Value h = g.expression("h = tanh(x @ W + v)");
  g.op("reshape", {h}, {{"shape", List{-1, 1, width}}});
  g.expression("s = softmax(h) * random_uniform(h)");
  const Value loss = g.expression("loss = mean(square(s - x)) + sum(h) * 0.1");
  GraphBuilder::Impl& impl = g.impl();
  const std::vector<NodeId> gradient = gradients(impl.builder, loss.id, impl.trainable());
  EXPECT_EQ(impl.graph[gradient[0]].type.shape, Shape({width, width}));
  verify(impl.graph);
  return g.print();
}

TEST(SymbolicBatch, AGraphSaysBatchWhateverTheBatchIs) {
  for (const std::int64_t width : {std::int64_t{7}, std::int64_t{64}}) {
    const std::string text = square_model(1, width);
    EXPECT_NE(text.find("phase model (capacity batch)"), std::string::npos) << text;
    EXPECT_NE(text.find("shape=[batch, "), std::string::npos) << text;
    for (const std::int64_t batch : kBatches) EXPECT_EQ(square_model(batch, width), text) << batch;
  }
}

TEST(SymbolicBatch, ANumberThatHappensToBeTheBatchIsRejected) {
  for (const std::int64_t batch : kBatches) {
    const auto rejected = [&](const std::function<void(GraphBuilder&, Value x)>& f) {
      GraphBuilder g(batch);
      const Value x = g.input("x", {kBatch, batch});
      g.parameter("p", {batch, batch});
      return code_of([&] { f(g, x); });
    };
    const auto reshaped = [&](List shape) {
      return rejected([&](GraphBuilder& g, Value x) { g.op("reshape", {x}, {{"shape", shape}}); });
    };
    EXPECT_EQ(reshaped({batch, batch}), batch == 1 ? "shape.rows" : "shape.mismatch") << batch;
    EXPECT_EQ(reshaped({batch, -1}), "shape.rows") << batch;
    EXPECT_EQ(reshaped({batch}), "shape.rows") << batch;
    EXPECT_EQ(reshaped({1, -1}), "shape.rows") << batch;
    EXPECT_EQ(reshaped({-1, batch}), "accepted") << batch;
    EXPECT_EQ(reshaped({-1}), "accepted") << batch;
    EXPECT_EQ(reshaped({kBatch, batch}), "accepted") << batch;
    EXPECT_EQ(reshaped({batch_extent(2), batch}), "shape.mismatch") << batch;
    const auto said = [&](const char* text) { return rejected([&](GraphBuilder& g, Value) { g.expression(text); }); };
    EXPECT_EQ(said("x + p"), batch == 1 ? "accepted" : "shape.mismatch") << batch;  // one row meets every row
    EXPECT_EQ(said("p @ x"), "shape.mismatch") << batch;
    EXPECT_EQ(said("x @ p"), "accepted") << batch;
    EXPECT_EQ(said("concat(x, p)"), "shape.mismatch") << batch;
    EXPECT_EQ(said("split(x, parts=1, index=0, axis=0)"), "shape.rows") << batch;
    EXPECT_EQ(said("slice(x, axis=0, stop=1)"), "shape.rows") << batch;
    EXPECT_EQ(said("mse(x, p)"), "shape.mismatch") << batch;
  }
}

// A graph with a minibatch, its count and a ring, in two phases.
struct Phases {
  ir::Graph graph;
  ir::Builder make{graph};
  NodeId data = ir::kNoNode;
  std::vector<NodeId> rows, mean, ring;

  Phases() {
    graph.phases.push_back({"train"});
    graph.phases.push_back({"evaluate"});
    data = make.add("input", {}, {{"shape", List{21, 4}}});
    for (std::uint32_t phase : {0u, 1u}) {
      make.enter(phase);
      const NodeId step = make.add("state", {}, {{"dtype", std::string("u64")}, {"kind", std::string("counter")}});
      ring.push_back(make.add("state", {}, {{"shape", List{16}}, {"kind", std::string("metric")}}));
      graph.phases[phase].row_count = make.add("row_count", {step}, {{"total", std::int64_t{21}}});
      if (phase == 1) graph.phases[phase].rings.push_back(ring.back());
      rows.push_back(make.add("minibatch", {data, step}));
      const NodeId sum = make.add("sum", {make.add("reshape", {rows.back()}, {{"shape", List{-1, 2}}})});
      mean.push_back(make.add("div", {sum, make.sample_count(DType::f32)}));
      make.add("assign", {ring.back(), make.add("record", {ring.back(), mean.back(), step})});
    }
    verify(graph);
  }
};

TEST(SymbolicBatch, EachPhaseGetsItsCapacity) {
  const Phases given;
  const std::int64_t capacities[] = {7, 8};
  const Rewritten bound = bind_batch(given.graph, capacities);
  verify(bound.graph);
  EXPECT_EQ(bound.graph[bound.ids[given.rows[0]]].type.shape, Shape({7, 4}));
  EXPECT_EQ(bound.graph[bound.ids[given.rows[1]]].type.shape, Shape({8, 4}));
  EXPECT_EQ(bound.graph.phases[0].row_count, ir::kNoNode) << "21 rows are three full batches of 7";
  EXPECT_NE(bound.graph.phases[1].row_count, ir::kNoNode) << "and no full ones of 8";
  const ir::Node& count = bound.graph[bound.graph[bound.ids[given.mean[0]]].inputs[1]];
  EXPECT_EQ(count.attrs.reals("values"), std::vector<double>{7});
  EXPECT_EQ(bound.graph[bound.ids[given.ring[0]]].type.shape, Shape({16})) << "training records more than an epoch";
  EXPECT_EQ(bound.graph[bound.ids[given.ring[1]]].type.shape, Shape({3}));
  EXPECT_EQ(given.graph[given.rows[0]].type.shape, Shape({kBatch, 4})) << "the graph is as it was";
}

TEST(SymbolicBatch, WhatIsTooMuchForABatchIsSaidWhenItIsKnown) {
  ir::Graph graph;
  graph.phases.push_back({"train"});
  ir::Builder make(graph);
  make.enter(0);
  const NodeId x = make.add("input", {}, {{"shape", List{kBatch, std::int64_t{1} << 20}}, {"rows", std::int64_t{1}}});
  make.at({"/graph/0", 3, 5});
  make.add("concat", {x, x});
  const std::int64_t fits[] = {std::int64_t{1} << 19}, not_quite[] = {(std::int64_t{1} << 19) + 1};
  EXPECT_NO_THROW(bind_batch(graph, fits));
  try {
    bind_batch(graph, not_quite);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "shape.size");
    EXPECT_EQ(error.diagnostics().front().line, 3);
  }
  const Phases given;
  const std::int64_t many[] = {30, 30};
  EXPECT_NO_THROW(bind_batch(given.graph, many)) << "a batch may be larger than the data: it is not full";
}

}  // namespace
}  // namespace graphrun
