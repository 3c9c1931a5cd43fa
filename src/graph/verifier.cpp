#include "graph/verifier.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>

#include "graph/ops/infer.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

using ir::Graph;
using ir::kNoNode;
using ir::kShared;
using ir::Node;
using ir::NodeId;

[[noreturn]] void broken(std::string_view rule, const Node& node, const std::string& what) {
  throw std::logic_error(fmt::format("verifier: {}: {} ({}): {}", rule, node.name, name_of(node.op), what));
}

void verify_inputs(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.def == nullptr || node.op != node.def->op) broken("op", node, "its op and definition differ");
  const std::size_t operands = node.def->operands.size();
  if (node.def->variadic ? node.inputs.size() < operands : node.inputs.size() != operands)
    broken("arity", node, "wrong number of inputs");
  if ((node.def->state != nullptr) != (node.phase == kShared))
    broken("phase", node, "states are shared, steps are not");
  if (node.phase != kShared && node.phase >= graph.phases.size()) broken("phase", node, "no such phase");
  for (NodeId input : node.inputs) {
    if (input >= id) broken("order", node, "reads a node that comes after it");
    if (graph[input].phase != kShared && graph[input].phase != node.phase) broken("phase", node, "reads another phase");
    if (graph[input].op == Op::assign) broken("effect", node, "reads an assign: the effect has no value");
  }
}

void verify_type(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  TensorType inferred;
  try {
    inferred = infer::type_of(graph, node);
  } catch (const Error& error) {
    broken("type", node, error.what());
  }
  if (!(inferred == node.type)) {
    broken("type", node, fmt::format("is {}, inference says {}", to_string(node.type), to_string(inferred)));
  }
  if (node.type.rows == 0 || node.phase == kShared) return;
  const std::int64_t capacity = graph.phases[node.phase].capacity;
  const std::int64_t wanted = capacity > 0 ? node.type.rows * capacity : batch_extent(node.type.rows);
  if (node.type.shape.rank() == 0 || node.type.shape[0] != wanted) {
    broken("rows", node, fmt::format("dimension 0 of {} is not its rows times the capacity", to_string(node.type)));
  }
}

}  // namespace

void verify(const Graph& graph) {
  std::set<std::string_view> names;
  std::set<std::pair<std::uint32_t, NodeId>> assigned;
  for (NodeId id = 0; id < graph.size(); ++id) {
    verify_inputs(graph, id);
    verify_type(graph, id);
    const Node& node = graph[id];
    if (!names.insert(node.name).second) broken("name", node, "the name is taken");
    if (node.op != Op::assign) continue;
    if (graph[node.inputs[0]].def->state == nullptr) broken("effect", node, "assigns to a node that is not a state");
    if (!assigned.emplace(node.phase, node.inputs[0]).second)
      broken("effect", node, "assigns a state twice in a phase");
  }
  for (const ir::Phase& phase : graph.phases) {
    if (phase.row_count == kNoNode) continue;
    if (phase.row_count >= graph.size() || !(graph[phase.row_count].type == TensorType{DType::i32, {}, 0})) {
      throw std::logic_error(fmt::format("verifier: count: phase {}: row_count must be an i32 scalar", phase.name));
    }
  }
}

}  // namespace graphrun
