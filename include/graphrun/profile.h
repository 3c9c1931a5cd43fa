// profile.h: time profile of a run: a row per name, and single events for a timeline.
// Contract: all times are seconds. `source` names the clock and, if a better one exists, why it was not used. A
// Profiler belongs to one thread at a time; add() allocates nothing. Not here: timing (the executors), output (the
// CLI).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/export.h"

namespace graphrun {

enum class Profiling {
  off,
  on,        // best available means
  own_clock  // without a vendor's library
};

struct ProfileRow {
  std::string group;  // "API calls", "GPU activities", "steps of train"
  std::string name;
  std::uint64_t calls = 0;
  double total = 0, min = 0, max = 0;
};

struct ProfileEvent {
  std::uint32_t row = 0;
  double start = 0, duration = 0;  // start: since the profile began
};

struct Profile {
  std::string source;
  std::vector<std::string> notes;  // caveats, such as "only some steps were timed"
  std::vector<ProfileRow> rows;
  std::vector<ProfileEvent> events;  // the first ones; rows count all
  std::uint64_t events_left_out = 0;
};

// Collects a Profile.
class GRAPHRUN_API Profiler {
 public:
  static double now();  // steady clock, in seconds

  Profiler();
  double begin() const { return begin_; }                            // now() at construction
  std::uint32_t row(std::string_view group, std::string_view name);  // finds or adds the row
  void add(std::uint32_t row, double start, double duration);        // start: a value of now()

  // Rows with calls, longest first within a group. Groups come in the order of their first row, `last` at the end.
  Profile take(std::string source, std::string_view last = {}) const;

 private:
  double begin_;
  Profile profile_;
};

// For executors that run a step's kernels one after another on the host: times every kEvery-th step kernel by kernel,
// to keep the clock's overhead small for kernels of a few dozen nanoseconds.
class GRAPHRUN_API StepClock {
 public:
  static constexpr std::uint64_t kEvery = 16;

  void add_phase(std::string_view name, const std::vector<std::string_view>& kernels);  // in the order of phases
  bool due(std::size_t phase) { return phases_[phase].steps++ % kEvery == 0; }
  // Calls run(i) for each kernel of the phase.
  template <class Run>
  void step(std::size_t phase, Run run) {
    double before = Profiler::now();
    const std::vector<std::uint32_t>& rows = phases_[phase].rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      run(i);
      const double after = Profiler::now();
      profiler_.add(rows[i], before, after - before);
      before = after;
    }
  }
  Profile profile() const;

 private:
  struct Timed {
    std::string name;
    std::vector<std::uint32_t> rows;  // one per kernel
    std::uint64_t steps = 0;
  };
  Profiler profiler_;
  std::vector<Timed> phases_;
};

}  // namespace graphrun
