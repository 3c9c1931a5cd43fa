// cpu_time.h: CPU time of this process, and its growth with the size of a problem.
// Contract: excludes the time of other processes. Tests compare sizes, never absolute seconds: ctest's TIMEOUT detects
// hangs, and benchmarks measure speed.
#pragma once

#include <gtest/gtest.h>
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

template <class F>
double cpu_seconds(F f) {
  const CpuTime time;
  f();
  return time.seconds();
}

// Sanitizers have overheads of their own, so times are not compared there.
inline constexpr bool kTimesHold = !kSanitized;

// Fails if seconds(times * n) exceeds `slack` * `times` * seconds(n); quadratic growth would reach times^2. One
// successful round of five is enough, since other processes share the caches.
template <class Seconds, class Size>
void expect_linear(Seconds seconds, Size n, Size times = 4, double slack = 2.25) {
  if (!kTimesHold) {
    seconds(times * n);
    return;
  }
  constexpr double kConstant = 2e-3;  // seconds of overhead independent of the size
  double small = 0, large = 0;
  for (int round = 0; round < 5; ++round) {
    small = seconds(n);
    large = seconds(times * n);
    if (large < slack * static_cast<double>(times) * std::max(small, kConstant)) return;
  }
  ADD_FAILURE() << small << " s of CPU time, and " << large << " s for " << times << " times the size";
}

}  // namespace graphrun::test
