#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "executors/cuda_planner/block_levels.h"
#include "executors/cuda_planner/block_phases.h"
#include "executors/cuda_planner/row_text.h"
#include "executors/cuda_planner/tile_costs.h"
#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

// Limit in cycles per step. Above it, launches of single kernels cost little, and library products are faster.
constexpr std::int64_t kMaxCycles = 600'000;
// Limit on row tiles that a block runs in sequence. With more, single kernels keep a device busy as well and read
// weights less often (peaks with 64 units, 40,000 rows: 266 us vs. 159; mnist_mlp, 5,000 rows: 177 vs. 261).
constexpr std::int64_t kMaxTurns = 16;
constexpr std::int64_t kMaxNumberCycles = 30'000;
// Cost of a level of steps that run once: combining block sums, with the grid barrier; an iteration over elements.
constexpr std::int64_t kLevelCycles = 4500, kElementCycles = 300;
constexpr std::uint64_t kMaxScratch = std::uint64_t{1} << 32;

// Checks that the steps that run once are elementwise, so that the owner of an element's sum over rows can run them.
class OnceCheck {
 public:
  explicit OnceCheck(const RegionSignature& region)
      : region_(region), groups_(all()), sums_(all(), 0), of_elements_(all(), false) {
    std::iota(groups_.begin(), groups_.end(), 0);
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
  std::size_t all() const { return region_.rows.size() + region_.once.size(); }
  const StepSignature& step(std::size_t i) const {
    return i < region_.rows.size() ? region_.rows[i] : region_.once[i - region_.rows.size()];
  }
  static std::string no(const StepSignature& step, std::string_view why) {
    return fmt::format("'{}' is not part of a step kernel with tiles of blocks: {}", name_of(step.op), why);
  }
  std::size_t group(std::size_t i) const {
    while (groups_[i] != i) i = groups_[i];
    return i;
  }

  std::string fault_of(std::size_t i) {
    const StepSignature& s = step(i);
    std::string reason;
    if (element_text(call_of(s), reason).empty()) return reason;
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

  const RegionSignature& region_;
  std::vector<std::size_t> groups_;
  std::vector<int> sums_;          // number of sums over rows, by group
  std::vector<bool> of_elements_;  // whether a step depends on a sum of elements
};

std::int64_t level_cycles(const BlockLevels& levels, const StepTiling& tiling) {
  const std::int64_t threads = std::int64_t{tiling.threads} * tiling.blocks();
  return static_cast<std::int64_t>(levels.sums.size()) * kLevelCycles +
         divide_up(levels.elements, threads) * kElementCycles;
}

std::string fault_of(const RegionSignature& region, const std::vector<BlockStep>& steps) {
  if (stage_count(region) > 1) return "tiles of blocks have no second stage of rows";
  for (const BlockStep& step : steps)
    if (std::string fault = block_fault(step); !fault.empty()) return fault;
  return region.makers.empty() ? std::string() : OnceCheck(region).run();
}

}  // namespace

std::vector<BlockStep> block_steps(const RegionSignature& region) {
  std::vector<BlockStep> steps;
  for (std::size_t i = 0; i < region.rows.size(); ++i) {
    BlockStep& step = steps.emplace_back(BlockStep{call_of(region.rows[i]), {}});
    for (std::size_t k = 0; k < region.rows[i].inputs.size(); ++k) {
      const std::uint32_t maker = i < region.makers.size() ? region.makers[i][k] : kNoStep;
      step.makers.push_back(maker < region.rows.size() && region.rows[i].inputs[k].rows > 0 ? static_cast<int>(maker)
                                                                                            : -1);
    }
  }
  return steps;
}

std::uint64_t block_scratch_bytes(const RegionSignature& region, const StepTiling& tiling) {
  return kBlockFlagBytes + block_phases(block_steps(region), region.capacity, tiling.blocks(), tiling.threads).bytes +
         block_levels(region).scratch_bytes(tiling.blocks());
}

TileCosts block_costs(const RegionSignature& region, const Target& target) {
  TileCosts tile;
  const std::vector<BlockStep> steps = block_steps(region);
  tile.fault = fault_of(region, steps);
  if (!tile.fault.empty()) return tile;
  // Block products compiled for an A100 do not fit the registers.
  if (target.compute_capability < 90)
    return {fmt::format("tiles of blocks are for compute capability 9.0 and later, {} has {}.{}", target.name,
                        target.compute_capability / 10, target.compute_capability % 10),
            {}};
  const auto blocks = static_cast<std::uint32_t>(std::clamp(target.multiprocessors, 1, 1024));
  if (const std::int64_t most = kMaxTurns * kBlockRows * blocks; region.capacity > most)
    return {fmt::format("a batch of {} rows keeps single kernels busy, tiles of blocks are for up to {}",
                        region.capacity, most),
            {}};
  // A finished Program (load_check.cpp) has no edges, on which the costs depend. For it, only feasibility is checked.
  const bool chooses = !region.makers.empty();
  const BlockLevels levels = block_levels(region);
  for (const std::uint32_t threads : {256u, 512u}) {
    if (threads > 256 && !levels.sums.empty()) continue;  // digits with a clipped norm would spill 36 bytes
    const BlockPlan plan = block_phases(steps, region.capacity, blocks, threads);
    const std::uint64_t shared = plan.shared_bytes + levels.shared_bytes(threads);
    const std::uint64_t scratch = plan.bytes + levels.scratch_bytes(blocks);
    if (shared + 2048 > target.shared_memory) {
      tile.fault = fmt::format("tiles of blocks take {} bytes of shared memory", shared);
    } else if (scratch > kMaxScratch || (chooses && plan.cycles > kMaxCycles)) {
      tile.fault = fmt::format("its products take {} cycles a step, single kernels are as fast from {} on", plan.cycles,
                               kMaxCycles);
    } else if (chooses && plan.number_cycles > kMaxNumberCycles) {
      tile.fault = fmt::format("a block would sum rows to single numbers for {} cycles", plan.number_cycles);
    } else {
      StepTiling tiling{threads, 1, blocks, 0, 1, RowTile::block};
      tiling.scratch_bytes = kBlockFlagBytes + scratch;
      tile.costs.push_back({tiling, plan.cycles * 12 / 10 + level_cycles(levels, tiling)});
    }
  }
  if (!tile.costs.empty()) tile.fault.clear();
  return tile;
}

}  // namespace graphrun::cuda
