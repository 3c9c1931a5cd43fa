// reduce_plan.h: how a reduction over axes is split into blocks: a pure function of (shapes, machine).
// Contract: as matmul_plan.h: known before planning, and the order of the terms is fixed. The state of a reduction has
// up to `state` bytes: a number or a pair.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/types.h"
#include "kernels/cuda/launcher.h"
#include "kernels/dims.h"

namespace graphrun::cuda {

struct ReducePlan {
  enum class Route : std::uint8_t {
    elements,  // one thread per result: few terms
    columns,   // the innermost axis is kept and wide: adjacent threads read adjacent elements
    blocks,    // one block per result
  };
  static constexpr std::uint64_t kFew = 32;
  static constexpr std::uint32_t kColumns = 32;        // adjacent results computed by one block of the column kernel
  static constexpr std::uint64_t kLong = 4096;         // minimum number of terms for splitting a sum
  static constexpr std::uint64_t kSplit = 1024;        // terms per split
  static constexpr std::uint64_t kSplitColumns = 256;  // the same for Route::columns

  Dims<1> kept, reduced;
  Route route = Route::elements;
  std::uint64_t splits = 1, split = 0;  // number of splits, and terms per split
  std::uint64_t blocks = 1;             // per split
  std::uint32_t threads = 256;
  std::uint64_t workspace = 0;
};

// Bytes of a reduction's state; 0: not a reduction. logsumexp: maximum and sum; argmax, argmin: value and position.
inline std::uint64_t reduce_state(Op op) {
  if (op == Op::sum || op == Op::prod || op == Op::max || op == Op::min) return 4;
  if (op == Op::logsumexp || op == Op::argmax || op == Op::argmin) return 8;
  return 0;
}

// The reduced axes of an op that is a reduction.
inline std::uint32_t reduced_axes(const Params& params) {
  if (const auto* axis = params.get_if<AxisParams>()) return 1u << axis->axis;
  return params.as<ReduceParams>().axes;
}

inline ReducePlan plan_reduce(std::uint32_t axes, const Shape& in, const Machine& machine,
                              std::uint64_t state = sizeof(float)) {
  ReducePlan plan;
  const AxisGroups<1> split_axes({dense(in)}, axes);
  plan.kept = split_axes.kept;
  plan.reduced = split_axes.reduced;
  const Dims<1>& kept = plan.kept;
  const auto results = static_cast<std::uint64_t>(kept.count), terms = static_cast<std::uint64_t>(plan.reduced.count);
  plan.split = std::max<std::uint64_t>(terms, 1);
  if (terms <= ReducePlan::kFew) return plan;
  const Dim<1> last = Dims<1>(kept).remove_last();
  if (last.stride[0] == 1 && last.extent >= ReducePlan::kColumns) {
    plan.route = ReducePlan::Route::columns;
    plan.threads = 1024;
    plan.blocks = (results + ReducePlan::kColumns - 1) / ReducePlan::kColumns;
  } else {
    plan.route = ReducePlan::Route::blocks;
    plan.threads = static_cast<std::uint32_t>(std::clamp<std::uint64_t>((terms / 4 + 31) / 32 * 32, 32, 256));
    plan.blocks = results;
  }
  const bool columns = plan.route == ReducePlan::Route::columns;
  const std::uint64_t split = columns ? ReducePlan::kSplitColumns : ReducePlan::kSplit;
  const auto most = static_cast<std::uint64_t>(machine.multiprocessors) * (columns ? 2 : 4);
  const std::uint64_t room = std::max<std::uint64_t>(most / std::max<std::uint64_t>(plan.blocks, 1), 1);
  const std::uint64_t wanted = terms >= ReducePlan::kLong ? std::clamp<std::uint64_t>(terms / split, 1, room) : 1;
  plan.split = (terms + wanted - 1) / wanted;
  plan.splits = (terms + plan.split - 1) / plan.split;
  if (plan.splits > 1) plan.workspace = plan.splits * results * state;
  return plan;
}

}  // namespace graphrun::cuda
