// tile_dense_loops.cpp: products of tiles, `dense` of isa.h, written once over simd.h.
// Contract: see isa.h. A separate file, as its unrolled blocks take longer to compile than all other loops. Leaves
// to others: operand addresses (tile_products.cpp), gradients (tile_gradient_loops.cpp).
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/tiles/tile_parts.h"
#include "kernels/scalar_ops.h"

namespace graphrun::cpu::GRAPHRUN_ISA {
namespace {

// Vectors of rows in a register block of `outputs` outputs. Together they fill the registers; with fewer outputs it
// takes more vectors to have enough independent sums.
constexpr int vectors_beside(int outputs) {
#if GRAPHRUN_BLOCKS == 16
  return outputs == 1 ? 8 : outputs <= 4 ? 6 : 4;
#elif GRAPHRUN_BLOCKS == 8
  return outputs == 1 ? 4 : outputs == 2 ? 3 : 2;
#else
  (void)outputs;
  return 1;
#endif
}
inline constexpr int kOutputs = GRAPHRUN_BLOCKS == 16 ? 6 : GRAPHRUN_BLOCKS == 8 ? 3 : 2;
inline constexpr i64 kDepth = kProductBlock;  // k steps; within them nothing is read back from the output

// Hides an address from the optimizer, which would otherwise keep a pointer for each load and store of a block and
// spill them all across its loops.
template <class T>
GRAPHRUN_FN T* opaque(T* p) {
  __asm__("" : "+r"(p));
  return p;
}

// Calls f(vector of sums, its address) for kN outputs of kV vectors of rows.
template <int kN, int kV, class T, class F>
GRAPHRUN_FN void for_block(Floats* sums, T* first, i64 stride, F&& f) {
  unrolled<kN>([&](auto n) __attribute__((always_inline)) {
    first = opaque(first);
    unrolled<kV>([&](auto v) __attribute__((always_inline)) { f(sums[n * kV + v], first + v * kLanes); });
    first += stride;
  });
}

// Applies the fused step to a block.
template <int kN, int kV>
GRAPHRUN_FN void apply_epilogue(Floats* sums, Epilogue epilogue, const Real* other, i64 stride) {
  using namespace scalar;
#define GRAPHRUN_EPILOGUE(name, input, expression)                                             \
  case Epilogue::name:                                                                         \
    for_block<kN, kV>(                                                                         \
        sums, other, stride, [&](Floats & sum, const Real* p) __attribute__((always_inline)) { \
          [[maybe_unused]] const auto with = [p]() __attribute__((always_inline)) {            \
            return load(p);                                                                    \
          };                                                                                   \
          sum = expression;                                                                    \
        });                                                                                    \
    break;
  switch (epilogue) {
    GRAPHRUN_EPILOGUES(GRAPHRUN_EPILOGUE)
    case Epilogue::none:
      break;
  }
#undef GRAPHRUN_EPILOGUE
}

// Range of k, outputs and vectors of rows: `strips` times kN from n on, `blocks` times kV from vector v on.
struct DensePart {
  i64 k, depth, n, strips, v, blocks;
};
template <int kN, int kV>
__attribute__((noinline)) void dense_blocks(const DenseTile& c, const DensePart& part) {
  const i64 feature = c.in.feature, vector = c.in.vector, w_k = c.w_k, w_n = c.w_n, stride = c.stride;
  const i64 depth = part.depth;
  const bool first = part.k == 0, last = part.k + depth == c.k;
  const Epilogue epilogue = last ? c.epilogue : Epilogue::none;
  const Real* w = c.w + part.k * w_k + part.n * w_n;
  const Real* bias = last && c.bias != nullptr ? c.bias + part.n : nullptr;
  i64 at = part.n * stride + part.v * kLanes;
  for (i64 strips = part.strips; strips > 0; --strips) {
    const Real* in = c.in.data + part.k * feature + part.v * vector;
    Real* out = c.out + at;
    const Real* with = c.with + at;
    for (i64 blocks = part.blocks; blocks > 0; --blocks) {
      Floats sum[kN * kV];
      unrolled<kN * kV>([&](auto i) __attribute__((always_inline)) { sum[i] = 0.0f; });
      const Real* row_in = opaque(in);
      const Real* row_w = opaque(w);
      for (i64 k = depth; k > 0; --k, row_in += feature, row_w += w_k) {
        Floats row[kV];
        unrolled<kV>([&](auto v) __attribute__((always_inline)) { row[v] = load(row_in + v * vector); });
        unrolled<kN>([&](auto n) __attribute__((always_inline)) {
          const Floats weight = row_w[n * w_n];
          unrolled<kV>([&](auto v)
                           __attribute__((always_inline)) { sum[n * kV + v] = fma(weight, row[v], sum[n * kV + v]); });
        });
      }
      if (!first) {
        for_block<kN, kV>(
            sum, out, stride, [](Floats & s, const Real* p) __attribute__((always_inline)) { s = load(p) + s; });
      }
      if (bias != nullptr) {
        unrolled<kN * kV>([&](auto i) __attribute__((always_inline)) { sum[i] = sum[i] + Floats(bias[i / kV]); });
      }
      apply_epilogue<kN, kV>(sum, epilogue, with, stride);
      for_block<kN, kV>(
          sum, out, stride, [](Floats & s, Real * p) __attribute__((always_inline)) { store(p, s); });
      in += kV * vector;
      out += kV * kLanes;
      with += kV * kLanes;
    }
    w += kN * w_n;
    if (bias != nullptr) bias += kN;
    at += kN * stride;
  }
}

}  // namespace

void dense(const DenseTile& c) {
  const Parts outputs(c.n, kOutputs);
  i64 k = 0;
  do {
    const i64 depth = c.k - k < kDepth ? c.k - k : kDepth;
    outputs.for_each<kOutputs>([&](i64 n, auto some_outputs, i64 strips) __attribute__((always_inline)) {
      constexpr int kVectors = vectors_beside(some_outputs);
      Parts(c.stride / kLanes, kVectors)
          .for_each<kVectors>([&](i64 v, auto vectors, i64 blocks) __attribute__((always_inline)) {
            dense_blocks<some_outputs, vectors>(c, {k, depth, n, strips, v, blocks});
          });
    });
    k += kDepth;
  } while (k < c.k);
}

}  // namespace graphrun::cpu::GRAPHRUN_ISA
