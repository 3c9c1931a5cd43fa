// fake_runtime.h: how a test tells the fake CUDA runtime what is wrong with the machine.
// Contract: FAKE_CUDA in the environment holds settings, comma-separated, read at every call:
//   driver=N, runtime=N, devices=N     what the machine has; driver=0: none at all
//   memory=N                           bytes of the device
//   FUNCTION=STATUS@N                  the N-th call (from 1) of this CUDA function fails with that status
//   sticky                             after a failing call every further one fails with its status
//   missing=NAME                       dlopen of a library whose file name begins so fails
// A change of the variable starts all counts from zero and mends the device. Kernels do not run; copies do.
// Leaves to others: being right about CUDA; tests with a device are in device_test.cpp.
#pragma once

#include <cstdlib>

namespace graphrun::testing {

struct FakeCuda {
  explicit FakeCuda(const char* settings) { setenv("FAKE_CUDA", settings, 1); }
  ~FakeCuda() { unsetenv("FAKE_CUDA"); }
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;
};

}  // namespace graphrun::testing
