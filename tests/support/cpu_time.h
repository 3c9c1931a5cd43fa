// cpu_time.h: how long something took, in seconds of this process's processors.
// Contract: time in which the machine was busy with others does not count, so a bound on it holds on a busy machine
// too. Bounds are the tests' own.
#pragma once

#include <time.h>

#include <algorithm>

#include "support/sanitized.h"

namespace graphrun::test {

class CpuTime {
 public:
  double seconds() const { return now() - start_; }

 private:
  static double now() {
    timespec spent{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
  }
  double start_ = now();
};

// What f takes: the best of three.
template <class F>
double best_seconds(F f) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const CpuTime time;
    f();
    best = std::min(best, time.seconds());
  }
  return best;
}

// Sanitizers have costs of their own: there no time is held.
inline constexpr bool kTimesHold = !kSanitized;

}  // namespace graphrun::test
