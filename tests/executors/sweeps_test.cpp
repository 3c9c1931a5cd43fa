// Large elementwise steps that run together leave the bits that they leave one by one, whatever they read and write.
#include "executors/cpu/sweeps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "executors/cpu/cpu_executor.h"
#include "graph/builder.h"
#include "graph/frontend/library/optimizers.h"
#include "graphrun/op.h"
#include "support/graph_run.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

using ir::NodeId;
using Extents = std::vector<std::int64_t>;

constexpr std::int64_t kRows = 5001, kWidth = 8;  // large enough for several parts, which do not divide it

std::shared_ptr<Executor> cpu_with(int threads, Profiling profiling = Profiling::off) {
  const auto executor = std::make_shared<CpuExecutor>();
  executor->set_threads(threads);
  executor->set_profiling(profiling);
  return executor;
}

// A phase over tables: states of kRows x kWidth and of one number.
struct Tables {
  ir::Graph graph;
  ir::Builder make{graph};
  std::vector<NodeId> states;

  Tables() {
    graph.phases.push_back({"train", 1, ir::kNoNode});
    make.enter(0);
  }
  NodeId state(const Extents& shape, std::string_view op = "state") {
    states.push_back(make.add(op, {}, {{"shape", shape}}));
    return states.back();
  }
  NodeId table() { return state({kRows, kWidth}); }
  NodeId number() { return state({}); }
};

void write_states(GraphRun& run, const Tables& tables) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(0.1f, 1.0f);
  for (const NodeId id : tables.states) {
    HostTensor tensor(DType::f32, tables.graph[id].type.shape);
    for (float& x : tensor.elements<float>()) x = uniform(random);
    run.write(id, tensor);
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

std::vector<std::byte> after_steps(const Tables& tables, int threads, bool together, int steps = 2) {
  GraphRun run(tables.graph, cpu_with(threads));
  write_states(run, tables);
  const auto count = static_cast<std::uint32_t>(run.program().phases[0].steps.size());
  for (int step = 0; step < steps; ++step) {
    if (together) {
      run.run();
      continue;
    }
    for (std::uint32_t i = 0; i < count; ++i) run.runnable().run_steps(0, i, i + 1);
  }
  return states_of(run, tables);
}

void expect_same_bits(const Tables& tables, const std::string& what) {
  const std::vector<std::byte> one_by_one = after_steps(tables, 1, false);
  for (const int threads : {1, 2, 5}) {
    EXPECT_TRUE(after_steps(tables, threads, true) == one_by_one) << what << ", " << threads << " threads";
  }
}

// The ops of a step as the executor times them, one for each call.
std::vector<std::string> kernels_of(const Tables& tables) {
  GraphRun run(tables.graph, cpu_with(1, Profiling::on));
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
  const NodeId parameter = tables.state({kRows, kWidth}, "parameter");
  const NodeId gradient = tables.table();
  const NodeId lr = tables.number();
  const NodeId time = tables.number();
  const ir::Attrs attrs(def.attributes, {{"lr", 0.5}, {"weight_decay", 0.25}, {"l2", 0.125}});
  UpdateContext context{tables.make, attrs, parameter, gradient, lr, time};
  context.assign(parameter, update_parameter(def, context, true));
  for (NodeId id = 0; id < tables.graph.size(); ++id) {
    const bool slot = tables.graph[id].op == Op::state && id != gradient && id != lr && id != time;
    if (slot) tables.states.push_back(id);
  }
  return tables;
}

TEST(Sweeps, EveryOptimizerPassesOverItsTableOnce) {
  for (const OptimizerDef& def : optimizers()) {
    const Tables tables = update(def);
    expect_same_bits(tables, std::string(def.name));
    const std::vector<std::string> kernels = kernels_of(tables);
    EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "sweep"), 1) << def.name;
    for (const std::string& kernel : kernels)
      EXPECT_TRUE(kernel == "sweep" || kernel == "mul" || kernel == "expm1" || kernel == "neg")
          << def.name << ": " << kernel << " passes over the table by itself";
  }
}

TEST(Sweeps, SmallStepsAndStepsAloneStayWhatTheyAre) {
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
TEST(Sweeps, RandomStepsLeaveTheBitsThatTheyLeaveOneByOne) {
  std::size_t swept = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return random() % n; };
    Tables tables;
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
    for (const std::string& kernel : kernels_of(tables)) swept += kernel == "sweep" ? 1 : 0;
  }
  EXPECT_GT(swept, 20u) << "the random steps test nothing";
}

}  // namespace
}  // namespace graphrun::test
