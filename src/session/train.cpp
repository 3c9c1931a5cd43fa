// train.cpp: training loop and evaluation of splits: the host's work between chunks of steps.
// Nothing here allocates after the first step: report buffers are prepared before it.
#include <fmt/format.h>

#include <algorithm>
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
#include "session/session_impl.h"
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

}  // namespace

Metrics Session::Impl::named_metrics(std::size_t evaluation) const {
  Metrics metrics;
  const std::vector<Recorded>& recorded = compiled.step.phases[evaluation].recorded;
  for (std::size_t i = 1; i < recorded.size(); ++i) metrics.values.emplace_back(recorded[i].name, 0.0);
  return metrics;
}

bool Session::Impl::evaluate(std::size_t index, Metrics& metrics, double until) {
  const StepPhase& phase = compiled.step.phases[index];
  const std::uint64_t batches = static_cast<std::uint64_t>(phase.batches.count());
  if (!evaluate_scores(phase, metrics, until)) return false;
  // Calls see(part, whether it is weighted by samples, total) for every recorded number.
  const auto each = [&](auto see) {
    std::size_t i = 0;
    for (const Recorded& recorded : phase.recorded) {
      if (recorded.score != nullptr) continue;
      if (recorded.parts.empty()) see(MetricPart{recorded.ring, Combined::sum}, true, totals[i++]);
      for (const MetricPart& part : recorded.parts) see(part, false, totals[i++]);
    }
  };
  // Weight of the batch mean at a step.
  const auto samples_at = [&](std::uint64_t step) { return static_cast<double>(phase.batches.at(step)); };
  each([](const MetricPart& part, bool, double& total) { total = nothing_combined(part.how); });
  for (std::uint64_t first = 0; first < batches;) {
    const bool unwanted = in_train.load(std::memory_order_relaxed) && is_cancelled();
    if (unwanted || Profiler::now() > until) {
      set_done(index, done[index] - first);  // the next evaluation restarts at the first batch
      return false;
    }
    const std::uint64_t n = steps_per_poll(index, std::min(batches - first, static_cast<std::uint64_t>(phase.ring)));
    run(index, n);
    each([&](const MetricPart& part, bool weighted, double& total) {
      observe(index, part.node, n, [&](std::uint64_t step, float value) {
        total = combined(part.how, total, (weighted ? samples_at(step) : 1.0) * static_cast<double>(value));
      });
    });
    first += n;
  }
  std::span<const double> left = totals;
  const double samples = static_cast<double>(phase.batches.samples());
  for (std::size_t i = 0; i < phase.recorded.size(); ++i) {
    const Recorded& recorded = phase.recorded[i];
    if (recorded.score != nullptr) continue;
    const std::size_t numbers = std::max<std::size_t>(1, recorded.parts.size());
    double value = recorded.parts.empty() ? finished(recorded, left[0] / samples)
                                          : formulas[recorded.formula].value(left.first(numbers), samples);
    value = unsigned_nan(value);
    (i == 0 ? metrics.loss : metrics.values[i - 1].second) = value;
    left = left.subspan(numbers);
  }
  return true;
}

namespace {
// Whether numbers, or class numbers of one-hot rows, only rise or only fall. False for few rows.
bool is_sorted(const HostTensor& tensor) {
  const std::vector<double> values = as_doubles(tensor);
  const auto rows = static_cast<std::ptrdiff_t>(tensor.shape()[0]);
  const std::ptrdiff_t width = rows < 10 ? 0 : std::ssize(values) / rows;
  bool rises = width > 0, falls = rises;
  double before = 0;
  for (std::ptrdiff_t i = 0; i < rows && (rises || falls); ++i) {
    const auto row = values.begin() + i * width;
    const double next = width == 1 ? *row : static_cast<double>(std::max_element(row, row + width) - row);
    rises = rises && (i == 0 || next >= before);
    falls = falls && (i == 0 || next <= before);
    before = next;
  }
  return rises != falls;
}

// Target by which the training rows are sorted; empty if there is none.
std::string sorted_target(const Model& model) {
  const Split* train = model.data.find("train");
  for (const OutputSpec& output : model.outputs) {
    if (train == nullptr || output.target.empty()) continue;
    for (const auto& [name, tensor] : train->columns)
      if (name == output.target && is_sorted(tensor)) return name;
  }
  return {};
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

std::vector<std::string> Session::training_warnings() const {
  std::vector<std::string> warnings;
  const Impl& impl = not_moved(impl_);
  const std::optional<std::size_t> index = impl.phase_index("train");
  if (!index) return warnings;
  const Batches& batches = impl.compiled.step.phases[*index].batches;
  const std::int64_t count = batches.count(), epochs = impl.model.train.epochs;
  if (count == 0 || epochs == 0) return warnings;
  const auto add_schedule = [&](const std::string& objective, const OptimizerSpec& optimizer) {
    const std::optional<ScheduleEnd> end = optimizer.lr ? end_at_zero(*optimizer.lr) : std::nullopt;
    if (!end) return;
    const double all = static_cast<double>(epochs) * (end->unit == "steps" ? static_cast<double>(count) : 1.0);
    if (all <= end->time) return;
    warnings.push_back(fmt::format(
        "{}the schedule '{}' ends at a learning rate of 0 after {} of {} {}: the last {:g} train nothing; give it "
        "\"{}\": {:g}, or train {} with --epochs",
        objective.empty() ? "" : objective + ": ", optimizer.lr->name, end->time, all, end->unit, all - end->time,
        end->unit, all - end->warmup, end->unit == "epochs" ? fmt::format("{:g}", end->time) : "less"));
  };
  if (const std::string target = sorted_target(impl.model); count > 1 && !impl.model.train.shuffle && !target.empty())
    warnings.push_back(fmt::format(
        "the training rows are sorted by '{}', so each batch sees only a part of its values; set \"shuffle\": true in "
        "\"train\"",
        target));
  add_schedule("", impl.model.train.optimizer);
  for (const ObjectiveSpec& one : impl.model.train.objectives) add_schedule(one.name, one.optimizer);
  if (batches.at(static_cast<std::uint64_t>(count - 1)) != 1) return warnings;
  const GraphBuilder::Impl& graph = impl.model.graph.impl();
  for (const auto& [layer, x] : graph.batch_norms) {
    const TensorType& type = graph.graph[x].type;
    const bool is_one = type.rows == 1 && type.shape.with_batch(1).elements() == type.shape[type.shape.rank() - 1];
    if (!is_one) continue;
    warnings.push_back(
        batches.capacity == 1 || count == 1
            ? fmt::format("batch_norm '{}' makes zeros of a batch of one row, and every batch has one row: it lets "
                          "nothing through to be trained; use a larger --batch",
                          layer)
            : fmt::format("batch_norm '{}' makes zeros of a batch of one row, and the last batch of each epoch has one "
                          "row; leave it out with \"last_batch\": \"drop\" in \"train\"",
                          layer));
  }
  return warnings;
}

std::uint64_t Session::Impl::steps_of_epoch() const {
  return static_cast<std::uint64_t>(compiled.step.phases[training()].batches.count());
}

TrainResult Session::Impl::train(const TrainOptions& options) {
  const std::size_t index = training();
  const StepPhase& phase = compiled.step.phases[index];
  const std::uint64_t batches = steps_of_epoch();
  const std::optional<std::size_t> validation = evaluation_of("validation");
  const std::uint64_t watch_every = watched.empty() ? 0 : options.watch_every;
  const Pauses pauses = pauses_of(model.train, batches, validation.has_value(), watch_every);
  const std::uint64_t total = pauses.total;
  const std::uint64_t ring = static_cast<std::uint64_t>(phase.ring);

  if (communicator != nullptr) {  // all ranks begin with the state of rank 0, which may have been resumed
    std::vector<std::byte> state(saved_bytes);
    if (communicator->rank() == 0) save_state(state);
    communicator->broadcast(state);
    if (communicator->rank() != 0) load_state(state);
  }
  TrainResult result;
  if (std::exchange(resumes, false)) {
    result.first_step = result.steps = done[index];
    result.epochs = static_cast<std::int64_t>(result.steps / batches);
  } else {
    progress = {};
    std::fill(objectives.begin(), objectives.end(), EpochMean{});
  }
  StopCause cause = StopCause::none;
  if (phase.stop_ring != ir::kNoNode) cause = stop_cause(result.first_step == 0);
  // Formatted here, because nothing may allocate after the first step.
  std::string reached = model.train.stop_at ? fmt::format("loss at most {}", model.train.stop_at->loss) : std::string();
  std::string stalled = "no further descent", lost = "the gradient is not a number: start at other values";
  std::string flat =
      model.train.stop_at ? fmt::format("gradient at most {}", model.train.stop_at->gradient) : std::string();
  const std::uint64_t to_do = total - std::min(total, result.steps);
  if (options.keep_losses) result.losses.reserve(static_cast<std::size_t>(std::min(to_do, kLossesAtOnce)));
  std::vector<double> losses;  // one per step of the chunk
  losses.reserve(static_cast<std::size_t>(ring));
  Metrics metrics = validation ? named_metrics(*validation) : Metrics{};
  Stopping stopping(model, metrics, progress.stopping);
  result.stopped_early = stopping.stops() || cause != StopCause::none;
  std::optional<GoodStates> good;
  // A trace reads rows, and each shard has its own.
  if (options.trace_not_finite && model.train.shards == 1)
    good.emplace(program(), buffer(phase.counter), *runnable, done[index]);
  GoodStates* const traced = good ? &*good : nullptr;
  const std::vector<Rate> rates = rates_of(model, compiled);
  std::vector<double> means(objectives.size()), lr(rates.size()), numbers(compiled.step.optimizer.size());
  // Divisions per step would take longer than the steps of a small network.
  const Batches sizes = phase.batches;
  const auto full_batch = static_cast<double>(sizes.capacity);
  const auto last_batch = static_cast<double>(sizes.samples() - (sizes.count() - 1) * sizes.capacity);
  const auto add_to = [&](EpochMean& mean, std::uint64_t step, float loss) {
    const bool is_last = batches == 1 || (step + 1) % batches == 0;
    mean.add(static_cast<double>(loss), is_last ? last_batch : full_batch, is_last);
  };
  written = false;
  const Cancellable cancellable(in_train, cancelled);

  // Makes the reports due after this step. Returns false, without reporting, if its evaluation was cancelled.
  const auto tell = [&] {
    Report report;
    report.epoch = result.epochs;
    report.epochs = model.train.epochs;
    report.step = result.steps;
    report.loss = progress.epoch.mean;
    for (std::size_t i = 0; i < means.size(); ++i) means[i] = objectives[i].mean;
    report.objectives = means;
    report.seconds = result.seconds;
    report.steps_per_second =
        result.seconds > 0 ? static_cast<double>(result.steps - result.first_step) / result.seconds : 0;
    for (std::size_t i = 0; i < lr.size(); ++i)
      lr[i] = rates[i].at(result.steps - 1, batches, compiled, *runnable) * progress.stopping.lr_factor;
    report.lr = lr;
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = read_scalar(compiled.step.optimizer[i].second);
    report.optimizer = numbers;
    if (pauses.evaluates(result.steps)) {
      if (!evaluate(*validation, metrics)) return false;
      report.validation = &metrics;
      const Stopping::Decision decision = stopping.see(metrics, result.epochs, result.steps);
      const bool is_lowest = metrics.loss < progress.best_loss;
      if (is_lowest) progress.best_loss = metrics.loss;
      if (model.train.early_stopping ? decision.is_best : is_lowest) progress.best_step = result.steps;
      if (decision.is_best) best.take(*runnable);
      if (decision.lowers_lr) write_lr_factor(progress.stopping.lr_factor);
      result.stopped_early = decision.stops || cause != StopCause::none;
    }
    report.due = pauses.logs(result.steps) || result.stopped_early;
    report.lr_factor = progress.stopping.lr_factor;
    if (watch_every == 0 || pauses.watches(result.steps)) see_watched(report);
    if (options.hash_weights) report.weights = hash_parameters(std::numeric_limits<double>::infinity());
    progress.unreported = 0;
    if (options.on_report) options.on_report(report);
    return true;
  };

  for (bool first = true;; first = false) {
    ranks_cancelled = agreed_cancel(communicator.get(), cancelled.load(std::memory_order_relaxed), done[index]);
    const bool tells = progress.unreported != 0 && (pauses.at(result.steps) || cause != StopCause::none);
    const bool told = !tells || tell();
    const auto ends = [&] { return !told || result.steps >= total || result.stopped_early || is_cancelled(); };
    const auto at_step_end = [&](bool last) {
      // Training ends with finite parameters or throws.
      if (last && result.steps > result.first_step && !parameters_finite(program(), *runnable, piece))
        reject_not_finite(traced, done[index] - 1, {});
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
    if (good && std::exchange(written, false) && !good->look(*runnable, done[index]))
      reject_not_finite(traced, done[index] - 1, {});
    const bool alone = first && options.on_first_step;
    std::uint64_t n = agreed_number(communicator.get(), alone ? 1 : steps_per_poll(index, most));
    const double before = Profiler::now();
    run(index, n);
    result.seconds += Profiler::now() - before;
    losses.clear();
    if (phase.stop_ring != ir::kNoNode) {
      std::uint64_t unchanged = 0;  // steps after the one that stopped
      observe(index, phase.stop_ring, n, [&](std::uint64_t, float value) {
        if (cause != StopCause::none) ++unchanged;
        cause = static_cast<StopCause>(value);
      });
      if (unchanged > 0) set_done(index, done[index] - unchanged);
      n -= unchanged;
      result.stopped_early = cause != StopCause::none;
    }
    observe(index, phase.recorded[0].ring, n, [&](std::uint64_t step, float value) {
      if (!losses.empty() && !std::isfinite(losses.back())) return;
      losses.push_back(static_cast<double>(value));
      add_to(progress.epoch, step, value);
    });
    if (options.on_losses) options.on_losses(losses);
    if (!std::isfinite(losses.back())) reject_not_finite(traced, done[index] - n + losses.size() - 1, losses.back());
    for (std::size_t i = 0; i < objectives.size(); ++i) {
      observe(index, phase.recorded[i + 1].ring, n,
              [&](std::uint64_t step, float value) { add_to(objectives[i], step, value); });
    }
    if (options.keep_losses) result.losses.insert(result.losses.end(), losses.begin(), losses.end());
    result.steps += n;
    result.epochs = static_cast<std::int64_t>(result.steps / batches);
    progress.unreported = 1;
    if (good && good->due() && !good->look(*runnable, done[index])) reject_not_finite(traced, done[index] - 1, {});
  }
  if (cause == StopCause::loss) result.stopped = std::move(reached);
  if (cause == StopCause::no_descent) {
    const bool finite = std::ranges::all_of(
        compiled.step.optimizer, [&](const auto& number) { return std::isfinite(read_scalar(number.second)); });
    result.stopped = std::move(finite ? stalled : lost);
  }
  if (cause == StopCause::gradient) result.stopped = std::move(flat);
  result.cancelled = result.steps < total && !result.stopped_early;
  result.lr_factor = progress.stopping.lr_factor;
  if (progress.stopping.stopping.seen != 0) {
    result.best = stopping.best();
    result.restored = !best.buffers().empty();
    best.put(*runnable);
  }
  return result;
}

void Session::Impl::see_watched(Report& report) {
  for (std::size_t i = 0; i < watched.size(); ++i) {
    Watched& one = watched[i];
    runnable->read(one.buffer, one.bytes);
    watched_statistics[i] = statistics(program().buffers[one.buffer].type.dtype, one.bytes);
  }
  report.watched = watched_statistics;
}

void Session::Impl::set_done(std::size_t phase, std::uint64_t steps) {
  done[phase] = steps;
  runnable->write(buffer(compiled.step.phases[phase].counter), std::as_bytes(std::span(&done[phase], 1)));
}

StopCause Session::Impl::stop_cause(bool reset) {
  if (reset) compiled.write_number(*runnable, compiled.step.stop, 0);
  return static_cast<StopCause>(compiled.read_number(*runnable, compiled.step.stop));
}

double Session::Impl::read_scalar(ir::NodeId state) const {
  const BufferId id = buffer(state);
  return with_type(program().buffers[id].type.dtype, [&](auto value) {
    runnable->read(id, std::as_writable_bytes(std::span(&value, 1)));
    return static_cast<double>(value);
  });
}

void Session::Impl::write_lr_factor(double factor) {
  compiled.write_number(*runnable, compiled.step.lr_factor, factor);
  written = true;
}

std::uint64_t Session::Impl::first_nonfinite_step(GoodStates& good, std::uint64_t last) {
  const std::size_t index = training();
  const auto go_to = [&](std::uint64_t step) {
    good.put(*runnable);
    done[index] = good.step();
    steps_before.store(done[index], std::memory_order_relaxed);
    while (done[index] < step)
      run(index, std::min(step - done[index], static_cast<std::uint64_t>(compiled.step.phases[index].ring)));
    return good.look(*runnable, step);
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

void Session::Impl::reject_not_finite(GoodStates* good, std::uint64_t step, std::optional<double> loss) {
  const std::uint64_t batches = static_cast<std::uint64_t>(compiled.step.phases[training()].batches.count());
  const auto place = [&](std::uint64_t at) { return fmt::format("step {} (epoch {})", at + 1, at / batches + 1); };
  Diagnostic told;
  told.code = "run.not_finite";
  told.message = loss ? fmt::format("the loss is {} at {}", *loss, place(step))
                      : fmt::format("a parameter is not finite after {}", place(step));
  if (good == nullptr) {
    told.hint = "lower the learning rate, set clip_norm, or standardize the data";
    throw NotFinite(std::move(told), 0);
  }
  const std::uint64_t first = first_nonfinite_step(*good, step);
  if (!loss) told.message = fmt::format("a parameter is not finite after {}", place(first));
  if (loss && first < step) told.message += fmt::format("; a parameter is not finite after {}", place(first));
  std::optional<Diagnostic> found;
  std::string untold;
  try {
    found = trace_not_finite(model, compiled, good->states(), executor, planned);
  } catch (const OutOfMemory&) {
    untold = "there is no memory for a second plan, to run the step op by op";
  }
  if (!found) {
    if (untold.empty()) untold = "run op by op, without regions, the same step stays finite";
    told.message += "; " + untold;
    found = find_in_regions(compiled, good->states(), *runnable);
    good->put(*runnable);
    if (found) found->hint = "sums in another order may overflow: --no-fuse, a smaller learning rate, or clip_norm";
  }
  if (found) {
    found->code = told.code;
    found->message = fmt::format("{}; {}", told.message, found->message);
    told = std::move(*found);
  }
  throw NotFinite(std::move(told), first);
}

}  // namespace graphrun
