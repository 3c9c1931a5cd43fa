// autotune.h: fills memory for a trial and tells results apart, through the counted door to CUDA.
// Contract: kernels/cuda/autotune.h's; asynchronous. `sum` is eight bytes of device memory.
#pragma once

#include <cstdint>

#include "executors/cuda/api.h"

namespace graphrun::cuda {

void fill_trial(Api& api, void* to, std::uint64_t floats, std::uint32_t seed, cudaStream_t stream);
void checksum_trial(Api& api, const void* from, std::uint64_t floats, void* sum, cudaStream_t stream);

}  // namespace graphrun::cuda
