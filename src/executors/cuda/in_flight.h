// in_flight.h: the launches of a run that are not done: at most two, so that whoever interrupts waits for no more.
// Contract: allocates nothing after the constructor. Leaves to others: how large a launch is (launch_batching.h).
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
    double seconds = 0;  // from the end of the launch before it
  };

  explicit InFlight(Api& api) : events_{{Event(api), Event(api), Event(api)}} {}

  // What was in flight before is forgotten.
  void begin(cudaStream_t stream) {
    added_ = done_ = 0;
    events_[0].record(stream);
  }
  // After the launch was put on the stream; only when not full().
  void add(Launch launch, cudaStream_t stream) {
    launches_[added_ % kMost] = launch;
    events_[++added_ % events_.size()].record(stream);
  }
  bool empty() const { return added_ == done_; }
  bool full() const { return added_ - done_ == kMost; }
  const Launch& oldest() const { return launches_[done_ % kMost]; }  // the one that the device works on
  Done wait_for_oldest() {
    const std::uint64_t steps = oldest().steps;
    const Event& before = events_[done_ % events_.size()];
    Event& end = events_[++done_ % events_.size()];
    end.wait();
    return {steps, end.seconds_since(before)};
  }

 private:
  static constexpr std::size_t kMost = 2;
  std::array<Event, kMost + 1> events_;  // the end of each launch in flight, and of the last that is done
  std::array<Launch, kMost> launches_{};
  std::uint64_t added_ = 0, done_ = 0;
};

}  // namespace graphrun::cuda
