#include "session/stopping.h"

#include <algorithm>
#include <cmath>

#include "graph/frontend/model_check.h"

namespace graphrun {

Stopping::Watch Stopping::watch_of(const Model& model, const Monitor& monitor, const Metrics& metrics) {
  Watch watch{&monitor, 0, monitor_rises(model, monitor).value_or(false)};
  for (std::size_t i = 0; i < metrics.values.size(); ++i) {
    if (monitor.monitor != "loss" && metrics.values[i].first == monitor.monitor) watch.metric = i + 1;
  }
  return watch;
}

Stopping::Stopping(const Model& model, const Metrics& metrics) {
  const TrainSpec& train = model.train;
  if (train.early_stopping) stopping_ = watch_of(model, *train.early_stopping, metrics);
  if (!train.lr_plateau) return;
  lr_ = &*train.lr_plateau;
  plateau_ = watch_of(model, *lr_, metrics);
}

bool Stopping::observe(const Watch& watch, MonitorState& state, const Metrics& metrics) {
  const double value = watch.metric == 0 ? metrics.loss : metrics.values[watch.metric - 1].second;
  const double gain = watch.more ? value - state.best : state.best - value;
  if (std::isfinite(value) && (!state.seen || gain > watch.monitor->min_delta)) {
    state = {true, value, 0};
    return true;
  }
  ++state.waited;
  return false;
}

Stopping::Decision Stopping::see(const Metrics& metrics, std::int64_t epoch, std::uint64_t step) {
  Decision decision;
  if (stopping_.monitor != nullptr) {
    decision.is_best = observe(stopping_, state.stopping, metrics);
    if (decision.is_best) state.best = {state.stopping.best, epoch, step};
    decision.stops = state.stopping.waited >= static_cast<std::uint64_t>(stopping_.monitor->patience);
  }
  if (lr_ != nullptr) {
    observe(plateau_, state.plateau, metrics);
    if (state.cooldown > 0) {
      --state.cooldown;
      state.plateau.waited = 0;
    }
    if (state.plateau.waited >= static_cast<std::uint64_t>(lr_->patience)) {
      const double lower = std::max(state.lr_factor * lr_->factor, lr_->min_factor);
      decision.lowers_lr = lower < state.lr_factor;
      state.lr_factor = std::min(lower, state.lr_factor);
      state.plateau.waited = 0;
      state.cooldown = static_cast<std::uint64_t>(lr_->cooldown);
    }
  }
  return decision;
}

}  // namespace graphrun
