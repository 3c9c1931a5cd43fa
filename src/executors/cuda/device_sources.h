// device_sources.h: the headers that kernels compiled at load may include, as text in the library.
// Contract: each has the name by which it is included ("kernels/scalar_ops.h"), and includes only headers of this list.
// cmake/Cuda.cmake lists them, cmake/DeviceSources.cmake writes the table.
// Not here: compiling (nvrtc.h), the contents of the headers.
#pragma once

#include <span>

namespace graphrun::cuda {

struct DeviceSource {
  const char* name;
  const char* text;
};
extern const std::span<const DeviceSource> kDeviceSources;

}  // namespace graphrun::cuda
