// Ops that are views or may work in place: correct if their operand dies there, if it is read later, and if both
// operands are the same value.
#include <fmt/format.h>

#include "compiler/graph_analysis.h"
#include "conformance/harness.h"
#include "conformance/samples.h"
#include "conformance/suite.h"
#include "graphrun/error.h"

namespace graphrun::test {
namespace {

using ir::NodeId;

Overlay alias_of(const Sample& sample) {
  const SampleGraph built = build(sample);
  return analyze(built.graph).overlays[built.result];
}

// Returns whether some operand could share its bytes with the result.
bool can_share(const Sample& sample, Overlay alias) {
  if (alias == Overlay::view) return true;
  const SampleGraph built = build(sample);
  for (const NodeId operand : built.operands) {
    if (built.graph[operand].type == built.graph[built.result].type) return true;
  }
  return false;
}

bool shares_any(const GraphRun& run, const std::vector<NodeId>& copies, NodeId result) {
  for (const NodeId copy : copies) {
    if (run.share_storage(copy, result)) return true;
  }
  return false;
}

// The sample's result from the plain graph on the same executor: copies must not change it.
HostTensor plain_result(const std::shared_ptr<Executor>& machine, const Sample& sample,
                        const std::vector<HostTensor>& values) {
  const SampleGraph built = build(sample);
  GraphRun run(built.graph, machine);
  write_operands(run, built, sample, values);
  run.run();
  return run.read(built.result);
}

void check_feed(const std::shared_ptr<Executor>& machine, const Sample& sample, Feed feed) {
  SCOPED_TRACE(feed == Feed::dying_copies ? "the operands die here" : "the operands live on");
  std::vector<HostTensor> values = operand_values(sample);
  std::vector<NodeId> copies;
  const SampleGraph built = build(sample, feed, &copies);
  for (const Layout layout : {Layout::planned, Layout::guarded}) {
    GraphRun run(built.graph, machine, layout);
    write_operands(run, built, sample, values);
    run.run();
    EXPECT_EQ(difference(run.read(built.result), plain_result(machine, sample, values), {}), "");
    EXPECT_EQ(stray_row(run.read(built.result), built.graph[built.result].type, samples_in_batch(sample)), "");
    EXPECT_EQ(run.broken_guard(), "");
    const Overlay alias = alias_of(sample);
    if (feed == Feed::dying_copies && can_share(sample, alias)) {
      EXPECT_TRUE(shares_any(run, copies, built.result)) << "the plan does not reuse the dying operand";
    }
    if (feed == Feed::living_copies) {
      EXPECT_TRUE(alias == Overlay::view || !shares_any(run, copies, built.result));
      for (std::size_t i = 0; i < copies.size(); ++i) {
        EXPECT_EQ(difference(run.read(copies[i]), values[i], {}), "") << "operand " << i << " was overwritten";
      }
    }
  }
}

void check_same_twice(const std::shared_ptr<Executor>& machine, const Sample& sample) {
  SCOPED_TRACE("both operands are one value");
  Sample plain = sample;
  plain.operands[1] = plain.operands[0];
  std::vector<HostTensor> values = operand_values(plain);
  values[1] = values[0];
  const SampleGraph built = build(plain, Feed::same_twice);
  GraphRun run(built.graph, machine, Layout::guarded);
  write_operands(run, built, plain, values);
  run.run();
  EXPECT_EQ(difference(run.read(built.result), plain_result(machine, plain, values), {}), "");
  EXPECT_EQ(run.broken_guard(), "");
}

void check_aliases(const std::shared_ptr<Executor>& machine, const Sample& sample) {
  try {
    check_feed(machine, sample, Feed::dying_copies);
    check_feed(machine, sample, Feed::living_copies);
    if (sample.operands.size() == 2 && sample.operands[0].type == sample.operands[1].type) {
      check_same_twice(machine, sample);
    }
  } catch (const Error& error) {
    // values_test.cpp lists unsupported steps or reports them as failures.
    if (error.diagnostics().front().code != "step.unsupported") throw;
  }
}

// Reads, changes and assigns a state in one step, many times: the update happens in place.
void check_state_in_place(const std::shared_ptr<Executor>& machine) {
  ir::Graph graph;
  ir::Builder builder(graph);
  const AttrList type = {{"shape", std::vector<std::int64_t>{5}}};
  const NodeId weight = builder.add("parameter", {}, type);
  const NodeId gradient = builder.add("input", {}, type);
  graph.phases.push_back({"test", 1, ir::kNoNode});
  builder.enter(0);
  const NodeId next = builder.add("sub", {weight, gradient});
  builder.add("assign", {weight, next});
  GraphRun run(graph, machine, Layout::guarded);
  EXPECT_TRUE(run.share_storage(weight, next));
  run.write(weight, tensor_of(DType::f32, {5}, {10, 20, 30, 40, 50}));
  run.write(gradient, tensor_of(DType::f32, {5}, {1, 2, 3, 4, 5}));
  run.run(0, 7);
  EXPECT_EQ(difference(run.read(weight), tensor_of(DType::f32, {5}, {3, 6, 9, 12, 15}), {}), "");
  EXPECT_EQ(run.broken_guard(), "");
}

// Reads the old value after the new one is written: no update in place.
void check_state_read_later(const std::shared_ptr<Executor>& machine) {
  ir::Graph graph;
  ir::Builder builder(graph);
  const AttrList type = {{"shape", std::vector<std::int64_t>{3}}};
  const NodeId weight = builder.add("parameter", {}, type);
  graph.phases.push_back({"test", 1, ir::kNoNode});
  builder.enter(0);
  const NodeId twice = builder.add("add", {weight, weight});
  const NodeId both = builder.add("mul", {twice, weight});
  builder.add("assign", {weight, twice});
  graph[both].keep = true;
  GraphRun run(graph, machine);
  run.write(weight, tensor_of(DType::f32, {3}, {1, 2, 3}));
  run.run(0, 2);
  EXPECT_EQ(difference(run.read(both), tensor_of(DType::f32, {3}, {8, 32, 72}), {}), "");
  EXPECT_EQ(difference(run.read(weight), tensor_of(DType::f32, {3}, {4, 8, 12}), {}), "");
}

}  // namespace

void register_aliases() {
  for (const auto& [name, machine] : tested_executors()) {
    for (const Sample& sample : all_samples()) {
      const Overlay alias = alias_of(sample);
      if (alias == Overlay::none || alias == Overlay::state) continue;
      register_test("Aliases", full_name(name, sample), __FILE__, __LINE__,
                    [machine = machine, &sample] { check_aliases(machine, sample); });
    }
    register_test("Aliases", name + "/state_in_place", __FILE__, __LINE__,
                  [machine = machine] { check_state_in_place(machine); });
    register_test("Aliases", name + "/state_read_later", __FILE__, __LINE__,
                  [machine = machine] { check_state_read_later(machine); });
  }
}

}  // namespace graphrun::test
