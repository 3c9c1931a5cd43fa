// product_loops.h: matrix products in the style of BLIS (van Zee and van de Geijn, 2015): tiles of the result in
// registers, a panel of b in the L1 cache, a block of a in L2. Contract: isa.h; see loops.cpp, which includes this
// file. Leaves to others: parts and threads (products.cpp).
#pragma once

#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/simd/lanes.h"

namespace graphrun::cpu::GRAPHRUN_ISA {
namespace {

// Tiles of kTileRows x (kTileVectors * 16) fill the machine's registers; they affect speed, never results. 14 x 32: 28
// sums, two vectors of b and a broadcast of a use 31 of 32 registers; 16 loads for 28 fma.
inline constexpr int kTileRows = GRAPHRUN_BLOCKS == 16 ? 14 : GRAPHRUN_BLOCKS == 8 ? 6 : 4;
static_assert(kTileRows <= kMaxTileRows);
inline constexpr int kTileVectors = GRAPHRUN_BLOCKS == 16 ? 2 : 1;
inline constexpr i64 kWide = kTileVectors * kLanes;
inline constexpr i64 kBlockRows = 84;  // rows of a packed at a time: 84 KiB, whole tiles (14, 6 and 4 divide it)
inline constexpr i64 kManyColumns = 512;

GRAPHRUN_FN i64 least(i64 x, i64 y) {
  return x < y ? x : y;
}

GRAPHRUN_FN i64 whole_tiles(i64 rows) {
  return (rows + kTileRows - 1) / kTileRows * kTileRows;
}

// ---- panels -------------------------------------------------------------------------------------------------------

// Packs as many lines as a register has lanes: element (step, line) to to[step * kWidth + line]. Stores whole
// registers; the lanes after kWidth are overwritten by the next step.
template <int kWidth>
GRAPHRUN_FN void pack_square(Real* to, const Real* p, i64 line, i64 steps, i64 lines) {
  constexpr int kSide = GRAPHRUN_LANES;
  constexpr int kUsed = kWidth < kSide ? kWidth : kSide;
  FloatPart v[kSide];
  if (lines >= kUsed && steps >= kSide) {
    unrolled<kSide>([&](auto l) __attribute__((always_inline)) {
      v[l] = l < kUsed ? load_part(p + l * line, kSide) : FloatPart{};
    });
    transpose(v);
    unrolled<kSide>([&](auto s) __attribute__((always_inline)) { store_part(to + s * kWidth, v[s], kSide); });
    return;
  }
  unrolled<kSide>([&](auto l) __attribute__((always_inline)) {
    v[l] = l < kUsed && l < lines ? load_part(p + l * line, steps) : FloatPart{};
  });
  transpose(v);
  unrolled<kSide>([&](auto s) __attribute__((always_inline)) {
    if (s < steps) store_part(to + s * kWidth, v[s], kSide);
  });
}

// Packs `lines` lines (rows of a or columns of b, zero-padded) of `depth` k steps, with the elements of a step
// contiguous. If kWidth is not a multiple of a register, up to 15 undefined floats may follow the last step.
template <int kWidth>
__attribute__((noinline)) void pack(Real* to, const Real* p, i64 line, i64 step, i64 depth, i64 lines) {
  constexpr int kSide = GRAPHRUN_LANES;
  if (line == 1) {
    for (i64 k = 0; k < depth; ++k, p += step, to += kWidth) {
      for (int l = 0; l < kWidth; l += kSide) {
        const i64 left = (lines < kWidth ? lines : kWidth) - l;
        store_part(to + l, left > 0 ? load_part(p + l, left) : FloatPart{}, kSide);
      }
    }
  } else if (step == 1) {
    for (i64 k = 0; k < depth; k += kSide)
      for (int l = 0; l < kWidth; l += kSide)
        pack_square<kWidth>(to + k * kWidth + l, p + l * line + k, line, depth - k, lines - l);
  } else {
    for (i64 k = 0; k < depth; ++k)
      for (int l = 0; l < kWidth; ++l) to[k * kWidth + l] = l < lines ? p[l * line + k * step] : Real{0};
  }
}

// Packs one strip of b, `columns` wide.
GRAPHRUN_FN void pack_b(Real* to, const Real* b, const MatmulProblem& p, i64 depth, i64 columns) {
  if (columns > kLanes && kTileVectors > 1)
    pack<kWide>(to, b, p.b_column, p.b_k, depth, columns);
  else
    pack<kLanes>(to, b, p.b_column, p.b_k, depth, columns);
}

// Panel layout: strip by strip. In the block of k starting at k, the strip of column j begins at k * (columns, rounded
// up to whole vectors) + j * depth.
void pack_panel(const MatmulProblem& p, Real* panels, i64 k, i64 column) {
  const i64 depth = least(kProductBlock, p.k - k);
  const i64 padded = (p.n + kLanes - 1) / kLanes * kLanes;
  for (i64 j = column; j < least(column + kPanelColumns, p.n); j += kWide)
    pack_b(panels + k * padded + j * depth, p.b + k * p.b_k + j * p.b_column, p, depth, least(kWide, p.n - j));
}

// Layout: tile by tile. In the block of k starting at k, the tile of row r begins at k * (rows, rounded up to whole
// tiles) + r * depth. Writes only the given steps and rows. Column-major input is read sequentially, one step at a
// time, which suits the prefetcher; other input is transposed in squares.
void pack_left(const MatmulProblem& p, Real* packed, i64 k, i64 steps, i64 row, i64 rows) {
  constexpr int kSide = GRAPHRUN_LANES;
  const i64 block = k / kProductBlock * kProductBlock;
  const i64 depth = least(kProductBlock, p.k - block);
  Real* tile = packed + block * whole_tiles(p.m) + row * depth + (k - block) * kTileRows;
  const Real* from = p.a + row * p.a_row + k * p.a_k;
  for (i64 r = 0; r < rows; r += kTileRows, tile += kTileRows * depth, from += kTileRows * p.a_row) {
    for (int l = 0; l < kTileRows; l += kSide) {
      const i64 lines = least(kTileRows, rows - r) - l;  // available in this tile
      if (p.a_row == 1) {
        for (i64 s = 0; s < steps; ++s)
          store_part(tile + s * kTileRows + l, lines > 0 ? load_part(from + s * p.a_k + l, lines) : FloatPart{},
                     kTileRows - l);
        continue;
      }
      for (i64 s = 0; s < steps; s += kSide) {
        FloatPart v[kSide];
        unrolled<kSide>([&](auto i) __attribute__((always_inline)) {
          v[i] = i < lines ? load_part(from + (l + i) * p.a_row + s, steps - s) : FloatPart{};
        });
        transpose(v);
        unrolled<kSide>([&](auto i) __attribute__((always_inline)) {
          if (s + i < steps) store_part(tile + (s + i) * kTileRows + l, v[i], kTileRows - l);
        });
      }
    }
  }
}

// ---- tiles --------------------------------------------------------------------------------------------------------

struct Tile {
  const Real* a;
  i64 a_row, a_k, a_tile;  // a_tile: distance between tiles of kTileRows rows
  const Real* b;           // kVectors * 16 contiguous columns for each k
  i64 b_k, k;
  Real* c;
  i64 c_row, c_column, columns;
  bool add;
};

// Stores or adds the first `width` lanes, at most all.
GRAPHRUN_FN void put(const Tile& t, Real* c, Floats x, i64 width) {
  if (t.c_column != 1) {
    Real lanes[kLanes];
    store(lanes, x);
    for (i64 l = 0; l < least(width, kLanes); ++l) c[l * t.c_column] = t.add ? c[l * t.c_column] + lanes[l] : lanes[l];
  } else if (GRAPHRUN_REGISTER < 64 && width >= kLanes) {  // AVX-512 masks are free
    store(c, t.add ? load(c) + x : x);
  } else {
    width = least(width, kLanes);
    store_first(c, t.add ? load_first(c, width) + x : x, width);
  }
}

// Layout of a: row-major (a_k == 1), packed (a_row == 1, a_k == kTileRows) or arbitrary.
enum class Left { rows, packed, any };

// Processes kSteps steps of k. Rows 3 i, 3 i + 1 and 3 i + 2 share an address register.
template <Left kLeft, int kRows, int kVectors, int kSteps, class Sums, class Addresses>
GRAPHRUN_FN void multiply_steps(Sums& sum, Addresses& a, const Real*& b, i64 a_row, i64 a_k, i64 b_k) {
  constexpr int kThirds = (kRows + 2) / 3;
  unrolled<kSteps>([&](auto s) __attribute__((always_inline)) {
    Floats column[kVectors];
    unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { column[v] = load(b + s * b_k + v * kLanes); });
    unrolled<kRows>([&](auto i) __attribute__((always_inline)) {
      const Floats x = kLeft == Left::packed ? a[0][s * kTileRows + i] : a[i / 3][i % 3 * a_row + s * a_k];
      unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
        sum[i * kVectors + v] = fma(x, column[v], sum[i * kVectors + v]);
      });
    });
  });
  if constexpr (kLeft == Left::packed)
    a[0] += kSteps * kTileRows;
  else
    unrolled<kThirds>([&](auto i) __attribute__((always_inline)) { a[i] += kSteps * a_k; });
  b += kSteps * b_k;
}

template <int kRows, int kVectors, Left kLeft = Left::any>
GRAPHRUN_FN void tile(const Tile& t) {
  Floats sum[kRows * kVectors];
  unrolled<kRows * kVectors>([&](auto i) __attribute__((always_inline)) { sum[i] = 0.0f; });
  constexpr int kThirds = (kRows + 2) / 3;
  const i64 a_row = t.a_row;
  const Real* a[kThirds];
  unrolled<kThirds>([&](auto i) __attribute__((always_inline)) { a[i] = t.a + 3 * i * a_row; });
  const Real* b = t.b;
  const i64 b_k = kLeft == Left::any ? t.b_k : kVectors * kLanes;
  const i64 a_k = kLeft == Left::rows ? 1 : t.a_k;
  i64 k = 0;
  if constexpr (kLeft != Left::any)
    for (; k + 2 <= t.k; k += 2) multiply_steps<kLeft, kRows, kVectors, 2>(sum, a, b, a_row, a_k, b_k);
  for (; k < t.k; ++k) multiply_steps<kLeft, kRows, kVectors, 1>(sum, a, b, a_row, a_k, b_k);
  if (kLeft != Left::any && t.c_column == 1 && t.columns == kVectors * kLanes) {
    Real* c = t.c;
    if (t.add) {
      unrolled<kRows>([&](auto i) __attribute__((always_inline)) {
        unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
          store(c + v * kLanes, load(c + v * kLanes) + sum[i * kVectors + v]);
        });
        c += t.c_row;
      });
    } else {
      unrolled<kRows>([&](auto i) __attribute__((always_inline)) {
        unrolled<kVectors>([&](auto v)
                               __attribute__((always_inline)) { store(c + v * kLanes, sum[i * kVectors + v]); });
        c += t.c_row;
      });
    }
    return;
  }
  unrolled<kRows * kVectors>([&](auto i) __attribute__((always_inline)) {
    const i64 column = i % kVectors * kLanes;
    put(t, t.c + i / kVectors * t.c_row + column * t.c_column, sum[i], t.columns - column);
  });
}

// Not inlined, so that no surrounding code competes for its registers.
template <Left kLeft>
[[maybe_unused]] __attribute__((noinline)) void full_tile(const Tile& t) {
  tile<kTileRows, kTileVectors, kLeft>(t);
}

template <int kRows, int kVectors>
GRAPHRUN_FN void tiles(Tile& t, i64& m) {
  const i64 step = kRows == kTileRows ? t.a_tile : kRows * t.a_row;
  for (; m >= kRows; m -= kRows, t.a += step, t.c += kRows * t.c_row) {
    if constexpr (kRows == kTileRows && kVectors > 1) {
      if (t.b_k == kWide && t.a_k == 1)
        full_tile<Left::rows>(t);
      else if (t.b_k == kWide && t.a_k == kTileRows && t.a_row == 1)
        full_tile<Left::packed>(t);
      else
        full_tile<Left::any>(t);
    } else {
      tile<kRows, kVectors>(t);
    }
  }
}

template <int kVectors>
void strip(Tile t, i64 m) {
  // With a short k the call overhead matters; a smaller tile avoids it.
  if constexpr (kTileRows > 12 && kVectors > 1) {
    if (t.k < 64 && t.a_tile == kTileRows * t.a_row) tiles<12, kVectors>(t, m);
  }
  tiles<kTileRows, kVectors>(t, m);
  if constexpr (kTileRows > 8) tiles<8, kVectors>(t, m);
  if constexpr (kTileRows > 4) tiles<4, kVectors>(t, m);
  tiles<2, kVectors>(t, m);
  tiles<1, kVectors>(t, m);
}

// With few rows there are few fma chains, bound by latency. Blocks of k are independent chains: several run at once.
inline constexpr int kChains = GRAPHRUN_BLOCKS == 16 ? 4 : 2;

template <int kRows, int kVectors, int kCount>
GRAPHRUN_FN void chains(const Tile& t) {
  constexpr int kTile = kRows * kVectors;
  Floats sum[kCount * kTile];
  unrolled<kCount * kTile>([&](auto i) __attribute__((always_inline)) { sum[i] = 0.0f; });
  const Real* a = t.a;
  const Real* b = t.b;
  const i64 last = t.columns - (kVectors - 1) * kLanes;
  for (i64 k = 0; k < t.k; ++k, a += t.a_k, b += t.b_k) {
    unrolled<kCount>([&](auto c) __attribute__((always_inline)) {
      const Real* a_block = a + c * kProductBlock * t.a_k;
      const Real* b_block = b + c * kProductBlock * t.b_k;
      unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
        const Floats column = v == kVectors - 1 ? load_first(b_block + v * kLanes, last) : load(b_block + v * kLanes);
        unrolled<kRows>([&](auto i) __attribute__((always_inline)) {
          sum[c * kTile + i * kVectors + v] =
              fma(Floats(a_block[i * t.a_row]), column, sum[c * kTile + i * kVectors + v]);
        });
      });
    });
  }
  unrolled<kCount * kTile>([&](auto i) __attribute__((always_inline)) {
    const i64 column = i % kVectors * kLanes;
    Tile at = t;
    at.add = t.add || i >= kTile;
    put(at, t.c + i % kTile / kVectors * t.c_row + column * t.c_column, sum[i],
        i % kVectors == kVectors - 1 ? last : kLanes);
  });
}

// Runs `kCount` blocks, as many at once as there are registers for their sums.
template <int kRows, int kVectors, int kCount>
GRAPHRUN_FN void blocks(Tile t) {
  constexpr int kRegisters = GRAPHRUN_BLOCKS == 16 ? 16 : 4;
  constexpr int kFit = kRegisters / (kRows * kVectors);
  constexpr int kStep = kFit < 1 ? 1 : kFit < kCount ? kFit : kCount;
  for (int c = 0; c < kCount;
       c += kStep, t.a += kStep * kProductBlock * t.a_k, t.b += kStep * kProductBlock * t.b_k, t.add = true)
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
  Tile t = {p.a,     p.a_row,    p.a_k,   0,    p.b + j, p.b_k, kProductBlock, p.c + j * p.c_column,
            p.c_row, p.c_column, columns, p.add};
  for (i64 left = p.k; left > 0;) {
    const bool whole = left >= kChains * kProductBlock;
    t.k = whole || left > kProductBlock ? kProductBlock : left;
    if (whole)
      blocks_of_rows<kVectors, kChains>(t, p.m);
    else
      blocks_of_rows<kVectors, 1>(t, p.m);
    const i64 steps = whole ? kChains * kProductBlock : t.k;
    t.a += steps * t.a_k;
    t.b += steps * t.b_k;
    t.add = true;
    left -= steps;
  }
}

void matmul(const MatmulProblem& given) {
  MatmulProblem p = given;
  // Few columns and a column-major a (a weight gradient): the rows become the lanes.
  if (p.n < kLanes && p.m > p.n && p.a_row == 1 && p.b_column == 1 && p.panels == nullptr) {
    p = {p.b, p.b_column, p.b_k, p.a, p.a_k, p.a_row, p.c, p.c_column, p.c_row, p.n, p.m, p.k, p.add};
  }
  if (p.m < kTileRows && p.b_column == 1 && p.k >= kChains * kProductBlock) {
    for (i64 j = 0; j < p.n; j += kWide) {
      const i64 left = p.n - j;
      if (left > kLanes)
        few_rows<kTileVectors>(p, j, least(left, kWide));
      else
        few_rows<1>(p, j, left);
    }
    return;
  }
  alignas(64) Real panel[kProductBlock * kWide];
  alignas(64) Real block_of_a[kBlockRows * kProductBlock + kLanes];
  // In a column-major a, consecutive k steps are far apart: packing pays if more than one strip reads it. With very
  // many strips it also pays for rows that are a multiple of a page apart and therefore conflict in the L1 cache.
  const bool packs_a = p.packed == nullptr && p.m >= kTileRows && (p.a_k != 1 ? p.n > kWide : p.n > kManyColumns);
  const i64 step = packs_a ? kBlockRows : p.m;
  for (i64 k = 0; k < p.k; k += kProductBlock) {
    const i64 depth = least(kProductBlock, p.k - k);
    for (i64 i = 0; i < p.m; i += step) {
      const i64 rows = least(step, p.m - i);
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
                k > 0 || p.add};
      if (p.packed != nullptr) {
        t.a = p.packed + k * p.packed_rows + (p.first_row + i) * depth;
        t.a_row = 1;
        t.a_k = kTileRows;
        t.a_tile = kTileRows * depth;
      } else if (packs_a) {
        for (i64 r = 0; r < rows; r += kTileRows)
          pack<kTileRows>(block_of_a + r * depth, t.a + r * p.a_row, p.a_row, p.a_k, depth, rows - r);
        t.a = block_of_a;
        t.a_row = 1;
        t.a_k = kTileRows;
        t.a_tile = kTileRows * depth;
      }
      for (i64 j = 0; j < p.n; j += t.columns) {
        const i64 left = p.n - j;
        const bool wide = left > kLanes && kTileVectors > 1;
        const i64 padded = wide ? kWide : kLanes;
        t.columns = least(left, padded);
        t.b = p.b + k * p.b_k + j * p.b_column;
        t.b_k = p.b_k;
        t.c = p.c + i * p.c_row + j * p.c_column;
        if (p.panels != nullptr) {
          t.b = p.panels + k * p.panel_columns + (p.first_column + j) * depth;
          t.b_k = padded;
        } else if (t.columns < padded || p.b_column != 1 || rows >= 4 * kTileRows) {
          // b cannot be loaded in place, or enough rows amortize the copy.
          pack_b(panel, t.b, p, depth, t.columns);
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
}  // namespace graphrun::cpu::GRAPHRUN_ISA
