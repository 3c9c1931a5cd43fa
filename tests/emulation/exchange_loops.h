// exchange_loops.h: expected results of all-reduces, in plain loops.
// Contract: bitwise the order of src/kernels/cuda/tile/exchange.h. For a host, with the shim of ptx.h.
// Leaves to others: the cases (exchange_cases.h).
#pragma once

#include <cstddef>
#include <vector>

#include "emulation/exchange_cases.h"

namespace graphrun::cuda::tile {

// Combines `parts` of value v as a tree of adjacent pairs; more than 16 in groups of 16, in order.
inline float in_order(int v, const float* parts, int count) {
  if (count == 1) return parts[0];
  if (count <= 16) {
    int left = 1;
    while (2 * left < count) left *= 2;
    return SumsAndOthers::apply(v, in_order(v, parts, left), in_order(v, parts + left, count - left));
  }
  float all = in_order(v, parts, 16);
  for (int i = 16; i < count; i += 16)
    all = SumsAndOthers::apply(v, all, in_order(v, parts + i, count - i < 16 ? count - i : 16));
  return all;
}
// Lanes 0 and 1, 2 and 3, ..., then those; the half of the values that contains v determines the order of the operands.
inline float over_lanes(int v, int values, const float* parts) {
  std::vector<float> lanes(parts, parts + 32);
  for (int place = v; lanes.size() > 1; values = (values + 1) / 2) {
    const int half = (values + 1) / 2;
    const bool upper = place >= half;
    if (upper) place -= half;
    for (std::size_t i = 0; i < lanes.size() / 2; ++i)
      lanes[i] = SumsAndOthers::apply(v, lanes[2 * i + (upper ? 1 : 0)], lanes[2 * i + (upper ? 0 : 1)]);
    lanes.resize(lanes.size() / 2);
  }
  return lanes[0];
}
inline std::vector<float> totals_of(int values, int threads, int cluster, int clusters, unsigned epoch) {
  std::vector<float> totals;
  for (int v = 0; v < values; ++v) {
    std::vector<float> over_clusters;
    for (int c = 0; c < clusters; ++c) {
      std::vector<float> over_ranks;
      for (int rank = 0; rank < cluster; ++rank) {
        std::vector<float> over_warps;
        for (int first = 0; first < threads; first += 32) {
          float lanes[32];
          for (int lane = 0; lane < 32; ++lane)
            lanes[lane] = part_of(static_cast<unsigned>((c * cluster + rank) * threads + first + lane), v, epoch);
          over_warps.push_back(over_lanes(v, values, lanes));
        }
        over_ranks.push_back(in_order(v, over_warps.data(), threads / 32));
      }
      over_clusters.push_back(in_order(v, over_ranks.data(), cluster));
    }
    totals.push_back(in_order(v, over_clusters.data(), clusters));
  }
  return totals;
}

}  // namespace graphrun::cuda::tile
