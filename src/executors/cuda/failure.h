// failure.h: what a status of CUDA means to the user: out of memory, a fault in a kernel, a device that is lost; and
// how to look for the cause. Contract: fail() throws Error of kind device with a code of its own for each (cuda.memory,
// cuda.fault, cuda.lost, cuda.call); the message names what was being done, the call that told of it and CUDA's own
// words. Leaves to others: no driver and no device (device.h), a library that is not installed (cublaslt.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

namespace graphrun::cuda {

// Whether CUDA answers every further call of this process for this device with the same status.
bool is_sticky(cudaError_t status);

[[noreturn]] void fail(std::string_view doing, std::string_view call, cudaError_t status);

// The arena does not fit: throws OutOfMemory with what the device has left.
[[noreturn]] void fail_arena(std::uint64_t bytes);

// Whether a variable of the environment has its one value. Throws Error (kind input) for another.
bool debug_option(const char* variable, std::string_view value, const char* code);

}  // namespace graphrun::cuda
