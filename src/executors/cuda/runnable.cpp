#include "executors/cuda/runnable.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "executors/cuda/device.h"
#include "graphrun/error.h"
#include "kernels/cuda/matmul_plan.h"
#include "kernels/cuda/support.h"

namespace graphrun::cuda {

namespace {

Machine machine_for(const Program& program) {
  const Target& target = find_target(program.target.empty() ? "h200" : program.target);
  if (target.executor != "cuda") {
    throw Error(ErrorKind::input, "cuda.target",
                fmt::format("program '{}' was planned for '{}', which is no CUDA device", program.name, program.target),
                "plan it with --executor=cuda");
  }
  return {target.multiprocessors, target.library_workspace};
}

// Nanoseconds from one question to the next.
class Clock {
 public:
  std::uint64_t lap() {
    const auto now = std::chrono::steady_clock::now();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(now - std::exchange(last_, now)).count());
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

Program without_initial(const Program& program) {
  Program copy = program;
  copy.initial.clear();
  return copy;
}

}  // namespace

// Launches on the runnable's stream; products of the library go to cuBLASLt.
class CudaRunnable::StreamLauncher final : public Launcher {
 public:
  StreamLauncher(CudaRunnable& owner, const BoundStep& step, bool capturing)
      : Launcher(owner.machine_), owner_(owner), step_(step), capturing_(capturing) {}

  void launch(const void* kernel, const char* name, Grid grid, std::uint32_t threads, void** arguments) override {
    owner_.api_.launch(kernel, name, grid, threads, arguments, owner_.stream_.get(), capturing_);
  }
  void matmul(const LibraryMatmul& product) override {
    const DeviceProfile::Work work(owner_.profile_.get(), DeviceProfile::Kind::kernel, "cublasLt", owner_.stream_.get(),
                                   capturing_);
    owner_.library_->multiply(product, step_.workspace_bytes, owner_.stream_.get(), step_.label);
    owner_.api_.count_library_call();
  }

 private:
  CudaRunnable& owner_;
  const BoundStep& step_;
  bool capturing_;
};

CudaRunnable::CudaRunnable(const Program& program, int device, Profiling profiling)
    : program_(without_initial(program)), device_(device), machine_(machine_for(program)) {
  check(program);
  if (profiling != Profiling::off) profile_ = std::make_unique<DeviceProfile>(profiling);
  api_.set_profile(profile_.get());
  Clock clock;
  open_device(device_);
  load_times_.emplace_back("context_and_modules_ns", clock.lap());
  api_.doing("load");
  cudaStream_t stream = nullptr;
  api_.check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_.reset(stream);
  const auto allocated = [&](std::uint64_t bytes) {
    return bytes > 0 ? static_cast<std::byte*>(api_.allocate(bytes)) : nullptr;
  };
  arena_ = {allocated(program_.arena_bytes), FreeDevice{&api_}};
  polled_ = poll_block(program_);
  pinned_ = {polled_.bytes > 0 ? static_cast<std::byte*>(api_.allocate_pinned(polled_.bytes)) : nullptr,
             FreePinned{&api_}};
  load_times_.emplace_back("allocation_ns", clock.lap());
  bind_phases();
  clear_states();
  for (const InitialValue& value : program.initial) {
    if (value.bytes.empty()) continue;
    api_.copy_to_device(arena_.get() + program_.buffers[value.buffer].offset, value.bytes.data(), value.bytes.size(),
                        stream_.get());
  }
  load_times_.emplace_back("kernels_and_library_ns", clock.lap());
  graphs_.reserve(phases_.size());
  for (const BoundPhase& phase : phases_) {
    graphs_.emplace_back(api_, stream_.get(), slot_.number(), phase.pace.unroll, [&] {
      for (const BoundStep& step : phase.steps) enqueue(step, true);
      api_.doing(phase.label);
    });
  }
  api_.doing("load");
  api_.synchronize(stream_.get());
  load_times_.emplace_back("capture_ns", clock.lap());
}

CudaRunnable::~CudaRunnable() {
  cudaSetDevice(device_);  // the members that follow belong to it
}

// States start from zero. What lives within a step does not: the sanitizer's initcheck sees a step that reads too
// early.
void CudaRunnable::clear_states() {
  std::uint64_t first = program_.arena_bytes;
  std::uint64_t end = 0;
  for (const Buffer& buffer : program_.buffers) {
    if (!is_state(buffer.kind)) continue;
    first = std::min(first, buffer.offset);
    end = std::max(end, buffer.offset + buffer.bytes);
  }
  if (first < end) api_.clear(arena_.get() + first, end - first, stream_.get());
}

CudaRunnable::BoundStep CudaRunnable::bind(const Phase& phase, std::size_t index) {
  const Step& step = phase.steps[index];
  BoundStep bound;
  bound.label = fmt::format("phase '{}', step {} ({} {})", phase.name, index + 1, step.op, step.name);
  if (step.inputs.size() > kMaxInputs) {
    throw std::logic_error(fmt::format("{}: {} inputs are more than kernels take", bound.label, step.inputs.size()));
  }
  std::vector<TensorType> types;
  const auto address = [&](BufferId id) { return arena_.get() + program_.buffers[id].offset; };
  for (const BufferId input : step.inputs) {
    const auto i = types.size();
    types.push_back(program_.buffers[input].type);
    bound.args.in[i] = address(input);
    bound.args.in_type[i] = types.back();
  }
  bound.args.inputs = static_cast<int>(types.size());
  bound.args.out = address(step.output);
  bound.args.out_type = program_.buffers[step.output].type;
  bound.args.capacity = phase.capacity;
  bound.args.params = step.params;
  if (step.row_count != kNoBuffer) {
    bound.args.row_count = reinterpret_cast<const std::int32_t*>(address(step.row_count));
  }
  if (step.workspace != kNoBuffer) {
    bound.args.workspace = address(step.workspace);
    bound.workspace_bytes = program_.buffers[step.workspace].bytes;
  }
  const Verdict allowed = verdict(step.op, step.params, types, bound.args.out_type, machine_);
  if (!allowed.reason.empty()) throw std::logic_error(fmt::format("{} was declined: {}", bound.label, allowed.reason));
  if (allowed.workspace_bytes > bound.workspace_bytes) {
    throw std::logic_error(fmt::format("{} has {} bytes of workspace, it asked for {}", bound.label,
                                       bound.workspace_bytes, allowed.workspace_bytes));
  }
  if (step.op == "matmul" && !library_ &&
      plan_matmul(std::get<MatmulParams>(step.params), types[0], types[1], machine_).route ==
          MatmulPlan::Route::library) {
    library_.emplace();
  }
  bound.launch = find_kernel(step.op);
  if (bound.launch == nullptr)
    throw std::logic_error(fmt::format("{}: no kernel for an op that is supported", bound.label));
  return bound;
}

void CudaRunnable::bind_phases() {
  for (const Phase& phase : program_.phases) {
    BoundPhase bound;
    bound.label = fmt::format("phase '{}'", phase.name);
    for (std::size_t i = 0; i < phase.steps.size(); ++i) bound.steps.push_back(bind(phase, i));
    bound.pace = pace_of(program_, phase);
    phases_.push_back(std::move(bound));
  }
}

void CudaRunnable::enqueue(const BoundStep& step, bool capturing) {
  api_.doing(step.label);
  StreamLauncher launcher(*this, step, capturing);
  step.launch(step.args, launcher);
}

const Buffer& CudaRunnable::checked(BufferId buffer, std::size_t bytes, const char* call) const {
  if (buffer >= program_.buffers.size()) throw std::logic_error(fmt::format("{}: there is no buffer {}", call, buffer));
  const Buffer& found = program_.buffers[buffer];
  if (found.type.bytes() != bytes) {
    throw std::logic_error(
        fmt::format("{} of '{}': {} bytes were given, it has {}", call, found.name, bytes, found.type.bytes()));
  }
  return found;
}

void CudaRunnable::write(BufferId buffer, std::span<const std::byte> bytes) {
  const Buffer& to = checked(buffer, bytes.size(), "write");
  if (bytes.empty()) return;
  api_.doing(to.name);
  api_.use_device(device_);
  mirrored_ = false;
  api_.copy_to_device(arena_.get() + to.offset, bytes.data(), bytes.size(), stream_.get());
  api_.synchronize(stream_.get());
}

void CudaRunnable::read(BufferId buffer, std::span<std::byte> bytes) {
  const Buffer& from = checked(buffer, bytes.size(), "read");
  if (bytes.empty()) return;
  const bool inside = from.offset >= polled_.offset && from.offset + bytes.size() <= polled_.offset + polled_.bytes;
  if (mirrored_ && inside) {
    std::memcpy(bytes.data(), pinned_.get() + (from.offset - polled_.offset), bytes.size());
    return;
  }
  api_.doing(from.name);
  api_.use_device(device_);
  api_.copy_to_host(bytes.data(), arena_.get() + from.offset, bytes.size(), stream_.get());
  api_.synchronize(stream_.get());
}

void CudaRunnable::run(PhaseId phase, std::uint64_t n) {
  const BoundPhase& bound = phases_.at(phase);
  const StepGraph& graph = graphs_.at(phase);
  api_.doing(bound.label);
  api_.use_device(device_);
  mirrored_ = false;
  const std::string& name = program_.phases[phase].name;
  const std::uint64_t steps = n;
  const double start = profile_ ? Profiler::now() : 0;
  std::uint64_t begun = 0;
  if (profile_ && n > 0 && profile_->sample_due(name)) {
    sample(phase);
    begun = 1;
    --n;
  }
  while (n > 0) {
    begin_step(begun);
    const std::uint64_t now = std::min(n, bound.pace.steps_per_launch);
    if (now != armed_steps_ || graph.unroll() != armed_unroll_) {
      arm_loops(api_, stream_.get(), slot_.number(), graph.unroll(), now);
      armed_steps_ = now;
      armed_unroll_ = graph.unroll();
    }
    graph.launch(api_, stream_.get());
    n -= now;
    begun += now;
  }
  if (polled_.bytes > 0) {
    api_.copy_to_host(pinned_.get(), arena_.get() + polled_.offset, polled_.bytes, stream_.get());
  }
  api_.synchronize(stream_.get());
  mirrored_ = true;
  if (profile_) profile_->add_run(name, steps, Profiler::now() - start);
}

// A step launch by launch, so that each can be timed.
void CudaRunnable::sample(PhaseId phase) {
  profile_->begin_sample(program_.phases[phase].name);
  for (const BoundStep& step : phases_[phase].steps) enqueue(step, false);
  api_.synchronize(stream_.get());
  profile_->end_sample();
  api_.doing(phases_[phase].label);
}

Profile CudaRunnable::profile() {
  if (!profile_) return {};
  api_.use_device(device_);
  return profile_->take();
}

void CudaRunnable::run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) {
  const BoundPhase& bound = phases_.at(phase);
  if (first > last || last > bound.steps.size()) {
    throw std::logic_error(
        fmt::format("{} has {} steps, [{}, {}) was asked for", bound.label, bound.steps.size(), first, last));
  }
  api_.use_device(device_);
  mirrored_ = false;
  for (std::uint32_t i = first; i < last; ++i) enqueue(bound.steps[i], false);
  api_.synchronize(stream_.get());
}

std::vector<std::pair<std::string, std::uint64_t>> CudaRunnable::counters() const {
  auto list = api_.counters().list();
  list.insert(list.end(), load_times_.begin(), load_times_.end());
  for (PhaseId id = 0; id < phases_.size(); ++id) {
    list.emplace_back("steps_per_launch." + program_.phases[id].name, phases_[id].pace.steps_per_launch);
  }
  return list;
}

}  // namespace graphrun::cuda
