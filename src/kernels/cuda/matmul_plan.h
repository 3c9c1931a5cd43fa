// matmul_plan.h: how a product is cut into blocks: a pure function of (shapes, machine), asked before planning for the
// workspace and again at launch.
// Contract: the same shapes and machine give the same plan, so the order of every sum is fixed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graphrun/params.h"
#include "graphrun/types.h"
#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

struct MatmulPlan {
  enum class Route : std::uint8_t {
    elements,  // a thread for each element of the result, short sums (k <= 32)
    blocks,    // a block for each 8 x 4 elements, its threads share the sum; `splits` > 1: a second stage adds them
    library,   // no extent is small
  };
  static constexpr std::int64_t kTileM = 8, kTileN = 4, kSkinny = 32, kSplit = 2048;

  Route route = Route::elements;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_m = 0, a_k = 0, b_k = 0, b_n = 0;  // strides in elements
  std::int64_t splits = 1, split = 0;               // parts of the sum, and the terms of one
  std::uint32_t threads = 256;
  std::uint64_t workspace = 0;

  std::int64_t tiles_m() const { return (m + kTileM - 1) / kTileM; }
  std::int64_t tiles_n() const { return (n + kTileN - 1) / kTileN; }
};

inline MatmulPlan plan_matmul(const MatmulParams& params, const TensorType& a, const TensorType& b,
                              const Machine& machine) {
  MatmulPlan plan;
  plan.m = a.shape[params.transpose_a ? 1 : 0];
  plan.k = a.shape[params.transpose_a ? 0 : 1];
  plan.n = b.shape[params.transpose_b ? 0 : 1];
  plan.a_m = params.transpose_a ? 1 : plan.k;
  plan.a_k = params.transpose_a ? plan.m : 1;
  plan.b_k = params.transpose_b ? 1 : plan.n;
  plan.b_n = params.transpose_b ? plan.k : 1;
  plan.split = plan.k;
  if (plan.k <= MatmulPlan::kSkinny) return plan;
  if (std::min(plan.m, plan.n) > MatmulPlan::kSkinny) {
    plan.route = MatmulPlan::Route::library;
    plan.workspace = machine.library_workspace;
    return plan;
  }
  plan.route = MatmulPlan::Route::blocks;
  // Enough terms a thread to be worth its place in the block's sum.
  plan.threads = static_cast<std::uint32_t>(std::clamp<std::int64_t>((plan.k / 4 + 31) / 32 * 32, 32, 256));
  // A long sum over few tiles leaves most of the machine idle: cut it, in parts that only shapes decide.
  const std::int64_t tiles = std::max<std::int64_t>(plan.tiles_m() * plan.tiles_n(), 1);
  const std::int64_t room = std::max<std::int64_t>(2 * machine.multiprocessors / tiles, 1);
  const std::int64_t wanted = std::min((plan.k + MatmulPlan::kSplit - 1) / MatmulPlan::kSplit, room);
  plan.split = ((plan.k + wanted - 1) / wanted + 31) / 32 * 32;
  plan.splits = (plan.k + plan.split - 1) / plan.split;
  if (plan.splits > 1) plan.workspace = static_cast<std::uint64_t>(plan.splits * plan.m * plan.n) * sizeof(float);
  return plan;
}

}  // namespace graphrun::cuda
