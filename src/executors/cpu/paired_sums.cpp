#include "executors/cpu/paired_sums.h"

#include <variant>

#include "graphrun/op.h"

namespace graphrun {
namespace {

bool is_reduced(const Program& program, const Step& step) {
  return program.buffers[step.output].type.rows == 0;
}

// A number for each feature of a row: over rows alone, or over both axes of rows of one feature.
bool sums_rows(const Program& program, const Step& step, BufferId of) {
  if (step.op != Op::sum || step.inputs[0] != of || !is_reduced(program, step)) return false;
  const std::uint32_t axes = std::get<ReduceParams>(step.params).axes;
  return axes == 1u || (axes == 3u && program.buffers[of].type.shape[1] == 1);
}

}  // namespace

std::vector<PairedSum> pair_sums(const Phase& phase, const Stage& stage, const Program& program) {
  std::vector<PairedSum> pairs(stage.last - stage.rows);
  for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
    if (phase.steps[i].op != Op::matmul || !is_reduced(program, phase.steps[i])) continue;
    for (std::uint32_t s = stage.rows; s < stage.last; ++s) {
      if (pairs[s - stage.rows].taken || !sums_rows(program, phase.steps[s], phase.steps[i].inputs[1])) continue;
      pairs[i - stage.rows].sum = s;
      pairs[s - stage.rows].taken = true;
      break;
    }
  }
  return pairs;
}

}  // namespace graphrun
