// executor.h: what a machine has to offer to run a Program, and the registry of those that do.
// Contract:
//   - supports() is a pure function of (step, target) and needs no device; it is asked before planning. load() may fail
//     (no device, no memory), but may not decline.
//   - load() allocates once; run() allocates nothing, transfers nothing and does not synchronise until it returns, and
//     when it returns all polled buffers can be read.
//   - a Runnable belongs to one thread at a time; different Runnables may run in different threads.
// To add an executor: implement these two classes (copy src/executors/ref) and add one line to
// src/executors/registry.cpp, or build a shared library that exports graphrun_executor_plugin() and say
// --executor=./libmine.so.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/program.h"
#include "graphrun/target.h"

namespace graphrun {

// A step as it is known before planning: no addresses yet.
struct StepSignature {
  std::string_view op;
  const Params& params;
  std::span<const TensorType> inputs;
  TensorType output;
  bool partial_rows = false;  // batches may be shorter than the capacity
};

struct Support {
  bool yes = false;
  std::string reason;                 // why not; empty for yes
  std::uint64_t workspace_bytes = 0;  // scratch the step needs from the plan, valid during the step only

  static Support with_workspace(std::uint64_t bytes) { return {true, {}, bytes}; }
  static Support no(std::string reason) { return {false, std::move(reason), 0}; }
};

class Runnable {
 public:
  virtual ~Runnable() = default;

  // Copies between host and arena; the span must have exactly the buffer's bytes. Not during run().
  virtual void write(BufferId buffer, std::span<const std::byte> bytes) = 0;
  virtual void read(BufferId buffer, std::span<std::byte> bytes) = 0;

  // Runs the phase n times.
  virtual void run(PhaseId phase, std::uint64_t n) = 0;

  // Runs steps [first, last) of the phase once: what verify, dump and tests use.
  virtual void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) = 0;

  // What the executor counted since load(), for tests and profiles: "allocations", "launches", ... Empty: it counts
  // nothing. The names are the executor's own and stay the same during a run.
  virtual std::vector<std::pair<std::string, std::uint64_t>> counters() const { return {}; }
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view default_target() const = 0;  // "host", "h200": the name of a row of targets()
  virtual Support supports(const StepSignature& step, const Target& target) const = 0;
  // Throws Error (kind device) when the machine is not there or too small. The Program is copied where needed.
  virtual std::unique_ptr<Runnable> load(const Program& program) = 0;
  // Host threads, the caller's among them, of the Runnables that are loaded from now on; 0: the executor's default.
  // Never changes results. Executors that compute elsewhere, or in one thread, ignore it.
  virtual void set_threads(int) {}
};

// The registry. Names are "ref", "cpu", "cuda", "cuda:1", or a path to a shared library (it holds a '/').
// Thread-safe. Throws Error: unknown name (with the nearest), a library that does not load, an older plug-in ABI.
GRAPHRUN_API std::shared_ptr<Executor> find_executor(std::string_view name);
GRAPHRUN_API std::vector<std::string> executor_names();  // those that are known by name, in listing order

// What a plug-in library exports: extern "C" const graphrun::ExecutorPlugin* graphrun_executor_plugin();
// Plug-ins are C++ and must be built against the same version of graphrun: `abi` is compared before anything is called.
inline constexpr std::uint32_t kExecutorAbi = 2;
struct ExecutorPlugin {
  std::uint32_t struct_size = sizeof(ExecutorPlugin);
  std::uint32_t abi = kExecutorAbi;
  // `argument` is what follows the colon: "1" of "cuda:1"; may be empty. Throws Error.
  std::unique_ptr<Executor> (*create)(std::string_view argument) = nullptr;
};

}  // namespace graphrun
