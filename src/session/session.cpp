// session.cpp: combines graph and executor: plans, loads, feeds, and exposes them as one object.
#include "graphrun/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/json.h"
#include "base/json_text.h"
#include "base/philox.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/format/overrides.h"
#include "graph/frontend/model_check.h"
#include "graph/frontend/step/class_numbers.h"
#include "graphrun/elements.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "session/compiling/fit_batch.h"
#include "session/compiling/jit.h"
#include "session/ranks/agreement.h"
#include "session/session_impl.h"

namespace graphrun {

NotFinite::~NotFinite() = default;

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

Session::Impl::Impl(Model m, const SessionOptions& options)
    : model(with_good_classes(std::move(m))),
      predicted_classes(class_numbers_of_outputs(model)),
      executor(executor_for(model, options, timings)),
      communicator(options.communicator),
      planned(plan_options(options)) {
  const auto tell = [&](std::string_view what) {
    if (options.on_progress) options.on_progress(what, -1);
  };
  const double start = Profiler::now();
  tell("planning");
  compiled = compile_model(model, {&executor, 1}, planned);
  if (model.train.largest_batch && !compiled.program.phases.empty())
    settle_batch(model, compiled.step.phases.front().batches.capacity);
  const double has_plan = Profiler::now();
  executor->set_profiling(options.profiling);
  tell(fmt::format("{} {}", has_step_kernels(compiled) ? "compiling kernels for" : "loading on", executor->name()));
  runnable = load(planned);
  const double has_loaded = Profiler::now();
  tell(fmt::format("writing the data to {}", executor->name()));
  write_start(model, compiled, {runnable.get()});
  times = {has_plan - start, has_loaded - has_plan, Profiler::now() - has_loaded};
  check_same_training(communicator.get(), model, program(), executor->name());
  prepare_predictions();
  done.assign(compiled.step.phases.size(), 0);
  paces.resize(compiled.step.phases.size());
  ring_values.resize(static_cast<std::size_t>(kRingSize));
  for (const StepPhase& phase : compiled.step.phases) {
    std::size_t numbers = 0;
    for (const Recorded& recorded : phase.recorded) numbers += std::max<std::size_t>(1, recorded.parts.size());
    totals.resize(std::max(totals.size(), numbers));
  }
  for (const MetricFormula& formula : compiled.step.formulas) formulas.emplace_back(formula);
  for (const std::string& name : options.watch) {
    const BufferId in_step = compiled.find("train/" + name), id = in_step == kNoBuffer ? compiled.find(name) : in_step;
    if (id == kNoBuffer)
      throw Error(ErrorKind::input, "watch.simplified", fmt::format("'{}' was simplified away", name),
                  "--no-passes leaves the graph as it was built");
    if (model.train.shards > 1 && program().buffers[id].type.rows > 0)
      throw Error(ErrorKind::input, "watch.shards",
                  fmt::format("'{}' has a row for each sample, and each shard has its own", name),
                  "watch a value without rows, or train without --shards");
    watched.push_back({id, std::vector<std::byte>(program().buffers[id].type.bytes())});
    watched_names.push_back(name);
  }
  watched_statistics.resize(watched.size());
  if (model.train.early_stopping && model.train.early_stopping->restore_best)
    best = StateCopy(program(), parameters_of(program()));
  if (const auto index = phase_index("train")) objectives.resize(compiled.step.phases[*index].recorded.size() - 1);
  prepare_state();  // also for `best` and `objectives`
  piece.resize(kPiece);
  for (const Standardization& one : model.data.standardizations) fitted_by_input.emplace(one.input, &one);
}

std::unique_ptr<Runnable> Session::Impl::load(PlanOptions options) {
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

std::optional<std::size_t> Session::Impl::phase_index(std::string_view name) const {
  for (std::size_t i = 0; i < compiled.step.phases.size(); ++i) {
    if (compiled.step.phases[i].name == name) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> Session::Impl::evaluation_of(std::string_view split) const {
  return phase_index(fmt::format("evaluate.{}", split));
}

std::size_t Session::Impl::training() const {
  const std::optional<std::size_t> index = phase_index("train");
  if (index) return *index;
  throw Error(ErrorKind::input, "train.nothing",
              "there is nothing to train: the model has no loss or no training data");
}

void Session::Impl::run(std::size_t phase, std::uint64_t n) {
  const bool trains = compiled.step.phases[phase].name == "train";
  if (trains) {
    steps_before.store(done[phase], std::memory_order_relaxed);
    stepping.store(true, std::memory_order_relaxed);
  }
  const double before = Profiler::now();
  runnable->run(static_cast<PhaseId>(phase), n);
  const double seconds = Profiler::now() - before;
  Pace& pace = paces[phase];
  const double fastest = std::max(seconds, 1e-9) / static_cast<double>(std::max<std::uint64_t>(n, 1));
  if (n > 0) pace = {n, seconds, pace.fastest > 0 ? std::min(pace.fastest, fastest) : fastest};
  done[phase] += n;
  if (trains) {
    stepping.store(false, std::memory_order_relaxed);
    steps_before.store(done[phase], std::memory_order_relaxed);
  }
}

std::uint64_t Session::Impl::steps_per_poll(std::size_t phase, std::uint64_t most) const {
  constexpr double kSeconds = 0.025;
  constexpr double kGrowth = 8;  // few steps give a poor estimate
  const Pace& last = paces[phase];
  if (last.steps == 0) return 1;
  const double steps = static_cast<double>(last.steps);
  const double fit = last.seconds > 0 ? steps * kSeconds / last.seconds : steps * kGrowth;
  const double wanted = std::clamp(std::min(fit, steps * kGrowth), 1.0, 1e15);
  return std::min(most, static_cast<std::uint64_t>(wanted));
}

// Each byte depends on the previous product (about 0.7 GB/s), and only this order gives the documented value. Reads
// piecewise, because 100 MB of new memory would add a quarter of the time.
std::optional<std::uint64_t> Session::Impl::hash_parameters(double until) {
  std::uint64_t hash = fnv1a({});
  for (const auto& [name, node] : compiled.step.parameters) {
    const std::uint64_t bytes = compiled.step.graph[node].type.bytes();
    for (std::uint64_t first = 0; first < bytes; first += kPiece) {
      if (Profiler::now() > until) return std::nullopt;
      const std::span<std::byte> some = std::span(piece).first(std::min(kPiece, bytes - first));
      runnable->read_range(buffer(node), first, some);
      hash = fnv1a(some, hash);
    }
  }
  return hash;
}

// ---- public interface

namespace {
constexpr double kForever = std::numeric_limits<double>::infinity();
}  // namespace

// Converts columns that stay f32 or f64 without a transform to the type of their input.
void change_original(Model& model) {
  std::set<std::pair<std::string, std::string>> given;
  for (const Split& split : model.data.splits)
    for (const std::string& input : split.original) given.emplace(split.name, input);
  if (model.data.arrays) model.data.arrays->change(model.data);
  for (Split& split : model.data.splits) {
    for (auto& [input, column] : split.columns) {
      const bool is_f32 = std::ranges::any_of(model.graph.impl().graph.nodes, [&name = input](const ir::Node& node) {
        return node.op == Op::input && node.name == name && node.type.dtype == DType::f32;
      });
      const bool is_wide = model.train.precision == Precision::fp64;
      if (is_wide && is_f32 && column.dtype() == DType::f32)
        column = from_doubles(as_doubles(column), {DType::f64, column.shape(), 0});
      if (is_wide || column.dtype() != DType::f64 || !is_f32 || !given.contains({split.name, input})) continue;
      HostTensor rounded(DType::f32, column.shape());
      for (std::size_t i = 0; i < rounded.elements<float>().size(); ++i) {
        const double value = column.elements<double>()[i];
        rounded.elements<float>()[i] = static_cast<float>(value);
        if (std::isfinite(value) && !std::isfinite(rounded.elements<float>()[i]))
          throw Error(ErrorKind::input, "data.value",
                      fmt::format("input '{}' of {}: {} is too large for f32", input, split.name, value));
      }
      column = std::move(rounded);
    }
  }
}

Session::Session(Model model, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(std::move(model), options)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

TrainResult Session::train(const TrainOptions& options) {
  not_moved(impl_).reject_in_train("train");
  constexpr double kAfterCancel = 0.05;  // seconds
  impl_->model.data.thresholds.clear();
  TrainResult result = impl_->train(options);
  if (const auto& rule = impl_->model.train.threshold)
    choose_thresholds(*rule, "validation", result.cancelled ? kAfterCancel : kForever);
  return result;
}
TrainResult Session::train(const std::function<void(const Report&)>& on_report) {
  return train({on_report, {}, true});
}
std::uint64_t Session::step() const noexcept {
  if (impl_ == nullptr) return 0;
  const std::uint64_t before = impl_->steps_before.load(std::memory_order_relaxed);
  return impl_->stepping.load(std::memory_order_relaxed) ? before + impl_->runnable->steps_begun() + 1 : before;
}
void Session::cancel() noexcept {
  if (impl_ == nullptr || !impl_->in_train.load(std::memory_order_relaxed)) return;
  impl_->cancelled.store(true, std::memory_order_relaxed);
}
namespace {
[[noreturn]] void reject_split(const Model& model, std::string_view split) {
  std::vector<std::string> names;
  for (const Split& s : model.data.splits) names.push_back(s.name);
  throw Error(ErrorKind::input, "split.unknown", fmt::format("the model has no split '{}' to evaluate", split),
              fmt::format("splits: {}", fmt::join(names, ", ")));
}
}  // namespace

Metrics Session::evaluate(std::string_view split) {
  return *evaluate(split, kForever);
}
std::optional<Metrics> Session::evaluate(std::string_view split, double seconds) {
  const std::optional<std::size_t> index = not_moved(impl_).evaluation_of(split);
  if (!index) reject_split(impl_->model, split);
  Metrics metrics = not_moved(impl_).named_metrics(*index);
  if (!not_moved(impl_).evaluate(*index, metrics, Profiler::now() + seconds)) return std::nullopt;
  return metrics;
}
std::vector<OutputScores> Session::scores(std::string_view split) {
  return *scores(split, kForever);
}
std::optional<std::vector<OutputScores>> Session::scores(std::string_view split, double seconds, bool with_curves) {
  if (not_moved(impl_).model.data.find(split) == nullptr) reject_split(impl_->model, split);
  return impl_->scores(split, Profiler::now() + seconds, nullptr, with_curves);
}
bool Session::choose_thresholds(const ThresholdRule& rule, std::string_view split, double seconds) {
  not_moved(impl_).reject_in_train("choose_thresholds");
  return impl_->choose_thresholds(rule, split, Profiler::now() + seconds);
}
void Session::set_thresholds(std::vector<FittedStatistic> thresholds) {
  not_moved(impl_).model.data.thresholds = std::move(thresholds);
}
bool Session::has_split(std::string_view split) const {
  return not_moved(impl_).evaluation_of(split).has_value();
}
std::vector<std::string> Session::metric_names() const {
  std::vector<std::string> names;
  for (const StepPhase& phase : not_moved(impl_).compiled.step.phases) {
    if (phase.name.rfind("evaluate.", 0) != 0) continue;
    for (std::size_t i = 1; i < phase.recorded.size(); ++i) names.push_back(phase.recorded[i].name);
    break;
  }
  return names;
}
std::vector<std::string> Session::watched() const {
  return not_moved(impl_).watched_names;
}
HostTensor Session::predict(const std::vector<std::pair<std::string, HostTensor>>& inputs) {
  return std::move(not_moved(impl_).predict(impl_->changed(inputs), 1).front().second);
}
std::vector<std::pair<std::string, HostTensor>> Session::predict_all(
    const std::vector<std::pair<std::string, HostTensor>>& inputs) {
  return not_moved(impl_).predict(impl_->changed(inputs), impl_->model.outputs.size());
}

namespace {
BufferId find_state(const Compiled& compiled, std::string_view name) {
  const Program& program = compiled.program;
  const BufferId id = compiled.find(name);
  if (id != kNoBuffer && is_state(program.buffers[id].kind)) return id;
  std::vector<std::string> names;
  for (const Buffer& buffer : program.buffers) {
    if (is_state(buffer.kind)) names.push_back(buffer.name);
  }
  throw Error(ErrorKind::input, "state.unknown", fmt::format("there is no state '{}'", name),
              did_you_mean(name, names));
}
}  // namespace

namespace {
const Buffer& state_of(const Program& program, ValueId id) {
  if (id.buffer < program.buffers.size() && is_state(program.buffers[id.buffer].kind))
    return program.buffers[id.buffer];
  throw Error(ErrorKind::input, "state.unknown", fmt::format("there is no state of number {}", id.buffer),
              "find() gives the numbers");
}
void check_size(const Buffer& buffer, std::size_t bytes) {
  if (bytes == buffer.type.bytes()) return;
  throw Error(
      ErrorKind::input, "state.shape",
      fmt::format("'{}' is {} of {} bytes, not {}", buffer.name, to_string(buffer.type), buffer.type.bytes(), bytes));
}
void check_writable(const Buffer& buffer) {
  if (buffer.name.ends_with(":rows")) {
    throw Error(ErrorKind::input, "state.rows_vary",
                fmt::format("'{}' is the number of rows in use: call set_rows()", buffer.name));
  }
  if (buffer.kind != BufferKind::constant) return;
  throw Error(ErrorKind::input, "state.constant",
              fmt::format("'{}' is a constant: its value was folded into the plan and cannot change", buffer.name),
              "a parameter or an input can be written");
}
}  // namespace

ValueId Session::find(std::string_view name) const {
  return {find_state(not_moved(impl_).compiled, name)};
}
const TensorType& Session::type(ValueId id) const {
  return state_of(not_moved(impl_).program(), id).type;
}
void Session::read(ValueId id, std::span<std::byte> bytes) {
  check_size(state_of(not_moved(impl_).program(), id), bytes.size());
  impl_->runnable->read(id.buffer, bytes);
}
void Session::write(ValueId id, std::span<const std::byte> bytes) {
  const Buffer& buffer = state_of(not_moved(impl_).program(), id);
  check_writable(buffer);
  check_size(buffer, bytes.size());
  impl_->runnable->write(id.buffer, bytes);
  impl_->written = true;
}
void Session::write_rows(ValueId id, std::int64_t first_row, std::span<const std::byte> bytes) {
  const Buffer& buffer = state_of(not_moved(impl_).program(), id);
  check_writable(buffer);
  if (buffer.type.shape.rank() == 0)
    throw Error(ErrorKind::input, "state.rows", fmt::format("'{}' is one number: it has no rows", buffer.name));
  const std::int64_t rows = buffer.type.shape[0];
  const std::uint64_t row = rows > 0 ? buffer.type.bytes() / static_cast<std::uint64_t>(rows) : 0;
  const bool whole = row > 0 && bytes.size() % row == 0;
  if (!whole || first_row < 0 || first_row > rows ||
      bytes.size() / row > static_cast<std::uint64_t>(rows - first_row)) {
    throw Error(ErrorKind::input, "state.rows",
                fmt::format("{} bytes from row {} on do not fit '{}', {} rows of {} bytes", bytes.size(), first_row,
                            buffer.name, rows, row));
  }
  impl_->runnable->write_rows(id.buffer, first_row, bytes);
}
double Session::Impl::last_record(std::size_t index) {
  if (done[index] == 0) return std::numeric_limits<double>::quiet_NaN();
  const StepPhase& phase = compiled.step.phases[index];
  const std::uint64_t at = (done[index] - 1) % static_cast<std::uint64_t>(phase.ring);
  float value = 0;
  runnable->read_range(buffer(phase.recorded[0].ring), at * sizeof value, std::as_writable_bytes(std::span(&value, 1)));
  return static_cast<double>(unsigned_nan(value));
}
double Session::loss() {
  return not_moved(impl_).last_record(impl_->training());
}
void Session::predict(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs,
                      DType floats) {
  not_moved(impl_).predict(inputs, outputs, floats);
}
std::vector<std::pair<std::string, TensorType>> Session::prediction_inputs() const {
  std::vector<std::pair<std::string, TensorType>> inputs;
  for (const auto& [name, node] : not_moved(impl_).prediction().inputs) {
    inputs.emplace_back(name, impl_->program().buffers[impl_->buffer(node)].type);
    Shape& shape = inputs.back().second.shape;
    if (const std::int64_t columns = impl_->columns_of(name); columns > 0 && shape.rank() == 2) shape[1] = columns;
  }
  return inputs;
}
std::vector<std::pair<std::string, TensorType>> Session::prediction_outputs() const {
  std::vector<std::pair<std::string, TensorType>> outputs;
  const StepPhase& phase = not_moved(impl_).prediction();
  for (std::size_t i = 0; i < phase.outputs.size(); ++i)
    outputs.emplace_back(impl_->model.outputs[i].name, impl_->program().buffers[impl_->buffer(phase.outputs[i])].type);
  return outputs;
}

HostTensor Session::read(std::string_view name) {
  const ValueId id = find(name);
  HostTensor tensor(type(id).dtype, type(id).shape);
  read(id, tensor.bytes());
  return tensor;
}

void Session::write(std::string_view name, const HostTensor& value) {
  const ValueId id = find(name);
  const Buffer& buffer = state_of(impl_->program(), id);
  check_writable(buffer);
  if (value.dtype() != buffer.type.dtype || !(value.shape() == buffer.type.shape)) {
    throw Error(ErrorKind::input, "state.shape",
                fmt::format("'{}' is {}, not {}{}", name, to_string(buffer.type), name_of(value.dtype()),
                            to_string(value.shape())));
  }
  write(id, value.bytes());
}

std::string Session::weights_hash() {
  return *weights_hash(kForever);
}
std::optional<std::string> Session::weights_hash(double seconds) {
  const std::optional<std::uint64_t> hash = not_moved(impl_).hash_parameters(Profiler::now() + seconds);
  if (!hash) return std::nullopt;
  return fmt::format("{:016x}", *hash);
}

std::vector<std::pair<std::string, double>> Session::optimizer_numbers() const {
  const Impl& impl = not_moved(impl_);
  std::vector<std::pair<std::string, double>> numbers;
  for (const auto& [name, state] : impl.compiled.step.optimizer) numbers.emplace_back(name, impl.read_scalar(state));
  return numbers;
}

std::vector<std::pair<std::string, std::uint64_t>> Session::counters() const {
  return not_moved(impl_).runnable->counters();
}

const SetupTimes& Session::setup_times() const {
  return not_moved(impl_).times;
}
const std::vector<ExecutorTiming>& Session::timings() const {
  return not_moved(impl_).timings;
}
Profile Session::profile() const {
  return not_moved(impl_).runnable->profile();
}
const Program& Session::program() const {
  return not_moved(impl_).program();
}
FusionSummary Session::fusion() const {
  return fusion_of(not_moved(impl_).compiled);
}
const Model& Session::model() const {
  return not_moved(impl_).model;
}
std::string_view Session::executor() const {
  return not_moved(impl_).executor->name();
}

namespace {
CompiledModel plan_for(const Model& model, const SessionOptions& options) {
  const std::shared_ptr<Executor> executor =
      choose_executor(options.executor, options.custom_executor, options.threads);
  return compile_model(model, {&executor, 1}, plan_options(options));
}
}  // namespace

Program plan_program(const Model& model, const SessionOptions& options, FusionSummary* fusion) {
  CompiledModel compiled = plan_for(model, options);
  if (fusion != nullptr) *fusion = fusion_of(compiled);
  return std::move(compiled.program);
}

GeneratedSource generated_source(const Model& model, const SessionOptions& options) {
  FusionSummary fusion;
  const Program program = plan_program(model, options, &fusion);
  const auto executor = choose_executor(options.executor, options.custom_executor, options.threads);
  const bool trains = program.phases.empty() || has_step_kernels(program.phases.front());
  return {executor->generated_source(program), trains, std::move(fusion.notes)};
}

std::string rows_text(const Model& model, const SessionOptions& options) {
  return to_string(plan_for(model, options).regions);
}

}  // namespace graphrun
