#include "executors/cuda/device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <charconv>
#include <string>

#include "executors/cuda/failure.h"
#include "graphrun/error.h"
#include "kernels/cuda/loop.h"

namespace graphrun::cuda {
namespace {

std::string version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

[[noreturn]] void unavailable(std::string code, std::string message, std::string hint = {}) {
  throw Error(ErrorKind::device, std::move(code), "no CUDA device: " + message, std::move(hint));
}

// Number of devices, at least one. Throws Error (kind device): no driver, driver too old, no visible device.
int count_devices() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  if (driver == 0)
    unavailable("cuda.driver", "this machine has no NVIDIA driver (libcuda.so.1)", "--executor=cpu runs anywhere");
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    unavailable("cuda.driver",
                fmt::format("the driver is for CUDA {}, {} or newer is needed", version(driver), version(runtime)));
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
    unavailable("cuda.device", "the driver sees no GPU", "is CUDA_VISIBLE_DEVICES set?");
  }
  if (is_sticky(status)) fail("load", "cudaGetDeviceCount", status);
  if (status != cudaSuccess) unavailable("cuda.device", cudaGetErrorString(status));
  return count;
}

}  // namespace

int parse_device(std::string_view argument) {
  if (argument.empty()) return 0;
  int device = -1;
  const auto [end, status] = std::from_chars(argument.data(), argument.data() + argument.size(), device);
  if (status != std::errc() || end != argument.data() + argument.size() || device < 0) {
    throw Error(ErrorKind::input, "cuda.device",
                fmt::format("the device of 'cuda:{}' must be a number from 0 on", argument),
                "cuda, cuda:0, cuda:1, ...");
  }
  return device;
}

void open_device(int device) {
  const int count = count_devices();
  if (device >= count) {
    unavailable("cuda.device", fmt::format("device {} was asked for, the driver sees {}", device, count));
  }
  if (const cudaError_t set = cudaSetDevice(device); set != cudaSuccess) {
    if (is_sticky(set) || set == cudaErrorMemoryAllocation) fail("load", "cudaSetDevice", set);
    unavailable("cuda.device", cudaGetErrorString(set));
  }
  cudaFuncAttributes attributes{};
  const cudaError_t code = cudaFuncGetAttributes(&attributes, loop_kernels().arm);
  if (code == cudaSuccess) return;
  // Any other error is older than this call, such as an earlier fault in this process.
  if (code != cudaErrorNoKernelImageForDevice && code != cudaErrorInvalidDeviceFunction &&
      code != cudaErrorUnsupportedPtxVersion && code != cudaErrorInvalidPtx)
    fail("load", "cudaFuncGetAttributes", code);
  cudaGetLastError();  // clears the error, which is reported here
  cudaDeviceProp properties{};
  cudaGetDeviceProperties(&properties, device);
  unavailable("cuda.architecture",
              fmt::format("this build has no code that runs on {} (compute capability {}.{}): {}", properties.name,
                          properties.major, properties.minor, cudaGetErrorString(code)),
              "build with CMAKE_CUDA_ARCHITECTURES for it");
}

DeviceList list_devices() {
  DeviceList list;
  const auto missing = [&](const std::string& what) { list.missing += (list.missing.empty() ? "" : "; ") + what; };
  try {
    const int count = count_devices();
    int present = 0, driver = 0;
    cudaGetDevice(&present);
    cudaDriverGetVersion(&driver);
    for (int i = 0; i < count; ++i) {
      cudaDeviceProp properties{};
      if (const cudaError_t status = cudaGetDeviceProperties(&properties, i); status != cudaSuccess) {
        missing(fmt::format("cuda:{}: {}", i, cudaGetErrorString(status)));
        continue;
      }
      Device device;
      device.id = fmt::format("cuda:{}", i);
      device.name = properties.name;
      device.capability = fmt::format("compute capability {}.{}", properties.major, properties.minor);
      device.units = properties.multiProcessorCount;
      device.driver = fmt::format("CUDA {}", version(driver));
      device.memory_total = properties.totalGlobalMem;
      try {
        open_device(i);
        std::size_t unused = 0, total = 0;
        if (cudaMemGetInfo(&unused, &total) == cudaSuccess) device.memory_free = unused;
      } catch (const Error& error) {
        missing(fmt::format("{}: {}", device.id, error.diagnostics().front().message));
      }
      list.devices.push_back(std::move(device));
    }
    cudaSetDevice(present);
  } catch (const Error& error) {
    missing(error.diagnostics().front().message);
  }
  cudaGetLastError();  // clears errors that are already reported
  return list;
}

}  // namespace graphrun::cuda
