// graph_fuzz_test.cpp: random calls of every function, with attributes from the ends of their types: each is an Error
// or a node, and a graph of small values runs on the executors and writes nothing beside its buffers. The short run is
// part of the tests; the long one: GRAPHRUN_FUZZ=100000 test_graph --gtest_filter='Fuzz.Graphs'.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

#include "compiler/passes.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/library/functions.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "support/graph_run.h"
#include "support/rounds.h"

namespace graphrun {
namespace {

constexpr std::int64_t kMaxRunElements = 20000;  // of all values of a graph that is run

class Caller {
 public:
  explicit Caller(unsigned seed) : random_(seed) {}

  std::string text;  // what was called, for a failure

  void add_call(GraphBuilder::Impl& graph) {
    const Function& function = functions()[below(functions().size())];
    std::vector<ir::NodeId> operands;
    for (std::size_t n = function.operands.size() + (function.variadic ? below(3) : 0); n > 0; --n) {
      operands.push_back(operand(graph));
    }
    AttrList attributes;
    for (const ir::AttrDef& def : function.attributes) {
      if (def.required || below(2) == 0) attributes.emplace_back(def.name, value_of(def));
    }
    text += std::string(function.name) + "(";
    for (const ir::NodeId id : operands) text += graph.graph[id].name + " " + to_string(graph.graph[id].type) + ", ";
    for (const auto& [name, value] : attributes) text += name + "=" + ir::to_string(value) + ", ";
    text += ")\n";
    call(graph.builder, function, operands, std::move(attributes));
  }

  std::size_t below(std::size_t n) { return random_() % n; }

 private:
  ir::NodeId operand(const GraphBuilder::Impl& graph) {
    for (;;) {
      const auto id = static_cast<ir::NodeId>(below(graph.graph.size()));
      if (graph.graph[id].name.find("batch.") == std::string::npos) return id;
    }
  }

  std::int64_t integer() {
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    static const std::int64_t ends[] = {kMax,         -kMax - 1, kMax - 1,        -kMax,
                                        kMax / 2 + 1, 1LL << 62, (1LL << 53) + 1, 1LL << 40,
                                        1LL << 32,    1LL << 31, -(1LL << 31),    65536};
    return below(4) == 0 ? ends[below(std::size(ends))] : static_cast<std::int64_t>(below(9)) - 3;
  }
  double real() {
    using Limits = std::numeric_limits<double>;
    static const double ends[] = {Limits::quiet_NaN(),
                                  Limits::infinity(),
                                  -Limits::infinity(),
                                  Limits::max(),
                                  Limits::lowest(),
                                  Limits::denorm_min(),
                                  -0.0,
                                  1e39,
                                  -1e39,
                                  1e-46,
                                  3.5e38};
    return below(3) == 0 ? ends[below(std::size(ends))] : static_cast<double>(below(9)) / 4 - 1;
  }
  AttrValue value_of(const ir::AttrDef& def) {
    if (!def.one_of.empty() && below(20) != 0) return std::string(def.one_of[below(def.one_of.size())]);
    switch (below(12) == 0 ? below(6) : def.fallback.index()) {
      case 0:
        return below(2) == 0;
      case 1:
        return integer();
      case 2:
        return real();
      case 3:
        return std::string(below(2) == 0 ? "tanh" : "\x1b[2J");
      case 4: {
        std::vector<std::int64_t> list(below(5));
        for (std::int64_t& one : list) one = integer();
        return list;
      }
      default: {
        std::vector<double> list(below(5));
        for (double& one : list) one = real();
        return list;
      }
    }
  }

  std::mt19937 random_;
};

constexpr std::int64_t kRows = 3;

GraphBuilder start() {
  GraphBuilder builder(kRows);
  builder.input("x", {kBatch, 4});
  builder.input("y", {kBatch, 2, 2});
  builder.input("c", {kBatch}, DType::i32);
  builder.parameter("W", {4, 2});
  builder.parameter("b", {2});
  builder.parameter("s", {});
  builder.expression("m = x > 0.5");
  builder.expression("d = cast(x, dtype=f64)");
  return builder;
}

bool is_small(const ir::Graph& graph) {
  std::int64_t sum = 0;
  for (const ir::Node& node : graph.nodes) {
    std::int64_t own = 1;
    const Shape shape = node.type.shape.with_batch(kRows);
    for (const std::int64_t extent : shape.dims()) {
      if (extent < 0 || extent > kMaxRunElements) return false;
      own = std::min(own * extent, kMaxRunElements + 1);
    }
    sum += own;
  }
  return sum <= kMaxRunElements;
}

// True when it ran.
bool run(const ir::Graph& graph, const char* executor) {
  try {
    test::GraphRun run(graph, test::executor(executor), test::Layout::guarded);
    for (ir::NodeId id = 0; id < graph.size(); ++id) {
      if (graph[id].def->state == nullptr || graph[id].op == Op::constant) continue;
      HostTensor tensor(graph[id].type.dtype, graph[id].type.shape);  // zeros, also where classes are meant
      if (graph[id].name == "batch.count") tensor.elements<std::int32_t>()[0] = 2;
      run.write(id, tensor);
    }
    run.run();
    EXPECT_EQ(run.broken_guard(), "");
    return true;
  } catch (const Error&) {  // a step that it does not take
    return false;
  }
}

TEST(Fuzz, Graphs) {
  const int n = test::rounds(1000, 3000);
  int calls = 0, added = 0, ran = 0;
  for (int i = 0; i < n; ++i) {
    GraphBuilder builder = start();
    Caller caller(static_cast<unsigned>(i));
    for (std::size_t step = 1 + caller.below(4); step > 0; --step) {
      ++calls;
      try {
        caller.add_call(builder.impl());
        ++added;
      } catch (const Error& error) {
        ASSERT_FALSE(error.diagnostics().empty());
        ASSERT_FALSE(error.diagnostics().front().message.empty());
      } catch (const std::exception& error) {
        FAIL() << error.what() << "\nround " << i << "\n" << caller.text;
      }
    }
    SCOPED_TRACE("round " + std::to_string(i) + "\n" + caller.text);
    if (!is_small(builder.impl().graph)) continue;
    try {
      const std::int64_t capacity[] = {kRows};
      const ir::Graph graph = bind_batch(builder.impl().graph, capacity).graph;
      ran += run(graph, "ref");
      run(graph, "cpu");
    } catch (const std::exception& error) {
      FAIL() << error.what();
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(added, calls / 10);
  EXPECT_GT(ran, n / 4);
}

}  // namespace
}  // namespace graphrun
