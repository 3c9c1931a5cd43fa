// scalar_type.h: the value type interface of scalar functions, for one float: on a host or a device.
// Contract: one machine operation each, rounded once. Includes nothing, so that host compilers, nvcc and NVRTC read it
// alike. Leaves to others: vectors (cpu/simd/simd.h), functions (scalar_functions.h).
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define GRAPHRUN_FN __device__ __forceinline__
#elif !defined(__OPTIMIZE__) || defined(GRAPHRUN_SANITIZED)
#define GRAPHRUN_FN inline  // inlining all would make these builds compile for minutes
#else
#define GRAPHRUN_FN inline __attribute__((always_inline))
#endif

namespace graphrun::scalar {

// The value type's interface; a vector type defines the same names in its own namespace. The type of bits() has + - & ^
// << >>, and a mask has & | !.
GRAPHRUN_FN float select(bool m, float x, float y) {
  return m ? x : y;
}
GRAPHRUN_FN float min(float x, float y) {
  return x < y ? x : y;
}  // y if one is NaN
GRAPHRUN_FN float max(float x, float y) {
  return x > y ? x : y;
}  // y if one is NaN
GRAPHRUN_FN bool any(bool m) {
  return m;
}  // some lane
GRAPHRUN_FN bool nonzero(int i) {
  return i != 0;
}  // a mask of lanes
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
GRAPHRUN_FN int bits(float x) {
  return __float_as_int(x);
}
GRAPHRUN_FN float from_bits(int i) {
  return __int_as_float(i);
}
GRAPHRUN_FN float number(int i) {
  return __int2float_rn(i);
}
GRAPHRUN_FN float fma(float x, float y, float z) {
  return __fmaf_rn(x, y, z);
}
GRAPHRUN_FN float sqrt(float x) {
  return __fsqrt_rn(x);
}
#else
GRAPHRUN_FN int bits(float x) {
  return __builtin_bit_cast(int, x);
}
GRAPHRUN_FN float from_bits(int i) {
  return __builtin_bit_cast(float, i);
}
GRAPHRUN_FN float number(int i) {
  return (float)i;
}
GRAPHRUN_FN float fma(float x, float y, float z) {
  return __builtin_fmaf(x, y, z);
}
GRAPHRUN_FN float sqrt(float x) {
  return __builtin_sqrtf(x);
}
#endif

}  // namespace graphrun::scalar
