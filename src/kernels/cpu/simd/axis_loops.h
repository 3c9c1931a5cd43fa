// axis_loops.h: per-line sums, maxima and sums of exponentials; matrix transposition. Contract: isa.h; see loops.cpp,
// which includes this file. Leaves to others: which elements form a line, parts (softmax.cpp, sums.cpp, rearrange.cpp).
#pragma once

#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/simd/line_lanes.h"

namespace graphrun::cpu::GRAPHRUN_ISA {
namespace {

// ---- across lanes -------------------------------------------------------------------------------------------------

// Moves lane i + kApart of x to lane i, for the lanes below kApart; the other lanes are undefined.
template <int kApart>
GRAPHRUN_FN Floats upper(Floats x) {
  Floats r = x;
  if constexpr (kApart >= GRAPHRUN_LANES) {
    unrolled<kApart / GRAPHRUN_LANES>([&](auto i) __attribute__((always_inline)) {
      r.part[i] = x.part[i + kApart / GRAPHRUN_LANES];
    });
  } else {
    r.part[0] = high<kApart>(x.part[0], x.part[0], Lanes{});
  }
  return r;
}

GRAPHRUN_FN float tree(Floats x) {
  x = x + upper<8>(x);
  x = x + upper<4>(x);
  x = x + upper<2>(x);
  x = x + upper<1>(x);
  return x.part[0][0];
}

GRAPHRUN_FN float larger(float x, float y) {
  const float most = y > x ? y : x;
  return y != y ? y : most;
}

// The first n lanes; the others are zero.
GRAPHRUN_FN Floats only_first(Floats x, i64 n) {
  float lanes[kLanes];
  store(lanes, x);
  return load_first(lanes, n);
}

// ---- sums ---------------------------------------------------------------------------------------------------------

// Sum of a line's n elements: term(j, width) returns 16 from element j on, zero beyond the first `width`.
template <class Term>
GRAPHRUN_FN float sum_line(i64 n, Term&& term) {
  float total = 0;
  for (i64 begin = 0; begin < n; begin += kSumChunk) {
    const i64 end = begin + kSumChunk < n ? begin + kSumChunk : n;
    Floats sum = 0.0f;
    i64 j = begin;
    for (; j + kLanes <= end; j += kLanes) sum = sum + term(j, kLanes);
    if (j < end) sum = sum + term(j, end - j);
    total += tree(sum);
  }
  return total;
}
// Loads 16 numbers, or the first `width` and zeros.
GRAPHRUN_FN Floats load_some(const float* p, i64 width) {
  return width == kLanes ? load(p) : load_first(p, width);
}

void sum_rows(float* out, const float* x, i64 rows, i64 n) {
  for (i64 r = 0; r < rows; ++r, x += n) {
    out[r] = sum_line(
        n, [&](i64 j, i64 width) __attribute__((always_inline)) { return load_some(x + j, width); });
  }
}

// Sums over n rows of term(row, column, width), which returns 16 columns (the first `width` count). Each group of 16
// columns has its own accumulators, vectors of these columns. kAtOnce: as for sum_of_many().
template <int kAtOnce, class Term>
GRAPHRUN_FN void sum_strips(float* out, i64 n, i64 columns, Term&& term) {
  for (i64 c = 0; c < columns; c += kLanes) {
    const i64 width = columns - c < kLanes ? columns - c : kLanes;
    if (width == kLanes) {
      store(out + c, sum_of_many<kAtOnce>(
                         n, [&](i64 j) __attribute__((always_inline)) { return term(j, c, kLanes); }));
    } else {
      const Floats sum = sum_of_many<1>(
          n, [&](i64 j) __attribute__((always_inline)) { return term(j, c, width); });
      store_first(out + c, sum, width);
    }
  }
}

// The same for contiguous rows of fewer than 16 columns: 16 rows are `columns` whole vectors, which serve as
// accumulators. term(element, column, n) returns 16 elements from `element` on, of which n count; `column` is its
// offset within the group of 16 rows.
template <class Term>
GRAPHRUN_FN void sum_packed(float* out, i64 n, i64 columns, Term&& term) {
  for (i64 c = 0; c < columns; ++c) out[c] = 0;
  for (i64 begin = 0; begin < n; begin += kSumChunk) {
    const i64 end = begin + kSumChunk < n ? begin + kSumChunk : n;
    Floats sum[kLanes];
    for (Floats& s : sum) s = 0.0f;
    i64 j = begin;
    for (; j + kLanes <= end; j += kLanes)
      for (i64 v = 0; v < columns; ++v) sum[v] = sum[v] + term(j * columns + v * kLanes, v * kLanes, kLanes);
    const i64 rest = (end - j) * columns;
    for (i64 v = 0; v * kLanes < rest; ++v) {
      const i64 width = rest - v * kLanes < kLanes ? rest - v * kLanes : kLanes;
      sum[v] = sum[v] + only_first(term(j * columns + v * kLanes, v * kLanes, width), width);
    }
    float lanes[kLanes * kLanes];
    for (i64 v = 0; v < columns; ++v) store(lanes + v * kLanes, sum[v]);
    for (i64 apart = 8 * columns; apart >= columns; apart /= 2)
      for (i64 i = 0; i < apart; ++i) lanes[i] += lanes[i + apart];
    for (i64 c = 0; c < columns; ++c) out[c] += lanes[c];
  }
}

void sum_columns(float* out, const float* x, i64 n, i64 columns, i64 stride) {
  if (columns < kLanes && stride == columns) {
    sum_packed(
        out, n, columns, [&](i64 i, i64, i64 width) __attribute__((always_inline)) { return load_some(x + i, width); });
  } else {
    sum_strips<kLanes>(
        out, n, columns, [&](i64 j, i64 c, i64 width) __attribute__((always_inline)) {
          return load_some(x + j * stride + c, width);
        });
  }
}

// ---- largest elements ---------------------------------------------------------------------------------------------

float largest(const float* x, i64 n) {
  constexpr int kParallel = 4;
  const float lowest = -__builtin_inff();
  if (n < kLanes) {
    float top = lowest;
    for (i64 j = 0; j < n; ++j) top = larger(top, x[j]);
    return top;
  }
  Floats top[kParallel];
  unrolled<kParallel>([&](auto i) __attribute__((always_inline)) { top[i] = lowest; });
  i64 j = 0;
  for (; j + kParallel * kLanes <= n; j += kParallel * kLanes)
    unrolled<kParallel>([&](auto i)
                            __attribute__((always_inline)) { top[i] = larger(top[i], load(x + j + i * kLanes)); });
  for (; j + kLanes <= n; j += kLanes) top[0] = larger(top[0], load(x + j));
  top[1] = larger(top[1], load(x + n - kLanes));  // overlaps earlier elements, which does not affect a maximum
  Floats most = larger(larger(top[0], top[1]), larger(top[2], top[3]));
  most = larger(most, upper<8>(most));
  most = larger(most, upper<4>(most));
  most = larger(most, upper<2>(most));
  most = larger(most, upper<1>(most));
  return most.part[0][0];
}

void largest_columns(float* out, const float* x, i64 n, i64 columns, i64 stride) {
  const Floats lowest = -__builtin_inff();
  if (columns < kLanes && stride == columns) {
    Floats top[kLanes];
    for (Floats& t : top) t = lowest;
    i64 j = 0;
    for (; j + kLanes <= n; j += kLanes)
      for (i64 v = 0; v < columns; ++v) top[v] = larger(top[v], load(x + j * columns + v * kLanes));
    float lanes[kLanes * kLanes];
    for (i64 v = 0; v < columns; ++v) store(lanes + v * kLanes, top[v]);
    for (i64 i = 0; i < (n - j) * columns; ++i) lanes[i] = larger(lanes[i], x[j * columns + i]);
    for (i64 c = 0; c < columns; ++c) {
      out[c] = lanes[c];
      for (i64 r = 1; r < kLanes; ++r) out[c] = larger(out[c], lanes[r * columns + c]);
    }
    return;
  }
  for (i64 c = 0; c < columns; c += kLanes) {
    const i64 width = columns - c < kLanes ? columns - c : kLanes;
    Floats top = lowest;
    const float* p = x + c;
    if (width == kLanes)
      for (i64 j = 0; j < n; ++j, p += stride) top = larger(top, load(p));
    else
      for (i64 j = 0; j < n; ++j, p += stride) top = larger(top, load_first(p, width));
    store_first(out + c, top, width);
  }
}

// ---- exponentials -------------------------------------------------------------------------------------------------

template <bool kKeep>
GRAPHRUN_FN float sum_of_exponentials(float* out, const float* x, i64 n, float top) {
  const Floats tops = top;
  return sum_line(
      n, [&](i64 j, i64 width) __attribute__((always_inline)) {
        if (width == kLanes) {
          const Floats e = exponential(load(x + j) - tops);
          if (kKeep) store(out + j, e);
          return e;
        }
        const Floats e = only_first(exponential(load_first(x + j, width) - tops), width);
        if (kKeep) store_first(out + j, e, width);
        return e;
      });
}
float sum_exp(float* out, const float* x, i64 n, float top) {
  return out != nullptr ? sum_of_exponentials<true>(out, x, n, top) : sum_of_exponentials<false>(out, x, n, top);
}

void sum_exp_columns(float* sum, float* out, const float* x, const float* top, i64 n, i64 columns, i64 stride) {
  if (out == nullptr && columns < kLanes && stride == columns) {
    float tops[kLanes * kLanes];
    for (i64 i = 0; i < kLanes * columns; ++i) tops[i] = top[i % columns];
    sum_packed(
        sum, n, columns, [&](i64 i, i64 column, i64 width) __attribute__((always_inline)) {
          return exponential(load_some(x + i, width) - load(tops + column));
        });
  } else {
    // `sum` may alias `top`: a strip is read before it is written.
    sum_strips<1>(
        sum, n, columns, [&](i64 j, i64 c, i64 width) __attribute__((always_inline)) {
          const Floats e = exponential(load_first(x + j * stride + c, width) - load_first(top + c, width));
          if (out != nullptr) store_first(out + j * stride + c, e, width);
          return e;
        });
  }
}

// Loss of a line with a target distribution; elements with target 0 add nothing.
float loss_of_targets(const float* targets, const float* x, i64 n, float top, float log_sum) {
  const Floats tops = top, logs = log_sum, zero = 0.0f;
  return sum_line(
      n, [&](i64 j, i64 width) __attribute__((always_inline)) {
        const Floats t = load_some(targets + j, width);
        return select(t != zero, t * (logs - (load_some(x + j, width) - tops)), zero);
      });
}

// ---- transposition ------------------------------------------------------------------------------------------------

// Processes cache-sized blocks in register-sized squares.
void transpose_matrix(float* to, i64 to_stride, const float* from, i64 from_stride, i64 rows, i64 columns) {
  constexpr i64 kSide = GRAPHRUN_LANES, kBlock = 32;
  for (i64 r0 = 0; r0 < rows; r0 += kBlock) {
    const i64 r1 = r0 + kBlock < rows ? r0 + kBlock : rows;
    for (i64 c0 = 0; c0 < columns; c0 += kBlock) {
      const i64 c1 = c0 + kBlock < columns ? c0 + kBlock : columns;
      for (i64 r = r0; r < r1; r += kSide) {
        for (i64 c = c0; c < c1; c += kSide) {
          const float* const p = from + r * from_stride + c;
          float* const q = to + c * to_stride + r;
          FloatPart v[kSide];
          if (r + kSide <= r1 && c + kSide <= c1) {
            unrolled<kSide>([&](auto l)
                                __attribute__((always_inline)) { v[l] = load_part(p + l * from_stride, kSide); });
            transpose(v);
            unrolled<kSide>([&](auto l) __attribute__((always_inline)) { store_part(q + l * to_stride, v[l], kSide); });
          } else {
            unrolled<kSide>([&](auto l) __attribute__((always_inline)) {
              v[l] = r + l < r1 ? load_part(p + l * from_stride, c1 - c) : FloatPart{};
            });
            transpose(v);
            unrolled<kSide>([&](auto l) __attribute__((always_inline)) {
              if (c + l < c1) store_part(q + l * to_stride, v[l], r1 - r);
            });
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace graphrun::cpu::GRAPHRUN_ISA
