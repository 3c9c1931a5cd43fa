// line_lanes.h: maxima, exponentials and their sums along lines, or over 16 adjacent lines with a lane each; shared by
// batch and tile kernels.
// Contract: isa.h; the names of one instruction set, as lanes.h. Leaves to others: addresses of lines (axis_loops.h,
// tile_loops.cpp).
#pragma once

#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/simd/lanes.h"
#include "kernels/scalar_functions.h"

namespace graphrun::cpu::GRAPHRUN_ISA {
namespace {

// NaN propagates.
GRAPHRUN_FN Floats larger(Floats x, Floats y) {
  return select((x >= y) | (x != x), x, y);
}

GRAPHRUN_FN Floats exponential(Floats x) {
  return scalar::exp(x);
}

// Sum of term(j) over `count` elements in the order of isa.h. kAtOnce: terms unrolled in sequence; 16 for cheap terms,
// so that the accumulators stay in registers.
template <int kAtOnce, class Term>
GRAPHRUN_FN Floats sum_of_many(i64 count, Term&& term) {
  Floats total = 0.0f;
  for (i64 begin = 0; begin < count; begin += kSumChunk) {
    const i64 end = begin + kSumChunk < count ? begin + kSumChunk : count;
    Floats sum[kLanes];
    unrolled<kLanes>([&](auto l) __attribute__((always_inline)) { sum[l] = 0.0f; });
    i64 j = begin;
    if constexpr (kAtOnce == kLanes) {
      for (; j + kLanes <= end; j += kLanes)
        unrolled<kLanes>([&](auto l) __attribute__((always_inline)) { sum[l] = sum[l] + term(j + l); });
    }
    for (; j < end; ++j) sum[(j - begin) % kLanes] = sum[(j - begin) % kLanes] + term(j);
    unrolled<8>([&](auto l) __attribute__((always_inline)) { sum[l] = sum[l] + sum[l + 8]; });
    unrolled<4>([&](auto l) __attribute__((always_inline)) { sum[l] = sum[l] + sum[l + 4]; });
    unrolled<2>([&](auto l) __attribute__((always_inline)) { sum[l] = sum[l] + sum[l + 2]; });
    total = total + (sum[0] + sum[1]);
  }
  return total;
}

}  // namespace
}  // namespace graphrun::cpu::GRAPHRUN_ISA
