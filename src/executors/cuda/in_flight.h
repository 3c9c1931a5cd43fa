// in_flight.h: unfinished launches of a run: at most two, so that an interrupt waits for no more.
// Contract: allocates nothing after the constructor. Not here: size of a launch (launch_batching.h).
#pragma once

#include <array>
#include <cstdint>

#include "executors/cuda/event.h"

namespace graphrun::cuda {

class InFlight {
 public:
  struct Launch {
    std::uint64_t first = 0, steps = 0;
  };
  struct Done {
    std::uint64_t steps = 0;
    double seconds = 0;  // time since the end of the previous launch
  };

  explicit InFlight(Api& api) : events_{{Event(api), Event(api), Event(api)}} {}

  // Starts a run and forgets earlier launches.
  void begin(cudaStream_t stream) {
    added_ = done_ = 0;
    events_[0].record(stream);
  }
  // Call after enqueuing the launch on the stream; only if not full().
  void add(Launch launch, cudaStream_t stream) {
    launches_[added_ % kMax] = launch;
    events_[++added_ % events_.size()].record(stream);
  }
  bool empty() const { return added_ == done_; }
  bool full() const { return added_ - done_ == kMax; }
  const Launch& oldest() const { return launches_[done_ % kMax]; }  // launch that the device is running
  Done wait_for_oldest() {
    const std::uint64_t steps = oldest().steps;
    const Event& before = events_[done_ % events_.size()];
    Event& end = events_[++done_ % events_.size()];
    end.wait();
    return {steps, end.seconds_since(before)};
  }

 private:
  static constexpr std::size_t kMax = 2;
  std::array<Event, kMax + 1> events_;  // ends of the launches in flight and of the last finished one
  std::array<Launch, kMax> launches_{};
  std::uint64_t added_ = 0, done_ = 0;
};

}  // namespace graphrun::cuda
