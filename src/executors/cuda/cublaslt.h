// cublaslt.h: wide products through cuBLASLt, opened when the first program needs it.
// Contract: f32 input and accumulation, TF32 only if the product asks for it; scratch only from the plan. The algorithm
// is the first of the library's list that runs, fits and needs no atomics, or a faster one with bitwise identical
// results. The same library, device and shapes thus give the same bits, independent of timings. Not here: choice of
// wide products (kernels/cuda/matmul_plan.h), kernels for choosing an algorithm (kernels/cuda/autotune.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "executors/cuda/api.h"
#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

class MatmulLibrary {
 public:
  MatmulLibrary();  // throws Error (kind device) if the library is not installed
  ~MatmulLibrary();
  // Chooses the algorithm of products like this one, once per process and device. Overwrites the operands, the result
  // and the workspace, so call it before they hold values.
  void choose(const LibraryMatmul& product, std::uint64_t workspace_bytes, Api& api, cudaStream_t stream,
              std::string_view doing);
  void multiply(const LibraryMatmul& product, std::uint64_t workspace_bytes, cudaStream_t stream,
                std::string_view doing);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graphrun::cuda
