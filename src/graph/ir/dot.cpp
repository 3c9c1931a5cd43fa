#include "graph/ir/dot.h"

#include <fmt/format.h>

#include "graphrun/error.h"
#include "graphrun/op.h"

namespace graphrun::ir {
namespace {

std::string operand(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  return is_number(node) ? fmt::format("{}", node.attrs.reals("values")[0]) : node.name;
}

std::string_view style(const Node& node) {
  if (node.op == Op::input) return "shape=ellipse, style=filled, fillcolor=\"#dce9f7\"";
  if (node.op == Op::parameter) return "shape=box, style=filled, fillcolor=\"#f7ecd0\"";
  if (node.phase == kShared) return "shape=box, style=filled, fillcolor=\"#eeeeee\"";
  return "shape=box";
}

std::string label(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  std::string numbers;
  for (const NodeId input : node.inputs) {
    if (is_number(graph[input])) numbers += " " + operand(graph, input);
  }
  std::string text = json_string(fmt::format("{}: {}{}", node.name, name_of(node.op), numbers));
  text.insert(text.size() - 1, "\\n" + to_string(node.type));
  return text;
}

}  // namespace

bool is_number(const Node& node) {
  return node.op == Op::constant && node.type.shape.rank() == 0;
}

std::string node_text(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  std::string operands;
  for (const NodeId input : node.inputs) operands += (operands.empty() ? "" : ", ") + operand(graph, input);
  return fmt::format("{} = {}({}){} : {}", node.name, name_of(node.op), operands, node.attrs.text(),
                     to_string(node.type));
}

std::string to_dot(const Graph& graph, const std::string& name, const std::vector<bool>& shown) {
  std::string text =
      fmt::format("digraph {} {{\n  rankdir=TB;\n  node [fontname=\"Helvetica\", fontsize=11];\n", json_string(name));
  const auto draws = [&](NodeId id) { return shown[id] && !is_number(graph[id]); };
  const auto nodes_of = [&](std::uint32_t phase, std::string_view indent) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (!draws(id) || graph[id].phase != phase) continue;
      text += fmt::format("{}n{} [{}, label={}];\n", indent, id, style(graph[id]), label(graph, id));
    }
  };
  nodes_of(kShared, "  ");
  const bool boxes = graph.phases.size() > 1;
  for (std::uint32_t phase = 0; phase < graph.phases.size(); ++phase) {
    if (boxes)
      text += fmt::format("  subgraph cluster_{} {{\n    label={};\n", phase, json_string(graph.phases[phase].name));
    nodes_of(phase, boxes ? "    " : "  ");
    if (boxes) text += "  }\n";
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!draws(id)) continue;
    for (const NodeId input : graph[id].inputs) {
      if (draws(input)) text += fmt::format("  n{} -> n{};\n", input, id);
    }
  }
  return text + "}\n";
}

}  // namespace graphrun::ir
