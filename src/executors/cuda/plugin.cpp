// plugin.cpp: the CUDA executor, exported by libgraphrun_cuda.so. Loading it needs no driver: the CUDA runtime is
// linked in and looks for the driver at its first call, which is in load() or devices().
#include <atomic>
#include <memory>
#include <mutex>

#include "executors/common/executor_library.h"
#include "executors/common/load_check.h"
#include "executors/cuda/device.h"
#include "executors/cuda/runnable.h"
#include "executors/cuda_planner/cuda_planner.h"

namespace graphrun::cuda {
namespace {

class CudaExecutor final : public CudaPlanner {
 public:
  explicit CudaExecutor(int device) : device_(device) {}

  void set_profiling(Profiling profiling) override { profiling_ = profiling; }
  std::unique_ptr<Runnable> load(const Program& program) override {
    check_loadable(program, *this);
    return std::make_unique<CudaRunnable>(program, device_, profiling_, pool());
  }
  std::size_t share_launches(const Program& program) override {
    {
      const std::lock_guard lock(mutex_);
      if (!pool_) pool_ = std::make_shared<MemoryPool>();
    }
    return networks_at_once(program, device_);
  }
  DeviceList devices() const override { return list_devices(); }

 private:
  std::shared_ptr<MemoryPool> pool() {
    const std::lock_guard lock(mutex_);
    return pool_;
  }

  int device_;
  std::atomic<Profiling> profiling_{Profiling::off};
  std::mutex mutex_;
  std::shared_ptr<MemoryPool> pool_;  // null: launches are not shared
};

std::unique_ptr<Executor> create(std::string_view argument) {
  return std::make_unique<CudaExecutor>(parse_device(argument));
}

}  // namespace
}  // namespace graphrun::cuda

extern "C" GRAPHRUN_API const graphrun::ExecutorLibrary* graphrun_executor_library() {
  static const graphrun::ExecutorLibrary library{graphrun::kExecutorLibraryVersion, graphrun::cuda::create};
  return &library;
}
