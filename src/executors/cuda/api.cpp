#include "executors/cuda/api.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "executors/cuda/failure.h"
#include "executors/cuda/rank_group.h"
#include "graphrun/executor.h"

namespace graphrun::cuda {

using Call = DeviceProfile::Call;
using Work = DeviceProfile::Work;
using Kind = DeviceProfile::Kind;

std::vector<std::pair<std::string, std::uint64_t>> Counters::list() const {
  return {{"allocations", allocations},
          {"allocated_bytes", allocated_bytes},
          {"pinned_allocations", pinned_allocations},
          {"pinned_bytes", pinned_bytes},
          {"frees", frees},
          {"fills", fills},
          {"copies_to_device", copies_to_device},
          {"bytes_to_device", bytes_to_device},
          {"copies_to_host", copies_to_host},
          {"bytes_to_host", bytes_to_host},
          {"launches", launches},
          {"graph_launches", graph_launches},
          {"captured_launches", captured_launches},
          {"graphs", graphs},
          {"library_calls", library_calls},
          {"generated_kernels", generated_kernels},
          {"compiled_kernels", compiled_kernels},
          {"cached_kernels", generated_kernels - compiled_kernels},
          {"synchronizations", synchronizations}};
}

void Api::fail(const char* call, cudaError_t status) const {
  cuda::fail(doing_, call, status);
}

Api::Memory Api::allocate(std::uint64_t bytes, MemoryPool::Kind kind) {
  const Free owner{this, kind, bytes};
  if (void* const memory = pool_ ? pool_->take(kind, bytes) : nullptr) return {static_cast<std::byte*>(memory), owner};
  const bool on_device = kind == MemoryPool::Kind::device;
  const char* const name = on_device ? "cudaMalloc" : "cudaMallocHost";
  const Call call(profile_, name);
  void* memory = nullptr;
  cudaError_t status = on_device ? cudaMalloc(&memory, bytes) : cudaMallocHost(&memory, bytes);
  if (on_device && status == cudaErrorMemoryAllocation && pool_) {  // the pool may hold memory of other sizes
    cudaGetLastError();
    pool_->clear();
    status = cudaMalloc(&memory, bytes);
  }
  if (on_device && status == cudaErrorMemoryAllocation) fail_arena(bytes);
  check(status, name);
  report_allocation(name, bytes);
  ++(on_device ? counters_.allocations : counters_.pinned_allocations);
  (on_device ? counters_.allocated_bytes : counters_.pinned_bytes) += bytes;
  return {static_cast<std::byte*>(memory), owner};
}

void Api::clear(void* from, std::uint64_t bytes, cudaStream_t stream) {
  const Work work(profile_, Kind::copy, "[CUDA memset]", stream);
  const Call call(profile_, "cudaMemsetAsync");
  ++counters_.fills;
  check(cudaMemsetAsync(from, 0, bytes, stream), "cudaMemsetAsync");
}

void Api::copy(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const bool to_device = kind == cudaMemcpyHostToDevice;
  const Work work(profile_, Kind::copy, to_device ? "[CUDA memcpy HtoD]" : "[CUDA memcpy DtoH]", stream);
  const Call call(profile_, "cudaMemcpyAsync");
  check(cudaMemcpyAsync(to, from, bytes, kind, stream),
        to_device ? "cudaMemcpyAsync to the device" : "cudaMemcpyAsync to the host");
  ++(to_device ? counters_.copies_to_device : counters_.copies_to_host);
  (to_device ? counters_.bytes_to_device : counters_.bytes_to_host) += bytes;
}

std::uint32_t Api::read_word(const void* from, void* pinned, cudaStream_t stream) {
  std::uint32_t word = 0;
  copy(pinned, from, sizeof(word), cudaMemcpyDeviceToHost, stream);
  synchronize(stream);
  std::memcpy(&word, pinned, sizeof(word));
  std::memset(pinned, 0, sizeof(word));
  return word;
}

void Api::launch(const void* kernel, const char* name, Grid grid, std::uint32_t threads, void** arguments,
                 cudaStream_t stream, bool capturing) {
  const Work work(profile_, Kind::kernel, name, stream, capturing);
  const Call call(profile_, "cudaLaunchKernel");
  constexpr std::uint32_t kWithoutAsking = 48 * 1024;
  cudaError_t status = grid.shared_bytes <= kWithoutAsking
                           ? cudaSuccess
                           : cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                  static_cast<int>(grid.shared_bytes));
  if (status == cudaSuccess)
    status = cudaLaunchKernel(kernel, dim3(grid.x, grid.y, grid.z), dim3(threads, 1, 1), arguments, grid.shared_bytes,
                              stream);
  if (status != cudaSuccess) fail(fmt::format("cudaLaunchKernel of {}", name).c_str(), status);
  ++(capturing ? counters_.captured_launches : counters_.launches);
}

void Api::launch_together(const void* kernel, const char* name, std::uint32_t blocks, std::uint32_t cluster,
                          std::uint32_t threads, std::uint32_t shared_bytes, void** arguments, cudaStream_t stream,
                          bool capturing, std::uint32_t slots) {
  const Work work(profile_, Kind::kernel, name, stream, capturing);
  const Call call(profile_, "cudaLaunchKernelExC");
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks, slots, 1);
  config.blockDim = dim3(threads, 1, 1);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  if (cluster > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim = {cluster, 1, 1};
    ++config.numAttrs;
  }
  if (blocks > cluster) {
    attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
    attributes[config.numAttrs].val.cooperative = 1;
    ++config.numAttrs;
  }
  const cudaError_t status = cudaLaunchKernelExC(&config, kernel, arguments);
  if (status != cudaSuccess) fail(fmt::format("cudaLaunchKernelExC of {}", name).c_str(), status);
  ++(capturing ? counters_.captured_launches : counters_.launches);
}

void Api::launch_graph(cudaGraphExec_t graph, cudaStream_t stream) {
  const Work work(profile_, Kind::graph, doing_, stream);
  const Call call(profile_, "cudaGraphLaunch");
  check(cudaGraphLaunch(graph, stream), "cudaGraphLaunch");
  ++counters_.graph_launches;
}

ExecutableGraph Api::instantiate(cudaGraph_t graph, cudaStream_t stream) {
  const Call call(profile_, "cudaGraphInstantiate");
  cudaGraphExec_t instance = nullptr;
  check(cudaGraphInstantiate(&instance, graph, 0), "cudaGraphInstantiate");
  ExecutableGraph result(instance);
  ++counters_.graphs;
  // Uploads the graph during load(), so that the first launch has nothing left to set up.
  check(cudaGraphUpload(instance, stream), "cudaGraphUpload");
  return result;
}

void Api::watch(const auto& is_busy) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPause = std::chrono::milliseconds(1);
  for (auto next = Clock::now() + kPause; group_ != nullptr && is_busy();) {
    if (Clock::now() < next) continue;
    group_->look();
    next = Clock::now() + kPause;
  }
}

void Api::synchronize(cudaStream_t stream) {
  watch([&] { return cudaStreamQuery(stream) == cudaErrorNotReady; });
  {
    const Call call(profile_, "cudaStreamSynchronize");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }
  ++counters_.synchronizations;
  if (profile_ != nullptr) profile_->synchronized();
}

void Api::record(cudaEvent_t event, cudaStream_t stream) {
  const Call call(profile_, "cudaEventRecord");
  check(cudaEventRecord(event, stream), "cudaEventRecord");
}

void Api::wait_on_stream(cudaStream_t stream, cudaEvent_t event) {
  const Call call(profile_, "cudaStreamWaitEvent");
  check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

void Api::wait(cudaEvent_t event) {
  watch([&] { return cudaEventQuery(event) == cudaErrorNotReady; });
  const Call call(profile_, "cudaEventSynchronize");
  check(cudaEventSynchronize(event), "cudaEventSynchronize");
}

}  // namespace graphrun::cuda
