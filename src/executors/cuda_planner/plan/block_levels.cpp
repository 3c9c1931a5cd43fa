#include "executors/cuda_planner/plan/block_levels.h"

#include <algorithm>
#include <numeric>

#include "executors/cuda_planner/cost/tile_costs.h"
#include "graphrun/op.h"

namespace graphrun::cuda {

bool sums_elements(const TextCall& call) {
  return call.op == Op::sum && call.output.rows == 0 && call.output.shape.elements() == 1 &&
         is_array(call.inputs[0].type) && call.inputs[0].type.dtype == DType::f32 && is_dense(call.inputs[0].view);
}

std::uint64_t scratch_bytes(std::int64_t elements, DType dtype) {
  return round_up(static_cast<std::uint64_t>(elements) * size_of(dtype), 128);
}
std::uint64_t BlockLevels::shared_bytes(std::uint32_t threads) const {
  return std::accumulate(sums.begin(), sums.end(), std::size_t{0}) * (threads + 1) * sizeof(float);
}
std::uint64_t BlockLevels::scratch_bytes(std::uint32_t blocks) const {
  std::uint64_t bytes = kept_bytes;
  for (const std::size_t count : sums)
    bytes += cuda::scratch_bytes(static_cast<std::int64_t>(count) * blocks, DType::f32);
  return bytes;
}

BlockLevels block_levels(const RegionSignature& region) {
  BlockLevels needs;
  const std::size_t rows = region.rows.size();
  std::vector<bool> kept(rows + region.once.size(), false);
  needs.available.resize(kept.size(), 0);
  for (std::size_t i = rows; i < kept.size(); ++i) {
    const StepSignature& step = region.once[i - rows];
    std::vector<std::uint32_t> makers = region.makers[i];
    std::erase(makers, kNoStep);
    std::size_t level = 0;
    for (const std::uint32_t maker : makers) level = std::max(level, needs.available[maker]);
    for (const std::uint32_t maker : makers) {
      const TensorType& type = maker < rows ? region.rows[maker].output : region.once[maker - rows].output;
      if (!is_array(type) || kept[maker] || needs.available[maker] == level) continue;
      kept[maker] = true;
      needs.kept_bytes += scratch_bytes(type.shape.elements(), type.dtype);
    }
    const bool sums = sums_elements(call_of(step));
    if (sums) {
      needs.sums.resize(std::max(needs.sums.size(), level + 1), 0);
      ++needs.sums[level];
    } else if (is_array(step.output) && step.op != Op::record && level > 0) {
      needs.elements += step.output.shape.elements();
    }
    needs.available[i] = sums ? level + 1 : level;
  }
  return needs;
}

BlockOrder::BlockOrder(const KernelFrame& frame) : phase(frame.phase), sums(1) {
  struct State {
    std::size_t there = 0, read = 0;  // first level at which it is available, last level that reads it
  };
  std::map<BufferId, State> states;  // storage roots
  const Stage& stage = frame.region.stages.front();
  for (std::uint32_t i = stage.first; i < frame.region.last; ++i) {
    if (i >= stage.rows && i < stage.last) continue;
    const Step& step = phase.steps[i];
    OnceStep& once = steps[i];
    const BufferId output = frame.root(step.output);
    once.call = frame.once.call(step);
    std::vector<BufferId> reads;
    for (std::size_t k = 0; k < step.inputs.size(); ++k)
      if (frame.places.is_read(step, k)) reads.push_back(frame.root(step.inputs[k]));
    once.sums_elements = cuda::sums_elements(once.call);
    once.is_by_element = once.sums_elements || (step.op != Op::record && !frame.places.is_number(output));
    State& written = states[output];
    once.level = std::max(written.there, written.read);
    for (const BufferId id : reads) once.level = std::max(once.level, states[id].there);
    for (const BufferId id : reads) states[id].read = std::max(states[id].read, once.level);
    written.there = once.sums_elements ? once.level + 1 : once.level;
    sums.resize(std::max(sums.size(), once.level + (once.sums_elements ? 2 : 1)));
    if (once.sums_elements) sums[once.level].push_back(i);
  }
}

void BlockOrder::run_scalars(OnceText& once, std::uint32_t first, std::uint32_t last, std::size_t level) {
  for (auto step = steps.lower_bound(first); step != steps.lower_bound(last); ++step) {
    if (step->second.level != level) continue;
    if (step->second.is_by_element)
      step->second.call = once.call(phase.steps[step->first]);
    else
      once.run(step->first, step->first + 1);
  }
}

}  // namespace graphrun::cuda
