#include "executors/cpu/cpu_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "executors/common/load_check.h"
#include "executors/cpu/element_runner.h"
#include "executors/cpu/region_runner.h"
#include "executors/cpu/zero_copy_batch.h"
#include "graphrun/error.h"
#include "graphrun/op_traits.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/threads/parallel.h"
#include "kernels/cpu/tiles/tile.h"
#include "kernels/ref.h"

namespace graphrun {
namespace {

// Number of threads if the program does not set it.
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

// Returns null for one thread.
std::unique_ptr<cpu::Pool> make_pool(int threads) {
  if (threads == 0) threads = default_threads();
  threads = std::min(threads, cpu::kMaxParts);  // more threads would have no part
  if (threads == 1) return nullptr;
  try {
    return std::make_unique<cpu::Pool>(threads);
  } catch (const std::system_error& error) {
    throw Error(ErrorKind::device, "threads.start",
                fmt::format("the host cannot start {} threads: {}", threads, error.what()), "--threads=1 starts none");
  }
}

// Single steps and regions, in order.
struct BoundPhase {
  std::vector<BoundStep> steps;  // row steps of regions stay empty
  struct Item {
    std::uint32_t first, last;  // steps
    std::string_view name;
    std::function<void()> region = {};  // null: runs the single step
  };
  std::vector<Item> items;

  void run_item(std::size_t k) const {
    const Item& item = items[k];
    if (item.region == nullptr) return steps[item.first].run();
    item.region();
  }
};

std::uint64_t max_scratch(const Program& program) {
  std::uint64_t most = 0;
  for (const Phase& phase : program.phases)
    for (const Region& region : phase.regions)
      if (region.chains.empty()) most = std::max(most, RegionRunner::scratch_bytes(region, phase, program));
  return most;
}

class CpuRunnable final : public HostRunnable {
 public:
  CpuRunnable(const Program& program, const CpuExecutor& executor, int threads, Profiling profiling)
      : HostRunnable(program, executor.name(), profiling),
        pool_(make_pool(threads)),
        scratch_(max_scratch(program), pool_ == nullptr ? 1 : pool_->threads()) {
    if (scratch_.bytes() > 0) count_allocation(scratch_.bytes());
    for (const InitialValue& value : program.initial) write(value.buffer, value.bytes);
    const Isa isa = default_isa();
    phases_.reserve(program.phases.size());  // keeps addresses of steps in windows_ and items valid
    for (const Phase& phase : program.phases) {
      BoundPhase& bound = phases_.emplace_back();
      std::vector<bool> rows(phase.steps.size(), false);
      for (const Region& region : phase.regions) {
        for (const Stage& stage : region.stages)
          for (std::uint32_t i = stage.rows; i < stage.last; ++i) rows[i] = true;
      }
      bound.steps.resize(phase.steps.size());
      for (std::size_t i = 0; i < phase.steps.size(); ++i) {
        BoundStep& step = bound.steps[i];
        if (rows[i]) continue;
        step.kernel = bind(executor, program, phase, phase.steps[i], step.args).run;
        step.args.pool = pool_.get();
        step.find_loop(phase.steps[i].op, isa);
      }
      windows_.bind(program, phase, bound.steps);
      auto region = phase.regions.begin();
      for (std::uint32_t i = 0; i < phase.steps.size(); i = bound.items.back().last) {
        if (region == phase.regions.end() || i < region->first())
          bound.items.push_back({i, i + 1, name_of(phase.steps[i].op)});
        else
          bound.items.push_back(bind_region(*region++, phase, program, bound.steps, isa));
      }
      std::vector<std::string_view> names;
      for (const BoundPhase::Item& item : bound.items) names.push_back(item.name);
      add_to_clock(phase, names);
    }
  }

  void write(BufferId id, std::span<const std::byte> bytes) override {
    std::byte* to = whole(id, bytes.size());
    windows_.close(id);
    if (bytes.empty() || buffer(id).layout != Layout::vectors) return HostRunnable::write(id, bytes);
    const Rows rows = rows_of(id);
    cpu::rows_to_vectors(reinterpret_cast<float*>(to), reinterpret_cast<const float*>(bytes.data()), rows.count,
                         rows.width, buffer(id).block);
  }

  void read(BufferId id, std::span<std::byte> bytes) override {
    const std::byte* from = whole(id, bytes.size());
    if (bytes.empty()) return;
    if (const std::byte* window = windows_.at(id)) {
      std::memcpy(bytes.data(), window, bytes.size());
    } else if (buffer(id).layout == Layout::vectors) {
      const Rows rows = rows_of(id);
      cpu::vectors_to_rows(reinterpret_cast<float*>(bytes.data()), reinterpret_cast<const float*>(from), rows.count,
                           rows.width, buffer(id).block);
    } else {
      HostRunnable::read(id, bytes);
    }
  }

  void read_range(BufferId id, std::uint64_t first, std::span<std::byte> bytes) override {
    const std::byte* window = windows_.at(id);
    if (window == nullptr) return HostRunnable::read_range(id, first, bytes);
    check_range(buffer(id), first, bytes.size());
    if (!bytes.empty()) std::memcpy(bytes.data(), window + first, bytes.size());
  }

  void write_rows(BufferId id, std::int64_t first, std::span<const std::byte> bytes) override {
    windows_.close(id);
    if (buffer(id).layout != Layout::vectors) return HostRunnable::write_rows(id, first, bytes);
    const auto row = static_cast<std::int64_t>(check_rows(buffer(id), first, bytes.size()));
    if (bytes.empty()) return;
    cpu::set_rows_of_vectors(reinterpret_cast<float*>(at(buffer(id))), reinterpret_cast<const float*>(bytes.data()),
                             first, static_cast<std::int64_t>(bytes.size()) / row, rows_of(id).width, buffer(id).block);
  }

  void run(PhaseId phase, std::uint64_t n) override {
    const BoundPhase& bound = phases_.at(phase);
    repeat(phase, n, bound.items.size(), [&](std::size_t k) { bound.run_item(k); });
  }

  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override {
    const BoundPhase& bound = phases_.at(phase);
    check_steps(first, last, bound.steps.size());
    for (std::size_t k = 0; k < bound.items.size(); ++k) {
      const BoundPhase::Item& item = bound.items[k];
      if (item.last <= first || item.first >= last) continue;
      if (item.first < first || item.last > last)
        throw std::logic_error(
            fmt::format("cpu: steps [{}, {}) cut the region of steps [{}, {})", first, last, item.first, item.last));
      bound.run_item(k);
    }
  }

  std::vector<std::pair<std::string, std::uint64_t>> counters() const override {
    return {{"allocations", allocations()},
            {"allocated_bytes", allocated_bytes()},
            {"threads", pool_ == nullptr ? 1 : static_cast<std::uint64_t>(pool_->threads())},
            {"shared_loops", pool_ == nullptr ? 0 : pool_->jobs()}};
  }

 private:
  BoundPhase::Item bind_region(const Region& region, const Phase& phase, const Program& program,
                               std::vector<BoundStep>& steps, Isa isa) {
    if (region.chains.empty()) {
      const auto runner = std::make_shared<RegionRunner>(region, phase, program, arena(), isa, scratch_, pool_.get());
      return {region.first(), region.last, "region", [runner, &steps] { runner->run(steps); }};
    }
    const auto runner = std::make_shared<ElementRunner>(region, phase, program, steps);
    return {region.first(), region.last, "elements", [runner, &steps] { runner->run(steps); }};
  }

  struct Rows {
    std::int64_t count, width;
  };
  Rows rows_of(BufferId id) const {
    const Shape& shape = buffer(id).type.shape;
    return {shape[0], shape.elements() / shape[0]};
  }

  std::unique_ptr<cpu::Pool> pool_;
  TileScratch scratch_;
  std::vector<BoundPhase> phases_;
  ZeroCopyBatch windows_;
};

// Text after the colon of the first line of a /proc file that begins with `key`; empty if the system has none.
std::string proc_value(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

std::uint64_t memory(std::string_view key) {
  std::istringstream text(proc_value("/proc/meminfo", key));  // "16303428 kB"
  std::uint64_t kibibytes = 0;
  return text >> kibibytes ? kibibytes * 1024 : 0;
}

}  // namespace

namespace {
// Returns true if ref's kernel runs the step, because cpu has no f64 kernel for it.
bool falls_back(const StepSignature& step) {
  const auto is_wide = [](const TensorType& type) { return type.dtype == DType::f64; };
  return (is_wide(step.output) || std::ranges::any_of(step.inputs, is_wide)) && !cpu_takes_f64(step.op);
}
}  // namespace

HostKernel CpuExecutor::kernel(const StepSignature& step) const {
  const std::string_view op = name_of(step.op);
  const auto none = [](std::string reason) { return HostKernel{nullptr, 0, std::move(reason)}; };
  if (const std::string fault = step_fault(step.op, step.inputs, step.output, step.params); !fault.empty())
    return none(fmt::format("cpu cannot run '{}': {}", op, fault));
  if (falls_back(step))
    return {.run = ref_kernel(step.op), .workspace_bytes = ref_workspace(step.op, step.output), .fallback = "ref"};
  HostKernel found{cpu_kernel(step.op, default_isa()), cpu_workspace(step.op, step.params, step.inputs, step.output)};
  if (cpu_spares_workspace(step.op, step.params, step.inputs, step.output))
    found.spare_workspace_bytes = found.workspace_bytes;
  return found;
}

bool CpuExecutor::takes_views(const StepSignature& step) const {
  if (!step.views_keep_axes()) return false;
  if (falls_back(step)) return ref_takes_views(step.op);
  return !step.in_chain && cpu_takes_views(step.op, step.views, step.output);
}

void CpuExecutor::set_threads(int threads) {
  if (threads < 0 || threads > kMaxThreads)
    throw Error(ErrorKind::input, "threads.count",
                fmt::format("expected 0 (the default) to {} threads, got {}", kMaxThreads, threads));
  threads_ = threads;
}

DeviceList CpuExecutor::devices() const {
  Device host;
  host.id = "cpu";
  host.name = proc_value("/proc/cpuinfo", "model name");
  if (host.name.empty()) host.name = "the host";
  host.capability = name_of(default_isa());
  host.units = cpu::available_cores();
  host.memory_free = memory("MemAvailable");
  host.memory_total = memory("MemTotal");
  return {{host}, {}};
}

std::unique_ptr<Runnable> CpuExecutor::load(const Program& program) {
  check_loadable(program, *this);
  return std::make_unique<CpuRunnable>(program, *this, threads_, profiling());
}

}  // namespace graphrun
