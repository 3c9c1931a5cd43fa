// wgmma.cuh: products of a warpgroup (four warps) on tensor cores, with the right factor in shared memory.
// Contract: sm_90a only; Warpgroup<N>::multiply_add starts c (64, N) = a (64, 8) times b (8, N), plus c if `adds`, and
// only the first 10 fraction bits of a and b count. It runs until wgmma_wait(), before which c, a and b must not
// change. Lane 4 g + t of warp w holds a's rows g, g + 8, g, g + 8 (of 16 w) in columns t, t, t + 4, t + 4, and c's
// rows g, g, g + 8, g + 8 in columns 8 j + 2 t, 8 j + 2 t + 1 in c[4 j] to c[4 j + 3]. Source: PTX ISA, "Asynchronous
// warpgroup level matrix instructions".
#pragma once

#include <cstdint>

namespace graphrun::cuda {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Address and layout of b: columns of four terms, 16 bytes each, one after another; the next four terms follow all N.
__device__ __forceinline__ std::uint64_t wgmma_operand(const void* shared, int columns) {
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(shared));
  return (address & 0x3ffff) >> 4 | static_cast<std::uint64_t>(columns) << 16 | std::uint64_t{8} << 32;
}
// Before a product of registers that were written; ends a group of products; waits for all groups.
__device__ __forceinline__ void wgmma_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_end() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
// Makes a thread's stores to shared memory visible to products that start after the next barrier.
__device__ __forceinline__ void wgmma_publish() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

template <int N>
struct Warpgroup;

#define GRAPHRUN_EIGHT(c, i)                                                                                  \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]), \
      "+f"(c[i + 7])
#define GRAPHRUN_FACTORS(a, b, adds)                                                                              \
  "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])), \
      "l"(b), "r"(static_cast<int>(adds))

template <>
struct Warpgroup<64> {
  __device__ __forceinline__ static void multiply_add(float (&c)[32], const float (&a)[4], std::uint64_t b, bool adds) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
        "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, p, 1, 1;}"
        : GRAPHRUN_EIGHT(c, 0), GRAPHRUN_EIGHT(c, 8), GRAPHRUN_EIGHT(c, 16), GRAPHRUN_EIGHT(c, 24)
        : GRAPHRUN_FACTORS(a, b, adds));
  }
};

template <>
struct Warpgroup<128> {
  __device__ __forceinline__ static void multiply_add(float (&c)[64], const float (&a)[4], std::uint64_t b, bool adds) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
        "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, "
        "%35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, "
        "%57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1;}"
        : GRAPHRUN_EIGHT(c, 0), GRAPHRUN_EIGHT(c, 8), GRAPHRUN_EIGHT(c, 16), GRAPHRUN_EIGHT(c, 24),
          GRAPHRUN_EIGHT(c, 32), GRAPHRUN_EIGHT(c, 40), GRAPHRUN_EIGHT(c, 48), GRAPHRUN_EIGHT(c, 56)
        : GRAPHRUN_FACTORS(a, b, adds));
  }
};
#undef GRAPHRUN_EIGHT
#undef GRAPHRUN_FACTORS

#endif  // sm_90a

}  // namespace graphrun::cuda
