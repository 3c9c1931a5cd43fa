#include "executors/ref/ref_executor.h"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <stdexcept>

#include "graphrun/error.h"
#include "graphrun/load_check.h"
#include "kernels/ref.h"

namespace graphrun {
namespace {

// One allocation holds every buffer; it is zero until something is written.
class Arena {
 public:
  explicit Arena(std::uint64_t bytes) : bytes_(bytes) {
    data_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow));
    if (data_ == nullptr) {
      throw Error(ErrorKind::device, "memory.arena", fmt::format("the host cannot give {} bytes for the arena", bytes),
                  "a smaller batch or data set needs less");
    }
    std::memset(data_, 0, bytes_);
  }
  ~Arena() { ::operator delete (data_, std::align_val_t{kAlignment}); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* at(const Buffer& buffer) const { return data_ + buffer.offset; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t bytes_;
};

// A step with its kernel and addresses: what is left to do is the call.
struct BoundStep {
  KernelFn kernel = nullptr;
  KernelArgs args;
};

BoundStep bind(const Program& program, const Phase& phase, const Step& step, const Arena& arena) {
  BoundStep bound;
  bound.kernel = ref_kernel(step.op);
  if (bound.kernel == nullptr || step.inputs.size() > kMaxInputs)
    throw std::logic_error(fmt::format("ref: step '{}' ({}) was not asked of supports()", step.name, name_of(step.op)));
  KernelArgs& args = bound.args;
  for (const BufferId id : step.inputs) {
    args.in[args.inputs] = arena.at(program.buffers[id]);
    args.in_type[args.inputs++] = program.buffers[id].type;
  }
  args.out = arena.at(program.buffers[step.output]);
  args.out_type = program.buffers[step.output].type;
  if (const std::uint64_t workspace = ref_workspace(step.op, args.out_type); workspace > 0) {
    if (step.workspace == kNoBuffer || program.buffers[step.workspace].bytes < workspace)
      throw std::logic_error(fmt::format("ref: step '{}' ({}) lacks its workspace", step.name, name_of(step.op)));
    args.workspace = arena.at(program.buffers[step.workspace]);
  }
  if (step.row_count != kNoBuffer)
    args.row_count = reinterpret_cast<const std::int32_t*>(arena.at(program.buffers[step.row_count]));
  args.capacity = phase.capacity;
  args.params = step.params;
  return bound;
}

class RefRunnable final : public Runnable {
 public:
  RefRunnable(const Program& program, Profiling profiling) : buffers_(program.buffers), arena_(program.arena_bytes) {
    if (profiling != Profiling::off) clock_ = std::make_unique<StepClock>();
    for (const InitialValue& value : program.initial) write(value.buffer, value.bytes);
    for (const Phase& phase : program.phases) {
      std::vector<BoundStep>& steps = phases_.emplace_back();
      for (const Step& step : phase.steps) steps.push_back(bind(program, phase, step, arena_));
      if (clock_) {
        std::vector<std::string_view> ops;
        for (const Step& step : phase.steps) ops.emplace_back(graphrun::name_of(step.op));
        clock_->add_phase(phase.name, ops);
      }
    }
  }

  void write(BufferId buffer, std::span<const std::byte> bytes) override {
    std::byte* to = whole(buffer, bytes.size());
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  }

  void read(BufferId buffer, std::span<std::byte> bytes) override {
    const std::byte* from = whole(buffer, bytes.size());
    if (!bytes.empty()) std::memcpy(bytes.data(), from, bytes.size());
  }

  void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) override {
    const Buffer& from = buffers_.at(buffer);
    check_range(from, first, bytes.size());
    if (!bytes.empty()) std::memcpy(bytes.data(), arena_.at(from) + first, bytes.size());
  }

  void run(PhaseId phase, std::uint64_t n) override {
    const std::vector<BoundStep>& steps = phases_.at(phase);
    for (std::uint64_t i = 0; i < n; ++i) {
      begin_step(i);
      if (clock_ && clock_->due(phase)) {
        clock_->step(phase, [&](std::size_t k) { steps[k].kernel(steps[k].args); });
      } else {
        for (const BoundStep& step : steps) step.kernel(step.args);
      }
    }
  }

  Profile profile() override { return clock_ ? clock_->profile() : Profile{}; }

  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override {
    const std::vector<BoundStep>& steps = phases_.at(phase);
    if (first > last || last > steps.size())
      throw std::logic_error(fmt::format("ref: steps [{}, {}) of a phase of {}", first, last, steps.size()));
    for (std::uint32_t i = first; i < last; ++i) steps[i].kernel(steps[i].args);
  }

 private:
  std::byte* whole(BufferId id, std::size_t bytes) const {
    const Buffer& buffer = buffers_.at(id);
    if (bytes != buffer.bytes)
      throw std::logic_error(fmt::format("ref: {} bytes for buffer {} of {}", bytes, buffer.name, buffer.bytes));
    return arena_.at(buffer);
  }

  std::vector<Buffer> buffers_;
  Arena arena_;
  std::vector<std::vector<BoundStep>> phases_;
  std::unique_ptr<StepClock> clock_;  // null: nobody wants to know
};

}  // namespace

Support RefExecutor::supports(const StepSignature& step, const Target&) const {
  if (ref_kernel(step.op) == nullptr)
    return Support::no(fmt::format("ref has no kernel for op '{}'", name_of(step.op)));
  if (step.inputs.size() > kMaxInputs)
    return Support::no(
        fmt::format("ref takes at most {} inputs, '{}' has {}", kMaxInputs, name_of(step.op), step.inputs.size()));
  return Support::with_workspace(ref_workspace(step.op, step.output));
}

DeviceList RefExecutor::devices() const {
  Device host;
  host.id = "ref";
  host.name = "the host, in plain loops: what the others are compared with";
  host.capability = "double";
  host.units = 1;
  return {{host}, {}};
}

std::unique_ptr<Runnable> RefExecutor::load(const Program& program) {
  check_loadable(program, *this);
  return std::make_unique<RefRunnable>(program, profiling_);
}

}  // namespace graphrun
