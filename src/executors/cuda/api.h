// api.h: the only access to the CUDA runtime. Every call is checked, counted, and named in the message if it fails.
// Contract: an Api belongs to one runnable and thread at a time. A failing call throws Error of kind device with the
// call, its purpose (doing()) and CUDA's own message.
// Not here: what is allocated, launched and captured, and when (runnable.cpp, step_graph.cpp).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "executors/cuda/memory_pool.h"
#include "executors/cuda/profile.h"
#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

class RankGroup;  // rank_group.h

// Owner of a CUDA object, such as Owned<cudaStream_t, cudaStreamDestroy>.
template <auto destroy>
struct Destroy {
  void operator()(auto* object) const noexcept { destroy(object); }
};
template <class Handle, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<destroy>>;
using ExecutableGraph = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

// Counts since load(). Copies are between host and device unless stated otherwise.
struct Counters {
  std::uint64_t allocations = 0, allocated_bytes = 0;  // cudaMalloc
  std::uint64_t pinned_allocations = 0, pinned_bytes = 0;
  std::uint64_t frees = 0;
  std::uint64_t fills = 0;  // cudaMemset
  std::uint64_t copies_to_device = 0, bytes_to_device = 0;
  std::uint64_t copies_to_host = 0, bytes_to_host = 0;
  std::uint64_t launches = 0;           // kernels launched one at a time
  std::uint64_t graph_launches = 0;     // each launch runs many steps
  std::uint64_t captured_launches = 0;  // kernels captured into a graph
  std::uint64_t graphs = 0;             // graphs instantiated
  std::uint64_t library_calls = 0;      // products run by the matrix library, captured or not
  std::uint64_t generated_kernels = 0;  // kernels generated for this program
  std::uint64_t compiled_kernels = 0;   // generated kernels that NVRTC compiled in load(); others were cached
  std::uint64_t synchronizations = 0;

  std::vector<std::pair<std::string, std::uint64_t>> list() const;
};

class Api {
 public:
  // Memory is owned by the caller, and must not outlive the Api, which counts that it is freed.
  struct Free {
    Api* api = nullptr;
    MemoryPool::Kind kind = {};
    std::uint64_t bytes = 0;
    void operator()(std::byte* memory) const noexcept {
      if (api->pool_) return api->pool_->give(kind, bytes, memory);
      MemoryPool::release(kind, memory);
      ++api->counters_.frees;
    }
  };
  using Memory = std::unique_ptr<std::byte, Free>;

  const Counters& counters() const { return counters_; }
  void set_profile(DeviceProfile* profile) { profile_ = profile; }  // null for no profile
  // From now on, memory comes from this pool where it has some, and returns to it. Null: no pool.
  void set_pool(std::shared_ptr<MemoryPool> pool) { pool_ = std::move(pool); }
  // While the device works for other ranks too, waits for it call look() of the group, which may throw. Null: no group.
  void set_group(RankGroup* group) { group_ = group; }

  // Sets the purpose of the next calls for messages, such as "phase 'train', step 3 (h1.W)". The text must outlive the
  // calls: run() copies no strings.
  void doing(std::string_view what) { doing_ = what; }
  void check(cudaError_t status, const char* call) const {
    if (status != cudaSuccess) fail(call, status);
  }
  [[noreturn]] void fail(const char* call, cudaError_t status) const;

  void use_device(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }
  Memory allocate(std::uint64_t bytes, MemoryPool::Kind kind = MemoryPool::Kind::device);
  Memory allocate_pinned(std::uint64_t bytes) { return allocate(bytes, MemoryPool::Kind::pinned); }
  void clear(void* from, std::uint64_t bytes, cudaStream_t stream);  // fills with zeros
  // Copies between host and device in the direction of `kind`.
  void copy(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
  // Reads a word of device memory through pinned memory, and returns 0 to the latter.
  std::uint32_t read_word(const void* from, void* pinned, cudaStream_t stream);
  void launch(const void* kernel, const char* name, Grid grid, std::uint32_t threads, void** arguments,
              cudaStream_t stream, bool capturing);
  // Launches blocks that run at the same time, in clusters. `shared_bytes` is the shared memory of each block. Blocks
  // of different slots, the second dimension of the grid, need not run at the same time.
  void launch_together(const void* kernel, const char* name, std::uint32_t blocks, std::uint32_t cluster,
                       std::uint32_t threads, std::uint32_t shared_bytes, void** arguments, cudaStream_t stream,
                       bool capturing, std::uint32_t slots = 1);
  void launch_graph(cudaGraphExec_t graph, cudaStream_t stream);
  ExecutableGraph instantiate(cudaGraph_t graph, cudaStream_t stream);
  void synchronize(cudaStream_t stream);
  void record(cudaEvent_t event, cudaStream_t stream);
  void wait(cudaEvent_t event);
  void wait_on_stream(cudaStream_t stream, cudaEvent_t event);  // asynchronous
  void count_library_call() { ++counters_.library_calls; }
  void count_generated_kernel(bool compiled) {
    ++counters_.generated_kernels;
    counters_.compiled_kernels += compiled ? 1 : 0;
  }

 private:
  void watch(const auto& is_busy);  // returns when it is not, or at once without a group

  Counters counters_;
  std::string_view doing_;
  DeviceProfile* profile_ = nullptr;
  std::shared_ptr<MemoryPool> pool_;
  RankGroup* group_ = nullptr;
};

}  // namespace graphrun::cuda
