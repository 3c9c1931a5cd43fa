// loops.h: the inner loops of isa.h, written once over simd.h and compiled once for each instruction set.
// Contract: see isa.h. Everything here is static or forced inline, and nothing of std is used but integer types.
// Leaves to others: which file includes it with which flags (plain.cpp, avx2.cpp, avx512.cpp, src/CMakeLists.txt).
#pragma once

#include "kernels/cpu/isa.h"
#include "kernels/cpu/simd.h"

namespace graphrun::cpu::GRAPHRUN_ISA {
namespace {

using i64 = std::int64_t;

template <class Functor>
void unary(float* out, const float* x, i64 n, float a, float b) {
  const Floats va = a;
  const Floats vb = b;
  i64 i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, Functor::apply(load(x + i), va, vb));
  if (i < n) store_first(out + i, Functor::apply(load_first(x + i, n - i), va, vb), n - i);
}

// Where a row's vectors of an operand lie: one number for the whole row is spread over a vector, which is then read
// again and again. So the loops ask nothing about their operands.
GRAPHRUN_FN const float* vectors(const float* p, i64 column, float* spread) {
  if (column != 0) return p;
  store(spread, Floats(*p));
  return spread;
}
GRAPHRUN_FN const std::uint8_t* vectors(const std::uint8_t* p, i64 column, std::uint8_t* spread) {
  if (column != 0) return p;
  for (int i = 0; i < kLanes; ++i) spread[i] = *p;
  return spread;
}

template <class Functor, class Out>
void binary(Out* out, i64 rows, i64 columns, Strided<float> x, Strided<float> y) {
  alignas(64) float spread_x[kLanes];
  alignas(64) float spread_y[kLanes];
  for (i64 r = 0; r < rows; ++r, out += columns, x.data += x.row, y.data += y.row) {
    const float* px = vectors(x.data, x.column, spread_x);
    const float* py = vectors(y.data, y.column, spread_y);
    i64 i = 0;
    for (; i + kLanes <= columns; i += kLanes, px += kLanes * x.column, py += kLanes * y.column)
      store(out + i, Functor::apply(load(px), load(py)));
    const i64 n = columns - i;
    if (n > 0) store_first(out + i, Functor::apply(load_first(px, n), load_first(py, n)), n);
  }
}

void where(float* out, i64 rows, i64 columns, Strided<std::uint8_t> m, Strided<float> x, Strided<float> y) {
  alignas(64) std::uint8_t spread_m[kLanes];
  alignas(64) float spread_x[kLanes];
  alignas(64) float spread_y[kLanes];
  for (i64 r = 0; r < rows; ++r, out += columns, m.data += m.row, x.data += x.row, y.data += y.row) {
    const std::uint8_t* pm = vectors(m.data, m.column, spread_m);
    const float* px = vectors(x.data, x.column, spread_x);
    const float* py = vectors(y.data, y.column, spread_y);
    i64 i = 0;
    for (; i + kLanes <= columns;
         i += kLanes, pm += kLanes * m.column, px += kLanes * x.column, py += kLanes * y.column)
      store(out + i, select(load_mask(pm), load(px), load(py)));
    const i64 n = columns - i;
    if (n > 0) store_first(out + i, select(load_mask_first(pm, n), load_first(px, n), load_first(py, n)), n);
  }
}

// ---- sums ---------------------------------------------------------------------------------------------------------

GRAPHRUN_FN float tree(Floats x) {
  float v[kLanes];
  store(v, x);
  for (int apart = kLanes / 2; apart > 0; apart /= 2)
    for (int i = 0; i < apart; ++i) v[i] += v[i + apart];
  return v[0];
}

void sum_rows(float* out, const float* x, i64 rows, i64 n) {
  for (i64 r = 0; r < rows; ++r, x += n) {
    float total = 0;
    for (i64 begin = 0; begin < n; begin += kSumChunk) {
      const i64 end = begin + kSumChunk < n ? begin + kSumChunk : n;
      Floats sum = 0.0f;
      i64 j = begin;
      for (; j + kLanes <= end; j += kLanes) sum = sum + load(x + j);
      if (j < end) sum = sum + load_first(x + j, end - j);
      total += tree(sum);
    }
    out[r] = total;
  }
}

// The accumulators of 16 columns side by side, each the vector of its 16 columns.
void sum_columns(float* out, const float* x, i64 n, i64 columns, i64 stride) {
  for (i64 c = 0; c < columns; c += kLanes) {
    const i64 width = columns - c < kLanes ? columns - c : kLanes;
    const bool whole = width == kLanes;
    Floats total = 0.0f;
    for (i64 begin = 0; begin < n; begin += kSumChunk) {
      const i64 end = begin + kSumChunk < n ? begin + kSumChunk : n;
      Floats sum[kLanes];
      for (Floats& s : sum) s = 0.0f;
      const float* p = x + begin * stride + c;
      i64 j = begin;
      if (whole) {
        for (; j + kLanes <= end; j += kLanes)
          for (int l = 0; l < kLanes; ++l, p += stride) sum[l] = sum[l] + load(p);
      } else {
        for (; j + kLanes <= end; j += kLanes)
          for (int l = 0; l < kLanes; ++l, p += stride) sum[l] = sum[l] + load_first(p, width);
      }
      for (int l = 0; j < end; ++j, ++l, p += stride) sum[l] = sum[l] + load_first(p, width);
      for (int apart = kLanes / 2; apart > 0; apart /= 2)
        for (int l = 0; l < apart; ++l) sum[l] = sum[l] + sum[l + apart];
      total = total + sum[0];
    }
    store_first(out + c, total, width);
  }
}

// ---- matmul -------------------------------------------------------------------------------------------------------

// Tiles of kTileRows x (kTileVectors * 16) fill the registers of the machine; they decide the speed, never the bits.
inline constexpr int kTileRows = GRAPHRUN_LANES == 16 ? 12 : GRAPHRUN_LANES == 8 ? 6 : 4;
inline constexpr int kTileVectors = GRAPHRUN_LANES == 16 ? 2 : 1;
inline constexpr i64 kBlock = 256;      // of k
inline constexpr i64 kPackedRows = 96;  // of a

struct Tile {
  const float* a;
  i64 a_row, a_k, a_tile;  // a_tile: from a tile of kTileRows to the next
  const float* b;          // kVectors * 16 contiguous columns for each k
  i64 b_k, k;
  float* c;
  i64 c_row, c_column, columns;
  bool add;
};

// Unrolled by template like all of simd.h: what a loop indexes lies in memory, where -O2 does not unroll it.
template <int kCount, int kIndex = 0, class F>
GRAPHRUN_FN void for_each_index(F&& f) {
  f(Part<kIndex>{});
  if constexpr (kIndex + 1 < kCount) for_each_index<kCount, kIndex + 1>(f);
}

GRAPHRUN_FN void put(const Tile& t, float* c, Floats x, i64 width) {
  if (t.c_column == 1) {
    store_first(c, t.add ? load_first(c, width) + x : x, width);
    return;
  }
  float lanes[kLanes];
  store(lanes, x);
  for (i64 l = 0; l < width; ++l) c[l * t.c_column] = t.add ? c[l * t.c_column] + lanes[l] : lanes[l];
}

template <int kRows, int kVectors>
GRAPHRUN_FN void tile(const Tile& t) {
  Floats sum[kRows * kVectors];
  for_each_index<kRows * kVectors>([&](auto i) __attribute__((always_inline)) { sum[i] = 0.0f; });
  const float* a = t.a;
  const float* b = t.b;
  for (i64 k = 0; k < t.k; ++k, a += t.a_k, b += t.b_k) {
    Floats column[kVectors];
    for_each_index<kVectors>([&](auto v) __attribute__((always_inline)) { column[v] = load(b + v * kLanes); });
    for_each_index<kRows>([&](auto i) __attribute__((always_inline)) {
      const Floats x = a[i * t.a_row];
      for_each_index<kVectors>([&](auto v) __attribute__((always_inline)) {
        sum[i * kVectors + v] = fma(x, column[v], sum[i * kVectors + v]);
      });
    });
  }
  for_each_index<kRows * kVectors>([&](auto i) __attribute__((always_inline)) {
    const i64 column = i % kVectors * kLanes;
    const i64 width = t.columns - column < kLanes ? t.columns - column : kLanes;
    put(t, t.c + i / kVectors * t.c_row + column * t.c_column, sum[i], width);
  });
}

template <int kRows, int kVectors>
GRAPHRUN_FN void tiles(Tile& t, i64& m) {
  const i64 step = kRows == kTileRows ? t.a_tile : kRows * t.a_row;
  for (; m >= kRows; m -= kRows, t.a += step, t.c += kRows * t.c_row) tile<kRows, kVectors>(t);
}

template <int kVectors>
void strip(Tile t, i64 m) {
  tiles<kTileRows, kVectors>(t, m);
  tiles<4, kVectors>(t, m);
  tiles<2, kVectors>(t, m);
  tiles<1, kVectors>(t, m);
}

// `width` columns of b from p on, for `k` steps, as rows of `padded` floats.
void pack_b(float* panel, const float* p, i64 b_k, i64 b_column, i64 k, i64 width, i64 padded) {
  if (b_column == 1) {
    for (i64 i = 0; i < k; ++i, p += b_k) {
      for (i64 j = 0; j < padded; j += kLanes, panel += kLanes) {
        const i64 left = width - j;
        store(panel, left >= kLanes ? load(p + j) : load_first(p + j, left > 0 ? left : 0));
      }
    }
    return;
  }
  constexpr i64 kStep = 16;  // of k at a time: what is written stays in the nearest cache
  for (i64 begin = 0; begin < k; begin += kStep) {
    const i64 end = begin + kStep < k ? begin + kStep : k;
    for (i64 j = 0; j < padded; ++j)
      for (i64 i = begin; i < end; ++i) panel[i * padded + j] = j < width ? p[i * b_k + j * b_column] : 0.0f;
  }
}

// `rows` rows of a by tiles of kTileRows: those of a step of k side by side.
void pack_a(float* packed, const float* p, i64 a_row, i64 a_k, i64 k, i64 rows) {
  for (; rows > 0; rows -= kTileRows, p += kTileRows * a_row, packed += kTileRows * k) {
    const i64 count = rows < kTileRows ? rows : kTileRows;
    for (i64 i = 0; i < k; ++i)
      for (i64 r = 0; r < count; ++r) packed[i * kTileRows + r] = p[r * a_row + i * a_k];
  }
}

// Few rows are few chains of fma, each waiting for its last one. Blocks of k are chains of their own: several at once.
inline constexpr int kChains = GRAPHRUN_LANES == 16 ? 4 : 2;

template <int kRows, int kVectors, int kCount>
GRAPHRUN_FN void chains(const Tile& t) {
  constexpr int kTile = kRows * kVectors;
  Floats sum[kCount * kTile];
  for_each_index<kCount * kTile>([&](auto i) __attribute__((always_inline)) { sum[i] = 0.0f; });
  const float* a = t.a;
  const float* b = t.b;
  const i64 last = t.columns - (kVectors - 1) * kLanes;
  for (i64 k = 0; k < t.k; ++k, a += t.a_k, b += t.b_k) {
    for_each_index<kCount>([&](auto c) __attribute__((always_inline)) {
      const float* a_block = a + c * kBlock * t.a_k;
      const float* b_block = b + c * kBlock * t.b_k;
      for_each_index<kVectors>([&](auto v) __attribute__((always_inline)) {
        const Floats column = v == kVectors - 1 ? load_first(b_block + v * kLanes, last) : load(b_block + v * kLanes);
        for_each_index<kRows>([&](auto i) __attribute__((always_inline)) {
          sum[c * kTile + i * kVectors + v] =
              fma(Floats(a_block[i * t.a_row]), column, sum[c * kTile + i * kVectors + v]);
        });
      });
    });
  }
  for_each_index<kCount * kTile>([&](auto i) __attribute__((always_inline)) {
    const i64 column = i % kVectors * kLanes;
    Tile at = t;
    at.add = t.add || i >= kTile;
    put(at, t.c + i % kTile / kVectors * t.c_row + column * t.c_column, sum[i],
        i % kVectors == kVectors - 1 ? last : kLanes);
  });
}

// `kCount` blocks, as many at once as there are registers for their sums.
template <int kRows, int kVectors, int kCount>
GRAPHRUN_FN void blocks(Tile t) {
  constexpr int kRegisters = GRAPHRUN_LANES == 16 ? 16 : 4;
  constexpr int kFit = kRegisters / (kRows * kVectors);
  constexpr int kStep = kFit < 1 ? 1 : kFit < kCount ? kFit : kCount;
  for (int c = 0; c < kCount; c += kStep, t.a += kStep * kBlock * t.a_k, t.b += kStep * kBlock * t.b_k, t.add = true)
    chains<kRows, kVectors, kStep>(t);
}

template <int kVectors, int kCount>
GRAPHRUN_FN void blocks_of_rows(Tile t, i64 m) {
  for (; m >= 4; m -= 4, t.a += 4 * t.a_row, t.c += 4 * t.c_row) blocks<4, kVectors, kCount>(t);
  if (m >= 2) {
    blocks<2, kVectors, kCount>(t);
    m -= 2, t.a += 2 * t.a_row, t.c += 2 * t.c_row;
  }
  if (m == 1) blocks<1, kVectors, kCount>(t);
}

template <int kVectors>
void few_rows(const MatmulProblem& p, i64 j, i64 columns) {
  Tile t = {p.a, p.a_row, p.a_k, 0, p.b + j, p.b_k, kBlock, p.c + j * p.c_column, p.c_row, p.c_column, columns, false};
  i64 left = p.k;
  const auto next = [&](i64 steps) __attribute__((always_inline)) {
    t.a += steps * t.a_k;
    t.b += steps * t.b_k;
    t.add = true;
    left -= steps;
  };
  for (; left >= kChains * kBlock; next(kChains * kBlock)) blocks_of_rows<kVectors, kChains>(t, p.m);
  for (; left > 0; next(t.k)) {
    t.k = left < kBlock ? left : kBlock;
    blocks_of_rows<kVectors, 1>(t, p.m);
  }
}

void matmul(const MatmulProblem& given) {
  MatmulProblem p = given;
  // Few columns and a stored by columns (a weight gradient): the rows become the lanes.
  if (p.n < kLanes && p.m > p.n && p.a_row == 1 && p.b_column == 1) {
    p = {p.b, p.b_column, p.b_k, p.a, p.a_k, p.a_row, p.c, p.c_column, p.c_row, p.n, p.m, p.k};
  }
  if (p.m < kTileRows && p.b_column == 1 && p.k >= kChains * kBlock) {
    for (i64 j = 0; j < p.n; j += kTileVectors * kLanes) {
      const i64 left = p.n - j;
      if (left > kLanes)
        few_rows<kTileVectors>(p, j, left < kTileVectors * kLanes ? left : kTileVectors * kLanes);
      else
        few_rows<1>(p, j, left);
    }
    return;
  }
  constexpr i64 kWide = kTileVectors * kLanes;
  alignas(64) float panel[kBlock * kWide];
  alignas(64) float rows_of_a[kPackedRows * kBlock];
  // A step of k is far from the next in an a stored by columns: a copy pays if more than one strip reads it.
  const bool packs_a = p.a_k != 1 && p.n > kWide && p.m >= kTileRows;
  const i64 step = packs_a ? kPackedRows : p.m;
  for (i64 i = 0; i < p.m; i += step) {
    const i64 rows = p.m - i < step ? p.m - i : step;
    for (i64 k = 0; k < p.k; k += kBlock) {
      const i64 depth = p.k - k < kBlock ? p.k - k : kBlock;
      Tile t = {p.a + i * p.a_row + k * p.a_k,
                p.a_row,
                p.a_k,
                kTileRows * p.a_row,
                nullptr,
                0,
                depth,
                nullptr,
                p.c_row,
                p.c_column,
                0,
                k > 0};
      if (packs_a) {
        pack_a(rows_of_a, t.a, p.a_row, p.a_k, depth, rows);
        t.a = rows_of_a;
        t.a_row = 1;
        t.a_k = kTileRows;
        t.a_tile = kTileRows * depth;
      }
      for (i64 j = 0; j < p.n; j += t.columns) {
        const i64 left = p.n - j;
        const bool wide = left > kLanes && kTileVectors > 1;
        const i64 padded = wide ? kWide : kLanes;
        t.columns = left < padded ? left : padded;
        t.b = p.b + k * p.b_k + j * p.b_column;
        t.b_k = p.b_k;
        t.c = p.c + i * p.c_row + j * p.c_column;
        // A panel of its own where b cannot be loaded as it lies, or where many rows pay for the copy.
        if (t.columns < padded || p.b_column != 1 || rows >= 4 * kTileRows) {
          pack_b(panel, t.b, p.b_k, p.b_column, depth, t.columns, padded);
          t.b = panel;
          t.b_k = padded;
        }
        if (wide)
          strip<kTileVectors>(t, rows);
        else
          strip<1>(t, rows);
      }
    }
  }
}

}  // namespace

#define GRAPHRUN_UNARY_ENTRY(name, Functor, reference) unary<scalar::Functor>,
#define GRAPHRUN_BINARY_ENTRY(name, Functor, reference) binary<scalar::Functor, float>,
#define GRAPHRUN_COMPARE_ENTRY(name, Functor, reference) binary<scalar::Functor, std::uint8_t>,

extern const IsaTable table;
const IsaTable table = {{GRAPHRUN_UNARY_OPS(GRAPHRUN_UNARY_ENTRY)},
                        {GRAPHRUN_BINARY_OPS(GRAPHRUN_BINARY_ENTRY)},
                        {GRAPHRUN_COMPARE_OPS(GRAPHRUN_COMPARE_ENTRY)},
                        where,
                        sum_rows,
                        sum_columns,
                        matmul};

#undef GRAPHRUN_UNARY_ENTRY
#undef GRAPHRUN_BINARY_ENTRY
#undef GRAPHRUN_COMPARE_ENTRY

}  // namespace graphrun::cpu::GRAPHRUN_ISA
