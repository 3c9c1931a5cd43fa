// cpu_time.h: CPU time of this process, and how it grows with the size of a problem.
// Contract: time of other processes does not count. Tests compare sizes, never with a number of seconds: a hang is
// ctest's TIMEOUT, and speed is for benchmarks.
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

// Sanitizers have costs of their own: there no times are compared.
inline constexpr bool kTimesHold = !kSanitized;

// Fails if seconds(times * n) is more than `slack` times as long as in proportion to seconds(n); a quadratic would be
// `times` times as long. One round of five is enough: other processes take a share of the caches.
template <class Seconds, class Size>
void expect_linear(Seconds seconds, Size n, Size times = 4, double slack = 2.25) {
  if (!kTimesHold) {
    seconds(times * n);
    return;
  }
  constexpr double kConstant = 2e-3;  // seconds that are spent whatever the size
  double small = 0, large = 0;
  for (int round = 0; round < 5; ++round) {
    small = seconds(n);
    large = seconds(times * n);
    if (large < slack * static_cast<double>(times) * std::max(small, kConstant)) return;
  }
  ADD_FAILURE() << small << " s of CPU time, and " << large << " s for " << times << " times the size";
}

}  // namespace graphrun::test
