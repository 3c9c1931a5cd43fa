// A kernel that faults: it writes where nothing is.
#include "fault_kernel.h"

namespace {
__global__ void write_nowhere(int* address) {
  *address = 1;
}
}  // namespace

bool fault() {
  write_nowhere<<<1, 1>>>(reinterpret_cast<int*>(0x10));
  return cudaDeviceSynchronize() != cudaSuccess;
}
