#include "graph/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "graph/ir/needed.h"
#include "graph/ops/infer.h"
#include "graph/ops/make.h"

namespace graphrun {
namespace {

using ir::kNoNode;
using ir::NodeId;

// Sums over the axes along which the value was broadcast: leading axes that it does not have, and axes where its extent
// is 1. Rows are handled alike: the gradient of a shared value that was combined with rows is a sum over rows.
Var unbroadcast(Var gradient, const TensorType& wanted) {
  const TensorType have = gradient.type();
  const int shift = have.shape.rank() - wanted.shape.rank();
  std::vector<std::int64_t> repeated;
  for (int axis = 0; axis < have.shape.rank(); ++axis) {
    const bool added = axis < shift;
    const bool over_rows = axis == 0 && have.rows > 0 && wanted.rows == 0;
    if (added || over_rows || (wanted.shape[axis - shift] == 1 && have.shape[axis] != 1)) repeated.push_back(axis);
  }
  if (!repeated.empty()) gradient = make::sum(gradient, repeated, true);
  return make::reshape(gradient, wanted.shape);
}

}  // namespace

std::vector<NodeId> gradients(ir::Builder& make, NodeId loss, std::span<const NodeId> wanted) {
  const TensorType& type = make.type(loss);
  if (type.shape.rank() != 0 || !is_float(type.dtype)) {
    throw Error(ErrorKind::input, "gradient.scalar",
                fmt::format("'{}' cannot be minimised: it must be a float scalar, not {}", make.graph()[loss].name,
                            to_string(type)),
                "mean(...) makes a scalar");
  }
  return gradients(make, loss, make.scalar(1, type.dtype), wanted);
}

namespace {
// Gradients indexed by node, for the nodes that existed before the call; Var{} if no gradient reaches the node.
std::vector<Var> sweep(ir::Builder& make, NodeId output, NodeId cotangent, std::span<const NodeId> wanted) {
  // True for nodes on a path from a wanted node to the output.
  std::vector<bool> on_path = ir::needed_by(make.graph(), {&output, 1});
  const std::vector<bool> depends = ir::depending_on(make.graph(), wanted);
  std::transform(on_path.begin(), on_path.end(), depends.begin(), on_path.begin(), std::logical_and<>());
  std::vector<Var> gradient(on_path.size());
  gradient[output] = {&make, cotangent};

  for (NodeId id = output + 1; id-- > 0;) {
    if (!on_path[id] || gradient[id].id == kNoNode) continue;
    const ir::Node node = make.graph()[id];  // a copy: adding nodes invalidates references
    std::vector<Var> inputs;
    std::vector<bool> input_wanted;
    for (const NodeId input : node.inputs) {
      inputs.push_back({&make, input});
      input_wanted.push_back(on_path[input] && is_float(make.type(input).dtype));
    }
    if (std::find(input_wanted.begin(), input_wanted.end(), true) == input_wanted.end()) continue;
    if (node.def->grad == nullptr) {
      throw Error(ErrorKind::input, "gradient.none",
                  fmt::format("no gradient through '{}' ({}): {}", node.name, node.def->name(), node.def->no_gradient));
    }
    GradContext context{inputs,       node.attrs,   infer::params_of(make.graph(), node), {&make, id},
                        gradient[id], input_wanted, std::vector<Var>(inputs.size())};
    node.def->grad(context);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!input_wanted[i] || context.result[i].id == kNoNode) continue;
      const Var part = unbroadcast(context.result[i], inputs[i].type());
      Var& total = gradient[inputs[i].id];
      total = total.id == kNoNode ? part : total + part;
    }
  }
  return gradient;
}
}  // namespace

std::vector<NodeId> gradients(ir::Builder& make, NodeId output, NodeId cotangent, std::span<const NodeId> wanted) {
  const std::vector<Var> gradient = sweep(make, output, cotangent, wanted);
  std::vector<NodeId> result;
  for (const NodeId id : wanted) {
    const Var zero_of{&make, id};
    result.push_back(gradient.at(id).id != kNoNode ? gradient[id].id
                                                   : make::broadcast_to(make::like(0, zero_of), zero_of.type()).id);
  }
  return result;
}

NodeId gradient_or_none(ir::Builder& make, NodeId loss, NodeId wanted) {
  return sweep(make, loss, make.scalar(1, make.type(loss).dtype), {&wanted, 1})[wanted].id;
}

}  // namespace graphrun
