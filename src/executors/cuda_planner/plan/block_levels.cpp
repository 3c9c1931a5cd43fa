#include "executors/cuda_planner/plan/block_levels.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "executors/cuda_planner/cost/tile_costs.h"
#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

constexpr std::uint64_t kAlign = 128;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

std::vector<std::size_t> block_levels(const std::vector<LevelStep>& steps) {
  struct State {
    std::size_t there = 0, read = 0;  // first level at which it is available, last level that reads it
  };
  std::map<std::uint32_t, State> states;
  std::vector<std::size_t> levels;
  for (const LevelStep& step : steps) {
    State& written = states[step.writes];
    std::size_t level = std::max(written.there, written.read);
    for (const std::uint32_t id : step.reads) level = std::max(level, states[id].there);
    for (const std::uint32_t id : step.reads) states[id].read = std::max(states[id].read, level);
    written.there = step.sums_elements ? level + 1 : level;
    levels.push_back(level);
  }
  return levels;
}

bool sums_elements(const TextCall& call) {
  return call.op == Op::sum && call.output.rows == 0 && call.output.shape.elements() == 1 &&
         is_array(call.inputs[0].type) && call.inputs[0].type.dtype == DType::f32 && is_dense(call.inputs[0].view);
}

std::uint64_t kept_bytes(std::int64_t elements, DType dtype) {
  return aligned(static_cast<std::uint64_t>(elements) * size_of(dtype));
}
std::uint64_t level_parts_bytes(std::size_t sums, std::uint32_t blocks) {
  return aligned(sums * blocks * sizeof(float));
}
std::uint64_t BlockLevels::shared_bytes(std::uint32_t threads) const {
  return std::accumulate(sums.begin(), sums.end(), std::size_t{0}) * (threads + 1) * sizeof(float);
}
std::uint64_t BlockLevels::scratch_bytes(std::uint32_t blocks) const {
  std::uint64_t bytes = kept_bytes;
  for (const std::size_t count : sums) bytes += level_parts_bytes(count, blocks);
  return bytes;
}

BlockLevels block_levels(const RegionSignature& region) {
  BlockLevels needs;
  const auto rows = static_cast<std::uint32_t>(region.rows.size());
  std::vector<LevelStep> steps;
  for (std::uint32_t i = 0; i < region.once.size(); ++i) {
    LevelStep& step = steps.emplace_back(LevelStep{{}, rows + i, sums_elements(call_of(region.once[i]))});
    for (const std::uint32_t maker : region.makers[rows + i])
      if (maker != kNoStep) step.reads.push_back(maker);
  }
  const std::vector<std::size_t> levels = block_levels(steps);
  std::vector<bool> kept(rows + steps.size(), false);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StepSignature& step = region.once[i];
    const std::size_t level = levels[i];
    if (steps[i].sums_elements) {
      needs.sums.resize(std::max(needs.sums.size(), level + 1), 0);
      ++needs.sums[level];
    } else if (is_array(step.output) && step.op != Op::record && level > 0) {
      needs.elements += step.output.shape.elements();
    }
    for (const std::uint32_t maker : steps[i].reads) {
      const TensorType& type = maker < rows ? region.rows[maker].output : region.once[maker - rows].output;
      if (!is_array(type) || kept[maker] || levels[i] == (maker < rows ? 0 : levels[maker - rows])) continue;
      kept[maker] = true;
      needs.kept_bytes += cuda::kept_bytes(type.shape.elements(), type.dtype);
    }
  }
  return needs;
}

BlockOrder::BlockOrder(const Program& program, const Phase& phase, const Region& region, const Places& places)
    : sums(1) {
  const Stage& stage = region.stages.front();
  std::vector<LevelStep> steps;
  const auto each = [&](const auto& f) {
    for (std::uint32_t i = stage.first; i < stage.rows; ++i) f(i);
    for (std::uint32_t i = stage.last; i < region.last; ++i) f(i);
  };
  each([&](std::uint32_t i) {
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
  });
  const std::vector<std::size_t> found = block_levels(steps);
  std::size_t k = 0;
  each([&](std::uint32_t i) {
    const std::size_t level = levels[i] = found[k];
    const bool is_sum = steps[k++].sums_elements;
    sums.resize(std::max(sums.size(), level + (is_sum ? 2 : 1)));
    if (is_sum) sums[level].push_back(i);
  });
}
bool BlockOrder::sums_elements(std::uint32_t step) const {
  const std::vector<std::uint32_t>& of = sums.at(levels.at(step));
  return std::ranges::find(of, step) != of.end();
}

}  // namespace graphrun::cuda
