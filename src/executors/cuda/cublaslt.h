// cublaslt.h: wide products through cuBLASLt, opened when the first program needs it.
// Contract: f32 in, f32 accumulation, TF32 only where the product says so; scratch only from the plan. The algorithm is
// the first of the library's own list that runs, fits and needs no atomics, or a faster one that gives the same bits:
// the same library, device and shapes give the same bits, whatever the clock said. Leaves to others: which products are
// wide (kernels/cuda/matmul_plan.h), the kernels that choosing needs (kernels/cuda/autotune.h).
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
  MatmulLibrary();  // throws Error (kind device) when the library is not installed
  ~MatmulLibrary();
  // Chooses the algorithm of products like this one, once for a process and device. Overwrites the operands, the result
  // and the workspace: only before they hold anything.
  void choose(const LibraryMatmul& product, std::uint64_t workspace_bytes, Api& api, cudaStream_t stream,
              std::string_view doing);
  void multiply(const LibraryMatmul& product, std::uint64_t workspace_bytes, cudaStream_t stream,
                std::string_view doing);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graphrun::cuda
