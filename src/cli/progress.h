// progress.h: how far the training is, on stderr.
// Contract: on a terminal one line that is rewritten in place with a carriage return (no escape codes), at most ten
// times a second; elsewhere a line for each report. finish() leaves the cursor at the start of a fresh line.
#pragma once

#include <chrono>
#include <string>

#include "graphrun/session.h"

namespace graphrun::cli {

class Progress {
 public:
  explicit Progress(bool enabled);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void report(const Report& report);
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  std::string describe(const Report& report) const;
  void rewrite(std::string line);

  bool enabled_;
  bool in_place_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_{};
  std::string latest_;     // of a report that was too soon to be drawn
  std::size_t shown_ = 0;  // bytes of the line on the screen
};

}  // namespace graphrun::cli
