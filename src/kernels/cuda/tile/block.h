// block.h: the block tile: a block processes a few rows (samples) at a time and its threads share their features.
// Values of a row are contiguous, in the block's shared memory or in the arena.
// Contract: all threads of a block call the functions over loops and rows, and none ends with a barrier. Functions with
// a `rows` parameter process the block's rows [0, rows). Sizes alone fix the order of sums. Leaves to others: products
// (product.h), other blocks (grid.h), the source text (executors/cuda_planner/tiles/block_kernel.cpp).
#pragma once

#include "kernels/cuda/tile/thread.h"

namespace graphrun::cuda::tile::by_block {

// Calls use(i, fetch(i)) for i = first, first + kStep, ... below `all`, after kTurns fetches at a time.
template <int kStep, int kTurns, class Fetch, class Use>
GRAPHRUN_TILE_FN void each_fetched(int first, int all, Fetch fetch, Use use) {
  GRAPHRUN_TILE_LOOP
  for (int begin = first; begin < all; begin += kTurns * kStep) {
    decltype(fetch(0)) fetched[kTurns];
    GRAPHRUN_TILE_FOR (turn, kTurns) fetched[turn] = fetch(begin + turn * kStep < all ? begin + turn * kStep : begin);
    GRAPHRUN_TILE_FOR (turn, kTurns)
      if (begin + turn * kStep < all) use(begin + turn * kStep, fetched[turn]);
  }
}
// Calls use(row, feature, fetched) for N features of some rows; fetch(row, feature) loads other operands, a few at a
// time.
template <int kThreads, int N, class Fetch, class Use>
GRAPHRUN_TILE_FN void each_feature(int rows, Fetch fetch, Use use) {
  each_fetched<kThreads, 4>(
      static_cast<int>(thread_index()), rows * N, [&](int at) { return fetch(at / N, at % N); },
      [&](int at, const auto& fetched) { use(at / N, at % N, fetched); });
}
// Calls f(row) for some rows, each by kLanes lanes of a warp. Warp kFirst takes the first row.
template <int kThreads, int kFirst, int kLanes = 32, class F>
GRAPHRUN_TILE_FN void each_row(int rows, F f) {
  constexpr int kWarps = kThreads / 32, kTogether = 32 / kLanes;
  const int warp = (static_cast<int>(thread_index() / 32) + kWarps - kFirst % kWarps) % kWarps;
  GRAPHRUN_TILE_LOOP
  for (int first = warp * kTogether; first < rows; first += kWarps * kTogether) {
    const int row = first + static_cast<int>(thread_index()) % 32 / kLanes;
    f(row < rows ? row : rows - 1);  // lanes without a row repeat the last one
  }
}

// Row whose feature i is computed as f(i) on each read.
template <class F>
struct Made {
  F f;
  GRAPHRUN_TILE_FN auto operator[](int i) const { return f(i); }
};
template <class F>
GRAPHRUN_TILE_FN Made<F> made(F f) {
  return {f};
}

// ---- along the features of one row, by some lanes of a warp

GRAPHRUN_TILE_FN int lane() {
  return static_cast<int>(thread_index() % 32);
}
GRAPHRUN_TILE_CONSTEXPR int width_for(int n, int most) {
  int width = 1;
  while (width < n && width < most) width *= 2;
  return width;
}

// Reductions by kLanes lanes: 32, or 16 where both halves of a warp call, each for its own row.
template <int kLanes>
struct Lanes {
  static GRAPHRUN_TILE_FN int lane() { return static_cast<int>(thread_index() % kLanes); }
  // Each lane folds terms lane, lane + kLanes, …, then lanes are folded. Each lane with a term gets the result.
  template <int M, class Term, class Combine>
  static GRAPHRUN_TILE_FN float fold_lanes(float start, Term term, Combine combine) {
    float part = start;
    for (int m = lane(); m < M; m += kLanes) part = combine(part, term(m));
    GRAPHRUN_TILE_UNROLL
    for (int lanes = width_for(M, kLanes) / 2; lanes > 0; lanes /= 2) part = combine(part, shuffle_xor(part, lanes));
    return part;
  }
  // to[n] = fold of M terms, for N values of n.
  template <int N, int M, class Term, class Combine>
  static GRAPHRUN_TILE_FN void reduce(float* to, float start, Term term, Combine combine) {
    if constexpr (N >= M) {
      for (int n = lane(); n < N; n += kLanes) {
        float sum = start;
        for (int m = 0; m < M; ++m) sum = combine(sum, term(n, m));
        to[n] = sum;
      }
    } else {
      for (int n = 0; n < N; ++n) {
        const float sum = fold_lanes<M>(
            start, [&](int m) { return term(n, m); }, combine);
        if (lane() == 0) to[n] = sum;
      }
    }
  }
  template <int N, int M, class Term>
  static GRAPHRUN_TILE_FN void position(int* to, float sign, Term term) {
    for (int n = lane(); n < N; n += kLanes)
      to[n] = tile::position<1, M>(sign, [&](int, int m) { return term(n, m); })[0];
  }

  // Largest of M terms and sum of their exponentials, for softmax and related ops; every lane gets both.
  template <class Number, int M, class Term>
  struct Exponentials {
    Term term;
    float top, sum;
    GRAPHRUN_TILE_FN explicit Exponentials(Term terms) : term(terms) {
      top = fold_lanes<M>(-infinity(), term, [](float x, float y) { return larger(x, y); });
      sum = fold_lanes<M>(
          0.0f, [&](int m) { return value(m); }, [](float x, float y) { return x + y; });
    }
    GRAPHRUN_TILE_FN float value(int m) const { return unary<scalar::Exp, Number>(term(m) - top, 0.0f, 0.0f); }
    GRAPHRUN_TILE_FN float log_sum() const { return unary<scalar::Log, Number>(sum, 0.0f, 0.0f); }
  };
  template <class Number, int M, class Term>
  static GRAPHRUN_TILE_FN Exponentials<Number, M, Term> exponentials(Term term) {
    return Exponentials<Number, M, Term>(term);
  }

  // x has (A, M, B) features; M is the axis.
  template <class Number, int A, int M, int B, bool kLog = false>
  static GRAPHRUN_TILE_FN void softmax(float* to, const float* x) {
    for (int line = 0; line < A * B; ++line) {
      const int base = line / B * M * B + line % B;
      const auto e = exponentials<Number, M>([&](int m) { return x[base + m * B]; });
      const float log_sum = kLog ? e.log_sum() : 0.0f;
      for (int m = lane(); m < M; m += kLanes)
        to[base + m * B] = kLog ? x[base + m * B] - e.top - log_sum : float(Number(e.value(m)) / Number(e.sum));
    }
  }
  template <class Number, int A, int M, int B>
  static GRAPHRUN_TILE_FN void log_softmax(float* to, const float* x) {
    softmax<Number, A, M, B, true>(to, x);
  }
  // -sum(target * log_softmax(x)) of A lines; a class with target 0 adds nothing, however small its probability.
  template <class Number, int A, int M>
  static GRAPHRUN_TILE_FN void softmax_cross_entropy(float* to, const float* x, const float* target) {
    for (int line = 0; line < A; ++line) {
      const auto e = exponentials<Number, M>([&](int m) { return x[line * M + m]; });
      const float log_sum = e.log_sum();
      const float loss = fold_lanes<M>(
          0.0f,
          [&](int m) {
            const float t = target[line * M + m];
            return t != 0 ? t * (log_sum - (x[line * M + m] - e.top)) : 0.0f;
          },
          [](float a, float b) { return a + b; });
      if (lane() == 0) to[line] = loss;
    }
  }
  // With class indices; an invalid index gives NaN.
  template <class Number, int A, int M>
  static GRAPHRUN_TILE_FN void softmax_cross_entropy(float* to, const float* x, const int* target) {
    for (int line = 0; line < A; ++line) {
      const auto e = exponentials<Number, M>([&](int m) { return x[line * M + m]; });
      const int k = target[line];
      const float loss = k >= 0 && k < M ? e.log_sum() - (x[line * M + k] - e.top) : scalar::from_bits(0x7fc00000);
      if (lane() == 0) to[line] = loss;
    }
  }
  template <class Number, int N, int M, class Term>
  static GRAPHRUN_TILE_FN void logsumexp(float* to, Term term) {
    for (int n = 0; n < N; ++n) {
      const auto e = exponentials<Number, M>([&](int m) { return term(n, m); });
      const float top = e.top < 0 ? -e.top : e.top;
      const float all = top == infinity() ? e.top : e.top + e.log_sum();
      if (lane() == 0) to[n] = all;
    }
  }
};

// ---- over rows, by all threads of the block

// Prefetches `count` rows of kBytes bytes each, row r from row(r), by all blocks together.
template <int kThreads, int kBlocks, int kBytes, class Row>
GRAPHRUN_TILE_FN void prefetch_rows(int count, Row row, int thread = static_cast<int>(thread_index())) {
  constexpr int kLine = 128, kLines = (kBytes + kLine - 1) / kLine;
  for (int at = static_cast<int>(block_index()) * kThreads + thread; at < count * kLines; at += kThreads * kBlocks)
    prefetch(reinterpret_cast<const char*>(row(at / kLines)) + at % kLines * kLine);
}
// Calls f(n, fold of `count` rows with M terms each) for n = first, first + 1, … below N, at most 32 of them, each in
// one thread. `shared` holds one float per thread; it may be in use until the previous barrier. Has two barriers.
template <int kThreads, int N, int M, int kBytes, class Term, class Combine, class F>
GRAPHRUN_TILE_FN void fold_rows(unsigned char (&shared)[kBytes], int first, int count, float start, Term term,
                                Combine combine, F f) {
  static_assert(kThreads * sizeof(float) <= kBytes);
  float* const parts = reinterpret_cast<float*>(shared);
  constexpr int kWidth = width_for(N, 32), kLines = kThreads / kWidth, kTogether = 16;
  const int n = first + static_cast<int>(thread_index()) % kWidth, line = static_cast<int>(thread_index()) / kWidth;
  constexpr int kTerms = N == 1 ? M : 1;  // for a single result, the terms of a row are distributed like rows
  const int all = count * kTerms;
  float part = start;
  if (n < N) {
    GRAPHRUN_TILE_LOOP
    for (int at = line; at < all; at += kTogether * kLines) {
      GRAPHRUN_TILE_LOOP
      for (int m = 0; m < M / kTerms; ++m) {
        float x[kTogether];
        GRAPHRUN_TILE_FOR (k, kTogether) {
          const int i = at + k * kLines;
          x[k] = i < all ? term(i / kTerms, n, kTerms == 1 ? m : i % kTerms) : start;
        }
        GRAPHRUN_TILE_FOR (k, kTogether) part = combine(part, x[k]);
      }
    }
  }
  GRAPHRUN_TILE_UNROLL
  for (int lanes = kWidth; lanes < 32; lanes *= 2) part = combine(part, shuffle_xor(part, lanes));
  barrier();
  if (lane() < kWidth) parts[thread_index() / 32 * kWidth + lane()] = part;
  barrier();
  if (static_cast<int>(thread_index()) < kWidth && n < N) {
    float all = parts[thread_index()];
    for (int warp = 1; warp < kThreads / 32; ++warp) all = combine(all, parts[warp * kWidth + thread_index()]);
    f(n, all);
  }
}

// ---- over elements of arrays, distributed over all blocks

// Calls use(i, fetched) for elements i of kAll; fetch(i) loads other operands, a few at a time.
template <int kThreads, int kBlocks, int kAll, class Fetch, class Use>
GRAPHRUN_TILE_FN void each_element(Fetch fetch, Use use) {
  constexpr int kStep = kThreads * kBlocks, kMax = (kAll + kStep - 1) / kStep;
  const int first = static_cast<int>(block_index()) * kThreads + static_cast<int>(thread_index());
  each_fetched < kStep, kMax<4 ? kMax : 4>(first, kAll, fetch, use);
}

// Sums over elements, in shared memory: each thread adds its own, then each block its threads', then every block the
// sums of all blocks, read from (sums, blocks). A grid sync is required between send() and receive(). The assignment of
// elements to threads fixes the order of sums.
template <int kThreads, int kSums>
struct ElementSums {
  float parts[kSums][kThreads], totals[kSums];

  GRAPHRUN_TILE_FN void start() {
    for (int sum = 0; sum < kSums; ++sum) parts[sum][thread_index()] = 0.0f;
  }
  GRAPHRUN_TILE_FN void add(int sum, float x) { parts[sum][thread_index()] += x; }
  // Begins with a barrier; another is required before start().
  template <int kBlocks>
  GRAPHRUN_TILE_FN void send(float* to) {
    barrier();
    each_row<kThreads, 0>(kSums, [&](int sum) {
      const float all = total<kThreads>(parts[sum]);
      if (lane() == 0) to[sum * kBlocks + static_cast<int>(block_index())] = all;
    });
  }
  // Ends with a barrier.
  template <int kBlocks>
  GRAPHRUN_TILE_FN void receive(const float* from) {
    each_row<kThreads, 0>(kSums, [&](int sum) {
      const float all = total<kBlocks>(from + sum * kBlocks);
      if (lane() == 0) totals[sum] = all;
    });
    barrier();
  }

 private:
  template <int kCount>
  static GRAPHRUN_TILE_FN float total(const float* x) {
    return Lanes<32>::fold_lanes<kCount>(
        0.0f, [&](int i) { return x[i]; }, [](float a, float b) { return a + b; });
  }
};

}  // namespace graphrun::cuda::tile::by_block
