// loaded_model.cpp: plans, loads and feeds a model; runs steps and reads what they recorded.
#include "session/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/json.h"
#include "base/json_text.h"
#include "base/philox.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/format/overrides.h"
#include "graph/frontend/model_check.h"
#include "graph/frontend/step/class_numbers.h"
#include "graphrun/error.h"
#include "session/compiling/fit_batch.h"
#include "session/compiling/jit.h"
#include "session/ranks/agreement.h"
#include "session/state_copy.h"

namespace graphrun {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;

std::shared_ptr<Executor> executor_for(const Model& model, const SessionOptions& options,
                                       std::vector<ExecutorTiming>& timings) {
  if (options.executor != "auto" || options.custom_executor != nullptr) {
    return choose_executor(options.executor, options.custom_executor, options.threads);
  }
  timings = time_executors(model, options);
  if (timings.empty() || !timings.front().reason.empty()) {
    std::string reasons;
    for (const ExecutorTiming& timing : timings) reasons += fmt::format("; {}: {}", timing.executor, timing.reason);
    throw Error(ErrorKind::device, "executor.none", "no executor runs this model" + reasons);
  }
  return choose_executor(timings.front().executor, nullptr, options.threads);
}

// Checks data from the API; data of a model file was checked on reading.
Model with_good_classes(Model model) {
  change_original(model);
  // With a batch of all samples and a file whose own data was not read, use the size of the given data.
  const Split* const train = model.data.find("train");
  if (model.graph.batch() == 0 && train != nullptr && !train->columns.empty() && train->samples() > 0)
    model.graph.impl().set_batch(train->samples());
  check_usable(model);  // checks the values, too
  std::map<std::string, std::vector<ClassRange>, std::less<>> ranges;
  for (ClassRange& range : class_numbers(model)) {
    range.accepts_none = model.data.accepts_unseen;
    ranges[range.input].push_back(std::move(range));
  }
  for (const Split& split : model.data.splits) {
    for (const auto& [name, tensor] : split.columns) {
      const auto of_input = ranges.find(name);
      if (of_input == ranges.end()) continue;
      for (const ClassRange& range : of_input->second) {
        const bool fits = range.kind != ClassRange::Kind::numbers || tensor.dtype() == DType::i32;
        if (fits && tensor.shape().rank() == static_cast<int>(range.part.size()) + 1)
          check_classes(range, tensor, fmt::format("input '{}' of {}", name, split.name));
      }
    }
  }
  return model;
}

// Stores the batch that "max" resolved to in the model, as it would resolve differently elsewhere.
void settle_batch(Model& model, std::int64_t batch) {
  model.graph.impl().set_batch(batch);
  if (!model.canonical) return;
  model.canonical = [file = model.file, said = std::move(model.canonical), batch] {
    const std::string text = said();
    if (text.empty()) return text;
    json::Document document = json::parse(file, text);
    apply_overrides(document, {{"train.batch", std::to_string(batch)}});
    return json::text(document.root);
  };
}

}  // namespace

LoadedModel::LoadedModel(Model m, const SessionOptions& options)
    : model(with_good_classes(std::move(m))),
      executor(executor_for(model, options, timings)),
      communicator(options.communicator),
      planned(plan_options(options)) {
  const auto report_progress = [&](std::string_view what) {
    if (options.on_progress) options.on_progress(what, -1);
  };
  const double start = Profiler::now();
  report_progress("planning");
  compiled = compile_model(model, {&executor, 1}, planned);
  if (model.train.largest_batch && !compiled.program.phases.empty())
    settle_batch(model, phases().front().batches.capacity);
  const double has_plan = Profiler::now();
  executor->set_profiling(options.profiling);
  report_progress(
      fmt::format("{} {}", has_step_kernels(compiled) ? "compiling kernels for" : "loading on", executor->name()));
  runnable = load(planned);
  const double has_loaded = Profiler::now();
  report_progress(fmt::format("writing the data to {}", executor->name()));
  write_start(model, compiled, {runnable.get()});
  times = {has_plan - start, has_loaded - has_plan, Profiler::now() - has_loaded};
  check_same_training(communicator.get(), model, program(), executor->name());
  done.assign(phases().size(), 0);
  paces_.resize(phases().size());
  ring_values_.resize(static_cast<std::size_t>(kRingSize));
  piece_.resize(std::min(kPiece, program().arena_bytes));
  for (const Standardization& one : model.data.standardizations) fitted_by_input_.emplace(one.input, &one);
}

std::unique_ptr<Runnable> LoadedModel::load(PlanOptions options) {
  try {
    return load_compiled(compiled, model, executor, options, communicator);
  } catch (const OutOfMemory& error) {
    // Consider smaller batches, however they run.
    if (options.jit == Jit::require) options.jit = Jit::prefer;
    options.tiling.clear();
    if (model.train.largest_batch) {
      const FittingBatch fitting = fit_batch(compiled.step, model, {&executor, 1}, options, error.usable());
      if (fitting.fits && fitting.batch < model.graph.batch()) {
        settle_batch(model, fitting.batch);
        compiled = compile_step(compiled.step, fitting.batch, model, {&executor, 1}, options);
        return load(options);
      }
    }
    throw explained(error, compiled, model, {&executor, 1}, options);
  }
}

std::optional<std::size_t> LoadedModel::phase_index(std::string_view name) const {
  for (std::size_t i = 0; i < phases().size(); ++i) {
    if (phases()[i].name == name) return i;
  }
  return std::nullopt;
}

std::size_t LoadedModel::training() const {
  const std::optional<std::size_t> index = phase_index("train");
  if (index) return *index;
  throw Error(ErrorKind::input, "train.nothing",
              "there is nothing to train: the model has no loss or no training data");
}

void LoadedModel::run(std::size_t phase, std::uint64_t n) {
  const bool trains = phases()[phase].name == "train";
  if (trains) {
    steps_before_.store(done[phase], std::memory_order_relaxed);
    stepping_.store(true, std::memory_order_relaxed);
  }
  const double before = Profiler::now();
  runnable->run(static_cast<PhaseId>(phase), n);
  const double seconds = Profiler::now() - before;
  Pace& pace = paces_[phase];
  const double fastest = std::max(seconds, 1e-9) / static_cast<double>(std::max<std::uint64_t>(n, 1));
  if (n > 0) pace = {n, seconds, pace.fastest > 0 ? std::min(pace.fastest, fastest) : fastest};
  done[phase] += n;
  if (trains) {
    stepping_.store(false, std::memory_order_relaxed);
    steps_before_.store(done[phase], std::memory_order_relaxed);
  }
}

std::uint64_t LoadedModel::steps_per_poll(std::size_t phase, std::uint64_t max_steps) const {
  constexpr double kSeconds = 0.025;
  constexpr double kGrowth = 8;  // few steps give a poor estimate
  const Pace& last = paces_[phase];
  if (last.steps == 0) return 1;
  const double steps = static_cast<double>(last.steps);
  const double fit = last.seconds > 0 ? steps * kSeconds / last.seconds : steps * kGrowth;
  const double wanted = std::clamp(std::min(fit, steps * kGrowth), 1.0, 1e15);
  return std::min(max_steps, static_cast<std::uint64_t>(wanted));
}

// Each byte depends on the previous product (about 0.7 GB/s), and only this order gives the documented value. Reads
// piecewise, because 100 MB of new memory would add a quarter of the time.
std::optional<std::uint64_t> LoadedModel::hash_parameters(double until) {
  std::uint64_t hash = fnv1a({});
  for (const auto& [name, node] : compiled.step.parameters) {
    const std::uint64_t bytes = compiled.step.graph[node].type.bytes();
    for (std::uint64_t first = 0; first < bytes; first += kPiece) {
      if (Profiler::now() > until) return std::nullopt;
      const std::span<std::byte> some = std::span(piece_).first(std::min(kPiece, bytes - first));
      runnable->read_range(buffer(node), first, some);
      hash = fnv1a(some, hash);
    }
  }
  return hash;
}

double LoadedModel::last_record(std::size_t index) {
  if (done[index] == 0) return std::numeric_limits<double>::quiet_NaN();
  const StepPhase& phase = phases()[index];
  const std::uint64_t at = (done[index] - 1) % static_cast<std::uint64_t>(phase.ring);
  float value = 0;
  runnable->read_range(buffer(phase.recorded[0].ring), at * sizeof value, std::as_writable_bytes(std::span(&value, 1)));
  return static_cast<double>(unsigned_nan(value));
}

bool LoadedModel::losses_finite(std::uint64_t steps) {
  const std::size_t index = training();
  const StepPhase& phase = phases()[index];
  const auto ring = static_cast<std::uint64_t>(phase.ring);
  for (std::uint64_t left = std::min(steps, ring); left > 0;) {  // two pieces if they wrap around its end
    const std::uint64_t first = (done[index] - left) % ring, count = std::min(left, ring - first);
    const std::span<std::byte> piece_of_ring = std::as_writable_bytes(std::span(ring_values_).first(count));
    runnable->read_range(buffer(phase.recorded[0].ring), first * sizeof(float), piece_of_ring);
    if (!all_finite(piece_of_ring)) return false;
    left -= count;
  }
  return true;
}

bool LoadedModel::parameters_finite() {
  return graphrun::parameters_finite(program(), *runnable, piece_);
}

void LoadedModel::set_done(std::size_t phase, std::uint64_t steps) {
  done[phase] = steps;
  if (phases()[phase].name == "train") steps_before_.store(steps, std::memory_order_relaxed);
  runnable->write(buffer(phases()[phase].counter), std::as_bytes(std::span(&done[phase], 1)));
}

double LoadedModel::read_scalar(ir::NodeId state) const {
  const BufferId id = buffer(state);
  return with_type(program().buffers[id].type.dtype, [&](auto value) {
    runnable->read(id, std::as_writable_bytes(std::span(&value, 1)));
    return static_cast<double>(value);
  });
}

std::uint64_t LoadedModel::steps_of_epoch() const {
  return static_cast<std::uint64_t>(phases()[training()].batches.count());
}

std::uint64_t LoadedModel::step() const {
  const std::uint64_t before = steps_before_.load(std::memory_order_relaxed);
  return stepping_.load(std::memory_order_relaxed) ? before + runnable->steps_begun() + 1 : before;
}

void LoadedModel::reject_in_train(std::string_view call) const {
  if (!is_training()) return;
  throw Error(ErrorKind::input, "session.busy", fmt::format("{}: train() is under way", call),
              "call it when train() has returned, not from its callbacks");
}

void LoadedModel::set_rows(std::string_view split, std::int64_t rows) {
  const auto& varying = compiled.step.rows;
  const auto found = std::find_if(varying.begin(), varying.end(), [&](const auto& one) { return one.first == split; });
  if (found == varying.end()) {
    throw Error(ErrorKind::input, "rows.fixed",
                fmt::format("set_rows: no split '{}' has a number of rows that varies", split),
                "Split::rows_vary says so before the session is made");
  }
  const std::int64_t capacity = model.data.find(split)->samples();
  std::int64_t min_rows = 1;
  for (const StepPhase& phase : phases()) {
    if (phase.split == split && phase.batches.drop_last) min_rows = phase.batches.capacity;
  }
  if (rows < min_rows || rows > capacity) {
    throw Error(ErrorKind::input, "rows.range",
                fmt::format("set_rows: {} rows of '{}': there can be from {} to {}", rows, split, min_rows, capacity));
  }
  const auto in_use = static_cast<std::uint64_t>(rows);
  runnable->write(buffer(found->second), std::as_bytes(std::span(&in_use, 1)));
  for (std::size_t i = 0; i < phases().size(); ++i) {
    StepPhase& phase = compiled.step.phases[i];
    if (phase.split != split) continue;
    phase.batches.total = rows;
    if (phase.name == "train") continue;
    set_done(i, 0);  // an evaluation starts at the first batch
  }
}

}  // namespace graphrun
