// block_costs.cpp: costs of block tiles, and whether steps that run once fit them.
#include <fmt/format.h>

#include <algorithm>

#include "executors/cuda_planner/cost/tile_costs.h"
#include "executors/cuda_planner/plan/block_levels.h"
#include "executors/cuda_planner/plan/block_phases.h"
#include "executors/cuda_planner/print/row_text.h"
#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

constexpr std::uint64_t kMaxScratch = std::uint64_t{1} << 32;

// Checks that the steps that run once are elementwise, so that the owner of an element's sum over rows can run them.
class OnceCheck : StepGroups {
 public:
  explicit OnceCheck(const RegionSignature& region) : StepGroups(region), sums_(all(), 0), of_elements_(all(), false) {
    for (std::size_t i = 0; i < region.rows.size(); ++i)
      sums_[i] = region.rows[i].output.rows == 0 && is_array(region.rows[i].output) ? 1 : 0;
  }

  std::string run() {
    for (std::size_t i = 0; i < region_.rows.size(); ++i)
      for (const std::uint32_t maker : region_.makers[i])
        if (maker != kNoStep && maker >= region_.rows.size() && is_array(step(maker).output))
          return no(step(maker), "rows read its array");
    for (std::size_t i = region_.rows.size(); i < all(); ++i)
      if (std::string fault = fault_of(i); !fault.empty()) return fault;
    for (std::size_t i = 0; i < region_.rows.size(); ++i)
      for (const std::uint32_t maker : region_.makers[i])
        if (maker != kNoStep && of_elements_[maker])
          return no(region_.rows[i], "it reads a number made of an array that all rows share");
    return {};
  }

 private:
  static std::string no(const StepSignature& step, std::string_view why) {
    return fmt::format("'{}' is not part of a step kernel with tiles of blocks: {}", name_of(step.op), why);
  }
  std::string fault_of(std::size_t i) {
    const StepSignature& s = step(i);
    if (std::string fault = element_fault(call_of(s)); !fault.empty()) return fault;
    if (s.op == Op::record) return is_array(s.inputs[1]) ? no(s, "it records an array") : std::string();
    const bool number = !is_array(s.output);
    of_elements_[i] = sums_elements(call_of(s)) || std::ranges::any_of(region_.makers[i], [&](std::uint32_t maker) {
                        return maker != kNoStep && of_elements_[maker];
                      });
    if (sums_elements(call_of(s))) return {};
    for (std::size_t k = 0; k < s.inputs.size(); ++k) {
      if (!is_array(s.inputs[k])) continue;
      if (number) return no(s, "it makes a number of an array, and not by a sum of all its elements");
      const bool same =
          s.inputs[k].shape.elements() == s.output.shape.elements() && (s.views.empty() || is_dense(s.views[k]));
      if (!same) return no(s, "it reads other elements than it makes");
    }
    if (number) return {};
    if (!is_elementwise(s.op) && !is_draw(s.op)) return no(s, "it does not go element by element");
    for (const std::uint32_t maker : region_.makers[i]) {
      if (maker == kNoStep || !is_array(step(maker).output)) continue;
      const std::size_t a = group(i), b = group(maker);
      if (a == b) continue;
      groups_[b] = a;
      sums_[a] += sums_[b];
      if (sums_[a] > 1) return no(s, "it reads two sums over rows");
    }
    return {};
  }

  std::vector<int> sums_;          // number of sums over rows, by group
  std::vector<bool> of_elements_;  // whether a step depends on a sum of elements
};

}  // namespace

std::vector<BlockStep> block_steps(const RegionSignature& region) {
  std::vector<BlockStep> steps;
  for (std::size_t i = 0; i < region.rows.size(); ++i) {
    BlockStep& step = steps.emplace_back(BlockStep{call_of(region.rows[i]), {}});
    for (std::size_t k = 0; k < region.rows[i].inputs.size(); ++k) {
      const std::uint32_t maker = region.makers[i][k];
      step.makers.push_back(maker < region.rows.size() && region.rows[i].inputs[k].rows > 0 ? static_cast<int>(maker)
                                                                                            : -1);
    }
  }
  return steps;
}

std::string block_fault(const RegionSignature& region) {
  if (stage_count(region) > 1) return "tiles of blocks have no second stage of rows";
  for (const StepSignature& step : region.rows)
    if (std::string fault = block_fault(call_of(step)); !fault.empty()) return fault;
  return {};
}

TileCosts block_costs(const RegionSignature& region, const Target& target) {
  TileCosts tile{block_fault(region), {}};
  if (tile.fault.empty()) tile.fault = OnceCheck(region).run();
  if (!tile.fault.empty()) return tile;
  // Block products compiled for an A100 do not fit the registers.
  if (target.compute_capability < 90)
    return {fmt::format("tiles of blocks are for compute capability 9.0 and later, {} has {}.{}", target.name,
                        target.compute_capability / 10, target.compute_capability % 10),
            {}};
  const GpuCosts& costs = target.gpu;
  const auto blocks = static_cast<std::uint32_t>(std::clamp(target.multiprocessors, 1, 1024));
  if (const std::int64_t most = costs.max_block_turns * kBlockRows * blocks; region.capacity > most)
    return {fmt::format("a batch of {} rows keeps single kernels busy, tiles of blocks are for up to {}",
                        region.capacity, most),
            {}};
  const std::vector<BlockStep> steps = block_steps(region);
  const BlockLevels levels = block_levels(region);
  for (const std::uint32_t threads : {256u, 512u}) {
    if (threads > 256 && !levels.sums.empty()) continue;  // levels take more than the 128 registers of a thread
    const BlockPlan plan = block_phases(steps, region.capacity, blocks, threads, costs);
    const std::uint64_t shared = plan.shared_bytes + levels.shared_bytes(threads);
    const std::uint64_t scratch = plan.bytes + levels.scratch_bytes(blocks);
    if (shared + 2048 > target.shared_memory) {
      tile.fault = fmt::format("tiles of blocks take {} bytes of shared memory", shared);
    } else if (scratch > kMaxScratch || plan.cycles > costs.max_block_cycles) {
      tile.fault = fmt::format("its products take {} cycles a step, single kernels are as fast from {} on", plan.cycles,
                               costs.max_block_cycles);
    } else if (plan.number_cycles > costs.max_number_cycles) {
      tile.fault = fmt::format("a block would sum rows to single numbers for {} cycles", plan.number_cycles);
    } else {
      const StepTiling tiling{threads, 1, blocks, kBlockFlagBytes + scratch, 1, RowTile::block};
      const std::int64_t once = static_cast<std::int64_t>(levels.sums.size()) * costs.once_level +
                                divide_up(levels.elements, std::int64_t{threads} * blocks) * costs.once_elements;
      tile.costs.push_back({tiling, plan.cycles * costs.block_overhead / 100 + once});
    }
  }
  if (!tile.costs.empty()) tile.fault.clear();
  return tile;
}

}  // namespace graphrun::cuda
