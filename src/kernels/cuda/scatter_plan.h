// scatter_plan.h: how scatter_add is split into tiles, and the layout of its scratch: a pure function of shapes.
// Contract: as matmul_plan.h: known before planning, and the order of the terms is fixed.
#pragma once

#include <bit>
#include <cstdint>

#include "graphrun/types.h"

namespace graphrun::cuda {

struct ScatterPlan {
  // Up to this many updates, a thread per update counts those that precede it, in one launch; beyond, a radix sort is
  // less work.
  static constexpr std::uint64_t kCounted = 4096;
  static constexpr int kDigit = 8;               // bits
  static constexpr std::uint64_t kBlock = 2048;  // updates that a block sorts by a digit
  static constexpr std::uint64_t kTile = 64;     // sorted updates added in order by one thread
  static constexpr std::uint64_t kMax = ~0u;     // updates: their indices have 32 bits

  std::uint64_t rows = 0, width = 0, places = 0;
  std::uint64_t tiles = 0;
  int passes = 0;  // digits; 0: counted
  std::uint64_t blocks = 0;
  // Byte offsets in the workspace: keys and positions, twice, as source and destination of the sort; counts per digit
  // and block; sums of rows that began before a tile, and of rows that continue after it.
  std::uint64_t keys[2] = {}, order[2] = {}, counts = 0, first = 0, last = 0;
  std::uint64_t workspace = 0;
};

inline ScatterPlan plan_scatter(const TensorType& indices, const TensorType& out) {
  ScatterPlan plan;
  plan.rows = static_cast<std::uint64_t>(out.shape[0]);
  plan.width = static_cast<std::uint64_t>(out.shape[1]);
  plan.places = static_cast<std::uint64_t>(indices.shape.elements());
  if (plan.rows == 0 || plan.width == 0 || plan.places == 0) return plan;
  plan.tiles = (plan.places + ScatterPlan::kTile - 1) / ScatterPlan::kTile;
  if (plan.places > ScatterPlan::kCounted) {
    plan.passes = (static_cast<int>(std::bit_width(plan.rows)) + ScatterPlan::kDigit - 1) / ScatterPlan::kDigit;
    plan.blocks = (plan.places + ScatterPlan::kBlock - 1) / ScatterPlan::kBlock;
  }
  const auto take = [&](std::uint64_t numbers) {
    const std::uint64_t at = plan.workspace;
    plan.workspace += (numbers * sizeof(std::uint32_t) + 255) / 256 * 256;
    return at;
  };
  for (int i = 0; i < (plan.passes > 0 ? 2 : 1); ++i) {
    plan.keys[i] = take(plan.places);
    plan.order[i] = take(plan.places);
  }
  plan.counts = take(plan.blocks << ScatterPlan::kDigit);
  plan.first = take(plan.tiles * plan.width);
  plan.last = take(plan.tiles * plan.width);
  return plan;
}

}  // namespace graphrun::cuda
