#include "graph/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "graph/ops/make.h"

namespace graphrun {
namespace {

using ir::kNoNode;
using ir::NodeId;

// The gradient of a value that was broadcast is the sum over what it was repeated along: leading axes that it does not
// have, and axes where its extent is 1. Rows are handled alike: a shared value that met rows gets a sum over rows.
NodeId unbroadcast(ir::Builder& builder, NodeId gradient, const TensorType& wanted) {
  const TensorType have = builder.type(gradient);
  const int shift = have.shape.rank() - wanted.shape.rank();
  std::vector<std::int64_t> repeated;
  for (int axis = 0; axis < have.shape.rank(); ++axis) {
    const bool added = axis < shift;
    const bool over_rows = axis == 0 && have.rows > 0 && wanted.rows == 0;
    if (added || over_rows || (wanted.shape[axis - shift] == 1 && have.shape[axis] != 1)) repeated.push_back(axis);
  }
  if (repeated.empty()) return make::reshape(builder, gradient, wanted.shape);
  return make::reshape(builder, make::sum(builder, gradient, repeated, true), wanted.shape);
}

// Nodes on a path from a wanted node to the output.
std::vector<bool> nodes_between(const ir::Graph& graph, NodeId output, std::span<const NodeId> wanted) {
  std::vector<bool> reaches(graph.size(), false);  // depends on a wanted node
  for (NodeId id : wanted) reaches[id] = true;
  for (NodeId id = 0; id <= output; ++id) {
    for (NodeId input : graph[id].inputs) reaches[id] = reaches[id] || reaches[input];
  }
  std::vector<bool> used(graph.size(), false);  // the output depends on it
  used[output] = true;
  for (NodeId id = output + 1; id-- > 0;) {
    if (!used[id]) continue;
    for (NodeId input : graph[id].inputs) used[input] = true;
  }
  for (NodeId id = 0; id < graph.size(); ++id) reaches[id] = reaches[id] && used[id];
  return reaches;
}

}  // namespace

std::vector<NodeId> gradients(ir::Builder& builder, NodeId loss, std::span<const NodeId> wanted) {
  const TensorType& type = builder.type(loss);
  if (type.shape.rank() != 0 || !is_float(type.dtype)) {
    throw Error(ErrorKind::input, "gradient.scalar",
                fmt::format("'{}' cannot be minimised: it must be a float scalar, not {}", builder.graph()[loss].name,
                            to_string(type)),
                "mean(...) makes a scalar");
  }
  return gradients(builder, loss, builder.scalar(1, type.dtype), wanted);
}

std::vector<NodeId> gradients(ir::Builder& builder, NodeId output, NodeId cotangent, std::span<const NodeId> wanted) {
  const std::vector<bool> on_path = nodes_between(builder.graph(), output, wanted);
  std::vector<NodeId> gradient(on_path.size(), kNoNode);
  gradient[output] = cotangent;

  for (NodeId id = output + 1; id-- > 0;) {
    if (!on_path[id] || gradient[id] == kNoNode) continue;
    const std::vector<NodeId> inputs = builder.graph()[id].inputs;  // a copy: adding nodes moves them
    std::vector<bool> input_wanted;
    for (NodeId input : inputs) input_wanted.push_back(on_path[input] && is_float(builder.type(input).dtype));
    if (std::find(input_wanted.begin(), input_wanted.end(), true) == input_wanted.end()) continue;

    const OpDef& op = *builder.graph()[id].def;
    if (op.grad == nullptr) {
      throw Error(
          ErrorKind::input, "gradient.none",
          fmt::format("no gradient through '{}' ({}): {}", builder.graph()[id].name, op.name(), op.no_gradient));
    }
    const ir::Attrs attrs = builder.graph()[id].attrs;
    GradContext context{
        builder, inputs, attrs, id, gradient[id], input_wanted, std::vector<NodeId>(inputs.size(), kNoNode)};
    op.grad(context);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!input_wanted[i] || context.result[i] == kNoNode) continue;
      const NodeId part = unbroadcast(builder, context.result[i], builder.type(inputs[i]));
      NodeId& total = gradient[inputs[i]];
      total = total == kNoNode ? part : make::add(builder, total, part);
    }
  }

  std::vector<NodeId> result;
  for (NodeId id : wanted) {
    const TensorType type = builder.type(id);
    if (gradient.at(id) != kNoNode) {
      result.push_back(gradient[id]);
    } else {
      result.push_back(make::broadcast_to(builder, builder.scalar(0, type.dtype), type));
    }
  }
  return result;
}

}  // namespace graphrun
