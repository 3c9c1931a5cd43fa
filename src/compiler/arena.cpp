#include "compiler/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/checked.h"
#include "graph/ops/op_def.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/target.h"

namespace graphrun::plan {
namespace {

using ir::Graph, ir::Node, ir::NodeId;

// The blocks of a launch start at arbitrary times: when one has read a value for the last time, another may not have
// read it yet. Hence values that a region of blocks reads stay live until the region ends.
std::vector<std::uint32_t> last_uses(const Graph& graph, const Layouts& layouts) {
  const Storage& storage = layouts.storage;
  std::vector<std::uint32_t> last = storage.last;
  for (std::size_t r = 0; r < layouts.regions.size(); ++r) {
    const ir::Region& region = graph.regions[r];
    if (region.stages.empty() || !std::holds_alternative<StepTiling>(layouts.regions[r].plan.tiling)) continue;
    const NodeId first = region.stages.front().first;
    for (NodeId id = first; id < region.last; ++id) {
      for (const NodeId input : graph[id].inputs) {
        const NodeId root = storage.root[input];
        if (root < first) last[root] = std::max(last[root], storage.time[region.last - 1]);
      }
    }
  }
  return last;
}

// Bytes of a data set in which each batch of `block` rows begins at a whole vector.
std::uint64_t in_whole_vectors(const TensorType& type, std::int64_t block) {
  const std::int64_t rows = type.shape[0];
  const std::int64_t padded_rows = rows / block * whole_lanes(block) + whole_lanes(rows % block);
  return type.bytes() / static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(padded_rows);
}

// Whether row regions run in tiles of a host's vectors. On a GPU, each lane has a row.
bool tiles_have_lanes(const CompileOptions& options) {
  return options.target.empty() || find_target(options.target).compute_capability == 0;
}

std::vector<std::optional<Support>> ask_supports(const Graph& graph, const Layouts& layouts,
                                                 const CompileOptions& options) {
  std::vector<std::optional<Support>> result(graph.size());
  std::vector<Diagnostic> rejected;
  for (std::uint32_t phase = 0; phase < graph.phases.size(); ++phase) {
    for (const NodeId id : nodes_of(graph, phase)) {
      if (!is_plain_step(graph, layouts, id)) continue;
      result[id] = options.supports(step_signature(graph, id, options));
      if (result[id]->yes) continue;
      Diagnostic& diagnostic = rejected.emplace_back();
      diagnostic.code = "step.unsupported";
      diagnostic.message = result[id]->reason;
      point_to(graph[id], diagnostic);
    }
  }
  if (!rejected.empty()) throw Error(ErrorKind::input, std::move(rejected));
  return result;
}

void keep_apart(std::vector<LiveRange>& ranges, const Storage& storage, std::uint64_t bytes) {
  std::vector<std::uint64_t> left(storage.ends.size(), bytes);
  std::vector<std::size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return ranges[i].interval.size; });
  for (const std::size_t i : order) {
    Interval& interval = ranges[i].interval;
    const auto end = std::lower_bound(storage.ends.begin(), storage.ends.end(), interval.first);
    std::uint64_t& left_in_phase = left[static_cast<std::size_t>(end - storage.ends.begin())];
    const std::uint64_t padded = round_up(interval.size, kAlignment);
    if (padded > left_in_phase) continue;
    left_in_phase -= padded;
    interval.first = end == storage.ends.begin() ? 0 : *std::prev(end) + 1;
    interval.last = *end;
  }
}

std::uint64_t state_bytes(const Graph& graph, const DataLayout& data) {
  std::uint64_t sum = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    if (node.def->state != nullptr && is_state(node.def->state(node.attrs)))
      sum += round_up(bytes_of(graph, data, id), kAlignment);
  }
  return sum;
}

// Reason to store a data set in f32, or "": only minibatch steps read codes. Asked after regions and tiles were chosen,
// so that codes change no other step, and no sum in another order.
std::string_view codes_fault(const Graph& graph, const Layouts& layouts, NodeId data) {
  for (const NodeId reader : layouts.analysis.consumers[data]) {
    if (layouts.analysis.is_view(reader)) return "a batch of all its rows is read in place";
    if (graph[reader].op != Op::minibatch) return "a step other than minibatch reads it";
    const std::uint32_t region = layouts.analysis.places[reader].region;
    if (region != ir::kNoNode && !std::holds_alternative<HostTiling>(layouts.regions[region].plan.tiling))
      return "a step kernel reads its rows";
    if (layouts.data.in_place[reader]) return "a product reads its rows in place";
  }
  return graph[data].type.dtype == DType::f32 ? "" : "its values are not f32";
}

void choose_codes(const Graph& graph, const CompileOptions& options, Layouts& layouts) {
  layouts.data.divisor.assign(graph.size(), 0);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const auto given = options.codes.find(graph[id].name);
    if (given == options.codes.end() || graph[id].op != Op::input) continue;
    const std::string_view fault = codes_fault(graph, layouts, id);
    if (fault.empty())
      layouts.data.divisor[id] = given->second, layouts.data.block[id] = 0;
    else
      layouts.in_f32.push_back(stored_in_f32(given->first, fault));
  }
}

}  // namespace

Layouts lay_out(const Graph& graph, const CompileOptions& options, bool lend) {
  Layouts layouts;
  layouts.analysis = analyze(graph);
  layouts.views = find_views(graph, layouts.analysis, options.takes_views);
  layouts.storage = assign_storage(graph, layouts.analysis, layouts.views, lend);
  layouts.data = lay_out_data(graph, layouts.analysis, options.tiles, tiles_have_lanes(options));
  layouts.regions = lay_out_regions(graph, layouts.analysis, layouts.data, options.plan_region, options.tiles);
  layouts.in_tile_only = layouts.storage.in_registers;
  for (const RegionLayout& region : layouts.regions)
    for (const StageLayout& stage : region.stages)
      for (const TileValue& value : stage.values) layouts.in_tile_only[value.node] = !value.loaded && !value.stored;
  choose_codes(graph, options, layouts);
  return layouts;
}

StepSignature step_signature(const Graph& graph, NodeId id, const CompileOptions& options) {
  StepSignature signature = signature_of(graph, id);
  if (auto* matmul = signature.params.get_if<MatmulParams>()) matmul->precision = options.precision;
  return signature;
}

bool is_plain_step(const Graph& graph, const Layouts& layouts, NodeId id) {
  return graph[id].phase != ir::kShared && !layouts.storage.no_step[id] && !layouts.analysis.in_rows(id);
}

std::uint64_t accumulator_bytes(const Tiling& tiling) {
  if (const auto* host = std::get_if<HostTiling>(&tiling))
    return host->accumulator_bytes * static_cast<std::uint64_t>(host->partitions);
  const auto* step = std::get_if<StepTiling>(&tiling);
  return step != nullptr ? step->scratch_bytes : 0;
}

// Scratch is cleared before the first step of the region and used until its last.
Interval accumulator_interval(const ir::Region& region, const Tiling& tiling, std::uint64_t bytes,
                              const Storage& storage) {
  const bool host = std::holds_alternative<HostTiling>(tiling);
  const NodeId first = host ? region.stages.front().rows : region.stages.front().first;
  const NodeId last = host ? region.stages.back().rows : region.last - 1;
  return {bytes, storage.time[first], storage.time[last]};
}

std::string accumulators_name(std::size_t region, const Tiling& tiling) {
  return fmt::format("region_{}.{}", region + 1,
                     std::holds_alternative<HostTiling>(tiling) ? "accumulators" : "scratch");
}

std::vector<LiveRange> find_live_ranges(const Graph& graph, const Layouts& layouts, const GivenBytes& given) {
  const Storage& storage = layouts.storage;
  const std::vector<std::uint32_t> last_use = last_uses(graph, layouts);
  std::vector<LiveRange> ranges;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    if (storage.root[id] != id || node.def->effect || node.phase == ir::kShared || layouts.in_tile_only[id]) continue;
    ranges.push_back(
        {LiveRange::Kind::value, id, {bytes_of(graph, layouts.data, id), storage.first[id], last_use[id]}});
  }
  for (std::uint32_t phase = 0; phase < graph.phases.size(); ++phase) {
    for (const NodeId id : nodes_of(graph, phase)) {
      if (given.steps[id] > 0)
        ranges.push_back({LiveRange::Kind::workspace, id, {given.steps[id], storage.time[id], storage.time[id]}});
    }
    for (std::uint32_t r = 0; r < graph.regions.size(); ++r) {
      const ir::Region& region = graph.regions[r];
      const Tiling& tiling = layouts.regions[r].plan.tiling;
      if (region.phase == phase && region.chains.empty() && given.regions[r] > 0)
        ranges.push_back(
            {LiveRange::Kind::accumulators, r, accumulator_interval(region, tiling, given.regions[r], storage)});
    }
  }
  return ranges;
}

std::uint64_t bytes_of(const Graph& graph, const DataLayout& data, NodeId id) {
  const TensorType& type = graph[id].type;
  if (data.divisor[id] > 0) return type.bytes() / sizeof(float);
  return data.block[id] > 0 ? in_whole_vectors(type, data.block[id]) : type.bytes();
}

Arena pack_arena(const Graph& graph, const Layouts& layouts, GivenBytes given, std::uint64_t apart) {
  Arena arena{std::move(given), {}, {}};
  arena.ranges = find_live_ranges(graph, layouts, arena.given);
  keep_apart(arena.ranges, layouts.storage, apart);
  std::vector<Interval> intervals;
  for (const LiveRange& range : arena.ranges) intervals.push_back(range.interval);
  arena.packing = pack(intervals, kAlignment);
  const std::string fault = validate(intervals, arena.packing.offsets, arena.packing.height, kAlignment);
  if (!fault.empty()) throw std::logic_error("plan: " + fault);
  return arena;
}

Plan plan_arena(Graph graph, const CompileOptions& options) {
  Plan plan;
  plan.ids = IdMap::identity(graph.size());
  plan.layouts = lay_out(graph, options);
  plan.supports = ask_supports(graph, plan.layouts, options);
  plan.apart = options.target.empty() ? 0 : find_target(options.target).apart;
  plan.state_bytes = state_bytes(graph, plan.layouts.data);
  GivenBytes given;
  for (const std::optional<Support>& support : plan.supports)
    given.steps.push_back(support ? support->workspace_bytes : 0);
  for (std::size_t r = 0; r < graph.regions.size(); ++r) {
    const RegionPlan& planned = plan.layouts.regions[r].plan;
    given.regions.push_back(accumulator_bytes(planned.tiling));
    if (graph.regions[r].chains.empty()) graph.regions[r].plan = planned;
  }
  plan.arena = pack_arena(graph, plan.layouts, std::move(given), plan.apart);
  plan.budget.limit = options.max_memory;
  plan.budget.bytes_before = plan.state_bytes + plan.arena.packing.height;
  plan.graph = std::move(graph);
  return plan;
}

}  // namespace graphrun::plan
