// Regions over elements leave in every state the bits that their steps leave one by one, whatever they read and write.
#include "executors/cpu/element_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "executors/cpu/cpu_executor.h"
#include "graph/builder.h"
#include "graph/frontend/library/optimizers.h"
#include "graphrun/elements.h"
#include "graphrun/op.h"
#include "graphrun/target.h"
#include "support/graph_run.h"
#include "support/rounds.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

using ir::NodeId;
using Extents = std::vector<std::int64_t>;

constexpr std::int64_t kElementRows = 5001, kWidth = 8;  // large enough for several parts, which do not divide it

std::shared_ptr<Executor> profiled_cpu(int threads, Profiling profiling = Profiling::off) {
  const auto executor = std::make_shared<CpuExecutor>();
  executor->set_threads(threads);
  executor->set_profiling(profiling);
  return executor;
}

// A phase over tables: states of kElementRows x kWidth and of one number.
struct Tables {
  ir::Graph graph;
  ir::Builder make{graph};
  std::vector<NodeId> states;
  DType dtype;

  explicit Tables(DType type = DType::f32) : dtype(type) {
    graph.phases.push_back({"train", 1, ir::kNoNode});
    make.enter(0);
  }
  NodeId state(const Extents& shape, std::string_view op = "state") {
    states.push_back(make.add(op, {}, {{"dtype", std::string(name_of(dtype))}, {"shape", shape}}));
    return states.back();
  }
  NodeId table() { return state({kElementRows, kWidth}); }
  NodeId number() { return state({}); }
};

void write_states(GraphRun& run, const Tables& tables) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0.1, 1.0);
  for (const NodeId id : tables.states) {
    const TensorType& type = tables.graph[id].type;
    std::vector<double> values(static_cast<std::size_t>(type.shape.elements()));
    for (double& x : values) x = uniform(random);
    run.write(id, from_doubles(values, type));
  }
}

std::vector<std::byte> states_of(GraphRun& run, const Tables& tables) {
  std::vector<std::byte> all;
  for (const NodeId id : tables.states) {
    const HostTensor tensor = run.read(id);
    all.insert(all.end(), tensor.bytes().begin(), tensor.bytes().end());
  }
  return all;
}

// As on a host, and with what a GPU asks for: many chains, and numbers computed anew in each; and in small pieces.
const std::vector<ElementLimits>& limits() {
  static const std::vector<ElementLimits> all = {
      find_target("host").elements, {1, 64, 64, 200, 12}, {1, 64, 3, 200, 12}, {1, 3, 64, 7, 2}};
  return all;
}

std::vector<std::byte> after_steps(const Tables& tables, int threads, const std::optional<ElementLimits>& elements) {
  GraphRun run(tables.graph, profiled_cpu(threads), Layout::planned, elements);
  write_states(run, tables);
  run.run(0, 2);
  return states_of(run, tables);
}

void expect_same_bits(const Tables& tables, const std::string& what) {
  const std::vector<std::byte> one_by_one = after_steps(tables, 1, {});
  for (const ElementLimits& elements : limits()) {
    for (const int threads : {1, 2, 5})
      EXPECT_TRUE(after_steps(tables, threads, elements) == one_by_one) << what << ", " << threads << " threads";
  }
}

// The ops of a step as the executor times them, one for each call.
std::vector<std::string> kernels_of(const Tables& tables) {
  GraphRun run(tables.graph, profiled_cpu(1, Profiling::on), Layout::planned, limits().front());
  write_states(run, tables);
  run.run();
  std::vector<std::string> names;
  for (const ProfileRow& row : run.runnable().profile().rows) names.insert(names.end(), row.calls, row.name);
  std::sort(names.begin(), names.end());
  return names;
}

// The update of a table by its gradient, which is a state here.
Tables update(const OptimizerDef& def) {
  Tables tables;
  const NodeId parameter = tables.state({kElementRows, kWidth}, "parameter");
  const NodeId gradient = tables.table();
  const NodeId lr = tables.number();
  const NodeId time = tables.number();
  const ir::Attrs attrs(def.attributes, {{"lr", 0.5}, {"weight_decay", 0.25}, {"l2", 0.125}});
  const auto var = [&](NodeId id) { return Var{&tables.make, id}; };
  UpdateContext context{tables.make, attrs, var(parameter), var(gradient), var(lr), var(time)};
  context.assign(var(parameter), update_parameter(def, context, true));
  for (NodeId id = 0; id < tables.graph.size(); ++id) {
    const bool slot = tables.graph[id].op == Op::state && id != gradient && id != lr && id != time;
    if (slot) tables.states.push_back(id);
  }
  return tables;
}

TEST(ElementRunner, EveryOptimizerPassesOverItsTableOnce) {
  for (const OptimizerDef& def : optimizers()) {
    if (def.update == nullptr) continue;  // joint: its sums over all parameters are passes of their own
    const Tables tables = update(def);
    expect_same_bits(tables, std::string(def.name));
    const std::vector<std::string> kernels = kernels_of(tables);
    EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "elements"), 1) << def.name;
    const std::set<std::string> others = {"elements", "mul", "expm1", "neg", "sub", "maximum"};  // on scalars
    for (const std::string& kernel : kernels)
      EXPECT_TRUE(others.contains(kernel)) << def.name << ": " << kernel << " passes over the table by itself";
  }
}

TEST(ElementRunner, SmallStepsAndStepsAloneStayWhatTheyAre) {
  Tables small;
  const NodeId few = small.state({64});
  small.make.add("assign", {few, small.make.add("exp", {small.make.add("neg", {few})})});
  EXPECT_EQ(kernels_of(small), (std::vector<std::string>{"exp", "neg"}));
  Tables alone;
  const NodeId table = alone.table();
  const NodeId sum = alone.make.add("sum", {alone.make.add("neg", {table})}, {{"axes", Extents{0, 1}}});
  alone.make.add("assign", {alone.number(), sum});
  const std::vector<std::string> kernels = kernels_of(alone);
  EXPECT_TRUE(std::find(kernels.begin(), kernels.end(), "neg") != kernels.end()) << "a sum reads what it writes";
}

// Chains of random steps over tables and numbers, with values that die, that live on and that are read outside.
TEST(ElementRunner, RandomStepsLeaveTheBitsThatTheyLeaveOneByOne) {
  std::size_t regions = 0;
  for (unsigned seed = 0; seed < cases(20, 40); ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return random() % n; };
    Tables tables(seed % 4 == 3 ? DType::f64 : DType::f32);
    std::vector<NodeId> wide, numbers, assigned;
    for (int i = 0; i < 4; ++i) wide.push_back(tables.table());
    for (int i = 0; i < 2; ++i) numbers.push_back(tables.number());
    const std::vector<NodeId> states = wide;
    const std::vector<NodeId> scalars = numbers;
    for (int i = 0; i < 24; ++i) {
      // Late values more often than early ones, so that many die soon.
      const auto recent = [&](const std::vector<NodeId>& of) {
        return of[of.size() - 1 - below(std::min<std::size_t>(of.size(), 5))];
      };
      switch (below(8)) {
        case 0:
          wide.push_back(tables.make.add("sqrt", {recent(wide)}));
          break;
        case 1:
          wide.push_back(tables.make.add("clip", {recent(wide)}, {{"low", 0.25}, {"high", 0.75}}));
          break;
        case 2:
          numbers.push_back(tables.make.add("mul", {recent(numbers), recent(numbers)}));
          break;
        case 3:
          wide.push_back(tables.make.add("div", {recent(numbers), recent(wide)}));
          break;
        case 4: {
          const NodeId state = states[below(states.size())];
          if (std::find(assigned.begin(), assigned.end(), state) != assigned.end()) break;
          assigned.push_back(state);
          tables.make.add("assign", {state, tables.make.add("neg", {recent(wide)})});
          wide.erase(std::find(wide.begin(), wide.end(), state));  // nobody reads it from now on
          break;
        }
        case 5:
          numbers.push_back(tables.make.add("sum", {recent(wide)}, {{"axes", Extents{0, 1}}}));
          break;
        default:
          wide.push_back(tables.make.add(below(2) == 0 ? "add" : "mul", {recent(wide), recent(wide)}));
      }
    }
    tables.make.add("assign", {scalars[0], tables.make.add("neg", {numbers.back()})});
    for (const NodeId state : states)
      if (std::find(assigned.begin(), assigned.end(), state) == assigned.end()) {
        tables.make.add("assign", {state, tables.make.add("neg", {wide.back()})});
        break;
      }
    expect_same_bits(tables, "seed " + std::to_string(seed));
    for (const std::string& kernel : kernels_of(tables)) regions += kernel == "elements" ? 1 : 0;
  }
  EXPECT_GE(regions, cases(20, 40) / 2) << "the random steps test nothing";
}

TEST(ElementRunner, AChainOfOneRowReadsNumbers) {
  Tables tables;
  ir::Builder& make = tables.make;
  const NodeId n = make.add("exp", {tables.number()});
  const NodeId x = make.add("input", {}, {{"shape", Extents{1, 1}}, {"rows", std::int64_t{1}}});
  tables.states.push_back(x);
  const NodeId y = make.add("mul", {make.add("exp", {x}), n});
  make.add("assign", {tables.number(), make.add("sum", {make.add("neg", {y})}, {{"axes", Extents{0, 1}}})});
  expect_same_bits(tables, "one row");
}

// A partial batch: rows past the count are zero in what leaves the region, though exp(0) is not.
TEST(ElementRunner, LeavesRowsThatAreNotThereZero) {
  constexpr std::int64_t kSamples = 200, kFeatures = 200;
  ir::Graph graph;
  ir::Builder make(graph);
  const NodeId samples = make.add("input", {}, {{"dtype", std::string("i32")}, {"shape", Extents{}}});
  graph.phases.push_back({"predict", kSamples, samples});
  make.enter(0);
  const NodeId x = make.add("input", {}, {{"shape", Extents{kSamples, kFeatures}}, {"rows", std::int64_t{1}}});
  const NodeId e = make.add("exp", {make.add("neg", {x})});
  const NodeId sum = make.add("add", {e, make.scalar(1, DType::f32)});
  const NodeId total = make.add("sum", {make.add("exp", {sum})}, {{"axes", Extents{0, 1}}});
  for (const NodeId id : {e, sum, total}) graph[id].keep = true;

  HostTensor rows(DType::f32, {kSamples, kFeatures}), count(DType::i32, {});
  count.elements<std::int32_t>()[0] = 77;
  const auto valid = rows.elements<float>().first(77 * kFeatures);
  for (std::size_t i = 0; i < valid.size(); ++i) valid[i] = static_cast<float>(i % 97) / 97;
  const auto results = [&](const std::optional<ElementLimits>& elements, int threads) {
    GraphRun run(graph, profiled_cpu(threads), Layout::planned, elements);
    run.write(x, rows);
    run.write(samples, count);
    run.run();
    return std::pair(run.read(e), run.read(sum));
  };
  const auto [exp_alone, sum_alone] = results({}, 1);
  for (const int threads : {1, 3}) {
    const auto [exp, more] = results(limits().front(), threads);
    EXPECT_TRUE(std::ranges::equal(exp.bytes(), exp_alone.bytes()));
    EXPECT_TRUE(std::ranges::equal(more.bytes(), sum_alone.bytes()));
    EXPECT_EQ(more.elements<float>().back(), 0);
  }
}

}  // namespace
}  // namespace graphrun::test
