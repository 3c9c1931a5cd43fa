// simd.h: 16 lanes of float, a value type of scalar_functions.h with the names of scalar_type.h, for this file's
// instruction set. Contract: 1 x 16, 2 x 8 or 4 x 4 lanes, with the same bits: every operation is correctly rounded in
// each lane, and fma rounds once even without hardware support. Included only by files that are compiled once per
// instruction set (*loops.cpp and their headers), in the namespace GRAPHRUN_ISA. Leaves to others: loops.
// GRAPHRUN_LANES (16, 8, 4) is the width of one register.
#pragma once

#include <cstdint>
#if GRAPHRUN_LANES > 4
#include <immintrin.h>
#endif

#include "kernels/cpu/simd/isa.h"
#include "kernels/scalar_type.h"

// Register width that block sizes are tuned for. Sanitizer builds use the smallest (GRAPHRUN_ALL_BLOCKS in
// src/CMakeLists.txt): hundreds of unrolled blocks take minutes to compile, and block sizes never affect results.
#if defined(GRAPHRUN_SMALL_BLOCKS)
#define GRAPHRUN_BLOCKS 4
#else
#define GRAPHRUN_BLOCKS GRAPHRUN_LANES
#endif

namespace graphrun::cpu::GRAPHRUN_ISA {

inline constexpr int kParts = kLanes / GRAPHRUN_LANES;

typedef float FloatPart __attribute__((vector_size(4 * GRAPHRUN_LANES)));
typedef int IntPart __attribute__((vector_size(4 * GRAPHRUN_LANES)));
typedef std::uint8_t BytePart __attribute__((vector_size(GRAPHRUN_LANES)));

template <int kIndex>
struct Part {
  GRAPHRUN_FN constexpr operator int() const { return kIndex; }
};
template <int kIndex = 0, class F>
GRAPHRUN_FN void for_each_part(F&& f) {
  f(Part<kIndex>{});
  if constexpr (kIndex + 1 < kParts) for_each_part<kIndex + 1>(f);
}

template <class PartType, class T>
struct Vector {
  PartType part[kParts];
  Vector() = default;
  GRAPHRUN_FN Vector(T x) {
    for_each_part([&](auto i) __attribute__((always_inline)) { part[i] = x - PartType{}; });
  }
};
using Floats = Vector<FloatPart, float>;
using Ints = Vector<IntPart, int>;
#if GRAPHRUN_LANES == 16
typedef __mmask16 MaskPart;
#else
typedef IntPart MaskPart;  // 0 or -1
#endif
struct Mask {
  MaskPart part[kParts];
};

// Unrolled by template: compilers keep a struct in registers only if no loop indexes it before that decision.
#define GRAPHRUN_LANEWISE(Result, signature, expression)                                   \
  GRAPHRUN_FN Result signature {                                                           \
    Result r;                                                                              \
    for_each_part([&](auto i) __attribute__((always_inline)) { r.part[i] = expression; }); \
    return r;                                                                              \
  }

GRAPHRUN_LANEWISE(Floats, operator+(Floats x, Floats y), x.part[i] + y.part[i])
GRAPHRUN_LANEWISE(Floats, operator-(Floats x, Floats y), x.part[i] - y.part[i])
GRAPHRUN_LANEWISE(Floats, operator*(Floats x, Floats y), x.part[i] * y.part[i])
GRAPHRUN_LANEWISE(Floats, operator/(Floats x, Floats y), x.part[i] / y.part[i])
GRAPHRUN_LANEWISE(Floats, operator-(Floats x), -x.part[i])
GRAPHRUN_LANEWISE(Ints, operator+(Ints x, Ints y), x.part[i] + y.part[i])
GRAPHRUN_LANEWISE(Ints, operator-(Ints x, Ints y), x.part[i] - y.part[i])
GRAPHRUN_LANEWISE(Ints, operator&(Ints x, Ints y), x.part[i] & y.part[i])
GRAPHRUN_LANEWISE(Ints, operator^(Ints x, Ints y), x.part[i] ^ y.part[i])
GRAPHRUN_LANEWISE(Ints, operator<<(Ints x, int n), x.part[i] << n)
GRAPHRUN_LANEWISE(Ints, operator>>(Ints x, int n), x.part[i] >> n)
GRAPHRUN_LANEWISE(Ints, bits(Floats x), (IntPart)x.part[i])
GRAPHRUN_LANEWISE(Floats, from_bits(Ints x), (FloatPart)x.part[i])
GRAPHRUN_LANEWISE(Floats, number(Ints x), __builtin_convertvector(x.part[i], FloatPart))

#if GRAPHRUN_LANES == 16
#define GRAPHRUN_COMPARE(op, code) \
  GRAPHRUN_LANEWISE(Mask, operator op(Floats x, Floats y), _mm512_cmp_ps_mask(x.part[i], y.part[i], code))
GRAPHRUN_LANEWISE(Mask, nonzero(Ints x), _mm512_test_epi32_mask((__m512i)x.part[i], (__m512i)x.part[i]))
GRAPHRUN_LANEWISE(Floats, select(Mask m, Floats x, Floats y), _mm512_mask_blend_ps(m.part[i], y.part[i], x.part[i]))
#else
#define GRAPHRUN_COMPARE(op, code) GRAPHRUN_LANEWISE(Mask, operator op(Floats x, Floats y), x.part[i] op y.part[i])
GRAPHRUN_LANEWISE(Mask, nonzero(Ints x), x.part[i] != 0)
GRAPHRUN_LANEWISE(Floats, select(Mask m, Floats x, Floats y), m.part[i] ? x.part[i] : y.part[i])
#endif
GRAPHRUN_COMPARE(<, _CMP_LT_OQ)
GRAPHRUN_COMPARE(<=, _CMP_LE_OQ)
GRAPHRUN_COMPARE(>, _CMP_GT_OQ)
GRAPHRUN_COMPARE(>=, _CMP_GE_OQ)
GRAPHRUN_COMPARE(==, _CMP_EQ_OQ)
GRAPHRUN_COMPARE(!=, _CMP_NEQ_UQ)
#undef GRAPHRUN_COMPARE
GRAPHRUN_LANEWISE(Mask, operator&(Mask x, Mask y), (MaskPart)(x.part[i] & y.part[i]))
GRAPHRUN_LANEWISE(Mask, operator|(Mask x, Mask y), (MaskPart)(x.part[i] | y.part[i]))
GRAPHRUN_LANEWISE(Mask, operator!(Mask x), (MaskPart)~x.part[i])

#if GRAPHRUN_LANES == 16
GRAPHRUN_LANEWISE(Floats, min(Floats x, Floats y), _mm512_maskz_min_ps((__mmask16)-1, x.part[i], y.part[i]))
GRAPHRUN_LANEWISE(Floats, max(Floats x, Floats y), _mm512_maskz_max_ps((__mmask16)-1, x.part[i], y.part[i]))
// One instruction instead of three: takes the bits of x where the mask is 1, else those of sign.
GRAPHRUN_LANEWISE(Floats, copysign(Floats x, Floats sign),
                  (FloatPart)_mm512_ternarylogic_epi32((__m512i)x.part[i], (__m512i)sign.part[i],
                                                       _mm512_set1_epi32(0x7fffffff), 0xe4))
// One instruction instead of two: classifies x and looks up a 4-bit code per class (QNaN, SNaN, 0, 1, -inf, inf,
// negative, positive): 8 for zero, 0 to keep the destination.
GRAPHRUN_LANEWISE(Floats, relu(Floats x), _mm512_fixupimm_ps(x.part[i], x.part[i], _mm512_set1_epi32(0x08080800), 0))
GRAPHRUN_LANEWISE(Floats, where_positive(Floats x, Floats y),
                  _mm512_fixupimm_ps(y.part[i], x.part[i], _mm512_set1_epi32(0x08080888), 0))
GRAPHRUN_LANEWISE(Floats, fma(Floats x, Floats y, Floats z), _mm512_fmadd_ps(x.part[i], y.part[i], z.part[i]))
GRAPHRUN_LANEWISE(Floats, scale(Floats x, Floats n), _mm512_maskz_scalef_ps((__mmask16)-1, x.part[i], n.part[i]))
GRAPHRUN_LANEWISE(Floats, sqrt(Floats x), _mm512_maskz_sqrt_ps((__mmask16)-1, x.part[i]))
GRAPHRUN_FN bool any(Mask m) {
  return m.part[0] != 0;
}
GRAPHRUN_FN __mmask16 first(std::int64_t n) {
  return (__mmask16)((1u << n) - 1);
}
GRAPHRUN_FN Floats load_first(const float* p, std::int64_t n) {
  Floats r;
  r.part[0] = _mm512_maskz_loadu_ps(first(n), p);
  return r;
}
GRAPHRUN_FN void store_first(float* p, Floats x, std::int64_t n) {
  _mm512_mask_storeu_ps(p, first(n), x.part[0]);
}
#elif GRAPHRUN_LANES == 8
GRAPHRUN_LANEWISE(Floats, min(Floats x, Floats y), _mm256_min_ps(x.part[i], y.part[i]))
GRAPHRUN_LANEWISE(Floats, max(Floats x, Floats y), _mm256_max_ps(x.part[i], y.part[i]))
GRAPHRUN_LANEWISE(Floats, fma(Floats x, Floats y, Floats z), _mm256_fmadd_ps(x.part[i], y.part[i], z.part[i]))
GRAPHRUN_LANEWISE(Floats, sqrt(Floats x), _mm256_sqrt_ps(x.part[i]))
GRAPHRUN_FN bool any(Mask m) {
  return _mm256_movemask_ps((__m256)(m.part[0] | m.part[1])) != 0;
}
GRAPHRUN_FN __m256i first(std::int64_t n) {
  return (__m256i)(IntPart{0, 1, 2, 3, 4, 5, 6, 7} < (int)n);
}
GRAPHRUN_FN Floats load_first(const float* p, std::int64_t n) {
  Floats r;
  r.part[0] = _mm256_maskload_ps(p, first(n));
  r.part[1] = n > 8 ? _mm256_maskload_ps(p + 8, first(n - 8)) : FloatPart{};
  return r;
}
GRAPHRUN_FN void store_first(float* p, Floats x, std::int64_t n) {
  _mm256_maskstore_ps(p, first(n), x.part[0]);
  if (n > 8) _mm256_maskstore_ps(p + 8, first(n - 8), x.part[1]);
}
#else
// Lane by lane, therefore not inlined: there are thousands of uses, and they are slow anyway.
#define GRAPHRUN_CALLED __attribute__((noinline)) inline
GRAPHRUN_LANEWISE(Floats, min(Floats x, Floats y), x.part[i] < y.part[i] ? x.part[i] : y.part[i])
GRAPHRUN_LANEWISE(Floats, max(Floats x, Floats y), x.part[i] > y.part[i] ? x.part[i] : y.part[i])
GRAPHRUN_CALLED Floats fma(Floats x, Floats y, Floats z) {
  Floats r(0.0f);
  for (int i = 0; i < kParts; ++i)
    for (int j = 0; j < GRAPHRUN_LANES; ++j) r.part[i][j] = __builtin_fmaf(x.part[i][j], y.part[i][j], z.part[i][j]);
  return r;
}
GRAPHRUN_CALLED Floats sqrt(Floats x) {
  Floats r(0.0f);
  for (int i = 0; i < kParts; ++i)
    for (int j = 0; j < GRAPHRUN_LANES; ++j) r.part[i][j] = __builtin_sqrtf(x.part[i][j]);
  return r;
}
GRAPHRUN_FN bool any(Mask m) {
  IntPart all = m.part[0] | m.part[1] | m.part[2] | m.part[3];
  return (all[0] | all[1] | all[2] | all[3]) != 0;
}
GRAPHRUN_CALLED Floats load_first(const float* p, std::int64_t n) {
  Floats r(0.0f);
  for (int i = 0; i < (int)n; ++i) r.part[i / GRAPHRUN_LANES][i % GRAPHRUN_LANES] = p[i];
  return r;
}
GRAPHRUN_CALLED void store_first(float* p, Floats x, std::int64_t n) {
  for (int i = 0; i < (int)n; ++i) p[i] = x.part[i / GRAPHRUN_LANES][i % GRAPHRUN_LANES];
}
#undef GRAPHRUN_CALLED
#endif

GRAPHRUN_FN Floats load(const float* p) {
  Floats r;
  for_each_part([&](auto i) __attribute__((always_inline)) {
    __builtin_memcpy(&r.part[i], p + i * GRAPHRUN_LANES, sizeof(FloatPart));
  });
  return r;
}
GRAPHRUN_FN void store(float* p, Floats x) {
  for_each_part([&](auto i) __attribute__((always_inline)) {
    __builtin_memcpy(p + i * GRAPHRUN_LANES, &x.part[i], sizeof(FloatPart));
  });
}

// Booleans are bytes, 0 or 1. GCC 12 converts byte vectors lane by lane unless given intrinsics.
#if GRAPHRUN_LANES == 16
GRAPHRUN_FN Mask load_mask(const std::uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128((const __m128i*)p);
  return {_mm_test_epi8_mask(bytes, bytes)};
}
GRAPHRUN_FN void store(std::uint8_t* p, Mask m) {
  _mm_storeu_si128((__m128i*)p, _mm_maskz_set1_epi8(m.part[0], 1));
}
#else
GRAPHRUN_FN IntPart widened(const std::uint8_t* p) {
#if GRAPHRUN_LANES == 8
  return (IntPart)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
#else
  BytePart bytes;
  __builtin_memcpy(&bytes, p, sizeof bytes);
  return __builtin_convertvector(bytes, IntPart);
#endif
}
GRAPHRUN_FN Mask load_mask(const std::uint8_t* p) {
  Mask m;
  for_each_part([&](auto i) __attribute__((always_inline)) { m.part[i] = widened(p + i * GRAPHRUN_LANES) != 0; });
  return m;
}
GRAPHRUN_FN void store(std::uint8_t* p, Mask m) {
  for_each_part([&](auto i) __attribute__((always_inline)) {
    BytePart bytes = __builtin_convertvector(m.part[i] & 1, BytePart);
    __builtin_memcpy(p + i * GRAPHRUN_LANES, &bytes, sizeof bytes);
  });
}
#endif
GRAPHRUN_FN Mask load_mask_first(const std::uint8_t* p, std::int64_t n) {
  std::uint8_t bytes[kLanes] = {};
  for (std::int64_t i = 0; i < n; ++i) bytes[i] = p[i];
  return load_mask(bytes);
}
GRAPHRUN_FN void store_first(std::uint8_t* p, Mask m, std::int64_t n) {
  std::uint8_t bytes[kLanes];
  store(bytes, m);
  for (std::int64_t i = 0; i < n; ++i) p[i] = bytes[i];
}

#undef GRAPHRUN_LANEWISE

}  // namespace graphrun::cpu::GRAPHRUN_ISA
