// session.cpp: the public object over a loaded model, its trainer, its predictor and its evaluator.
#include "graphrun/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graphrun/error.h"
#include "session/compiling/jit.h"
#include "session/session_impl.h"

namespace graphrun {

NotFinite::~NotFinite() = default;

Session::Session(Model model, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(std::move(model), options)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

TrainResult Session::train(const TrainOptions& options) {
  not_moved(impl_).loaded.reject_in_train("train");
  constexpr double kAfterCancel = 0.05;  // seconds
  impl_->loaded.model.data.thresholds.clear();
  TrainResult result = impl_->trainer.train(options);
  if (const auto& rule = impl_->loaded.model.train.threshold)
    choose_thresholds(*rule, "validation", result.cancelled ? kAfterCancel : kForever);
  return result;
}
TrainResult Session::train(const std::function<void(const Report&)>& on_report) {
  return train({on_report, {}, true});
}
std::uint64_t Session::step() const noexcept {
  return impl_ == nullptr ? 0 : impl_->loaded.step();
}
bool Session::advance(std::uint64_t steps) {
  LoadedModel& loaded = not_moved(impl_).loaded;
  loaded.reject_in_train("advance");
  loaded.run(loaded.training(), steps);
  return loaded.losses_finite(steps);
}
bool Session::losses_finite(std::uint64_t steps) {
  LoadedModel& loaded = not_moved(impl_).loaded;
  return loaded.losses_finite(std::min(steps, loaded.done[loaded.training()]));
}
std::uint64_t Session::run_until(std::chrono::steady_clock::time_point deadline, std::uint64_t max_steps) {
  not_moved(impl_).loaded.reject_in_train("run_until");
  return impl_->trainer.run_until(deadline, max_steps);
}
void Session::set_rows(std::string_view split, std::int64_t rows) {
  not_moved(impl_).loaded.reject_in_train("set_rows");
  impl_->loaded.set_rows(split, rows);
}
void Session::cancel() noexcept {
  if (impl_ != nullptr && impl_->loaded.is_training()) impl_->loaded.cancelled.store(true, std::memory_order_relaxed);
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
  Evaluator& evaluator = not_moved(impl_).evaluator;
  const std::optional<std::size_t> index = evaluator.phase_of(split);
  if (!index) reject_split(impl_->loaded.model, split);
  Metrics metrics = evaluator.named_metrics(*index);
  if (!evaluator.evaluate(*index, metrics, Profiler::now() + seconds)) return std::nullopt;
  return metrics;
}
std::vector<OutputScores> Session::scores(std::string_view split) {
  return *scores(split, kForever);
}
std::optional<std::vector<OutputScores>> Session::scores(std::string_view split, double seconds, bool with_curves) {
  if (not_moved(impl_).loaded.model.data.find(split) == nullptr) reject_split(impl_->loaded.model, split);
  return impl_->evaluator.scores(split, Profiler::now() + seconds, with_curves);
}
bool Session::choose_thresholds(const ThresholdRule& rule, std::string_view split, double seconds) {
  not_moved(impl_).loaded.reject_in_train("choose_thresholds");
  return impl_->evaluator.choose_thresholds(rule, split, Profiler::now() + seconds);
}
void Session::set_thresholds(std::vector<FittedStatistic> thresholds) {
  not_moved(impl_).loaded.model.data.thresholds = std::move(thresholds);
}
bool Session::has_split(std::string_view split) const {
  return not_moved(impl_).evaluator.phase_of(split).has_value();
}
std::vector<std::string> Session::metric_names() const {
  return not_moved(impl_).evaluator.metric_names();
}
std::vector<std::string> Session::training_warnings() const {
  return graphrun::training_warnings(not_moved(impl_).loaded);
}
std::vector<std::string> Session::watched() const {
  return not_moved(impl_).trainer.watched();
}
HostTensor Session::predict(const std::vector<std::pair<std::string, HostTensor>>& inputs) {
  return std::move(not_moved(impl_).predictor.predict(impl_->predictor.transformed(inputs), 1).front().second);
}
std::vector<std::pair<std::string, HostTensor>> Session::predict_all(
    const std::vector<std::pair<std::string, HostTensor>>& inputs) {
  return not_moved(impl_).predictor.predict(impl_->predictor.transformed(inputs), impl_->loaded.model.outputs.size());
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
  return {find_state(not_moved(impl_).loaded.compiled, name)};
}
const TensorType& Session::type(ValueId id) const {
  return state_of(not_moved(impl_).loaded.program(), id).type;
}
void Session::read(ValueId id, std::span<std::byte> bytes) {
  check_size(state_of(not_moved(impl_).loaded.program(), id), bytes.size());
  impl_->loaded.runnable->read(id.buffer, bytes);
}
void Session::write(ValueId id, std::span<const std::byte> bytes) {
  const Buffer& buffer = state_of(not_moved(impl_).loaded.program(), id);
  check_writable(buffer);
  check_size(buffer, bytes.size());
  impl_->loaded.runnable->write(id.buffer, bytes);
  impl_->trainer.state_written();
}
void Session::write_rows(ValueId id, std::int64_t first_row, std::span<const std::byte> bytes) {
  const Buffer& buffer = state_of(not_moved(impl_).loaded.program(), id);
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
  impl_->loaded.runnable->write_rows(id.buffer, first_row, bytes);
}
double Session::loss() {
  return not_moved(impl_).loaded.last_record(impl_->loaded.training());
}
void Session::predict(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs,
                      DType floats) {
  not_moved(impl_).predictor.predict(inputs, outputs, floats);
}
std::vector<std::pair<std::string, TensorType>> Session::prediction_inputs() const {
  return not_moved(impl_).predictor.inputs();
}
std::vector<std::pair<std::string, TensorType>> Session::prediction_outputs() const {
  return not_moved(impl_).predictor.outputs();
}
std::size_t Session::state_bytes() const {
  return not_moved(impl_).trainer.state_bytes();
}
void Session::save_state(std::span<std::byte> to) {
  not_moved(impl_).loaded.reject_in_train("save_state");
  impl_->trainer.save_state(to);
}
void Session::load_state(std::span<const std::byte> from) {
  not_moved(impl_).loaded.reject_in_train("load_state");
  impl_->trainer.load_state(from);
}

HostTensor Session::read(std::string_view name) {
  const ValueId id = find(name);
  HostTensor tensor(type(id).dtype, type(id).shape);
  read(id, tensor.bytes());
  return tensor;
}

void Session::write(std::string_view name, const HostTensor& value) {
  const ValueId id = find(name);
  const Buffer& buffer = state_of(impl_->loaded.program(), id);
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
  const std::optional<std::uint64_t> hash = not_moved(impl_).loaded.hash_parameters(Profiler::now() + seconds);
  if (!hash) return std::nullopt;
  return fmt::format("{:016x}", *hash);
}

std::vector<std::pair<std::string, double>> Session::optimizer_numbers() const {
  const LoadedModel& loaded = not_moved(impl_).loaded;
  std::vector<std::pair<std::string, double>> numbers;
  for (const auto& [name, state] : loaded.compiled.step.optimizer)
    numbers.emplace_back(name, loaded.read_scalar(state));
  return numbers;
}

std::vector<std::pair<std::string, std::uint64_t>> Session::counters() const {
  return not_moved(impl_).loaded.runnable->counters();
}

const SetupTimes& Session::setup_times() const {
  return not_moved(impl_).loaded.times;
}
const std::vector<ExecutorTiming>& Session::timings() const {
  return not_moved(impl_).loaded.timings;
}
Profile Session::profile() const {
  return not_moved(impl_).loaded.runnable->profile();
}
const Program& Session::program() const {
  return not_moved(impl_).loaded.program();
}
FusionSummary Session::fusion() const {
  return fusion_of(not_moved(impl_).loaded.compiled);
}
const Model& Session::model() const {
  return not_moved(impl_).loaded.model;
}
std::string_view Session::executor() const {
  return not_moved(impl_).loaded.executor->name();
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
