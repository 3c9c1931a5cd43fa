// device_sources.h: the headers that kernels compiled at load may include, as texts within the library.
// Contract: each is named as it is included ("kernels/scalar_ops.h"), and what one of them includes is among them; none
// includes anything else. cmake/Cuda.cmake lists them, cmake/DeviceSources.cmake writes the table.
// Leaves to others: compiling (nvrtc.h), what the headers hold.
#pragma once

#include <span>

namespace graphrun::cuda {

struct DeviceSource {
  const char* name;
  const char* text;
};
extern const std::span<const DeviceSource> kDeviceSources;

}  // namespace graphrun::cuda
