// tile_wide_loops.cpp: large weight gradients, with outputs instead of rows as lanes.
// Contract: wide_gradient of tile_isa.h. The split into register blocks affects speed, never results.
// Leaves to others: gradients with rows as lanes (tile_gradient_loops.cpp), the choice of one (tile_products.cpp).
#include "kernels/cpu/tiles/tile_isa.h"
#include "kernels/cpu/tiles/tile_parts.h"

namespace graphrun::cpu::GRAPHRUN_ISA {
namespace {

// Rows summed in registers before they are added to the accumulators. With 64 rows whole steps are as fast (within 2%);
// with 16 a step of mnist_logreg is 8% slower.
inline constexpr i64 kChain = 32;

// Register block: adjacent vectors of outputs, and input features; sized as for dense. Each row loads the vectors and
// one number per feature.
inline constexpr int kOutputVectors = GRAPHRUN_BLOCKS == 16 ? 2 : 1;
constexpr int inputs_beside(int vectors) {
#if GRAPHRUN_BLOCKS == 16
  return vectors == 1 ? 24 : 12;
#else
  (void)vectors;
  return GRAPHRUN_BLOCKS == 8 ? 6 : 2;
#endif
}

// Transposes rows: row r's first 16 of b's n features go to block + r * apart, padded with zeros.
GRAPHRUN_FN void outputs_of_rows(float* block, i64 apart, const TileRows& b, i64 n, i64 rows) {
  constexpr i64 kSide = GRAPHRUN_LANES;
  for (i64 r = 0; r < rows; r += kSide) {
    const float* const from = b.data + r / kLanes * b.vector + r % kLanes;
    for (i64 f = 0; f < kLanes; f += kSide) {
      FloatPart v[kSide];
      unrolled<GRAPHRUN_LANES>([&](auto i) __attribute__((always_inline)) {
        v[i] = f + i < n ? load_part(from + (f + i) * b.feature, kSide) : FloatPart{};
      });
      transpose(v);
      unrolled<GRAPHRUN_LANES>([&](auto i) __attribute__((always_inline)) {
        store_part(block + (r + i) * apart + f, v[i], kSide);
      });
    }
  }
}

// Location of a block of the gradient: rows of `width` numbers; the last vector of outputs has `last` of them.
struct GradientRows {
  float* data;
  i64 width, last;
};

// out += kM features of a times kV vectors of outputs, over at most kChain rows.
template <int kM, int kV>
__attribute__((noinline)) void add_outer(const GradientRows& out, const TileRows& a, const float* block, i64 rows) {
  Floats sum[kM * kV];
  unrolled<kM * kV>([&](auto i) __attribute__((always_inline)) { sum[i] = 0.0f; });
  const float* data = a.data;
  const i64 feature = a.feature;
  for (; rows > 0; rows -= kLanes, data += a.vector) {
    constexpr int kThirds = (kM + 2) / 3;  // an address reaches three features: x, x + feature, x + 2 * feature
    const float* x[kThirds];
    unrolled<kThirds>([&](auto i) __attribute__((always_inline)) { x[i] = data + 3 * i * feature; });
    for (i64 r = rows < kLanes ? rows : kLanes; r > 0; --r, block += kV * kLanes) {
      Floats outputs[kV];
      unrolled<kV>([&](auto v) __attribute__((always_inline)) { outputs[v] = load(block + v * kLanes); });
      unrolled<kM>([&](auto m) __attribute__((always_inline)) {
        const Floats input = x[m / 3][m % 3 * feature];
        unrolled<kV>([&](auto v)
                         __attribute__((always_inline)) { sum[m * kV + v] = fma(input, outputs[v], sum[m * kV + v]); });
      });
      unrolled<kThirds>([&](auto i) __attribute__((always_inline)) { ++x[i]; });
    }
  }
  const i64 width = out.width, last = out.last;
  const auto whole = [&](int i) __attribute__((always_inline)) {
    return i % kV + 1 < kV || last == kLanes;
  };
  // Read all vectors before writing any: loading a partial vector would otherwise wait for the masked store of its
  // neighbor.
  unrolled<kM * kV>([&](auto i) __attribute__((always_inline)) {
    const float* const from = out.data + i / kV * width + i % kV * kLanes;
    sum[i] = (whole(i) ? load(from) : load_first(from, last)) + sum[i];
  });
  unrolled<kM * kV>([&](auto i) __attribute__((always_inline)) {
    float* const to = out.data + i / kV * width + i % kV * kLanes;
    if (whole(i)) {
      store(to, sum[i]);
    } else {
      store_first(to, sum[i], last);
    }
  });
}

}  // namespace

void wide_gradient(const DenseGradientTile& c) {
  alignas(64) float block[kChain * kOutputVectors * kLanes];
  for (i64 r = 0; r < c.rows; r += kChain) {
    const i64 rows = c.rows - r < kChain ? c.rows - r : kChain;
    const float* const a = c.a.data + r / kLanes * c.a.vector;
    const float* const b = c.b.data + r / kLanes * c.b.vector;
    in_parts<kOutputVectors>((c.n + kLanes - 1) / kLanes, [&](i64 v, auto vectors) __attribute__((always_inline)) {
      const i64 n = v * kLanes;
      unrolled<vectors>([&](auto i) __attribute__((always_inline)) {
        const i64 first = n + i * kLanes;
        outputs_of_rows(block + i * kLanes, vectors * kLanes, {b + first * c.b.feature, c.b.feature, c.b.vector},
                        c.n - first, rows);
      });
      const i64 rest = c.n - n - (vectors - 1) * kLanes;
      in_parts<inputs_beside(vectors)>(
          c.m, [&](i64 m, auto inputs) __attribute__((always_inline)) {
            add_outer<inputs, vectors>({c.out + m * c.n + n, c.n, rest < kLanes ? rest : kLanes},
                                       {a + m * c.a.feature, c.a.feature, c.a.vector}, block, rows);
          });
    });
  }
}

}  // namespace graphrun::cpu::GRAPHRUN_ISA
