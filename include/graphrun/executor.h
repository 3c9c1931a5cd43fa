// executor.h: what a machine has to offer to run a Program, and the registry of those that do.
// Contract:
//   - supports() and plan_region() are pure functions of (signature, target) and need no device; they are asked before
//     memory is laid out, plan_region() then again (RegionSize). load() may fail (no device, no memory), but may not
//     decline.
//   - load() allocates once; run() allocates nothing and transfers nothing until its end, stays close to its device (a
//     tenth of a second of steps), and when it returns all polled buffers can be read.
//   - a Runnable belongs to one thread at a time; different Runnables may run in different threads.
// To add an executor: implement these two classes, or HostExecutor where its memory is the host's (host_executor.h), in
// a folder of src/executors/, which the build finds by itself, and give it an include and a row in registry.cpp there.
// `graphrun devices` lists what its devices() says: by default nothing. Or make it a shared library, and say
// --executor=./libmine.so (executor-plugins.md): in C, with an interface that stays (executor_plugin_c.h), or in
// C++ with all of this one, for the version of graphrun that it was built with (executor_plugin.h).
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

// A step as it is known before planning: no addresses yet.
struct StepSignature {
  Op op;
  const Params& params;
  std::span<const TensorType> inputs;
  TensorType output;
  bool partial_rows = false;  // batches may be shorter than the capacity
  // Where the elements of each input lie in its storage. Empty where takes_views() is not asked: each input is dense.
  std::span<const View> views = {};
  bool in_chain = false;  // of a region over elements
};

struct Support {
  bool yes = false;
  std::string reason;                 // why not; empty for yes
  std::uint64_t workspace_bytes = 0;  // scratch the step needs from the plan, valid during the step only
  std::string_view fallback = {};     // the executor has no kernel of its own: whose it runs (host_executor.h)
  // Of the workspace, what the step can do without where memory is short: the same bits, but slower.
  std::uint64_t spare_workspace_bytes = 0;

  static Support with_workspace(std::uint64_t bytes) { return {true, {}, bytes}; }
  static Support no(std::string reason) { return {false, std::move(reason), 0}; }
};

// A product of rows and what it would do before it stores its result (FusedSteps of program.h).
struct FusedSignature {
  StepSignature product;
  bool bias = false;                // adds a number for each feature
  std::optional<Op> epilogue = {};  // the op that follows
  std::size_t input = 0;            // which of its operands the product is
  bool in_place = false;            // the result is written where its other operand lies
};

// What a region runs over: rows, with reductions over them or without, or elements.
enum class RegionForm : std::uint8_t { reductions, rows, elements };

// What a tiling is computed from. The compiler asks plan_region() twice: before memory is laid out, whether there may
// be a region, with zeros here; and while tiles are laid out, how a region runs that was accepted, with its sizes. The
// second time an executor may not decline: whether there is a region does not depend on its size. A region over
// elements has no tiles and is asked about without sizes.
struct RegionSize {
  std::uint64_t tile_bytes = 0;         // of kTileLanes rows
  std::uint64_t accumulator_bytes = 0;  // of one partition
  std::int64_t work = 0;                // of all rows, in the unit of RegionCosts::partition_work
};

// A group of steps that would be one Region. Of one over elements the steps are in `rows`, chain after chain.
struct RegionSignature {
  RegionForm form = RegionForm::rows;
  std::span<const StepSignature> rows;       // steps that run over rows or elements, of all stages
  std::span<const StepSignature> once = {};  // the others
  std::int64_t capacity = 0;                 // samples of a full batch
  std::span<const FusedSignature> fused = {};
  std::span<const std::int64_t> chains = {};  // over elements: how many each chain has
  RegionSize size = {};
  // Of each row step, then of each other one: which of these steps, counted so, makes each input; kNoStep: none of
  // them. None of a region over elements, and none where a finished Program is checked before it is loaded: then the
  // question is what can run, not what pays.
  std::span<const std::vector<std::uint32_t>> makers = {};
  std::span<const std::uint32_t> stages = {};  // of each row step which stage has it; none: all are in one
};

// One of several tilings, each of which gives right results, and what it would cost: in a unit of the executor.
struct RegionChoice {
  Tiling tiling;
  std::int64_t cost = 0;
};

struct RegionPlan {
  bool yes = false;
  std::string reason;                      // why not; empty for yes
  Tiling tiling;                           // how it would run, for the size that the signature tells
  std::vector<RegionChoice> choices = {};  // that were compared, the cheapest first; none where there is one way only

  static RegionPlan with(Tiling tiling) { return {true, {}, tiling}; }
  static RegionPlan no(std::string reason) { return {false, std::move(reason), {}}; }
};

class Runnable {
 public:
  virtual ~Runnable() = default;

  // Copies between host and arena; the span must have exactly the buffer's bytes. Not during run().
  virtual void write(BufferId buffer, std::span<const std::byte> bytes) = 0;
  virtual void read(BufferId buffer, std::span<std::byte> bytes) = 0;

  // The bytes from byte `first` of a buffer on; of buffers in Layout::rows. Not during run().
  virtual void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) = 0;

  // Whole rows of dimension 0 from row `first` on, as many as the bytes hold: costs by these rows and allocates
  // nothing. Not of buffers in Layout::strided. Not during run().
  virtual void write_rows(BufferId buffer, std::int64_t first, std::span<const std::byte> bytes) = 0;

  // Runs the phase n times.
  virtual void run(PhaseId phase, std::uint64_t n) = 0;

  // Runs steps [first, last) of the phase once: what verify, dump and tests use. A region runs whole or not at all.
  virtual void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) = 0;

  // What the executor counted since load(), for tests and profiles: "allocations", "launches", ... Empty: it counts
  // nothing. The names are the executor's own and stay the same during a run.
  // A name that ends in "_ns" is a part of the time that load() took.
  virtual std::vector<std::pair<std::string, std::uint64_t>> counters() const { return {}; }

  // Where the time went since load(), if Executor::set_profiling() asked for it before.
  virtual Profile profile() { return {}; }

  // The step of the run() under way that was begun last, from 0 on: for whoever watches from a hook or another thread.
  std::uint64_t steps_begun() const noexcept { return begun_.load(std::memory_order_relaxed); }

 protected:
  // For run(): step i begins. An executor that hands over many steps at once says the first of them.
  void begin_step(std::uint64_t i) noexcept { begun_.store(i, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> begun_{0};
};

// A machine that an executor could run on, as `graphrun devices` lists it.
struct Device {
  std::string id;                                   // what --executor takes: "cpu", "cuda:1"
  std::string name;                                 // "NVIDIA H200"
  std::string capability;                           // "compute capability 9.0", "avx512"
  int units = 0;                                    // cores, multiprocessors
  std::string driver;                               // "CUDA 12.8"; empty where there is none to name
  std::uint64_t memory_free = 0, memory_total = 0;  // bytes; 0: unknown
};
struct DeviceList {
  std::vector<Device> devices;
  std::string missing;  // one line on what is in the way; empty when nothing is
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view default_target() const = 0;  // "host", "h200": the name of a row of targets()
  // Whether it is there to be compared with, and not for speed: "auto" does not time it.
  virtual bool is_reference() const { return false; }
  virtual Support supports(const StepSignature& step, const Target& target) const = 0;
  // Whether the step may read its inputs where `views` says, instead of dense copies of them: what shows a part of a
  // value, its axes in another order or repeated, then is no step.
  virtual bool takes_views(const StepSignature&) const { return false; }
  // Whether these steps may be one region, and how it would run; also asked of single row steps, to learn where a
  // region must end, and of one product and what it would be fused with. Whether it may be one does not depend on its
  // size. A region that is declined runs as single steps.
  virtual RegionPlan plan_region(const RegionSignature&, const Target&) const {
    return RegionPlan::no("it runs steps one by one");
  }
  // The source of the kernels that it would compile for a program's regions over rows, for people; needs no device.
  // Empty: there are none.
  virtual std::string generated_source(const Program&) const { return {}; }
  // Throws Error (kind device) when the machine is not there or too small. The Program is copied where needed.
  virtual std::unique_ptr<Runnable> load(const Program& program) = 0;
  // Host threads, the caller's among them, of the Runnables that are loaded from now on; 0: the executor's default.
  // Never changes results. Executors that compute elsewhere, or in one thread, ignore it.
  virtual void set_threads(int) {}
  // What is there at this moment. Does not throw for a device that is missing: it says so.
  virtual DeviceList devices() const { return {}; }
  // Whether the Runnables that are loaded from now on tell where their time goes. Never changes results.
  virtual void set_profiling(Profiling) {}
};

// Executors report what they allocate on devices and in pinned memory, which no allocator of the host sees. The hook
// may be called from any thread; null: none. `api` is the call ("cudaMalloc") and lives for ever.
using AllocationHook = void (*)(const char* api, std::uint64_t bytes);
GRAPHRUN_API void watch_allocations(AllocationHook hook) noexcept;
GRAPHRUN_API void report_allocation(const char* api, std::uint64_t bytes) noexcept;

// The registry. Names are "ref", "cpu", "cuda", "cuda:1", those of plug-ins in the folders of GRAPHRUN_PLUGIN_PATH
// (libgraphrun_NAME.so), or a path to a shared library, "./x.so" or "./x.so:argument": it holds a '/' before any ':'.
// Thread-safe. Throws Error: unknown name (with the nearest), a library that does not load, a plug-in of another ABI.
GRAPHRUN_API std::shared_ptr<Executor> find_executor(std::string_view name);
GRAPHRUN_API std::vector<std::string> executor_names();  // those that are known by name, in listing order

// The path of a plug-in and what it is given, if the executor is named so. The path ends with the first ".so" before a
// ':', or with the text.
struct PluginName {
  std::string path, argument;
};
GRAPHRUN_API std::optional<PluginName> plugin_name(std::string_view executor);

// Folders of GRAPHRUN_PLUGIN_PATH and files in them that are not used, and why.
struct RejectedPlugin {
  std::string path, reason;
};
GRAPHRUN_API std::vector<RejectedPlugin> rejected_plugins();

}  // namespace graphrun
