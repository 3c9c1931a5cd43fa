// lanes.h: operations across lanes: unrolling, halves, transposition, partial loads and stores.
// Contract: as simd.h; the names of one instruction set. Each file that includes it has its own copy.
// Leaves to others: loops (*loops.cpp and their headers).
#pragma once

#include <utility>  // integer_sequence, a type

#include "kernels/cpu/simd/simd.h"

namespace graphrun::cpu::GRAPHRUN_ISA {
namespace {

using i64 = std::int64_t;

template <class F, int... kIndex>
GRAPHRUN_FN void for_each_index(F& f, std::integer_sequence<int, kIndex...>) {
  (f(Part<kIndex>{}), ...);
}
template <int kCount, class F>
GRAPHRUN_FN void unrolled(F&& f) {
  for_each_index(f, std::make_integer_sequence<int, kCount>{});
}

// Low and high half of every group of 2 * kApart lanes: those of a, then those of b.
template <int kApart, int... kLane>
GRAPHRUN_FN FloatPart low(FloatPart a, FloatPart b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b, (kLane % (2 * kApart) < kApart ? kLane : GRAPHRUN_LANES + kLane - kApart)...);
}
template <int kApart, int... kLane>
GRAPHRUN_FN FloatPart high(FloatPart a, FloatPart b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b, (kLane % (2 * kApart) < kApart ? kLane + kApart : GRAPHRUN_LANES + kLane)...);
}
using Lanes = std::make_integer_sequence<int, GRAPHRUN_LANES>;

// Transposes a square matrix with as many rows as a register has lanes.
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

// Loads or stores the first n numbers, at most a whole register. The rest is zero, or is left unchanged in memory.
GRAPHRUN_FN FloatPart load_part(const Real* p, i64 n) {
  FloatPart r = {};
  if (n >= GRAPHRUN_LANES) {
    __builtin_memcpy(&r, p, sizeof r);
    return r;
  }
#if GRAPHRUN_REGISTER == 64
  return GRAPHRUN_TYPED(_mm512_maskz_loadu_)(first(n), p);
#elif GRAPHRUN_REGISTER == 32
  return GRAPHRUN_TYPED(_mm256_maskload_)(p, first(n));
#else
  for (i64 i = 0; i < n; ++i) r[i] = p[i];
  return r;
#endif
}
GRAPHRUN_FN void store_part(Real* p, FloatPart x, i64 n) {
  if (n >= GRAPHRUN_LANES) {
    __builtin_memcpy(p, &x, sizeof x);
    return;
  }
#if GRAPHRUN_REGISTER == 64
  GRAPHRUN_TYPED(_mm512_mask_storeu_)(p, first(n), x);
#elif GRAPHRUN_REGISTER == 32
  GRAPHRUN_TYPED(_mm256_maskstore_)(p, first(n), x);
#else
  for (i64 i = 0; i < n; ++i) p[i] = x[i];
#endif
}

}  // namespace
}  // namespace graphrun::cpu::GRAPHRUN_ISA
