#include "executors/cuda_planner/row_stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "graphrun/op.h"
#include "graphrun/params/minibatch.h"

namespace graphrun::cuda {

std::string printable_name(std::string_view name) {
  std::string text(name);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~' || c == '\\'; }, '?');
  return text;
}

std::string comment_of(const Step& step) {
  return fmt::format("{} {}", printable_name(step.name), name_of(step.op));
}

TextCall row_call(const StageCall& call, const Step& step, const std::map<BufferId, std::string>& values) {
  TextCall text = call.once.call(step);
  call.once.rows_read(step);
  for (std::size_t k = 0; k < step.inputs.size(); ++k) {
    if (call.is_tile(step.inputs[k])) text.inputs[k].name = values.at(storage_root(call.program, step.inputs[k]));
    if (call.places.stays_in_arena(step, k)) text.inputs[k].name = call.pointer(step.inputs[k], "const ");
  }
  if (step.op == Op::minibatch) text.picked = call.picked(text, step);
  return text;
}

std::string count_text(const StageCall& call) {
  return call.count == kNoBuffer ? fmt::format("{}u", call.phase.capacity)
                                 : fmt::format("rows_of<{}>({})", call.phase.capacity, call.once.value(call.count));
}

bool is_same(const StageCall& call, BufferId arena) {
  return call.buffer(storage_root(call.program, arena)).kind == BufferKind::data;
}
bool is_same(const StageCall& call, const Step& step) {
  if (step.op != Op::minibatch || !call.places.stays_in_arena(step, 0)) return false;
  const auto& p = step.params.as<MinibatchParams>();
  return !p.shuffle && p.batches() == 1;
}

}  // namespace graphrun::cuda
