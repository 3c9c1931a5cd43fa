#include "executors/cuda_planner/row_stage.h"

#include "graphrun/op.h"
#include "graphrun/params/minibatch.h"

namespace graphrun::cuda {

TextCall row_call(const StageCall& call, const Step& step, const std::map<BufferId, std::string>& values) {
  TextCall text = call.once.call(step);
  call.once.rows_read(step);
  for (std::size_t k = 0; k < step.inputs.size(); ++k) {
    if (call.is_tile(step.inputs[k])) text.inputs[k].name = values.at(call.root(step.inputs[k]));
    if (call.frame.places.stays_in_arena(step, k)) text.inputs[k].name = call.pointer(step.inputs[k], "const ");
  }
  if (step.op == Op::minibatch) text.picked = call.picked.table_of(text, step);
  return text;
}

bool is_same(const StageCall& call, BufferId arena) {
  return call.buffer(call.root(arena)).kind == BufferKind::data;
}
bool is_same(const StageCall& call, const Step& step) {
  if (step.op != Op::minibatch || !call.frame.places.stays_in_arena(step, 0)) return false;
  const auto& p = step.params.as<MinibatchParams>();
  return !p.shuffle && p.batches() == 1;
}

}  // namespace graphrun::cuda
