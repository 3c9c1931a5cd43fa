// launch.cuh: typed wrapper of Launcher::launch, and helpers shared by kernels.
// Contract: arguments are converted to the kernel's parameter types before their addresses are taken.
#pragma once

#include <cuda_runtime.h>

#include <tuple>
#include <type_traits>

#include "kernels/cuda/element_functions.h"
#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

template <class... Parameters, class... Arguments>
void launch(Launcher& launcher, void (*kernel)(Parameters...), const char* name, Grid grid, std::uint32_t threads,
            const Arguments&... arguments) {
  std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
  std::apply(
      [&](auto&... value) {
        void* addresses[] = {static_cast<void*>(&value)...};
        launcher.launch(reinterpret_cast<const void*>(kernel), name, grid, threads, addresses);
      },
      values);
}

// Elements of an operand that hold data: all, or per_sample times the count that the step reads on the device.
struct Extent {
  const std::int32_t* count = nullptr;  // null: all
  std::uint64_t per_sample = 0;
  std::uint64_t all = 0;

  __device__ std::uint64_t valid() const {
    if (count == nullptr) return all;
    const std::uint64_t some = static_cast<std::uint64_t>(*count) * per_sample;
    return some < all ? some : all;
  }
};

// `all`: elements of the operand, in units of the kernel, for instance rows.
inline Extent extent_of(const KernelArgs& args, const TensorType& type, std::uint64_t all) {
  Extent extent;
  extent.all = all;
  if (type.rows > 0 && args.row_count != nullptr && type.shape[0] > 0) {
    extent.count = args.row_count;
    extent.per_sample = static_cast<std::uint64_t>(type.rows) * (all / static_cast<std::uint64_t>(type.shape[0]));
  }
  return extent;
}

__device__ inline std::uint64_t thread_index() {
  return static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::uint64_t thread_count() {
  return static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
}

// Division with a fast path for 32-bit operands, which is nearly always taken.
__device__ inline std::uint64_t divide(std::uint64_t a, std::uint64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}

// Barrier of a block where lanes of a warp may have diverged: they meet first, so that the warp waits for others once.
__device__ inline void block_barrier() {
  __syncwarp();
  __syncthreads();
}

__device__ inline float infinity() {
  return __int_as_float(0x7f800000);
}

// NaN propagates.
__device__ inline float larger(float x, float y) {
  return x >= y || x != x ? x : y;
}
__device__ inline float smaller(float x, float y) {
  return x <= y || x != x ? x : y;
}

inline bool is_aligned(const void* address, std::uint64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

// Elements are moved as words of their own size, or of up to 16 bytes where adjacent elements stay together. Calls
// f(Word{}) with the word of the given size: 1, 4 or 8 bytes; with_word() also 16.
template <class F>
void with_element(std::uint64_t bytes, F&& f) {
  if (bytes == 8) return f(std::uint64_t{});
  if (bytes == 4) return f(std::uint32_t{});
  f(std::uint8_t{});
}
template <class F>
void with_word(std::uint64_t bytes, F&& f) {
  bytes == 16 ? f(uint4{}) : with_element(bytes, f);
}
// Calls f(T{}) with the type of the elements; booleans are bytes.
template <class F>
void with_type(DType dtype, F&& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::i32) return f(std::int32_t{});
  if (dtype == DType::u64) return f(std::uint64_t{});
  f(std::uint8_t{});
}
// Widest word size that divides `divisor` (addresses, offsets and sizes or-ed together); elements have `size` bytes.
inline std::uint64_t word_of(std::uint64_t divisor, std::uint64_t size) {
  return divisor % 16 == 0 ? 16 : divisor % 8 == 0 ? 8 : divisor % 4 == 0 ? 4 : size;
}

}  // namespace graphrun::cuda
