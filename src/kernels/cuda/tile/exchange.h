// exchange.h: the all-reduce of a step: combines values of all threads into every block's shared memory.
// Contract: values are combined in one order, a nested tree: lanes, warps, blocks of a cluster by rank, clusters. Every
// block gets the same bits every time. All blocks are co-resident, and all of their threads call. Nothing is reset:
// buffers alternate with the parity of the epoch (1, 2, ... without a gap), and messages carry the epoch. After a wait
// that timed out, totals are undefined: the caller checks failed() before the next epoch's run(). The caller places a
// barrier() between the last total() and the next run(). Leaves to others: lanes (lanes.h), timeouts (wait.h).
#pragma once

#include "kernels/cuda/tile/lanes.h"
#include "kernels/cuda/tile/wait.h"

namespace graphrun::cuda::tile {

// Receives kPackets messages from each of kSenders, their rows kRow apart, and calls use(index, message). Where
// is_sent(k) is false, message k of a row is zero without a wait. A thread polls several messages together: one after
// another, each would take a round trip to L2. Returns false if a wait gave up.
template <int kSenders, int kPackets, int kRow, int kThreads, class IsSent, class Use>
GRAPHRUN_TILE_FN bool receive_packets(const Packet* from, int thread, unsigned epoch, unsigned* fault, IsSent is_sent,
                                      Use use) {
  constexpr int kAll = kSenders * kPackets, kTimes = divide_up(kAll, kThreads), kTogether = kTimes < 4 ? kTimes : 4;
  GRAPHRUN_TILE_LOOP
  for (int begin = thread; begin < kAll; begin += kThreads * kTogether) {
    Packet packet[kTogether];
    GRAPHRUN_TILE_FOR (k, kTogether) {
      const int i = begin + k * kThreads;
      packet[k] = {{}, i < kAll && is_sent(i % kPackets) ? epoch - 1 : epoch};
    }
    Wait wait(fault, WaitFor::grid);
    for (bool all = false; !all;) {
      GRAPHRUN_TILE_FOR (k, kTogether) {
        const int i = begin + k * kThreads;
        if (packet[k].epoch != epoch) packet[k] = load_packet(from + i / kPackets * kRow + i % kPackets);
      }
      all = true;
      GRAPHRUN_TILE_FOR (k, kTogether) all = all && packet[k].epoch == epoch;
      if (!all && !wait.again()) return false;
    }
    GRAPHRUN_TILE_FOR (k, kTogether) {
      const int i = begin + k * kThreads;
      if (i < kAll) use(i, packet[k]);
    }
  }
  return true;
}

// Waits for the bytes of a phase. Thread 0 takes part and sets what the next phase expects, whose bytes may already be
// arriving.
template <class Shared>
GRAPHRUN_TILE_FN void await_bytes(Mbarrier* mbarrier, unsigned phase, unsigned next_bytes, unsigned* fault,
                                  Shared& shared) {
  for (Wait wait(fault, WaitFor::cluster); !mbarrier_test(mbarrier, phase % 2);) {
    if (!wait.again()) {
      shared.failed = 1;
      return;
    }
  }
  if (thread_index() == 0) mbarrier_expect(mbarrier, next_bytes);
}

// Combines values in registers into totals. The warps of a block form kGroups equal groups; each group holds its own
// range of values, for all rows. kClusters clusters of kCluster blocks of kThreads threads.
//   block    rows                               -> totals
//   cluster  each block's sums to all blocks    -> totals in each
//   grid     a slice of the values to each rank; blocks of a rank send each other their slices through global memory;
//            each rank's totals to all blocks of its cluster
template <int kValues, int kThreads, int kCluster, int kClusters, class Combine, int kGroups = 1>
class AllReduce {
  static_assert(kThreads % (32 * kGroups) == 0);
  static constexpr int kWarps = kThreads / 32 / kGroups;  // warps per group
  static constexpr int kRow = multiple_of_4(kValues);     // floats per row, including padding
  static constexpr int kSlice = slice_of(kValues, kCluster, kClusters);
  static constexpr bool kScatters = kClusters > 1 && kCluster > 1;
  static constexpr int kPackets = divide_up(kSlice, kPacketFloats);
  // Messages of a block start at a multiple of 128 bytes, or those of several blocks fit in 128 bytes.
  static constexpr int kPacketRow = kPackets > 4 ? multiple_of_8(kPackets) : kPackets > 2 ? 4 : kPackets;
  static constexpr int kGatheredRow = multiple_of_4(3 * kPackets);

 public:
  // NOLINTBEGIN(bugprone-branch-clone): alike for some sizes only
  struct Shared {
    alignas(16) float total[kRow];
    alignas(16) float inbox[kCluster > 1 ? 2 : 1][kCluster > 1 ? kCluster : 1][kCluster > 1 ? kSlice : 4];
    alignas(16) float gathered[kClusters > 1 ? kClusters : 1][kClusters > 1 ? kGatheredRow : 4];
    alignas(16) float own[kScatters ? kSlice : 4];  // totals of this rank's slice
    Mbarrier inbox_full[2], total_full;
    unsigned failed;
    alignas(16) float rows[kWarps][kRow];  // one for each warp of a group
  };
  // NOLINTEND(bugprone-branch-clone)
  static constexpr unsigned kScratchBytes = exchange_bytes(kPacketRow, kCluster, kClusters);

  // `scratch` is 128-byte aligned and zeroed. Ends with a cluster barrier if there are clusters.
  GRAPHRUN_TILE_FN AllReduce(Shared& shared, void* scratch, unsigned* fault)
      : shared_(shared),
        scratch_(static_cast<Packet*>(scratch)),
        fault_(fault),
        rank_(kCluster > 1 ? cluster_rank() : 0),
        slice_values_(slice_values(rank_)) {
    static_assert(kCluster == 1 || kHasClusters);  // the host may compute sizes of any shape
    if (thread_index() == 0) {
      shared_.failed = 0;
      if constexpr (kCluster > 1) {
        mbarrier_init(&shared_.inbox_full[0]);
        mbarrier_init(&shared_.inbox_full[1]);
        mbarrier_init(&shared_.total_full);
        mbarrier_expect(&shared_.inbox_full[0], inbox_bytes());
        mbarrier_expect(&shared_.inbox_full[1], inbox_bytes());
        mbarrier_expect(&shared_.total_full, kRow * 4);
      }
    }
    if constexpr (kCluster > 1) cluster_barrier();
  }

  // Adds this group's values [first, first + count); `first` is a multiple of 4. `part` is each thread's contribution
  // and is overwritten; threads without rows pass the neutral element.
  template <int N>
  GRAPHRUN_TILE_FN void add(float (&part)[N], int first = 0, int count = N) {
    static_assert(N <= kValues);
    combine_lanes<Combine>(part, row(), first, count);
  }
  // Storage of this warp's values, for callers that combine lanes themselves.
  GRAPHRUN_TILE_FN float* row() { return shared_.rows[thread_index() / 32 % kWarps]; }
  // Called after every group has called add(). Afterwards total() is valid.
  GRAPHRUN_TILE_FN void run(unsigned epoch) {
    barrier();
    epoch_ = epoch;
    // In large blocks, recompute derived values instead of keeping them in registers that rows need.
    thread_ = kThreads >= 256 ? opaque(static_cast<int>(thread_index())) : static_cast<int>(thread_index());
    if constexpr (kClusters > 1) {
      if constexpr (kScatters) scatter(epoch);
      send_packets(epoch);
      receive_packets(epoch);
      barrier();
      if constexpr (kScatters) {
        gather_totals(epoch);
      } else {
        combine_into<kClusters>(shared_.total, kValues, 0, shared_.gathered[0], kGatheredRow);
        barrier();
      }
    } else if constexpr (kCluster > 1) {
      over_cluster(epoch);
    }
  }
  GRAPHRUN_TILE_FN void run(float (&part)[kValues], unsigned epoch) {
    add(part);
    run(epoch);
  }

  // Value v combined over all blocks. The caller combines the last parts, which saves a round trip through memory.
  GRAPHRUN_TILE_FN float total(int v) const {
    if constexpr (kClusters > 1) return shared_.total[v];
    if constexpr (kCluster == 1) return combine_rows<Combine, kWarps, 1>(v, shared_.rows[0] + v, kRow).value[0];
    return combine_rows<Combine, kCluster, 1>(v, shared_.inbox[(epoch_ - 1) % 2][0] + v, kSlice).value[0];
  }

  // Same result for all threads of the block after a barrier().
  GRAPHRUN_TILE_FN bool failed() const {
    if constexpr (kCluster == 1 && kClusters == 1) return false;  // nothing waits
    return shared_.failed != 0;
  }

  // Must be called before the kernel ends: after a timeout, stores into a block's shared memory may still be in flight.
  GRAPHRUN_TILE_FN void end() {
    if constexpr (kCluster > 1) {
      if (failed()) sleep_for(100000);
      cluster_barrier();
    }
  }

 private:
  GRAPHRUN_TILE_FN static int slice_values(unsigned rank) {
    const int left = kValues - static_cast<int>(rank) * kSlice;
    return kClusters == 1 || left > kSlice ? kSlice : left > 0 ? left : 0;
  }
  GRAPHRUN_TILE_FN unsigned inbox_bytes() const {
    return static_cast<unsigned>(kCluster * multiple_of_4(slice_values_) * 4);
  }

  // Each thread computes some of `count` values: to[i] is value first + i combined over the rows at `x`.
  template <int kRows>
  GRAPHRUN_TILE_FN void combine_into(float* to, int count, int first, const float* x, int stride,
                                     int threads = kThreads) const {
    for (int i = thread_; i < count; i += threads) {
      to[i] = combine_rows<Combine, kRows, 1>(first + i, x + i, stride).value[0];
    }
  }

  GRAPHRUN_TILE_FN void over_cluster(unsigned epoch) {
    const unsigned parity = (epoch - 1) % 2;
    // Groups of threads, as many as fit: each covers all quads, and a subset of the destination ranks.
    constexpr int kQuads = kRow / 4, kSenders = kQuads < kThreads ? kQuads : kThreads, kTimes = kThreads / kSenders,
                  kSenderGroups = kTimes < kCluster ? kTimes : kCluster;
    const int group = thread_ / kSenders;
    if (group < kSenderGroups) {
      for (int v = thread_ % kSenders * 4; v < kRow; v += kSenders * 4) {
        const Floats<4> sums = combine_rows<Combine, kWarps, 4>(v, shared_.rows[0] + v, kRow);
        for (int to = group; to < kCluster; to += kSenderGroups) {
          store_remote(&shared_.inbox[parity][rank_][v], sums.value, static_cast<unsigned>(to),
                       &shared_.inbox_full[parity]);
        }
      }
    }
    await_bytes(&shared_.inbox_full[parity], (epoch - 1) / 2, inbox_bytes(), fault_, shared_);
  }

  GRAPHRUN_TILE_FN void scatter(unsigned epoch) {
    const unsigned parity = (epoch - 1) % 2;
    for (int v = thread_ * 4; v < kRow; v += kThreads * 4) {
      const Floats<4> sums = combine_rows<Combine, kWarps, 4>(v, shared_.rows[0] + v, kRow);
      store_remote(&shared_.inbox[parity][rank_][v % kSlice], sums.value, static_cast<unsigned>(v / kSlice),
                   &shared_.inbox_full[parity]);
    }
  }

  // A warp builds ten messages from 30 lanes, each of which combines one value.
  GRAPHRUN_TILE_FN void send_packets(unsigned epoch) {
    constexpr int kTurns = divide_up(kSlice, 30);
    const int lane = thread_ % 32, warp = thread_ / 32, first = static_cast<int>(rank_) * kSlice;
    if (warp >= kTurns || slice_values_ == 0) return;
    const unsigned parity = (epoch - 1) % 2;
    if constexpr (kScatters) await_bytes(&shared_.inbox_full[parity], (epoch - 1) / 2, inbox_bytes(), fault_, shared_);
    Packet* const to = packets(epoch) + cluster_of_block() * kPacketRow;
    for (int turn = warp; turn < kTurns; turn += kThreads / 32) {
      const int v = turn * 30 + lane, packet = turn * 10 + lane;
      float x = 0.0f;
      if (lane < 30 && v < slice_values_) {
        if constexpr (kScatters) {
          x = combine_rows<Combine, kCluster, 1>(first + v, &shared_.inbox[parity][0][v], kSlice).value[0];
        } else {
          x = combine_rows<Combine, kWarps, 1>(v, shared_.rows[0] + v, kRow).value[0];
        }
      }
      const float x0 = shuffle(x, 3 * lane % 32), x1 = shuffle(x, (3 * lane + 1) % 32),
                  x2 = shuffle(x, (3 * lane + 2) % 32);
      if (lane < 10 && 3 * packet < slice_values_) store_packet(to + packet, {{x0, x1, x2}, epoch});
    }
  }

  GRAPHRUN_TILE_FN void receive_packets(unsigned epoch) {
    const auto is_sent = [&](int packet) { return 3 * packet < slice_values_; };
    const bool received = tile::receive_packets<kClusters, kPackets, kPacketRow, kThreads>(
        packets(epoch), thread_, epoch, fault_, is_sent, [&](int i, const Packet& packet) {
          GRAPHRUN_TILE_FOR (j, 3) shared_.gathered[i / kPackets][3 * (i % kPackets) + j] = packet.value[j];
        });
    if (!received) shared_.failed = 1;
  }

  GRAPHRUN_TILE_FN void gather_totals(unsigned epoch) {
    constexpr int kQuads = kSlice / 4;
    constexpr bool kOneWarp = kSlice <= 32;
    constexpr int kWorkers = kOneWarp ? 32 : kThreads;  // NOLINT(bugprone-branch-clone): as above
    const int first = static_cast<int>(rank_) * kSlice;
    if (thread_ < kWorkers) {
      combine_into<kClusters>(shared_.own, slice_values_, first, shared_.gathered[0], kGatheredRow, kWorkers);
      if constexpr (kOneWarp) {
        warp_barrier();
      } else {
        barrier();
      }
      for (int i = thread_; i < kQuads * kCluster; i += kWorkers) {
        const int v = i % kQuads * 4;
        if (v >= slice_values_) continue;
        const Floats<4> totals = *reinterpret_cast<const Floats<4>*>(shared_.own + v);
        store_remote(shared_.total + first + v, totals.value, static_cast<unsigned>(i / kQuads), &shared_.total_full);
      }
    }
    await_bytes(&shared_.total_full, epoch - 1, kRow * 4, fault_, shared_);
  }

  // Messages between blocks of this rank in an epoch (kClusters, kPacketRow).
  GRAPHRUN_TILE_FN Packet* packets(unsigned epoch) const {
    return scratch_ + ((epoch - 1) % 2 * kCluster + rank_) * (kClusters * kPacketRow);
  }
  GRAPHRUN_TILE_FN static unsigned cluster_of_block() { return kCluster > 1 ? cluster_index() : block_index(); }

  Shared& shared_;
  Packet* scratch_;
  unsigned* fault_;
  unsigned rank_;
  int slice_values_;
  int thread_ = 0;  // index in the block
  unsigned epoch_ = 0;
};

// The all-reduce of a cluster of kCluster blocks of kThreads threads whose rows a block of kRunning threads computes,
// each warp those of several warps of the cluster. kJoined adjacent warps become one: a lane adds up the sums of
// kJoined adjacent lanes, the first level of the tree, and the warp combines lanes once. The tree is the same, so the
// bits are. Sums of a warp for which none calls add() stay as they are.
template <int kValues, int kThreads, int kCluster, int kRunning, class Combine, int kGroups = 1, int kJoined = 1>
class VirtualReduce {
  static constexpr int kWarps = kThreads / 32 / kGroups / kJoined, kRow = multiple_of_4(kValues), kQuads = kRow / 4;
  // Whether the rows of all blocks have one tree with those of a block as its branches: total() combines all of them.
  static constexpr bool kFlat = (kWarps & (kWarps - 1)) == 0 && kCluster * kWarps <= 16;
  static_assert(kJoined <= 2 && kThreads / 32 / kGroups % kJoined == 0);

 public:
  struct Shared {
    alignas(16) float rows[kCluster][kWarps][kRow];  // one for each warp of a group
    alignas(16) float blocks[kFlat ? 1 : kCluster][kRow];
  };
  static constexpr unsigned kScratchBytes = 0;
  GRAPHRUN_TILE_FN VirtualReduce(Shared& shared, void*, unsigned*) : shared_(shared) {}

  // This warp's next add() is that of warp `warp` of the cluster, or of kJoined warps from kJoined * `warp` on.
  GRAPHRUN_TILE_FN void begin(unsigned warp) {
    row_ = shared_.rows[warp / (kThreads / 32 / kJoined)][warp % static_cast<unsigned>(kWarps)];
  }
  // The sums of lane `of` of those that a lane plays become part of `all`.
  template <int N>
  GRAPHRUN_TILE_FN static void join(float (&all)[N], const float (&sums)[N], unsigned of) {
    GRAPHRUN_TILE_FOR (i, N) all[i] = of == 0 ? sums[i] : Combine::apply(i, all[i], sums[i]);
  }
  template <int N>
  GRAPHRUN_TILE_FN void add(float (&part)[N], int first = 0, int count = N) {
    combine_lanes<Combine>(part, row(), first, count);
  }
  GRAPHRUN_TILE_FN float* row() { return row_; }
  GRAPHRUN_TILE_FN void run(unsigned) {
    barrier();
    if constexpr (!kFlat) {
      for (int i = static_cast<int>(thread_index()); i < kCluster * kQuads; i += kRunning) {
        const int v = i % kQuads * 4, block = i / kQuads;
        *reinterpret_cast<Floats<4>*>(&shared_.blocks[block][v]) =
            combine_rows<Combine, kWarps, 4>(v, shared_.rows[block][0] + v, kRow);
      }
      barrier();
    }
  }
  GRAPHRUN_TILE_FN float total(int v) const {
    if constexpr (kFlat) return combine_rows<Combine, kCluster * kWarps, 1>(v, shared_.rows[0][0] + v, kRow).value[0];
    return combine_rows<Combine, kCluster, 1>(v, shared_.blocks[0] + v, kRow).value[0];
  }
  GRAPHRUN_TILE_FN bool failed() const { return false; }
  GRAPHRUN_TILE_FN void end() {}

 private:
  Shared& shared_;
  float* row_ = nullptr;
};

}  // namespace graphrun::cuda::tile
