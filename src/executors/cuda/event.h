// event.h: a CUDA event on a stream: waits for it, and measures the time since an earlier one.
// Contract: times are those of the device. Events are created at load; recording and waiting allocate nothing.
#pragma once

#include <cuda_runtime_api.h>

#include "executors/cuda/api.h"

namespace graphrun::cuda {

class Event {
 public:
  explicit Event(Api& api) : api_(api) { api_.check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) { api_.record(event_, stream); }
  void wait() { api_.wait(event_); }
  // Requires that both events are complete.
  double seconds_since(const Event& earlier) const {
    float milliseconds = 0;
    api_.check(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  Api& api_;
  cudaEvent_t event_ = nullptr;
};

}  // namespace graphrun::cuda
