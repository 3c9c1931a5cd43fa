// runnable.h: a Program on one device: its arena, pinned mirror, stream and graphs.
// Contract: that of executor.h. The constructor allocates everything. run() launches graphs, at most two ahead of the
// device, copies the polled bytes and synchronizes once, at its end. Owns its stream, on which no other runnable has
// work. Not here: kernels (kernels/cuda), repetition (step_graph.h), checking and counting (api.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "executors/cuda/api.h"
#include "executors/cuda/arena.h"
#include "executors/cuda/cublaslt.h"
#include "executors/cuda/in_flight.h"
#include "executors/cuda/launch_batching.h"
#include "executors/cuda/nvrtc.h"
#include "executors/cuda/rank_group.h"
#include "executors/cuda/step_graph.h"
#include "executors/cuda/step_kernels.h"
#include "graphrun/executor.h"

namespace graphrun::cuda {

class CudaRunnable final : public Runnable {
 public:
  // With `shared`, launches are shared with other runnables, which leave their memory to each other.
  // With ranks, it is one shard of the Program, and combines values with those of the others.
  CudaRunnable(const Program& program, int device, Profiling profiling, std::shared_ptr<SharedLaunches> shared,
               std::shared_ptr<Communicator> ranks = nullptr);
  ~CudaRunnable() override;

  void write(BufferId buffer, std::span<const std::byte> bytes) override;
  void read(BufferId buffer, std::span<std::byte> bytes) override;
  void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) override;
  void write_rows(BufferId buffer, std::int64_t first, std::span<const std::byte> bytes) override;
  void run(PhaseId phase, std::uint64_t n) override;
  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override;
  std::vector<std::pair<std::string, std::uint64_t>> counters() const override;
  Profile profile() override;

 private:
  // Waits for launches before the members that they use are destroyed, also after an Error of load() or run().
  struct WaitForLaunches {
    CudaRunnable* owner;
    ~WaitForLaunches();
  };

  // A step with its kernel and operands.
  struct BoundStep {
    LaunchFn launch = nullptr;
    KernelArgs args;
    std::uint64_t workspace_bytes = 0;
    std::string label;  // "phase 'train', step 3 (h1.W)"
    ProductEpilogue epilogue = {};
  };
  // A kernel compiled for a region, and its only parameter.
  struct BoundRegion {
    const void* kernel = nullptr;
    std::string name, label;
    Grid grid;
    std::uint32_t threads = 0;
    std::vector<const void*> pointers;
  };
  struct BoundLaunch {
    std::uint32_t first = 0, last = 0;  // steps of the phase
    std::variant<BoundStep, BoundRegion, BoundSteps, SharedSet> work;
    std::vector<std::uint32_t> after = {};  // earlier launches to wait for
    bool aside = false;                     // on the second stream: a large message, or makes one of its values
    Owned<cudaEvent_t, cudaEventDestroy> ended = {};  // after a launch aside
    cudaEvent_t waits = nullptr;                      // end of the last launch aside among `after`, for others
  };
  struct BoundPhase {
    std::string label;
    std::vector<BoundLaunch> launches;
    LaunchBatching batching{1};
    bool combines = false;  // has a SharedSet: the host makes every launch
    bool aside = false;     // has launches aside
    // Whether all steps are one kernel, which repeats them by itself.
    bool repeats_itself() const {
      return launches.size() == 1 && std::holds_alternative<BoundSteps>(launches.front().work);
    }
    bool in_slots() const { return repeats_itself() && std::get<BoundSteps>(launches.front().work).slot; }
  };
  class StreamLauncher;

  BoundStep bind(const Phase& phase, std::size_t index);
  SharedValue shared_value(const Step& step) const;
  BoundRegion bind(const Phase& phase, const Region& region, std::string& source);
  BoundStep bind_product(const Phase& phase, const Region& region);
  std::string bind_phases(StepCodes steps);  // returns the source of kernels to generate
  void order_launches(const Phase& phase, BoundPhase& bound, const std::vector<std::vector<std::uint32_t>>& order);
  void compile_kernels(const std::string& source);
  void choose_algorithms();
  void enqueue(const BoundStep& step, bool capturing);
  void enqueue(const BoundRegion& region, bool capturing);
  void enqueue(BoundSteps& steps, bool capturing);
  void enqueue(const SharedSet& set, bool capturing);
  void enqueue(BoundLaunch& launch, bool capturing);
  void sample(PhaseId phase);
  void follow(cudaStream_t stream, cudaStream_t before);  // later work on the stream waits for work on the other
  void enqueue(BoundPhase& phase);                        // runs a step launch by launch, without a graph
  void launch_steps(PhaseId phase, std::uint64_t steps);  // asynchronous
  void run_in_slot(PhaseId phase, std::uint64_t n);
  void run_in_one(PhaseId phase, std::uint64_t first, std::uint64_t steps);
  void run_in_several(PhaseId phase, std::uint64_t begun, std::uint64_t n);  // steps [begun, n) of a run
  void capture_phases();
  void synchronize_run();  // end of a run: waits for its launches and checks for faults
  bool is_mirrored(const Buffer& buffer) const;
  void copy(const Buffer& what, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
  bool copy_start(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);  // false: not in start_
  void write_start();
  const Buffer& checked(BufferId buffer, std::size_t bytes, const char* call) const;

  Program program_;  // holds no initial values
  int device_;
  Machine machine_;
  bool use_graphs_;                         // if false, run() launches each step, for debuggers and sanitizers
  std::unique_ptr<DeviceProfile> profile_;  // null without profiling
  Api api_;
  MemoryPool::Stream stream_;                      // shared if all phases run in slots
  Owned<cudaStream_t, cudaStreamDestroy> second_;  // with ranks
  Owned<cudaEvent_t, cudaEventDestroy> turn_;      // end of earlier work, for follow()
  cudaStream_t now_ = nullptr;                     // stream of the launch that is enqueued
  std::optional<Arena> arena_;
  Api::Memory pinned_;
  PollBlock polled_;       // polled block of the arena, in slots with small parameters; pinned_ mirrors it
  bool mirrored_ = false;  // the pinned block equals the arena
  bool shares_launches_ = false;
  // With shared launches and few bytes of states, these until the first run, which copies them: hundreds of threads
  // wait for each copy.
  std::vector<std::byte> start_;
  std::optional<MatmulLibrary> library_;
  std::unique_ptr<CompiledKernels> compiled_;
  std::unique_ptr<StepKernels> step_kernels_;
  LoopSlot slot_;
  std::vector<std::pair<std::string, std::uint64_t>> load_times_;  // parts of load(), reported by counters()
  std::vector<BoundPhase> phases_;
  std::vector<StepGraph> graphs_;
  std::shared_ptr<Communicator> ranks_;  // null: the batch has no shards
  std::optional<RankGroup> group_;
  std::uint64_t max_elements_ = 0;           // largest block of a SharedSet
  std::optional<InFlight> in_flight_;        // unless all phases run in slots
  WaitForLaunches wait_for_launches_{this};  // last member: destroyed before the members that launches use
};

}  // namespace graphrun::cuda
