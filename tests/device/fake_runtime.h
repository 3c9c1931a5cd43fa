// fake_runtime.h: how a test tells the fake CUDA runtime what is wrong with the machine.
// Contract: FAKE_CUDA in the environment holds settings, comma-separated, read at every call:
//   driver=N, runtime=N, devices=N     what the machine has; driver=0: none at all
//   memory=N                           bytes of the device
//   FUNCTION=STATUS@N                  the N-th call (from 1) of this CUDA function fails with that status
//   sticky                             after a failing call every further one fails with its status
//   missing=NAME                       dlopen of a library whose file name begins so fails
//   launches=PATH                      the device of each launch of a step kernel is appended to this file, a line each
//   order=PATH                         calls for device 0, outside of captures, are appended to this file, a line each:
//                                      launch STREAM, record STREAM EVENT, wait STREAM EVENT
//   products=LETTERS                   cuBLASLt is fake_cublaslt.cpp, which offers an algorithm for each letter
//   unjoined                           rank 1 cannot join the others of an NCCL communicator
//   unconnected                        rank 1 joins, but sends nothing to the others, which wait
//   busy                               the work of a shard does not end before rank 0 aborts NCCL
// NCCL is fake_nccl.cpp, whose members are threads. A change of the variable starts all counts from zero and fixes the
// device. Kernels do not run, but for those of kernels/cuda/combine_shards.h; copies do. Work counts as in flight until
// something waits for it. Counts are reported in the environment, too:
//   FAKE_CUDA_AHEAD                    the most graphs that were in flight at a time
//   FAKE_CUDA_FREED_IN_FLIGHT          a function that gave something back while work was in flight
//   FAKE_CUDA_PRODUCT                  the algorithm, from 0 on, of the last product
// Leaves to others: being right about CUDA; tests with a device are in device_test.cpp.
#pragma once

#include <cstdlib>
#include <string>

namespace graphrun::testing {

struct FakeCuda {
  explicit FakeCuda(const char* settings) {
    setenv("FAKE_CUDA", settings, 1);
    for (const char* name : kTold) unsetenv(name);
  }
  ~FakeCuda() { unsetenv("FAKE_CUDA"); }
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  // Empty: nothing was.
  static std::string ahead() { return told(kTold[0]); }
  static std::string freed_in_flight() { return told(kTold[1]); }
  static std::string product() { return told(kTold[2]); }

 private:
  static constexpr const char* kTold[] = {"FAKE_CUDA_AHEAD", "FAKE_CUDA_FREED_IN_FLIGHT", "FAKE_CUDA_PRODUCT"};
  static std::string told(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
  }
};

}  // namespace graphrun::testing
