// progress.h: training progress on stderr.
// Contract: on a terminal, rewrites one line in place with a carriage return (no escape codes), at most ten times per
// second, and omits the parts that do not fit. 80 columns fit everything but the metrics. Elsewhere prints a line per
// due report, at most kLines if the model sets no interval. Before the first report, prints the step count after about
// a second. finish() leaves the cursor at the start of a new line. Allocates nothing after the constructor, since
// --assert-no-alloc counts these calls too. The session must outlive it.
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
  void describe(const Report& report, std::size_t room);  // `room`: in bytes
  // Returns whether everything but the metrics fit.
  bool describe(const Report& report, std::size_t room, bool in_short);
  bool describe_validation(std::int64_t epoch, std::size_t room, int digits);
  bool append(std::string_view part, std::size_t room);
  double elapsed() const { return Profiler::now() - start_; }
  void rewrite();

  const Session& session_;
  const bool enabled_, in_place_, sparse_;
  const std::uint64_t steps_an_epoch_;
  const std::uint64_t first_step_;  // greater than 0 after resuming from a checkpoint
  double start_ = Profiler::now(), drawn_ = 0;
  std::mutex drawing_;          // the timer's thread also draws
  fmt::memory_buffer line_;     // latest report
  fmt::memory_buffer part_;     // one part of the line; then the line as drawn
  Metrics validation_;          // most recent
  std::int64_t evaluated_ = 0;  // epoch of validation_
  std::int64_t printed_ = 0;    // number of lines, at most kLines
  bool reported_ = false;
  bool pending_ = false;   // the latest line was rate-limited and is not drawn yet
  std::size_t shown_ = 0;  // bytes of the visible line
  PeriodicTimer timer_;    // last member: its thread uses the others
};

}  // namespace graphrun::cli
