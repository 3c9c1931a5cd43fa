// train.cpp: the loop over epochs and the evaluation of splits: what the host does between chunks of steps.
// After the first step nothing here allocates: what reports need is made before it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "graphrun/error.h"
#include "session/session_impl.h"

namespace graphrun {
namespace {

constexpr std::uint64_t kLossesAtOnce = std::uint64_t{1} << 24;  // 128 MiB, touched as they come

// Where the loop has to stop for the host: multiples of both, in epochs; 0 is never.
struct Pauses {
  std::int64_t log_every, evaluate_every, epochs;

  std::int64_t after(std::int64_t epoch) const {
    std::int64_t next = std::min(epochs, (epoch / log_every + 1) * log_every);
    if (evaluate_every > 0) next = std::min(next, (epoch / evaluate_every + 1) * evaluate_every);
    return next;
  }
  bool at(std::int64_t epoch) const { return epoch > 0 && (logs(epoch) || evaluates(epoch)); }
  bool logs(std::int64_t epoch) const { return epoch % log_every == 0 || epoch == epochs; }
  bool evaluates(std::int64_t epoch) const { return evaluate_every > 0 && epoch % evaluate_every == 0; }
};

Pauses pauses_of(const TrainSpec& train, bool validation) {
  // At least 1, and small enough to be added to.
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4;
  const std::int64_t every = train.log_every > 0 ? train.log_every : train.epochs / 200 + (train.epochs % 200 != 0);
  return {std::clamp<std::int64_t>(every, 1, most), validation ? std::min(train.evaluate_every, most) : 0,
          train.epochs};
}

std::uint64_t total_steps(std::int64_t epochs, std::uint64_t batches) {
  if (batches > 0 && static_cast<std::uint64_t>(epochs) > (std::uint64_t{1} << 62) / batches) {
    throw Error(ErrorKind::input, "train.steps",
                fmt::format("{} epochs of {} steps are more than can be counted", epochs, batches));
  }
  return static_cast<std::uint64_t>(epochs) * batches;
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
  // Calls see(part, whether it counts by the samples, total) for every number that is recorded.
  const auto each = [&](auto see) {
    std::size_t i = 0;
    for (const Recorded& recorded : phase.recorded) {
      if (recorded.parts.empty()) see(RecordedPart{recorded.ring, Combined::sum}, true, totals[i++]);
      for (const RecordedPart& part : recorded.parts) see(part, false, totals[i++]);
    }
  };
  // What the mean of the batch at a step counts for.
  const auto samples_at = [&](std::uint64_t step) { return static_cast<double>(phase.batches.at(step)); };
  each([](const RecordedPart& part, bool, double& total) { total = nothing_combined(part.how); });
  for (std::uint64_t first = 0; first < batches;) {
    const bool unwanted = in_train.load(std::memory_order_relaxed) && cancelled.load(std::memory_order_relaxed);
    if (unwanted || Profiler::now() > until) {
      done[index] -= first;  // the next evaluation begins with the first batch again
      runnable->write(buffer(phase.counter), std::as_bytes(std::span(&done[index], 1)));
      return false;
    }
    const std::uint64_t n = steps_before_look(index, std::min(batches - first, static_cast<std::uint64_t>(phase.ring)));
    run(index, n);
    each([&](const RecordedPart& part, bool weighted, double& total) {
      observe(index, part.ring, n, [&](std::uint64_t step, float value) {
        total = combined(part.how, total, (weighted ? samples_at(step) : 1.0) * static_cast<double>(value));
      });
    });
    first += n;
  }
  std::span<const double> left = totals;
  const double samples = static_cast<double>(phase.batches.samples());
  for (std::size_t i = 0; i < phase.recorded.size(); ++i) {
    const Recorded& recorded = phase.recorded[i];
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
// cancel() means the train() that is under way, and no other.
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

std::uint64_t Session::Impl::steps_of_epoch() const {
  return static_cast<std::uint64_t>(compiled.step.phases[training()].batches.count());
}

TrainResult Session::Impl::train(const TrainOptions& options) {
  const std::size_t index = training();
  const StepPhase& phase = compiled.step.phases[index];
  const std::uint64_t batches = steps_of_epoch();
  const std::optional<std::size_t> validation = evaluation_of("validation");
  const Pauses pauses = pauses_of(model.train, validation.has_value());
  const std::uint64_t total = total_steps(model.train.epochs, batches);
  const std::uint64_t ring = static_cast<std::uint64_t>(phase.ring);

  TrainResult result;
  if (std::exchange(resumes, false)) {
    result.first_step = result.steps = done[index];
    result.epochs = static_cast<std::int64_t>(result.steps / batches);
  } else {
    progress = {};
  }
  const std::uint64_t to_do = total - std::min(total, result.steps);
  if (options.keep_losses) result.losses.reserve(static_cast<std::size_t>(std::min(to_do, kLossesAtOnce)));
  std::vector<double> losses;  // of the chunk of steps
  losses.reserve(static_cast<std::size_t>(ring));
  Metrics metrics = validation ? named_metrics(*validation) : Metrics{};
  const Cancellable cancellable(in_train, cancelled);

  // Of the epoch that has ended. False: its evaluation was cancelled, and nobody was told.
  const auto tell = [&] {
    Report report;
    report.epoch = result.epochs;
    report.epochs = model.train.epochs;
    report.step = result.steps;
    report.loss = progress.epoch_loss;
    report.due = pauses.logs(result.epochs);
    report.seconds = result.seconds;
    report.steps_per_second =
        result.seconds > 0 ? static_cast<double>(result.steps - result.first_step) / result.seconds : 0;
    if (pauses.evaluates(result.epochs)) {
      if (!evaluate(*validation, metrics)) return false;
      report.validation = &metrics;
      if (metrics.loss < progress.best_loss) {
        progress.best_loss = metrics.loss;
        progress.best_step = result.steps;
      }
    }
    progress.unreported = 0;
    if (options.on_report) options.on_report(report);
    return true;
  };

  bool first = true;
  for (;; first = false) {
    const bool tells = progress.unreported != 0 && pauses.at(result.epochs);
    if (tells && !tell()) break;
    if (!first && options.on_first_step && result.steps == result.first_step + 1) options.on_first_step();
    // The first time where it only now told of the epoch before: its evaluation may be the best.
    if (options.on_boundary && (!first || tells))
      options.on_boundary({result.steps, batches, progress.best_step == result.steps});
    if (result.steps >= total || cancelled.load(std::memory_order_relaxed)) break;
    progress.unreported = 0;
    const std::uint64_t pause = static_cast<std::uint64_t>(pauses.after(result.epochs)) * batches;
    std::uint64_t most = std::min(pause - result.steps, ring);
    if (const std::uint64_t every = options.boundary_every; every > 0)
      most = std::min(most, every - result.steps % every);
    const bool alone = first && options.on_first_step;
    const std::uint64_t n = alone ? 1 : steps_before_look(index, most);
    const double before = Profiler::now();
    run(index, n);
    result.seconds += Profiler::now() - before;
    losses.clear();
    observe(index, phase.recorded[0].ring, n, [&](std::uint64_t step, float value) {
      if (!losses.empty() && !std::isfinite(losses.back())) return;
      losses.push_back(static_cast<double>(value));
      progress.epoch_sum += static_cast<double>(phase.batches.at(step)) * static_cast<double>(value);
      if ((step + 1) % batches != 0) return;
      progress.epoch_loss = progress.epoch_sum / static_cast<double>(phase.batches.samples());
      progress.epoch_sum = 0;
    });
    if (options.on_losses) options.on_losses(losses);
    if (!std::isfinite(losses.back())) refuse_loss(result.steps + losses.size() - 1, losses.back());
    if (options.keep_losses) result.losses.insert(result.losses.end(), losses.begin(), losses.end());
    result.steps += n;
    result.epochs = static_cast<std::int64_t>(result.steps / batches);
    progress.unreported = result.steps % batches == 0 ? 1 : 0;
  }
  result.cancelled = result.steps < total;
  return result;
}

// The parameters are as the last step of the chunk left them: they say where it went wrong only when few are.
void Session::Impl::refuse_loss(std::uint64_t step, double loss) {
  std::vector<std::string> broken;
  for (const auto& [name, node] : compiled.step.parameters) {
    const TensorType& type = compiled.step.graph[node].type;
    if (type.dtype != DType::f32) continue;
    HostTensor values(type.dtype, type.shape);
    runnable->read(buffer(node), values.bytes());
    const std::span<const float> all = values.elements<float>();
    if (!std::all_of(all.begin(), all.end(), [](float x) { return std::isfinite(x); })) broken.push_back(name);
  }
  std::string message =
      fmt::format("the loss is {} at step {} (epoch {}): it is not finite", loss, step + 1,
                  step / static_cast<std::uint64_t>(compiled.step.phases[training()].batches.count()) + 1);
  if (broken.empty()) {
    message += "; all parameters are still finite";
  } else {
    const std::size_t told = std::min<std::size_t>(broken.size(), 3);
    message += fmt::format("; so {} now {}{}", broken.size() == 1 ? "is" : "are",
                           fmt::join(broken.begin(), broken.begin() + static_cast<std::ptrdiff_t>(told), ", "),
                           broken.size() > told ? fmt::format(" and {} more", broken.size() - told) : "");
  }
  throw Error(ErrorKind::run, "run.not_finite", std::move(message),
              "a smaller learning rate often helps; standardize data of large numbers");
}

}  // namespace graphrun
