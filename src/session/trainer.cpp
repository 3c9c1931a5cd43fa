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

namespace {

constexpr std::uint64_t kLossesAtOnce = std::uint64_t{1} << 24;  // 128 MiB, committed as they are used

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

// One call of train(). The constructor prepares all buffers, because nothing may allocate after the first step.
class Trainer::Run {
 public:
  Run(Trainer& trainer, const TrainOptions& options);
  TrainResult result();

 private:
  // Reports this step, if that is due. Returns false, without reporting, if its evaluation was cancelled.
  bool report();
  bool evaluate(Report& report);  // same
  // Calls back after a step, or before the first if a pending report was made (`reported`). Returns true if training
  // ends here.
  bool ends_here(bool is_first, bool is_due, bool reported);
  void run_steps(std::uint64_t n);
  std::uint64_t steps_to_run(bool is_first) const;
  void add_to(EpochMean& mean, std::uint64_t step, float loss) const {
    const bool is_last = batches_ == 1 || (step + 1) % batches_ == 0;
    mean.add(static_cast<double>(loss), is_last ? last_batch_ : full_batch_, is_last);
  }
  [[noreturn]] void reject(std::uint64_t step, std::optional<double> loss = {}) {
    reject_not_finite(loaded_, good_ ? &*good_ : nullptr, step, loss);
  }

  Trainer& trainer_;
  LoadedModel& loaded_;
  TrainerState& state_;
  const TrainOptions& options_;
  const std::size_t index_;
  const StepPhase& phase_;
  const TrainSpec& train_;
  const std::uint64_t& done_;  // finished steps
  const std::uint64_t batches_;
  const std::optional<std::size_t> validation_;  // phase
  const Pauses pauses_;
  // Divisions per step would take longer than the steps of a small network.
  const double full_batch_, last_batch_;
  const std::vector<Rate> rates_;
  TrainResult result_;
  StopCause cause_ = StopCause::none;
  std::string reached_, flat_, stalled_ = "no further descent",
                               lost_ = "the gradient is not a number: start at other values";
  std::vector<double> losses_;  // one per step of the chunk
  Metrics metrics_;
  std::optional<Stopping> stopping_;
  std::optional<GoodStates> good_;
  std::vector<double> means_, lr_, numbers_;  // spans of a report
};

Trainer::Run::Run(Trainer& trainer, const TrainOptions& options)
    : trainer_(trainer),
      loaded_(trainer.loaded_),
      state_(trainer.state_),
      options_(options),
      index_(loaded_.training()),
      phase_(loaded_.phases()[index_]),
      train_(loaded_.model.train),
      done_(loaded_.done[index_]),
      batches_(loaded_.steps_of_epoch()),
      validation_(trainer.evaluator_.phase_of("validation")),
      pauses_(pauses_of(train_, batches_, validation_.has_value(), trainer.watched_.empty() ? 0 : options.watch_every)),
      full_batch_(static_cast<double>(phase_.batches.capacity)),
      last_batch_(static_cast<double>(phase_.batches.samples()) - static_cast<double>(batches_ - 1) * full_batch_),
      rates_(rates_of(loaded_.model, loaded_.compiled)) {
  if (Communicator* const ranks = loaded_.communicator.get()) {  // all begin with the state of rank 0, maybe resumed
    std::vector<std::byte> state(trainer.saved_bytes_);
    if (ranks->rank() == 0) trainer.save_state(state);
    ranks->broadcast(state);
    if (ranks->rank() != 0) trainer.load_state(state);
  }
  if (std::exchange(state_.resumes, false)) {
    result_.first_step = result_.steps = done_;
    result_.epochs = static_cast<std::int64_t>(result_.steps / batches_);
  } else {
    state_.progress = {};
    std::fill(state_.objectives.begin(), state_.objectives.end(), EpochMean{});
  }
  if (phase_.stop_ring != ir::kNoNode) {
    const CompiledModel& compiled = loaded_.compiled;
    if (result_.first_step == 0) compiled.write_number(*loaded_.runnable, compiled.step.stop, 0);
    cause_ = static_cast<StopCause>(compiled.read_number(*loaded_.runnable, compiled.step.stop));
  }
  if (train_.stop_at) {
    reached_ = fmt::format("loss at most {}", train_.stop_at->loss);
    flat_ = fmt::format("gradient at most {}", train_.stop_at->gradient);
  }
  const std::uint64_t to_do = pauses_.total - std::min(pauses_.total, result_.steps);
  if (options.keep_losses) result_.losses.reserve(static_cast<std::size_t>(std::min(to_do, kLossesAtOnce)));
  losses_.reserve(static_cast<std::size_t>(phase_.ring));
  if (validation_) metrics_ = trainer.evaluator_.named_metrics(*validation_);
  stopping_.emplace(loaded_.model, metrics_, state_.progress.stopping);
  result_.stopped_early = stopping_->stops() || cause_ != StopCause::none;
  // A trace reads rows, and each shard has its own.
  if (options.trace_not_finite && train_.shards == 1)
    good_.emplace(loaded_.program(), loaded_.buffer(phase_.counter), *loaded_.runnable, done_);
  means_.resize(state_.objectives.size());
  lr_.resize(rates_.size());
  numbers_.resize(loaded_.compiled.step.optimizer.size());
  trainer.written_ = false;
}

TrainResult Trainer::Run::result() {
  const Cancellable cancellable(loaded_.in_train, loaded_.cancelled);
  for (bool is_first = true;; is_first = false) {
    loaded_.ranks_cancelled =
        agreed_cancel(loaded_.communicator.get(), loaded_.cancelled.load(std::memory_order_relaxed), done_);
    const bool is_due = state_.progress.unreported != 0 && (pauses_.at(result_.steps) || cause_ != StopCause::none);
    if (ends_here(is_first, is_due, !is_due || report())) break;
    // A step is traced from its initial states, including changes made by callbacks.
    if (good_ && std::exchange(trainer_.written_, false) && !good_->look(*loaded_.runnable, done_)) reject(done_ - 1);
    run_steps(agreed_number(loaded_.communicator.get(), steps_to_run(is_first)));
    if (good_ && good_->due() && !good_->look(*loaded_.runnable, done_)) reject(done_ - 1);
  }
  if (cause_ == StopCause::loss) result_.stopped = std::move(reached_);
  if (cause_ == StopCause::gradient) result_.stopped = std::move(flat_);
  if (cause_ == StopCause::no_descent) {
    const bool finite = std::ranges::all_of(loaded_.compiled.step.optimizer, [&](const auto& number) {
      return std::isfinite(loaded_.read_scalar(number.second));
    });
    result_.stopped = std::move(finite ? stalled_ : lost_);
  }
  result_.cancelled = result_.steps < pauses_.total && !result_.stopped_early;
  result_.lr_factor = state_.progress.stopping.lr_factor;
  if (state_.progress.stopping.stopping.seen != 0) {
    result_.best = stopping_->best();
    result_.restored = !state_.best.buffers().empty();
    state_.best.put(*loaded_.runnable);
  }
  return std::move(result_);
}

bool Trainer::Run::ends_here(bool is_first, bool is_due, bool reported) {
  const auto ends = [&] {
    return !reported || result_.steps >= pauses_.total || result_.stopped_early || loaded_.is_cancelled();
  };
  const auto at_step_end = [&](bool last) {
    // Training ends with finite parameters or throws.
    if (last && result_.steps > result_.first_step && !loaded_.parameters_finite()) reject(done_ - 1);
    // In the first iteration, only after a pending report: its evaluation may be the best.
    if (options_.on_step_end && (!is_first || is_due))
      options_.on_step_end({result_.steps, batches_, state_.progress.best_step == result_.steps, last});
    return last;
  };
  if (!is_first && options_.on_first_step && result_.steps == result_.first_step + 1) options_.on_first_step();
  return at_step_end(ends()) || (ends() && at_step_end(true));  // the second time if the callback cancelled
}

std::uint64_t Trainer::Run::steps_to_run(bool is_first) const {
  if (is_first && options_.on_first_step) return 1;
  std::uint64_t max_steps =
      std::min(pauses_.after(result_.steps) - result_.steps, static_cast<std::uint64_t>(phase_.ring));
  if (const std::uint64_t every = options_.step_end_every; every > 0)
    max_steps = std::min(max_steps, every - result_.steps % every);
  return loaded_.steps_per_poll(index_, max_steps);
}

void Trainer::Run::run_steps(std::uint64_t n) {
  const double before = Profiler::now();
  loaded_.run(index_, n);
  result_.seconds += Profiler::now() - before;
  if (phase_.stop_ring != ir::kNoNode) {
    std::uint64_t unchanged = 0;  // steps after the one that stopped
    loaded_.observe(index_, phase_.stop_ring, n, [&](std::uint64_t, float value) {
      if (cause_ != StopCause::none) ++unchanged;
      cause_ = static_cast<StopCause>(value);
    });
    if (unchanged > 0) loaded_.set_done(index_, done_ - unchanged);
    n -= unchanged;
    result_.stopped_early = cause_ != StopCause::none;
  }
  losses_.clear();
  loaded_.observe(index_, phase_.recorded[0].ring, n, [&](std::uint64_t step, float value) {
    if (!losses_.empty() && !std::isfinite(losses_.back())) return;
    losses_.push_back(static_cast<double>(value));
    if (batches_ > 1) add_to(state_.progress.epoch, step, value);
  });
  // Every step is an epoch, and the mean is that of the last one.
  if (batches_ == 1) add_to(state_.progress.epoch, 0, static_cast<float>(losses_.back()));
  if (options_.on_losses) options_.on_losses(losses_);
  if (!std::isfinite(losses_.back())) reject(done_ - n + losses_.size() - 1, losses_.back());
  for (std::size_t i = 0; i < state_.objectives.size(); ++i) {
    loaded_.observe(index_, phase_.recorded[i + 1].ring, n,
                    [&](std::uint64_t step, float value) { add_to(state_.objectives[i], step, value); });
  }
  if (options_.keep_losses) result_.losses.insert(result_.losses.end(), losses_.begin(), losses_.end());
  result_.steps += n;
  result_.epochs = static_cast<std::int64_t>(result_.steps / batches_);
  state_.progress.unreported = 1;
}

bool Trainer::Run::report() {
  Report report;
  report.epoch = result_.epochs;
  report.epochs = train_.epochs;
  report.step = result_.steps;
  report.loss = state_.progress.epoch.mean;
  std::ranges::transform(state_.objectives, means_.begin(), &EpochMean::mean);
  report.objectives = means_;
  report.seconds = result_.seconds;
  report.steps_per_second =
      result_.seconds > 0 ? static_cast<double>(result_.steps - result_.first_step) / result_.seconds : 0;
  for (std::size_t i = 0; i < lr_.size(); ++i)
    lr_[i] = rates_[i].at(result_.steps - 1, batches_, loaded_.compiled, *loaded_.runnable) *
             state_.progress.stopping.lr_factor;
  report.lr = lr_;
  for (std::size_t i = 0; i < numbers_.size(); ++i)
    numbers_[i] = loaded_.read_scalar(loaded_.compiled.step.optimizer[i].second);
  report.optimizer = numbers_;
  if (pauses_.evaluates(result_.steps) && !evaluate(report)) return false;
  report.due = pauses_.logs(result_.steps) || result_.stopped_early;
  report.lr_factor = state_.progress.stopping.lr_factor;
  if (options_.watch_every == 0 || pauses_.watches(result_.steps)) trainer_.see_watched(report);
  if (options_.hash_weights) report.weights = loaded_.hash_parameters(kForever);
  state_.progress.unreported = 0;
  if (options_.on_report) options_.on_report(report);
  return true;
}

bool Trainer::Run::evaluate(Report& report) {
  if (!trainer_.evaluator_.evaluate(*validation_, metrics_)) return false;
  report.validation = &metrics_;
  TrainingProgress& progress = state_.progress;
  const Stopping::Decision decision = stopping_->see(metrics_, result_.epochs, result_.steps);
  const bool is_lowest = metrics_.loss < progress.best_loss;
  if (is_lowest) progress.best_loss = metrics_.loss;
  if (train_.early_stopping ? decision.is_best : is_lowest) progress.best_step = result_.steps;
  if (decision.is_best) state_.best.take(*loaded_.runnable);
  if (decision.lowers_lr) {
    loaded_.compiled.write_number(*loaded_.runnable, loaded_.compiled.step.lr_factor, progress.stopping.lr_factor);
    trainer_.written_ = true;
  }
  result_.stopped_early = decision.stops || cause_ != StopCause::none;
  return true;
}

TrainResult Trainer::train(const TrainOptions& options) {
  return Run(*this, options).result();
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

}  // namespace graphrun
