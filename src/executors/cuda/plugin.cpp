// plugin.cpp: the CUDA executor, exported by libgraphrun_cuda.so. Loading it needs no driver: the CUDA runtime is
// linked in and looks for the driver at its first call, which is in load() or devices().
#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "executors/common/executor_library.h"
#include "executors/common/load_check.h"
#include "executors/cuda/device.h"
#include "executors/cuda/runnable.h"
#include "executors/cuda/step_kernels.h"
#include "executors/cuda_planner/cuda_planner.h"
#include "graphrun/error.h"

namespace graphrun::cuda {
namespace {

class CudaExecutor final : public CudaPlanner {
 public:
  explicit CudaExecutor(std::optional<int> device) : device_(device) {}

  void set_profiling(Profiling profiling) override { profiling_ = profiling; }
  std::unique_ptr<Runnable> load(const Program& program) override {
    check_loadable(program, *this);
    return std::make_unique<CudaRunnable>(program, device_.value_or(0), profiling_, shared());
  }
  std::unique_ptr<Runnable> load_shard(const Program& program, std::int64_t shards,
                                       std::shared_ptr<Communicator> ranks) override {
    const int count = ranks == nullptr ? 1 : ranks->ranks();
    if (shards != count)
      throw Error(ErrorKind::input, "shards.executor",
                  fmt::format("cuda computes one shard on each rank: the batch has {} shards, and there {} {} rank{}",
                              shards, count == 1 ? "is" : "are", count, count == 1 ? "" : "s"),
                  fmt::format("use --gpus={} or --ranks={}, or other --shards", shards, shards));
    check_loadable(program, *this);
    const int device = device_of_rank(*ranks, device_);
    return std::make_unique<CudaRunnable>(program, device, profiling_, nullptr, std::move(ranks));
  }
  std::size_t share_launches(const Program& program) override {
    {
      const std::lock_guard lock(mutex_);
      if (!shared_) shared_ = std::make_shared<SharedLaunches>();
    }
    (void)shared()->codes.find(program, device_.value_or(0));  // compiles while the context is created
    return networks_at_once(program, device_.value_or(0));
  }
  DeviceList devices() const override { return list_devices(); }

 private:
  std::shared_ptr<SharedLaunches> shared() {
    const std::lock_guard lock(mutex_);
    return shared_;
  }

  std::optional<int> device_;
  std::atomic<Profiling> profiling_{Profiling::off};
  std::mutex mutex_;
  std::shared_ptr<SharedLaunches> shared_;  // null: launches are not shared
};

std::unique_ptr<Executor> create(std::string_view argument) {
  return std::make_unique<CudaExecutor>(argument.empty() ? std::nullopt : std::optional(parse_device(argument)));
}

}  // namespace
}  // namespace graphrun::cuda

extern "C" GRAPHRUN_API const graphrun::ExecutorLibrary* graphrun_executor_library() {
  static const graphrun::ExecutorLibrary library{graphrun::kExecutorLibraryVersion, graphrun::cuda::create};
  return &library;
}
