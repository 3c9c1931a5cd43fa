// warp_sums.h: sums over the rows of a warp's tiles, of values and of products of two values.
// Contract: each lane holds its part of every sum in registers. Products of more than four by more than four features
// use tensor cores, tile by tile; their sums are added in f32, since a tensor core truncates. All lanes of a warp call
// together. Leaves to others: sums over warps (exchange.h).
#pragma once

#include "kernels/cuda/tile/warp.h"

namespace graphrun::cuda::tile::by_warp {

// Sums kAt, kAt + 1, …: K by N of them (SumShape).
template <int kAt_, int K_, int N_>
struct Sum {
  static constexpr int kAt = kAt_, K = K_, N = N_;
  static constexpr bool kBlocks = sum_shape(K, N).blocks, kSwapped = sum_shape(K, N).swapped;
  static constexpr int kLong = kSwapped ? N : K, kShort = kSwapped ? K : N;
  static constexpr int kTall = sum_shape(K, N).tall, kWide = sum_shape(K, N).wide;
  static constexpr int kNumbers = sum_shape(K, N).numbers, kScratch = sum_shape(K, N).scratch;
  static constexpr int kStride = SumShape::kStride;
};

// All sums of a warp: a list of Sum, and the numbers of each lane.
template <class... S>
class Sums {
  // Totals over the sums before the one at kAt.
  struct Place {
    int numbers = 0, scratch = 0;  // per lane; floats
  };
  GRAPHRUN_TILE_CONSTEXPR static Place place_of(int kAt) {
    Place place;
    bool before = true;
    ((before = before && S::kAt != kAt, place.numbers += before ? S::kNumbers : 0,
      place.scratch += before ? S::kScratch : 0),
     ...);
    return place;
  }
  static constexpr int kNumbers = (S::kNumbers + ...);

 public:
  static constexpr int kScratch = (S::kScratch + ...);  // floats per warp

  // `scratch` belongs to this warp, 16-byte aligned; a warp_barrier() is needed between its readers and writers.
  GRAPHRUN_TILE_FN explicit Sums(float* scratch) : scratch_(scratch) {
    GRAPHRUN_TILE_FOR (i, kNumbers) v_[i] = 0.0f;
  }

  // Adds the transpose of x times y.
  template <int kAt, int K, int N, class Tile>
  GRAPHRUN_TILE_FN void add_product(const Row<float, K>& all_x, const Row<float, N>& all_y, const Tile& rows) {
    using To = Sum<kAt, K, N>;
    constexpr int kFirst = place_of(kAt).numbers;
    const auto x = live_rows(all_x, rows);
    const auto y = live_rows(all_y, rows);
    if constexpr (To::kBlocks) {
      constexpr int kScratchFirst = place_of(kAt).scratch;
      float* const left = scratch_ + kScratchFirst;
      float* const right = left + 16 * To::kTall * To::kStride;
      turn<To::kStride>(To::kSwapped ? right : left, x);
      turn<To::kStride>(To::kSwapped ? left : right, y);
      warp_barrier();
      multiply_turned<To>(left, right, kFirst);
    } else {
      GRAPHRUN_TILE_FOR (k, columns_of(K)) {
        GRAPHRUN_TILE_FOR (n, columns_of(N)) {
          float& sum = v_[kFirst + k * columns_of(N) + n];
          GRAPHRUN_TILE_FOR (half, 2) sum = scalar::fma(x.v[k][half], y.v[n][half], sum);
        }
      }
    }
  }
  // Adds x itself.
  template <int kAt, int N, class Tile>
  GRAPHRUN_TILE_FN void add(const Row<float, N>& all_x, const Tile& rows) {
    constexpr int kFirst = place_of(kAt).numbers;
    const auto x = live_rows(all_x, rows);
    GRAPHRUN_TILE_FOR (n, columns_of(N)) v_[kFirst + n] += x.v[n][0] + x.v[n][1];
  }

  // Combines all sums over the warp into `to` in shared memory.
  GRAPHRUN_TILE_FN void finish(float* to) { (finish_one<S>(to), ...); }

 private:
  template <int N, class Tile>
  GRAPHRUN_TILE_FN static Row<float, N> live_rows(const Row<float, N>& x, const Tile& rows) {
    Row<float, N> out;
    GRAPHRUN_TILE_FOR (c, columns_of(N))
      GRAPHRUN_TILE_FOR (half, 2) out.v[c][half] = rows.live(half) ? x.v[c][half] : 0.0f;
    return out;
  }

  // Stores x transposed into scratch.
  template <int kStride, int N>
  GRAPHRUN_TILE_FN static void turn(float* to, const Row<float, N>& x) {
    to += 2 * lane_column() * kStride + lane_row();
    GRAPHRUN_TILE_FOR (c, columns_of(N))
      GRAPHRUN_TILE_FOR (half, 2) to[(c / 2 * 8 + c % 2) * kStride + 8 * half] = x.v[c][half];
  }
  template <class To>
  GRAPHRUN_TILE_FN void multiply_turned(const float* left, const float* right, int first) {
    const int lane = static_cast<int>(thread_index() % 32), row = lane % 8, matrix = lane / 8;
    Split<2> b[To::kWide][2];  // rows 0 to 7, 8 to 15
    GRAPHRUN_TILE_FOR (n, To::kWide) {
      float x[4];
      load_matrices(x, right + (8 * n + row) * To::kStride + 4 * matrix);
      GRAPHRUN_TILE_FOR (i, 4) b[n][i / 2].set(i % 2, x[i]);
    }
    GRAPHRUN_TILE_FOR (m, To::kTall) {
      float c[To::kWide][4] = {};
      GRAPHRUN_TILE_FOR (rows, 2) {
        float x[4];
        load_matrices(x, left + (16 * m + matrix % 2 * 8 + row) * To::kStride + 8 * rows + matrix / 2 * 4);
        Split<4> a;
        GRAPHRUN_TILE_FOR (i, 4) a.set(i, x[i]);
        GRAPHRUN_TILE_FOR (n, To::kWide) multiply_add(c[n], a, b[n][rows]);
      }
      GRAPHRUN_TILE_FOR (n, To::kWide)
        GRAPHRUN_TILE_FOR (i, 4) v_[first + (m * To::kWide + n) * 4 + i] += c[n][i];
    }
  }

  template <class To>
  GRAPHRUN_TILE_FN void finish_one(float* to) {
    constexpr int kFirst = place_of(To::kAt).numbers;
    to += To::kAt;
    if constexpr (To::kBlocks) {
      GRAPHRUN_TILE_FOR (i, To::kNumbers) {
        const int m = i / 4 / To::kWide * 16 + i % 4 / 2 * 8 + lane_row();
        const int n = i / 4 % To::kWide * 8 + 2 * lane_column() + i % 2;
        if (m < To::kLong && n < To::kShort) to[To::kSwapped ? n * To::N + m : m * To::N + n] = v_[kFirst + i];
      }
    } else {
      each_column<To::K>([&](int kc, int k, bool k_there) {
        each_column<To::N>([&](int nc, int n, bool n_there) {
          const int i = kc * columns_of(To::N) + nc;
          float x = v_[kFirst + i];
          GRAPHRUN_TILE_UNROLL
          for (int lanes = 4; lanes < 32; lanes *= 2) x = x + shuffle_xor(x, lanes);
          constexpr bool kEach = is_narrow(To::K) && is_narrow(To::N);  // each lane of a row has all features
          const bool mine = lane_row() == i % 8 && (!kEach || lane_column() == 0);
          if (mine && k_there && n_there) to[k * To::N + n] = x;
        });
      });
    }
  }

  float v_[kNumbers];
  float* scratch_;
};

}  // namespace graphrun::cuda::tile::by_warp
