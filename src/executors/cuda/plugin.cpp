// plugin.cpp: exports of libgraphrun_cuda.so. Loading it needs no driver: the CUDA runtime is linked in and looks for
// the driver at its first call, which is in load().
#include "executors/common/executor_library.h"
#include "executors/common/load_check.h"
#include "executors/cuda/device.h"
#include "executors/cuda/executor.h"
#include "executors/cuda/runnable.h"

namespace graphrun::cuda {
namespace {

std::unique_ptr<Executor> create(std::string_view argument) {
  return std::make_unique<CudaExecutor>(parse_device(argument));
}

}  // namespace

std::unique_ptr<Runnable> CudaExecutor::load(const Program& program) {
  check_loadable(program, *this);
  return std::make_unique<CudaRunnable>(program, device_, profiling_);
}

DeviceList CudaExecutor::devices() const {
  return list_devices();
}

}  // namespace graphrun::cuda

extern "C" GRAPHRUN_API const graphrun::ExecutorLibrary* graphrun_executor_library() {
  static const graphrun::ExecutorLibrary library{graphrun::kExecutorLibraryVersion, graphrun::cuda::create};
  return &library;
}
