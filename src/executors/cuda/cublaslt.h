// cublaslt.h: wide products through cuBLASLt, opened when the first program needs it.
// Contract: f32 in, f32 accumulation, no TF32; scratch only from the plan; the algorithm is the first of the library's
// own list that fits, without atomics: the same library, device and shapes give the same bits.
// Leaves to others: which products are wide (kernels/cuda/matmul_plan.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

class MatmulLibrary {
 public:
  MatmulLibrary();  // throws Error (kind device) when the library is not installed
  ~MatmulLibrary();
  void multiply(const LibraryMatmul& product, std::uint64_t workspace_bytes, cudaStream_t stream,
                std::string_view doing);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graphrun::cuda
