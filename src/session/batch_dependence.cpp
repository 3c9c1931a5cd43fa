#include "session/batch_dependence.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/step/step_graph.h"
#include "graph/ir/needed.h"
#include "graphrun/error.h"

namespace graphrun {

std::string batch_dependent_output(const Model& model) {
  const ir::Graph graph = with_phase_choices(model.graph.impl().builder, false);
  const std::vector<RowKind> kinds = row_kinds(graph);
  std::vector<bool> is_dependent(graph.size(), false);
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    is_dependent[id] = kinds[id] == RowKind::reduced || kinds[id] == RowKind::opaque;
    for (const ir::NodeId input : graph[id].inputs) is_dependent[id] = is_dependent[id] || is_dependent[input];
  }
  for (const OutputSpec& output : model.outputs) {
    if (is_dependent[output.value.id]) return output.name;
  }
  return {};
}

std::vector<ir::NodeId> aggregates_of(const ir::Graph& graph, ir::NodeId wanted) {
  const std::vector<RowKind> kinds = row_kinds(graph);
  const ir::NodeId all[] = {wanted};
  const std::vector<bool> needed = ir::needed_by(graph, all);
  std::vector<bool> from_rows(graph.size(), false), is_read(graph.size(), false);
  is_read[wanted] = true;
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    if (!needed[id]) continue;
    const ir::Node& node = graph[id];
    if (kinds[id] == RowKind::opaque) {
      throw Error(ErrorKind::input, "data.formula",
                  fmt::format("{} combines rows in a way that is not an aggregate", name_of(node.op)),
                  "a row's value may depend on the row and on aggregates such as mean(a)");
    }
    from_rows[id] = kinds[id] == RowKind::reduced || std::any_of(node.inputs.begin(), node.inputs.end(), [&](auto i) {
                      return from_rows[i] && kinds[i] != RowKind::row;
                    });
    for (const ir::NodeId input : node.inputs) is_read[input] = is_read[input] || kinds[id] == RowKind::row;
  }
  std::vector<ir::NodeId> aggregates;
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    if (needed[id] && from_rows[id] && is_read[id] && kinds[id] != RowKind::row) aggregates.push_back(id);
  }
  return aggregates;
}

}  // namespace graphrun
