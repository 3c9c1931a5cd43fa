#include "graph/plan/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "graph/ops/op_def.h"
#include "graph/plan/offsets.h"
#include "graph/plan/storage.h"

namespace graphrun::plan {
namespace {

using ir::Graph;
using ir::kNoNode;
using ir::kShared;
using ir::Node;
using ir::NodeId;

std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::vector<std::byte> constant_bytes(const Node& node) {
  const std::vector<double>& values = node.attrs.reals("values");
  std::vector<std::byte> bytes(node.type.bytes());
  const auto fill = [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T value = static_cast<T>(values[i]);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  };
  switch (node.type.dtype) {
    case DType::f32:
      fill(float{});
      break;
    case DType::f64:
      fill(double{});
      break;
    case DType::i32:
      fill(std::int32_t{});
      break;
    case DType::u64:
      fill(std::uint64_t{});
      break;
    case DType::boolean:
      fill(std::uint8_t{});
      break;
  }
  return bytes;
}

class Lowering {
 public:
  Lowering(const Graph& graph, const LowerOptions& options)
      : graph_(graph), options_(options), storage_(assign_storage(graph)) {
    result_.buffer_of.assign(graph.size(), kNoBuffer);
    program().name = options.name;
    program().target = options.target;
  }

  Lowered run() {
    make_buffers();
    for (std::uint32_t phase = 0; phase < graph_.phases.size(); ++phase) make_phase(phase);
    if (!declined_.empty()) throw Error(ErrorKind::input, std::move(declined_));
    place();
    check(program());
    return std::move(result_);
  }

 private:
  Program& program() { return result_.program; }

  // States come first, by kind, so that what the host polls is one block; then the other storages.
  void make_buffers() {
    std::vector<NodeId> order;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_[id].op_name != "assign") order.push_back(id);
    }
    const auto rank = [&](NodeId id) {
      const Node& node = graph_[id];
      if (node.op->state == nullptr) return std::pair{int(BufferKind::activation), 0};
      return std::pair{int(node.op->state(node.attrs)), node.poll ? 1 : 0};
    };
    std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return rank(a) < rank(b); });
    for (NodeId id : order) {
      const Node& node = graph_[id];
      Buffer buffer;
      buffer.name = node.name;
      buffer.type = node.type;
      buffer.kind = node.op->state != nullptr ? node.op->state(node.attrs) : BufferKind::activation;
      buffer.bytes = node.type.bytes();
      buffer.poll = node.poll;
      result_.buffer_of[id] = static_cast<BufferId>(program().buffers.size());
      program().buffers.push_back(std::move(buffer));
      if (node.op_name == "constant") program().initial.push_back({result_.buffer_of[id], constant_bytes(node)});
    }
    for (NodeId id : order) program().buffers[result_.buffer_of[id]].storage = result_.buffer_of[storage_.root[id]];
    // An assign that copies names the state it writes.
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_[id].op_name == "assign") result_.buffer_of[id] = result_.buffer_of[graph_[id].inputs[0]];
    }
  }

  void make_phase(std::uint32_t index) {
    const ir::Phase& phase = graph_.phases[index];
    Phase out;
    out.name = phase.name;
    out.capacity = phase.capacity;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_[id].phase == index && !storage_.no_step[id]) out.steps.push_back(make_step(id, phase));
    }
    program().phases.push_back(std::move(out));
  }

  Step make_step(NodeId id, const ir::Phase& phase) {
    const Node& node = graph_[id];
    std::vector<TensorType> types;
    Step step;
    step.op = node.op_name;
    step.name = node.name;
    step.output = result_.buffer_of[id];
    bool rows = node.type.rows > 0;
    for (NodeId input : node.inputs) {
      step.inputs.push_back(result_.buffer_of[input]);
      types.push_back(graph_[input].type);
      rows = rows || graph_[input].type.rows > 0;
    }
    if (node.op->pack != nullptr) step.params = node.op->pack(node.attrs, types, node.type);
    const bool partial = rows && phase.row_count != kNoNode;
    if (partial) step.row_count = result_.buffer_of[phase.row_count];

    const Support support = options_.supports({step.op, step.params, types, node.type, partial});
    if (!support.yes) {
      Diagnostic diagnostic;
      diagnostic.code = "step.unsupported";
      diagnostic.message = fmt::format("'{}' ({}): {}", node.name, node.op_name, support.reason);
      diagnostic.line = node.source.line;
      diagnostic.column = node.source.column;
      diagnostic.pointer = node.source.pointer;
      declined_.push_back(std::move(diagnostic));
    } else if (support.workspace_bytes > 0) {
      step.workspace = add_workspace(node, support.workspace_bytes, storage_.time[id]);
    }
    return step;
  }

  BufferId add_workspace(const Node& node, std::uint64_t bytes, std::uint32_t time) {
    const auto id = static_cast<BufferId>(program().buffers.size());
    Buffer buffer;
    buffer.name = node.name + ".workspace";
    buffer.type = {DType::boolean, {static_cast<std::int64_t>(bytes)}, 0};  // plain bytes
    buffer.kind = BufferKind::workspace;
    buffer.storage = id;
    buffer.bytes = bytes;
    program().buffers.push_back(std::move(buffer));
    workspaces_.push_back({id, time});
    return id;
  }

  void place() {
    std::uint64_t states = 0;
    std::vector<Interval> intervals;
    std::vector<BufferId> placed;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (storage_.root[id] != id || graph_[id].op_name == "assign" || graph_[id].phase == kShared) continue;
      const BufferId buffer = result_.buffer_of[id];
      intervals.push_back({program().buffers[buffer].bytes, storage_.first[id], storage_.last[id], kAlignment});
      placed.push_back(buffer);
    }
    for (const auto& [buffer, time] : workspaces_) {
      intervals.push_back({program().buffers[buffer].bytes, time, time, kAlignment});
      placed.push_back(buffer);
    }
    for (Buffer& buffer : program().buffers) {
      if (!is_state(buffer.kind)) continue;
      buffer.offset = states;
      states += padded(buffer.bytes);
    }
    const Packing packing = pack(intervals);
    const std::string fault = validate(intervals, packing.offsets, packing.total);
    if (!fault.empty()) throw std::logic_error("plan: " + fault);
    for (std::size_t i = 0; i < placed.size(); ++i) program().buffers[placed[i]].offset = states + packing.offsets[i];
    for (Buffer& buffer : program().buffers) buffer.offset = program().buffers[buffer.storage].offset;
    program().arena_bytes = states + padded(packing.total);
    program().lower_bound = states + padded(packing.lower_bound);
  }

  struct Workspace {
    BufferId buffer;
    std::uint32_t time;
  };

  const Graph& graph_;
  const LowerOptions& options_;
  Storage storage_;
  Lowered result_;
  std::vector<Workspace> workspaces_;
  std::vector<Diagnostic> declined_;
};

}  // namespace

Lowered lower(const ir::Graph& graph, const LowerOptions& options) {
  return Lowering(graph, options).run();
}

}  // namespace graphrun::plan
