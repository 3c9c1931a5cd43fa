// session.cpp: joins graph and executor: plans, loads, feeds, runs, reads.
#include "graphrun/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "base/philox.h"
#include "graphrun/error.h"
#include "session/fit_batch.h"
#include "session/planned.h"

namespace graphrun {
namespace {

const Standardization* find_standardization(const Model& model, std::string_view input) {
  for (const Standardization& fitted : model.data.standardizations) {
    if (fitted.input == input) return &fitted;
  }
  return nullptr;
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

struct Session::Impl {
  Impl(Model m, const SessionOptions& options)
      : model(std::move(m)),
        executor(choose_executor(options.executor, options.custom_executor, options.threads)),
        planned(plan_model(model, {&executor, 1}, {options.target, options.passes})) {
    runnable = load({options.target, options.passes});
    done.assign(planned.step.phases.size(), 0);
    ring_values.resize(static_cast<std::size_t>(kRingSize));
    write_start(model, planned, *runnable);
  }

  std::unique_ptr<Runnable> load(const PlanOptions& options) {
    try {
      return executor->load(planned.program);
    } catch (const OutOfMemory& error) {
      throw explained(error, planned.program, model, {&executor, 1}, options);
    }
  }

  const Program& program() const { return planned.program; }
  BufferId buffer(ir::NodeId node) const { return planned.buffer(node); }

  void write(BufferId id, const HostTensor& tensor) { runnable->write(id, tensor.bytes()); }

  std::optional<std::size_t> phase_index(std::string_view name) const {
    for (std::size_t i = 0; i < planned.step.phases.size(); ++i) {
      if (planned.step.phases[i].name == name) return i;
    }
    return std::nullopt;
  }

  // Samples of the batch at a step of the phase: what its mean counts for.
  double weight(const StepPhase& phase, std::uint64_t step) const {
    const std::int64_t batch = static_cast<std::int64_t>(step % static_cast<std::uint64_t>(phase.batches));
    const std::int64_t capacity = model.graph.batch();
    return static_cast<double>(std::min(capacity, phase.samples - batch * capacity));
  }

  // Runs n <= ring size steps of a phase; afterwards observe() sees their records.
  void run(std::size_t phase, std::uint64_t n) {
    runnable->run(static_cast<PhaseId>(phase), n);
    done[phase] += n;
  }

  // Calls see(step, value) for the records of the last n steps, oldest first.
  template <class See>
  void observe(std::size_t index, const Recorded& recorded, std::uint64_t n, See see) {
    const std::uint64_t ring = static_cast<std::uint64_t>(planned.step.phases[index].ring);
    const std::span<float> values(ring_values.data(), ring);
    runnable->read(buffer(recorded.ring), std::as_writable_bytes(values));
    for (std::uint64_t step = done[index] - n; step < done[index]; ++step) see(step, values[step % ring]);
  }

  Metrics evaluate(std::string_view split) {
    const std::optional<std::size_t> index = phase_index(fmt::format("evaluate.{}", split));
    if (!index) {
      std::vector<std::string> names;
      for (const Split& s : model.data.splits) names.push_back(s.name);
      throw Error(ErrorKind::input, "split.unknown", fmt::format("the model has no split '{}' to evaluate", split),
                  fmt::format("splits: {}", fmt::join(names, ", ")));
    }
    const StepPhase& phase = planned.step.phases[*index];
    std::vector<double> sums(phase.recorded.size(), 0.0);
    const std::uint64_t batches = static_cast<std::uint64_t>(phase.batches);
    for (std::uint64_t first = 0; first < batches;) {
      const std::uint64_t n = std::min(batches - first, static_cast<std::uint64_t>(phase.ring));
      run(*index, n);
      for (std::size_t i = 0; i < phase.recorded.size(); ++i) {
        observe(*index, phase.recorded[i], n,
                [&](std::uint64_t step, float value) { sums[i] += weight(phase, step) * static_cast<double>(value); });
      }
      first += n;
    }
    Metrics metrics;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const double mean = sums[i] / static_cast<double>(phase.samples);
      const double value = phase.recorded[i].root ? std::sqrt(mean) : mean;
      if (i == 0) {
        metrics.loss = value;
      } else {
        metrics.values.emplace_back(phase.recorded[i].name, value);
      }
    }
    return metrics;
  }

  TrainResult train(const std::function<void(const Report&)>& on_report) {
    const std::optional<std::size_t> index = phase_index("train");
    if (!index) {
      throw Error(ErrorKind::input, "train.nothing",
                  "there is nothing to train: the model has no loss or no training data");
    }
    const StepPhase& phase = planned.step.phases[*index];
    const std::uint64_t batches = static_cast<std::uint64_t>(phase.batches);
    const std::int64_t epochs = model.train.epochs;
    const std::int64_t every = model.train.log_every > 0 ? model.train.log_every : (epochs + 199) / 200;

    TrainResult result;
    result.losses.reserve(static_cast<std::size_t>(epochs) * batches);
    double epoch_sum = 0;
    const std::uint64_t start = done[*index];
    const std::uint64_t total = static_cast<std::uint64_t>(epochs) * batches;
    while (result.steps < total && !cancelled.load(std::memory_order_relaxed)) {
      // To the next report at most, so that its epoch has just ended.
      const std::uint64_t next_report =
          (static_cast<std::uint64_t>(result.epochs) / static_cast<std::uint64_t>(every) + 1) *
          static_cast<std::uint64_t>(every) * batches;
      const std::uint64_t n =
          std::min({next_report, total, result.steps + static_cast<std::uint64_t>(phase.ring)}) - result.steps;
      const double before = now_seconds();
      run(*index, n);
      result.seconds += now_seconds() - before;
      double last_epoch = 0;
      observe(*index, phase.recorded[0], n, [&](std::uint64_t step, float value) {
        check_finite(step - start, value);
        result.losses.push_back(static_cast<double>(value));
        epoch_sum += weight(phase, step) * static_cast<double>(value);
        if ((step + 1) % batches != 0) return;
        last_epoch = epoch_sum / static_cast<double>(phase.samples);
        epoch_sum = 0;
      });
      result.steps += n;
      result.epochs = static_cast<std::int64_t>(result.steps / batches);
      if (result.steps == next_report || result.steps == total) report(result, last_epoch, on_report);
    }
    result.cancelled = result.steps < total;
    cancelled.store(false, std::memory_order_relaxed);
    return result;
  }

  void check_finite(std::uint64_t step, float loss) const {
    if (std::isfinite(loss)) return;
    const std::string batches =
        fmt::format("step {} (epoch {})", step, step / static_cast<std::uint64_t>(planned.step.phases[0].batches) + 1);
    throw Error(ErrorKind::run, "run.not_finite", fmt::format("the loss is {} at {}: it is not finite", loss, batches),
                "a smaller learning rate often helps; standardize data of large numbers");
  }

  void report(const TrainResult& result, double loss, const std::function<void(const Report&)>& on_report) {
    const std::int64_t every = model.train.evaluate_every;
    Report now;
    now.epoch = result.epochs;
    now.epochs = model.train.epochs;
    now.loss = loss;
    now.steps_per_second = result.seconds > 0 ? static_cast<double>(result.steps) / result.seconds : 0;
    if (every > 0 && result.epochs % every == 0 && phase_index("evaluate.validation"))
      now.validation = evaluate("validation");
    if (on_report) on_report(now);
  }

  HostTensor predict(const std::vector<std::pair<std::string, HostTensor>>& given);
  void write_batch(const StepPhase& phase, const std::vector<std::pair<std::string, HostTensor>>& given,
                   std::int64_t first, std::int64_t count);

  Model model;
  std::shared_ptr<Executor> executor;
  Planned planned;
  std::unique_ptr<Runnable> runnable;
  std::vector<std::uint64_t> done;  // by phase: steps so far, which is what its counter holds
  std::vector<float> ring_values;
  std::atomic<bool> cancelled{false};
};

// ---- prediction

void Session::Impl::write_batch(const StepPhase& phase, const std::vector<std::pair<std::string, HostTensor>>& given,
                                std::int64_t first, std::int64_t count) {
  for (const auto& [name, node] : phase.inputs) {
    const auto entry = std::find_if(given.begin(), given.end(), [&, n = name](const auto& g) { return g.first == n; });
    const TensorType& type = planned.step.graph[node].type;
    const std::size_t row = type.bytes() / static_cast<std::size_t>(std::max<std::int64_t>(type.shape[0], 1));
    HostTensor batch(type.dtype, type.shape);  // zeros
    const std::span<const std::byte> rows =
        entry->second.bytes().subspan(static_cast<std::size_t>(first) * row, static_cast<std::size_t>(count) * row);
    std::copy(rows.begin(), rows.end(), batch.bytes().begin());
    if (const Standardization* fitted = find_standardization(model, name)) {
      const std::span<float> values =
          batch.elements<float>().first(static_cast<std::size_t>(count) * row / sizeof(float));
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t column = i % fitted->scale.size();
        values[i] =
            static_cast<float>((static_cast<double>(values[i]) - fitted->shift[column]) / fitted->scale[column]);
      }
    }
    write(buffer(node), batch);
  }
  HostTensor rows(DType::i32, {});
  rows.elements<std::int32_t>()[0] = static_cast<std::int32_t>(count);
  write(buffer(phase.count), rows);
}

HostTensor Session::Impl::predict(const std::vector<std::pair<std::string, HostTensor>>& given) {
  const std::optional<std::size_t> index = phase_index("predict");
  if (!index) throw Error(ErrorKind::input, "predict.nothing", "the model names no output to predict");
  const StepPhase& phase = planned.step.phases[*index];
  std::int64_t samples = -1;
  for (const auto& [name, node] : phase.inputs) {
    const auto entry = std::find_if(given.begin(), given.end(), [&, n = name](const auto& g) { return g.first == n; });
    if (entry == given.end()) {
      throw Error(ErrorKind::input, "predict.missing", fmt::format("predict: the input '{}' is missing", name));
    }
    const HostTensor& tensor = entry->second;
    Shape wanted = planned.step.graph[node].type.shape;
    wanted[0] = tensor.shape().rank() > 0 ? tensor.shape()[0] : 0;
    if (tensor.dtype() != planned.step.graph[node].type.dtype || !(tensor.shape() == wanted)) {
      throw Error(
          ErrorKind::input, "predict.shape",
          fmt::format("predict: '{}' must be {} with any number of rows, got {}{}", name,
                      to_string(planned.step.graph[node].type), name_of(tensor.dtype()), to_string(tensor.shape())));
    }
    if (samples >= 0 && samples != wanted[0]) {
      throw Error(ErrorKind::input, "predict.rows",
                  fmt::format("predict: '{}' has {} rows, another input {}", name, wanted[0], samples));
    }
    samples = wanted[0];
  }
  const TensorType& type = planned.step.graph[phase.output].type;
  Shape shape = type.shape;
  shape[0] = samples * std::max<std::int64_t>(type.rows, 1);
  HostTensor result(type.dtype, shape);
  HostTensor batch(type.dtype, type.shape);
  const std::int64_t capacity = model.graph.batch();
  const std::size_t sample_bytes = type.bytes() / static_cast<std::size_t>(capacity);
  for (std::int64_t first = 0; first < samples; first += capacity) {
    const std::int64_t count = std::min(capacity, samples - first);
    write_batch(phase, given, first, count);
    run(*index, 1);
    runnable->read(buffer(phase.output), batch.bytes());
    const auto bytes = batch.bytes().first(static_cast<std::size_t>(count) * sample_bytes);
    std::copy(bytes.begin(), bytes.end(), result.bytes().begin() + first * static_cast<std::int64_t>(sample_bytes));
  }
  if (const Standardization* fitted = find_standardization(model, model.outputs.front().target)) {
    const std::span<float> values = result.elements<float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t column = i % fitted->scale.size();
      values[i] = static_cast<float>(static_cast<double>(values[i]) * fitted->scale[column] + fitted->shift[column]);
    }
  }
  return result;
}

// ---- the public face

Session::Session(Model model, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(std::move(model), options)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

TrainResult Session::train(const std::function<void(const Report&)>& on_report) {
  return impl_->train(on_report);
}
void Session::cancel() noexcept {
  impl_->cancelled.store(true, std::memory_order_relaxed);
}
Metrics Session::evaluate(std::string_view split) {
  return impl_->evaluate(split);
}
bool Session::has_split(std::string_view split) const {
  return impl_->phase_index(fmt::format("evaluate.{}", split)).has_value();
}
HostTensor Session::predict(const std::vector<std::pair<std::string, HostTensor>>& inputs) {
  return impl_->predict(inputs);
}

namespace {
BufferId find_state(const Program& program, std::string_view name) {
  const BufferId id = find_buffer(program, name);
  if (id != kNoBuffer && is_state(program.buffers[id].kind)) return id;
  std::vector<std::string> names;
  for (const Buffer& buffer : program.buffers) {
    if (is_state(buffer.kind)) names.push_back(buffer.name);
  }
  const std::string near = nearest_name(name, names);
  throw Error(ErrorKind::input, "state.unknown", fmt::format("there is no state '{}'", name),
              near.empty() ? "" : fmt::format("did you mean '{}'?", near));
}
}  // namespace

HostTensor Session::read(std::string_view name) {
  const BufferId id = find_state(impl_->program(), name);
  const TensorType& type = impl_->program().buffers[id].type;
  HostTensor tensor(type.dtype, type.shape);
  impl_->runnable->read(id, tensor.bytes());
  return tensor;
}

void Session::write(std::string_view name, const HostTensor& value) {
  const BufferId id = find_state(impl_->program(), name);
  const TensorType& type = impl_->program().buffers[id].type;
  if (value.dtype() != type.dtype || !(value.shape() == type.shape)) {
    throw Error(
        ErrorKind::input, "state.shape",
        fmt::format("'{}' is {}, not {}{}", name, to_string(type), name_of(value.dtype()), to_string(value.shape())));
  }
  impl_->runnable->write(id, value.bytes());
}

std::string Session::weights_hash() {
  std::uint64_t hash = fnv1a({});
  for (const auto& [name, node] : impl_->planned.step.parameters) hash = fnv1a(read(name).bytes(), hash);
  return fmt::format("{:016x}", hash);
}

std::vector<std::pair<std::string, std::uint64_t>> Session::counters() const {
  return impl_->runnable->counters();
}

const Program& Session::program() const {
  return impl_->program();
}
const Model& Session::model() const {
  return impl_->model;
}
std::string_view Session::executor() const {
  return impl_->executor->name();
}

Program plan_program(const Model& model, const SessionOptions& options) {
  const std::shared_ptr<Executor> executor =
      choose_executor(options.executor, options.custom_executor, options.threads);
  return plan_model(model, {&executor, 1}, {options.target, options.passes}).program;
}

}  // namespace graphrun
