// stopping.h: early stopping and learning-rate plateaus, based on evaluations of `validation`.
// Contract: depends on metrics only, not on time: equal evaluations give equal decisions. Resuming needs StoppingState
// and, with restore_best, the parameters of the best evaluation, which TrainerState keeps. The program state
// train/lr:factor also stores the factor.
#pragma once

#include <cstdint>

#include "graphrun/session.h"

namespace graphrun {

struct MonitorState {
  std::uint64_t seen = 0;    // 1: a finite value occurred
  double best = 0;           // best finite value
  std::uint64_t waited = 0;  // evaluations since the best
};

struct StoppingState {
  MonitorState stopping, plateau;
  std::uint64_t best_step = 0, best_epoch = 0;  // for early_stopping; valid once stopping.seen
  std::uint64_t cooldown = 0;                   // evaluations that the plateau still ignores
  double lr_factor = 1;
};

class Stopping {
 public:
  // `metrics`: as returned by evaluate(), to look up the monitored metric. Continues from `state`.
  Stopping(const Model& model, const Metrics& metrics, StoppingState& state);

  struct Decision {
    bool is_best = false;    // early_stopping: keep these parameters
    bool stops = false;      // stop now
    bool lowers_lr = false;  // state.lr_factor has changed
  };
  Decision see(const Metrics& metrics, std::int64_t epoch, std::uint64_t step);

  bool stops() const;  // after the evaluations so far
  Best best() const;

 private:
  struct Watch {
    const Monitor* monitor = nullptr;  // null: not configured
    std::size_t metric = 0;            // 0: the loss; else the metric's number from 1
    bool more = false;
  };
  static Watch watch_of(const Model& model, const Monitor& monitor, const Metrics& metrics);
  // Returns whether the value improved.
  static bool observe(const Watch& watch, MonitorState& state, const Metrics& metrics);

  Watch stopping_, plateau_;
  const LrPlateau* lr_ = nullptr;
  StoppingState& state_;
};

}  // namespace graphrun
