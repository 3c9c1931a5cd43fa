// tile_gradient_loops.cpp: sums over tile rows and weight gradients of isa.h, written once over simd.h.
// Contract: see isa.h. Leaves to others: operand addresses and the choice of a loop (tile_products.cpp).
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/tiles/tile_parts.h"

namespace graphrun::cpu::GRAPHRUN_ISA {
namespace {

// Adds the low and high halves of every group of 2 * kApart lanes of a, then of b. Halves already in position stay
// there, so that one permutation moves the other two.
template <int kApart, int... kLane>
GRAPHRUN_FN FloatPart add_halves(FloatPart a, FloatPart b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b, (kLane % (2 * kApart) < kApart ? kLane : GRAPHRUN_LANES + kLane)...) +
         __builtin_shufflevector(a, b,
                                 (kLane % (2 * kApart) < kApart ? kLane + kApart : GRAPHRUN_LANES + kLane - kApart)...);
}

// Reduces GRAPHRUN_LANES vectors to one: lane i is the sum of vector i, lanes added ..., 4, 2, 1 apart.
template <int kApart>
GRAPHRUN_FN FloatPart add_lanes(FloatPart* v) {
  unrolled<kApart>([&](auto i)
                       __attribute__((always_inline)) { v[i] = add_halves<kApart>(v[i], v[i + kApart], Lanes{}); });
  if constexpr (kApart > 1) {
    return add_lanes<kApart / 2>(v);
  } else {
    return v[0];
  }
}

GRAPHRUN_FN FloatPart add_parts(Floats x) {  // halves of the lanes, then quarters, down to one register
#if GRAPHRUN_REGISTER == 64
  return x.part[0];
#elif GRAPHRUN_REGISTER == 32
  return x.part[0] + x.part[1];
#else
  return (x.part[0] + x.part[2]) + (x.part[1] + x.part[3]);
#endif
}

// totals[i] = tree sum of the lanes of vectors[i].
__attribute__((noinline)) void total_lanes(Real* totals, const Real* vectors) {
  for (int p = 0; p < kLanes; p += GRAPHRUN_LANES) {
    FloatPart part[GRAPHRUN_LANES];
    unrolled<GRAPHRUN_LANES>([&](auto i) __attribute__((always_inline)) {
      part[i] = add_parts(load(vectors + (p + i) * kLanes));
    });
    const FloatPart sum = add_lanes<GRAPHRUN_LANES / 2>(part);
    __builtin_memcpy(totals + p, &sum, sizeof sum);
  }
}

// Sink for sums over tile rows: separate lanes, which are added when the partition ends.
struct ToLanes {
  Real* lanes;
  GRAPHRUN_FN void add(Floats x, i64 i) { store(lanes + i * kLanes, load(lanes + i * kLanes) + x); }
  GRAPHRUN_FN void end_block() {}
  GRAPHRUN_FN void finish() {}
};
// Sink that adds to numbers, kLanes sums at a time and between blocks, when no sums are in registers.
struct ToNumbers {
  static constexpr int kMax = kLanes + 32;
  Real* out;
  int count = 0;
  i64 to[kMax];
  Real vectors[kMax * kLanes];

  explicit ToNumbers(Real* numbers) : out(numbers) {}
  GRAPHRUN_FN void add(Floats x, i64 i) {
    to[count] = i;
    store(vectors + count++ * kLanes, x);
  }
  GRAPHRUN_FN void end_block() {
    while (count >= kLanes) total(kLanes);
  }
  GRAPHRUN_FN void finish() {
    if (count == 0) return;
    for (int i = count; i < kLanes; ++i) store(vectors + i * kLanes, 0.0f);
    total(count);
  }
  __attribute__((noinline)) void total(int n) {
    count -= n;
    Real totals[kLanes];
    total_lanes(totals, vectors + count * kLanes);
    for (int i = 0; i < n; ++i) out[to[count + i]] += totals[i];
  }
};

// Features of b in a register block with a_features of a; chosen as for dense.
constexpr int b_features_beside(int a_features) {
#if GRAPHRUN_BLOCKS == 16
  return a_features == 1 ? 10 : a_features <= 4 ? 6 : 5;
#elif GRAPHRUN_BLOCKS == 8
  return a_features == 1 ? 4 : 2;
#else
  return a_features == 1 ? 2 : 1;
#endif
}
inline constexpr int kFeatures = GRAPHRUN_BLOCKS == 16 ? 5 : GRAPHRUN_BLOCKS == 8 ? 2 : 1;
inline constexpr int kColumn = GRAPHRUN_BLOCKS == 16 ? 10 : GRAPHRUN_BLOCKS == 8 ? 4 : 2;  // features of a if b has one

// Block of kM features of a times kN of b. kSumOfB also sums these features of b, as if a had another feature equal to
// 1 in all rows.
template <int kM, int kN, bool kSumOfB, class Sums>
__attribute__((noinline)) void gradient_block(const DenseGradientTile& c, i64 m, i64 n, Sums& sums) {
  const i64 a_feature = c.a.feature, a_vector = c.a.vector, b_feature = c.b.feature, b_vector = c.b.vector;
  const Real* a = c.a.data + m * a_feature;
  const Real* b = c.b.data + n * b_feature;
  constexpr int kProducts = kM * kN, kAll = kProducts + (kSumOfB ? kN : 0);
  Floats sum[kAll];
  unrolled<kAll>([&](auto i) __attribute__((always_inline)) { sum[i] = 0.0f; });
  const auto add_vector = [&](auto&& load_rows) __attribute__((always_inline)) {
    Floats row[kN];
    unrolled<kN>([&](auto j) __attribute__((always_inline)) { row[j] = load_rows(b + j * b_feature); });
    if constexpr (kM > 0) {
      unrolled<kM>([&](auto i) __attribute__((always_inline)) {
        const Floats x = load_rows(a + i * a_feature);
        unrolled<kN>([&](auto j) __attribute__((always_inline)) { sum[i * kN + j] = fma(x, row[j], sum[i * kN + j]); });
      });
    }
    if constexpr (kSumOfB) {
      unrolled<kN>([&](auto j) __attribute__((always_inline)) { sum[kProducts + j] = sum[kProducts + j] + row[j]; });
    }
  };
  i64 left = c.rows;
#pragma GCC unroll 2
  for (; left >= kLanes; left -= kLanes, a += a_vector, b += b_vector)
    add_vector([](const Real* p) __attribute__((always_inline)) { return load(p); });
  if (left > 0) add_vector([left](const Real* p) __attribute__((always_inline)) { return load_first(p, left); });
  const i64 width = c.n, first = m * width + n;
  if constexpr (kM > 0) {
    unrolled<kProducts>([&](auto i)
                            __attribute__((always_inline)) { sums.add(sum[i], first + i / kN * width + i % kN); });
  }
  if constexpr (kSumOfB) {
    ToLanes sums_of_b{c.sums_of_b};
    unrolled<kN>([&](auto j) __attribute__((always_inline)) { sums_of_b.add(sum[kProducts + j], n + j); });
  }
  sums.end_block();
}

// All features of b with kM of a; kM includes the sums of b.
template <int kM, bool kSumOfB, class Sums>
GRAPHRUN_FN void gradient_strip(const DenseGradientTile& c, i64 m, Sums& sums) {
  in_parts<b_features_beside(kM)>(
      c.n, [&](i64 n, auto b_features) __attribute__((always_inline)) {
        gradient_block<kM - (kSumOfB ? 1 : 0), b_features, kSumOfB>(c, m, n, sums);
      });
}

// The sums of b are the last feature of a's last part.
template <bool kSumOfB, class Sums>
void gradient(const DenseGradientTile& c, Sums& sums) {
  const i64 all = c.m + (kSumOfB ? 1 : 0);
  if (c.n == 1) {
    in_parts<kColumn>(
        all, [&](i64 m, auto features) __attribute__((always_inline)) {
          if constexpr (kSumOfB) {
            if (m + features == all) return gradient_block<features - 1, 1, true>(c, m, 0, sums);
          }
          gradient_block<features, 1, false>(c, m, 0, sums);
        });
  } else {
    in_parts<kFeatures>(
        all, [&](i64 m, auto features) __attribute__((always_inline)) {
          if constexpr (kSumOfB) {
            if (m + features == all) return gradient_strip<features, true>(c, m, sums);
          }
          gradient_strip<features, false>(c, m, sums);
        });
  }
  sums.finish();
}

inline constexpr int kSummed = GRAPHRUN_BLOCKS == 16 ? 8 : GRAPHRUN_BLOCKS == 8 ? 4 : 2;  // features at a time

template <class Sums>
GRAPHRUN_FN void sum_tile(Sums& sums, const TileRows& x, i64 features, i64 rows) {
  in_parts<kSummed>(
      features, [&](i64 f, auto count) __attribute__((always_inline)) {
        const Real* p = x.data + f * x.feature;
        Floats sum[count];
        unrolled<count>([&](auto i) __attribute__((always_inline)) { sum[i] = 0.0f; });
        i64 left = rows;
        for (; left >= kLanes; left -= kLanes, p += x.vector)
          unrolled<count>([&](auto i) __attribute__((always_inline)) { sum[i] = sum[i] + load(p + i * x.feature); });
        if (left > 0) {
          unrolled<count>([&](auto i) __attribute__((always_inline)) {
            sum[i] = sum[i] + load_first(p + i * x.feature, left);
          });
        }
        unrolled<count>([&](auto i) __attribute__((always_inline)) { sums.add(sum[i], f + i); });
        sums.end_block();
      });
  sums.finish();
}

// ---- outputs instead of rows as lanes -----------------------------------------------------------------------------

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

// Transposes rows: row r's first kLanes of b's n features go to block + r * apart, padded with zeros.
GRAPHRUN_FN void outputs_of_rows(Real* block, i64 apart, const TileRows& b, i64 n, i64 rows) {
  constexpr i64 kSide = GRAPHRUN_LANES;
  for (i64 r = 0; r < rows; r += kSide) {
    const Real* const from = b.data + r / kLanes * b.vector + r % kLanes;
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
  Real* data;
  i64 width, last;
};

// out += kM features of a times kV vectors of outputs, over at most kChain rows.
template <int kM, int kV>
__attribute__((noinline)) void add_outer(const GradientRows& out, const TileRows& a, const Real* block, i64 rows) {
  Floats sum[kM * kV];
  unrolled<kM * kV>([&](auto i) __attribute__((always_inline)) { sum[i] = 0.0f; });
  const Real* data = a.data;
  const i64 feature = a.feature;
  for (; rows > 0; rows -= kLanes, data += a.vector) {
    constexpr int kThirds = (kM + 2) / 3;  // an address reaches three features: x, x + feature, x + 2 * feature
    const Real* x[kThirds];
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
    const Real* const from = out.data + i / kV * width + i % kV * kLanes;
    sum[i] = (whole(i) ? load(from) : load_first(from, last)) + sum[i];
  });
  unrolled<kM * kV>([&](auto i) __attribute__((always_inline)) {
    Real* const to = out.data + i / kV * width + i % kV * kLanes;
    if (whole(i)) {
      store(to, sum[i]);
    } else {
      store_first(to, sum[i], last);
    }
  });
}

}  // namespace

void wide_gradient(const DenseGradientTile& c) {
  alignas(64) Real block[kChain * kOutputVectors * kLanes];
  for (i64 r = 0; r < c.rows; r += kChain) {
    const i64 rows = c.rows - r < kChain ? c.rows - r : kChain;
    const Real* const a = c.a.data + r / kLanes * c.a.vector;
    const Real* const b = c.b.data + r / kLanes * c.b.vector;
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

void add_lanes_to(Real* out, const Real* lanes, i64 n) {
  Real totals[kLanes];
  for (; n > 0; n -= kLanes, out += kLanes, lanes += kLanes * kLanes) {
    total_lanes(totals, lanes);
    if (n >= kLanes) {
      store(out, load(out) + load(totals));
    } else {
      store_first(out, load_first(out, n) + load(totals), n);
    }
  }
}

void dense_gradient(const DenseGradientTile& c) {
  if (!c.lanes) {
    ToNumbers sums(c.out);
    return gradient<false>(c, sums);
  }
  ToLanes sums{c.out};
  c.sums_of_b != nullptr ? gradient<true>(c, sums) : gradient<false>(c, sums);
}

void sum_rows_of_tile(Real* out, bool lanes, const TileRows& x, i64 features, i64 rows) {
  if (lanes) {
    ToLanes sums{out};
    return sum_tile(sums, x, features, rows);
  }
  ToNumbers sums(out);
  sum_tile(sums, x, features, rows);
}

}  // namespace graphrun::cpu::GRAPHRUN_ISA
