#include "executors/cpu/cpu_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "executors/cpu/elementwise_run.h"
#include "executors/cpu/host.h"
#include "executors/cpu/region_runner.h"
#include "executors/cpu/sweeps.h"
#include "executors/cpu/zero_copy_batch.h"
#include "graphrun/error.h"
#include "graphrun/load_check.h"
#include "graphrun/op.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/threads/cores.h"
#include "kernels/cpu/threads/parallel.h"
#include "kernels/cpu/tiles/tile.h"

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
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t bytes_;
};

// How many threads to use where the program does not say.
int default_threads() {
  const char* wanted = std::getenv("GRAPHRUN_THREADS");
  if (wanted == nullptr || *wanted == '\0') return cpu::available_cores();
  int threads = 0;
  const char* end = wanted + std::strlen(wanted);
  const auto [rest, error] = std::from_chars(wanted, end, threads);
  if (error != std::errc() || rest != end || threads < 0 || threads > kMaxThreads)
    throw Error(ErrorKind::input, "threads.count",
                fmt::format("GRAPHRUN_THREADS: expected a number up to {}, got '{}'", kMaxThreads, wanted));
  return threads == 0 ? cpu::available_cores() : threads;
}

// Null for one thread.
std::unique_ptr<cpu::Pool> make_pool(int threads) {
  if (threads == 0) threads = default_threads();
  threads = std::min(threads, cpu::kMaxParts);  // more would never find a part
  if (threads == 1) return nullptr;
  try {
    return std::make_unique<cpu::Pool>(threads);
  } catch (const std::system_error& error) {
    throw Error(ErrorKind::device, "threads.start",
                fmt::format("the host cannot start {} threads: {}", threads, error.what()), "--threads=1 starts none");
  }
}

BoundStep bind(const Program& program, const Phase& phase, const Step& step, const Arena& arena, Isa isa,
               cpu::Pool* pool) {
  BoundStep bound;
  bound.kernel = cpu_kernel(step.op, isa);
  if (bound.kernel == nullptr || step.inputs.size() > kMaxInputs)
    throw std::logic_error(fmt::format("cpu: step '{}' ({}) was not asked of supports()", step.name, name_of(step.op)));
  KernelArgs& args = bound.args;
  for (const BufferId id : step.inputs) {
    args.in[args.inputs] = arena.at(program.buffers[id]);
    args.in_type[args.inputs++] = program.buffers[id].type;
  }
  args.out = arena.at(program.buffers[step.output]);
  args.out_type = program.buffers[step.output].type;
  // A workspace that another executor asked for is not ours to use: what we compute would depend on it.
  const std::span<const TensorType> types(args.in_type, static_cast<std::size_t>(args.inputs));
  const std::uint64_t workspace = cpu_workspace(step.op, step.params, types, args.out_type);
  if (workspace > 0) {
    if (step.workspace == kNoBuffer || program.buffers[step.workspace].bytes < workspace)
      throw std::logic_error(fmt::format("cpu: step '{}' ({}) lacks its workspace", step.name, name_of(step.op)));
    args.workspace = arena.at(program.buffers[step.workspace]);
  }
  args.pool = pool;
  if (step.row_count != kNoBuffer)
    args.row_count = reinterpret_cast<const std::int32_t*>(arena.at(program.buffers[step.row_count]));
  args.capacity = phase.capacity;
  args.params = step.params;
  bound.find_loop(step.op, isa);
  return bound;
}

// Steps that run by themselves or together, regions and sweeps, in order.
struct BoundPhase {
  std::vector<BoundStep> steps;  // row steps of regions are left empty
  std::vector<RegionRunner> regions;
  std::vector<Sweep> sweeps;
  struct Item {
    std::uint32_t first, last;  // steps
    enum Kind { step, together, region, sweep } kind;
    std::size_t index;  // of the region or sweep
  };
  std::vector<Item> items;

  void run_item(std::size_t k) const {
    const Item& item = items[k];
    switch (item.kind) {
      case Item::step:
        return steps[item.first].run();
      case Item::together:
        return run_together(steps, item.first, item.last);
      case Item::region:
        return regions[item.index].run(steps);
      case Item::sweep:
        return sweeps[item.index].run(steps);
    }
  }
  std::string_view name_of(const Item& item, const Phase& phase) const {
    if (item.kind == Item::step) return graphrun::name_of(phase.steps[item.first].op);
    if (item.kind == Item::together) return "elementwise run";
    return item.kind == Item::region ? "region" : "sweep";
  }
  void add_items(const Program& program, const Phase& phase, Isa isa) {
    // A phase that changes no state is run for its values.
    const bool for_states = std::any_of(phase.steps.begin(), phase.steps.end(), [&](const Step& step) {
      return is_state(program.buffers[program.buffers[step.output].storage].kind);
    });
    const auto count = static_cast<std::uint32_t>(steps.size());
    std::size_t next = 0;  // region
    for (std::uint32_t i = 0; i < count; i = items.back().last) {
      const std::uint32_t end = next < regions.size() ? regions[next].first() : count;
      if (i == end) {
        items.push_back({i, regions[next].last(), Item::region, next});
        ++next;
        continue;
      }
      std::optional<Sweep> sweep;
      if (for_states) sweep = Sweep::find(program, phase, steps, i, end, isa);
      if (sweep) {
        items.push_back({i, sweep->last(), Item::sweep, sweeps.size()});
        sweeps.push_back(std::move(*sweep));
      } else {
        const std::uint32_t last = end_of_run(steps, i, end);
        items.push_back({i, last, last - i > 1 ? Item::together : Item::step, 0});
      }
    }
  }
};

std::uint64_t most_scratch(const Program& program) {
  std::uint64_t most = 0;
  for (const Phase& phase : program.phases)
    for (const Region& region : phase.regions) most = std::max(most, RegionRunner::scratch_bytes(region));
  return most;
}

class CpuRunnable final : public Runnable {
 public:
  CpuRunnable(const Program& program, int threads, Profiling profiling)
      : buffers_(program.buffers),
        arena_(program.arena_bytes),
        pool_(make_pool(threads)),
        scratch_(most_scratch(program), pool_ == nullptr ? 1 : pool_->threads()) {
    if (profiling != Profiling::off) clock_ = std::make_unique<StepClock>();
    for (const InitialValue& value : program.initial) write(value.buffer, value.bytes);
    const Isa isa = default_isa();
    phases_.reserve(program.phases.size());  // windows_ keeps addresses of steps
    for (const Phase& phase : program.phases) {
      BoundPhase& bound = phases_.emplace_back();
      std::vector<bool> rows(phase.steps.size(), false);
      for (const Region& region : phase.regions) {
        for (const Stage& stage : region.stages)
          for (std::uint32_t i = stage.rows; i < stage.last; ++i) rows[i] = true;
      }
      for (std::size_t i = 0; i < phase.steps.size(); ++i)
        bound.steps.push_back(rows[i] ? BoundStep{} : bind(program, phase, phase.steps[i], arena_, isa, pool_.get()));
      windows_.bind(program, phase, bound.steps);
      for (const Region& region : phase.regions) {
        bound.regions.emplace_back(region, phase, program, arena_.data(), isa, scratch_, pool_.get());
      }
      bound.add_items(program, phase, isa);
      if (clock_) {
        std::vector<std::string_view> ops;
        for (const BoundPhase::Item& item : bound.items) ops.push_back(bound.name_of(item, phase));
        clock_->add_phase(phase.name, ops);
      }
    }
  }

  void write(BufferId buffer, std::span<const std::byte> bytes) override {
    std::byte* to = whole(buffer, bytes.size());
    if (bytes.empty()) return;
    windows_.close(buffer);
    if (buffers_[buffer].layout == Layout::vectors) {
      const Rows rows = rows_of(buffer);
      return cpu::rows_to_vectors(reinterpret_cast<float*>(to), reinterpret_cast<const float*>(bytes.data()),
                                  rows.count, rows.width, buffers_[buffer].block);
    }
    std::memcpy(to, bytes.data(), bytes.size());
  }

  void read(BufferId buffer, std::span<std::byte> bytes) override {
    const std::byte* from = whole(buffer, bytes.size());
    if (bytes.empty()) return;
    if (const std::byte* window = windows_.at(buffer)) from = window;
    if (buffers_[buffer].layout == Layout::vectors) {
      const Rows rows = rows_of(buffer);
      return cpu::vectors_to_rows(reinterpret_cast<float*>(bytes.data()), reinterpret_cast<const float*>(from),
                                  rows.count, rows.width, buffers_[buffer].block);
    }
    std::memcpy(bytes.data(), from, bytes.size());
  }

  void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) override {
    const Buffer& from = buffers_.at(buffer);
    check_range(from, first, bytes.size());
    const std::byte* window = windows_.at(buffer);
    if (!bytes.empty()) std::memcpy(bytes.data(), (window != nullptr ? window : arena_.at(from)) + first, bytes.size());
  }

  void run(PhaseId phase, std::uint64_t n) override {
    const BoundPhase& bound = phases_.at(phase);
    const auto items = static_cast<std::uint32_t>(bound.items.size());
    for (std::uint64_t i = 0; i < n; ++i) {
      begin_step(i);
      if (clock_ && clock_->due(phase)) {
        clock_->step(phase, [&](std::size_t k) { bound.run_item(k); });
      } else {
        for (std::uint32_t k = 0; k < items; ++k) bound.run_item(k);
      }
    }
  }

  Profile profile() override { return clock_ ? clock_->profile() : Profile{}; }

  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override {
    const BoundPhase& bound = phases_.at(phase);
    if (first > last || last > bound.steps.size())
      throw std::logic_error(fmt::format("cpu: steps [{}, {}) of a phase of {}", first, last, bound.steps.size()));
    for (std::size_t k = 0; k < bound.items.size(); ++k) {
      const BoundPhase::Item& item = bound.items[k];
      if (item.last <= first || item.first >= last) continue;
      if (item.kind == BoundPhase::Item::sweep || item.kind == BoundPhase::Item::together) {
        // Its steps one by one: each leaves its value.
        for (std::uint32_t i = std::max(first, item.first); i < std::min(last, item.last); ++i) bound.steps[i].run();
        continue;
      }
      if (item.first < first || item.last > last)
        throw std::logic_error(
            fmt::format("cpu: steps [{}, {}) cut the region of steps [{}, {})", first, last, item.first, item.last));
      bound.run_item(k);
    }
  }

  std::vector<std::pair<std::string, std::uint64_t>> counters() const override {
    return {{"threads", pool_ == nullptr ? 1 : static_cast<std::uint64_t>(pool_->threads())},
            {"shared_loops", pool_ == nullptr ? 0 : pool_->jobs()}};
  }

 private:
  std::byte* whole(BufferId id, std::size_t bytes) const {
    const Buffer& buffer = buffers_.at(id);
    if (buffer.kind == BufferKind::tile)
      throw std::logic_error(fmt::format("cpu: {} lives in a tile, not in the arena", buffer.name));
    const std::size_t expected = buffer.layout == Layout::vectors ? buffer.type.bytes() : buffer.bytes;
    if (bytes != expected)
      throw std::logic_error(fmt::format("cpu: {} bytes for buffer {} of {}", bytes, buffer.name, expected));
    return arena_.at(buffer);
  }

  struct Rows {
    std::int64_t count, width;
  };
  Rows rows_of(BufferId id) const {
    const Shape& shape = buffers_[id].type.shape;
    return {shape[0], shape.elements() / shape[0]};
  }

  std::vector<Buffer> buffers_;
  Arena arena_;
  std::unique_ptr<cpu::Pool> pool_;
  TileScratch scratch_;
  std::vector<BoundPhase> phases_;
  ZeroCopyBatch windows_;
  std::unique_ptr<StepClock> clock_;  // null: nobody wants to know
};

}  // namespace

Support CpuExecutor::supports(const StepSignature& step, const Target&) const {
  const std::string_view op = name_of(step.op);
  if (cpu_kernel(step.op, Isa::plain) == nullptr) return Support::no(fmt::format("cpu has no kernel for op '{}'", op));
  if (step.inputs.size() > kMaxInputs)
    return Support::no(fmt::format("cpu takes at most {} inputs, '{}' has {}", kMaxInputs, op, step.inputs.size()));
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    if (step.inputs[i].dtype == DType::f64)
      return Support::no(fmt::format("cpu computes in f32, input {} of '{}' is f64", i, op));
  }
  if (step.output.dtype == DType::f64)
    return Support::no(fmt::format("cpu computes in f32, the output of '{}' is f64", op));
  if (const std::string fault = operand_fault(step.op, step.inputs, step.output); !fault.empty())
    return Support::no(fmt::format("cpu cannot run '{}': {}", op, fault));
  return Support::with_workspace(cpu_workspace(step.op, step.params, step.inputs, step.output));
}

Support CpuExecutor::supports_region(const RegionSignature& region, const Target& target) const {
  for (const std::span<const StepSignature> steps : {region.rows, region.once}) {
    for (const StepSignature& step : steps) {
      if (Support support = supports(step, target); !support.yes) return support;
    }
  }
  for (const StepSignature& step : region.rows) {
    cpu::TileCall call;
    call.op = step.op;
    call.params = &step.params;
    for (const TensorType& type : step.inputs) call.inputs.push_back({type});
    call.output.type = step.output;
    call.capacity = region.capacity;
    std::string reason;
    if (cpu::make_tile_step(call, Isa::plain, reason) == nullptr) return Support::no(std::move(reason));
  }
  for (const FusedSignature& fused : region.fused) {
    if (!fused.epilogue) continue;
    if (cpu::epilogue_input(*fused.epilogue) != static_cast<int>(fused.input))
      return Support::no(fmt::format("cpu does no '{}' in the registers of a product", name_of(*fused.epilogue)));
    // A product of several blocks of terms stores partial results.
    const Shape& rows = fused.product.inputs[0].shape;
    if (fused.in_place && rows[rows.rank() - 1] > cpu::kProductBlock)
      return Support::no(fmt::format("a product of more than {} terms overwrites the operand of '{}'",
                                     cpu::kProductBlock, name_of(*fused.epilogue)));
  }
  return Support::with_workspace(0);
}

void CpuExecutor::set_threads(int threads) {
  if (threads < 0 || threads > kMaxThreads)
    throw Error(ErrorKind::input, "threads.count",
                fmt::format("expected 0 (the default) to {} threads, got {}", kMaxThreads, threads));
  threads_ = threads;
}

DeviceList CpuExecutor::devices() const {
  return {{describe_host()}, {}};
}

std::unique_ptr<Runnable> CpuExecutor::load(const Program& program) {
  check_loadable(program, *this);
  return std::make_unique<CpuRunnable>(program, threads_, profiling_);
}

}  // namespace graphrun
