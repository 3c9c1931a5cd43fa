// tile_parts.h: splits work into register blocks, with one function instantiated per block size.
// Contract: the split affects speed, never results.
// Leaves to others: the loops (tile_dense_loops.cpp, tile_gradient_loops.cpp).
#pragma once

#include "kernels/cpu/simd/lanes.h"

namespace graphrun::cpu::GRAPHRUN_ISA {
namespace {

// Calls f(Part<size>) for a size of 1 to kMax.
template <int kMax, class F>
GRAPHRUN_FN void with_size(i64 size, F&& f) {
  if constexpr (kMax > 1) {
    if (size < kMax) return with_size<kMax - 1>(size, f);
  }
  f(Part<kMax>{});
}

// n split into nearly equal parts of at most `most`: a short last part would have too few independent sums to hide
// instruction latency.
struct Parts {
  i64 size, large, small;  // `large` parts of size + 1, then `small` ones of size

  GRAPHRUN_FN Parts(i64 n, i64 most) {
    const i64 parts = (n + most - 1) / most;
    size = n / (parts > 0 ? parts : 1);
    large = n - size * parts;
    small = parts - large;
  }
  // Calls f(begin, Part<size>, number of such parts).
  template <int kMax, class F>
  GRAPHRUN_FN void for_each(F&& f) const {
    if (large > 0)
      with_size<kMax>(
          size + 1, [&](auto s) __attribute__((always_inline)) { f(i64{0}, s, large); });
    if (small > 0)
      with_size<kMax>(
          size, [&](auto s) __attribute__((always_inline)) { f(large * (size + 1), s, small); });
  }
};

// Calls f(begin, Part<size>) for each part of n.
template <int kMax, class F>
GRAPHRUN_FN void in_parts(i64 n, F&& f) {
  Parts(n, kMax).for_each<kMax>([&](i64 begin, auto size, i64 count) __attribute__((always_inline)) {
    for (; count > 0; --count, begin += size) f(begin, size);
  });
}

}  // namespace
}  // namespace graphrun::cpu::GRAPHRUN_ISA
