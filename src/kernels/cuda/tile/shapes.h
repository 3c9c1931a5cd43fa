// shapes.h: sizes of what a step kernel keeps in shared memory and scratch: the headers of this folder lay it out, and
// the planner (executors/cuda_planner) reserves it.
// Contract: constant expressions for hosts and devices. Includes nothing. Bytes, unless a name says otherwise; `floats`
// and `numbers` have four bytes each.
#pragma once

// Prefix of a function that also computes template arguments.
#ifdef __CUDACC__
#define GRAPHRUN_TILE_CONSTEXPR __host__ __device__ constexpr
#else
#define GRAPHRUN_TILE_CONSTEXPR constexpr
#endif

namespace graphrun::cuda::tile {

using Size = long;  // std::int64_t of <cstdint>, which NVRTC lacks

// Functions of numbers that may be unknown until run time keep their type.
template <class T, class By>
GRAPHRUN_TILE_CONSTEXPR T divide_up(T x, By by) {
  return (x + by - 1) / by;
}
template <class T>
GRAPHRUN_TILE_CONSTEXPR T multiple_of_4(T x) {
  return divide_up(x, 4) * 4;
}
template <class T>
GRAPHRUN_TILE_CONSTEXPR T multiple_of_8(T x) {
  return divide_up(x, 8) * 8;
}

// Message between blocks (ptx.h): three floats and an epoch.
constexpr int kPacketBytes = 16, kPacketFloats = 3;

// All-reduce (exchange.h): floats per rank of a cluster; scratch for `packets` messages between two blocks.
GRAPHRUN_TILE_CONSTEXPR Size slice_of(Size values, Size cluster, Size clusters) {
  return multiple_of_4(clusters == 1 ? values : divide_up(values, cluster));
}
GRAPHRUN_TILE_CONSTEXPR Size exchange_bytes(Size packets, Size cluster, Size clusters) {
  return clusters > 1 ? 2 * cluster * clusters * packets * kPacketBytes : 0;  // for two epochs
}

// Grid barrier (grid.h): its scratch.
constexpr int kGridBytes = 128;

// Table of picked rows (picks.h): covers several steps of a small batch, up to this many rows.
constexpr int kPickedRows = 2048;

// ---- pairs (pair.h)

template <class T>
GRAPHRUN_TILE_CONSTEXPR T half_of(T features) {
  return divide_up(features, 2);
}

// ---- warps (warp.h)

constexpr int kTileRows = 16;
GRAPHRUN_TILE_CONSTEXPR bool is_narrow(Size features) {
  return features <= 4;
}
template <class T>
GRAPHRUN_TILE_CONSTEXPR T blocks_of(T features) {
  return divide_up(features, 8);
}
// Numbers per lane for each of its two rows.
template <class T>
GRAPHRUN_TILE_CONSTEXPR T columns_of(T features) {
  return is_narrow(features) ? features : 2 * blocks_of(features);
}

// K by N sums over rows (warp_sums.h). If both sides are wide, a lane has its part of a product's result; the side of
// 16 is the wider one, or the one that needs less padding. Otherwise a lane has its columns.
struct SumShape {
  // Per feature 16 rows and 4 floats of padding, so that no two lanes conflict on a bank.
  static constexpr int kStride = 20;
  bool blocks, swapped = false;
  Size numbers;             // per lane
  Size tall = 0, wide = 0;  // blocks of 16 and of 8
  Size scratch = 0;         // floats per warp
};
GRAPHRUN_TILE_CONSTEXPR SumShape sum_shape(Size k, Size n) {
  if (is_narrow(k) || is_narrow(n)) return {false, false, columns_of(k) * columns_of(n)};
  const Size as_is = divide_up(k, 16) * blocks_of(n), turned = divide_up(n, 16) * blocks_of(k);
  const bool swapped = as_is > turned || (as_is == turned && n > k);
  const Size tall = divide_up(swapped ? n : k, 16), wide = blocks_of(swapped ? k : n);
  return {true, swapped, tall * wide * 4, tall, wide, (16 * tall + 8 * wide) * SumShape::kStride};
}

// ---- blocks (product.h)

// Floats of a partial result of 16 m by 8 n, transposed if n is 1; rows are padded to reduce bank conflicts.
GRAPHRUN_TILE_CONSTEXPR Size part_floats(Size m, Size n) {
  return n == 1 ? 8 * (16 * m + 1) : 16 * m * (8 * n + 8);
}
// N results for a few rows (at most one octet); `shares` warps share the terms of each group of 16 m results.
struct RowProductShape {
  Size m, groups, shares;
};
GRAPHRUN_TILE_CONSTEXPR RowProductShape row_product_shape(Size results, Size warps) {
  const Size m = results >= 64 ? 4 : divide_up(results, 16), groups = divide_up(results, 16 * m);
  return {m, groups, groups >= warps ? 1 : warps / groups};
}

// ---- clusters with slices of the data (split.h)

// Stride of a row of a slice, so that lanes of eight rows and four features have no bank conflicts.
GRAPHRUN_TILE_CONSTEXPR Size slice_stride(Size features) {
  return multiple_of_8(features) + 4;
}
// Octets of rows per warp; several warps may share their terms.
GRAPHRUN_TILE_CONSTEXPR Size octets_of(Size rows) {
  return rows > 8 ? 2 : 1;
}
GRAPHRUN_TILE_CONSTEXPR Size shares_of(Size threads, Size rows, Size inner) {
  const Size jobs = divide_up(divide_up(rows, 8), octets_of(rows)), steps = divide_up(inner, 8);
  const Size shares = threads / 32 / jobs < 8 ? threads / 32 / jobs : 8;
  return shares < 1 ? 1 : shares > steps ? steps : shares;
}
// Sums over clusters (slice_sums.h): messages of a share, and scratch.
GRAPHRUN_TILE_CONSTEXPR Size share_packets(Size values, Size clusters) {
  return divide_up(divide_up(values, kPacketFloats), clusters);
}
GRAPHRUN_TILE_CONSTEXPR Size slice_sums_bytes(Size values, Size cluster, Size clusters) {
  return exchange_bytes((clusters + 1) * multiple_of_8(share_packets(values, clusters)), cluster, clusters);
}

}  // namespace graphrun::cuda::tile
