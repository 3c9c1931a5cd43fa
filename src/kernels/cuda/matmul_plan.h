// matmul_plan.h: how a product is split into blocks: a pure function of (shapes, machine), called before planning for
// the workspace size and again at launch.
// Contract: the same shapes and machine give the same plan, so the order of every sum is fixed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graphrun/params.h"
#include "graphrun/types.h"
#include "kernels/cuda/launcher.h"
#include "kernels/dims.h"

namespace graphrun::cuda {

struct MatmulPlan {
  enum class Route : std::uint8_t {
    elements,  // one thread per element of the result, short sums (k <= 32)
    rows,      // one thread per row of a narrow result, short sums
    blocks,    // one block per tile of the result, its threads share the sum; `splits` > 1: a second kernel adds them
    library,   // no extent is small
    many_elements,  // several matrices: one thread per element, for short sums and flat matrices
    many_tiles,     // several matrices: one block per 32 x 32 elements of a matrix
  };
  static constexpr std::int64_t kSkinny = 32;
  static constexpr std::int64_t kTall = 16384;  // minimum number of rows for Route::rows
  static constexpr std::int64_t kLong = 4096;   // terms from which a sum is split: a second launch has a cost
  static constexpr std::int64_t kSplit = 1024;  // terms per split
  static constexpr std::int64_t kFlat = 8;      // m or n below which a tile would be nearly empty

  Route route = Route::elements;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_m = 0, a_k = 0, b_k = 0, b_n = 0;  // strides in elements
  Dims<2> leading;                                  // dimensions of the matrices, if several
  std::int64_t splits = 1, split = 0;               // number of splits, and terms per split
  std::uint32_t threads = 256;
  std::int64_t tile_m = 8, tile_n = 4;  // per block
  std::uint64_t workspace = 0;

  std::int64_t tiles_m() const { return (m + tile_m - 1) / tile_m; }
  std::int64_t tiles_n() const { return (n + tile_n - 1) / tile_n; }
};

inline MatmulPlan plan_matmul(const MatmulParams& params, const TensorType& a, const TensorType& b,
                              const Machine& machine) {
  const int ra = a.shape.rank();
  const int rb = b.shape.rank();
  MatmulPlan plan;
  plan.m = a.shape[ra - (params.transpose_a ? 1 : 2)];
  plan.k = a.shape[ra - (params.transpose_a ? 2 : 1)];
  plan.n = b.shape[rb - (params.transpose_b ? 2 : 1)];
  plan.a_m = params.transpose_a ? 1 : plan.k;
  plan.a_k = params.transpose_a ? plan.m : 1;
  plan.b_k = params.transpose_b ? 1 : plan.n;
  plan.b_n = params.transpose_b ? plan.k : 1;
  plan.split = plan.k;
  plan.leading = matrices_of(dense(a.shape), dense(b.shape));
  const bool short_sum = plan.k <= MatmulPlan::kSkinny;
  if (rb == 2 && !params.transpose_a) {  // one tall matrix
    plan.m *= plan.leading.count;
    plan.leading = {};
  }
  const bool leads = (a.rows > 0 && ra > 2) || (b.rows > 0 && rb > 2);
  if (plan.leading.count != 1 || (leads && rb > 2) || (leads && params.transpose_a)) {
    if (short_sum || std::min(plan.m, plan.n) < MatmulPlan::kFlat) {
      plan.route = MatmulPlan::Route::many_elements;
    } else if (plan.leading.rank > 1 || std::min(plan.m, plan.n) <= MatmulPlan::kSkinny) {
      plan.route = MatmulPlan::Route::many_tiles;
    } else {
      plan.route = MatmulPlan::Route::library;
      plan.workspace = machine.library_workspace;
    }
    return plan;
  }
  if (short_sum) {
    if (!params.transpose_a && plan.n <= MatmulPlan::kSkinny && plan.m >= MatmulPlan::kTall)
      plan.route = MatmulPlan::Route::rows;
    return plan;
  }
  if (std::min(plan.m, plan.n) > MatmulPlan::kSkinny) {
    plan.route = MatmulPlan::Route::library;
    plan.workspace = machine.library_workspace;
    return plan;
  }
  plan.route = MatmulPlan::Route::blocks;
  // As wide as a narrow result, so that the other operand is read once.
  plan.tile_n = plan.n <= 4 ? 4 : plan.n <= 8 ? 8 : plan.n <= 12 ? 12 : plan.n <= 16 ? 16 : 8;
  // Enough terms per thread to amortize its part in the block's reduction.
  plan.threads = static_cast<std::uint32_t>(std::clamp<std::int64_t>((plan.k / 4 + 31) / 32 * 32, 32, 256));
  // A long sum over few tiles leaves most of the machine idle, so split it into parts that depend on shapes only.
  const std::int64_t tiles = std::max<std::int64_t>(plan.tiles_m() * plan.tiles_n(), 1);
  const std::int64_t room = std::max<std::int64_t>(2 * machine.multiprocessors / tiles, 1);
  const std::int64_t parts = plan.k >= MatmulPlan::kLong ? (plan.k + MatmulPlan::kSplit - 1) / MatmulPlan::kSplit : 1;
  const std::int64_t wanted = std::min(parts, room);
  plan.split = ((plan.k + wanted - 1) / wanted + 31) / 32 * 32;
  plan.splits = (plan.k + plan.split - 1) / plan.split;
  if (plan.splits > 1) plan.workspace = static_cast<std::uint64_t>(plan.splits * plan.m * plan.n) * sizeof(float);
  return plan;
}

}  // namespace graphrun::cuda
