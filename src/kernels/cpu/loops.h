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

// One operand of a row: a vector at each place, or one number for the whole row.
GRAPHRUN_FN Floats at(const float* p, i64 column, i64 i, Floats fixed) {
  return column != 0 ? load(p + i) : fixed;
}
GRAPHRUN_FN Floats at_first(const float* p, i64 column, i64 i, i64 n, Floats fixed) {
  return column != 0 ? load_first(p + i, n) : fixed;
}

template <class Functor, class Out>
void binary(Out* out, i64 rows, i64 columns, Strided<float> x, Strided<float> y) {
  for (i64 r = 0; r < rows; ++r, out += columns, x.data += x.row, y.data += y.row) {
    const Floats fixed_x = *x.data;
    const Floats fixed_y = *y.data;
    i64 i = 0;
    for (; i + kLanes <= columns; i += kLanes)
      store(out + i, Functor::apply(at(x.data, x.column, i, fixed_x), at(y.data, y.column, i, fixed_y)));
    if (i < columns) {
      const i64 n = columns - i;
      store_first(out + i,
                  Functor::apply(at_first(x.data, x.column, i, n, fixed_x), at_first(y.data, y.column, i, n, fixed_y)),
                  n);
    }
  }
}

void where(float* out, i64 rows, i64 columns, Strided<std::uint8_t> m, Strided<float> x, Strided<float> y) {
  for (i64 r = 0; r < rows; ++r, out += columns, m.data += m.row, x.data += x.row, y.data += y.row) {
    const Floats fixed_x = *x.data;
    const Floats fixed_y = *y.data;
    const Mask fixed_m = nonzero(Ints(*m.data));
    i64 i = 0;
    for (; i + kLanes <= columns; i += kLanes)
      store(out + i, select(m.column != 0 ? load_mask(m.data + i) : fixed_m, at(x.data, x.column, i, fixed_x),
                            at(y.data, y.column, i, fixed_y)));
    if (i < columns) {
      const i64 n = columns - i;
      store_first(out + i,
                  select(m.column != 0 ? load_mask_first(m.data + i, n) : fixed_m,
                         at_first(x.data, x.column, i, n, fixed_x), at_first(y.data, y.column, i, n, fixed_y)),
                  n);
    }
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
void sum_columns(float* out, const float* x, i64 n, i64 columns) {
  for (i64 c = 0; c < columns; c += kLanes) {
    const i64 width = columns - c < kLanes ? columns - c : kLanes;
    const bool whole = width == kLanes;
    Floats total = 0.0f;
    for (i64 begin = 0; begin < n; begin += kSumChunk) {
      const i64 end = begin + kSumChunk < n ? begin + kSumChunk : n;
      Floats sum[kLanes];
      for (Floats& s : sum) s = 0.0f;
      const float* p = x + begin * columns + c;
      i64 j = begin;
      if (whole) {
        for (; j + kLanes <= end; j += kLanes)
          for (int l = 0; l < kLanes; ++l, p += columns) sum[l] = sum[l] + load(p);
      } else {
        for (; j + kLanes <= end; j += kLanes)
          for (int l = 0; l < kLanes; ++l, p += columns) sum[l] = sum[l] + load_first(p, width);
      }
      for (int l = 0; j < end; ++j, ++l, p += columns) sum[l] = sum[l] + load_first(p, width);
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
inline constexpr i64 kBlock = 256;  // of k

struct Tile {
  const float* a;
  i64 a_row, a_k;
  const float* b;  // kVectors * 16 contiguous columns for each k
  i64 b_k, k;
  float* c;
  i64 c_row, c_column, columns;
  bool add;
};

template <int kRows, int kVectors>
GRAPHRUN_FN void tile(const Tile& t) {
  Floats sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i)
    for (int v = 0; v < kVectors; ++v) sum[i][v] = 0.0f;
  const float* a = t.a;
  const float* b = t.b;
  for (i64 k = 0; k < t.k; ++k, a += t.a_k, b += t.b_k) {
    Floats column[kVectors];
    for (int v = 0; v < kVectors; ++v) column[v] = load(b + v * kLanes);
    for (int i = 0; i < kRows; ++i) {
      const Floats x = a[i * t.a_row];
      for (int v = 0; v < kVectors; ++v) sum[i][v] = fma(x, column[v], sum[i][v]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      const i64 width = t.columns - v * kLanes < kLanes ? t.columns - v * kLanes : kLanes;
      float* c = t.c + i * t.c_row + v * kLanes * t.c_column;
      if (t.c_column == 1) {
        store_first(c, t.add ? load_first(c, width) + sum[i][v] : sum[i][v], width);
      } else {
        float lanes[kLanes];
        store(lanes, sum[i][v]);
        for (i64 l = 0; l < width; ++l) c[l * t.c_column] = t.add ? c[l * t.c_column] + lanes[l] : lanes[l];
      }
    }
  }
}

template <int kRows, int kVectors>
GRAPHRUN_FN void tiles(Tile& t, i64& m) {
  for (; m >= kRows; m -= kRows, t.a += kRows * t.a_row, t.c += kRows * t.c_row) tile<kRows, kVectors>(t);
}

template <int kVectors>
void strip(Tile t, i64 m) {
  tiles<kTileRows, kVectors>(t, m);
  tiles<4, kVectors>(t, m);
  tiles<2, kVectors>(t, m);
  tiles<1, kVectors>(t, m);
}

// `width` columns of b from p on, for `k` steps, as rows of `padded` floats.
void pack(float* panel, const float* p, i64 b_k, i64 b_column, i64 k, i64 width, i64 padded) {
  for (i64 j = 0; j < padded; ++j)
    for (i64 i = 0; i < k; ++i) panel[i * padded + j] = j < width ? p[i * b_k + j * b_column] : 0.0f;
}

void matmul(const MatmulProblem& given) {
  MatmulProblem p = given;
  // Few columns and a stored by columns (a weight gradient): the rows become the lanes.
  if (p.n < kLanes && p.m > p.n && p.a_row == 1 && p.b_column == 1) {
    p = {p.b, p.b_column, p.b_k, p.a, p.a_k, p.a_row, p.c, p.c_column, p.c_row, p.n, p.m, p.k};
  }
  alignas(64) float panel[kBlock * kTileVectors * kLanes];
  for (i64 j = 0; j < p.n;) {
    const i64 left = p.n - j;
    const bool wide = left > kLanes && kTileVectors > 1;
    const i64 padded = wide ? kTileVectors * kLanes : kLanes;
    const i64 width = left < padded ? left : padded;
    for (i64 k = 0; k < p.k; k += kBlock) {
      const i64 depth = p.k - k < kBlock ? p.k - k : kBlock;
      const float* b = p.b + k * p.b_k + j * p.b_column;
      i64 b_k = p.b_k;
      // A panel of its own where b cannot be loaded as it lies, or where many rows pay for the copy.
      if (width < padded || p.b_column != 1 || p.m >= 8 * kTileRows) {
        pack(panel, b, p.b_k, p.b_column, depth, width, padded);
        b = panel;
        b_k = padded;
      }
      const Tile t = {p.a + k * p.a_k,      p.a_row, p.a_k,      b,     b_k,  depth,
                      p.c + j * p.c_column, p.c_row, p.c_column, width, k > 0};
      if (wide)
        strip<kTileVectors>(t, p.m);
      else
        strip<1>(t, p.m);
    }
    j += width;
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
