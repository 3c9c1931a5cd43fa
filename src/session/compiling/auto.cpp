// auto.cpp: executor "auto": measures which executor is the fastest for this model on this machine.
// Each trial starts from its own state, which is discarded: the actual run uses only the chosen executor.
#include <fmt/format.h>

#include <algorithm>

#include "graphrun/error.h"
#include "session/compiling/jit.h"

namespace graphrun {
namespace {

constexpr double kEnough = 0.05;  // seconds; shorter runs are not accurate
constexpr std::uint64_t kMaxSteps = 1 << 14;

// Doubles the number of steps until a run is long enough; the first runs warm up.
double seconds_per_step(const Model& model, const std::shared_ptr<Executor>& executor, const PlanOptions& options) {
  CompiledModel compiled = compile_model(model, {&executor, 1}, options);
  if (compiled.step.phases.empty() || compiled.step.phases[0].batches.count() == 0) {
    throw Error(ErrorKind::input, "train.nothing", "there is nothing to measure: the model has no loss or no data");
  }
  const std::unique_ptr<Runnable> runnable = load_compiled(compiled, model, executor, options);
  write_start(model, compiled, {runnable.get()});
  runnable->run(0, 1);  // training, or the first evaluation
  for (std::uint64_t n = 1;; n *= 2) {
    const double before = Profiler::now();
    runnable->run(0, n);
    const double seconds = Profiler::now() - before;
    if (seconds >= kEnough || n >= kMaxSteps) return seconds / static_cast<double>(n);
  }
}

// Plans each executor for its own default target.
PlanOptions plan_of(const SessionOptions& options) {
  PlanOptions plan = plan_options(options);
  plan.target.clear();
  return plan;
}

// Errors that exclude an executor on this machine; all others are rethrown.
bool excludes(const Error& error) {
  const std::string& code = error.diagnostics().front().code;
  return error.kind() == ErrorKind::device || code == "step.unsupported" || code == "jit.required" ||
         code == "tiling.unknown";
}

}  // namespace

std::vector<ExecutorTiming> time_executors(const Model& model, const SessionOptions& options) {
  std::vector<ExecutorTiming> timings;
  for (const std::string& name : executor_names()) {
    ExecutorTiming timing{name, 0, {}};
    try {
      const std::shared_ptr<Executor> executor = choose_executor(name, nullptr, options.threads);
      if (executor->is_reference()) continue;
      if (options.on_progress) options.on_progress(fmt::format("measuring {}", name), -1);
      timing.seconds_per_step = seconds_per_step(model, executor, plan_of(options));
    } catch (const Error& error) {
      if (!excludes(error)) throw;
      timing.reason = error.diagnostics().front().message;
    }
    timings.push_back(std::move(timing));
  }
  std::stable_sort(timings.begin(), timings.end(), [](const ExecutorTiming& a, const ExecutorTiming& b) {
    if (a.reason.empty() != b.reason.empty()) return a.reason.empty();
    return a.reason.empty() && a.seconds_per_step < b.seconds_per_step;
  });
  return timings;
}

}  // namespace graphrun
