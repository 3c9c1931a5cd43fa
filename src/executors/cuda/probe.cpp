#include "executors/cuda/probe.h"

#include "kernels/cuda/probe.h"

namespace graphrun::cuda {

namespace {
constexpr Grid kGrid{1024, 1, 1};
constexpr std::uint32_t kThreads = 256;
}  // namespace

void fill_probe(Api& api, void* to, std::uint64_t floats, std::uint32_t seed, cudaStream_t stream) {
  void* arguments[] = {&to, &floats, &seed};
  api.launch(probe_kernels().fill, "probe_fill", kGrid, kThreads, arguments, stream, false);
}

void checksum_probe(Api& api, const void* from, std::uint64_t floats, void* sum, cudaStream_t stream) {
  void* clear[] = {&sum};
  api.launch(probe_kernels().clear, "probe_clear", Grid{}, 1, clear, stream, false);
  void* add[] = {&from, &floats, &sum};
  api.launch(probe_kernels().checksum, "probe_checksum", kGrid, kThreads, add, stream, false);
}

}  // namespace graphrun::cuda
