// stopping.h: when a training ends early or lowers its learning rate, by evaluations of `validation`.
// Contract: plain numbers in, a decision out, no clock: the same evaluations give the same decisions. What a training
// that goes on needs to know is StoppingState and, with restore_best, the parameters of the best evaluation, which
// Session::Impl keeps (`best`); the factor also lies in the program's state train/lr:factor.
#pragma once

#include <cstdint>
#include <optional>

#include "graphrun/session.h"

namespace graphrun {

struct MonitorState {
  std::uint64_t seen = 0;    // 1: there was a finite value
  double best = 0;           // of those
  std::uint64_t waited = 0;  // evaluations since
};

struct StoppingState {
  MonitorState stopping, plateau;
  std::uint64_t best_step = 0, best_epoch = 0;  // of early_stopping, once stopping.seen
  std::uint64_t cooldown = 0;                   // evaluations that the plateau will not count
  double lr_factor = 1;
};

class Stopping {
 public:
  // `metrics` as evaluate() will give them: the place of what is monitored is looked up here. `state` is gone on with.
  Stopping(const Model& model, const Metrics& metrics, StoppingState& state);

  struct Decision {
    bool is_best = false;    // of early_stopping: keep these parameters
    bool stops = false;      // now
    bool lowers_lr = false;  // state.lr_factor has changed
  };
  Decision see(const Metrics& metrics, std::int64_t epoch, std::uint64_t step);

  bool stops() const;  // by what it has seen so far
  Best best() const;

 private:
  struct Watch {
    const Monitor* monitor = nullptr;  // null: the model has none
    std::size_t metric = 0;            // 0: the loss, else its number from 1 on
    bool more = false;
  };
  static Watch watch_of(const Model& model, const Monitor& monitor, const Metrics& metrics);
  // Whether it is better.
  static bool observe(const Watch& watch, MonitorState& state, const Metrics& metrics);

  Watch stopping_, plateau_;
  const LrPlateau* lr_ = nullptr;
  StoppingState& state_;
};

}  // namespace graphrun
