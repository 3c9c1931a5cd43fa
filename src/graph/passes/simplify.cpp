// simplify: one forward scan that maps each node to an equal one where it can:
//   equal nodes (same op, inputs, attributes, phase) are computed once;
//   an elementwise op broadcasts by itself, so a broadcast_to before it goes when the result keeps its type;
//   reshape and broadcast_to to the same type, and cast to the same dtype, are their operand.
// Every rewrite gives the same bits.
#include <map>
#include <tuple>

#include "graph/ops/op_def.h"
#include "graph/passes/pipeline.h"

namespace graphrun {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;

bool is_identity(const Graph& graph, const Node& node) {
  const bool candidate = node.op_name == "reshape" || node.op_name == "broadcast_to" || node.op_name == "cast";
  return candidate && graph[node.inputs[0]].type == node.type;
}

// Drops broadcast_to nodes before an elementwise op as long as inference still gives the same type.
void drop_broadcasts(const Graph& graph, Node& node) {
  if (node.op->rows != RowRule::elementwise) return;
  for (NodeId& input : node.inputs) {
    if (graph[input].op_name != "broadcast_to") continue;
    const NodeId before = input;
    input = graph[input].inputs[0];
    std::vector<TensorType> types;
    std::vector<std::string> names;
    for (NodeId i : node.inputs) {
      types.push_back(graph[i].type);
      names.push_back(graph[i].name);
    }
    bool same = false;
    try {
      same = node.op->infer({types, node.attrs, names}) == node.type;
    } catch (const Error&) {
      same = false;  // rows would no longer meet at dimension 0
    }
    if (!same) input = before;
  }
}

}  // namespace

Graph simplify(const Graph& graph) {
  Graph result;
  std::vector<NodeId> mapped(graph.size(), ir::kNoNode);
  // Attributes print exactly, so their text stands for them in the key.
  std::map<std::tuple<std::uint32_t, std::string_view, std::vector<NodeId>, std::string>, NodeId> seen;
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph[id];
    for (NodeId& input : node.inputs) input = mapped[input];
    const bool visible = node.keep || node.poll;
    drop_broadcasts(result, node);
    if (!visible && is_identity(result, node)) {
      mapped[id] = node.inputs[0];
      continue;
    }
    const bool pure = node.op_name != "assign" && (node.op->state == nullptr || node.op_name == "constant");
    if (pure && !visible) {
      const auto [entry, fresh] =
          seen.try_emplace({node.phase, node.op_name, node.inputs, node.attrs.text()}, result.size());
      if (!fresh) {
        mapped[id] = entry->second;
        continue;
      }
    }
    mapped[id] = result.size();
    result.nodes.push_back(std::move(node));
  }
  result.phases = graph.phases;
  for (ir::Phase& phase : result.phases) {
    if (phase.row_count != ir::kNoNode) phase.row_count = mapped[phase.row_count];
  }
  return result;
}

}  // namespace graphrun
