// exchange_cases.h: all-reduces to run on the emulator or on a device: each thread's parts, and their combination in
// plain loops. Contract: Case<...>::kernel runs kEpochs all-reduces; totals_of() returns the same totals, bit for bit.
// Leaves to others: running and comparing.
#pragma once

#include "kernels/cuda/tile/exchange.h"

namespace graphrun::cuda::tile {

// Operation per value: sums, and among them a maximum, a minimum and a product.
struct SumsAndOthers {
  GRAPHRUN_TILE_FN static float apply(int v, float a, float b) {
    if (v % 8 == 3) return a > b ? a : b;
    if (v % 8 == 5) return a < b ? a : b;
    return v == 6 ? a * b : a + b;
  }
};

// Part of a thread, numbered over the grid: many magnitudes, so that another order gives other sums; value 2 is always
// -0.
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
  unsigned silent = ~0u;  // this block skips the last epoch
};

template <int kValues, int kThreads, int kCluster, int kClusters>
struct Case {
  using Reduce = AllReduce<kValues, kThreads, kCluster, kClusters, SumsAndOthers>;
  static constexpr int kBlocks = kCluster * kClusters, kValueCount = kValues, kThreadCount = kThreads,
                       kClusterSize = kCluster, kClusterCount = kClusters;

  GRAPHRUN_TILE_FN static void kernel(const CaseArgs& args, void* memory) {
    auto& shared = *static_cast<typename Reduce::Shared*>(memory);
    Reduce reduce(shared, args.scratch, args.fault);
    const unsigned epochs = args.epochs - (block_index() == args.silent ? 1 : 0);
    for (unsigned epoch = 1; epoch <= epochs; ++epoch) {
      float part[kValues];
      GRAPHRUN_TILE_UNROLL
      for (int v = 0; v < kValues; ++v) part[v] = part_of(block_index() * kThreads + thread_index(), v, epoch);
      reduce.run(part, epoch);
      float* const to = args.totals + ((epoch - 1) * kBlocks + block_index()) * kValues;
      // In reverse thread order, so that each thread reads what another has written.
      for (int v = kThreads - 1 - static_cast<int>(thread_index()); v < kValues; v += kThreads) to[v] = reduce.total(v);
      barrier();
    }
    reduce.end();
  }
};

}  // namespace graphrun::cuda::tile
