// slot_kernel.h: one launch for the steps of several networks: a step kernel in slots (print/step_kernel.h), loaded
// once per process and device for all Runnables with the same text.
// Contract: run() returns when the steps have run, in a launch with those of the other members that ask at the same
// time, each in its slot: a row of the table of arguments. One of the waiting threads launches for all of them: as soon
// as all members wait, or when some do not come for a fifth of the time of a launch. These are not waited for again
// until they come. Several launches may be in flight, so that the device works while the members of one read their
// results. Results do not depend on who shares a launch. Thread-safe; a failed launch throws its Error in all threads.
// Not here: the memory of a network (arena.h), when to run (runnable.h).
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executors/cuda/api.h"
#include "executors/cuda/nvrtc.h"
#include "executors/cuda_planner/print/step_kernel.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

class SlotKernel {
 public:
  // The kernel of this source on the current device: an existing one, or a new one.
  // `in_one_block`: the same in a block per network (KernelRegion::together); null: there is none. It runs launches of
  // more networks than fit the device as clusters.
  static std::shared_ptr<SlotKernel> find(Api& api, const StepKernel& kernel, const StepKernel* in_one_block,
                                          const StepTiling& tiling, cudaStream_t stream);
  SlotKernel(Api& api, const StepKernel& kernel, const StepKernel* in_one_block, const StepTiling& tiling,
             cudaStream_t stream);
  ~SlotKernel();

  // A network that runs in slots. It belongs to one thread at a time.
  class Member {
   public:
    // Arguments of the kernel (SlotArguments of kernels/cuda/tile/step.h); `mirror` is host memory of the polled bytes.
    Member(std::shared_ptr<SlotKernel> kernel, const std::vector<void*>& pointers, std::span<const std::byte> polled,
           std::byte* mirror, const std::vector<std::uint64_t>& keys);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    // With `mirrored`, `mirror` has the polled bytes at the end.
    void run(Api& api, cudaStream_t stream, std::uint32_t steps, bool mirrored);

   private:
    friend class SlotKernel;
    std::shared_ptr<SlotKernel> kernel_;
    std::vector<std::uint64_t> arguments_;
    std::uint32_t polled_words_;
    std::size_t steps_at_;  // word of the step count and the polled words
    enum class Wake { none, decide, done };
    // Releases the lock of the kernel, and sleeps until there is something to do; the first member that waits, until
    // the deadline. Returns whether the steps have run.
    using Deadline = std::chrono::steady_clock::time_point;
    bool sleep(std::unique_lock<std::mutex>& kernel_lock, Deadline deadline);
    void wake(Wake why);
    // Protected by the kernel's mutex.
    bool expected_ = false;  // waited for
    bool waits_ = false, in_launch_ = false;
    // The last launch, set before the wake.
    std::exception_ptr error_;
    std::shared_ptr<const std::vector<Member*>> together_;  // members of the launch, and the index of this one
    std::size_t index_ = 0;
    // Each thread wakes by a mutex of its own: hundreds would line up for that of the kernel.
    std::mutex wake_mutex_;
    std::condition_variable woken_;
    Wake wake_ = Wake::none;
  };

 private:
  static constexpr int kLaunches = 3;             // in flight: more of them have fewer networks each
  static constexpr std::size_t kMaxSlots = 4096;  // maximum per launch

  struct Table {  // arguments of the slots of a launch
    Api::Memory pinned, device;
    bool free = true;
  };

  bool can_launch(const Member& member) const;
  // Wakes kWakes members of a launch whose steps have run. Each of their threads wakes others: to wake hundreds takes
  // as long as hundreds of steps.
  static void wake_next(const std::vector<Member*>& members, std::size_t first);
  void launch(std::unique_lock<std::mutex>& lock, Api& api, cudaStream_t stream);
  void launch(Api& api, cudaStream_t stream, const std::vector<Member*>& members, Table& table);
  void look_again();  // wakes the thread that decides next

  struct Code {
    Code(Api& api, const StepKernel& source, std::uint32_t blocks_of_cluster, cudaStream_t stream);
    std::string name;
    std::uint32_t blocks, threads, shared_bytes = 0;  // blocks: of the cluster that computes a network
    CompiledKernels compiled;
    const void* kernel = nullptr;
  };
  Code code_;
  std::optional<Code> in_one_block_;
  std::size_t max_clusters_ = 0;  // networks per launch, above which the second form is faster
  void* fault_ = nullptr;         // device address

  std::mutex mutex_;                          // protects what follows, and members
  std::vector<Member*> members_;              // all
  std::vector<Member*> waiting_;              // in order of arrival; the first one's thread waits with a deadline
  std::size_t expected_ = 0, in_launch_ = 0;  // members that are waited for; those in a launch
  std::chrono::steady_clock::duration patience_{};
  Api table_api_;  // counts the memory of the tables
  Table tables_[kLaunches];
};

// Number of networks to run at once, within the free memory of the device: two blocks per multiprocessor. 1 if the
// Program's training phase does not run in slots.
std::size_t networks_at_once(const Program& program, int device);

}  // namespace graphrun::cuda
