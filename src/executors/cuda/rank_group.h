// rank_group.h: combines values of the ranks of one training, each on a GPU of its own.
// Contract: NCCL, opened when the first group is, moves blocks of memory between the GPUs and adds nothing: the sums
// are those of kernels/cuda/combine_shards.h, whatever NCCL's algorithm. Every rank makes the same calls in the same
// order. Throws Error (kind device) that names a missing library, ranks that share a GPU, or a rank that is lost;
// nothing waits for a rank that is. Not here: which values, and when (runnable.cpp).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "executors/cuda/api.h"
#include "graphrun/communicator.h"
#include "kernels/cuda/combine_shards.h"

namespace graphrun::cuda {

// GPU of this rank: the given one, else its number among the ranks of its host, as far as there are GPUs.
int device_of_rank(Communicator& ranks, std::optional<int> given);

// Values that are combined together, and their place in a block, which the constructor chooses.
class SharedSet {
 public:
  SharedSet(Api& api, std::vector<SharedValue> values, int ranks, const Machine& machine, cudaStream_t stream);
  const SharedValue* values() const { return reinterpret_cast<const SharedValue*>(memory_.get()); }
  std::uint64_t elements() const { return elements_; }  // size of a block
  Grid grid() const { return grid_; }

 private:
  Api::Memory memory_;
  std::uint64_t elements_ = 0;
  Grid grid_;
};

class RankGroup {
 public:
  // Joins the other ranks' groups. Sets with up to `elements` elements fit.
  RankGroup(Api& api, std::shared_ptr<Communicator> ranks, int device, std::uint64_t elements, cudaStream_t stream);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  void combine(const SharedSet& set, cudaStream_t stream);  // asynchronous
  // Throws Error if another rank is lost; the work on the stream then ends.
  void look();
  void abort() noexcept;  // ends the work on the stream, and the use of the group

 private:
  bool is_sliced(std::uint64_t elements) const { return elements * sizeof(float) >= slices_from_; }
  float* block(std::uint64_t element) const { return reinterpret_cast<float*>(blocks_.get()) + element; }
  void join(const struct NcclId& id, int device, cudaStream_t stream);
  void check(int status, const char* call);  // throws Error unless the call of NCCL succeeded
  void exchange(std::uint64_t count, bool gathers, cudaStream_t stream);

  Api& api_;
  std::shared_ptr<Communicator> ranks_;
  int rank_, count_;
  std::uint64_t slices_from_ = 0;  // bytes
  void* comm_ = nullptr;           // ncclComm_t
  Api::Memory blocks_;             // one of each rank; or the own one, and a slice of each rank's
};

}  // namespace graphrun::cuda
