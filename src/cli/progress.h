// progress.h: how far the training is, on stderr.
// Contract: on a terminal one line that is rewritten in place with a carriage return (no escape codes), at most ten
// times a second; elsewhere a line for each report that is due. finish() leaves the cursor at the start of a fresh
// line. After the first report nothing is allocated: --assert-no-alloc counts ours too.
#pragma once

#include <fmt/format.h>

#include <chrono>

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

  void describe(const Report& report);
  void rewrite();

  bool enabled_;
  bool in_place_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_{};
  fmt::memory_buffer line_;        // of the latest report
  fmt::memory_buffer validation_;  // its part about validation, kept until the next evaluation
  bool pending_ = false;           // the line was too soon to be drawn
  std::size_t shown_ = 0;          // bytes of the line on the screen
};

}  // namespace graphrun::cli
