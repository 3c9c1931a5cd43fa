#include "executors/common/host_executor.h"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <stdexcept>

#include "executors/common/load_check.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

// Runs the steps of a phase one by one.
class StepByStep final : public HostRunnable {
 public:
  StepByStep(const Program& program, const HostExecutor& executor, Profiling profiling)
      : HostRunnable(program, executor.name(), profiling) {
    for (const InitialValue& value : program.initial) write(value.buffer, value.bytes);
    for (const Phase& phase : program.phases) {
      std::vector<Bound>& steps = phases_.emplace_back(phase.steps.size());
      std::vector<std::string_view> ops;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const HostKernel kernel = bind(executor, program, phase, phase.steps[i], steps[i].args);
        steps[i].run = kernel.run;
        if (!kernel.fallback.empty()) ++fallback_steps_;
        ops.push_back(name_of(phase.steps[i].op));
      }
      add_to_clock(phase, ops);
    }
  }

  void run(PhaseId phase, std::uint64_t n) override {
    const std::vector<Bound>& steps = phases_.at(phase);
    repeat(phase, n, steps.size(), [&](std::size_t i) { steps[i].run(steps[i].args); });
  }
  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override {
    const std::vector<Bound>& steps = phases_.at(phase);
    check_steps(first, last, steps.size());
    for (std::uint32_t i = first; i < last; ++i) steps[i].run(steps[i].args);
  }

  std::vector<std::pair<std::string, std::uint64_t>> counters() const override {
    if (fallback_steps_ == 0) return {};
    return {{"fallback_steps", fallback_steps_}};
  }

 private:
  struct Bound {
    KernelFn run = nullptr;
    KernelArgs args;
  };
  std::vector<std::vector<Bound>> phases_;
  std::uint64_t fallback_steps_ = 0;  // total of all phases
};

}  // namespace

Support HostExecutor::supports(const StepSignature& step, const Target&) const {
  HostKernel found = kernel(step);
  if (found.run == nullptr && found.reason.empty())
    found.reason = fmt::format("{} has no kernel for op '{}'", name(), name_of(step.op));
  return {found.run != nullptr, std::move(found.reason), found.workspace_bytes, found.fallback,
          found.spare_workspace_bytes};
}

std::unique_ptr<Runnable> HostExecutor::load(const Program& program) {
  check_loadable(program, *this);
  return std::make_unique<StepByStep>(program, *this, profiling_);
}

// Allocates all buffers at once; memory is zero until something is written.
HostRunnable::HostRunnable(const Program& program, std::string_view executor, Profiling profiling)
    : executor_(executor), buffers_(program.buffers) {
  if (profiling != Profiling::off) clock_ = std::make_unique<StepClock>();
  const std::uint64_t bytes = program.arena_bytes;
  arena_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow));
  if (arena_ == nullptr) {
    throw Error(ErrorKind::device, "memory.arena", fmt::format("the host cannot give {} bytes for the arena", bytes),
                "a smaller batch or data set needs less");
  }
  count_allocation(bytes);
  std::memset(arena_, 0, bytes);
}

HostRunnable::~HostRunnable() {
  ::operator delete (arena_, std::align_val_t{kAlignment});
}

void HostRunnable::write(BufferId id, std::span<const std::byte> bytes) {
  std::byte* to = whole(id, bytes.size());
  if (buffer(id).layout == Layout::strided) return scatter(buffer(id), bytes, to);
  if (buffer(id).layout == Layout::codes) return encode(buffer(id), bytes, to);
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
}

void HostRunnable::read(BufferId id, std::span<std::byte> bytes) {
  const std::byte* from = whole(id, bytes.size());
  if (buffer(id).layout == Layout::strided) return gather(buffer(id), from, bytes);
  if (buffer(id).layout == Layout::codes) return decode(buffer(id), from, bytes);
  if (!bytes.empty()) std::memcpy(bytes.data(), from, bytes.size());
}

void HostRunnable::read_range(BufferId id, std::uint64_t first, std::span<std::byte> bytes) {
  check_range(buffer(id), first, bytes.size());
  if (!bytes.empty()) std::memcpy(bytes.data(), at(buffer(id)) + first, bytes.size());
}

void HostRunnable::write_rows(BufferId id, std::int64_t first, std::span<const std::byte> bytes) {
  const std::uint64_t row = check_rows(buffer(id), first, bytes.size());
  if (buffer(id).layout == Layout::codes)
    return encode(buffer(id), bytes, at(buffer(id)) + static_cast<std::uint64_t>(first) * row / sizeof(float));
  if (!bytes.empty()) std::memcpy(at(buffer(id)) + static_cast<std::uint64_t>(first) * row, bytes.data(), bytes.size());
}

std::byte* HostRunnable::whole(BufferId id, std::size_t bytes) const {
  const Buffer& found = buffer(id);
  if (found.kind == BufferKind::tile)
    throw std::logic_error(fmt::format("{}: {} is in a tile, not in the arena", executor_, found.name));
  const std::size_t expected = found.layout == Layout::rows ? found.bytes : found.type.bytes();
  if (bytes != expected)
    throw std::logic_error(fmt::format("{}: {} bytes for buffer {} of {}", executor_, bytes, found.name, expected));
  return at(found);
}

HostKernel HostRunnable::bind(const HostExecutor& executor, const Program& program, const Phase& phase,
                              const Step& step, KernelArgs& args) const {
  for (const BufferId id : step.inputs) {
    args.in[args.inputs] = at(program.buffers[id]);
    if (buffer(id).layout == Layout::strided) args.in_strides[args.inputs] = buffer(id).strides.data();
    args.in_type[args.inputs++] = program.buffers[id].type;
  }
  args.out = at(program.buffers[step.output]);
  args.out_type = program.buffers[step.output].type;
  HostKernel kernel = executor.kernel(signature_of(program, step));
  // Ignores a workspace that another executor requested: results would depend on it.
  if (kernel.workspace_bytes > 0 && step.workspace != kNoBuffer) {
    args.workspace = at(program.buffers[step.workspace]);
    args.workspace_bytes = std::min(kernel.workspace_bytes, program.buffers[step.workspace].bytes);
  }
  if (step.row_count != kNoBuffer)
    args.row_count = reinterpret_cast<const std::int32_t*>(at(program.buffers[step.row_count]));
  args.capacity = phase.capacity;
  args.params = step.params;
  return kernel;
}

void HostRunnable::add_to_clock(const Phase& phase, const std::vector<std::string_view>& names) {
  if (clock_) clock_->add_phase(phase.name, names);
}

void HostRunnable::check_steps(std::uint32_t first, std::uint32_t last, std::size_t steps) const {
  if (first > last || last > steps)
    throw std::logic_error(fmt::format("{}: steps [{}, {}) of a phase of {}", executor_, first, last, steps));
}

}  // namespace graphrun
