// product.h: products of matrices in memory, by all warps of a block: each warp has the whole result, of a share of the
// terms, in the fragments of tensor cores, so that each factor is read by one warp, once, and straight into registers.
// Contract: sums of three products of factors split in two (warp.h), flushed into f32 in shared memory every
// kFlushed terms: to about 3e-7 of the sum of the terms' sizes. The order of sums is fixed by the sizes alone. All
// threads of a block call together. Leaves to others: which part of a product a block makes, what becomes of a result
// (executors/cuda_planner/block_kernel.cpp).
#pragma once

#include "kernels/cuda/tile/picks.h"
#include "kernels/cuda/tile/warp.h"

namespace graphrun::cuda::tile::by_block {

// Where row r of a factor begins.

struct Rows {
  const float* first;
  int stride;
  GRAPHRUN_TILE_FN const float* operator()(int r) const { return first + static_cast<long long>(r) * stride; }
};
// Of a shuffled batch, from row `begin` on: its rows in a table. Beyond `count` there are none.
struct PickedData {
  const float* data;
  int stride;
  const unsigned* rows;
  int begin, count;
  GRAPHRUN_TILE_FN const float* operator()(int r) const {
    return data + static_cast<unsigned long long>(rows[begin + r < count ? begin + r : 0]) * stride;
  }
};
// And without a table.
struct ShuffledData {
  const float* data;
  int stride;
  Batches batches;
  unsigned long long step;
  int begin, count;
  GRAPHRUN_TILE_FN const float* operator()(int r) const {
    return data + batches.row(step, begin + r < count ? begin + r : 0) * stride;
  }
};

// A factor is asked for 4 kInner inner indices at a time: lane 4 g + t gets those from kInner t on, kInner of them, of
// the outer indices outer(o, g), in kOctets octets o. What is beyond the ends is 0.

// Rows beyond the ends are asked for their address, not read. Those of one octet may lie in shared memory, as the rows
// of a block do.
template <int kOctets, int kWidth>
GRAPHRUN_TILE_FN void load_factor(bool there, const float* from, float (&x)[kWidth]) {
  if constexpr (kOctets == 1)
    load_if(there, from, x);
  else
    load_global_if(there, from, x);
}

// Outer indices lie side by side: row(k) is where they begin for the inner index k.
template <int kOctets, int kWidth, class Row>
struct Across {
  Row row;
  int first, limit;  // outer indices
  int inner;         // how many inner ones there are
  static constexpr int kNumbers = kOctets;

  GRAPHRUN_TILE_FN static int outer(int octet, int row) { return kOctets * row + octet; }
  GRAPHRUN_TILE_FN static int position(int outer) { return outer % kOctets * 8 + outer / kOctets; }
  template <int kInner>
  GRAPHRUN_TILE_FN void load(float (&x)[kOctets][kInner], int k, int lane_row) const {
    const int begin = first + kOctets * lane_row;
    GRAPHRUN_TILE_UNROLL
    for (int j = 0; j < kInner; ++j) {
      const bool there = k + j < inner;
      const float* const from = row(k + j);
      GRAPHRUN_TILE_UNROLL
      for (int o = 0; o < kOctets; o += kWidth) {
        float some[kWidth];
        load_factor<kOctets>(there && begin + o < limit, from + begin + o, some);
        GRAPHRUN_TILE_UNROLL
        for (int i = 0; i < kWidth; ++i) x[o + i][j] = some[i];
      }
    }
  }
};
// Inner indices lie side by side: row(i) is where they begin for the outer index i.
template <int kOctets, int kWidth, class Row>
struct Along {
  Row row;
  int first, limit;
  int inner;
  static constexpr int kNumbers = kOctets;

  GRAPHRUN_TILE_FN static int outer(int octet, int row) { return 8 * octet + row; }
  GRAPHRUN_TILE_FN static int position(int outer) { return outer; }
  template <int kInner>
  GRAPHRUN_TILE_FN void load(float (&x)[kOctets][kInner], int k, int lane_row) const {
    constexpr int kWide = kWidth < kInner ? kWidth : kInner;
    GRAPHRUN_TILE_UNROLL
    for (int o = 0; o < kOctets; ++o) {
      const int outer = first + 8 * o + lane_row;
      const bool there = outer < limit;
      const float* const from = row(outer) + k;
      GRAPHRUN_TILE_UNROLL
      for (int j = 0; j < kInner; j += kWide) {
        float some[kWide];
        load_factor<kOctets>(there && k + j < inner, from + j, some);
        GRAPHRUN_TILE_UNROLL
        for (int i = 0; i < kWide; ++i) x[o][j + i] = some[i];
      }
    }
  }
};
// Of the lane's place the compiler is told nothing: else it keeps addresses of all products in registers.
template <int kOctets, int kWidth, class Row>
GRAPHRUN_TILE_FN Across<kOctets, kWidth, Row> across(int first, int limit, int inner, Row row) {
  return {row, first, limit, inner};
}
template <int kOctets, int kWidth, class Row>
GRAPHRUN_TILE_FN Along<kOctets, kWidth, Row> along(int first, int limit, int inner, Row row) {
  return {row, first, limit, inner};
}

// A result of 16 kM by 8 kN numbers, in parts of kParts warps. Of one octet each row of it lies along the others.
template <int kM, int kN, int kParts>
struct Parts {
  static constexpr int kRow = 8 * kN + 8, kTurnedRow = 16 * kM + 1;  // floats, so that few lanes meet in a bank
  alignas(16) float part[kParts][kN == 1 ? 8 * kTurnedRow : 16 * kM * kRow];

  GRAPHRUN_TILE_FN static int at(int m, int n) { return kN == 1 ? n * kTurnedRow + m : m * kRow + n; }
  // Two sums side by side: as they are, or beside what is there.
  GRAPHRUN_TILE_FN void put(int of, int m, int n, float x, float y, bool first) {
    float& left = part[of][at(m, n)];
    float& right = part[of][at(m, n + 1)];
    left = first ? x : left + x;
    right = first ? y : right + y;
  }
};

// Sums in so many fragments that no product waits for the one before: of small results, one for each term of a split.
template <int kM, int kN>
struct Sums {
  static constexpr int kSets = kM * kN <= 4 ? 3 : 1;
  float c[kSets][kM][kN][4] = {};

  // Some of the terms, of factors as they were asked for.
  template <int kInner>
  GRAPHRUN_TILE_FN void add(const float (&x)[2 * kM][kInner], const float (&y)[kN][kInner]) {
    GRAPHRUN_TILE_UNROLL
    for (int k = 0; k < kInner; k += 2) {
      by_warp::Split<2> right[kN];
      GRAPHRUN_TILE_UNROLL
      for (int n = 0; n < kN; ++n) {
        right[n].set(0, y[n][k]);
        right[n].set(1, y[n][k + 1]);
      }
      GRAPHRUN_TILE_UNROLL
      for (int m = 0; m < kM; ++m) {
        by_warp::Split<4> left;
        left.set(0, x[2 * m][k]);
        left.set(1, x[2 * m + 1][k]);
        left.set(2, x[2 * m][k + 1]);
        left.set(3, x[2 * m + 1][k + 1]);
        GRAPHRUN_TILE_UNROLL
        for (int n = 0; n < kN; ++n) tile::multiply_add(c[0][m][n], left.low, right[n].high);
        GRAPHRUN_TILE_UNROLL
        for (int n = 0; n < kN; ++n) tile::multiply_add(c[1 % kSets][m][n], left.high, right[n].low);
        GRAPHRUN_TILE_UNROLL
        for (int n = 0; n < kN; ++n) tile::multiply_add(c[2 % kSets][m][n], left.high, right[n].high);
      }
    }
  }
  GRAPHRUN_TILE_FN float operator()(int m, int n, int i) const {
    if constexpr (kSets == 1) return c[0][m][n][i];
    return c[0][m][n][i] + c[1 % kSets][m][n][i] + c[2 % kSets][m][n][i];
  }
};

// Of the largest results few inner indices at a time: registers have no room for more.
GRAPHRUN_TILE_CONSTEXPR int inner_of(int m, int n) {
  return m * n > 8 ? 2 : 4;
}
// How many times ahead factors are asked for: of the largest results twice, for each time is code that takes long to
// compile; of others what registers hold, beside the sums.
template <int kThreads, int kM, int kN>
GRAPHRUN_TILE_CONSTEXPR int times_ahead() {
  const int numbers = inner_of(kM, kN) * (2 * kM + kN), most = kThreads > 256 ? 48 : 100;
  if (kM * kN > 8 || most / numbers < 2) return 2;
  return most / numbers > 8 ? 8 : most / numbers;
}
// How many turns the code for no more than kMost terms is of; of more than it asks for ahead, that is one more.
template <int kThreads, int kM, int kN, int kParts, int kMost>
GRAPHRUN_TILE_CONSTEXPR int turns_of() {
  const int step = 4 * inner_of(kM, kN) * kParts, turns = (kMost + step - 1) / step;
  const int ahead = times_ahead<kThreads, kM, kN>();
  return turns <= ahead ? turns : ahead + 1;
}

// Terms [4 kInner w, 4 kInner w + 4 kInner) of every 4 kInner kParts, by warp w of kParts, into its part.
template <int kThreads, int kM, int kN, int kParts, int kTurns, class A, class B>
GRAPHRUN_TILE_FN void multiply(Parts<kM, kN, kParts>& to, int warp, const A& a, const B& b) {
  static_assert(A::kNumbers == 2 * kM && B::kNumbers == kN);
  constexpr int kInner = inner_of(kM, kN), kStep = 4 * kInner * kParts;
  constexpr int kFit = times_ahead<kThreads, kM, kN>(), kAhead = kTurns < kFit ? kTurns : kFit;
  constexpr bool kOnce = kTurns <= kAhead;  // all terms are asked for at once
  constexpr int kFlushed = (32 / kInner + kAhead - 1) / kAhead * kAhead * kStep;
  const int g = opaque(by_warp::lane_row()), t = opaque(by_warp::lane_column()), inner = a.inner;
  float x[kAhead][2 * kM][kInner], y[kAhead][kN][kInner];
  int k = 4 * kInner * warp;
  GRAPHRUN_TILE_UNROLL
  for (int i = 0; i < kAhead; ++i) {
    a.load(x[i], k + i * kStep + kInner * t, g);
    b.load(y[i], k + i * kStep + kInner * t, g);
  }
  bool first = true;
  do {
    Sums<kM, kN> sums;
    const int end = inner < k + kFlushed ? inner : k + kFlushed;
    GRAPHRUN_TILE_LOOP
    for (; k < end; k += kAhead * kStep) {
      GRAPHRUN_TILE_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        if (k + i * kStep >= end) continue;
        sums.add(x[i], y[i]);
        if constexpr (kOnce) continue;
        a.load(x[i], k + (i + kAhead) * kStep + kInner * t, g);
        b.load(y[i], k + (i + kAhead) * kStep + kInner * t, g);
      }
      if constexpr (kOnce) break;
    }
    GRAPHRUN_TILE_UNROLL
    for (int m = 0; m < kM; ++m) {
      GRAPHRUN_TILE_UNROLL
      for (int n = 0; n < kN; ++n) {
        GRAPHRUN_TILE_UNROLL
        for (int i = 0; i < 4; i += 2) {
          to.put(warp, kN == 1 ? A::outer(2 * m + i / 2, g) : 16 * m + 4 * i + g, 8 * n + 2 * t, sums(m, n, i),
                 sums(m, n, i + 1), kOnce || first);
        }
      }
    }
    first = false;
  } while (!kOnce && k < inner);
}

// A part of a product, 16 kM by 8 kN: use(m, n, sum, fetched) for all that is there, m and n as outer indices of the
// factors; fetch(m, n) is what it needs of other memory, asked for all together before the first use.
// Begins with a barrier; another follows before `parts` are used again.
template <int kThreads, int kM, int kN, int kMost, int kBytes, class A, class B, class Fetch, class Use>
GRAPHRUN_TILE_FN void product(unsigned char (&shared)[kBytes], const A& a, const B& b, Fetch fetch, Use use) {
  constexpr int kParts = kThreads / 32, kColumns = 8 * kN, kAll = 16 * kM * kColumns;
  constexpr int kRows = kThreads / kColumns, kTurns = kThreads % kColumns == 0 ? (16 * kM + kRows - 1) / kRows : 0;
  static_assert(sizeof(Parts<kM, kN, kParts>) <= kBytes);
  auto& parts = *reinterpret_cast<Parts<kM, kN, kParts>*>(shared);
  barrier();
  multiply<kThreads, kM, kN, kParts, turns_of<kThreads, kM, kN, kParts, kMost>()>(
      parts, static_cast<int>(thread_index() / 32), a, b);
  const auto sum = [&](int m, int n) {
    float sum = 0.0f;
    GRAPHRUN_TILE_UNROLL
    for (int part = 0; part < kParts; ++part)
      sum += parts.part[part][parts.at(kN == 1 ? m : A::position(m), B::position(n))];
    return sum;
  };
  const auto last = [](int x, int limit) { return x < limit ? x : limit - 1; };
  if constexpr (kTurns > 0) {
    const int thread = opaque(static_cast<int>(thread_index())), n = thread % kColumns, row = thread / kColumns;
    const int column = last(b.first + n, b.limit);
    decltype(fetch(0, 0)) fetched[kTurns];
    GRAPHRUN_TILE_UNROLL
    for (int turn = 0; turn < kTurns; ++turn)
      fetched[turn] = fetch(last(a.first + row + turn * kRows, a.limit), column);
    barrier();
    float sums[kTurns];
    GRAPHRUN_TILE_UNROLL
    for (int turn = 0; turn < kTurns; ++turn) sums[turn] = sum(last(row + turn * kRows, 16 * kM), n);
    GRAPHRUN_TILE_UNROLL
    for (int turn = 0; turn < kTurns; ++turn) {
      const int m = row + turn * kRows;
      if (m < 16 * kM && a.first + m < a.limit && b.first + n < b.limit)
        use(a.first + m, b.first + n, sums[turn], fetched[turn]);
    }
  } else {
    barrier();
    for (int at = static_cast<int>(thread_index()); at < kAll; at += kThreads) {
      const int m = at / kColumns, n = at % kColumns;
      if (a.first + m < a.limit && b.first + n < b.limit)
        use(a.first + m, b.first + n, sum(m, n), fetch(a.first + m, b.first + n));
    }
  }
}

// Of N results of a few rows, as many as make an octet: 64 results each by kShares warps.
template <int kThreads, int N>
struct RowProduct {
  static constexpr int kM = N >= 64 ? 4 : (N + 15) / 16;
  static constexpr int kGroups = (N + 16 * kM - 1) / (16 * kM);
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kShares = kGroups >= kWarps ? 1 : kWarps / kGroups;
  using Results = Parts<kM, 1, kShares>;
  struct Shared {
    Results group[kGroups];
  };
};
// x (rows, kTerms) times w, whose results side by side are `weights(first, limit)` of its factor A: into `to`.
template <int kThreads, int N, int kTerms, int kBytes, class Weights, class B>
GRAPHRUN_TILE_FN void multiply_rows(unsigned char (&to)[kBytes], Weights weights, const B& b) {
  using Shape = RowProduct<kThreads, N>;
  static_assert(sizeof(typename Shape::Shared) <= kBytes);
  auto& shared = *reinterpret_cast<typename Shape::Shared*>(to);
  const int warp = static_cast<int>(thread_index() / 32), share = warp % Shape::kShares;
  GRAPHRUN_TILE_LOOP
  for (int group = warp / Shape::kShares; group < Shape::kGroups; group += Shape::kWarps / Shape::kShares) {
    multiply<kThreads, Shape::kM, 1, Shape::kShares, turns_of<kThreads, Shape::kM, 1, Shape::kShares, kTerms>()>(
        shared.group[group], share, weights(group * 16 * Shape::kM), b);
  }
}
// Result n of row b, after a barrier.
template <int kThreads, int N>
GRAPHRUN_TILE_FN float row_product(const void* from, int row, int n) {
  using Shape = RowProduct<kThreads, N>;
  const auto& results = static_cast<const typename Shape::Shared*>(from)->group[n / (16 * Shape::kM)];
  float sum = 0.0f;
  GRAPHRUN_TILE_UNROLL
  for (int share = 0; share < Shape::kShares; ++share)
    sum += results.part[share][results.at(n % (16 * Shape::kM), row)];
  return sum;
}

}  // namespace graphrun::cuda::tile::by_block
