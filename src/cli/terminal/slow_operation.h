// slow_operation.h: says what takes so long, when it takes longer than a second.
// Contract: a line on stderr each second after the constructor, later ever more rarely, until the destructor; none
// where stderr is not to be talked to, or no thread can be had for it.
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

// Calls a function again and again in a thread of its own, for as long as it lives. Each call returns the seconds until
// the next, or less than 0 for no other.
class PeriodicTimer {
 public:
  PeriodicTimer() = default;
  ~PeriodicTimer() { stop(); }
  PeriodicTimer(const PeriodicTimer&) = delete;
  PeriodicTimer& operator=(const PeriodicTimer&) = delete;

  void start(double first, std::function<double()> tick);  // once; the first call after so many seconds
  void stop();                                             //  // no call is under way afterwards

 private:
  void run(double wait);

  std::function<double()> tick_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::atomic<bool> started_{false};  // the thread has come to run()
  std::thread thread_;
};

// Seconds until the next line about something that has taken so long: a log does not grow with time.
inline double until_next_line(double seconds) {
  return std::max(1.0, seconds / 4);
}

class SlowOperationNotice {
 public:
  SlowOperationNotice(Diagnostics& diagnostics, std::string what);

  void report(std::string_view what, double done);  // OnProgress, for as long as this lives
  OnProgress progress() {
    return [this](std::string_view what, double done) { report(what, done); };
  }

 private:
  double tick();

  Diagnostics& diagnostics_;
  std::mutex mutex_;
  std::string what_;
  double done_ = -1;     // a share; below 0: not known
  double waited_ = 1;    // seconds, when the next line is told
  PeriodicTimer timer_;  // the last member: it uses the others
};

}  // namespace graphrun::cli
