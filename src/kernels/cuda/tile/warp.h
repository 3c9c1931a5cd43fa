// warp.h: the warp tile: a warp processes 16 rows (samples) at a time, and its lanes share their features.
// Contract: the functions of thread.h under the same names, for rows of a warp. Lane 4 g + t has rows g and g + 8. With
// more than four features it has features 2 t and 2 t + 1 of every eight, the layout of a tensor core's result; entries
// past the last feature are ignored. With four or fewer it has all of them. Indices are of type Index, not int.
// Products of more than four by more than four features are sums of three tensor-core products of factors split in two;
// the error is about 3e-7 of the sum of the terms' magnitudes. All lanes of a warp call together. Leaves to others:
// sums over rows (warp_sums.h), over warps (exchange.h).
#pragma once

#include "kernels/cuda/tile/thread.h"

namespace graphrun::cuda::tile::by_warp {

GRAPHRUN_TILE_FN int lane_row() {
  return static_cast<int>(thread_index() % 32 / 4);
}
GRAPHRUN_TILE_FN int lane_column() {
  return static_cast<int>(thread_index() % 4);
}

// Feature of a row of this lane: its compile-time position among the lane's columns.
struct Index {
  int column, half, feature;  // half: 0 for row g, 1 for row g + 8
  GRAPHRUN_TILE_FN operator int() const { return feature; }
};
// Feature k of the same row, which has four or fewer.
GRAPHRUN_TILE_FN Index at(Index i, int k) {
  return {k, i.half, k};
}

template <class T, int N>
struct Row {
  T v[columns_of(N)][2];
  GRAPHRUN_TILE_FN T operator[](Index i) const { return v[i.column][i.half]; }
};

// Calls f(column, feature, whether that feature exists) for each column of a lane.
template <int N, class F>
GRAPHRUN_TILE_FN void each_column(F f) {
  GRAPHRUN_TILE_FOR (c, columns_of(N)) {
    if constexpr (is_narrow(N)) {
      f(c, c, true);
    } else {
      const int feature = c / 2 * 8 + 2 * lane_column() + c % 2;
      f(c, feature, c / 2 * 8 + 8 <= N || feature < N);
    }
  }
}

template <int N, class F>
GRAPHRUN_TILE_FN auto map(F f) {
  Row<decltype(f(Index{})), N> out;
  each_column<N>([&](int c, int feature, bool there) {
    GRAPHRUN_TILE_FOR (half, 2) out.v[c][half] = f(Index{c, half, there ? feature : N - 1});
  });
  return out;
}

// ---- rows in memory

// The two rows of a lane in a tile. A row out of range is not live and is replaced by the last one.
template <bool kWhole>
struct Rows {
  unsigned first, count;  // first: this lane's first row
  GRAPHRUN_TILE_FN bool live(int half) const { return kWhole || first + 8u * static_cast<unsigned>(half) < count; }
  GRAPHRUN_TILE_FN unsigned row(int half) const {
    return live(half) ? first + 8u * static_cast<unsigned>(half) : count - 1;
  }
};

// Two adjacent features of a lane, which are aligned in rows of eights.
template <class T>
struct alignas(2 * sizeof(T)) Two {
  T x, y;
};
template <class T>
GRAPHRUN_TILE_CONSTEXPR bool has_pairs(int features, int stride) {
  return !is_narrow(features) && features % 8 == 0 && stride % 8 == 0 && sizeof(T) == 4;
}

// Loads consecutive features of the data row place(row), of `kStride` features.
template <int N, int kStride = N, class T, class Tile, class Place>
GRAPHRUN_TILE_FN Row<T, N> load(const T* from, const Tile& rows, Place place) {
  Row<T, N> out;
  GRAPHRUN_TILE_FOR (half, 2) {
    const T* const row = from + place(rows.row(half)) * static_cast<unsigned long long>(kStride);
    if constexpr (has_pairs<T>(N, kStride)) {
      GRAPHRUN_TILE_FOR (b, N / 8) {
        const auto two = *reinterpret_cast<const Two<T>*>(row + 8 * b + 2 * lane_column());
        out.v[2 * b][half] = two.x, out.v[2 * b + 1][half] = two.y;
      }
    } else {
      each_column<N>([&](int c, int feature, bool there) { out.v[c][half] = row[there ? feature : 0]; });
    }
  }
  return out;
}
template <int N, int kStride = N, class T, class Tile>
GRAPHRUN_TILE_FN Row<T, N> load(const T* from, const Tile& rows) {
  return load<N, kStride>(from, rows, [](unsigned row) { return static_cast<unsigned long long>(row); });
}
template <int kStride = 0, int N, class T, class Tile>  // 0: N
GRAPHRUN_TILE_FN void store(T* to, const Tile& rows, const Row<T, N>& x) {
  GRAPHRUN_TILE_FOR (half, 2) {
    if (!rows.live(half)) continue;
    T* const row = to + rows.row(half) * static_cast<unsigned long long>(kStride > 0 ? kStride : N);
    if constexpr (has_pairs<T>(N, kStride > 0 ? kStride : N)) {
      GRAPHRUN_TILE_FOR (b, N / 8)
        *reinterpret_cast<Two<T>*>(row + 8 * b + 2 * lane_column()) = {x.v[2 * b][half], x.v[2 * b + 1][half]};
    } else {
      each_column<N>([&](int c, int feature, bool there) {
        if (there && (!is_narrow(N) || lane_column() == c)) row[feature] = x.v[c][half];
      });
    }
  }
}

// Calls body(rows, fetch(rows)) for tiles first, first + kWarps, …; the next tile's data are loaded while the current
// one is computed. For a batch that may be partial, `count` is the number of rows.
template <unsigned kCapacity, unsigned kWarps, bool kPartial, class Fetch, class Body>
GRAPHRUN_TILE_FN void for_rows(unsigned first, unsigned count, Fetch fetch, Body body) {
  if constexpr (!kPartial) count = kCapacity;
  const unsigned tiles = (count + kTileRows - 1) / kTileRows;
  const auto rows = [&](unsigned tile) {
    return Rows < !kPartial &&
           kCapacity % kTileRows == 0 > {tile * kTileRows + static_cast<unsigned>(lane_row()), count};
  };
  if (first >= tiles) return;
  auto next = fetch(rows(first));
  GRAPHRUN_TILE_LOOP
  for (unsigned tile = first; tile < tiles; tile += kWarps) {
    const auto data = next;
    next = fetch(rows(tile + kWarps < tiles ? tile + kWarps : tile));
    warp_barrier();  // other lanes may still be reading what the previous tile wrote to scratch
    body(rows(tile), data);
  }
}

// ---- products

// Factor as a sum of two: rounded to the bits that a tensor core uses, and the remainder, with as many bits. The
// rounding instruction (cvt.rna) expands to four on devices, to handle NaN; here a NaN survives in the remainder.
template <int N>
struct Split {
  float high[N], low[N];
  GRAPHRUN_TILE_FN void set(int i, float x) {
    high[i] = scalar::from_bits((scalar::bits(x) + 0x1000) & ~0x1fff);
    low[i] = x - high[i];
  }
};
GRAPHRUN_TILE_FN void multiply_add(float (&c)[4], const Split<4>& a, const Split<2>& b) {
  tile::multiply_add(c, a.low, b.high);
  tile::multiply_add(c, a.high, b.low);
  tile::multiply_add(c, a.high, b.high);
}

// Weights of K features for N results, (K, N) or the transpose of (N, K), in shared memory.
template <int K_, int N_, bool kTransposed>
struct Weights {
  static constexpr int K = K_, N = N_;
  const float* w;

  GRAPHRUN_TILE_FN float number(int k, int n) const {
    return k < K && n < N ? w[kTransposed ? n * K + k : k * N + n] : 0.0f;
  }
  // Weight for the lane's column kc and the result's column nc.
  GRAPHRUN_TILE_FN float column(int kc, int nc) const {
    const int k = is_narrow(K) ? kc : kc / 2 * 8 + 2 * lane_column() + kc % 2;
    const int n = is_narrow(N) ? nc : nc / 2 * 8 + 2 * lane_column() + nc % 2;
    return number(k, n);
  }
  // Tensor-core fragment of features 8 q to 8 q + 7, results 8 b to 8 b + 7.
  GRAPHRUN_TILE_FN Split<2> split(int q, int b) const {
    Split<2> out;
    GRAPHRUN_TILE_FOR (i, 2) out.set(i, number(8 * q + 2 * lane_column() + i, 8 * b + lane_row()));
    return out;
  }
};
template <int K, int N>
GRAPHRUN_TILE_FN Weights<K, N, false> weights(const float* w) {
  return {w};
}
template <int K, int N>
GRAPHRUN_TILE_FN Weights<K, N, true> weights_transposed(const float* w) {
  return {w};
}

// The same weights in registers, for all rows of a step.
template <class Weights>
struct Held {
  static constexpr int K = Weights::K, N = Weights::N;
  static constexpr bool kSplit = !is_narrow(K) && !is_narrow(N);
  Split<2> splits[kSplit ? blocks_of(K) : 1][kSplit ? blocks_of(N) : 1];
  float columns[kSplit ? 1 : columns_of(K)][kSplit ? 1 : columns_of(N)];

  GRAPHRUN_TILE_FN explicit Held(const Weights& w) {
    if constexpr (kSplit) {
      GRAPHRUN_TILE_FOR (q, blocks_of(K))
        GRAPHRUN_TILE_FOR (b, blocks_of(N)) splits[q][b] = w.split(q, b);
    } else {
      GRAPHRUN_TILE_FOR (k, columns_of(K))
        GRAPHRUN_TILE_FOR (n, columns_of(N)) columns[k][n] = w.column(k, n);
    }
  }
  GRAPHRUN_TILE_FN float column(int kc, int nc) const { return columns[kc][nc]; }
  GRAPHRUN_TILE_FN const Split<2>& split(int q, int b) const { return splits[q][b]; }
};
template <class Weights>
GRAPHRUN_TILE_FN Held<Weights> held(const Weights& w) {
  return Held<Weights>(w);
}

// Combines the values of the four lanes that share rows.
template <class Combine>
GRAPHRUN_TILE_FN float over_columns(float x, Combine combine) {
  x = combine(x, shuffle_xor(x, 1));
  return combine(x, shuffle_xor(x, 2));
}

// Initial values of the results: zero, or a bias for each, the same for all rows (8-byte aligned).
struct FromZero {
  GRAPHRUN_TILE_FN Floats<2> operator()(int) const { return {}; }
};
template <int N>
struct FromBias {
  const float* bias;
  GRAPHRUN_TILE_FN Floats<2> operator()(int n) const {
    if constexpr (N % 8 == 0) return *reinterpret_cast<const Floats<2>*>(bias + n);
    return {{n < N ? bias[n] : 0.0f, n + 1 < N ? bias[n + 1] : 0.0f}};
  }
};

template <int K, class Weights, class Start = FromZero>
GRAPHRUN_TILE_FN Row<float, Weights::N> matmul(const Row<float, K>& x, const Weights& w, Start start = {}) {
  constexpr int N = Weights::N;
  Row<float, N> out;
  if constexpr (!is_narrow(K) && !is_narrow(N)) {
    float c[blocks_of(N)][4];
    GRAPHRUN_TILE_FOR (b, blocks_of(N)) {
      const Floats<2> first = start(8 * b + 2 * lane_column());
      GRAPHRUN_TILE_FOR (i, 4) c[b][i] = first.value[i % 2];
    }
    GRAPHRUN_TILE_FOR (q, blocks_of(K)) {
      Split<4> a;
      GRAPHRUN_TILE_FOR (i, 4) {
        const bool there = 8 * q + 8 <= K || 8 * q + 2 * lane_column() + i / 2 < K;
        a.set(i, there ? x.v[2 * q + i / 2][i % 2] : 0.0f);
      }
      GRAPHRUN_TILE_FOR (b, blocks_of(N)) multiply_add(c[b], a, w.split(q, b));
    }
    GRAPHRUN_TILE_FOR (b, blocks_of(N))
      GRAPHRUN_TILE_FOR (i, 4) out.v[2 * b + i % 2][i / 2] = c[b][i];
  } else {
    GRAPHRUN_TILE_FOR (n, columns_of(N)) {
      GRAPHRUN_TILE_FOR (half, 2) {
        float sum = 0.0f;
        each_column<K>(
            [&](int k, int, bool there) { sum = scalar::fma(there ? x.v[k][half] : 0.0f, w.column(k, n), sum); });
        if constexpr (!is_narrow(K)) sum = over_columns(sum, [](float a, float b) { return a + b; });
        out.v[n][half] = sum;
      }
    }
  }
  return out;
}

// x times w, plus a bias.
template <int K, class Weights>
GRAPHRUN_TILE_FN Row<float, Weights::N> affine(const Row<float, K>& x, const Weights& w, const float* bias) {
  static_assert(!is_narrow(K) && !is_narrow(Weights::N));
  return matmul(x, w, FromBias<Weights::N>{bias});
}

// ---- along all features of a row

// fold(fold(start, x[0]), x[1]), …, in each lane and then over lanes; `start` must be the neutral element.
template <int N, class Fold>
GRAPHRUN_TILE_FN Row<float, 1> reduce(float start, const Row<float, N>& x, Fold fold) {
  Row<float, 1> out;
  GRAPHRUN_TILE_FOR (half, 2) {
    float sum = start;
    each_column<N>([&](int c, int, bool there) { sum = there ? fold(sum, x.v[c][half]) : sum; });
    if constexpr (!is_narrow(N)) sum = over_columns(sum, fold);
    out.v[0][half] = sum;
  }
  return out;
}
template <int N>
GRAPHRUN_TILE_FN Row<float, 1> sum_of(const Row<float, N>& x) {
  return reduce(0.0f, x, [](float a, float b) { return a + b; });
}

// Index of the first largest (sign 1) or smallest (-1) feature; NaN counts as both.
template <int N>
GRAPHRUN_TILE_FN Row<int, 1> position(float sign, const Row<float, N>& x) {
  // Returns whether y at j takes precedence over `best` at i.
  const auto before = [](float y, float j, float best, float i) {
    if (y != y) return best == best || j < i;
    return best == best && (y > best || (y == best && j < i));
  };
  Row<int, 1> out;
  GRAPHRUN_TILE_FOR (half, 2) {
    float value = -infinity(), index = static_cast<float>(N);
    each_column<N>([&](int c, int feature, bool there) {
      const float y = sign * x.v[c][half], j = static_cast<float>(feature);
      if (there && before(y, j, value, index)) value = y, index = j;
    });
    if constexpr (!is_narrow(N)) {
      GRAPHRUN_TILE_UNROLL
      for (int lanes = 1; lanes < 4; lanes *= 2) {
        const float y = shuffle_xor(value, lanes), j = shuffle_xor(index, lanes);
        if (before(y, j, value, index)) value = y, index = j;
      }
    }
    out.v[0][half] = static_cast<int>(index);
  }
  return out;
}

// Maximum, exponentials of x - maximum, and their sum, for softmax and related ops.
template <class Number, int N>
struct Exponentials {
  Row<float, 1> top, sum;
  Row<float, N> values;
  GRAPHRUN_TILE_FN explicit Exponentials(const Row<float, N>& x) {
    top = reduce(-infinity(), x, larger);
    values = map<N>([&](Index i) { return unary<scalar::Exp, Number>(x[i] - top[at(i, 0)], 0.0f, 0.0f); });
    sum = sum_of(values);
  }
  GRAPHRUN_TILE_FN Row<float, 1> log_sum() const {
    return map<1>([&](Index i) { return unary<scalar::Log, Number>(sum[i], 0.0f, 0.0f); });
  }
};
template <class Number, int N>
GRAPHRUN_TILE_FN Row<float, N> softmax(const Row<float, N>& x) {
  const Exponentials<Number, N> e(x);
  return map<N>([&](Index i) { return float(Number(e.values[i]) / Number(e.sum[at(i, 0)])); });
}
template <class Number, int N>
GRAPHRUN_TILE_FN Row<float, N> log_softmax(const Row<float, N>& x) {
  const Exponentials<Number, N> e(x);
  const auto log_sum = e.log_sum();
  return map<N>([&](Index i) { return x[i] - e.top[at(i, 0)] - log_sum[at(i, 0)]; });
}
// -sum(target * log_softmax(x)); a class with target 0 adds nothing, however small its probability.
template <class Number, int N>
GRAPHRUN_TILE_FN Row<float, 1> softmax_cross_entropy(const Row<float, N>& x, const Row<float, N>& target) {
  const Exponentials<Number, N> e(x);
  const auto log_sum = e.log_sum();
  return sum_of(map<N>([&](Index i) {
    const float t = target[i];
    return t != 0 ? t * (log_sum[at(i, 0)] - (x[i] - e.top[at(i, 0)])) : 0.0f;
  }));
}
// With class indices; an invalid index gives NaN.
template <class Number, int N>
GRAPHRUN_TILE_FN Row<float, 1> softmax_cross_entropy(const Row<float, N>& x, const Row<int, 1>& target) {
  const Exponentials<Number, N> e(x);
  const auto log_sum = e.log_sum();
  const auto loss = sum_of(map<N>(
      [&](Index i) { return target[at(i, 0)] == i.feature ? log_sum[at(i, 0)] - (x[i] - e.top[at(i, 0)]) : 0.0f; }));
  return map<1>([&](Index i) { return target[i] >= 0 && target[i] < N ? loss[i] : scalar::from_bits(0x7fc00000); });
}
template <class Number, int N>
GRAPHRUN_TILE_FN Row<float, 1> logsumexp(const Row<float, N>& x) {
  const Exponentials<Number, N> e(x);
  const auto log_sum = e.log_sum();
  return map<1>([&](Index i) {
    const float top = e.top[i] < 0 ? -e.top[i] : e.top[i];
    return top == infinity() ? e.top[i] : e.top[i] + log_sum[i];
  });
}

}  // namespace graphrun::cuda::tile::by_warp
