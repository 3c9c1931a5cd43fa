// slice_sums.h: sums over clusters, of too many values for every block to receive all parts: each block sums a share of
// them and sends it to all. Blocks of the same rank have the same values.
// Contract: values are combined over clusters in order, as a tree: the same bits in every cluster and every time. All
// blocks are co-resident, all threads of a block call. Nothing is reset: messages carry their epoch (1, 2, ... without
// a gap), buffers alternate. After a timeout (failed()) totals are undefined. Leaves to others: sums within a block
// (split.h).
#pragma once

#include "kernels/cuda/tile/split.h"

namespace graphrun::cuda::tile::by_split {

template <int kValues, int kThreads, int kCluster, int kClusters>
class SliceSums {
  static constexpr int kShare = share_packets(kValues, kClusters);
  static constexpr int kShareRow = multiple_of_8(kShare);  // shares start at multiples of 128 bytes
  static constexpr int kAll = kClusters * kShare;

 public:
  struct Shared {
    alignas(16) float sum[3 * kAll];                          // this block's sums, then the totals
    alignas(16) float gathered[kClusters > 1 ? kAll : 1][4];  // parts of this block's share, from each cluster
    unsigned failed;
  };
  // For two epochs: parts, by rank, owner and sender; totals, by rank and owner.
  static constexpr unsigned kScratchBytes = slice_sums_bytes(kValues, kCluster, kClusters);

  // `scratch` is 128-byte aligned and zeroed.
  GRAPHRUN_TILE_FN SliceSums(Shared& shared, void* scratch, unsigned* fault)
      : shared_(shared), scratch_(static_cast<Packet*>(scratch)), fault_(fault) {
    if (thread_index() == 0) shared_.failed = 0;
  }

  // Sums `sum`, written before a barrier(). A barrier() must follow before total() and before `sum` is written again.
  GRAPHRUN_TILE_FN void run(unsigned epoch) {
    if constexpr (kClusters > 1) {
      const int mine = static_cast<int>(cluster_index());
      Packet* const parts =
          scratch_ + ((epoch % 2 * kCluster + cluster_rank()) * kClusters * (kClusters + 1)) * kShareRow;
      Packet* const totals = parts + kClusters * kClusters * kShareRow;
      for (int p = static_cast<int>(thread_index()); p < kAll; p += kThreads) {
        const float* const x = shared_.sum + 3 * p;
        store_packet(parts + (p / kShare * kClusters + mine) * kShareRow + p % kShare, {{x[0], x[1], x[2]}, epoch});
      }
      receive(parts + mine * kClusters * kShareRow, epoch, [&](int p, const Packet& packet) {
        GRAPHRUN_TILE_FOR (i, 3) shared_.gathered[p][i] = packet.value[i];
      });
      barrier();
      for (int p = static_cast<int>(thread_index()); p < kShare; p += kThreads) {
        const Floats<4> all = combine_rows<Add, kClusters, 4>(0, shared_.gathered[p], 4 * kShare);
        store_packet(totals + mine * kShareRow + p, {{all.value[0], all.value[1], all.value[2]}, epoch});
      }
      receive(totals, epoch, [&](int p, const Packet& packet) {
        GRAPHRUN_TILE_FOR (i, 3) shared_.sum[3 * p + i] = packet.value[i];
      });
    }
  }
  GRAPHRUN_TILE_FN float total(int v) const { return shared_.sum[v]; }
  // Same result for all threads of the block after a barrier().
  GRAPHRUN_TILE_FN bool failed() const { return shared_.failed != 0; }

 private:
  // Receives kShare messages from each cluster.
  template <class Use>
  GRAPHRUN_TILE_FN void receive(const Packet* from, unsigned epoch, Use use) {
    const auto is_sent = [](int) { return true; };
    if (!receive_packets<kClusters, kShare, kShareRow, kThreads>(from, static_cast<int>(thread_index()), epoch, fault_,
                                                                 is_sent, use))
      shared_.failed = 1;
  }

  Shared& shared_;
  Packet* scratch_;
  unsigned* fault_;
};

}  // namespace graphrun::cuda::tile::by_split
