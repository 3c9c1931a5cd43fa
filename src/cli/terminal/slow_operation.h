// slow_operation.h: reports an operation that takes longer than a second.
// Contract: prints a line to stderr from one second after the constructor until the destructor, at growing intervals.
// Prints nothing if stderr messages are disabled or no thread can be started.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "cli/command_line/diagnostics.h"
#include "graphrun/model.h"

namespace graphrun::cli {

// Calls a function periodically in its own thread until destroyed. Each call returns the seconds until the next call,
// or a negative number to stop.
class PeriodicTimer {
 public:
  PeriodicTimer() = default;
  ~PeriodicTimer() { stop(); }
  PeriodicTimer(const PeriodicTimer&) = delete;
  PeriodicTimer& operator=(const PeriodicTimer&) = delete;

  void start(double first, std::function<double()> tick);  // call once; `first`: seconds until the first call
  void stop();                                             // no call is running afterwards

 private:
  void run(double wait);

  std::function<double()> tick_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::atomic<bool> started_{false};  // the thread has entered run()
  std::thread thread_;
};

// Interval to the next line. Grows with the elapsed time, so that logs stay short.
inline double until_next_line(double seconds) {
  return std::max(1.0, seconds / 4);
}

class SlowOperationNotice {
 public:
  SlowOperationNotice(Diagnostics& diagnostics, std::string what);

  void report(std::string_view what, double done);  // OnProgress callback, valid while this object exists
  OnProgress progress() {
    return [this](std::string_view what, double done) { report(what, done); };
  }

 private:
  double tick();

  Diagnostics& diagnostics_;
  std::mutex mutex_;
  std::string what_;
  double done_ = -1;     // fraction; negative: unknown
  double waited_ = 1;    // elapsed seconds at the next line
  PeriodicTimer timer_;  // last member: its thread uses the others
};

}  // namespace graphrun::cli
