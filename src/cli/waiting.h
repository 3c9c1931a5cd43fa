// waiting.h: says what takes so long, when it takes longer than a second.
// Contract: a line on stderr a second after the constructor, and again after 2, 4, 8, ... seconds, until the
// destructor; none where stderr is not to be talked to, or no thread can be had for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "diagnostics.h"
#include "graphrun/model.h"

namespace graphrun::cli {

// Calls a function again and again in a thread of its own, for as long as it lives. Each call returns the seconds until
// the next, or less than 0 for no other.
class Ticker {
 public:
  Ticker() = default;
  ~Ticker() { stop(); }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

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

class Waiting {
 public:
  Waiting(Diagnostics& diagnostics, std::string what);

  void tell(std::string_view what, double done);  // OnProgress, for as long as this lives
  OnProgress progress() {
    return [this](std::string_view what, double done) { tell(what, done); };
  }

 private:
  double tick();

  Diagnostics& diagnostics_;
  std::mutex mutex_;
  std::string what_;
  double done_ = -1;  // a share; below 0: not known
  double wait_ = 1;   // seconds until the next line
  Ticker ticker_;     // the last member: it uses the others
};

}  // namespace graphrun::cli
