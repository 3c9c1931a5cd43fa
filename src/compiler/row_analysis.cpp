#include "compiler/row_analysis.h"

#include <algorithm>

#include "graph/ops/op_def.h"

namespace graphrun {

std::string_view name_of(RowKind kind) {
  constexpr std::string_view kNames[] = {"Row", "Shared", "Reduced", "Opaque"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<RowKind> row_kinds(const ir::Graph& graph) {
  std::vector<RowKind> kinds;
  kinds.reserve(graph.size());
  for (const ir::Node& node : graph.nodes) {
    const bool reads_rows =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::NodeId i) { return graph[i].type.rows > 0; });
    const RowRule rule = node.def->rows;
    if (node.type.rows > 0) {
      kinds.push_back(RowKind::row);
    } else if (!reads_rows) {
      kinds.push_back(RowKind::shared);
    } else {
      const bool reduces = rule == RowRule::reduction || rule == RowRule::contraction || rule == RowRule::scatter;
      kinds.push_back(reduces ? RowKind::reduced : RowKind::opaque);
    }
  }
  return kinds;
}

}  // namespace graphrun
