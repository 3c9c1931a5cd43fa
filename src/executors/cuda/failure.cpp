#include "executors/cuda/failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>

#include "graphrun/error.h"

namespace graphrun::cuda {
namespace {

// Memory next to the arena for code of kernels and libraries and for executable graphs. The batch size proposed to the
// user leaves this much free.
constexpr std::uint64_t kAside = std::uint64_t{256} << 20;

enum class Meaning { call, memory, fault, lost };

constexpr cudaError_t kFaults[] = {
    cudaErrorIllegalAddress,      cudaErrorLaunchTimeout,      cudaErrorAssert,
    cudaErrorHardwareStackError,  cudaErrorIllegalInstruction, cudaErrorMisalignedAddress,
    cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,          cudaErrorLaunchFailure,
};
constexpr cudaError_t kLosses[] = {
    cudaErrorECCUncorrectable,    cudaErrorNvlinkUncorrectable, cudaErrorContextIsDestroyed,
    cudaErrorDeviceUninitialized, cudaErrorDevicesUnavailable,  cudaErrorSystemNotReady,
};

Meaning meaning_of(cudaError_t status) {
  const auto is_one_of = [&](const auto& list) { return std::ranges::find(list, status) != std::end(list); };
  if (status == cudaErrorMemoryAllocation) return Meaning::memory;
  return is_one_of(kFaults) ? Meaning::fault : is_one_of(kLosses) ? Meaning::lost : Meaning::call;
}

constexpr std::string_view kAfterFault =
    "CUDA cannot use the device in this process again: start a new process, or use --executor=cpu";

}  // namespace

bool is_sticky(cudaError_t status) {
  const Meaning meaning = meaning_of(status);
  return meaning == Meaning::fault || meaning == Meaning::lost;
}

void fail(std::string_view doing, std::string_view call, cudaError_t status) {
  const std::string where = doing.empty() ? std::string() : fmt::format("{}: ", doing);
  const std::string words = fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
  const auto error = [](const char* code, std::string message, std::string hint) {
    return Error(ErrorKind::device, code, std::move(message), std::move(hint));
  };
  switch (meaning_of(status)) {
    case Meaning::memory:
      cudaGetLastError();  // clears the error: not sticky, reported here
      throw error("cuda.memory", fmt::format("{}{}: out of memory: {}", where, call, words),
                  "other programs may hold it; nvidia-smi lists those on the device");
    case Meaning::fault:
      throw error("cuda.fault", fmt::format("{}a kernel faulted (reported by {}): {}", where, call, words),
                  fmt::format("{}; graphrun verify finds the step", kAfterFault));
    case Meaning::lost:
      throw error("cuda.lost", fmt::format("{}the device is lost (reported by {}): {}", where, call, words),
                  fmt::format("{}; nvidia-smi shows the state of the device", kAfterFault));
    case Meaning::call:
      break;
  }
  throw error("cuda.call", fmt::format("{}{} failed: {}", where, call, words), {});
}

bool debug_option(const char* variable, std::string_view value, const char* code) {
  const char* given = std::getenv(variable);
  if (given == nullptr || *given == '\0') return false;
  if (given == value) return true;
  throw Error(ErrorKind::input, code, fmt::format("{} can be '{}', got '{}'", variable, value, given));
}

void fail_wait() {
  throw Error(ErrorKind::device, "cuda.wait",
              "a block waited two seconds for another one of its kernel: the device did not run them together",
              "--jit=off runs step by step");
}

void fail_arena(std::uint64_t bytes) {
  cudaGetLastError();  // clears the error: not sticky, reported here
  std::size_t unused = 0, total = 0;
  if (const cudaError_t status = cudaMemGetInfo(&unused, &total); status != cudaSuccess)
    fail("load", "cudaMemGetInfo", status);
  const std::uint64_t usable = unused > kAside ? unused - kAside : 0;
  throw OutOfMemory("cuda.memory",
                    fmt::format("the plan needs {} bytes of device memory, {} of {} are free", bytes, unused, total),
                    bytes, usable, "a smaller batch needs less");
}

}  // namespace graphrun::cuda
