#include "compiler/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

#include "base/checked.h"
#include "graph/ops/op_def.h"
#include "graphrun/elements.h"
#include "graphrun/op.h"
#include "graphrun/target.h"

namespace graphrun::plan {
namespace {

using ir::Graph, ir::kNoNode, ir::kShared, ir::Node, ir::NodeId;

std::vector<std::byte> constant_bytes(const Node& node) {
  const HostTensor values = from_doubles(node.attrs.reals("values"), node.type);
  return {values.bytes().begin(), values.bytes().end()};
}

class Lowering {
 public:
  Lowering(const Graph& graph, const Layouts& layouts, const Arena& arena, const CompileOptions& options)
      : graph_(graph),
        options_(options),
        arena_(arena),
        layouts_(layouts),
        storage_(layouts.storage),
        data_(layouts.data),
        tiles_(layouts.regions.size()),
        workspaces_(graph.size(), kNoBuffer),
        accumulators_(layouts.regions.size(), kNoBuffer) {
    result_.buffer_of.assign(graph.size(), kNoBuffer);
    program().name = options.name;
    program().target = options.target;
    if (!options.target.empty() && find_target(options.target).compute_capability > 0) program().math = options.math;
  }

  Lowered run() {
    make_buffers();
    make_tile_buffers();
    place();
    for (std::uint32_t phase = 0; phase < graph_.phases.size(); ++phase) make_phase(phase);
    try {
      check(program());
    } catch (const Error& error) {  // a bug: the plan is our own
      throw std::logic_error(error.what());
    }
    return std::move(result_);
  }

 private:
  Program& program() { return result_.program; }

  // Adds a buffer with its own storage.
  Buffer& add_buffer(std::string name, const TensorType& type, BufferKind kind) {
    const auto id = static_cast<BufferId>(program().buffers.size());
    return program().buffers.emplace_back(Buffer{std::move(name), type, kind, id});
  }
  static BufferKind kind_of(const Node& node) {
    return node.def->state != nullptr ? node.def->state(node.attrs) : BufferKind::activation;
  }

  // States come first, by kind, so that the polled ones are contiguous; then the other storages.
  void make_buffers() {
    std::vector<NodeId> order;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!graph_[id].def->effect) order.push_back(id);
    }
    const auto rank = [&](NodeId id) {
      const Node& node = graph_[id];
      return std::pair{kind_of(node), node.def->state != nullptr && node.poll};
    };
    std::ranges::stable_sort(order, {}, rank);
    for (NodeId id : order) {
      const Node& node = graph_[id];
      Buffer& buffer = add_buffer(node.name, node.type, layouts_.in_tile_only[id] ? BufferKind::tile : kind_of(node));
      buffer.bytes = node.type.bytes();
      buffer.poll = node.poll;
      if (data_.block[id] > 0 && !layouts_.in_tile_only[id]) {  // a view within a tile has the tile's layout
        buffer.layout = Layout::vectors;
        buffer.block = data_.block[id];
        buffer.bytes = bytes_of(graph_, data_, id);
      }
      if (data_.divisor[id] > 0) {
        buffer.layout = Layout::codes;
        buffer.divisor = data_.divisor[id];
        buffer.bytes = bytes_of(graph_, data_, id);
      }
      if (layouts_.views.shown[id]) {
        const View& view = layouts_.views.view[id];
        buffer.bytes = static_cast<std::uint64_t>(span_of(view)) * size_of(node.type.dtype);
        if (!is_dense(view)) {
          buffer.layout = Layout::strided;
          buffer.strides.assign(view.strides, view.strides + view.extents.rank());
          if (!(view.extents == node.type.shape)) buffer.extents = view.extents;
        }
      }
      buffer.offset = static_cast<std::uint64_t>(layouts_.views.view[id].offset) * size_of(node.type.dtype);
      result_.buffer_of[id] = buffer.storage;
      if (node.op == Op::constant) program().initial.push_back({result_.buffer_of[id], constant_bytes(node)});
    }
    for (NodeId id : order) {
      Buffer& buffer = program().buffers[result_.buffer_of[id]];
      if (!layouts_.in_tile_only[id] || storage_.in_registers[id])
        buffer.storage = result_.buffer_of[storage_.root[id]];
      if (!storage_.in_registers[id]) continue;
      buffer.layout = Layout::registers;
      buffer.bytes = 0;
    }
    // An assign that copies writes the buffer of its state.
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_[id].def->effect) result_.buffer_of[id] = result_.buffer_of[graph_[id].inputs[0]];
    }
  }

  void make_phase(std::uint32_t index) {
    const ir::Phase& phase = graph_.phases[index];
    Phase out{phase.name, phase.capacity, {}};
    std::vector<std::uint32_t> steps_before(graph_.size() + 1, 0);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      steps_before[id] = static_cast<std::uint32_t>(out.steps.size());
      if (graph_[id].phase == index && !storage_.no_step[id]) out.steps.push_back(make_step(id, phase));
    }
    steps_before[graph_.size()] = static_cast<std::uint32_t>(out.steps.size());
    for (std::size_t r = 0; r < graph_.regions.size(); ++r) {
      if (graph_.regions[r].phase != index) continue;
      if (graph_.regions[r].chains.empty())
        out.regions.push_back(make_region(r, steps_before, out.steps));
      else if (auto region = region_of_chains(graph_.regions[r], steps_before))
        out.regions.push_back(std::move(*region));
    }
    program().phases.push_back(std::move(out));
  }

  // ---- regions

  // Values that leave the tile, or are loaded into it, have a buffer in the arena and one in the tile.
  void make_tile_buffers() {
    for (std::size_t r = 0; r < layouts_.regions.size(); ++r) {
      for (const StageLayout& stage : layouts_.regions[r].stages) {
        std::map<NodeId, BufferId>& of = tiles_[r].emplace_back();
        for (const TileValue& value : stage.values) {
          BufferId id = result_.buffer_of[value.node];
          if (value.loaded || value.stored) {
            const Node& node = graph_[value.node];
            id = add_buffer(node.name + ":tile", node.type, BufferKind::tile).storage;
          }
          of[value.node] = id;
          Buffer& buffer = program().buffers[id];
          buffer.storage = of.at(value.storage);
          buffer.offset = value.in_registers ? 0 : value.offset;
          buffer.bytes = value.bytes;
          if (data_.in_place[value.node]) buffer.layout = Layout::vectors;
          if (value.in_registers) buffer.layout = Layout::registers;
        }
      }
    }
  }

  // Drops chains whose steps all happen in place, with their values; returns nullopt if at most one step is left.
  std::optional<Region> region_of_chains(const ir::Region& from, const std::vector<std::uint32_t>& steps_before) const {
    Region region;
    RegionQuestion question(graph_, layouts_.analysis, from.phase);
    for (const ElementChain& chain : from.chains) {
      std::vector<NodeId> steps;
      for (NodeId id = chain.first; id < chain.last; ++id)
        if (!storage_.no_step[id]) steps.push_back(id);
      if (steps.empty()) continue;
      question.add_chain(steps);
      region.chains.push_back({steps_before[chain.first], steps_before[chain.last]});
    }
    region.last = steps_before[from.last];
    if (region.chains.empty() || region.last - region.first() == 1) return std::nullopt;
    const RegionPlan planned = question.ask(options_.plan_region);
    if (!planned.yes) throw std::logic_error("the planner rejects a region that it accepted before: " + planned.reason);
    region.tiling = planned.tiling;
    return region;
  }

  Region make_region(std::size_t index, const std::vector<std::uint32_t>& steps_before, std::vector<Step>& steps) {
    const ir::Region& region = graph_.regions[index];
    const RegionLayout& layout = layouts_.regions[index];
    Region out;
    out.last = steps_before[region.last];
    out.tiling = layout.plan.tiling;
    for (std::size_t s = 0; s < region.stages.size(); ++s) {
      const ir::RegionStage& from = region.stages[s];
      Stage stage{steps_before[from.first], steps_before[from.rows], steps_before[from.last], {}, {}, {}};
      const std::map<NodeId, BufferId>& tile_of = tiles_[index][s];
      for (const TileValue& value : layout.stages[s].values) {
        const TileMove move{result_.buffer_of[value.node], tile_of.at(value.node)};
        if (value.loaded) stage.loads.push_back(move);
        if (value.stored && !storage_.no_step[value.node])
          stage.stores.push_back(move);  // a view needs no store of its own
      }
      for (const auto& [node, combine] : layout.stages[s].combines) {
        stage.combines.push_back({result_.buffer_of[node], combine.op, combine.offset});
      }
      const auto step_of = [&](NodeId id) { return id == kNoNode ? kNoStep : steps_before[id]; };
      for (const ir::FusedNodes& fused : from.fused)
        stage.fused.push_back({step_of(fused.product), step_of(fused.bias), step_of(fused.epilogue), kNoStep});
      for (const auto& [gradient, sum] : layout.stages[s].sums)
        stage.fused.push_back({step_of(gradient), kNoStep, kNoStep, step_of(sum)});
      out.stages.push_back(std::move(stage));
      bind_rows(from, tile_of, std::span(steps).subspan(steps_before[from.rows]));
    }
    out.accumulators = accumulators_[index];
    return out;
  }

  // Makes row steps read and write the buffers in the tile where there are rows.
  void bind_rows(const ir::RegionStage& stage, const std::map<NodeId, BufferId>& tile_of, std::span<Step> steps) {
    std::size_t next = 0;
    for (NodeId id = stage.rows; id < stage.last; ++id) {
      if (storage_.no_step[id]) continue;
      Step& step = steps[next++];
      for (std::size_t i = 0; i < step.inputs.size(); ++i) {
        const NodeId input = graph_[id].inputs[i];
        if (graph_[input].type.rows > 0) step.inputs[i] = tile_of.at(input);
      }
      if (graph_[id].type.rows > 0) step.output = tile_of.at(id);
    }
  }

  Step make_step(NodeId id, const ir::Phase& phase) {
    const Node& node = graph_[id];
    const StepSignature signature = step_signature(graph_, id, options_);
    Step step;
    step.op = node.op;
    step.name = node.name;
    step.params = signature.params;
    if (node.op == Op::minibatch) step.params.as<MinibatchParams>().divisor = data_.divisor[node.inputs[0]];
    step.output = result_.buffer_of[id];
    for (NodeId input : node.inputs) step.inputs.push_back(result_.buffer_of[input]);
    if (signature.partial_rows) step.row_count = result_.buffer_of[phase.row_count];
    step.workspace = workspaces_[id];
    return step;
  }

  BufferId add_workspace(LiveRange::Kind kind, std::uint32_t id, std::uint64_t bytes) {
    const bool of_step = kind == LiveRange::Kind::workspace;
    const TensorType plain_bytes{DType::boolean, {static_cast<std::int64_t>(bytes)}, 0};
    Buffer& buffer =
        add_buffer(of_step ? graph_[id].name + ".workspace" : accumulators_name(id, layouts_.regions[id].plan.tiling),
                   plain_bytes, BufferKind::workspace);
    buffer.bytes = bytes;
    return (of_step ? workspaces_ : accumulators_)[id] = buffer.storage;
  }

  // Sets all offsets, and adds the buffers that steps and regions have in addition to their operands.
  void place() {
    std::uint64_t states = 0;
    for (Buffer& buffer : program().buffers) {
      if (!is_state(buffer.kind)) continue;
      buffer.offset = states;
      states += round_up(buffer.bytes, kAlignment);
    }
    for (std::size_t i = 0; i < arena_.ranges.size(); ++i) {
      const auto& [kind, id, interval] = arena_.ranges[i];
      const BufferId buffer =
          kind == LiveRange::Kind::value ? result_.buffer_of[id] : add_workspace(kind, id, interval.size);
      program().buffers[buffer].offset = states + arena_.packing.offsets[i];
    }
    for (Buffer& buffer : program().buffers) {
      const Buffer& storage = program().buffers[buffer.storage];
      // Until here the offset of a view is relative to its storage.
      if (buffer.kind != BufferKind::tile && &storage != &buffer) buffer.offset += storage.offset;
    }
    program().arena_bytes = states + arena_.packing.height;
    program().lower_bound = states + arena_.packing.lower_bound;
  }

  const Graph& graph_;
  const CompileOptions& options_;
  const Arena& arena_;
  const Layouts& layouts_;
  const Storage& storage_;
  const DataLayout& data_;
  Lowered result_;
  std::vector<std::vector<std::map<NodeId, BufferId>>> tiles_;  // per region and stage: buffers in the tile
  std::vector<BufferId> workspaces_, accumulators_;             // per node, per region
};

}  // namespace

Lowered lower(const ir::Graph& graph, const Layouts& layouts, const Arena& arena, const CompileOptions& options) {
  return Lowering(graph, layouts, arena, options).run();
}

}  // namespace graphrun::plan
