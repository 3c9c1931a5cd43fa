// simd.h: 16 lanes of float (with GRAPHRUN_WIDE: 8 lanes of double, of the same names), a value type of
// scalar_functions.h with the names of scalar_type.h, for this file's instruction set. Contract: one, two or four
// registers, with the same bits: every operation is correctly rounded in each lane, and fma rounds once even without
// hardware support. Included only by files that are compiled once per instruction set (*loops.cpp and their headers),
// in the namespace GRAPHRUN_ISA. Leaves to others: loops. GRAPHRUN_REGISTER is the size of one register in bytes (64,
// 32, 16).
#pragma once

#include <cstdint>
#if GRAPHRUN_REGISTER > 16
#include <immintrin.h>
#endif

#include "kernels/cpu/simd/isa.h"
#include "kernels/scalar_type.h"

#if defined(GRAPHRUN_WIDE)
#include "kernels/scalar_functions64.h"
#define GRAPHRUN_LANES (GRAPHRUN_REGISTER / 8)
#define GRAPHRUN_TYPED(intrinsic) intrinsic##pd
#else
#define GRAPHRUN_LANES (GRAPHRUN_REGISTER / 4)
#define GRAPHRUN_TYPED(intrinsic) intrinsic##ps
#endif

// Register width that block sizes are tuned for. Sanitizer builds use the smallest (GRAPHRUN_ALL_BLOCKS in
// src/CMakeLists.txt): hundreds of unrolled blocks take minutes to compile, and block sizes never affect results.
#if defined(GRAPHRUN_SMALL_BLOCKS)
#define GRAPHRUN_BLOCKS 4
#else
#define GRAPHRUN_BLOCKS (GRAPHRUN_REGISTER / 4)
#endif

namespace graphrun::cpu::GRAPHRUN_ISA {

#if defined(GRAPHRUN_WIDE)
using Real = double;
using Bits = scalar64::Bits;
typedef long long TruthPart __attribute__((vector_size(GRAPHRUN_REGISTER)));
#else
using Real = float;
using Bits = int;
typedef int TruthPart __attribute__((vector_size(GRAPHRUN_REGISTER)));
#endif
inline constexpr int kLanes = kLanesOf<Real>;
inline constexpr int kShortLine = kLanes;  // with f64 half as many, so that one vector holds them
inline constexpr int kParts = kLanes / GRAPHRUN_LANES;
using MatmulProblem = MatmulProblemOf<Real>;
using Lines = LinesOf<Real>;
using TileRows = TileRowsOf<Real>;
using DenseTile = DenseTileOf<Real>;
using DenseGradientTile = DenseGradientTileOf<Real>;

typedef Real FloatPart __attribute__((vector_size(GRAPHRUN_REGISTER)));
typedef Bits IntPart __attribute__((vector_size(GRAPHRUN_REGISTER)));
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
using Floats = Vector<FloatPart, Real>;
using Ints = Vector<IntPart, Bits>;
#if GRAPHRUN_REGISTER == 64
#if defined(GRAPHRUN_WIDE)
typedef __mmask8 MaskPart;
#else
typedef __mmask16 MaskPart;
#endif
#else
typedef TruthPart MaskPart;  // 0 or -1
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

#if GRAPHRUN_REGISTER == 64
#if defined(GRAPHRUN_WIDE)
#define GRAPHRUN_COMPARE(op, code) \
  GRAPHRUN_LANEWISE(Mask, operator op(Floats x, Floats y), _mm512_cmp_pd_mask(x.part[i], y.part[i], code))
GRAPHRUN_LANEWISE(Mask, nonzero(Ints x), _mm512_test_epi64_mask((__m512i)x.part[i], (__m512i)x.part[i]))
#else
#define GRAPHRUN_COMPARE(op, code) \
  GRAPHRUN_LANEWISE(Mask, operator op(Floats x, Floats y), _mm512_cmp_ps_mask(x.part[i], y.part[i], code))
GRAPHRUN_LANEWISE(Mask, nonzero(Ints x), _mm512_test_epi32_mask((__m512i)x.part[i], (__m512i)x.part[i]))
#endif
GRAPHRUN_LANEWISE(Floats, select(Mask m, Floats x, Floats y),
                  GRAPHRUN_TYPED(_mm512_mask_blend_)(m.part[i], y.part[i], x.part[i]))
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

#if GRAPHRUN_REGISTER == 64
GRAPHRUN_LANEWISE(Floats, min(Floats x, Floats y),
                  GRAPHRUN_TYPED(_mm512_maskz_min_)((MaskPart)-1, x.part[i], y.part[i]))
GRAPHRUN_LANEWISE(Floats, max(Floats x, Floats y),
                  GRAPHRUN_TYPED(_mm512_maskz_max_)((MaskPart)-1, x.part[i], y.part[i]))
#if !defined(GRAPHRUN_WIDE)
// One instruction instead of three: takes the bits of x where the mask is 1, else those of sign.
GRAPHRUN_LANEWISE(Floats, copysign(Floats x, Floats sign),
                  (FloatPart)_mm512_ternarylogic_epi32((__m512i)x.part[i], (__m512i)sign.part[i],
                                                       _mm512_set1_epi32(0x7fffffff), 0xe4))
// One instruction instead of two: classifies x and looks up a 4-bit code per class (QNaN, SNaN, 0, 1, -inf, inf,
// negative, positive): 8 for zero, 0 to keep the destination.
GRAPHRUN_LANEWISE(Floats, relu(Floats x), _mm512_fixupimm_ps(x.part[i], x.part[i], _mm512_set1_epi32(0x08080800), 0))
GRAPHRUN_LANEWISE(Floats, where_positive(Floats x, Floats y),
                  _mm512_fixupimm_ps(y.part[i], x.part[i], _mm512_set1_epi32(0x08080888), 0))
#endif
GRAPHRUN_LANEWISE(Floats, fma(Floats x, Floats y, Floats z),
                  GRAPHRUN_TYPED(_mm512_fmadd_)(x.part[i], y.part[i], z.part[i]))
GRAPHRUN_LANEWISE(Floats, scale(Floats x, Floats n),
                  GRAPHRUN_TYPED(_mm512_maskz_scalef_)((MaskPart)-1, x.part[i], n.part[i]))
GRAPHRUN_LANEWISE(Floats, sqrt(Floats x), GRAPHRUN_TYPED(_mm512_maskz_sqrt_)((MaskPart)-1, x.part[i]))
GRAPHRUN_FN bool any(Mask m) {
  return m.part[0] != 0;
}
GRAPHRUN_FN MaskPart first(std::int64_t n) {
  return (MaskPart)((1u << n) - 1);
}
GRAPHRUN_FN Floats load_first(const Real* p, std::int64_t n) {
  Floats r;
  r.part[0] = GRAPHRUN_TYPED(_mm512_maskz_loadu_)(first(n), p);
  return r;
}
GRAPHRUN_FN void store_first(Real* p, Floats x, std::int64_t n) {
  GRAPHRUN_TYPED(_mm512_mask_storeu_)(p, first(n), x.part[0]);
}
#elif GRAPHRUN_REGISTER == 32
GRAPHRUN_LANEWISE(Floats, min(Floats x, Floats y), GRAPHRUN_TYPED(_mm256_min_)(x.part[i], y.part[i]))
GRAPHRUN_LANEWISE(Floats, max(Floats x, Floats y), GRAPHRUN_TYPED(_mm256_max_)(x.part[i], y.part[i]))
GRAPHRUN_LANEWISE(Floats, fma(Floats x, Floats y, Floats z),
                  GRAPHRUN_TYPED(_mm256_fmadd_)(x.part[i], y.part[i], z.part[i]))
GRAPHRUN_LANEWISE(Floats, sqrt(Floats x), GRAPHRUN_TYPED(_mm256_sqrt_)(x.part[i]))
GRAPHRUN_FN bool any(Mask m) {
  return GRAPHRUN_TYPED(_mm256_movemask_)((FloatPart)(m.part[0] | m.part[1])) != 0;
}
GRAPHRUN_FN __m256i first(std::int64_t n) {
#if defined(GRAPHRUN_WIDE)
  return (__m256i)(TruthPart{0, 1, 2, 3} < n);
#else
  return (__m256i)(IntPart{0, 1, 2, 3, 4, 5, 6, 7} < (int)n);
#endif
}
GRAPHRUN_FN Floats load_first(const Real* p, std::int64_t n) {
  constexpr int kHalf = GRAPHRUN_LANES;
  Floats r;
  r.part[0] = GRAPHRUN_TYPED(_mm256_maskload_)(p, first(n));
  r.part[1] = n > kHalf ? GRAPHRUN_TYPED(_mm256_maskload_)(p + kHalf, first(n - kHalf)) : FloatPart{};
  return r;
}
GRAPHRUN_FN void store_first(Real* p, Floats x, std::int64_t n) {
  constexpr int kHalf = GRAPHRUN_LANES;
  GRAPHRUN_TYPED(_mm256_maskstore_)(p, first(n), x.part[0]);
  if (n > kHalf) GRAPHRUN_TYPED(_mm256_maskstore_)(p + kHalf, first(n - kHalf), x.part[1]);
}
#else
// Lane by lane, therefore not inlined: there are thousands of uses, and they are slow anyway.
#define GRAPHRUN_CALLED __attribute__((noinline)) inline
GRAPHRUN_LANEWISE(Floats, min(Floats x, Floats y), x.part[i] < y.part[i] ? x.part[i] : y.part[i])
GRAPHRUN_LANEWISE(Floats, max(Floats x, Floats y), x.part[i] > y.part[i] ? x.part[i] : y.part[i])
#if defined(GRAPHRUN_WIDE)
using scalar64::fma, scalar64::sqrt;
#else
using scalar::fma, scalar::sqrt;
#endif
GRAPHRUN_CALLED Floats fma(Floats x, Floats y, Floats z) {
  Floats r(0.0f);
  for (int i = 0; i < kParts; ++i)
    for (int j = 0; j < GRAPHRUN_LANES; ++j) r.part[i][j] = fma(x.part[i][j], y.part[i][j], z.part[i][j]);
  return r;
}
GRAPHRUN_CALLED Floats sqrt(Floats x) {
  Floats r(0.0f);
  for (int i = 0; i < kParts; ++i)
    for (int j = 0; j < GRAPHRUN_LANES; ++j) r.part[i][j] = sqrt(x.part[i][j]);
  return r;
}
GRAPHRUN_FN bool any(Mask m) {
  const MaskPart all = m.part[0] | m.part[1] | m.part[2] | m.part[3];
  bool some = false;
  for (int i = 0; i < GRAPHRUN_LANES; ++i) some = some || all[i] != 0;
  return some;
}
GRAPHRUN_CALLED Floats load_first(const Real* p, std::int64_t n) {
  Floats r(0.0f);
  for (int i = 0; i < (int)n; ++i) r.part[i / GRAPHRUN_LANES][i % GRAPHRUN_LANES] = p[i];
  return r;
}
GRAPHRUN_CALLED void store_first(Real* p, Floats x, std::int64_t n) {
  for (int i = 0; i < (int)n; ++i) p[i] = x.part[i / GRAPHRUN_LANES][i % GRAPHRUN_LANES];
}
#undef GRAPHRUN_CALLED
#endif

GRAPHRUN_FN Floats load(const Real* p) {
  Floats r;
  for_each_part([&](auto i) __attribute__((always_inline)) {
    __builtin_memcpy(&r.part[i], p + i * GRAPHRUN_LANES, sizeof(FloatPart));
  });
  return r;
}
GRAPHRUN_FN void store(Real* p, Floats x) {
  for_each_part([&](auto i) __attribute__((always_inline)) {
    __builtin_memcpy(p + i * GRAPHRUN_LANES, &x.part[i], sizeof(FloatPart));
  });
}

// Booleans are bytes, 0 or 1. GCC 12 converts byte vectors lane by lane unless given intrinsics.
#if GRAPHRUN_REGISTER == 64 && !defined(GRAPHRUN_WIDE)
GRAPHRUN_FN Mask load_mask(const std::uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128((const __m128i*)p);
  return {_mm_test_epi8_mask(bytes, bytes)};
}
GRAPHRUN_FN void store(std::uint8_t* p, Mask m) {
  _mm_storeu_si128((__m128i*)p, _mm_maskz_set1_epi8(m.part[0], 1));
}
#elif GRAPHRUN_REGISTER == 64
GRAPHRUN_FN void store(std::uint8_t* p, Mask m) {
  _mm_storel_epi64((__m128i*)p, _mm_maskz_set1_epi8(m.part[0], 1));
}
#else
#if !defined(GRAPHRUN_WIDE)
GRAPHRUN_FN IntPart widened(const std::uint8_t* p) {
#if GRAPHRUN_REGISTER == 32
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
#endif
GRAPHRUN_FN void store(std::uint8_t* p, Mask m) {
  for_each_part([&](auto i) __attribute__((always_inline)) {
    BytePart bytes = __builtin_convertvector(m.part[i] & 1, BytePart);
    __builtin_memcpy(p + i * GRAPHRUN_LANES, &bytes, sizeof bytes);
  });
}
#endif
#if !defined(GRAPHRUN_WIDE)
GRAPHRUN_FN Mask load_mask_first(const std::uint8_t* p, std::int64_t n) {
  std::uint8_t bytes[kLanes] = {};
  for (std::int64_t i = 0; i < n; ++i) bytes[i] = p[i];
  return load_mask(bytes);
}
#endif
GRAPHRUN_FN void store_first(std::uint8_t* p, Mask m, std::int64_t n) {
  std::uint8_t bytes[kLanes];
  store(bytes, m);
  for (std::int64_t i = 0; i < n; ++i) p[i] = bytes[i];
}

#undef GRAPHRUN_LANEWISE

#if defined(GRAPHRUN_WIDE)
// Found before the templates of scalar_functions.h, which are for f32.
#define GRAPHRUN_WIDE_FUNCTION(name)  \
  GRAPHRUN_FN Floats name(Floats x) { \
    return scalar64::name(x);         \
  }
GRAPHRUN_WIDE_FUNCTION(abs)
GRAPHRUN_WIDE_FUNCTION(round)
GRAPHRUN_WIDE_FUNCTION(floor)
GRAPHRUN_WIDE_FUNCTION(ceil)
GRAPHRUN_WIDE_FUNCTION(exp)
GRAPHRUN_WIDE_FUNCTION(expm1)
GRAPHRUN_WIDE_FUNCTION(log)
GRAPHRUN_WIDE_FUNCTION(log1p)
GRAPHRUN_WIDE_FUNCTION(sin)
GRAPHRUN_WIDE_FUNCTION(cos)
GRAPHRUN_WIDE_FUNCTION(tan)
GRAPHRUN_WIDE_FUNCTION(tanh)
GRAPHRUN_WIDE_FUNCTION(sigmoid)
GRAPHRUN_WIDE_FUNCTION(silu)
GRAPHRUN_WIDE_FUNCTION(softplus)
GRAPHRUN_WIDE_FUNCTION(gelu_tanh)
#undef GRAPHRUN_WIDE_FUNCTION
#endif

}  // namespace graphrun::cpu::GRAPHRUN_ISA
