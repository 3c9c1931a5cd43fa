// exchange_cases.h: all-reduces to run on the machine or on a device: parts of every thread, and what becomes of them
// in plain loops. Contract: Case<...>::kernel runs kEpochs all-reduces; totals_of() has the same totals, bit by bit.
// Leaves to others: running it, and comparing.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/tile/exchange.h"

namespace graphrun::cuda::tile {

// What the values become: sums, with a maximum, a minimum and a product among them.
struct SumsAndOthers {
  GRAPHRUN_TILE_FN static float apply(int v, float a, float b) {
    if (v % 8 == 3) return a > b ? a : b;
    if (v % 8 == 5) return a < b ? a : b;
    return v == 6 ? a * b : a + b;
  }
};

// The part of a thread of the whole grid: numbers of many magnitudes, so that another order gives other sums; value 2
// is always -0.
GRAPHRUN_TILE_FN float part_of(unsigned thread, int v, unsigned epoch) {
  unsigned x = thread * 0x9e3779b9u ^ static_cast<unsigned>(v) * 0x85ebca6bu ^ epoch * 0xc2b2ae35u;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  x *= 0x297a2d39u;
  x ^= x >> 15;
  if (v == 2) return -0.0f;
  const float one = 1.0f + static_cast<float>(x & 0xffffu) * (1.0f / 65536.0f);  // [1, 2)
  if (v == 6) return one * 0.75f;
  const unsigned magnitude = x >> 16 & 15u;
  return (x >> 31 != 0 ? -one : one) * (1.0f / 256.0f) * static_cast<float>(1u << magnitude);
}

struct CaseArgs {
  float* totals;  // (epoch, block, value)
  void* scratch;
  unsigned* fault;
  unsigned epochs;
};

template <int kValues, int kThreads, int kCluster, int kClusters>
struct Case {
  using Reduce = AllReduce<kValues, kThreads, kCluster, kClusters, SumsAndOthers>;
  static constexpr int kBlocks = kCluster * kClusters, kValueCount = kValues, kThreadCount = kThreads,
                       kClusterSize = kCluster, kClusterCount = kClusters;

  GRAPHRUN_TILE_FN static void kernel(const CaseArgs& args, void* memory) {
    auto& shared = *static_cast<typename Reduce::Shared*>(memory);
    Reduce reduce(shared, args.scratch, args.fault);
    for (unsigned epoch = 1; epoch <= args.epochs; ++epoch) {
      float part[kValues];
      GRAPHRUN_TILE_UNROLL
      for (int v = 0; v < kValues; ++v) part[v] = part_of(block_index() * kThreads + thread_index(), v, epoch);
      reduce.run(part, epoch);
      float* const to = args.totals + ((epoch - 1) * kBlocks + block_index()) * kValues;
      // The last threads are the first here: each reads what another has written.
      for (int v = kThreads - 1 - static_cast<int>(thread_index()); v < kValues; v += kThreads) to[v] = shared.total[v];
    }
    reduce.end();
  }
};

// The same in loops. `parts` of value v are neighbours in a tree: two and two, of more than 16, sixteens in order.
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
// Lanes 0 and 1, 2 and 3, ..., then those; the half of the values to which v belongs says whose part comes first.
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
