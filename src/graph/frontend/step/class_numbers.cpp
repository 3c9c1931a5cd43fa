#include "graph/frontend/step/class_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "graph/frontend/builder_impl.h"
#include "graph/ir/needed.h"
#include "graph/ops/infer.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"

namespace graphrun {
namespace {

using ir::Node;
using ir::NodeId;
// [begin, end) along each axis of a value; one sample represents the batch.
using Box = std::vector<std::pair<std::int64_t, std::int64_t>>;

Box whole(const Shape& shape) {
  Box box;
  const Shape sample = shape.with_batch(1);
  for (const std::int64_t extent : sample.dims()) box.emplace_back(0, extent);
  return box;
}

bool is_empty(const Box& box) {
  return std::any_of(box.begin(), box.end(), [](const auto& part) { return part.first >= part.second; });
}

// Traces parts of values back to the inputs that they were copied from. Each part is traced once even if many paths
// reach it: a value may be concatenated with itself repeatedly, and many ops may read it.
class Tracer {
 public:
  Tracer(const ir::Graph& graph, std::vector<ClassRange>& ranges) : graph_(graph), ranges_(ranges) {}

  void run(NodeId id, const Box& box, ClassRange range) {
    trace(id, box, range);
    for (std::size_t next = 0; next < open_.size(); ++next) {
      const Part part = open_[next];  // a copy: follow() adds parts
      range.kind = part.kind;
      follow(part.id, part.box, range);
    }
    open_.clear();
  }

 private:
  static constexpr std::size_t kMaxParts = 1'000'000;  // limit per graph; further parts are not checked

  void trace(NodeId id, const Box& box, const ClassRange& range) {
    if (is_empty(box) || seen_.size() == kMaxParts || !seen_.emplace(range.kind, range.count, id, box).second) return;
    open_.push_back({id, box, range.kind});
  }

  // Downgrades the kind if the last axis may no longer be the classes of one row.
  static ClassRange without_sum(ClassRange range) {
    if (range.kind == ClassRange::Kind::distributions) range.kind = ClassRange::Kind::probabilities;
    return range;
  }

  void follow(NodeId id, const Box& box, const ClassRange& range) {
    const Node& node = graph_[id];
    if (node.op == Op::input) {
      ClassRange found = range;
      found.input = node.name;
      found.part.assign(box.begin() + 1, box.end());  // without the batch axis
      ranges_.push_back(std::move(found));
    } else if (node.op == Op::reshape) {
      reshaped(node, box, range);
    } else if (node.op == Op::broadcast_to) {
      broadcast(node, box, range);
    } else if (node.op == Op::transpose) {
      const auto params = infer::params_of(graph_, node).as<PermuteParams>();
      Box source(box.size());
      for (std::size_t axis = 0; axis < box.size(); ++axis)
        source[static_cast<std::size_t>(params.axes[axis])] = box[axis];
      const bool keeps_last = params.axes[box.size() - 1] == static_cast<std::int64_t>(box.size()) - 1;
      trace(node.inputs[0], source, keeps_last ? range : without_sum(range));
    } else if (node.op == Op::slice) {
      const auto params = infer::params_of(graph_, node).as<SliceParams>();
      Box source = box;
      source[static_cast<std::size_t>(params.axis)].first += params.start;
      source[static_cast<std::size_t>(params.axis)].second += params.start;
      trace(node.inputs[0], source, range);
    } else if (node.op == Op::concat) {
      concatenated(node, box, range);
    } else if (node.op == Op::cast && is_float(node.type.dtype) && range.kind != ClassRange::Kind::numbers) {
      trace(node.inputs[0], box, range);
    }
  }

  // Traces a whole value through any reshape; a part only if the reshape just adds or drops axes of extent 1.
  void reshaped(const Node& node, const Box& box, const ClassRange& range) {
    const Shape& from = graph_[node.inputs[0]].type.shape;
    Box source = whole(from);
    if (box != whole(node.type.shape)) {
      std::size_t next = 0;
      const auto skip_ones = [&] {
        while (next < box.size() && node.type.shape[static_cast<int>(next)] == 1) ++next;
      };
      for (int axis = 0; axis < from.rank(); ++axis) {
        if (from[axis] == 1) continue;
        skip_ones();
        if (next == box.size() || node.type.shape[static_cast<int>(next)] != from[axis]) return;
        source[static_cast<std::size_t>(axis)] = box[next++];
      }
    }
    trace(node.inputs[0], source, last_extent(from) == last_extent(node.type.shape) ? range : without_sum(range));
  }

  void broadcast(const Node& node, const Box& box, const ClassRange& range) {
    const Shape& from = graph_[node.inputs[0]].type.shape;
    Box source = whole(from);
    const std::size_t shift = box.size() - source.size();
    for (std::size_t axis = 0; axis < source.size(); ++axis) {
      if (from[static_cast<int>(axis)] != 1) source[axis] = box[axis + shift];
    }
    trace(node.inputs[0], source, without_sum(range));
  }

  void concatenated(const Node& node, const Box& box, const ClassRange& range) {
    const auto axis = static_cast<std::size_t>(infer::params_of(graph_, node).as<AxisParams>().axis);
    std::int64_t begin = 0;
    for (const NodeId input : node.inputs) {
      const std::int64_t extent = graph_[input].type.shape[static_cast<int>(axis)];
      Box source = box;
      source[axis] = {std::max(box[axis].first - begin, std::int64_t{0}), std::min(box[axis].second - begin, extent)};
      trace(input, source, without_sum(range));
      begin += extent;
    }
  }

  const ir::Graph& graph_;
  std::vector<ClassRange>& ranges_;
  struct Part {
    NodeId id;
    Box box;
    ClassRange::Kind kind;
  };
  std::set<std::tuple<ClassRange::Kind, std::int64_t, NodeId, Box>> seen_;  // includes the class count
  std::vector<Part> open_;
};

// The operand that a node takes as probabilities: the float target of softmax_cross_entropy, or of
// sigmoid_cross_entropy, which is softplus(z) - z * target (library/functions.cpp).
std::optional<std::pair<NodeId, ClassRange>> probabilities(const ir::Graph& graph, const Node& node) {
  const auto range = [&](std::string_view name, NodeId logits, ClassRange::Kind kind) {
    return ClassRange{{}, {}, 0, {}, fmt::format("{}_cross_entropy of '{}'", name, graph[logits].name), kind};
  };
  if (node.op == family_op::softmax_cross_entropy && is_float(graph[node.inputs[1]].type.dtype))
    return std::pair(node.inputs[1], range("softmax", node.inputs[0], ClassRange::Kind::distributions));
  if (node.op != Op::sub) return std::nullopt;
  const Node &soft = graph[node.inputs[0]], &chosen = graph[node.inputs[1]];
  if (soft.op != scalar_op::softplus || chosen.op != Op::mul || chosen.inputs[0] != soft.inputs[0]) return std::nullopt;
  return std::pair(chosen.inputs[1], range("sigmoid", soft.inputs[0], ClassRange::Kind::probabilities));
}

std::vector<ClassRange> class_numbers(const ir::Graph& graph, const std::vector<Value>& roots) {
  std::vector<NodeId> ids;
  for (const Value root : roots) {
    if (root.valid() && root.id < graph.size()) ids.push_back(root.id);
  }
  const std::vector<bool> needed = ir::needed_by(graph, ids);
  std::vector<ClassRange> ranges;
  Tracer tracer(graph, ranges);
  for (NodeId id = graph.size(); id-- > 0;) {
    if (!needed[id]) continue;
    const Node& node = graph[id];
    if (const auto target = probabilities(graph, node))
      tracer.run(target->first, whole(graph[target->first].type.shape), target->second);
    if (node.def->classes == nullptr) continue;
    const std::vector<TensorType> inputs = ir::input_types(graph, node);
    const std::optional<Classes> classes = node.def->classes(node.attrs, inputs);
    if (!classes) continue;
    const ClassRange range{
        {}, {}, classes->count, classes->noun, fmt::format("'{}' ({})", node.name, name_of(node.op))};
    tracer.run(node.inputs[classes->operand], whole(inputs[classes->operand].shape), range);
  }
  return ranges;
}

std::vector<Value> outputs_of(const Model& model) {
  std::vector<Value> roots;
  for (const OutputSpec& output : model.outputs) roots.push_back(output.value);
  return roots;
}

}  // namespace

std::vector<ClassRange> class_numbers(const Model& model) {
  std::vector<Value> roots = outputs_of(model);
  roots.push_back(model.train.minimize);
  for (const MetricSpec& metric : model.train.metrics) roots.push_back(metric.value);
  return class_numbers(model.graph.impl().graph, roots);
}

std::vector<ClassRange> class_numbers_of_outputs(const Model& model) {
  std::vector<ClassRange> ranges = class_numbers(model.graph.impl().graph, outputs_of(model));
  std::erase_if(ranges, [](const ClassRange& range) { return range.kind != ClassRange::Kind::numbers; });
  return ranges;
}

}  // namespace graphrun
