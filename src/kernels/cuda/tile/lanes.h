// lanes.h: combines values over the lanes of a warp, and over a few rows in shared memory, in a fixed order.
// Contract: `class Combine` has `static float apply(int v, float a, float b)`, arithmetic without tables: v may exceed
// the last value's index, and the result is then ignored. A value with a single part keeps that part's bits. Leaves to
// others: warps, blocks and clusters (exchange.h).
#pragma once

#include "kernels/cuda/tile/ptx.h"
#include "kernels/cuda/tile/shapes.h"

namespace graphrun::cuda::tile {

// Adjacent floats, read and written with one instruction.
template <int kWidth>
struct alignas(4 * kWidth) Floats {
  float value[kWidth];
};

// Values v, v + 1, ... combined over kCount rows as a tree: adjacent pairs, then pairs of those, and so on. More than
// 16 rows are combined in groups of 16, in order. `x` points to the first row's value v.
template <class Combine, int kCount, int kWidth>
GRAPHRUN_TILE_FN Floats<kWidth> combine_rows(int v, const float* x, int stride) {
  Floats<kWidth> all{}, right{};
  if constexpr (kCount == 1) {
    all = *reinterpret_cast<const Floats<kWidth>*>(x);
  } else if constexpr (kCount <= 16) {
    constexpr int kLeft = kCount > 8 ? 8 : kCount > 4 ? 4 : kCount > 2 ? 2 : 1;
    all = combine_rows<Combine, kLeft, kWidth>(v, x, stride);
    right = combine_rows<Combine, kCount - kLeft, kWidth>(v, x + kLeft * stride, stride);
    GRAPHRUN_TILE_FOR (i, kWidth) all.value[i] = Combine::apply(v + i, all.value[i], right.value[i]);
  } else {
    all = combine_rows<Combine, 16, kWidth>(v, x, stride);
    GRAPHRUN_TILE_LOOP
    for (int row = 16; row + 16 <= kCount; row += 16) {
      right = combine_rows<Combine, 16, kWidth>(v, x + row * stride, stride);
      GRAPHRUN_TILE_FOR (i, kWidth) all.value[i] = Combine::apply(v + i, all.value[i], right.value[i]);
    }
    if constexpr (kCount % 16 != 0) {
      right = combine_rows<Combine, kCount % 16, kWidth>(v, x + kCount / 16 * 16 * stride, stride);
      GRAPHRUN_TILE_FOR (i, kWidth) all.value[i] = Combine::apply(v + i, all.value[i], right.value[i]);
    }
  }
  return all;
}

// One round of the transposing butterfly: each of two lanes keeps one half of kCount values and combines it with the
// other lane's copy. On return x[0] is value `first`, and `count` entries are valid.
template <class Combine, int kCount, int kMask, int kValues>
GRAPHRUN_TILE_FN void halve(float (&x)[kValues], int lane, int& first, int& count) {
  constexpr int kHalf = (kCount + 1) / 2;
  const bool upper = (lane & kMask) != 0;
  first = upper ? first + kHalf : first;
  count = upper ? count - kHalf : count < kHalf ? count : kHalf;
  GRAPHRUN_TILE_FOR (i, kHalf) {
    const float low = x[i], high = x[i + kHalf < kCount ? i + kHalf : i];
    const float other = shuffle_xor(upper ? low : high, kMask);
    x[i] = Combine::apply(first + i, upper ? high : low, other);
  }
  if constexpr (kMask < 16) halve<Combine, kHalf, 2 * kMask>(x, lane, first, count);
}

// Combines values over all lanes of a warp, or over every second one (kApart = 2), into row[first, first + count). Uses
// about one shuffle per value, in tree order: lanes 0 and 1, 2 and 3, ..., then those; the lane that keeps the value
// comes first. `part` is overwritten.
template <class Combine, int kApart = 1, int kValues>
GRAPHRUN_TILE_FN void combine_lanes(float (&part)[kValues], float* row, int first = 0, int count = kValues) {
  halve<Combine, kValues, kApart>(part, static_cast<int>(thread_index() % 32), first, count);
  GRAPHRUN_TILE_FOR (i, (kApart * kValues + 31) / 32) {
    if (i < count) row[first + i] = part[i];
  }
}

}  // namespace graphrun::cuda::tile
