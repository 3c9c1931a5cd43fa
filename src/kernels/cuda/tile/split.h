// split.h: the split tile: a cluster processes a few rows (samples) at a time. Each block holds a slice of their many
// data features with the matching weights, and the narrow values of its own share of the rows.
// Contract: all threads of a block call together; all blocks of a cluster take the same turns (1, 2, ... without a
// gap). Results of a row are sums of parts from all blocks, sent to the block that owns the row; inputs of sums over
// rows are sent back to all. Both go through the cluster's shared memory, in double buffers. Sizes alone fix the order
// of sums. After a timeout (failed()) values are undefined. Leaves to others: steps on a block's own rows (block.h),
// sums over other clusters' rows (slice_sums.h).
#pragma once

#include "kernels/cuda/tile/block.h"
#include "kernels/cuda/tile/exchange.h"
#include "kernels/cuda/tile/product.h"
#include "kernels/cuda/tile/step.h"

namespace graphrun::cuda::tile::by_split {

// Number of rows from `first` on that are before `end`, at most `most`.
GRAPHRUN_TILE_FN int rows_between(int first, int end, int most) {
  return end - first < 0 ? 0 : end - first < most ? end - first : most;
}

// Loads this rank's slice of an array of kAll: kSlice numbers or the remaining ones, padded with zeros to kRoom.
template <int kSlice, int kRoom, int kAll, int kThreads>
GRAPHRUN_TILE_FN void load_slice(float* to, const float* from) {
  const int first = static_cast<int>(cluster_rank()) * kSlice;
  each<kRoom, kThreads>(0, [&](int i) { to[i] = i < kSlice && first + i < kAll ? from[first + i] : 0.0f; });
}
template <int kSlice, int kAll, int kThreads>
GRAPHRUN_TILE_FN void store_slice(float* to, const float* from) {
  const int first = static_cast<int>(cluster_rank()) * kSlice;
  each<kSlice, kThreads>(0, [&](int i) {
    if (first + i < kAll) to[first + i] = from[i];
  });
}

// Calls f(i) for i in [0, N), several interleaved so that their latencies overlap.
template <int N, int kThreads, class F>
GRAPHRUN_TILE_FN void each_of_slice(F f) {
  constexpr int kTurns = divide_up(N, kThreads);
  by_block::each_fetched < kThreads,
      kTurns<4 ? kTurns : 4>(
          static_cast<int>(thread_index()), N, [](int) { return 0; }, [&](int i, int) { f(i); });
}

// ---- data

// The block's features of each row, for this turn and, prefetched, for the next. Copied kWidth numbers at a time; with
// kWidth 4, a whole row at once.
template <int kThreads, int kRows, int kSlice, int kWidth>
struct SliceRows {
  static constexpr int kStride = slice_stride(kSlice);
  static constexpr int kTileRows = multiple_of_8(kRows);
  static constexpr bool kBulk = kWidth == 4;
  alignas(16) float x[2][kTileRows][kStride];
  Mbarrier there[2];

  // A barrier() must follow before the first fetch.
  GRAPHRUN_TILE_FN void begin() {
    for (int at = static_cast<int>(thread_index()); at < 2 * kTileRows * kStride; at += kThreads)
      (&x[0][0][0])[at] = 0.0f;
    if constexpr (kBulk) {
      if (thread_index() < 2) mbarrier_init(&there[thread_index()]);
      before_bulk_copies();
    }
  }
  // Starts copying `features` numbers of each of some rows, for row l from row(begin, l). Remaining rows hold finite
  // numbers, remaining features zeros. A row's copy takes its warp 75 cycles; the warps from kFirst on have that time.
  template <int kFirst, class From, class Row>
  GRAPHRUN_TILE_FN void fetch(unsigned turn, int rows, int features, From from, Row row) {
    if constexpr (kBulk) {
      const unsigned bytes = static_cast<unsigned>(features) * 4;
      if (thread_index() == 0) mbarrier_expect(&there[turn % 2], static_cast<unsigned>(rows) * bytes);
      const int warp = static_cast<int>(thread_index() / 32) - kFirst;
      if (features == 0 || warp < 0 || thread_index() % 32 != 0) return;
      const auto begin = from();
      GRAPHRUN_TILE_LOOP
      for (int l = warp; l < rows; l += kThreads / 32 - kFirst)
        bulk_copy(x[turn % 2][l], row(begin, l), bytes, &there[turn % 2]);
    } else {
      constexpr int kPieces = kSlice / kWidth;
      const auto begin = from();
      GRAPHRUN_TILE_LOOP
      for (int at = static_cast<int>(thread_index()); at < rows * kPieces; at += kThreads) {
        const int l = at / kPieces, f = at % kPieces * kWidth;
        if (f < features) copy_async<kWidth>(&x[turn % 2][l][f], row(begin, l) + f);
      }
    }
  }
  // Waits for this block's own copies, never for other blocks.
  GRAPHRUN_TILE_FN void await(unsigned turn) {
    if constexpr (kBulk) {
      while (!mbarrier_test(&there[turn % 2], (turn - 1) / 2 % 2)) look_again();
    } else {
      await_copies();
      barrier();
    }
  }
};

// Starts copying N narrow numbers of each of some rows, kWidth at a time, by the threads from kFirst on; complete after
// await_copies() and a barrier().
template <int kThreads, int kFirst, int kWidth, class T, int kRows, int N, class From, class Row>
GRAPHRUN_TILE_FN void fetch_rows(T (&to)[kRows][N], int rows, From from, Row row) {
  static_assert(sizeof(T) == 4);
  constexpr int kPieces = N / kWidth;
  const int first = (static_cast<int>(thread_index()) + kThreads - kFirst) % kThreads;
  if (first >= rows * kPieces) return;
  const auto begin = from();
  GRAPHRUN_TILE_LOOP
  for (int at = first; at < rows * kPieces; at += kThreads)
    copy_async<kWidth>(&to[at / kPieces][at % kPieces * kWidth], row(begin, at / kPieces) + at % kPieces * kWidth);
}

// ---- products of few columns

// Row-major factor (k, kColumns) in shared memory. Columns out of range repeat the last one.
template <int kColumns>
struct Narrow {
  const float* from;
  int stride;
  GRAPHRUN_TILE_FN const float* column(int m) const { return from + (m < kColumns ? m : kColumns - 1); }
};

// Transpose of a narrow factor times right(octet, k, n) for some octets of columns n, by one warp. The inner indices k
// are every kShares-th group of eight from group `share` on; kInner is rounded up to a multiple of 8.
template <int kColumns, int kOctets>
struct Results {
  static constexpr int kM = divide_up(kColumns, 16);
  float all[kM][kOctets][4] = {};

  // kCount steps of eight with all loads in flight; their sums are then added in f32.
  template <int kCount, int kShares, class Right>
  GRAPHRUN_TILE_FN void add_steps(int first, const Narrow<kColumns>& left, const Right& right) {
    const int g = by_warp::lane_row(), t = by_warp::lane_column();
    const float* column[2 * kM];
    GRAPHRUN_TILE_FOR (o, 2 * kM) column[o] = left.column(8 * o + g) + (8 * first + t) * left.stride;
    by_block::Sums<kM, kOctets> sums;
    GRAPHRUN_TILE_FOR (i, kCount) {
      float x[2 * kM][2], y[kOctets][2];
      GRAPHRUN_TILE_FOR (half, 2) {
        const int k = 8 * i * kShares + 4 * half;
        GRAPHRUN_TILE_FOR (o, 2 * kM) x[o][half] = 8 * o < kColumns ? column[o][k * left.stride] : 0.0f;
        GRAPHRUN_TILE_FOR (o, kOctets) y[o][half] = right(o, 8 * first + k + t, g);
      }
      sums.template add<2>(x, y);
    }
    GRAPHRUN_TILE_FOR (m, kM)
      GRAPHRUN_TILE_FOR (o, kOctets)
        GRAPHRUN_TILE_FOR (i, 4) all[m][o][i] += sums(m, o, i);
  }
  template <int kInner, int kShares, class Right>
  GRAPHRUN_TILE_FN void multiply(int share, const Narrow<kColumns>& left, const Right& right) {
    constexpr int kSteps = divide_up(kInner, 8), kTurns = kSteps / kShares, kMax = kM > 1 ? 2 : 4;
    constexpr int kTimes = divide_up(kTurns, kMax), kTogether = kTurns == 0 ? 0 : divide_up(kTurns, kTimes);
    constexpr int kWhole = kTurns == 0 ? 0 : kTurns / kTogether, kRest = kTurns - kWhole * kTogether;
    GRAPHRUN_TILE_LOOP
    for (int time = 0; time < kWhole; ++time)
      add_steps<kTogether, kShares>(time * kTogether * kShares + share, left, right);
    if constexpr (kRest > 0) add_steps<kRest, kShares>(kWhole * kTogether * kShares + share, left, right);
    if constexpr (kSteps % kShares != 0) {
      if (share < kSteps % kShares) add_steps<1, kShares>(kTurns * kShares + share, left, right);
    }
  }
  // Calls use(octet, column of the narrow factor, n, sum, sum of n + 1).
  template <class Use>
  GRAPHRUN_TILE_FN void each(Use use) const {
    const int g = by_warp::lane_row(), t = by_warp::lane_column();
    GRAPHRUN_TILE_FOR (m, kM) {
      GRAPHRUN_TILE_FOR (o, kOctets) {
        GRAPHRUN_TILE_UNROLL
        for (int i = 0; i < 4; i += 2) {
          const int column = 16 * m + 4 * i + g;
          if (column < kColumns) use(o, column, 2 * t, all[m][o][i], all[m][o][i + 1]);
        }
      }
    }
  }
};

// Partial results of kRows rows, kStride numbers each.
template <int kThreads, int kRows, int kSlice, int kStride>
struct RowParts {
  static constexpr int kShares = shares_of(kThreads, kRows, kSlice);
  alignas(16) float part[kShares][multiple_of_8(kRows)][kStride];
};
// Multiplies the slices x by weights (kSlice, kColumns), zero-padded to a multiple of 8 rows, into results kAt + c of
// each row. A barrier must follow.
template <int kThreads, int kAt, int kColumns, int kRows, int kSlice, int kStride, int kPartStride>
GRAPHRUN_TILE_FN void multiply_rows(RowParts<kThreads, kRows, kSlice, kPartStride>& parts,
                                    const float (&x)[multiple_of_8(kRows)][kStride], const float* weights) {
  constexpr int kShares = RowParts<kThreads, kRows, kSlice, kPartStride>::kShares, kOctets = divide_up(kRows, 8);
  constexpr int kTogether = octets_of(kRows), kJobs = divide_up(kOctets, kTogether);
  GRAPHRUN_TILE_LOOP
  for (int job = static_cast<int>(thread_index() / 32); job < kJobs * kShares; job += kThreads / 32) {
    const int first = job % kJobs * kTogether, share = job / kJobs;
    Results<kColumns, kTogether> results;
    results.template multiply<kSlice, kShares>(share, Narrow<kColumns>{weights, kColumns}, [&](int o, int k, int n) {
      return x[8 * (first + o < kOctets ? first + o : kOctets - 1) + n][k];
    });
    results.each([&](int o, int m, int n, float left, float right) {
      if (first + o >= kOctets) return;
      parts.part[share][8 * (first + o) + n][kAt + m] = left;
      parts.part[share][8 * (first + o) + n + 1][kAt + m] = right;
    });
  }
}
// to (kSlice, kColumns) = or += the transpose of x times narrow values of the same rows, `stride` apart. Rows that are
// not valid must be zero, up to a multiple of 8.
template <int kThreads, int kColumns, int kRows, int kSlice, int kStride>
GRAPHRUN_TILE_FN void add_product(float* to, bool first, const float (&x)[multiple_of_8(kRows)][kStride],
                                  const float* narrow, int stride) {
  constexpr int kOctets = divide_up(kSlice, 8), kTogether = kOctets < 2 ? 1 : 2;
  GRAPHRUN_TILE_LOOP
  for (int begin = static_cast<int>(thread_index() / 32) * kTogether; begin < kOctets;
       begin += kThreads / 32 * kTogether) {
    Results<kColumns, kTogether> results;
    results.template multiply<kRows, 1>(0, Narrow<kColumns>{narrow, stride}, [&](int o, int k, int n) {
      return x[k][8 * (begin + o < kOctets ? begin + o : kOctets - 1) + n];
    });
    results.each([&](int o, int m, int n, float left, float right) {
      const int f = 8 * (begin + o) + n;
      if (f < kSlice) to[f * kColumns + m] = first ? left : to[f * kColumns + m] + left;
      if (f + 1 < kSlice) to[(f + 1) * kColumns + m] = first ? right : to[(f + 1) * kColumns + m] + right;
    });
  }
}
// to[n] = or += the sum of term(row, n) over `rows` rows (at most kRows), for N values of n, each by some lanes of a
// warp. Thread kFirst takes the first one.
template <int kThreads, int kFirst, int N, int kRows, class Term>
GRAPHRUN_TILE_FN void add_rows(float* to, bool first, int rows, Term term) {
  constexpr int kLanes = 64 * N <= kThreads ? 32 : 32 * N <= kThreads ? 16 : 16 * N <= kThreads ? 8 : 4;
  const int thread = (static_cast<int>(thread_index()) + kThreads - kFirst) % kThreads, line = thread % kLanes;
  GRAPHRUN_TILE_LOOP
  for (int begin = thread / 32 * 32; begin < N * kLanes; begin += kThreads) {
    const int at = begin / kLanes + thread % 32 / kLanes, n = at < N ? at : N - 1;
    float part = 0.0f;
    constexpr int kTogether = 4;  // terms loaded together
    GRAPHRUN_TILE_LOOP
    for (int row = line; row < rows; row += kTogether * kLanes) {
      float x[kTogether];
      GRAPHRUN_TILE_FOR (i, kTogether) x[i] = row + i * kLanes < rows ? term(row + i * kLanes, n) : 0.0f;
      GRAPHRUN_TILE_FOR (i, kTogether) part += x[i];
    }
    GRAPHRUN_TILE_UNROLL
    for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) part += shuffle_xor(part, lanes);
    if (at < N && line == 0) to[n] = first ? part : to[n] + part;
  }
}
using by_block::each_row;
// Calls use(row, feature, fetch(row, feature)) for N features of some of kOwn rows.
template <int kThreads, int N, int kOwn, class Fetch, class Use>
GRAPHRUN_TILE_FN void each_feature(int rows, Fetch fetch, Use use) {
  each<kOwn * N, kThreads>(0, [&](int at) {
    if (at < rows * N) use(at / N, at % N, fetch(at / N, at % N));
  });
}

// ---- rows

struct Add {
  GRAPHRUN_TILE_FN static float apply(int, float x, float y) { return x + y; }
};

// Communication for kOwn rows of each of kCluster blocks. kParts results are sums of all blocks' parts; all blocks
// receive kGathered values. Both counts are multiples of 4.
template <int kThreads, int kCluster, int kOwn, int kParts, int kGathered>
class RowExchange {
 public:
  static constexpr int kRows = kCluster * kOwn;
  static_assert(kParts % 4 == 0 && kGathered % 4 == 0);

  struct Shared {
    alignas(16) float inbox[2][kCluster][kOwn][kParts];  // sender's rank first
    alignas(16) float own[kOwn][kGathered];
    alignas(16) float all[2][multiple_of_8(kRows)][kGathered];
    Mbarrier parts_there[2], all_there[2];
    unsigned failed;
  };

  // Ends with a cluster barrier.
  GRAPHRUN_TILE_FN RowExchange(Shared& shared, unsigned* fault) : shared_(shared), fault_(fault) {
    for (int at = kRows * kGathered + static_cast<int>(thread_index()); at < multiple_of_8(kRows) * kGathered;
         at += kThreads)
      (&shared_.all[0][0][0])[at] = (&shared_.all[1][0][0])[at] = 0.0f;
    if (thread_index() == 0) {
      shared_.failed = 0;
      for (int i = 0; i < 2; ++i) {
        mbarrier_init(&shared_.parts_there[i]);
        mbarrier_init(&shared_.all_there[i]);
        mbarrier_expect(&shared_.parts_there[i], kRows * kParts * 4);
        mbarrier_expect(&shared_.all_there[i], kRows * kGathered * 4);
      }
    }
    cluster_barrier();
  }

  // Sends each row's parts to the block that owns the row. Needs a barrier before.
  template <class Parts>
  GRAPHRUN_TILE_FN void send_parts(const Parts& parts, unsigned turn) {
    constexpr int kQuads = kParts / 4;
    const int rank = static_cast<int>(cluster_rank());
    each<kRows * kQuads, kThreads>(0, [&](int at) {
      const int l = at / kQuads, quad = at % kQuads * 4;
      const Floats<4> sums =
          combine_rows<Add, Parts::kShares, 4>(0, &parts.part[0][l][quad], sizeof(parts.part[0]) / sizeof(float));
      store_remote(&shared_.inbox[turn % 2][rank][l % kOwn][quad], sums.value, static_cast<unsigned>(l / kOwn),
                   &shared_.parts_there[turn % 2]);
    });
    await_bytes(&shared_.parts_there[turn % 2], (turn - 1) / 2, kRows * kParts * 4, fault_, shared_);
  }
  // Result i of own row b.
  GRAPHRUN_TILE_FN float result(unsigned turn, int b, int i) const {
    return combine_rows<Add, kCluster, 1>(0, &shared_.inbox[turn % 2][0][b][i], kOwn * kParts).value[0];
  }

  // Clears own rows from `rows` on. A barrier must follow.
  GRAPHRUN_TILE_FN void clear_from(int rows) {
    if (rows == kOwn) return;
    for (int at = rows * kGathered + static_cast<int>(thread_index()); at < kOwn * kGathered; at += kThreads)
      (&shared_.own[0][0])[at] = 0.0f;
  }
  // Sends own rows to all blocks. Needs a barrier before.
  GRAPHRUN_TILE_FN void gather(unsigned turn) {
    constexpr int kQuads = kOwn * kGathered / 4;
    const int first = static_cast<int>(cluster_rank()) * kOwn;
    each<kQuads * kCluster, kThreads>(0, [&](int at) {
      const int quad = at % kQuads * 4;
      const Floats<4> x = *reinterpret_cast<const Floats<4>*>(&shared_.own[0][0] + quad);
      store_remote(&shared_.all[turn % 2][first][0] + quad, x.value, static_cast<unsigned>(at / kQuads),
                   &shared_.all_there[turn % 2]);
    });
    await_bytes(&shared_.all_there[turn % 2], (turn - 1) / 2, kRows * kGathered * 4, fault_, shared_);
  }
  GRAPHRUN_TILE_FN const float* all(unsigned turn) const { return shared_.all[turn % 2][0]; }

  // Same result for all threads of the block after a barrier().
  GRAPHRUN_TILE_FN bool failed() const { return shared_.failed != 0; }
  // Must be called before the kernel ends: after a timeout, stores into a block's shared memory may still be in flight.
  GRAPHRUN_TILE_FN void end() {
    if (failed()) sleep_for(100000);
    cluster_barrier();
  }

 private:
  Shared& shared_;
  unsigned* fault_;
};

}  // namespace graphrun::cuda::tile::by_split
