// pair.h: the pair tile: two adjacent lanes hold the values of one row, and share its features and sums.
// Contract: the functions of thread.h under the same names. A Row is whole: both lanes hold identical copies. A Half is
// split: the even lane has the first ceil(N / 2) features, the odd lane the rest, which for an odd N includes the last
// one twice, of which one counts. Products yield a Half if they have two or more features. All lanes of a warp call;
// those without a row repeat another's. Leaves to others: which values are halves
// (executors/cuda_planner/tiles/lanes.h).
#pragma once

#include "kernels/cuda/tile/step.h"

namespace graphrun::cuda::tile::by_pair {

// Returns whether this lane has the second half.
GRAPHRUN_TILE_FN bool is_second() {
  return thread_index() % 2 != 0;
}

// Feature `local` of a lane's half of N. Converts to the feature's index among all N.
template <int N>
struct At {
  int local;
  GRAPHRUN_TILE_FN int of_first() const { return local; }
  GRAPHRUN_TILE_FN int of_second() const { return half_of(N) + local < N ? half_of(N) + local : N - 1; }
  // Nearly all features share one offset, which a lane adds to its addresses once.
  GRAPHRUN_TILE_FN operator int() const { return of_first() + (is_second() ? of_second() - of_first() : 0); }
  // Selects from an object with all N features, using compile-time indices only.
  template <class F>
  GRAPHRUN_TILE_FN auto of(F f) const {
    const auto first = f(of_first()), second = f(of_second());
    return is_second() ? second : first;
  }
};

template <class T, int N>
struct Half : Row<T, half_of(N)> {
  GRAPHRUN_TILE_FN T operator[](const At<N>& i) const { return this->v[i.local]; }
};

// Half whose feature i is f(i); i is an At.
template <int N, class F>
GRAPHRUN_TILE_FN auto halves(F f) {
  Half<decltype(f(At<N>{0})), N> out;
  GRAPHRUN_TILE_FOR (i, half_of(N)) out.v[i] = f(At<N>{i});
  return out;
}
template <class T, int N>
GRAPHRUN_TILE_FN Half<T, N> half(const Row<T, N>& x) {
  return halves<N>([&](const At<N>& i) { return i.of([&](int k) { return x[k]; }); });
}
template <class T, int N>
GRAPHRUN_TILE_FN Row<T, N> whole(const Half<T, N>& x) {
  Row<T, N> out;
  GRAPHRUN_TILE_UNROLL
  for (int i = half_of(N) - 1; i >= 0; --i) {
    const float mine = static_cast<float>(x.v[i]), other = shuffle_xor(mine, 1);
    const At<N> at{i};
    out.v[at.of_second()] = static_cast<T>(is_second() ? mine : other);
    out.v[at.of_first()] = static_cast<T>(is_second() ? other : mine);
  }
  return out;
}

// ---- products

// Adds both lanes' parts of N sums; each lane gets the complete sums of its half.
template <int N>
GRAPHRUN_TILE_FN auto exchanged(const Row<float, N>& part) {
  if constexpr (N == 1) {
    return Row<float, 1>{{part[0] + shuffle_xor(part[0], 1)}};
  } else {
    return halves<N>([&](const At<N>& i) {
      const float first = part[i.of_first()], second = part[i.of_second()];
      return (is_second() ? second : first) + shuffle_xor(is_second() ? first : second, 1);
    });
  }
}
// This lane's features, with the duplicate of an odd N set to zero.
template <int K>
GRAPHRUN_TILE_FN Half<float, K> once(const Half<float, K>& x) {
  Half<float, K> out = x;
  if constexpr (K % 2 != 0) out.v[half_of(K) - 1] = is_second() ? 0.0f : x.v[half_of(K) - 1];
  return out;
}

using tile::matmul;
using tile::matmul_transposed;

// Weights of this lane's features of N, kStride numbers apart: two base addresses plus compile-time offsets. Deriving
// those by itself took the compiler most of its time.
template <int N, int kStride>
class Weights {
 public:
  GRAPHRUN_TILE_FN explicit Weights(const float* w)
      : most_(w + (is_second() ? half_of(N) * kStride : 0)), last_(w + (is_second() ? N / 2 * kStride : 0)) {}
  // Number `offset` of a feature's weights.
  GRAPHRUN_TILE_FN float at(int local, int offset) const {
    return (local < N / 2 ? most_ : last_)[local * kStride + offset];
  }

 private:
  const float *most_, *last_;  // last_: for the last slot of an odd N, a duplicate in the second lane
};

// x (1, K) times w (K, N), or times the transpose of w (N, K).
template <int Q, int K, int N, bool kTransposed = false>
GRAPHRUN_TILE_FN auto matmul(const Half<float, K>& x, const float* w) {
  static_assert(Q == 1);
  const Half<float, K> mine = once(x);
  const Weights<K, kTransposed ? 1 : N> weights(w);
  return exchanged(map<N>([&](int n) {
    float sum = 0;
    GRAPHRUN_TILE_FOR (k, half_of(K)) sum = scalar::fma(mine.v[k], weights.at(k, kTransposed ? n * K : n), sum);
    return sum;
  }));
}
template <int K, int N, bool kTransposed = false>
GRAPHRUN_TILE_FN Half<float, N> matmul_halves(const Row<float, K>& x, const float* w) {
  const Weights<N, kTransposed ? K : 1> weights(w);
  return halves<N>([&](const At<N>& n) {
    float sum = 0;
    GRAPHRUN_TILE_FOR (k, K) sum = scalar::fma(x[k], weights.at(n.local, kTransposed ? k : k * N), sum);
    return sum;
  });
}
template <int Q, int K, int N>
GRAPHRUN_TILE_FN auto matmul_transposed(const Half<float, K>& x, const float* w) {
  return matmul<Q, K, N, true>(x, w);
}
template <int K, int N>
GRAPHRUN_TILE_FN Half<float, N> matmul_transposed_halves(const Row<float, K>& x, const float* w) {
  return matmul_halves<K, N, true>(x, w);
}

// ---- sums over rows, half of them in each lane, from index kAt on

// The transpose of x (1, K) times y (1, N): this lane's columns or rows.
template <int kAt, int Q, int K, int N, int V>
GRAPHRUN_TILE_FN void add_product(float (&sums)[V], const Row<float, K>& x, const Half<float, N>& y, bool live) {
  tile::add_product<kAt, 1, K, half_of(N)>(sums, x, y, live);
}
template <int kAt, int Q, int K, int N, int V>
GRAPHRUN_TILE_FN void add_product(float (&sums)[V], const Half<float, K>& x, const Row<float, N>& y, bool live) {
  tile::add_product<kAt, 1, half_of(K), N>(sums, x, y, live);
}
// Index of element e among the sums of both lanes; those of the second lane begin at `second`.
template <int N>
GRAPHRUN_TILE_FN int of_columns(int at, int second, int e) {
  return e % N / half_of(N) * second + at + e / N * half_of(N) + e % N % half_of(N);
}
template <int K, int N>
GRAPHRUN_TILE_FN int of_rows(int at, int second, int e) {
  return e / N / half_of(K) * second + at + e / N % half_of(K) * N + e % N;
}

// This lane's half of N sums becomes combine(sum, term(n, m)) for M terms in order.
template <int kAt, int N, int M, int V, class Term, class Combine>
GRAPHRUN_TILE_FN void combine(float (&sums)[V], float nothing, Term term, Combine combine, bool live) {
  const auto mine = [&](int n, int m) { return At<N>{n}.of([&](int k) { return term(k, m); }); };
  tile::combine<kAt, half_of(N), M>(sums, nothing, mine, combine, live);
}
template <int kAt, int N, int V, class Combine>
GRAPHRUN_TILE_FN void combine(float (&sums)[V], float nothing, const Half<float, N>& x, Combine combine, bool live) {
  tile::combine<kAt, half_of(N), 1>(
      sums, nothing, [&](int n, int) { return x.v[n]; }, combine, live);
}

// Combines each lane's sums over the warp's rows into `row`; second lanes' sums start at kSecond. All lanes call.
template <class Combine, int kSecond, int kValues>
GRAPHRUN_TILE_FN void combine_lanes(float (&part)[kValues], float* row) {
  static_assert(kSecond >= kValues);
  tile::combine_lanes<Combine, 2>(part, row, is_second() ? kSecond : 0);
}

// ---- rows

// Like tile::for_rows(), kRows rows at a time; `first` is this pair's. Lanes of a warp stay together: those without a
// row repeat the last one, with `live` false. A warp has kPlaces adjacent rows, of which each pair has some.
template <u32 kCapacity, u32 kRows, int kUnrolled, bool kPartial, bool kAlone, u32 kPlaces = 16, class Row>
GRAPHRUN_TILE_FN void for_rows(u32 first, u32 count, Row row) {
  if constexpr (!kPartial && kCapacity / kRows <= kUnrolled) {
    tile::for_rows<kCapacity, kRows, kUnrolled, false, kAlone>(first, count, row);
  } else {
    const u32 all = kPartial ? count : kCapacity, place = first % kPlaces;
    GRAPHRUN_TILE_LOOP
    for (u32 of_warp = first - place; of_warp < all; of_warp += kRows) {
      const u32 r = of_warp + place;
      const bool live = r < all;
      row(0, live ? r : all - 1, live);
    }
  }
}

}  // namespace graphrun::cuda::tile::by_pair
