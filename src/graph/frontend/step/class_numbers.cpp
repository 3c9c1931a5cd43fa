#include "graph/frontend/step/class_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "graph/frontend/builder_impl.h"
#include "graph/ops/op_def.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/movement.h"

namespace graphrun {
namespace {

using ir::Node;
using ir::NodeId;
// [begin, end) along each axis of a value; of the batch one sample stands for all.
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

// Follows parts of values back to the inputs that they were moved from. A part that several ways lead to is followed
// once: a value may be put beside itself again and again, and many ops may read it.
class Tracer {
 public:
  Tracer(const ir::Graph& graph, std::vector<ClassRange>& ranges) : graph_(graph), ranges_(ranges) {}

  void run(NodeId id, const Box& box, const ClassRange& range) {
    std::size_t next = open_.size();
    trace(id, box, range);
    for (; next < open_.size(); ++next) follow(open_[next].first, Box(open_[next].second), range);
  }

 private:
  static constexpr std::size_t kMostParts = 1'000'000;  // of a graph; what is beyond is not checked when it is read

  void trace(NodeId id, const Box& box, const ClassRange& range) {
    if (is_empty(box) || seen_.size() == kMostParts || !seen_.emplace(range.count, id, box).second) return;
    open_.emplace_back(id, box);
  }

  void follow(NodeId id, const Box& box, const ClassRange& range) {
    const Node& node = graph_[id];
    if (node.op == Op::input) {
      ClassRange found = range;
      found.input = node.name;
      found.part.assign(box.begin() + 1, box.end());  // every row
      ranges_.push_back(std::move(found));
    } else if (node.op == Op::reshape) {
      reshaped(node, box, range);
    } else if (node.op == Op::broadcast_to) {
      broadcast(node, box, range);
    } else if (node.op == Op::transpose) {
      const auto params = packed(node).as<PermuteParams>();
      Box source(box.size());
      for (std::size_t axis = 0; axis < box.size(); ++axis)
        source[static_cast<std::size_t>(params.axes[axis])] = box[axis];
      trace(node.inputs[0], source, range);
    } else if (node.op == Op::slice) {
      const auto params = packed(node).as<SliceParams>();
      Box source = box;
      source[static_cast<std::size_t>(params.axis)].first += params.start;
      source[static_cast<std::size_t>(params.axis)].second += params.start;
      trace(node.inputs[0], source, range);
    } else if (node.op == Op::concat) {
      concatenated(node, box, range);
    }
  }

  Params packed(const Node& node) const { return node.def->pack(node.attrs, ir::input_types(graph_, node), node.type); }

  // All of it stays all of it; a part is followed where only axes of extent 1 come or go.
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
    trace(node.inputs[0], source, range);
  }

  void broadcast(const Node& node, const Box& box, const ClassRange& range) {
    const Shape& from = graph_[node.inputs[0]].type.shape;
    Box source = whole(from);
    const std::size_t shift = box.size() - source.size();
    for (std::size_t axis = 0; axis < source.size(); ++axis) {
      if (from[static_cast<int>(axis)] != 1) source[axis] = box[axis + shift];
    }
    trace(node.inputs[0], source, range);
  }

  void concatenated(const Node& node, const Box& box, const ClassRange& range) {
    const auto axis = static_cast<std::size_t>(packed(node).as<AxisParams>().axis);
    std::int64_t begin = 0;
    for (const NodeId input : node.inputs) {
      const std::int64_t extent = graph_[input].type.shape[static_cast<int>(axis)];
      Box source = box;
      source[axis] = {std::max(box[axis].first - begin, std::int64_t{0}), std::min(box[axis].second - begin, extent)};
      trace(input, source, range);
      begin += extent;
    }
  }

  const ir::Graph& graph_;
  std::vector<ClassRange>& ranges_;
  std::set<std::tuple<std::int64_t, NodeId, Box>> seen_;  // by how many classes there are
  std::vector<std::pair<NodeId, Box>> open_;
};

std::vector<ClassRange> class_numbers(const ir::Graph& graph, const std::vector<Value>& roots) {
  std::vector<bool> needed(graph.size(), false);
  for (const Value root : roots) {
    if (root.valid() && root.id < graph.size()) needed[root.id] = true;
  }
  std::vector<ClassRange> ranges;
  Tracer tracer(graph, ranges);
  for (NodeId id = graph.size(); id-- > 0;) {
    if (!needed[id]) continue;
    const Node& node = graph[id];
    for (const NodeId input : node.inputs) needed[input] = true;
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
  return class_numbers(model.graph.impl().graph, outputs_of(model));
}

}  // namespace graphrun
