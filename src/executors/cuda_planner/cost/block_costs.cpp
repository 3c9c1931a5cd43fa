// block_costs.cpp: costs of block and split tiles, and whether steps that run once fit them.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "executors/cuda_planner/cost/tile_costs.h"
#include "executors/cuda_planner/plan/block_levels.h"
#include "executors/cuda_planner/plan/block_phases.h"
#include "executors/cuda_planner/plan/split_plan.h"
#include "executors/cuda_planner/print/row_text.h"
#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

constexpr std::uint64_t kMaxScratch = std::uint64_t{1} << 32;

// Checks the steps that run once. Those on arrays that blocks divide must be elementwise, so that the owner of an
// element can run them. Block tiles divide all arrays; split tiles slice wide weights and the arrays combined with
// them.
class OnceCheck {
 public:
  // `split` is null for block tiles.
  OnceCheck(const RegionSignature& region, const SplitPlan* split) : region_(region), split_(split), groups_(all()) {
    std::iota(groups_.begin(), groups_.end(), 0);
    if (split == nullptr) return;
    for (const SplitProduct& product : split->products)
      sizes_.insert(region.rows[static_cast<std::size_t>(product.step)].inputs[1].shape.elements());
    for (std::size_t i = region.rows.size(); i < all(); ++i) merge(i);
    for (const SplitSum& sum : split->sums) {
      if (!sum.wide) continue;
      sizes_.insert(region.rows[static_cast<std::size_t>(sum.step)].output.shape.elements());
      wide_.insert(groups_[static_cast<std::size_t>(sum.step)]);
    }
  }

  std::string fault() {
    for (std::size_t i = 0; i < all(); ++i)
      if (std::string why = is_row(i) ? row_fault(i) : once_fault(i); !why.empty()) return why;
    if (split_ != nullptr) return {};
    const BlockLevels levels = block_levels(region_);
    for (std::size_t i = 0; i < region_.rows.size(); ++i)
      for (const std::uint32_t maker : region_.makers[i])
        if (maker != kNoStep && levels.available[maker] > 0)
          return no(step(i), "it reads a number made of an array that all rows share");
    return {};
  }

  // Shared memory of split tiles: inputs from outside, counted for each step that reads them, and outputs that are not
  // sliced.
  std::uint64_t bytes(std::uint32_t cluster) const {
    std::uint64_t bytes = 0;
    const auto add = [&](const TensorType& type, bool sliced) {
      if (is_array(type))
        bytes +=
            type.bytes() / (sliced ? cluster : 1) + (sliced ? 16 * static_cast<std::uint64_t>(kMaxSplitColumns) : 16);
    };
    for (std::size_t i = 0; i < all(); ++i) {
      const StepSignature& s = step(i);
      if (s.op == Op::record) continue;
      for (std::size_t k = 0; k < s.inputs.size(); ++k) {
        const bool only_written = (s.op == Op::minibatch || s.op == Op::assign) && k == 0;
        if (!only_written && (is_row(i) || maker(i, k) == kNoStep))
          add(s.inputs[k], is_row(i) ? split_->is_wide(static_cast<int>(i)) : is_divided(i));
      }
      if (!is_divided(i)) add(s.output, false);
    }
    return bytes;
  }

 private:
  std::size_t all() const { return region_.rows.size() + region_.once.size(); }
  bool is_row(std::size_t i) const { return i < region_.rows.size(); }
  const StepSignature& step(std::size_t i) const {
    return is_row(i) ? region_.rows[i] : region_.once[i - region_.rows.size()];
  }
  std::uint32_t maker(std::size_t i, std::size_t k) const { return region_.makers[i][k]; }
  std::string no(const StepSignature& step, std::string_view why) const {
    return fmt::format("'{}' is not part of a step kernel with {}: {}", name_of(step.op),
                       split_ == nullptr ? "tiles of blocks" : "split tiles", why);
  }

  // Merges the groups of a step and of the arrays that it reads. Returns whether at most one sum over rows is in it.
  bool merge(std::size_t i) {
    if (!is_array(step(i).output) || step(i).op == Op::record) return true;
    for (const std::uint32_t maker : region_.makers[i])
      if (maker != kNoStep && is_array(step(maker).output))
        std::ranges::replace(groups_, std::size_t{groups_[maker]}, std::size_t{groups_[i]});
    std::size_t sums = 0;
    for (std::size_t k = 0; k < region_.rows.size(); ++k)
      sums += is_array(step(k).output) && groups_[k] == groups_[i] ? 1 : 0;
    return sums <= 1;
  }
  bool is_divided(std::size_t i) const {
    return split_ == nullptr ? is_array(step(i).output) : wide_.contains(groups_[i]);
  }
  // Whether blocks divide the input. Split tiles judge values from outside by size: the signature does not identify
  // them.
  bool is_divided(std::size_t i, std::size_t k) const {
    const TensorType& type = step(i).inputs[k];
    if (!is_array(type) || split_ == nullptr) return is_array(type);
    return maker(i, k) == kNoStep ? sizes_.contains(type.shape.elements()) : is_divided(maker(i, k));
  }
  std::string row_fault(std::size_t i) const {
    const StepSignature& s = step(i);
    for (std::size_t k = 0; k < s.inputs.size(); ++k) {
      const bool is_computed = maker(i, k) != kNoStep && !is_row(maker(i, k));
      if (split_ == nullptr) {
        if (is_computed && is_array(step(maker(i, k)).output)) return no(step(maker(i, k)), "rows read its array");
      } else if (!is_array(s.inputs[k]) || (s.op == Op::minibatch && k == 0)) {
        continue;
      } else if (split_->is_wide(static_cast<int>(i)) && k == 1) {
        if (maker(i, k) != kNoStep) return no(s, "its weights are computed in each step");
      } else if ((is_computed || maker(i, k) == kNoStep) && is_divided(i, k)) {
        return no(s, "it reads weights that blocks have slices of");
      }
    }
    return {};
  }
  std::string once_fault(std::size_t i) {
    const StepSignature& s = step(i);
    if (std::string fault = element_fault(call_of(s)); !fault.empty()) return fault;
    if (split_ == nullptr && sums_elements(call_of(s))) return {};
    const bool divided = is_array(s.output) && s.op != Op::record && is_divided(i);
    for (std::size_t k = 0; k < s.inputs.size(); ++k) {
      if (!is_array(s.inputs[k]) || (s.op == Op::record && k == 0)) continue;
      if (!divided && is_divided(i, k))
        return no(s, split_ != nullptr ? "it makes something else of arrays that blocks have slices of, as the norm is "
                                         "that gradients are clipped by"
                     : s.op == Op::record ? "it records an array"
                                          : "it makes a number of an array, and not by a sum of all its elements");
      if (divided && !is_same_element(s, k)) return no(s, "it reads other elements than it makes");
    }
    if (divided && !is_by_element(s)) return no(s, "it does not go element by element");
    return split_ != nullptr || merge(i) ? std::string() : no(s, "it reads two sums over rows");
  }
  // Whether the owner of an element of the output has the element of input k. Slices are f32 and have no offset.
  bool is_same_element(const StepSignature& s, std::size_t k) const {
    if (s.inputs[k].shape.elements() != s.output.shape.elements()) return false;
    const bool dense = s.views.empty() || is_dense(s.views[k]);
    return split_ == nullptr ? dense
                             : dense && s.inputs[k].dtype == DType::f32 && (s.views.empty() || s.views[k].offset == 0);
  }
  bool is_by_element(const StepSignature& s) const {
    return split_ == nullptr ? is_elementwise(s.op) || is_draw(s.op)
                             : is_elementwise(s.op) && !is_draw(s.op) && s.output.dtype == DType::f32;
  }

  const RegionSignature& region_;
  const SplitPlan* split_;
  std::vector<std::size_t> groups_;  // group of each step, row steps first; steps of a group combine arrays
  std::set<std::size_t> wide_;       // groups with slices
  std::set<std::int64_t> sizes_;     // numbers of elements of arrays with slices
};

// Whether the step computes numbers or sums rows.
bool computes(const StepSignature& step) {
  return step.op == Op::matmul || step.output.rows == 0 || is_elementwise(step.op);
}

// Cycles of the row steps as single kernels, with the elementwise steps after products in the products' kernels.
std::int64_t single_cycles(const RegionSignature& region, const GpuCosts& costs) {
  std::int64_t kernels = 0, products = 0;
  for (const StepSignature& step : region.rows) {
    kernels += is_elementwise(step.op) ? 0 : 1;
    if (step.op == Op::matmul) products += row_products(call_of(step));
  }
  return costs.single_kernels(kernels) + products * region.capacity / costs.single_products;
}

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
  if (tile.fault.empty() && region.rows.size() > 1 && std::ranges::none_of(region.rows, computes))
    tile.fault = "single kernels move rows faster than tiles of blocks";
  if (tile.fault.empty()) tile.fault = OnceCheck(region, nullptr).fault();
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
    const std::int64_t once = static_cast<std::int64_t>(levels.sums.size()) * costs.once_level +
                              divide_up(levels.elements, std::int64_t{threads} * blocks) * costs.once_elements;
    const std::int64_t cycles = plan.cycles * costs.block_overhead / 100, single = single_cycles(region, costs);
    if (shared + 2048 > target.shared_memory) {
      tile.fault = fmt::format("tiles of blocks take {} bytes of shared memory", shared);
    } else if (scratch > kMaxScratch + kBlockFlagBytes || cycles > single) {
      tile.fault = fmt::format("tiles of blocks take {} cycles for its rows, single kernels {}", cycles, single);
    } else if (plan.number_cycles > costs.max_number_cycles) {
      tile.fault = fmt::format("a block would sum rows to single numbers for {} cycles", plan.number_cycles);
    } else {
      const StepTiling tiling{threads, 1, blocks, scratch, 1, RowTile::block};
      tile.costs.push_back({tiling, cycles + once});
    }
  }
  if (!tile.costs.empty()) tile.fault.clear();
  return tile;
}

TileCosts split_costs(const RegionSignature& region, const Target& target) {
  if (stage_count(region) > 1) return {"split tiles have no second stage of rows", {}};
  if (target.compute_capability < 90 || target.cluster_blocks < 2)
    return {fmt::format("split tiles are for devices with clusters, {} has none", target.name), {}};
  const std::vector<BlockStep> steps = block_steps(region);
  TileCosts tile;
  for (const std::uint32_t cluster : {8u, 4u, 2u}) {
    if (cluster > static_cast<std::uint32_t>(target.cluster_blocks)) continue;
    for (const std::uint32_t threads : {256u, 512u}) {
      StepTiling tiling{threads, cluster, resident_clusters(target, cluster), 0, 1, RowTile::split};
      const SplitPlan plan = split_plan(steps, region.capacity, tiling, target.gpu);
      tile.fault = plan.fault;
      if (!tile.fault.empty()) continue;
      OnceCheck once(region, &plan);
      tile.fault = once.fault();
      const std::uint64_t bytes = plan.shared_bytes + once.bytes(cluster) + 1024;
      if (tile.fault.empty() && bytes > target.shared_memory)
        tile.fault = fmt::format("split tiles take {} bytes of shared memory", bytes);
      if (!tile.fault.empty()) continue;
      tiling.scratch_bytes = plan.scratch_bytes;
      tile.costs.push_back({tiling, plan.cycles});
    }
  }
  if (!tile.costs.empty()) tile.fault.clear();
  return tile;
}

}  // namespace graphrun::cuda
