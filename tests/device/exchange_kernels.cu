#include "exchange_kernels.h"

#include <chrono>
#include <memory>

#include "emulation/exchange_cases.h"

namespace {

using namespace graphrun::cuda::tile;

template <class Case>
__global__ void __launch_bounds__(Case::kThreadCount, 1) all_reduce(CaseArgs args) {
  if constexpr (kHasClusters || Case::kClusterSize == 1) Case::kernel(args, dynamic_shared());
}

template <class T>
using OnDevice = std::unique_ptr<T, cudaError_t (*)(void*)>;

template <class Case>
cudaError_t run(ExchangeRun& result, unsigned epochs, bool silent) {
  cudaError_t status = cudaSuccess;
  // Nothing but zeros.
  const auto allocate = [&status](std::size_t bytes) {
    void* memory = nullptr;
    if (status == cudaSuccess) status = cudaMalloc(&memory, bytes + 1);
    if (status == cudaSuccess) status = cudaMemset(memory, 0, bytes + 1);
    return OnDevice<void>(memory, cudaFree);
  };
  result.totals.resize(std::size_t{epochs} * Case::kBlocks * Case::kValueCount);
  const std::size_t bytes = result.totals.size() * sizeof(float);
  const OnDevice<void> totals = allocate(bytes), scratch = allocate(Case::Reduce::kScratchBytes),
                       fault = allocate(sizeof(unsigned));
  if (status != cudaSuccess) return status;

  const auto kernel = all_reduce<Case>;
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeCooperative;
  attributes[0].val.cooperative = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = Case::kClusterSize;
  attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(Case::kBlocks);
  config.blockDim = dim3(Case::kThreadCount);
  config.dynamicSmemBytes = sizeof(typename Case::Reduce::Shared);
  config.attrs = attributes;
  config.numAttrs = Case::kClusterSize > 1 ? 2 : 1;
  status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(config.dynamicSmemBytes));
  int major = 0, clusters = 0;
  if (status == cudaSuccess) status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  if (status == cudaSuccess && Case::kClusterSize > 1) {
    if (major >= 9) status = cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
    result.fits = clusters >= Case::kClusterCount;
  }
  if (status != cudaSuccess || !result.fits) return status;

  const auto begin = std::chrono::steady_clock::now();
  const CaseArgs args{static_cast<float*>(totals.get()), scratch.get(), static_cast<unsigned*>(fault.get()), epochs,
                      silent ? Case::kBlocks - 1 : ~0u};
  status = cudaLaunchKernelEx(&config, kernel, args);
  if (status == cudaSuccess) status = cudaDeviceSynchronize();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (status == cudaSuccess) status = cudaMemcpy(result.totals.data(), totals.get(), bytes, cudaMemcpyDeviceToHost);
  if (status == cudaSuccess)
    status = cudaMemcpy(&result.fault, fault.get(), sizeof result.fault, cudaMemcpyDeviceToHost);
  return status;
}

struct Entry {
  ExchangeCase shape;
  cudaError_t (*run)(ExchangeRun&, unsigned, bool);
};
template <int kValues, int kThreads, int kCluster, int kClusters>
constexpr Entry kEntry{{kValues, kThreads, kCluster, kClusters}, run<Case<kValues, kThreads, kCluster, kClusters>>};
const std::vector<Entry> kEntries = {kEntry<25, 128, 1, 1>,  kEntry<181, 96, 1, 1>, kEntry<25, 96, 4, 1>,
                                     kEntry<100, 128, 8, 1>, kEntry<25, 64, 1, 30>, kEntry<25, 64, 8, 12>,
                                     kEntry<100, 224, 8, 12>};

}  // namespace

const std::vector<ExchangeCase>& exchange_cases() {
  static const std::vector<ExchangeCase> cases = [] {
    std::vector<ExchangeCase> all;
    for (const Entry& entry : kEntries) all.push_back(entry.shape);
    return all;
  }();
  return cases;
}

ExchangeRun run_exchange(std::size_t index, unsigned epochs, bool silent) {
  ExchangeRun result;
  const cudaError_t status = kEntries[index].run(result, epochs, silent);
  if (status != cudaSuccess) result.error = cudaGetErrorString(status);
  return result;
}
