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
    // The side that is taken, as it is: a reshape to its own shape, which is a view and has its gradient.
    node.op = Op::reshape;
    node.def = &op_def(node.op);
    node.inputs = {node.inputs[training ? 1 : 2]};
    node.attrs = ir::Attrs(node.def->attrs, {{"shape", make::dims(node.type.shape)}});
  }
  return graph;
}

}  // namespace graphrun
