// simplify: one forward scan that maps each node to an equal one if there is one:
//   equal nodes (same op, inputs, attributes, phase) are computed once;
//   a broadcast_to before an elementwise op, which broadcasts by itself, is dropped if the result keeps its type;
//   an elementwise op whose full-size operands are all broadcasts is computed before the broadcast;
//   a product of a transposed matrix transposes it by itself;
//   reshape and broadcast_to to the same type, cast to the same dtype, x / 1, dropout with rate 0 and stop_gradient
//   become their operand.
// Results are bitwise identical.
#include <map>
#include <optional>
#include <tuple>

#include "compiler/graph_analysis.h"
#include "compiler/passes.h"
#include "graph/ir/needed.h"
#include "graph/ops/infer.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/view.h"

namespace graphrun {
namespace {

using ir::Graph, ir::Node, ir::NodeId;

bool is_one(const Node& node) {
  return node.op == Op::constant && node.attrs.reals("values") == std::vector<double>{1};
}

bool is_identity(const Graph& graph, const Node& node) {
  const bool candidate = node.op == Op::reshape || node.op == Op::broadcast_to || node.op == Op::cast ||
                         node.op == family_op::stop_gradient || (node.op == Op::div && is_one(graph[node.inputs[1]])) ||
                         (node.op == Op::dropout && node.attrs.real("rate") == 0);
  return candidate && graph[node.inputs[0]].type == node.type;
}

// Returns the type that the node would have with these inputs, or nullopt if they are incompatible.
std::optional<TensorType> type_with(const Graph& graph, const Node& node, const std::vector<NodeId>& inputs) {
  Node changed = node;
  changed.inputs = inputs;
  try {
    return infer::type_of(graph, changed);
  } catch (const Error&) {
    return std::nullopt;  // rows would not meet at dimension 0
  }
}

// Returns the operand of a broadcast, through reshapes if it has one element; otherwise `id`.
NodeId repeated(const Graph& graph, NodeId id) {
  NodeId shown = id;
  while (graph[shown].op == Op::reshape) shown = graph[shown].inputs[0];
  if (graph[shown].op != Op::broadcast_to) return id;
  const NodeId from = graph[shown].inputs[0];
  return shown == id || graph[from].type.shape.elements() == 1 ? from : id;
}

// Drops broadcast_to nodes before an elementwise op if inference still gives the same type.
void drop_broadcasts(const Graph& graph, Node& node) {
  if (node.def->rows != RowRule::elementwise) return;
  for (NodeId& input : node.inputs) {
    const NodeId before = input;
    input = repeated(graph, input);
    if (input != before && type_with(graph, node, node.inputs) != node.type) input = before;
  }
}

void drop_transposes(const Graph& graph, Node& node) {
  if (node.op != Op::matmul) return;
  constexpr std::string_view kFlags[] = {"transpose_a", "transpose_b"};
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Node& operand = graph[node.inputs[i]];
    if (operand.op != Op::transpose) continue;
    const Params params = infer::params_of(graph, operand);
    const View from = dense(graph[operand.inputs[0]].type.shape);
    if (!(permuted(from, params.as<PermuteParams>().axes) == transposed(from))) continue;
    Node other = node;
    other.inputs[i] = operand.inputs[0];
    AttrList attrs = node.attrs.list();
    for (auto& [name, value] : attrs)
      if (name == kFlags[i]) value = !std::get<bool>(value);
    other.attrs = ir::Attrs(node.def->attrs, attrs);
    if (type_with(graph, other, other.inputs) == node.type) node = std::move(other);
  }
}

// For an elementwise node of broadcasts, such as the gradient of a mean: returns the node without them, and turns
// `node` into the broadcast of its result. Returns nullopt if another operand also has the shape of the result.
std::optional<Node> before_broadcast(const Graph& graph, Node& node) {
  if (node.def->rows != RowRule::elementwise) return std::nullopt;
  NodeId broadcast = ir::kNoNode;
  std::vector<NodeId> inputs = node.inputs;
  for (NodeId& input : inputs) {
    if (graph[input].op != Op::broadcast_to) continue;
    if (graph[input].type.shape == node.type.shape && graph[input].type.rows == node.type.rows) broadcast = input;
    input = graph[input].inputs[0];
  }
  if (broadcast == ir::kNoNode) return std::nullopt;
  const std::optional<TensorType> type = type_with(graph, node, inputs);
  if (!type || type->shape.elements() >= node.type.shape.elements()) return std::nullopt;
  Node narrow = node;
  narrow.inputs = std::move(inputs);
  narrow.type = *type;
  narrow.name += ":once";
  node.op = graph[broadcast].op;
  node.def = graph[broadcast].def;
  node.attrs = graph[broadcast].attrs;
  return narrow;
}

}  // namespace

Rewritten simplify(const Graph& graph) {
  Graph result;
  std::vector<NodeId> mapped(graph.size(), ir::kNoNode);
  // Attributes print exactly, so the key holds their text.
  std::map<std::tuple<std::uint32_t, Op, std::vector<NodeId>, std::string>, NodeId> seen;
  const auto add = [&](Node node) {
    const bool pure = !node.def->effect && (node.def->state == nullptr || node.op == Op::constant);
    if (pure && !node.keep && !node.poll) {
      const auto [entry, fresh] =
          seen.try_emplace({node.phase, node.op, node.inputs, node.attrs.text()}, result.size());
      if (!fresh) return entry->second;
    }
    result.nodes.push_back(std::move(node));
    return result.size() - 1;
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph[id];
    for (NodeId& input : node.inputs) input = mapped[input];
    const bool visible = node.keep || node.poll;
    drop_broadcasts(result, node);
    drop_transposes(result, node);
    if (!visible && is_identity(result, node)) {
      mapped[id] = node.inputs[0];
      continue;
    }
    if (!visible) {
      if (std::optional<Node> narrow = before_broadcast(result, node)) node.inputs = {add(*std::move(narrow))};
    }
    mapped[id] = add(std::move(node));
  }
  IdMap ids(std::move(mapped));
  result.phases = renumbered(graph.phases, ids);
  return {std::move(result), std::move(ids)};
}

// Keeps nodes that the host or a later step can see, and their operands. States stay: they are the model.
Rewritten remove_dead(const Graph& graph) {
  std::vector<NodeId> visible;
  for (const ir::Phase& phase : graph.phases) {
    if (phase.row_count != ir::kNoNode) visible.push_back(phase.row_count);
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    const bool state = node.def->state != nullptr && node.op != Op::constant;
    if (state || node.keep || node.poll || node.def->effect) visible.push_back(id);
  }
  const std::vector<bool> live = ir::needed_by(graph, visible);
  std::vector<NodeId> order;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (live[id]) order.push_back(id);
  }
  return reordered(graph, order);
}

}  // namespace graphrun
