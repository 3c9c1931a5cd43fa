#include "compiler/region_layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

#include "base/checked.h"
#include "graph/ops/op_def.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "packing/pack.h"

namespace graphrun::plan {
namespace {

using ir::Graph, ir::Node, ir::NodeId;

constexpr std::uint64_t kTileAlignment = 64;  // size of a cache line and of the widest register

class StageBuilder {
 public:
  StageBuilder(const Graph& graph, const ir::RegionStage& stage, std::int64_t capacity,
               const std::vector<bool>& in_place, const GraphAnalysis& analysis, bool fuse = true)
      : graph_(graph), stage_(stage), capacity_(capacity), in_place_(in_place), analysis_(analysis) {
    if (!fuse) return;
    for (const ir::FusedNodes& fused : stage.fused) {
      fused_with_[fused.product] = &fused;
      for (const NodeId id : {fused.bias, fused.epilogue})
        if (id != ir::kNoNode) fused_with_[id] = &fused;
    }
  }

  StageLayout run() {
    std::vector<NodeId> rows(stage_.last - stage_.rows);
    std::iota(rows.begin(), rows.end(), stage_.rows);
    for (const NodeId id : rows) add(id);
    const std::set<NodeId> leaves = leaving(graph_, analysis_, rows);
    for (TileValue& value : layout_.values) value.stored = !value.loaded && leaves.contains(value.node);
    return std::move(layout_);
  }

  // Padded to whole cache lines, so that partitions share none.
  std::uint64_t accumulator_bytes() const { return round_up(accumulators_, kTileAlignment); }

 private:
  const ir::FusedNodes* fused(NodeId id) const {
    const auto found = fused_with_.find(id);
    return found == fused_with_.end() ? nullptr : found->second;
  }
  // Step at which `id` reads and writes: the last one of its fused group, or itself.
  NodeId due(NodeId id) const { return fused(id) == nullptr ? id : fused(id)->last(); }
  bool in_registers(NodeId id) const { return due(id) != id; }

  bool inside(NodeId id) const { return id >= stage_.rows && id < stage_.last; }

  void add(NodeId id) {
    const Node& node = graph_[id];
    if (analysis_.is_view(id)) {
      const NodeId of = node.inputs[0];
      // A view of a value outside of the tile is loaded by its readers like a value of its own.
      if (const TileValue* value = placed(of); inside(of) && value != nullptr) append(id, value->storage, false);
      return;
    }
    for (NodeId input : node.inputs) {
      if (graph_[input].type.rows > 0 && placed(input) == nullptr) append(input, input, true);
    }
    if (node.type.rows == 0) {
      if (reads_rows(graph_, node))
        layout_.combines.push_back({id, {kNoBuffer, traits_of(node.op).combine.value(), reserve(node)}});
      return;
    }
    NodeId storage = id;
    if (analysis_.overlays[id] == Overlay::reuse && !in_registers(id)) {
      for (NodeId input : node.inputs) {
        if (dies_at(input, id) && leaves_product_alone(id, input) && graph_[input].type == node.type &&
            reads_alone(id, input)) {
          storage = placed(input)->storage;
          break;
        }
      }
    }
    append(id, storage, false);
  }

  // Accumulators are adjacent, so that all are combined, and their lanes added, as if they were one value.
  std::uint64_t reserve(const Node& node) {
    const std::uint64_t offset = accumulators_;
    accumulators_ += node.type.bytes();
    return offset;
  }

  void append(NodeId id, NodeId storage, bool loaded) {
    TileValue value;
    value.node = id;
    value.storage = storage;
    value.loaded = loaded;
    const auto features = static_cast<std::uint64_t>(capacity_ == 0 ? 0 : graph_[id].type.shape.elements() / capacity_);
    value.in_registers = in_registers(id);
    value.bytes = in_place_[id] || value.in_registers
                      ? 0
                      : round_up(features * kTileLanes * size_of(graph_[id].type.dtype), kTileAlignment);
    place_[id] = layout_.values.size();
    layout_.values.push_back(value);
    TileValue& owner = layout_.values[place_.at(storage)];
    if (storage == id) owner.first = owner.last = loaded ? first_use(id) : id;  // loaded when its first reader runs
    owner.first = std::min(owner.first, first_use(id));  // a view may be read before the loaded value
    owner.last = std::max(owner.last, last_use(id));
    for (NodeId reader : analysis_.consumers[id]) {
      if (inside(reader) && analysis_.is_view(reader)) views_[storage].push_back(reader);
    }
    // Stores do not extend the live range: a value is written to the arena right after its step.
  }
  std::uint32_t first_use(NodeId id) const {
    std::uint32_t first = ir::kNoNode;
    for (NodeId reader : analysis_.consumers[id]) {
      if (inside(reader) && !analysis_.is_view(reader)) first = std::min(first, due(reader));
    }
    return first == ir::kNoNode ? id : first;
  }
  std::uint32_t last_use(NodeId id) const {
    std::uint32_t last = inside(id) ? id : 0;
    for (NodeId reader : analysis_.consumers[id]) {
      if (inside(reader)) last = std::max(last, due(reader));
    }
    return last;
  }

  // Whether nothing that shares the input's place is read after node `id`.
  bool dies_at(NodeId input, NodeId id) {
    const TileValue* value = placed(input);
    if (value == nullptr || in_place_[input] || in_registers(input) || placed(value->storage)->last > id) return false;
    // A view that has a place by now keeps it, so each view is checked once.
    std::vector<NodeId>& views = views_[value->storage];
    while (!views.empty() && placed(views.back()) != nullptr) views.pop_back();
    return views.empty();
  }
  // A product reads its rows while it writes; the executor has decided whether it may overwrite its epilogue's operand.
  bool leaves_product_alone(NodeId id, NodeId input) const {
    const ir::FusedNodes* group = fused(id);
    return group == nullptr || (group->in_place && !share_place(graph_[group->product].inputs[0], input));
  }
  // Whether each operand in that place is read element by element.
  bool reads_alone(NodeId id, NodeId input) const {
    return std::ranges::all_of(graph_[id].inputs, [&](NodeId other) {
      return !share_place(other, input) || graph_[other].type == graph_[id].type;
    });
  }
  bool share_place(NodeId any, NodeId with_place) const {
    const TileValue* value = placed(any);
    return value != nullptr && value->storage == placed(with_place)->storage;
  }
  const TileValue* placed(NodeId id) const {  // null if the node has no place
    const auto found = place_.find(id);
    return found == place_.end() ? nullptr : &layout_.values[found->second];
  }

  const Graph& graph_;
  const ir::RegionStage& stage_;
  std::int64_t capacity_;
  const std::vector<bool>& in_place_;
  const GraphAnalysis& analysis_;
  std::map<NodeId, const ir::FusedNodes*> fused_with_;
  StageLayout layout_;
  std::map<NodeId, std::size_t> place_;
  std::map<NodeId, std::vector<NodeId>> views_;  // keyed by storage: views in the stage that may have no place
  std::uint64_t accumulators_ = 0;
};

// Assigns places for tiles of kTileLanes rows. Returns the bytes of such a tile.
std::uint64_t pack_values(StageLayout& layout) {
  std::vector<Interval> intervals;  // a value in the place of another has no bytes of its own
  for (const TileValue& value : layout.values)
    intervals.push_back({value.storage == value.node ? value.bytes : 0, value.first, value.last});
  const Packing packing = pack(intervals, kTileAlignment);
  const std::string fault = validate(intervals, packing.offsets, packing.height, kTileAlignment);
  if (!fault.empty()) throw std::logic_error("tile: " + fault);
  std::map<NodeId, std::uint64_t> offsets;  // keyed by storage, which comes first
  for (std::size_t i = 0; i < layout.values.size(); ++i) {
    TileValue& value = layout.values[i];
    value.offset = offsets.try_emplace(value.storage, packing.offsets[i]).first->second;
  }
  return packing.height;
}

// Pairs each weight gradient x^T dz, which reads dz, with a sum of dz over the rows: one value per feature of a row,
// summed over rows alone, or over both axes if rows have one feature.
std::vector<std::pair<NodeId, NodeId>> sums_beside_gradients(const Graph& graph, const ir::RegionStage& stage) {
  std::map<NodeId, std::vector<NodeId>> sums;  // keyed by operand; the last sum first
  for (NodeId id = stage.last; id-- > stage.rows;) {
    const Node& node = graph[id];
    if (node.op != Op::sum || node.type.rows > 0) continue;
    const std::uint32_t axes = signature_of(graph, id).params.as<ReduceParams>().axes;
    if (axes == 1u || (axes == 3u && graph[node.inputs[0]].type.shape[1] == 1)) sums[node.inputs[0]].push_back(id);
  }
  std::vector<std::pair<NodeId, NodeId>> pairs;
  for (NodeId id = stage.rows; id < stage.last; ++id) {
    if (graph[id].def->rows != RowRule::contraction || graph[id].type.rows > 0) continue;
    const auto found = sums.find(graph[id].inputs[1]);
    if (found == sums.end() || found->second.empty()) continue;
    pairs.emplace_back(id, found->second.back());
    found->second.pop_back();
  }
  return pairs;
}

// Work of the stage per row, in units of eight additions.
std::int64_t work_of_row(const Graph& graph, const GraphAnalysis& analysis, const ir::RegionStage& stage,
                         std::int64_t capacity) {
  std::int64_t eighths = 0;
  for (NodeId id = stage.rows; id < stage.last; ++id) {
    const Node& node = graph[id];
    if (analysis.is_view(id)) continue;
    std::int64_t elements = node.type.rows > 0 ? node.type.shape.elements() / capacity : 0;
    for (NodeId input : node.inputs) {
      if (graph[input].type.rows > 0) elements = std::max(elements, graph[input].type.shape.elements() / capacity);
    }
    if (node.def->rows == RowRule::contraction) {
      const std::int64_t other = node.type.rows > 0 ? node.type.shape[node.type.shape.rank() - 1]
                                                    : graph[node.inputs[1]].type.shape.elements() / capacity;
      const std::int64_t inner = graph[node.inputs[0]].type.shape.elements() / capacity;
      elements = std::max(elements, inner * other / 2);
    } else if (node.def->rows == RowRule::elementwise && node.inputs.size() == 1) {
      elements *= 4;  // functions such as tanh
    }
    eighths += elements;
  }
  return eighths / 8 + 1;
}

// Returns the region's plan or, if it has none, the executor's with the overrides of a test.
RegionPlan plan_of(const Graph& graph, const GraphAnalysis& analysis, const ir::Region& region, const RegionSize& size,
                   const PlanRegion& plan, const TileChoice& choice) {
  if (region.plan) return *region.plan;
  RegionQuestion question(graph, analysis, region.phase);
  for (NodeId id = region.stages.front().first; id < region.last; ++id) {
    if (analysis.is_view(id) || graph[id].def->effect) continue;
    question.add(id, region.stage_of(id));
  }
  for (const ir::RegionStage& stage : region.stages)
    for (const ir::FusedNodes& fused : stage.fused) question.add(fused);
  RegionPlan planned = question.ask(plan, size);
  if (!planned.yes) throw std::logic_error("the planner rejects a region that it accepted before: " + planned.reason);
  auto* const host = std::get_if<HostTiling>(&planned.tiling);
  if (host == nullptr) return planned;
  HostTiling& tiling = *host;
  if (choice.partitions > 0) {
    tiling.partitions = choice.partitions;
    tiling.tile_rows =
        std::min(tiling.tile_rows, whole_lanes(divide_up(graph.phases[region.phase].capacity, choice.partitions)));
  }
  if (choice.rows > 0) tiling.tile_rows = choice.rows;
  return planned;
}

// Gives each value its own storage, except views, which share that of their operand.
void move_to_registers(const Graph& graph, const GraphAnalysis& analysis, StageLayout& stage) {
  std::map<NodeId, NodeId> storage;
  for (TileValue& value : stage.values) {
    const auto shown = analysis.is_view(value.node) ? storage.find(graph[value.node].inputs[0]) : storage.end();
    value.storage = shown == storage.end() || value.loaded ? value.node : shown->second;
    storage[value.node] = value.storage;
    value.in_registers = true;
    value.bytes = 0;
  }
}

RegionLayout lay_out(const Graph& graph, const GraphAnalysis& analysis, const ir::Region& region,
                     const std::vector<bool>& in_place, const PlanRegion& plan, const TileChoice& choice) {
  const std::int64_t capacity = graph.phases[region.phase].capacity;
  RegionLayout layout;
  std::uint64_t unit = 0;  // bytes of a tile of kTileLanes rows
  RegionSize size;
  for (const ir::RegionStage& stage : region.stages) {
    StageBuilder builder(graph, stage, capacity, in_place, analysis);
    StageLayout out = builder.run();
    unit = std::max(unit, pack_values(out));
    // Rows are chosen by the bytes of unfused steps, for which the limit of a tile was measured (regions.md): fused
    // steps keep the tile closer to the core instead of making it longer.
    StageLayout unfused = StageBuilder(graph, stage, capacity, in_place, analysis, false).run();
    size.tile_bytes = std::max(size.tile_bytes, pack_values(unfused));
    size.accumulator_bytes = std::max(size.accumulator_bytes, builder.accumulator_bytes());
    size.work = std::max(size.work, checked_mul(work_of_row(graph, analysis, stage, capacity), capacity));
    layout.stages.push_back(std::move(out));
  }

  layout.plan = plan_of(graph, analysis, region, size, plan, choice);
  auto* const host = std::get_if<HostTiling>(&layout.plan.tiling);
  const auto vectors = host == nullptr ? 0 : static_cast<std::uint64_t>(whole_lanes(host->tile_rows) / kTileLanes);
  if (host != nullptr) host->tile_bytes = unit * vectors;
  for (std::size_t s = 0; s < layout.stages.size(); ++s) {
    if (host == nullptr) move_to_registers(graph, analysis, layout.stages[s]);
    if (host != nullptr && host->lanes) layout.stages[s].sums = sums_beside_gradients(graph, region.stages[s]);
    for (TileValue& value : layout.stages[s].values) {
      value.offset *= vectors;
      value.bytes *= vectors;
    }
  }
  return layout;
}

}  // namespace

std::vector<RegionLayout> lay_out_regions(const Graph& graph, const GraphAnalysis& analysis, const DataLayout& data,
                                          const PlanRegion& plan, const TileChoice& choice) {
  std::vector<RegionLayout> layouts;
  for (const ir::Region& region : graph.regions) {
    const bool over_rows = region.chains.empty();
    layouts.push_back(over_rows ? lay_out(graph, analysis, region, data.in_place, plan, choice) : RegionLayout{});
  }
  return layouts;
}

}  // namespace graphrun::plan
