// failure.h: translates a CUDA status for the user (out of memory, fault in a kernel, lost device) and gives advice on
// finding the cause. Contract: fail() throws Error of kind device with a separate code for each (cuda.memory,
// cuda.fault, cuda.lost, cuda.call). The message names the activity, the call that reported the status and CUDA's own
// message. Not here: missing driver or device (device.h), a library that is not installed (cublaslt.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

namespace graphrun::cuda {

// Whether CUDA answers every further call of this process for this device with the same status.
bool is_sticky(cudaError_t status);

[[noreturn]] void fail(std::string_view doing, std::string_view call, cudaError_t status);

// Throws Error for a step kernel with a wait that timed out (kernels/cuda/tile/wait.h).
[[noreturn]] void fail_wait();

// Throws OutOfMemory with the free bytes of the device, for an arena that does not fit.
[[noreturn]] void fail_arena(std::uint64_t bytes);

// Whether an environment variable has its one allowed value. Throws Error (kind input) for other values.
bool debug_option(const char* variable, std::string_view value, const char* code);

}  // namespace graphrun::cuda
