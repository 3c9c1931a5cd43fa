#include "graph/ir/graph.h"

#include <fmt/format.h>

#include <iterator>

namespace graphrun::ir {
namespace {

void print_node(std::string& out, const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  auto to = std::back_inserter(out);
  fmt::format_to(to, "  %{} {} = {}(", id, node.name, name_of(node.op));
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    fmt::format_to(to, "{}%{} {}", i == 0 ? "" : ", ", node.inputs[i], graph[node.inputs[i]].name);
  }
  fmt::format_to(to, "){} : {}{}\n", node.attrs.text(), to_string(node.type), node.poll ? " poll" : "");
}

}  // namespace

std::vector<TensorType> input_types(const Graph& graph, const Node& node) {
  std::vector<TensorType> types;
  for (const NodeId input : node.inputs) types.push_back(graph[input].type);
  return types;
}

std::string to_string(const Graph& graph) {
  std::string out = "states\n";
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph[id].phase == kShared) print_node(out, graph, id);
  }
  for (std::uint32_t phase = 0; phase < graph.phases.size(); ++phase) {
    const std::int64_t capacity = graph.phases[phase].capacity;
    out += fmt::format("phase {} (capacity {})\n", graph.phases[phase].name,
                       extent_text(capacity > 0 ? capacity : kBatch));
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (graph[id].phase == phase) print_node(out, graph, id);
    }
  }
  return out;
}

}  // namespace graphrun::ir
