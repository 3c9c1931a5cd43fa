// remove_dead: keeps nodes that the host or a later step can see, and their operands. States stay: they are the model.
#include "compiler/passes.h"
#include "graph/ops/op_def.h"
#include "graphrun/op.h"

namespace graphrun {

Rewritten remove_dead(const ir::Graph& graph) {
  std::vector<bool> live(graph.size(), false);
  for (const ir::Phase& phase : graph.phases) {
    if (phase.row_count != ir::kNoNode) live[phase.row_count] = true;
  }
  for (ir::NodeId id = graph.size(); id-- > 0;) {
    const ir::Node& node = graph[id];
    const bool state = node.def->state != nullptr && node.op != Op::constant;
    live[id] = live[id] || state || node.keep || node.poll || node.def->effect;
    if (!live[id]) continue;
    for (ir::NodeId input : node.inputs) live[input] = true;
  }
  std::vector<ir::NodeId> order;
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    if (live[id]) order.push_back(id);
  }
  return reordered(graph, order);
}

}  // namespace graphrun
