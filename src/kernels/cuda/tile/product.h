// product.h: products of matrices in memory, by all warps of a block: each warp has the whole result, of a share of the
// terms, in the fragments of tensor cores, so that each factor is read by one warp, once, and straight into registers.
// Contract: sums of three products of factors split in two (warp.h), flushed into f32 in shared memory every
// kFlushed terms: to about 3e-7 of the sum of the terms' sizes. The order of sums is fixed by the sizes alone. All
// threads of a block call together. Leaves to others: which part of a product a block makes, what becomes of a result
// (executors/cuda_planner/block_kernel.cpp).
#pragma once

#include "kernels/cuda/tile/warp.h"

namespace graphrun::cuda::tile::by_block {

// A factor is asked for 16 inner indices at a time: lane 4 g + t gets k, k + 1, k + 2, k + 3 for k = 4 t, of the outer
// indices outer(o, g), in kOctets octets o. What is beyond the ends is 0.

// Outer indices lie side by side: row(k) is where they begin for the inner index k.
template <int kOctets, int kWidth, class Row>
struct Across {
  Row row;
  int first, limit;  // outer indices
  int inner;         // how many inner ones there are
  static constexpr int kNumbers = kOctets;

  GRAPHRUN_TILE_FN static int position(int outer) { return outer % kOctets * 8 + outer / kOctets; }
  GRAPHRUN_TILE_FN void load(float (&x)[kOctets][4], int k) const {
    const int begin = first + kOctets * by_warp::lane_row();
    GRAPHRUN_TILE_UNROLL
    for (int j = 0; j < 4; ++j) {
      const bool there = k + j < inner;
      const float* const from = row(there ? k + j : 0);
      GRAPHRUN_TILE_UNROLL
      for (int o = 0; o < kOctets; o += kWidth) {
        Floats<kWidth> some{};
        if (there && begin + o < limit) some = *reinterpret_cast<const Floats<kWidth>*>(from + begin + o);
        GRAPHRUN_TILE_UNROLL
        for (int i = 0; i < kWidth; ++i) x[o + i][j] = some.value[i];
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

  GRAPHRUN_TILE_FN static int position(int outer) { return outer; }
  GRAPHRUN_TILE_FN void load(float (&x)[kOctets][4], int k) const {
    GRAPHRUN_TILE_UNROLL
    for (int o = 0; o < kOctets; ++o) {
      const int outer = first + 8 * o + by_warp::lane_row();
      const bool there = outer < limit;
      const float* const from = row(there ? outer : 0) + k;
      GRAPHRUN_TILE_UNROLL
      for (int j = 0; j < 4; j += kWidth) {
        Floats<kWidth> some{};
        if (there && k + j < inner) some = *reinterpret_cast<const Floats<kWidth>*>(from + j);
        GRAPHRUN_TILE_UNROLL
        for (int i = 0; i < kWidth; ++i) x[o][j + i] = some.value[i];
      }
    }
  }
};
template <int kOctets, int kWidth, class Row>
GRAPHRUN_TILE_FN Across<kOctets, kWidth, Row> across(int first, int limit, int inner, Row row) {
  return {row, first, limit, inner};
}
template <int kOctets, int kWidth, class Row>
GRAPHRUN_TILE_FN Along<kOctets, kWidth, Row> along(int first, int limit, int inner, Row row) {
  return {row, first, limit, inner};
}

// A result of 16 kM by 8 kN numbers, in parts of kParts warps.
template <int kM, int kN, int kParts>
struct Parts {
  static constexpr int kRow = 8 * kN + 8;  // floats, so that no two lanes meet in a bank
  alignas(16) float part[kParts][16 * kM][kRow];
};

// c += 16 of the terms, of factors as they were asked for.
template <int kM, int kN>
GRAPHRUN_TILE_FN void multiply_fragments(float (&c)[kM][kN][4], const float (&x)[2 * kM][4], const float (&y)[kN][4]) {
  GRAPHRUN_TILE_UNROLL
  for (int half = 0; half < 2; ++half) {
    by_warp::Split<2> right[kN];
    GRAPHRUN_TILE_UNROLL
    for (int n = 0; n < kN; ++n) {
      right[n].set(0, y[n][2 * half]);
      right[n].set(1, y[n][2 * half + 1]);
    }
    GRAPHRUN_TILE_UNROLL
    for (int m = 0; m < kM; ++m) {
      by_warp::Split<4> left;
      left.set(0, x[2 * m][2 * half]);
      left.set(1, x[2 * m + 1][2 * half]);
      left.set(2, x[2 * m][2 * half + 1]);
      left.set(3, x[2 * m + 1][2 * half + 1]);
      GRAPHRUN_TILE_UNROLL
      for (int n = 0; n < kN; ++n) by_warp::multiply_add(c[m][n], left, right[n]);
    }
  }
}

template <int N>
GRAPHRUN_TILE_FN void copy_fragments(float (&to)[N][4], const float (&from)[N][4]) {
  GRAPHRUN_TILE_UNROLL
  for (int i = 0; i < N; ++i) {
    GRAPHRUN_TILE_UNROLL
    for (int j = 0; j < 4; ++j) to[i][j] = from[i][j];
  }
}

// Terms [16 w, 16 w + 16) of every 16 kParts, by warp w of kParts, into its part. Factors are asked for as many times
// ahead as registers hold: of small results more.
template <int kM, int kN, int kParts, class A, class B>
GRAPHRUN_TILE_FN void multiply(Parts<kM, kN, kParts>& to, int warp, const A& a, const B& b) {
  static_assert(A::kNumbers == 2 * kM && B::kNumbers == kN);
  constexpr int kNumbers = 8 * kM + 4 * kN, kAhead = kNumbers > 36 ? 1 : kNumbers > 24 ? 2 : kNumbers > 12 ? 4 : 8;
  constexpr int kStep = 16 * kParts, kFlushed = 8 * kStep;
  const int g = by_warp::lane_row(), t = by_warp::lane_column(), inner = a.inner;
  float(*const part)[8 * kN + 8] = to.part[warp];
  float x[kAhead][2 * kM][4], y[kAhead][kN][4];
  int k = 16 * warp;
  GRAPHRUN_TILE_UNROLL
  for (int i = 0; i < kAhead; ++i) {
    a.load(x[i], k + i * kStep + 4 * t);
    b.load(y[i], k + i * kStep + 4 * t);
  }
  bool first = true;
  do {
    float c[kM][kN][4] = {};
    const int end = inner < k + kFlushed ? inner : k + kFlushed;
    GRAPHRUN_TILE_LOOP
    for (; k < end; k += kAhead * kStep) {
      GRAPHRUN_TILE_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        if (k + i * kStep >= end) continue;
        float next_x[2 * kM][4], next_y[kN][4];
        a.load(next_x, k + (i + kAhead) * kStep + 4 * t);
        b.load(next_y, k + (i + kAhead) * kStep + 4 * t);
        multiply_fragments<kM, kN>(c, x[i], y[i]);
        copy_fragments(x[i], next_x);
        copy_fragments(y[i], next_y);
      }
    }
    GRAPHRUN_TILE_UNROLL
    for (int m = 0; m < kM; ++m) {
      GRAPHRUN_TILE_UNROLL
      for (int n = 0; n < kN; ++n) {
        GRAPHRUN_TILE_UNROLL
        for (int i = 0; i < 4; i += 2) {
          auto* const at = reinterpret_cast<Floats<2>*>(&part[16 * m + 4 * i + g][8 * n + 2 * t]);
          const Floats<2> before = first ? Floats<2>{} : *at;
          *at = {{before.value[0] + c[m][n][i], before.value[1] + c[m][n][i + 1]}};
        }
      }
    }
    first = false;
  } while (k < inner);
}

// A part of a product, 16 kM by 8 kN: f(m, n, sum) for all that is there, m and n as outer indices of the factors.
// Begins with a barrier; another follows before `parts` are used again.
template <int kThreads, int kM, int kN, class A, class B, class F>
GRAPHRUN_TILE_FN void product(void* shared, const A& a, const B& b, F f) {
  constexpr int kParts = kThreads / 32;
  auto& parts = *static_cast<Parts<kM, kN, kParts>*>(shared);
  barrier();
  multiply<kM, kN, kParts>(parts, static_cast<int>(thread_index() / 32), a, b);
  barrier();
  GRAPHRUN_TILE_LOOP
  for (int at = static_cast<int>(thread_index()); at < 16 * kM * 8 * kN; at += kThreads) {
    const int m = at / (8 * kN), n = at % (8 * kN);
    if (a.first + m >= a.limit || b.first + n >= b.limit) continue;
    float sum = 0.0f;
    GRAPHRUN_TILE_UNROLL
    for (int part = 0; part < kParts; ++part) sum += parts.part[part][A::position(m)][B::position(n)];
    f(a.first + m, b.first + n, sum);
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
// x (rows, K) times w, whose results side by side are `weights(first, limit)` of its factor A: into `to`.
template <int kThreads, int N, class Weights, class B>
GRAPHRUN_TILE_FN void multiply_rows(void* to, Weights weights, const B& b) {
  using Shape = RowProduct<kThreads, N>;
  auto& shared = *static_cast<typename Shape::Shared*>(to);
  const int warp = static_cast<int>(thread_index() / 32), share = warp % Shape::kShares;
  GRAPHRUN_TILE_LOOP
  for (int group = warp / Shape::kShares; group < Shape::kGroups; group += Shape::kWarps / Shape::kShares) {
    multiply<Shape::kM, 1, Shape::kShares>(shared.group[group], share, weights(group * 16 * Shape::kM), b);
  }
}
// Result n of row b, after a barrier.
template <int kThreads, int N, class A>
GRAPHRUN_TILE_FN float row_product(const void* from, int row, int n) {
  using Shape = RowProduct<kThreads, N>;
  const auto& results = static_cast<const typename Shape::Shared*>(from)->group[n / (16 * Shape::kM)];
  float sum = 0.0f;
  GRAPHRUN_TILE_UNROLL
  for (int share = 0; share < Shape::kShares; ++share)
    sum += results.part[share][A::position(n % (16 * Shape::kM))][row];
  return sum;
}

}  // namespace graphrun::cuda::tile::by_block
