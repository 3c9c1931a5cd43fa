// fake_runtime.cpp: the CUDA runtime as far as the executor calls it, without a device: linked in place of the real one
// it makes a plug-in in which any call can be made to fail. A function that the executor newly calls is added here.
#include "fake_runtime.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <string_view>

#include "kernels/cuda/combine_shards.h"

namespace {

class Machine {
 public:
  cudaError_t call(const char* function) {
    const std::lock_guard lock(mutex_);
    refresh();
    if (broken_ != cudaSuccess) return broken_;
    const std::uint64_t count = ++calls_[function];
    const std::string wanted = text(function);
    if (wanted.empty()) return cudaSuccess;
    const std::size_t at = wanted.find('@');
    const std::uint64_t nth = at == std::string::npos ? 1 : std::stoull(wanted.substr(at + 1));
    if (count != nth) return cudaSuccess;
    const auto status = static_cast<cudaError_t>(std::stoi(wanted));
    if (has("sticky")) broken_ = status;
    return status;
  }
  std::uint64_t number(std::string_view name, std::uint64_t fallback) {
    const std::lock_guard lock(mutex_);
    refresh();
    const std::string found = text(name);
    return found.empty() ? fallback : std::stoull(found);
  }
  void log_launch(int device) {
    const std::lock_guard lock(mutex_);
    refresh();
    const std::string path = text("launches");
    if (!path.empty()) std::ofstream(path, std::ios::app) << device << '\n';
  }
  void log_order(const char* what, const void* stream, const void* event = nullptr);
  bool is_missing(std::string_view library) {
    const std::lock_guard lock(mutex_);
    refresh();
    const std::string name = text("missing");
    return !name.empty() && library.substr(0, name.size()) == name;
  }
  bool fakes(std::string_view library) {
    const std::lock_guard lock(mutex_);
    refresh();
    return library.starts_with("libcublasLt") && !text("products").empty();
  }
  bool is_busy() {
    const std::lock_guard lock(mutex_);
    refresh();
    return has("busy") && std::getenv("FAKE_NCCL_ABORTED") == nullptr;
  }

  cudaError_t allocate(void** memory, std::size_t bytes) {
    const std::uint64_t all = number("memory", std::uint64_t{1} << 30);
    const std::lock_guard lock(mutex_);
    if (bytes > all - used_) return cudaErrorMemoryAllocation;
    *memory = ::operator new (bytes, std::align_val_t{256});
    sizes_[*memory] = bytes;
    used_ += bytes;
    return cudaSuccess;
  }
  void free(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(memory);
    if (found == sizes_.end()) return;
    used_ -= found->second;
    sizes_.erase(found);
    ::operator delete (memory, std::align_val_t{256});
  }
  std::size_t used() const { return used_; }

  // ---- what is in flight: numbers of pieces of work; there is one stream at a time

  void begin_capture() { capturing_ = true; }
  void end_capture() { capturing_ = false; }
  void work() {
    const std::lock_guard lock(mutex_);
    if (!capturing_) ++work_;
  }
  void graph() {
    work();
    const std::lock_guard lock(mutex_);
    graphs_.push_back(work_);
    if (graphs_.size() > max_graphs_) {
      max_graphs_ = graphs_.size();
      setenv("FAKE_CUDA_AHEAD", std::to_string(max_graphs_).c_str(), 1);
    }
  }
  void mark(cudaEvent_t event) {
    const std::lock_guard lock(mutex_);
    marks_[event] = work_;
  }
  void wait_for(cudaEvent_t event) {
    const std::lock_guard lock(mutex_);
    finish(marks_[event]);
  }
  void wait_for_all() {
    const std::lock_guard lock(mutex_);
    finish(work_);
  }
  void gives_back(const char* function) {
    if (done_ != work_) setenv("FAKE_CUDA_FREED_IN_FLIGHT", function, 1);
  }

 private:
  void finish(std::uint64_t number) {
    done_ = std::max(done_, number);
    while (!graphs_.empty() && graphs_.front() <= done_) graphs_.pop_front();
  }
  void refresh() {
    const char* now = std::getenv("FAKE_CUDA");
    if (settings_ == (now != nullptr ? now : "")) return;
    settings_ = now != nullptr ? now : "";
    calls_.clear();
    broken_ = cudaSuccess;
    max_graphs_ = 0;
  }
  bool has(std::string_view word) const {
    return ("," + settings_ + ",").find("," + std::string(word) + ",") != std::string::npos;
  }
  std::string text(std::string_view name) const {
    const std::string all = "," + settings_ + ",", key = "," + std::string(name) + "=";
    const std::size_t at = all.find(key);
    if (at == std::string::npos) return {};
    return all.substr(at + key.size(), all.find(',', at + 1) - at - key.size());
  }

  std::mutex mutex_;
  std::string settings_;
  std::map<std::string, std::uint64_t> calls_;
  cudaError_t broken_ = cudaSuccess;
  std::map<void*, std::size_t> sizes_;
  std::size_t used_ = 0;
  bool capturing_ = false;
  std::uint64_t work_ = 0, done_ = 0;
  std::deque<std::uint64_t> graphs_;  // in flight
  std::size_t max_graphs_ = 0;
  std::map<cudaEvent_t, std::uint64_t> marks_;
};

Machine& machine() {
  static Machine* const one = new Machine;  // outlives every object that is destroyed at exit
  return *one;
}

// Handles are numbers that are never zero.
template <class Handle>
Handle handle() {
  static std::atomic<std::uintptr_t> next = 0;
  return reinterpret_cast<Handle>(++next * 16);
}

// The kernels of combine_shards.cu, on the host.
void run_kernel(const void* kernel, unsigned count, void** arguments) {
  using namespace graphrun::cuda;
  const CombineKernels kernels = combine_kernels();
  if (kernel != kernels.pack && kernel != kernels.combine) return;
  const auto* values = *static_cast<const SharedValue**>(arguments[0]);
  for (const SharedValue* value = values; value != values + count; ++value) {
    for (std::uint64_t i = value->begin; i < value->begin + value->count; ++i) {
      if (kernel == kernels.pack) {
        (*static_cast<float**>(arguments[1]))[i] = value->from[i - value->begin];
        continue;
      }
      const SharedBlocks& blocks = *static_cast<SharedBlocks*>(arguments[1]);
      if (i < blocks.first || i >= blocks.first + blocks.count) continue;
      const float sum = combined_at(blocks, value->op, i - blocks.first);
      (blocks.sums != nullptr ? blocks.sums[i - blocks.first] : value->to[i - value->begin]) = sum;
    }
  }
}

thread_local int device_of_thread = 0;

void Machine::log_order(const char* what, const void* stream, const void* event) {
  const std::lock_guard lock(mutex_);
  refresh();
  if (const std::string path = text("order"); !path.empty() && device_of_thread == 0 && !capturing_)
    std::ofstream(path, std::ios::app) << what << ' ' << stream << ' ' << event << '\n';
}

}  // namespace

#define FAKE_CALL() \
  if (const cudaError_t failed = machine().call(__func__); failed != cudaSuccess) return failed

extern "C" {

// ---- the machine

cudaError_t cudaDriverGetVersion(int* version) {
  *version = static_cast<int>(machine().number("driver", CUDART_VERSION));
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = static_cast<int>(machine().number("runtime", CUDART_VERSION));
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  FAKE_CALL();
  if (machine().number("driver", CUDART_VERSION) < CUDART_VERSION / 1000 * 1000) return cudaErrorInsufficientDriver;
  *count = static_cast<int>(machine().number("devices", 1));
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  FAKE_CALL();
  device_of_thread = device;
  return cudaSuccess;
}
cudaError_t cudaSetDeviceFlags(unsigned) {
  FAKE_CALL();
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  properties->uuid.bytes[0] = static_cast<char>(device);
  std::strcpy(properties->name, "Fake GPU");
  properties->major = 6;
  properties->multiProcessorCount = 132;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = device_of_thread;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : attribute == cudaDevAttrMultiProcessorCount ? 132 : 0;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) {
  FAKE_CALL();
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* unused, std::size_t* total) {
  FAKE_CALL();
  *total = machine().number("memory", std::uint64_t{1} << 30);
  *unused = *total - machine().used();
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorECCUncorrectable:
      return "cudaErrorECCUncorrectable";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    default:
      return "cudaError";
  }
}
const char* cudaGetErrorString(cudaError_t) {
  return "as CUDA puts it";
}

// ---- memory

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  FAKE_CALL();
  return machine().allocate(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  machine().gives_back(__func__);
  machine().free(memory);  // even of a broken device: a test that looks for leaks sees ours only
  FAKE_CALL();
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  FAKE_CALL();
  *memory = std::calloc(bytes, 1);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  machine().gives_back(__func__);
  std::free(memory);
  FAKE_CALL();
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t) {
  FAKE_CALL();
  machine().work();
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  FAKE_CALL();
  machine().work();
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

// ---- streams and launches

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  FAKE_CALL();
  *stream = handle<cudaStream_t>();
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  FAKE_CALL();
  *stream = handle<cudaStream_t>();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  FAKE_CALL();
  *lowest = 0, *highest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
  machine().gives_back(__func__);
  FAKE_CALL();
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  FAKE_CALL();
  machine().wait_for_all();
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) {
  return machine().is_busy() ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3, void** arguments, std::size_t, cudaStream_t stream) {
  FAKE_CALL();
  machine().work();
  machine().log_order("launch", stream);
  run_kernel(kernel, grid.y, arguments);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**) {
  FAKE_CALL();
  machine().work();
  machine().log_launch(device_of_thread);
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  FAKE_CALL();
  return cudaSuccess;
}
// As many as run at a time on the device that is played.
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void*, const cudaLaunchConfig_t*) {
  FAKE_CALL();
  *clusters = static_cast<int>(machine().number("clusters", 15));
  return cudaSuccess;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void*, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  FAKE_CALL();
  *library = handle<cudaLibrary_t>();
  return cudaSuccess;
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t, const char*) {
  FAKE_CALL();
  *kernel = handle<cudaKernel_t>();
  return cudaSuccess;
}
// One word for all variables: no kernel writes it.
cudaError_t cudaLibraryGetGlobal(void** address, std::size_t* bytes, cudaLibrary_t, const char*) {
  FAKE_CALL();
  static unsigned variable = 0;
  *address = &variable;
  *bytes = sizeof(variable);
  return cudaSuccess;
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) {
  machine().gives_back(__func__);
  FAKE_CALL();
  return cudaSuccess;
}

// ---- events: a kernel takes no time here

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  FAKE_CALL();
  *event = handle<cudaEvent_t>();
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  FAKE_CALL();
  *event = handle<cudaEvent_t>();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  FAKE_CALL();
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  FAKE_CALL();
  machine().mark(event);
  machine().log_order("record", stream, event);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  FAKE_CALL();
  machine().log_order("wait", stream, event);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) {
  return machine().is_busy() ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  FAKE_CALL();
  machine().wait_for(event);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  FAKE_CALL();
  *milliseconds = 0.001f;
  return cudaSuccess;
}

// ---- graphs: one with a single kernel node, whatever was captured

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  FAKE_CALL();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  machine().end_capture();
  FAKE_CALL();
  *graph = handle<cudaGraph_t>();
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphEdgeData*,
                                          std::size_t, cudaStreamCaptureMode) {
  FAKE_CALL();
  machine().begin_capture();
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status, unsigned long long*, cudaGraph_t*,
                                     const cudaGraphNode_t** nodes, const cudaGraphEdgeData**, std::size_t* count) {
  FAKE_CALL();
  static const cudaGraphNode_t last = handle<cudaGraphNode_t>();
  *status = cudaStreamCaptureStatusActive;
  if (nodes != nullptr) *nodes = &last;
  if (count != nullptr) *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  FAKE_CALL();
  *graph = handle<cudaGraph_t>();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t) {
  FAKE_CALL();
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t* nodes, std::size_t* count) {
  FAKE_CALL();
  if (nodes != nullptr) *nodes = handle<cudaGraphNode_t>();
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t, cudaGraphNodeType* type) {
  FAKE_CALL();
  *type = cudaGraphNodeTypeKernel;
  return cudaSuccess;
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t, cudaGraph_t*) {
  return cudaErrorInvalidValue;
}
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t, unsigned, unsigned) {
  FAKE_CALL();
  *handle = 1;
  return cudaSuccess;
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t, const cudaGraphNode_t*, std::size_t,
                                   const cudaKernelNodeParams*) {
  FAKE_CALL();
  *node = handle<cudaGraphNode_t>();
  return cudaSuccess;
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t, const cudaGraphNode_t*, std::size_t,
                                       cudaGraph_t) {
  FAKE_CALL();
  *node = handle<cudaGraphNode_t>();
  return cudaSuccess;
}
cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphEdgeData*,
                             std::size_t, cudaGraphNodeParams* params) {
  FAKE_CALL();
  static cudaGraph_t body = handle<cudaGraph_t>();
  if (params->type == cudaGraphNodeTypeConditional) params->conditional.phGraph_out = &body;
  *node = handle<cudaGraphNode_t>();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t, unsigned long long) {
  FAKE_CALL();
  *executable = handle<cudaGraphExec_t>();
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  FAKE_CALL();
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) {
  FAKE_CALL();
  machine().graph();
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) {
  machine().gives_back(__func__);
  FAKE_CALL();
  return cudaSuccess;
}

// ---- what the compiler's own code for kernels calls

void** __cudaRegisterFatBinary(void*) {
  static void* module = nullptr;
  return &module;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
unsigned __cudaPushCallConfiguration(dim3, dim3, std::size_t, void*) {
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) {
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void*) {
  *kernel = nullptr;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return cudaErrorInvalidValue;  // every launch of ours goes through cudaLaunchKernel
}

// ---- the loader, as seen from the plug-in

void* dlopen(const char* name, int flags) {
  using Open = void* (*)(const char*, int);
  static const auto real = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "dlopen"));
  if (name != nullptr && machine().fakes(name)) return real(GRAPHRUN_FAKE_CUBLASLT, flags);
  if (name == nullptr || !machine().is_missing(name))
    return real(name != nullptr && std::string_view(name).starts_with("libnccl") ? GRAPHRUN_FAKE_NCCL : name, flags);
  return real((std::string("/nowhere/") + name).c_str(), flags);  // fails, and leaves its reason to dlerror()
}

}  // extern "C"
