#include "executors/cuda/autotune.h"

#include "kernels/cuda/autotune.h"

namespace graphrun::cuda {

namespace {
constexpr Grid kGrid{1024, 1, 1};
constexpr std::uint32_t kThreads = 256;
}  // namespace

void fill_trial(Api& api, void* to, std::uint64_t floats, std::uint32_t seed, cudaStream_t stream) {
  void* arguments[] = {&to, &floats, &seed};
  api.launch(autotune_kernels().fill, "trial_fill", kGrid, kThreads, arguments, stream, false);
}

void checksum_trial(Api& api, const void* from, std::uint64_t floats, void* sum, cudaStream_t stream) {
  void* clear[] = {&sum};
  api.launch(autotune_kernels().clear, "trial_clear", Grid{}, 1, clear, stream, false);
  void* add[] = {&from, &floats, &sum};
  api.launch(autotune_kernels().checksum, "trial_checksum", kGrid, kThreads, add, stream, false);
}

}  // namespace graphrun::cuda
