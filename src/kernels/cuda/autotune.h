// autotune.h: kernels for trying a library's algorithms on uninitialized memory: test data, and a checksum for
// comparing results. Contract: the same arguments give the same bits; floats that differ in any bit have different
// checksums, with high probability. Leaves to others: launching (executors/cuda/cublaslt.cpp).
#pragma once

namespace graphrun::cuda {

struct AutotuneKernels {
  const void* fill;      // (float* to, u64 count, u32 seed): values between -1 and 1
  const void* clear;     // (u64* sum)
  const void* checksum;  // (const float* from, u64 count, u64* sum): adds to the sum
};
AutotuneKernels autotune_kernels();

}  // namespace graphrun::cuda
