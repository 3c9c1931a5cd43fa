// split_costs.cpp: costs of split tiles, and whether steps that run once fit slices of their arrays.
#include <fmt/format.h>

#include <set>

#include "executors/cuda_planner/cost/tile_costs.h"
#include "executors/cuda_planner/plan/split_plan.h"
#include "executors/cuda_planner/print/row_text.h"
#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

// Checks the steps that run once: elementwise on arrays with slices per block, in all blocks for other values.
class OnceSlices : StepGroups {
 public:
  OnceSlices(const RegionSignature& region, const SplitPlan& plan) : StepGroups(region), plan_(plan) {
    for (const SplitProduct& product : plan.products)
      sizes_.insert(step(static_cast<std::size_t>(product.step)).inputs[1].shape.elements());
    for (const SplitSum& sum : plan.sums)
      if (sum.wide) sizes_.insert(step(static_cast<std::size_t>(sum.step)).output.shape.elements());
    for (std::size_t i = region.rows.size(); i < all(); ++i) {
      if (!is_array(step(i).output)) continue;
      for (std::size_t k = 0; k < step(i).inputs.size(); ++k)
        if (is_array(step(i).inputs[k]) && maker(i, k) != kNoStep) groups_[group(maker(i, k))] = group(i);
    }
    for (const SplitSum& sum : plan.sums)
      if (sum.wide) wide_.insert(group(static_cast<std::size_t>(sum.step)));
  }

  std::string fault() const {
    for (std::size_t i = 0; i < all(); ++i)
      if (std::string why = is_row(i) ? row_fault(i) : once_fault(i); !why.empty()) return why;
    return {};
  }

  // Shared memory: inputs from outside, counted for each step that reads them, and outputs without slices.
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
          add(s.inputs[k], is_row(i) ? plan_.is_wide(static_cast<int>(i)) : is_sliced(i));
      }
      if (!is_sliced(i)) add(s.output, false);
    }
    return bytes;
  }

 private:
  bool is_sliced(std::size_t i) const { return wide_.contains(group(i)); }
  static std::string no(const StepSignature& step, std::string_view why) {
    return fmt::format("'{}' is not part of a step kernel with split tiles: {}", name_of(step.op), why);
  }
  // Whether a value may be sliced. Judges by size, because the signature does not identify values from outside.
  bool may_be_sliced(const TensorType& type) const { return is_array(type) && sizes_.contains(type.shape.elements()); }

  std::string row_fault(std::size_t i) const {
    const StepSignature& s = step(i);
    for (std::size_t k = 0; k < s.inputs.size(); ++k) {
      if (!is_array(s.inputs[k]) || (s.op == Op::minibatch && k == 0)) continue;
      if (plan_.is_wide(static_cast<int>(i)) && k == 1) {
        if (maker(i, k) != kNoStep) return no(s, "its weights are computed in each step");
      } else if (maker(i, k) == kNoStep ? may_be_sliced(s.inputs[k]) : !is_row(maker(i, k)) && is_sliced(maker(i, k))) {
        return no(s, "it reads weights that blocks have slices of");
      }
    }
    return {};
  }
  std::string once_fault(std::size_t i) const {
    const StepSignature& s = step(i);
    if (std::string fault = element_fault(call_of(s)); !fault.empty()) return fault;
    const bool sliced = is_array(s.output) && s.op != Op::record && is_sliced(i);
    for (std::size_t k = 0; k < s.inputs.size(); ++k) {
      const TensorType& input = s.inputs[k];
      if (!is_array(input) || (s.op == Op::record && k == 0)) continue;
      if (!sliced) {
        if (maker(i, k) == kNoStep ? may_be_sliced(input) : is_sliced(maker(i, k)))
          return no(s,
                    "it makes something else of arrays that blocks have slices of, as the norm is that gradients are "
                    "clipped by");
      } else if (input.shape.elements() != s.output.shape.elements() || input.dtype != DType::f32 ||
                 (!s.views.empty() && !(is_dense(s.views[k]) && s.views[k].offset == 0))) {
        return no(s, "it reads other elements than it makes");
      }
    }
    if (sliced && (!is_elementwise(s.op) || is_draw(s.op) || s.output.dtype != DType::f32))
      return no(s, "it does not go element by element");
    return {};
  }

  const SplitPlan& plan_;
  std::set<std::size_t> wide_;    // groups with slices
  std::set<std::int64_t> sizes_;  // numbers of elements of arrays with slices
};

}  // namespace

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
      const OnceSlices once(region, plan);
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
