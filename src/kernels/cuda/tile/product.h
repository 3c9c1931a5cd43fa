// product.h: matrix products by all warps of a block. Each warp computes the whole result for a share of the terms, in
// tensor-core fragments, so each factor is read once, by one warp, straight into registers.
// Contract: sums of three products of factors split in two (warp.h), flushed to f32 in shared memory every kFlushed
// terms; the error is about 3e-7 of the sum of the terms' magnitudes. Sizes alone fix the order of sums. All threads of
// a block call together. Leaves to others: which part of a product a block computes, how results are used
// (executors/cuda_planner/tiles/block_kernel.cpp).
#pragma once

#include "kernels/cuda/tile/picks.h"
#include "kernels/cuda/tile/warp.h"

namespace graphrun::cuda::tile::by_block {

// Functors that return the address of row r of a factor.

struct Rows {
  const float* first;
  int stride;
  GRAPHRUN_TILE_FN const float* operator()(int r) const { return first + static_cast<long long>(r) * stride; }
};
// Shuffled batch from row `begin` on, with a table of row indices. Only rows below `count` are valid.
struct PickedData {
  const float* data;
  int stride;
  const unsigned* rows;
  int begin, count;
  GRAPHRUN_TILE_FN const float* operator()(int r) const {
    return data + static_cast<unsigned long long>(rows[begin + r < count ? begin + r : 0]) * stride;
  }
};
// Shuffled batch without a table: row indices are computed.
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

// A factor is loaded 4 kInner inner indices at a time: lane 4 g + t gets the kInner indices from kInner t on, for the
// outer indices outer(o, g) of kOctets octets o. Elements out of range are 0.

// Addresses of out-of-range rows may be computed but are not read. Rows of a single octet may be in shared memory, as
// the rows of a block are.
template <int kOctets, int kWidth>
GRAPHRUN_TILE_FN void load_factor(bool there, const float* from, float (&x)[kWidth]) {
  if constexpr (kOctets == 1)
    load_if(there, from, x);
  else
    load_global_if(there, from, x);
}

// Outer indices are contiguous: row(k) points to those of inner index k.
template <int kOctets, int kWidth, class Row>
struct Across {
  Row row;
  int first, limit;  // outer indices
  int inner;         // number of inner indices

  GRAPHRUN_TILE_FN static int outer(int octet, int row) { return kOctets * row + octet; }
  GRAPHRUN_TILE_FN static int position(int outer) { return outer % kOctets * 8 + outer / kOctets; }
  template <int kInner>
  GRAPHRUN_TILE_FN void load(float (&x)[kOctets][kInner], int k, int lane_row) const {
    const int begin = first + kOctets * lane_row;
    GRAPHRUN_TILE_FOR (j, kInner) {
      const bool there = k + j < inner;
      const float* const from = row(k + j);
      GRAPHRUN_TILE_UNROLL
      for (int o = 0; o < kOctets; o += kWidth) {
        float some[kWidth];
        load_factor<kOctets>(there && begin + o < limit, from + begin + o, some);
        GRAPHRUN_TILE_FOR (i, kWidth) x[o + i][j] = some[i];
      }
    }
  }
};
// Inner indices are contiguous: row(i) points to those of outer index i.
template <int kOctets, int kWidth, class Row>
struct Along {
  Row row;
  int first, limit;
  int inner;

  GRAPHRUN_TILE_FN static int outer(int octet, int row) { return 8 * octet + row; }
  GRAPHRUN_TILE_FN static int position(int outer) { return outer; }
  template <int kInner>
  GRAPHRUN_TILE_FN void load(float (&x)[kOctets][kInner], int k, int lane_row) const {
    constexpr int kWide = kWidth < kInner ? kWidth : kInner;
    GRAPHRUN_TILE_FOR (o, kOctets) {
      const int outer = first + 8 * o + lane_row;
      const bool there = outer < limit;
      const float* const from = row(outer) + k;
      GRAPHRUN_TILE_UNROLL
      for (int j = 0; j < kInner; j += kWide) {
        float some[kWide];
        load_factor<kOctets>(there && k + j < inner, from + j, some);
        GRAPHRUN_TILE_FOR (i, kWide) x[o][j + i] = some[i];
      }
    }
  }
};
// The lane's position is hidden from the compiler, which would otherwise keep all addresses in registers.
template <int kOctets, int kWidth, class Row>
GRAPHRUN_TILE_FN Across<kOctets, kWidth, Row> across(int first, int limit, int inner, Row row) {
  return {row, first, limit, inner};
}
template <int kOctets, int kWidth, class Row>
GRAPHRUN_TILE_FN Along<kOctets, kWidth, Row> along(int first, int limit, int inner, Row row) {
  return {row, first, limit, inner};
}

// Result of 16 kM by 8 kN numbers, as partial sums of kParts warps. With a single octet it is stored transposed.
template <int kM, int kN, int kParts>
struct Parts {
  static constexpr int kFloats = part_floats(kM, kN), kRow = kFloats / (kN == 1 ? 8 : 16 * kM);
  alignas(16) float part[kParts][kFloats];

  GRAPHRUN_TILE_FN static int at(int m, int n) { return kN == 1 ? n * kRow + m : m * kRow + n; }
  // Stores two adjacent sums, or adds them if not `first`.
  GRAPHRUN_TILE_FN void put(int of, int m, int n, float x, float y, bool first) {
    float& left = part[of][at(m, n)];
    float& right = part[of][at(m, n + 1)];
    left = first ? x : left + x;
    right = first ? y : right + y;
  }
};

// Accumulators. Small results have one set for each of the three products, so that no product waits for another.
template <int kM, int kN>
struct Sums {
  static constexpr int kSets = kM * kN <= 4 ? 3 : 1;
  float c[kSets][kM][kN][4] = {};

  // Adds the terms of loaded factors.
  template <int kInner>
  GRAPHRUN_TILE_FN void add(const float (&x)[2 * kM][kInner], const float (&y)[kN][kInner]) {
    GRAPHRUN_TILE_UNROLL
    for (int k = 0; k < kInner; k += 2) {
      by_warp::Split<2> right[kN];
      GRAPHRUN_TILE_FOR (n, kN) {
        right[n].set(0, y[n][k]);
        right[n].set(1, y[n][k + 1]);
      }
      GRAPHRUN_TILE_FOR (m, kM) {
        by_warp::Split<4> left;
        left.set(0, x[2 * m][k]);
        left.set(1, x[2 * m + 1][k]);
        left.set(2, x[2 * m][k + 1]);
        left.set(3, x[2 * m + 1][k + 1]);
        GRAPHRUN_TILE_FOR (n, kN) tile::multiply_add(c[0][m][n], left.low, right[n].high);
        GRAPHRUN_TILE_FOR (n, kN) tile::multiply_add(c[1 % kSets][m][n], left.high, right[n].low);
        GRAPHRUN_TILE_FOR (n, kN) tile::multiply_add(c[2 % kSets][m][n], left.high, right[n].high);
      }
    }
  }
  GRAPHRUN_TILE_FN float operator()(int m, int n, int i) const {
    if constexpr (kSets == 1) return c[0][m][n][i];
    return c[0][m][n][i] + c[1 % kSets][m][n][i] + c[2 % kSets][m][n][i];
  }
};

// Inner indices per load: fewer for the largest results, to fit in registers.
GRAPHRUN_TILE_CONSTEXPR int inner_of(int m, int n) {
  return m * n > 8 ? 2 : 4;
}
// Number of loads in flight: two for the largest results, since each adds code that takes long to compile; otherwise as
// many as fit in registers together with the sums.
template <int kThreads, int kM, int kN>
GRAPHRUN_TILE_CONSTEXPR int times_ahead() {
  const int numbers = inner_of(kM, kN) * (2 * kM + kN), most = kThreads > 256 ? 48 : 100;
  if (kM * kN > 8 || most / numbers < 2) return 2;
  return most / numbers > 8 ? 8 : most / numbers;
}
// Turns in the code for at most kMax terms. If they do not all fit in flight, one more than the loads in flight.
template <int kThreads, int kM, int kN, int kParts, int kMax>
GRAPHRUN_TILE_CONSTEXPR int turns_of() {
  const int step = 4 * inner_of(kM, kN) * kParts, turns = (kMax + step - 1) / step;
  const int ahead = times_ahead<kThreads, kM, kN>();
  return turns <= ahead ? turns : ahead + 1;
}

// Warp w of kParts adds terms [4 kInner w, 4 kInner w + 4 kInner) of every 4 kInner kParts to its part.
template <int kThreads, int kM, int kN, int kParts, int kTurns, class A, class B>
GRAPHRUN_TILE_FN void multiply(Parts<kM, kN, kParts>& to, int warp, const A& a, const B& b) {
  constexpr int kInner = inner_of(kM, kN), kStep = 4 * kInner * kParts;
  constexpr int kFit = times_ahead<kThreads, kM, kN>(), kAhead = kTurns < kFit ? kTurns : kFit;
  constexpr bool kOnce = kTurns <= kAhead;  // all terms are loaded at once
  constexpr int kFlushed = (32 / kInner + kAhead - 1) / kAhead * kAhead * kStep;
  const int g = opaque(by_warp::lane_row()), t = opaque(by_warp::lane_column()), inner = a.inner;
  float x[kAhead][2 * kM][kInner], y[kAhead][kN][kInner];
  int k = 4 * kInner * warp;
  GRAPHRUN_TILE_FOR (i, kAhead) {
    a.load(x[i], k + i * kStep + kInner * t, g);
    b.load(y[i], k + i * kStep + kInner * t, g);
  }
  bool first = true;
  do {
    Sums<kM, kN> sums;
    const int end = inner < k + kFlushed ? inner : k + kFlushed;
    GRAPHRUN_TILE_LOOP
    for (; k < end; k += kAhead * kStep) {
      GRAPHRUN_TILE_FOR (i, kAhead) {
        if (k + i * kStep >= end) continue;
        sums.add(x[i], y[i]);
        if constexpr (kOnce) continue;
        a.load(x[i], k + (i + kAhead) * kStep + kInner * t, g);
        b.load(y[i], k + (i + kAhead) * kStep + kInner * t, g);
      }
      if constexpr (kOnce) break;
    }
    GRAPHRUN_TILE_FOR (m, kM) {
      GRAPHRUN_TILE_FOR (n, kN) {
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

// Part of a product, 16 kM by 8 kN. Calls use(m, n, sum, fetched) for all elements in range; m and n are outer indices
// of the factors. fetch(m, n) loads other operands; all fetches are issued before the first use. Begins with a barrier;
// the caller places another before `shared` is used again.
template <int kThreads, int kM, int kN, int kMax, int kBytes, class A, class B, class Fetch, class Use>
GRAPHRUN_TILE_FN void product(unsigned char (&shared)[kBytes], const A& a, const B& b, Fetch fetch, Use use) {
  constexpr int kParts = kThreads / 32, kColumns = 8 * kN, kAll = 16 * kM * kColumns;
  constexpr int kRows = kThreads / kColumns, kTurns = kThreads % kColumns == 0 ? (16 * kM + kRows - 1) / kRows : 0;
  static_assert(sizeof(Parts<kM, kN, kParts>) <= kBytes);
  auto& parts = *reinterpret_cast<Parts<kM, kN, kParts>*>(shared);
  barrier();
  multiply<kThreads, kM, kN, kParts, turns_of<kThreads, kM, kN, kParts, kMax>()>(
      parts, static_cast<int>(thread_index() / 32), a, b);
  const auto sum = [&](int m, int n) {
    float sum = 0.0f;
    GRAPHRUN_TILE_FOR (part, kParts) sum += parts.part[part][parts.at(kN == 1 ? m : A::position(m), B::position(n))];
    return sum;
  };
  const auto last = [](int x, int limit) { return x < limit ? x : limit - 1; };
  if constexpr (kTurns > 0) {
    const int thread = opaque(static_cast<int>(thread_index())), n = thread % kColumns, row = thread / kColumns;
    const int column = last(b.first + n, b.limit);
    decltype(fetch(0, 0)) fetched[kTurns];
    GRAPHRUN_TILE_FOR (turn, kTurns) fetched[turn] = fetch(last(a.first + row + turn * kRows, a.limit), column);
    barrier();
    float sums[kTurns];
    GRAPHRUN_TILE_FOR (turn, kTurns) sums[turn] = sum(last(row + turn * kRows, 16 * kM), n);
    GRAPHRUN_TILE_FOR (turn, kTurns) {
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

// N results for a few rows.
template <int kThreads, int N>
struct RowProduct {
  static constexpr int kWarps = kThreads / 32, kM = row_product_shape(N, kWarps).m;
  static constexpr int kGroups = row_product_shape(N, kWarps).groups, kShares = row_product_shape(N, kWarps).shares;
  using Results = Parts<kM, 1, kShares>;
  struct Shared {
    Results group[kGroups];
  };
};
// x (rows, kTerms) times w into `to`; `weights(first)` is the factor of the results from `first` on.
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
// Result n of `row`; needs a barrier before.
template <int kThreads, int N>
GRAPHRUN_TILE_FN float row_product(const void* from, int row, int n) {
  using Shape = RowProduct<kThreads, N>;
  const auto& results = static_cast<const typename Shape::Shared*>(from)->group[n / (16 * Shape::kM)];
  float sum = 0.0f;
  GRAPHRUN_TILE_FOR (share, Shape::kShares) sum += results.part[share][results.at(n % (16 * Shape::kM), row)];
  return sum;
}

}  // namespace graphrun::cuda::tile::by_block
