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

Stopping::Stopping(const Model& model, const Metrics& metrics, StoppingState& state) : state_(state) {
  const TrainSpec& train = model.train;
  if (train.early_stopping) stopping_ = watch_of(model, *train.early_stopping, metrics);
  if (!train.lr_plateau) return;
  lr_ = &*train.lr_plateau;
  plateau_ = watch_of(model, *lr_, metrics);
}

bool Stopping::observe(const Watch& watch, MonitorState& state, const Metrics& metrics) {
  const double value = watch.metric == 0 ? metrics.loss : metrics.values[watch.metric - 1].second;
  const double gain = watch.more ? value - state.best : state.best - value;
  if (std::isfinite(value) && (state.seen == 0 || gain > watch.monitor->min_delta)) {
    state = {1, value, 0};
    return true;
  }
  ++state.waited;
  return false;
}

Stopping::Decision Stopping::see(const Metrics& metrics, std::int64_t epoch, std::uint64_t step) {
  Decision decision;
  if (stopping_.monitor != nullptr) {
    decision.is_best = observe(stopping_, state_.stopping, metrics);
    if (decision.is_best) {
      state_.best_epoch = static_cast<std::uint64_t>(epoch);
      state_.best_step = step;
    }
    decision.stops = stops();
  }
  if (lr_ == nullptr) return decision;
  observe(plateau_, state_.plateau, metrics);
  if (state_.cooldown > 0) {
    --state_.cooldown;
    state_.plateau.waited = 0;
  }
  if (state_.plateau.waited < static_cast<std::uint64_t>(lr_->patience)) return decision;
  const double lower = std::max(state_.lr_factor * lr_->factor, lr_->min_factor);
  decision.lowers_lr = lower < state_.lr_factor;
  state_.lr_factor = std::min(lower, state_.lr_factor);
  state_.plateau.waited = 0;
  state_.cooldown = static_cast<std::uint64_t>(lr_->cooldown);
  return decision;
}

bool Stopping::stops() const {
  return stopping_.monitor != nullptr &&
         state_.stopping.waited >= static_cast<std::uint64_t>(stopping_.monitor->patience);
}

Best Stopping::best() const {
  return {state_.stopping.best, static_cast<std::int64_t>(state_.best_epoch), state_.best_step};
}

}  // namespace graphrun
