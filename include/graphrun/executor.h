// executor.h: the interface of a machine that runs Programs, and the registry of executors.
// Contract:
//   - supports(), region_fault() and region_choices() are pure functions of (signature, target) and need no device;
//   they
//     are asked before memory is laid out, region_choices() then again (RegionSize). load() may fail (no device, no
//     memory), but may not reject a Program.
//   - load() allocates once; run() allocates nothing and transfers nothing until its end, stays close to its device (a
//     tenth of a second of steps), and when it returns all polled buffers can be read.
//   - a Runnable belongs to one thread at a time; different Runnables may run in different threads.
// To add an executor: implement these two classes, or HostExecutor where its memory is the host's (host_executor.h), in
// a folder of src/executors/, which the build finds by itself, and give it an include and a row in registry.cpp there.
// `graphrun devices` lists what its devices() returns (default: nothing). Outside this project, write a shared library
// in C (executor_plugin_c.h) and select it with --executor=./libmine.so (executor-plugins.md).
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/profile.h"
#include "graphrun/program.h"
#include "graphrun/target.h"

namespace graphrun {

// A step before planning: no addresses yet.
struct StepSignature {
  Op op = {};
  Params params;
  std::vector<TensorType> inputs;
  TensorType output;
  bool partial_rows = false;  // batches may be shorter than the capacity
  // Strides of each input in its storage. Empty if takes_views() was not called: each input is dense. The view of a
  // reshaped value has the axes before the reshape.
  std::vector<View> views = {};
  bool in_chain = false;  // in a chain of an element region

  // Whether no input is a view of a value that was reshaped.
  bool views_keep_axes() const {
    for (std::size_t i = 0; i < views.size(); ++i)
      if (!(views[i].extents == inputs[i].shape)) return false;
    return true;
  }
};

struct Support {
  bool yes = false;
  std::string reason;                 // reason if not supported; else empty
  std::uint64_t workspace_bytes = 0;  // scratch the step needs from the plan, valid during the step only
  std::string_view fallback = {};     // executor whose kernel is used if this one has none (host_executor.h)
  // Optional part of workspace_bytes. Without it the step is slower; results are identical.
  std::uint64_t spare_workspace_bytes = 0;

  static Support with_workspace(std::uint64_t bytes) { return {true, {}, bytes}; }
  static Support no(std::string reason) { return {false, std::move(reason), 0}; }
};

// A matrix product over rows and the steps fused before its result is stored (FusedSteps of program.h).
struct FusedSignature {
  StepSignature product;
  bool bias = false;                // adds one value per feature
  std::optional<Op> epilogue = {};  // the op that follows
  std::size_t input = 0;            // operand index of the product in that op
  bool in_place = false;            // the result overwrites the other operand
};

// Input of a tiling decision. The compiler calls region_choices() twice: before memory layout, with zeros here, to ask
// whether the region is possible; and during tiling, with its sizes, to ask how an accepted region runs. The
// second call must not reject it. Element regions have no tiles and get no sizes.
struct RegionSize {
  std::uint64_t tile_bytes = 0;         // for kTileLanes rows
  std::uint64_t accumulator_bytes = 0;  // for one partition
  std::int64_t work = 0;                // for all rows, in the unit of RegionCosts::partition_work
};

// A candidate group of steps for a Region. For an element region, `rows` holds its steps, chain after chain.
struct RegionSignature {
  std::vector<StepSignature> rows;       // steps over rows or elements, of all stages
  std::vector<StepSignature> once = {};  // steps that run once
  std::int64_t capacity = 0;             // samples of a full batch
  std::vector<FusedSignature> fused = {};
  std::vector<std::int64_t> chains = {};   // element regions: elements of each chain
  std::vector<std::uint32_t> stages = {};  // other regions: stage of each row step
  // For region_choices() of other regions. Producer of each input, for every row step and then every other step: an
  // index into these steps, or kNoStep.
  std::vector<std::vector<std::uint32_t>> makers = {};
  RegionSize size = {};

  bool over_elements() const { return !chains.empty(); }
};

// One of several valid tilings, with its estimated cost in a unit of the executor.
struct RegionChoice {
  Tiling tiling;
  std::int64_t cost = 0;
};

struct RegionPlan {
  bool yes = false;
  std::string reason;                      // reason if rejected; else empty
  Tiling tiling;                           // tiling for the size in the signature
  std::vector<RegionChoice> choices = {};  // alternatives, cheapest first; empty if there is only one
  bool too_many_sums = false;              // if rejected: whether it may be one kernel with fewer sums over rows

  static RegionPlan with(Tiling tiling) { return {true, {}, tiling}; }
  static RegionPlan no(std::string reason) { return {false, std::move(reason), {}}; }
};

class Communicator;  // communicator.h

class Runnable {
 public:
  virtual ~Runnable() = default;

  // Copies between host and arena. The span must have exactly the buffer's size. Not during run().
  virtual void write(BufferId buffer, std::span<const std::byte> bytes) = 0;
  virtual void read(BufferId buffer, std::span<std::byte> bytes) = 0;

  // Reads a buffer from byte `first` on. Requires Layout::rows. Not during run().
  virtual void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) = 0;

  // Writes rows of dimension 0 from row `first` on, as many as `bytes` holds. Cost depends on these rows only;
  // allocates nothing. Not for Layout::strided. Not during run().
  virtual void write_rows(BufferId buffer, std::int64_t first, std::span<const std::byte> bytes) = 0;

  // Runs the phase n times.
  virtual void run(PhaseId phase, std::uint64_t n) = 0;

  // Runs steps [first, last) of the phase once, for verify, dump and tests. A region runs as a whole or not at all.
  virtual void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) = 0;

  // Counters since load(), for tests and profiles: "allocations", "launches", ... Empty if there are none. The executor
  // chooses the names, which stay the same during a run. Names ending in "_ns" are parts of load()'s time.
  virtual std::vector<std::pair<std::string, std::uint64_t>> counters() const { return {}; }

  // Time profile since load(), if Executor::set_profiling() was called before.
  virtual Profile profile() { return {}; }

  // Step of the current run() that began last, from 0. Safe from a hook or another thread.
  std::uint64_t steps_begun() const noexcept { return begun_.load(std::memory_order_relaxed); }

 protected:
  // For run(): step i begins. An executor that submits several steps at once passes the first.
  void begin_step(std::uint64_t i) noexcept { begun_.store(i, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> begun_{0};
};

// A machine available to an executor, as listed by `graphrun devices`.
struct Device {
  std::string id;                                   // argument for --executor: "cpu", "cuda:1"
  std::string name;                                 // "NVIDIA H200"
  std::string capability;                           // "compute capability 9.0", "avx512"
  int units = 0;                                    // cores, multiprocessors
  std::string driver;                               // "CUDA 12.8"; empty if there is none
  std::uint64_t memory_free = 0, memory_total = 0;  // bytes; 0: unknown
};
struct DeviceList {
  std::vector<Device> devices;
  std::string missing;  // one-line reason why devices are unavailable; else empty
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view default_target() const = 0;  // "host", "h200": the name of an entry of targets()
  // Returns true for an executor meant for comparison, not speed; "auto" does not time it.
  virtual bool is_reference() const { return false; }
  virtual Support supports(const StepSignature& step, const Target& target) const = 0;
  // Returns whether the step can read its inputs through `views` instead of dense copies. Slices, transposes and
  // broadcasts are then not steps.
  virtual bool takes_views(const StepSignature&) const { return false; }
  // Returns whether its minibatch reads data in Layout::codes, in row regions with a HostTiling, too. If not, data sets
  // of 8-bit images are stored as f32.
  virtual bool takes_codes() const { return false; }
  // Returns the reason why these steps cannot form a region, "" if they can. Depends on neither edges nor size. Asked
  // of the regions of a Program before it is loaded.
  virtual std::string region_fault(const RegionSignature&, const Target&) const { return "it runs steps one by one"; }
  // Returns the tilings of a region, or the reason why it has none: it has a fault, or runs faster as single steps.
  // Also called for single row steps, to find the end of a region, and for a product with its fused steps. Whether
  // there are any must not depend on the size.
  virtual RegionPlan region_choices(const RegionSignature& region, const Target& target) const {
    return RegionPlan::no(region_fault(region, target));
  }
  // Readable source of the kernels compiled for a program's row regions; needs no device. Empty if there are none.
  virtual std::string generated_source(const Program&) const { return {}; }
  // Throws Error (kind device) when the machine is not there or too small. The Program is copied where needed.
  virtual std::unique_ptr<Runnable> load(const Program& program) = 0;
  // The same for a Program whose batches have shards (combine_shards), if the executor combines them itself: the
  // Runnable is the shard of this rank. Null: the host combines them. Without a Communicator there is one rank.
  virtual std::unique_ptr<Runnable> load_shard(const Program&, std::int64_t /*shards*/, std::shared_ptr<Communicator>) {
    return nullptr;
  }
  // Sets the host threads, including the caller's, of Runnables loaded later; 0: the executor's default. Never changes
  // results. Ignored by executors that compute elsewhere or in one thread.
  virtual void set_threads(int) {}
  // From now on, launches of loaded Runnables with alike Programs are shared between threads, if the executor can: they
  // run at the same time on one device. Returns how many Runnables of such a Program it runs at the speed of one; 1: it
  // shares none. Never changes results.
  virtual std::size_t share_launches(const Program&) { return 1; }
  // Lists the devices present. Does not throw if a device is missing; DeviceList::missing says so.
  virtual DeviceList devices() const { return {}; }
  // Enables profiles of Runnables loaded later. Never changes results.
  virtual void set_profiling(Profiling) {}
};

// Executors report allocations of device and pinned memory, which host allocators do not see. The hook may be called
// from any thread; null: none. `api` is the call ("cudaMalloc"), a string with static lifetime.
using AllocationHook = void (*)(const char* api, std::uint64_t bytes);
GRAPHRUN_API void watch_allocations(AllocationHook hook) noexcept;
GRAPHRUN_API void report_allocation(const char* api, std::uint64_t bytes) noexcept;

// The registry. Names are "ref", "cpu", "cuda", "cuda:1", those of plug-ins in the folders of GRAPHRUN_PLUGIN_PATH
// (libgraphrun_NAME.so), or a path to a shared library, "./x.so" or "./x.so:argument": it holds a '/' before any ':'.
// Thread-safe. Throws Error: unknown name (with the nearest), a library that does not load, a plug-in of another ABI.
GRAPHRUN_API std::shared_ptr<Executor> find_executor(std::string_view name);
GRAPHRUN_API std::vector<std::string> executor_names();  // names in listing order

// Path and argument of a plug-in, if `executor` names one. The path ends with the first ".so" before a ':', or at the
// end.
struct PluginName {
  std::string path, argument;
};
GRAPHRUN_API std::optional<PluginName> plugin_name(std::string_view executor);

// Folders of GRAPHRUN_PLUGIN_PATH, and files in them, that are not used, with the reason.
struct RejectedPlugin {
  std::string path, reason;
};
GRAPHRUN_API std::vector<RejectedPlugin> rejected_plugins();

}  // namespace graphrun
