// Part of block_sums.h: finds the steps that run once and wait for element sums of others.
#include <algorithm>

#include "executors/cuda_planner/block_levels.h"
#include "executors/cuda_planner/block_sums.h"
#include "graphrun/op.h"

namespace graphrun::cuda {

BlockOrder::BlockOrder(const Program& program, const Phase& phase, const Region& region, const Places& places) {
  const Stage& stage = region.stages.front();
  std::vector<LevelStep> steps;
  std::vector<std::uint32_t> numbers;
  const auto add = [&](std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t i = first; i < last; ++i) {
      const Step& step = phase.steps[i];
      TextCall call{step.op, &step.params, {}, program.buffers[step.output].type};
      LevelStep& of = steps.emplace_back(LevelStep{{}, storage_root(program, step.output), false});
      for (std::size_t k = 0; k < step.inputs.size(); ++k) {
        const Buffer& input = program.buffers[step.inputs[k]];
        call.inputs.push_back({input.type, "x", false, view_of(input)});
        if (!places.stays_in_arena(step, k) && !(step.op == Op::assign && k == 0))
          of.reads.push_back(storage_root(program, step.inputs[k]));
      }
      of.sums_elements = cuda::sums_elements(call);
      numbers.push_back(i);
      if (of.sums_elements) sums_.push_back(i);
    }
  };
  add(stage.first, stage.rows);
  add(stage.last, region.last);
  const std::vector<int> found = block_levels(steps);
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    levels[numbers[k]] = found[k];
    count = std::max(count, found[k] + (steps[k].sums_elements ? 2 : 1));
  }
}
bool BlockOrder::sums_elements(std::uint32_t step) const {
  return std::ranges::find(sums_, step) != sums_.end();
}
std::vector<std::uint32_t> BlockOrder::sums_of(int level) const {
  std::vector<std::uint32_t> of;
  for (const std::uint32_t i : sums_)
    if (levels.at(i) == level) of.push_back(i);
  return of;
}

}  // namespace graphrun::cuda
