// autotune.h: what it takes to try an algorithm of a library on memory that holds nothing yet: numbers to work on, and
// one number that tells results apart. Contract: the same arguments give the same bits; the checksum of floats that
// differ in a bit differs, but for chance. Leaves to others: launching (executors/cuda/cublaslt.cpp).
#pragma once

namespace graphrun::cuda {

struct AutotuneKernels {
  const void* fill;      // (float* to, u64 count, u32 seed): between -1 and 1
  const void* clear;     // (u64* sum)
  const void* checksum;  // (const float* from, u64 count, u64* sum): adds to the sum
};
AutotuneKernels autotune_kernels();

}  // namespace graphrun::cuda
