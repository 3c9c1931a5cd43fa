#include "graph/frontend/step/phase_choices.h"

#include "graph/ops/make.h"
#include "graphrun/op.h"

namespace graphrun {

bool has_phase_choices(const ir::Builder& model) {
  return model.training_or_none() != ir::kNoNode;
}

ir::Graph with_phase_choices(const ir::Builder& model, bool training) {
  ir::Graph graph = model.graph();
  const ir::NodeId flag = model.training_or_none();
  for (ir::Node& node : graph.nodes) {
    if (node.op != Op::where || node.inputs[0] != flag) continue;
    // Replaces the choice by the selected side: a reshape to the same shape, which is a differentiable view, or a
    // broadcast if the choice would broadcast that side.
    node.inputs = {node.inputs[training ? 1 : 2]};
    const TensorType& side = graph[node.inputs[0]].type;
    const bool is_whole = side.shape == node.type.shape && side.rows == node.type.rows;
    node.op = is_whole ? Op::reshape : Op::broadcast_to;
    node.def = &op_def(node.op);
    AttrList attrs = {{"shape", make::dims(node.type.shape)}};
    if (!is_whole) attrs.emplace_back("rows", node.type.rows);
    node.attrs = ir::Attrs(node.def->attrs, attrs);
  }
  return graph;
}

}  // namespace graphrun
