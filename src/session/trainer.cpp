#include "session/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/library/optimizers.h"
#include "graph/frontend/library/schedules.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"
#include "session/not_finite.h"
#include "session/ranks/agreement.h"
#include "session/statistics.h"
#include "session/stopping.h"

namespace graphrun {
namespace {

constexpr std::uint64_t kLossesAtOnce = std::uint64_t{1} << 24;  // 128 MiB, committed as they are used

// Steps at which the loop returns to the host: multiples of each number; 0: never.
struct Pauses {
  std::uint64_t log = 0, evaluate = 0, watch = 0, total = 0;
  std::uint64_t spaced = 0;  // steps per epoch, if reports follow epochs 1, 2, 5, 10, ...

  std::uint64_t after(std::uint64_t step) const {
    std::uint64_t next = total;
    for (const std::uint64_t every : {log, evaluate, watch}) {
      if (every > 0) next = std::min(next, (step / every + 1) * every);
    }
    return spaced > 0 ? std::min(next, next_spaced(step / spaced) * spaced) : next;
  }
  bool at(std::uint64_t step) const { return step > 0 && (logs(step) || evaluates(step) || watches(step)); }
  bool logs(std::uint64_t step) const {
    return is_multiple(step, log) || step == total ||
           (is_multiple(step, spaced) && next_spaced(step / spaced - 1) == step / spaced);
  }
  bool evaluates(std::uint64_t step) const { return is_multiple(step, evaluate); }
  bool watches(std::uint64_t step) const { return is_multiple(step, watch); }

 private:
  static std::uint64_t next_spaced(std::uint64_t epoch) {
    std::uint64_t ten = 1;
    while (5 * ten <= epoch) ten *= 10;
    return epoch < ten ? ten : epoch < 2 * ten ? 2 * ten : 5 * ten;
  }
  static bool is_multiple(std::uint64_t step, std::uint64_t every) { return every > 0 && step % every == 0; }
};

std::uint64_t total_steps(std::int64_t epochs, std::uint64_t batches) {
  if (batches > 0 && static_cast<std::uint64_t>(epochs) > (std::uint64_t{1} << 62) / batches) {
    throw Error(ErrorKind::input, "train.steps",
                fmt::format("{} epochs of {} steps are more than can be counted", epochs, batches));
  }
  return static_cast<std::uint64_t>(epochs) * batches;
}

Pauses pauses_of(const TrainSpec& train, std::uint64_t batches, bool validation, std::uint64_t watch) {
  Pauses pauses;
  pauses.total = total_steps(train.epochs, batches);
  // Events after the end of training never occur.
  const auto steps = [&](std::int64_t epochs) {
    return epochs > train.epochs ? 0 : static_cast<std::uint64_t>(epochs) * batches;
  };
  const auto in_reach = [&](std::uint64_t every) { return every > pauses.total ? 0 : every; };
  if (train.log_spaced) pauses.spaced = batches;
  if (!train.log_spaced)
    pauses.log = steps(train.log_every > 0 ? train.log_every : train.epochs / 200 + (train.epochs % 200 != 0));
  if (validation) {
    const bool goes_by_it = train.early_stopping || train.lr_plateau;
    pauses.evaluate = train.evaluate_every_steps > 0 ? in_reach(static_cast<std::uint64_t>(train.evaluate_every_steps))
                                                     : steps(std::max<std::int64_t>(train.evaluate_every, goes_by_it));
  }
  pauses.watch = in_reach(watch);
  return pauses;
}

// Learning rate of one optimizer, without the factor of lr_plateau.
struct Rate {
  double number = 0;
  std::function<double(double, double)> schedule = {};
  ir::NodeId state = ir::kNoNode;  // a runtime hyperparameter

  double at(std::uint64_t step, std::uint64_t batches, const CompiledModel& compiled, Runnable& runnable) const {
    if (state == ir::kNoNode)
      return schedule ? schedule(static_cast<double>(step), static_cast<double>(batches)) : number;
    return compiled.read_number(runnable, state);
  }
};

std::vector<Rate> rates_of(const Model& model, const CompiledModel& compiled) {
  std::vector<Rate> rates;
  for (const ObjectiveSpec& one : objectives_of(model)) {
    if (is_joint(one.optimizer)) continue;
    Rate rate;
    for (const auto& [name, value] : one.optimizer.attributes)
      if (name == "lr") rate.number = value;
    if (one.optimizer.lr) rate.schedule = schedule_formula(*one.optimizer.lr);
    const std::string state = fmt::format("train:{}{}lr", one.name, one.name.empty() ? "" : ".");
    for (const auto& [node, start] : compiled.step.runtime)
      if (compiled.step.graph[node].name == state) rate.state = node;
    rates.push_back(std::move(rate));
  }
  return rates;
}

// Restricts cancel() to the train() in progress.
class Cancellable {
 public:
  Cancellable(std::atomic<bool>& in_train, std::atomic<bool>& cancelled) : in_train_(in_train), cancelled_(cancelled) {
    in_train_.store(true, std::memory_order_relaxed);
  }
  ~Cancellable() {
    in_train_.store(false, std::memory_order_relaxed);
    cancelled_.store(false, std::memory_order_relaxed);
  }

 private:
  std::atomic<bool>& in_train_;
  std::atomic<bool>& cancelled_;
};

}  // namespace

Trainer::Trainer(LoadedModel& loaded, Evaluator& evaluator, const std::vector<std::string>& watch)
    : loaded_(loaded), evaluator_(evaluator) {
  const Program& program = loaded_.program();
  const TrainSpec& train = loaded_.model.train;
  for (const std::string& name : watch) {
    const BufferId in_step = loaded_.compiled.find("train/" + name);
    const BufferId id = in_step == kNoBuffer ? loaded_.compiled.find(name) : in_step;
    if (id == kNoBuffer)
      throw Error(ErrorKind::input, "watch.simplified", fmt::format("'{}' was simplified away", name),
                  "--no-passes leaves the graph as it was built");
    if (train.shards > 1 && program.buffers[id].type.rows > 0)
      throw Error(ErrorKind::input, "watch.shards",
                  fmt::format("'{}' has a row for each sample, and each shard has its own", name),
                  "watch a value without rows, or train without --shards");
    watched_.push_back({id, std::vector<std::byte>(program.buffers[id].type.bytes())});
    watched_names_.push_back(name);
  }
  watched_statistics_.resize(watched_.size());
  if (train.early_stopping && train.early_stopping->restore_best)
    state_.best = StateCopy(program, parameters_of(program));
  if (const auto index = loaded_.phase_index("train"))
    state_.objectives.resize(loaded_.phases()[*index].recorded.size() - 1);
  prepare_state();
}

TrainResult Trainer::train(const TrainOptions& options) {
  const std::size_t index = loaded_.training();
  const TrainSpec& train = loaded_.model.train;
  Runnable& runnable = *loaded_.runnable;
  const std::uint64_t& done = loaded_.done[index];
  TrainingProgress& progress = state_.progress;
  const StepPhase& phase = loaded_.phases()[index];
  const std::uint64_t batches = loaded_.steps_of_epoch();
  const std::optional<std::size_t> validation = evaluator_.phase_of("validation");
  const std::uint64_t watch_every = watched_.empty() ? 0 : options.watch_every;
  const Pauses pauses = pauses_of(train, batches, validation.has_value(), watch_every);
  const std::uint64_t total = pauses.total;
  const std::uint64_t ring = static_cast<std::uint64_t>(phase.ring);

  if (loaded_.communicator != nullptr) {  // all ranks begin with the state of rank 0, which may have been resumed
    std::vector<std::byte> state(saved_bytes_);
    if (loaded_.communicator->rank() == 0) save_state(state);
    loaded_.communicator->broadcast(state);
    if (loaded_.communicator->rank() != 0) load_state(state);
  }
  TrainResult result;
  if (std::exchange(state_.resumes, false)) {
    result.first_step = result.steps = done;
    result.epochs = static_cast<std::int64_t>(result.steps / batches);
  } else {
    progress = {};
    std::fill(state_.objectives.begin(), state_.objectives.end(), EpochMean{});
  }
  StopCause cause = StopCause::none;
  if (phase.stop_ring != ir::kNoNode) cause = stop_cause(result.first_step == 0);
  // Formatted here, because nothing may allocate after the first step.
  std::string reached = train.stop_at ? fmt::format("loss at most {}", train.stop_at->loss) : std::string();
  std::string stalled = "no further descent", lost = "the gradient is not a number: start at other values";
  std::string flat = train.stop_at ? fmt::format("gradient at most {}", train.stop_at->gradient) : std::string();
  const std::uint64_t to_do = total - std::min(total, result.steps);
  if (options.keep_losses) result.losses.reserve(static_cast<std::size_t>(std::min(to_do, kLossesAtOnce)));
  std::vector<double> losses;  // one per step of the chunk
  losses.reserve(static_cast<std::size_t>(ring));
  Metrics metrics = validation ? evaluator_.named_metrics(*validation) : Metrics{};
  Stopping stopping(loaded_.model, metrics, progress.stopping);
  result.stopped_early = stopping.stops() || cause != StopCause::none;
  std::optional<GoodStates> good;
  // A trace reads rows, and each shard has its own.
  if (options.trace_not_finite && train.shards == 1)
    good.emplace(loaded_.program(), loaded_.buffer(phase.counter), runnable, done);
  GoodStates* const traced = good ? &*good : nullptr;
  const std::vector<Rate> rates = rates_of(loaded_.model, loaded_.compiled);
  std::vector<double> means(state_.objectives.size()), lr(rates.size()),
      numbers(loaded_.compiled.step.optimizer.size());
  // Divisions per step would take longer than the steps of a small network.
  const Batches sizes = phase.batches;
  const auto full_batch = static_cast<double>(sizes.capacity);
  const auto last_batch = static_cast<double>(sizes.samples() - (sizes.count() - 1) * sizes.capacity);
  const auto add_to = [&](EpochMean& mean, std::uint64_t step, float loss) {
    const bool is_last = batches == 1 || (step + 1) % batches == 0;
    mean.add(static_cast<double>(loss), is_last ? last_batch : full_batch, is_last);
  };
  written_ = false;
  const Cancellable cancellable(loaded_.in_train, loaded_.cancelled);

  // Makes the reports due after this step. Returns false, without reporting, if its evaluation was cancelled.
  const auto tell = [&] {
    Report report;
    report.epoch = result.epochs;
    report.epochs = train.epochs;
    report.step = result.steps;
    report.loss = progress.epoch.mean;
    for (std::size_t i = 0; i < means.size(); ++i) means[i] = state_.objectives[i].mean;
    report.objectives = means;
    report.seconds = result.seconds;
    report.steps_per_second =
        result.seconds > 0 ? static_cast<double>(result.steps - result.first_step) / result.seconds : 0;
    for (std::size_t i = 0; i < lr.size(); ++i)
      lr[i] = rates[i].at(result.steps - 1, batches, loaded_.compiled, runnable) * progress.stopping.lr_factor;
    report.lr = lr;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = loaded_.read_scalar(loaded_.compiled.step.optimizer[i].second);
    report.optimizer = numbers;
    if (pauses.evaluates(result.steps)) {
      if (!evaluator_.evaluate(*validation, metrics)) return false;
      report.validation = &metrics;
      const Stopping::Decision decision = stopping.see(metrics, result.epochs, result.steps);
      const bool is_lowest = metrics.loss < progress.best_loss;
      if (is_lowest) progress.best_loss = metrics.loss;
      if (train.early_stopping ? decision.is_best : is_lowest) progress.best_step = result.steps;
      if (decision.is_best) state_.best.take(runnable);
      if (decision.lowers_lr) write_lr_factor(progress.stopping.lr_factor);
      result.stopped_early = decision.stops || cause != StopCause::none;
    }
    report.due = pauses.logs(result.steps) || result.stopped_early;
    report.lr_factor = progress.stopping.lr_factor;
    if (watch_every == 0 || pauses.watches(result.steps)) see_watched(report);
    if (options.hash_weights) report.weights = loaded_.hash_parameters(kForever);
    progress.unreported = 0;
    if (options.on_report) options.on_report(report);
    return true;
  };

  for (bool first = true;; first = false) {
    loaded_.ranks_cancelled =
        agreed_cancel(loaded_.communicator.get(), loaded_.cancelled.load(std::memory_order_relaxed), done);
    const bool tells = progress.unreported != 0 && (pauses.at(result.steps) || cause != StopCause::none);
    const bool told = !tells || tell();
    const auto ends = [&] { return !told || result.steps >= total || result.stopped_early || loaded_.is_cancelled(); };
    const auto at_step_end = [&](bool last) {
      // Training ends with finite parameters or throws.
      if (last && result.steps > result.first_step && !loaded_.parameters_finite())
        reject_not_finite(traced, done - 1, {});
      // In the first iteration, only after a pending report: its evaluation may be the best.
      if (options.on_step_end && (!first || tells))
        options.on_step_end({result.steps, batches, progress.best_step == result.steps, last});
      return last;
    };
    if (!first && options.on_first_step && result.steps == result.first_step + 1) options.on_first_step();
    if (at_step_end(ends())) break;
    if (ends() && at_step_end(true)) break;  // the callback cancelled
    std::uint64_t most = std::min(pauses.after(result.steps) - result.steps, ring);
    if (const std::uint64_t every = options.step_end_every; every > 0)
      most = std::min(most, every - result.steps % every);
    // A step is traced from its initial states, including changes made by callbacks.
    if (good && std::exchange(written_, false) && !good->look(runnable, done)) reject_not_finite(traced, done - 1, {});
    const bool alone = first && options.on_first_step;
    std::uint64_t n = agreed_number(loaded_.communicator.get(), alone ? 1 : loaded_.steps_per_poll(index, most));
    const double before = Profiler::now();
    loaded_.run(index, n);
    result.seconds += Profiler::now() - before;
    losses.clear();
    if (phase.stop_ring != ir::kNoNode) {
      std::uint64_t unchanged = 0;  // steps after the one that stopped
      loaded_.observe(index, phase.stop_ring, n, [&](std::uint64_t, float value) {
        if (cause != StopCause::none) ++unchanged;
        cause = static_cast<StopCause>(value);
      });
      if (unchanged > 0) loaded_.set_done(index, done - unchanged);
      n -= unchanged;
      result.stopped_early = cause != StopCause::none;
    }
    loaded_.observe(index, phase.recorded[0].ring, n, [&](std::uint64_t step, float value) {
      if (!losses.empty() && !std::isfinite(losses.back())) return;
      losses.push_back(static_cast<double>(value));
      add_to(progress.epoch, step, value);
    });
    if (options.on_losses) options.on_losses(losses);
    if (!std::isfinite(losses.back())) reject_not_finite(traced, done - n + losses.size() - 1, losses.back());
    for (std::size_t i = 0; i < state_.objectives.size(); ++i) {
      loaded_.observe(index, phase.recorded[i + 1].ring, n,
                      [&](std::uint64_t step, float value) { add_to(state_.objectives[i], step, value); });
    }
    if (options.keep_losses) result.losses.insert(result.losses.end(), losses.begin(), losses.end());
    result.steps += n;
    result.epochs = static_cast<std::int64_t>(result.steps / batches);
    progress.unreported = 1;
    if (good && good->due() && !good->look(runnable, done)) reject_not_finite(traced, done - 1, {});
  }
  if (cause == StopCause::loss) result.stopped = std::move(reached);
  if (cause == StopCause::no_descent) {
    const bool finite = std::ranges::all_of(loaded_.compiled.step.optimizer, [&](const auto& number) {
      return std::isfinite(loaded_.read_scalar(number.second));
    });
    result.stopped = std::move(finite ? stalled : lost);
  }
  if (cause == StopCause::gradient) result.stopped = std::move(flat);
  result.cancelled = result.steps < total && !result.stopped_early;
  result.lr_factor = progress.stopping.lr_factor;
  if (progress.stopping.stopping.seen != 0) {
    result.best = stopping.best();
    result.restored = !state_.best.buffers().empty();
    state_.best.put(runnable);
  }
  return result;
}

std::uint64_t Trainer::run_until(std::chrono::steady_clock::time_point deadline, std::uint64_t max_steps) {
  if (loaded_.communicator != nullptr)
    throw Error(ErrorKind::input, "ranks.clock", "ranks have no common clock for run_until()",
                "advance() runs a number of steps");
  const std::size_t index = loaded_.training();
  std::uint64_t ran = 0;
  while (ran < max_steps) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) break;
    const double left = std::chrono::duration<double>(deadline - now).count();
    const double fastest = loaded_.fastest_step(index);
    std::uint64_t steps = 1;
    if (fastest > 0) {
      const double fitting = left / fastest;
      if (fitting < 1) break;
      // Use half of them: other steps may take longer than the fastest.
      steps = static_cast<std::uint64_t>(std::clamp(fitting / 2, 1.0, 1e15));
      steps = std::min(steps, loaded_.steps_per_poll(index, steps));
    }
    steps = std::min(steps, max_steps - ran);
    loaded_.run(index, steps);
    ran += steps;
  }
  return ran;
}

void Trainer::see_watched(Report& report) {
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    Watched& one = watched_[i];
    loaded_.runnable->read(one.buffer, one.bytes);
    watched_statistics_[i] = statistics(loaded_.program().buffers[one.buffer].type.dtype, one.bytes);
  }
  report.watched = watched_statistics_;
}

StopCause Trainer::stop_cause(bool reset) {
  if (reset) loaded_.compiled.write_number(*loaded_.runnable, loaded_.compiled.step.stop, 0);
  return static_cast<StopCause>(loaded_.compiled.read_number(*loaded_.runnable, loaded_.compiled.step.stop));
}

void Trainer::write_lr_factor(double factor) {
  loaded_.compiled.write_number(*loaded_.runnable, loaded_.compiled.step.lr_factor, factor);
  written_ = true;
}

std::uint64_t Trainer::first_nonfinite_step(GoodStates& good, std::uint64_t last) {
  const std::size_t index = loaded_.training();
  const auto go_to = [&](std::uint64_t step) {
    good.put(*loaded_.runnable);
    loaded_.set_done(index, good.step());
    while (loaded_.done[index] < step)
      loaded_.run(index,
                  std::min(step - loaded_.done[index], static_cast<std::uint64_t>(loaded_.phases()[index].ring)));
    return good.look(*loaded_.runnable, step);
  };
  if (go_to(last)) return last;
  std::uint64_t bad = last;  // number of steps
  // The first guess is usually right.
  for (std::uint64_t step = bad - 1; bad - good.step() > 1; step = good.step() + (bad - good.step()) / 2) {
    if (!go_to(step)) bad = step;
  }
  (void)go_to(good.step());
  return good.step();
}

void Trainer::reject_not_finite(GoodStates* good, std::uint64_t step, std::optional<double> loss) {
  const std::uint64_t batches = loaded_.steps_of_epoch();
  const auto place = [&](std::uint64_t at) { return fmt::format("step {} (epoch {})", at + 1, at / batches + 1); };
  Diagnostic told;
  told.code = "run.not_finite";
  told.message = loss ? fmt::format("the loss is {} at {}", *loss, place(step))
                      : fmt::format("a parameter is not finite after {}", place(step));
  if (good == nullptr) {
    told.hint = hint_for_large(loaded_.model);
    throw NotFinite(std::move(told), 0);
  }
  const std::uint64_t first = first_nonfinite_step(*good, step);
  if (!loss) told.message = fmt::format("a parameter is not finite after {}", place(first));
  if (loss && first < step) told.message += fmt::format("; a parameter is not finite after {}", place(first));
  std::optional<Diagnostic> found;
  std::string untold;
  try {
    found = trace_not_finite(loaded_.model, loaded_.compiled, good->states(), loaded_.executor, loaded_.planned);
  } catch (const OutOfMemory&) {
    untold = "there is no memory for a second plan, to run the step op by op";
  }
  if (!found) {
    if (untold.empty()) untold = "run op by op, without regions, the same step stays finite";
    told.message += "; " + untold;
    found = find_in_regions(loaded_.compiled, good->states(), *loaded_.runnable);
    good->put(*loaded_.runnable);
    if (found) found->hint = "sums in another order may overflow: set --no-fuse, " + hint_for_large(loaded_.model);
  }
  if (found) {
    found->code = told.code;
    found->message = fmt::format("{}; {}", told.message, found->message);
    told = std::move(*found);
  }
  throw NotFinite(std::move(told), first);
}

}  // namespace graphrun
