#include "compiler/compile.h"

#include <fmt/format.h>

#include <atomic>
#include <stdexcept>
#include <utility>

#include "compiler/budget/fit_memory.h"
#include "compiler/lower.h"
#include "compiler/passes.h"
#include "graph/verifier.h"
#include "graphrun/target.h"

namespace graphrun {
namespace {

std::atomic<std::uint64_t> compiled{0};

Rewritten verified(Rewritten result) {
  verify(result.graph);
  return result;
}

}  // namespace

Compiled compile(const ir::Graph& given, const CompileOptions& options) {
  compiled.fetch_add(1, std::memory_order_relaxed);
  Compiled result;

  ir::Graph values = given;
  result.values = IdMap::identity(given.size());
  const auto apply = [&](Rewritten next) {
    values = std::move(next.graph);
    result.values = result.values.then(next.ids);
  };
  if (options.shards > 1) apply(share_rows(values, options.shards));
  if (!options.capacities.empty()) apply(bind_batch(values, options.capacities));
  if (options.simplify) {
    verify(values);
    apply(verified(simplify(values)));
    apply(verified(remove_dead(values)));
  }

  if (options.fuse) {
    const ElementLimits limits = options.tiles.elements.value_or(find_target(options.target).elements);
    const RegionOptions regions{options.plan_region, true, limits.chains > 1};
    result.regions = find_regions(values, regions);
    result.regions.graph = fuse(std::move(result.regions.graph), regions);
    const auto rewrite = [&](Rewritten next) {
      result.regions.graph = std::move(next.graph);
      result.regions.ids = result.regions.ids.then(next.ids);
    };
    if (limits.least > 0) {
      rewrite(fuse_products(result.regions.graph, regions, limits.least));
      rewrite(fuse_elements(result.regions.graph, regions, limits));
    }
    verify(result.regions.graph);
  } else {
    result.regions.ids = IdMap::identity(values.size());
    result.regions.graph = std::move(values);
  }

  plan::Plan plan = plan::plan_arena(std::move(result.regions.graph), options);
  if (options.max_memory > 0 && plan.budget.bytes_before > options.max_memory)
    plan = plan::fit_memory(std::move(plan), options);
  result.regions.graph = std::move(plan.graph);
  result.regions.ids = result.regions.ids.then(plan.ids);
  result.budget = std::move(plan.budget);
  result.in_f32 = plan.layouts.in_f32;
  const ir::Graph& graph = result.regions.graph;
  if (result.budget.is_changed()) verify(graph);
  plan::Lowered lowered = plan::lower(graph, plan.layouts, plan.arena, options);

  result.program = std::move(lowered.program);
  for (ir::NodeId value = 0; value < result.regions.ids.size(); ++value)
    result.buffer_of.push_back(lowered.buffer_of[result.regions.ids[value]]);
  for (std::size_t r = 0; r < graph.regions.size(); ++r)
    if (graph.regions[r].chains.empty()) result.choices.push_back(graph.regions[r].plan->choices);
  for (BufferId id = 0; id < result.program.buffers.size(); ++id)
    result.by_name.emplace(result.program.buffers[id].name, id);
  return result;
}

std::string stored_in_f32(std::string_view data, std::string_view reason) {
  return fmt::format("{} is stored in 4 bytes per element, not in 1: {}", data, reason);
}

BufferId Compiled::buffer(ir::NodeId node) const {
  const ir::NodeId value = values[node];
  if (value == ir::kNoNode) throw std::logic_error(fmt::format("compile: node {} was removed", node));
  return buffer_of[value];
}

BufferId Compiled::find(std::string_view name) const {
  const auto found = by_name.find(std::string(name));
  return found == by_name.end() ? kNoBuffer : found->second;
}

std::uint64_t compilations() {
  return compiled.load(std::memory_order_relaxed);
}

}  // namespace graphrun
