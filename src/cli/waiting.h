// waiting.h: says what takes so long, when it takes longer than a second.
// Contract: one line on stderr, a second after the constructor, unless the destructor came first or stderr is not to be
// talked to. Where no thread can be had for it nothing is said.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "diagnostics.h"

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
  Waiting(Diagnostics& diagnostics, std::string text) {
    if (!diagnostics.chatty()) return;
    ticker_.start(1, [&diagnostics, text = std::move(text)] {
      diagnostics.note(text);
      return -1.0;
    });
  }

 private:
  Ticker ticker_;
};

}  // namespace graphrun::cli
