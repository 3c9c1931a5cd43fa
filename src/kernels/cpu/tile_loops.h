// tile_loops.h: the loops of tile_isa.h, written once over simd.h and compiled once for each instruction set.
// Contract: see tile_isa.h. Everything is static or forced inline, and nothing of std is used but integer types.
// Leaves to others: which file includes it with which flags (tile_plain.cpp, tile_avx2.cpp, tile_avx512.cpp).
#pragma once

#include <utility>  // integer_sequence, a type

#include "kernels/cpu/simd.h"
#include "kernels/cpu/tile_isa.h"

namespace graphrun::cpu::GRAPHRUN_ISA {
namespace {

using i64 = std::int64_t;

template <int kCount, int kIndex = 0, class F>
GRAPHRUN_FN void unrolled(F&& f) {
  f(Part<kIndex>{});
  if constexpr (kIndex + 1 < kCount) unrolled<kCount, kIndex + 1>(f);
}

// ---- moves --------------------------------------------------------------------------------------------------------

// The low and the high half of every group of 2 * kApart lanes: those of a, then those of b.
template <int kApart, int... kLane>
GRAPHRUN_FN FloatPart low(FloatPart a, FloatPart b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b, (kLane % (2 * kApart) < kApart ? kLane : GRAPHRUN_LANES + kLane - kApart)...);
}
template <int kApart, int... kLane>
GRAPHRUN_FN FloatPart high(FloatPart a, FloatPart b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b, (kLane % (2 * kApart) < kApart ? kLane + kApart : GRAPHRUN_LANES + kLane)...);
}
using Lanes = std::make_integer_sequence<int, GRAPHRUN_LANES>;

// As many rows as a register has lanes, to as many columns.
template <int kApart = GRAPHRUN_LANES / 2>
GRAPHRUN_FN void transpose(FloatPart* v) {
  unrolled<GRAPHRUN_LANES / 2>([&](auto i) __attribute__((always_inline)) {
    constexpr int kAt = i / kApart * 2 * kApart + i % kApart;
    const FloatPart a = v[kAt];
    const FloatPart b = v[kAt + kApart];
    v[kAt] = low<kApart>(a, b, Lanes{});
    v[kAt + kApart] = high<kApart>(a, b, Lanes{});
  });
  if constexpr (kApart > 1) transpose<kApart / 2>(v);
}

// The first n numbers, or all that a register holds; the rest is zero, or is left alone.
GRAPHRUN_FN FloatPart load_part(const float* p, i64 n) {
  FloatPart r = {};
  if (n >= GRAPHRUN_LANES) {
    __builtin_memcpy(&r, p, sizeof r);
    return r;
  }
#if GRAPHRUN_LANES == 16
  return _mm512_maskz_loadu_ps(first(n), p);
#elif GRAPHRUN_LANES == 8
  return _mm256_maskload_ps(p, first(n));
#else
  for (i64 i = 0; i < n; ++i) r[i] = p[i];
  return r;
#endif
}
GRAPHRUN_FN void store_part(float* p, FloatPart x, i64 n) {
  if (n >= GRAPHRUN_LANES) {
    __builtin_memcpy(p, &x, sizeof x);
    return;
  }
#if GRAPHRUN_LANES == 16
  _mm512_mask_storeu_ps(p, first(n), x);
#elif GRAPHRUN_LANES == 8
  _mm256_maskstore_ps(p, first(n), x);
#else
  for (i64 i = 0; i < n; ++i) p[i] = x[i];
#endif
}

void load_tile(float* tile, const float* from, i64 width, i64 rows, i64 stride) {
  constexpr i64 kSide = GRAPHRUN_LANES;
  for (i64 r = 0; r < stride; r += kSide) {
    if (width == 1) {
      store_part(tile + r, load_part(from + r, rows - r > 0 ? rows - r : 0), kSide);
      continue;
    }
    for (i64 f = 0; f < width; f += kSide) {
      FloatPart v[kSide];
      unrolled<GRAPHRUN_LANES>([&](auto l) __attribute__((always_inline)) {
        v[l] = r + l < rows ? load_part(from + (r + l) * width + f, width - f) : FloatPart{};
      });
      transpose(v);
      for (i64 j = 0; j < kSide && f + j < width; ++j) store_part(tile + (f + j) * stride + r, v[j], kSide);
    }
  }
}

void store_tile(float* to, const float* tile, i64 width, i64 rows, i64 stride) {
  constexpr i64 kSide = GRAPHRUN_LANES;
  for (i64 r = 0; r < rows; r += kSide) {
    if (width == 1) {
      store_part(to + r, load_part(tile + r, kSide), rows - r);
      continue;
    }
    for (i64 f = 0; f < width; f += kSide) {
      FloatPart v[kSide];
      unrolled<GRAPHRUN_LANES>([&](auto j) __attribute__((always_inline)) {
        v[j] = f + j < width ? load_part(tile + (f + j) * stride + r, kSide) : FloatPart{};
      });
      transpose(v);
      for (i64 l = 0; l < kSide && r + l < rows; ++l) store_part(to + (r + l) * width + f, v[l], width - f);
    }
  }
}

// ---- products -----------------------------------------------------------------------------------------------------

// Blocks of outputs x vectors of rows that fill the registers; they decide the speed, never the bits.
inline constexpr int kOutputs = GRAPHRUN_LANES == 16 ? 6 : GRAPHRUN_LANES == 8 ? 3 : 2;
inline constexpr int kVectors = GRAPHRUN_LANES == 16 ? 4 : GRAPHRUN_LANES == 8 ? 2 : 1;
inline constexpr i64 kDepth = 256;  // of k

template <int kN, int kV>
GRAPHRUN_FN void dense_block(const DenseTile& c, const float* in, const float* w, float* out, const float* bias, i64 k,
                             bool add) {
  Floats sum[kN * kV];
  unrolled<kN * kV>([&](auto i) __attribute__((always_inline)) { sum[i] = 0.0f; });
  for (i64 j = 0; j < k; ++j, in += c.stride, w += c.w_k) {
    Floats row[kV];
    unrolled<kV>([&](auto v) __attribute__((always_inline)) { row[v] = load(in + v * kLanes); });
    unrolled<kN>([&](auto n) __attribute__((always_inline)) {
      const Floats weight = w[n * c.w_n];
      unrolled<kV>([&](auto v)
                       __attribute__((always_inline)) { sum[n * kV + v] = fma(weight, row[v], sum[n * kV + v]); });
    });
  }
  unrolled<kN>([&](auto n) __attribute__((always_inline)) {
    unrolled<kV>([&](auto v) __attribute__((always_inline)) {
      float* const to = out + n * c.stride + v * kLanes;
      Floats x = sum[n * kV + v];
      if (add) x = load(to) + x;
      if (bias != nullptr) x = x + Floats(bias[n]);
      store(to, x);
    });
  });
}

template <int kN>
GRAPHRUN_FN void dense_strip(const DenseTile& c, const float* w, i64 n) {
  for (i64 k = 0; k < c.k; k += kDepth) {
    const i64 depth = c.k - k < kDepth ? c.k - k : kDepth;
    const float* const in = c.in + k * c.stride;
    const float* const weights = w + k * c.w_k;
    float* const out = c.out + n * c.stride;
    const float* const bias = c.bias != nullptr && k + depth == c.k ? c.bias + n : nullptr;
    i64 r = 0;
    for (; r + kVectors * kLanes <= c.stride; r += kVectors * kLanes)
      dense_block<kN, kVectors>(c, in + r, weights, out + r, bias, depth, k > 0);
    for (; r < c.stride; r += kLanes) dense_block<kN, 1>(c, in + r, weights, out + r, bias, depth, k > 0);
  }
}

void dense(const DenseTile& c) {
  i64 n = 0;
  for (; n + kOutputs <= c.n; n += kOutputs) dense_strip<kOutputs>(c, c.w + n * c.w_n, n);
  for (; kOutputs > 4 && n + 4 <= c.n; n += 4) dense_strip<4>(c, c.w + n * c.w_n, n);
  for (; kOutputs > 2 && n + 2 <= c.n; n += 2) dense_strip<2>(c, c.w + n * c.w_n, n);
  for (; n < c.n; ++n) dense_strip<1>(c, c.w + n * c.w_n, n);
}

// ---- sums over rows -----------------------------------------------------------------------------------------------

template <int kApart>
GRAPHRUN_FN FloatPart add_halves(FloatPart a, FloatPart b) {
  return low<kApart>(a, b, Lanes{}) + high<kApart>(a, b, Lanes{});
}

// GRAPHRUN_LANES vectors to one, lane i of which is the sum of vector i, added lanes 8, 4, 2, 1 apart.
template <int kApart>
GRAPHRUN_FN FloatPart add_lanes(FloatPart* v) {
  unrolled<kApart>([&](auto i) __attribute__((always_inline)) { v[i] = add_halves<kApart>(v[i], v[i + kApart]); });
  if constexpr (kApart > 1) {
    return add_lanes<kApart / 2>(v);
  } else {
    return v[0];
  }
}

GRAPHRUN_FN FloatPart add_parts(Floats x) {  // lanes 8 apart, then 4, until one register holds them
#if GRAPHRUN_LANES == 16
  return x.part[0];
#elif GRAPHRUN_LANES == 8
  return x.part[0] + x.part[1];
#else
  return (x.part[0] + x.part[2]) + (x.part[1] + x.part[3]);
#endif
}

// Vectors whose lanes are to be added, and where their sums go; 16 are added at a time.
struct Sums {
  Floats vectors[kLanes];
  float* to[kLanes];
  int count = 0;

  GRAPHRUN_FN void add(Floats x, float* target) {
    vectors[count] = x;
    to[count] = target;
    if (++count == kLanes) finish();
  }
  __attribute__((noinline)) void finish() {
    for (int i = count; i < kLanes; ++i) vectors[i] = 0.0f;
    float totals[kLanes];
    for (int p = 0; p < kLanes; p += GRAPHRUN_LANES) {
      FloatPart part[GRAPHRUN_LANES];
      unrolled<GRAPHRUN_LANES>([&](auto i) __attribute__((always_inline)) { part[i] = add_parts(vectors[p + i]); });
      const FloatPart sum = add_lanes<GRAPHRUN_LANES / 2>(part);
      __builtin_memcpy(totals + p, &sum, sizeof sum);
    }
    for (int i = 0; i < count; ++i) *to[i] += totals[i];
    count = 0;
  }
};

inline constexpr int kGradientM = GRAPHRUN_LANES == 16 ? 4 : GRAPHRUN_LANES == 8 ? 2 : 1;
inline constexpr int kGradientN = GRAPHRUN_LANES == 16 ? 4 : 2;

template <int kM, int kN>
GRAPHRUN_FN void gradient_block(const DenseGradientTile& c, i64 m, i64 n, Sums& sums) {
  Floats sum[kM * kN];
  unrolled<kM * kN>([&](auto i) __attribute__((always_inline)) { sum[i] = 0.0f; });
  const float* a = c.a + m * c.stride;
  const float* b = c.b + n * c.stride;
  i64 r = 0;
  for (; r + kLanes <= c.rows; r += kLanes, a += kLanes, b += kLanes) {
    Floats row[kN];
    unrolled<kN>([&](auto j) __attribute__((always_inline)) { row[j] = load(b + j * c.stride); });
    unrolled<kM>([&](auto i) __attribute__((always_inline)) {
      const Floats x = load(a + i * c.stride);
      unrolled<kN>([&](auto j) __attribute__((always_inline)) { sum[i * kN + j] = fma(x, row[j], sum[i * kN + j]); });
    });
  }
  if (r < c.rows) {
    const i64 left = c.rows - r;
    unrolled<kM>([&](auto i) __attribute__((always_inline)) {
      const Floats x = load_first(a + i * c.stride, left);
      unrolled<kN>([&](auto j) __attribute__((always_inline)) {
        sum[i * kN + j] = fma(x, load_first(b + j * c.stride, left), sum[i * kN + j]);
      });
    });
  }
  unrolled<kM>([&](auto i) __attribute__((always_inline)) {
    unrolled<kN>([&](auto j)
                     __attribute__((always_inline)) { sums.add(sum[i * kN + j], c.out + (m + i) * c.n + n + j); });
  });
}

template <int kM>
GRAPHRUN_FN void gradient_strip(const DenseGradientTile& c, i64 m, Sums& sums) {
  i64 n = 0;
  for (; n + kGradientN <= c.n; n += kGradientN) gradient_block<kM, kGradientN>(c, m, n, sums);
  if constexpr (kGradientN > 2) {
    for (; n + 2 <= c.n; n += 2) gradient_block<kM, 2>(c, m, n, sums);
  }
  for (; n < c.n; ++n) gradient_block<kM, 1>(c, m, n, sums);
}

void dense_gradient(const DenseGradientTile& c) {
  Sums sums;
  i64 m = 0;
  for (; m + kGradientM <= c.m; m += kGradientM) gradient_strip<kGradientM>(c, m, sums);
  if constexpr (kGradientM > 2) {
    for (; m + 2 <= c.m; m += 2) gradient_strip<2>(c, m, sums);
  }
  for (; m < c.m; ++m) gradient_strip<1>(c, m, sums);
  sums.finish();
}

void sum_rows_of_tile(float* out, const float* x, i64 features, i64 rows, i64 stride) {
  Sums sums;
  for (i64 f = 0; f < features; ++f, x += stride) {
    Floats sum = 0.0f;
    i64 r = 0;
    for (; r + kLanes <= rows; r += kLanes) sum = sum + load(x + r);
    if (r < rows) sum = sum + load_first(x + r, rows - r);
    sums.add(sum, out + f);
  }
  sums.finish();
}

// ---- lines along features -----------------------------------------------------------------------------------------

inline constexpr i64 kSumOf = 1024;  // isa.h: kSumChunk

// Calls f(first feature of the line in these 16 rows, index of the line, row) for each line and vector of rows.
template <class F>
GRAPHRUN_FN void for_lines(const float* x, const FeatureLines& l, F&& f) {
  for (i64 i = 0; i < l.line_count; ++i)
    for (i64 r = 0; r < l.stride; r += kLanes) f(x + l.lines[i] * l.stride + r, i, r);
}
GRAPHRUN_FN Floats term(const float* line, const FeatureLines& l, i64 j) {
  return load(line + l.terms[j] * l.stride);
}

void sum_features(float* out, const float* x, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64 i, i64 r) {
    Floats total = 0.0f;
    for (i64 begin = 0; begin < l.term_count; begin += kSumOf) {
      const i64 end = begin + kSumOf < l.term_count ? begin + kSumOf : l.term_count;
      Floats sum[kLanes];
      for (Floats& s : sum) s = 0.0f;
      for (i64 j = begin; j < end; ++j) sum[(j - begin) % kLanes] = sum[(j - begin) % kLanes] + term(line, l, j);
      for (int apart = kLanes / 2; apart > 0; apart /= 2)
        for (int s = 0; s < apart; ++s) sum[s] = sum[s] + sum[s + apart];
      total = total + sum[0];
    }
    store(out + i * l.stride + r, total);
  });
}

GRAPHRUN_FN Floats infinity() {
  return Floats(__builtin_inff());
}

// NaN wins.
GRAPHRUN_FN Floats larger(Floats x, Floats y) {
  return select((x >= y) | (x != x), x, y);
}

GRAPHRUN_FN Floats largest(const float* line, const FeatureLines& l) {
  Floats top = -infinity();
  for (i64 j = 0; j < l.term_count; ++j) top = larger(top, term(line, l, j));
  return top;
}
GRAPHRUN_FN Floats exponential(Floats x) {
  return scalar::Exp::apply(x, Floats(0.0f), Floats(0.0f));
}
GRAPHRUN_FN Floats sum_of_exponentials(const float* line, const FeatureLines& l, Floats top) {
  Floats total = 0.0f;
  for (i64 j = 0; j < l.term_count; ++j) total = total + exponential(term(line, l, j) - top);
  return total;
}

// log(sum(exp(x))) as two parts: top + rest; the parts keep more digits than their sum.
struct LogSum {
  Floats top, rest;
};
GRAPHRUN_FN LogSum log_sum(const float* line, const FeatureLines& l) {
  const Floats top = largest(line, l);
  return {top, scalar::Log::apply(sum_of_exponentials(line, l, top), Floats(0.0f), Floats(0.0f))};
}

void log_sum_exp(float* out, const float* x, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64 i, i64 r) {
    const LogSum sum = log_sum(line, l);
    const Mask finite = (sum.top < infinity()) & (sum.top > -infinity());
    store(out + i * l.stride + r, select(finite, sum.top + sum.rest, sum.top));
  });
}

void softmax(float* out, const float* x, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64, i64) {
    float* const to = out + (line - x);
    const Floats top = largest(line, l);
    Floats total = 0.0f;
    for (i64 j = 0; j < l.term_count; ++j) {
      const Floats e = exponential(term(line, l, j) - top);
      store(to + l.terms[j] * l.stride, e);
      total = total + e;
    }
    for (i64 j = 0; j < l.term_count; ++j) {
      float* const p = to + l.terms[j] * l.stride;
      store(p, load(p) / total);
    }
  });
}

void log_softmax(float* out, const float* x, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64, i64) {
    float* const to = out + (line - x);
    const LogSum sum = log_sum(line, l);
    for (i64 j = 0; j < l.term_count; ++j) store(to + l.terms[j] * l.stride, (term(line, l, j) - sum.top) - sum.rest);
  });
}

void cross_entropy(float* out, const float* x, const float* targets, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64 i, i64 r) {
    const LogSum sum = log_sum(line, l);
    const float* const t = targets + (line - x);
    Floats loss = 0.0f;
    for (i64 j = 0; j < l.term_count; ++j) {
      const Floats target = term(t, l, j);
      const Floats more = loss + target * (sum.rest - (term(line, l, j) - sum.top));
      loss = select(target != Floats(0.0f), more, loss);
    }
    store(out + i * l.stride + r, loss);
  });
}

GRAPHRUN_FN Mask equal(Ints x, int y) {
  return !nonzero(x ^ Ints(y));
}
GRAPHRUN_FN Ints load_ints(const std::int32_t* p) {
  Ints r;
  for_each_part([&](auto i) __attribute__((always_inline)) {
    __builtin_memcpy(&r.part[i], p + i * GRAPHRUN_LANES, sizeof(IntPart));
  });
  return r;
}

void cross_entropy_classes(float* out, const float* x, const std::int32_t* classes, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64 i, i64 r) {
    const LogSum sum = log_sum(line, l);
    const Ints target = load_ints(classes + i * l.stride + r);
    Floats loss = __builtin_nanf("");
    for (i64 j = 0; j < l.term_count; ++j)
      loss = select(equal(target, (int)j), sum.rest - (term(line, l, j) - sum.top), loss);
    store(out + i * l.stride + r, loss);
  });
}

// Index of the first largest (smallest), or of the first NaN.
template <bool kLargest>
void position(std::int32_t* out, const float* x, const FeatureLines& l) {
  for_lines(x, l, [&](const float* line, i64 i, i64 r) {
    Floats best = term(line, l, 0);
    Floats index = from_bits(Ints(0));
    for (i64 j = 1; j < l.term_count; ++j) {
      const Floats v = term(line, l, j);
      const Mask better = (best == best) & ((v != v) | (kLargest ? v > best : v < best));
      best = select(better, v, best);
      index = select(better, from_bits(Ints((int)j)), index);
    }
    float bits_of[kLanes];
    store(bits_of, index);
    __builtin_memcpy(out + i * l.stride + r, bits_of, sizeof bits_of);
  });
}

void one_hot(float* out, const std::int32_t* x, i64 features, i64 classes, i64 stride) {
  for (i64 f = 0; f < features; ++f, x += stride)
    for (i64 c = 0; c < classes; ++c, out += stride)
      for (i64 r = 0; r < stride; r += kLanes)
        store(out + r, select(equal(load_ints(x + r), (int)c), Floats(1.0f), Floats(0.0f)));
}

}  // namespace

extern const TileTable tile_table;
const TileTable tile_table = {
    load_tile, store_tile,  dense,         dense_gradient,        sum_rows_of_tile, sum_features,    log_sum_exp,
    softmax,   log_softmax, cross_entropy, cross_entropy_classes, position<true>,   position<false>, one_hot};

}  // namespace graphrun::cpu::GRAPHRUN_ISA
