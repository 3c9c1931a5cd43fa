#include "executors/cuda/rank_group.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executors/cuda/device.h"
#include "executors/cuda/dynamic_library.h"
#include "executors/cuda/failure.h"
#include "graphrun/error.h"

namespace graphrun::cuda {

struct NcclId {
  std::array<char, 128> bytes;
};

namespace {

// From this size of a block on, each rank adds up one slice of it, and sends the sums. Between two ranks, whole blocks
// are as few bytes.
constexpr std::uint64_t kSliceBytes = std::uint64_t{1} << 20;
constexpr std::uint32_t kCombineThreads = 256;
constexpr std::chrono::milliseconds kLookPause{1};

enum : int { kNcclSuccess = 0, kNcclFloat = 7 };

// Functions of NCCL 2, whose interface is stable: its header is not needed to build.
struct NcclFunctions {
  DynamicLibrary library{"libnccl.so.2", "ranks on GPUs send their values with", "", "",
                         "NVIDIA's package libnccl2, and of nvidia-nccl-cu13 for Python"};
  template <class... Parameters>
  using Function = int (*)(Parameters...);
  const char* (*GetErrorString)(int) = library.find<decltype(GetErrorString)>("ncclGetErrorString");
#define X(name, ...) Function<__VA_ARGS__> name = library.find<decltype(name)>("nccl" #name);
  // clang-format off
  X(GetUniqueId, NcclId*) X(CommInitRank, void**, int, NcclId, int) X(CommAbort, void*)
  X(CommGetAsyncError, void*, int*) X(GroupStart) X(GroupEnd)
  X(Send, const void*, std::size_t, int, int, void*, cudaStream_t)
  X(Recv, void*, std::size_t, int, int, void*, cudaStream_t)
  // clang-format on
#undef X
};
const NcclFunctions& nccl() {
  static const NcclFunctions* const loaded = new NcclFunctions;
  return *loaded;
}

void check_nccl(int status, const char* call) {
  if (status == kNcclSuccess) return;
  throw Error(ErrorKind::device, "cuda.nccl", fmt::format("{} failed: {}", call, nccl().GetErrorString(status)),
              "NCCL_DEBUG=WARN prints the cause");
}

// Every rank sends each other one a range of `count` elements. Gathering: its own range. Else range r of a block, whose
// ranges the receiver puts behind the block. Returns a status of NCCL.
int send_ranges(void* comm, int rank, int ranks, float* blocks, std::uint64_t count, bool gathers,
                cudaStream_t stream) {
  const NcclFunctions& f = nccl();
  int status = f.GroupStart();
  for (int peer = 0; peer < ranks && status == kNcclSuccess; ++peer) {
    if (peer == rank) continue;
    float* const from = blocks + count * static_cast<std::uint64_t>(gathers ? rank : peer);
    float* const to = blocks + count * static_cast<std::uint64_t>(gathers ? peer : ranks + peer);
    status = f.Send(from, count, kNcclFloat, peer, comm, stream);
    if (status == kNcclSuccess) status = f.Recv(to, count, kNcclFloat, peer, comm, stream);
  }
  const int ended = f.GroupEnd();
  return status != kNcclSuccess ? status : ended;
}

// Values that the ranks give, in their order.
template <class T>
std::vector<T> given_by_all(Communicator& ranks, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(ranks.ranks()));
  ranks.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  ranks.broadcast(std::as_writable_bytes(std::span(all)));
  return all;
}

using Text = std::array<char, 128>;  // ends with zeros
Text text_of(std::string_view text) {
  Text result{};
  std::copy_n(text.begin(), std::min(text.size(), result.size() - 1), result.begin());
  return result;
}

struct RankGpu {
  Text name;
  cudaUUID_t id;
};

// Ranks have equal bits only on equal GPUs, and wait for each other forever on a common one.
void check_gpus(std::span<const RankGpu> all) {
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank].name != all[0].name)
      throw Error(ErrorKind::input, "ranks.differ",
                  fmt::format("rank {} has the GPU {}, rank 0 {}", rank, all[rank].name.data(), all[0].name.data()),
                  "all ranks need GPUs of one model");
    for (std::size_t other = 0; other < rank; ++other)
      if (std::memcmp(&all[rank].id, &all[other].id, sizeof(cudaUUID_t)) == 0)
        throw Error(
            ErrorKind::device, "ranks.gpus",
            fmt::format("ranks {} and {} have the same GPU, and each rank needs its own", other, rank),
            "`graphrun devices` lists the GPUs; --executor=cuda, without a number, gives each rank the next one");
  }
}

}  // namespace

int device_of_rank(Communicator& ranks, std::optional<int> given) {
  Text host{};
  (void)::gethostname(host.data(), host.size() - 1);
  const std::vector<Text> hosts = given_by_all(ranks, host);
  if (given) return *given;
  const auto own = hosts.begin() + ranks.rank();
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 0;  // open_device() says why
  return static_cast<int>(std::count(hosts.begin(), own, *own)) % count;
}

SharedSet::SharedSet(Api& api, std::vector<SharedValue> values, int ranks, const Machine& machine,
                     cudaStream_t stream) {
  std::uint64_t largest = 0;
  for (SharedValue& value : values) {
    value.begin = elements_;
    elements_ += (value.count + 3) / 4 * 4;
    largest = std::max(largest, value.count);
  }
  const std::uint64_t whole = 4 * static_cast<std::uint64_t>(ranks);  // slices of 16 bytes
  elements_ = (elements_ + whole - 1) / whole * whole;
  grid_ = linear_grid(machine, largest, kCombineThreads);
  grid_.y = static_cast<std::uint32_t>(values.size());
  const std::uint64_t bytes = values.size() * sizeof(SharedValue);
  memory_ = api.allocate(bytes);
  api.copy(memory_.get(), values.data(), bytes, cudaMemcpyHostToDevice, stream);
  api.synchronize(stream);
}

RankGroup::RankGroup(Api& api, std::shared_ptr<Communicator> ranks, int device, std::uint64_t elements,
                     cudaStream_t stream)
    : api_(api), ranks_(std::move(ranks)), rank_(ranks_->rank()), count_(ranks_->ranks()) {
  slices_from_ = debug_option("GRAPHRUN_DEBUG_RANKS", "slices", "cuda.debug_ranks") ? 0
                 : count_ > 2                                                       ? kSliceBytes
                                                                                    : ~std::uint64_t{0};
  const NcclFunctions& f = nccl();
  cudaDeviceProp properties{};
  api_.check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  // Smaller sets than the largest may be too small for slices.
  const std::uint64_t block_bytes = elements * sizeof(float);
  const std::uint64_t gathered = static_cast<std::uint64_t>(count_) * std::min(block_bytes, slices_from_);
  const std::uint64_t bytes = std::max(2 * block_bytes, gathered);
  blocks_ = api_.allocate(bytes);
  api_.clear(blocks_.get(), bytes, stream);
  for (const void* kernel : {combine_kernels().pack, combine_kernels().combine}) {  // loads their code
    cudaFuncAttributes attributes{};
    api_.check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  }
  check_gpus(given_by_all(*ranks_, RankGpu{text_of(properties.name), properties.uuid}));
  NcclId id{};
  if (rank_ == 0) check_nccl(f.GetUniqueId(&id), "ncclGetUniqueId");
  ranks_->broadcast(std::as_writable_bytes(std::span(&id, 1)));
  join(id, device, stream);
  api_.set_group(this);
  api_.synchronize(stream);
  api_.set_group(nullptr);
}

// In a thread of its own, which may stay behind if a rank is lost meanwhile: NCCL can wait for it forever.
void RankGroup::join(const NcclId& id, int device, cudaStream_t stream) {
  struct Joined {
    void* comm = nullptr;
    std::atomic<int> status{-1};
    std::atomic<bool> abandoned{false};
  };
  const auto joined = std::make_shared<Joined>();
  std::thread([joined, id, device, count = count_, rank = rank_, blocks = block(0), stream] {
    cudaSetDevice(device);
    int status = nccl().CommInitRank(&joined->comm, count, id, rank);
    if (joined->abandoned) return (void)nccl().CommAbort(joined->comm);
    // Connects the ranks: no step waits for that then.
    if (status == kNcclSuccess) status = send_ranges(joined->comm, rank, count, blocks, 1, true, stream);
    joined->status = status;
  }).detach();
  try {
    for (; joined->status < 0; std::this_thread::sleep_for(kLookPause)) ranks_->look();
    check(joined->status, "ncclCommInitRank");
  } catch (...) {  // a process that ends while the thread is at work in CUDA could crash
    for (int i = 0; i < 1000 && joined->status < 0; ++i) std::this_thread::sleep_for(kLookPause);
    joined->abandoned = joined->status < 0;
    if (joined->status >= 0) comm_ = joined->comm;
    abort();
    throw;
  }
  comm_ = joined->comm;
}

RankGroup::~RankGroup() {
  abort();
}

void RankGroup::abort() noexcept {
  if (comm_ != nullptr) (void)nccl().CommAbort(std::exchange(comm_, nullptr));
}

void RankGroup::exchange(std::uint64_t count, bool gathers, cudaStream_t stream) {
  check(send_ranges(comm_, rank_, count_, block(0), count, gathers, stream), "ncclSend or ncclRecv");
}

// NCCL may see earlier than the connections between ranks that one is lost, which is then the cause.
void RankGroup::check(int status, const char* call) {
  for (int i = 0; status != kNcclSuccess && i < 500; ++i, std::this_thread::sleep_for(kLookPause)) ranks_->look();
  check_nccl(status, call);
}

void RankGroup::combine(const SharedSet& set, cudaStream_t stream) {
  const SharedValue* values = set.values();
  const auto launch = [&](SharedBlocks blocks) {
    void* arguments[] = {&values, &blocks};
    api_.launch(combine_kernels().combine, "combine_shards", set.grid(), kCombineThreads, arguments, stream, false);
  };
  const auto own = static_cast<std::uint64_t>(rank_);
  const std::uint64_t elements = set.elements(), slice = elements / static_cast<std::uint64_t>(count_);
  const bool sliced = is_sliced(elements);
  float* packed = block(sliced ? 0 : elements * own);
  void* arguments[] = {&values, &packed};
  api_.launch(combine_kernels().pack, "pack_shard", set.grid(), kCombineThreads, arguments, stream, false);
  if (!sliced) {
    exchange(elements, true, stream);
    return launch({block(0), elements, count_, -1, nullptr, 0, elements, nullptr});
  }
  exchange(slice, false, stream);
  float* const mine = block(slice * own);
  launch({block(elements), slice, count_, rank_, mine, slice * own, slice, mine});
  exchange(slice, true, stream);
  launch({block(0), 0, 1, -1, nullptr, 0, elements, nullptr});
}

void RankGroup::look() {
  try {
    ranks_->look();
    int status = kNcclSuccess;
    check_nccl(nccl().CommGetAsyncError(comm_, &status), "ncclCommGetAsyncError");
    check_nccl(status, "NCCL");
  } catch (...) {
    abort();
    throw;
  }
}

}  // namespace graphrun::cuda
