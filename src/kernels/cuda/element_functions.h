// element_functions.h: helpers of element kernels other than the scalar functions: casts, packs of four elements, the
// rows of a batch.
// Contract: device code only. Includes nothing, because kernels that are compiled when a program is loaded use its text
// (cmake/Cuda.cmake). Leaves to others: the scalar functions (kernels/scalar_functions.h), the kernels
// (executors/cuda/element_kernels.cpp).
#pragma once

namespace graphrun::cuda {

template <class T>
struct alignas(sizeof(T) * 4 < 16 ? sizeof(T) * 4 : 16) Pack {
  T value[4];
};
template <class T>
__device__ __forceinline__ void load4(const T* from, T (&to)[4]) {
  const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(from);
#pragma unroll
  for (int k = 0; k < 4; ++k) to[k] = pack.value[k];
}
template <class T>
__device__ __forceinline__ void store4(T* to, const T (&from)[4]) {
  Pack<T> pack;
#pragma unroll
  for (int k = 0; k < 4; ++k) pack.value[k] = from[k];
  *reinterpret_cast<Pack<T>*>(to) = pack;
}

// Saturating casts; NaN becomes 0 in an integer. Conversions from float saturate by themselves. The templates accept
// both names of unsigned 64-bit integers.
__device__ __forceinline__ int to_i32(float x) {
  return x == x ? static_cast<int>(x) : 0;
}
__device__ __forceinline__ int to_i32(int x) {
  return x;
}
__device__ __forceinline__ int to_i32(unsigned char x) {
  return x;
}
template <class Unsigned>
__device__ __forceinline__ int to_i32(Unsigned x) {
  return x < 0x7fffffffu ? static_cast<int>(x) : 0x7fffffff;
}
__device__ __forceinline__ unsigned long long to_u64(float x) {
  return x == x ? static_cast<unsigned long long>(x) : 0;
}
__device__ __forceinline__ unsigned long long to_u64(int x) {
  return x > 0 ? static_cast<unsigned long long>(x) : 0;
}
template <class Unsigned>
__device__ __forceinline__ unsigned long long to_u64(Unsigned x) {
  return x;
}

// Number of rows of the batch at `step`.
__device__ __forceinline__ int batch_rows(unsigned long long step, unsigned long long total,
                                          unsigned long long capacity, unsigned long long batches) {
  const unsigned long long left = total - step % batches * capacity;
  return static_cast<int>(left < capacity ? left : capacity);
}

}  // namespace graphrun::cuda
