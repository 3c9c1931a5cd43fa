// progress.h: how far the training is, on stderr.
// Contract: on a terminal one line that is rewritten in place with a carriage return (no escape codes), at most ten
// times a second, with as many of its parts as the screen has room for, which 80 columns have for all but the metrics;
// elsewhere a line for each report that is due, kLines at most where the model does not say how often. Until the first
// report the steps so far are told, from a second on. finish() leaves the cursor at the start of a fresh line. After
// the constructor nothing is allocated:
// --assert-no-alloc counts ours too. The session outlives it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <mutex>
#include <string_view>

#include "cli/terminal/slow_operation.h"
#include "graphrun/session.h"

namespace graphrun::cli {

class Progress {
 public:
  Progress(bool enabled, const Session& session);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void report(const Report& report);
  void finish();

 private:
  static constexpr std::int64_t kLines = 20;

  double tick();
  bool is_due(const Report& report);
  void describe(const Report& report, std::size_t room);  // in bytes
  // Whether there was room for all but the metrics.
  bool describe(const Report& report, std::size_t room, bool in_short);
  bool describe_validation(std::int64_t epoch, std::size_t room, int digits);
  bool append(std::string_view part, std::size_t room);
  double elapsed() const { return Profiler::now() - start_; }
  void rewrite();

  const Session& session_;
  const bool enabled_, in_place_, sparse_;
  const std::uint64_t steps_an_epoch_;
  const std::uint64_t first_step_;  // those before are of the checkpoint it goes on from
  double start_ = Profiler::now(), drawn_ = 0;
  std::mutex drawing_;          // the ticker's thread says something too
  fmt::memory_buffer line_;     // of the latest report
  fmt::memory_buffer part_;     // of it; then the line as it is drawn
  Metrics validation_;          // the latest
  std::int64_t evaluated_ = 0;  // the epoch after which that was
  std::int64_t printed_ = 0;    // of kLines
  bool reported_ = false;
  bool pending_ = false;   // the line was too soon to be drawn
  std::size_t shown_ = 0;  // bytes of the line on the screen
  PeriodicTimer timer_;    // the last member: it uses the others
};

}  // namespace graphrun::cli
