// matmul_plan.h: how a product is split into blocks: a pure function of (shapes, machine), called before planning for
// the workspace size and again at launch.
// Contract: the same shapes and machine give the same plan, so the order of every sum is fixed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "graphrun/params.h"
#include "graphrun/scalar_op.h"
#include "graphrun/types.h"
#include "kernels/cuda/launcher.h"
#include "kernels/dims.h"

namespace graphrun::cuda {

// X(op, functor): elementwise steps with which a product may end (ProductEpilogue), of the result, or of the
// result and another value.
#define GRAPHRUN_UNARY_EPILOGUES(X) X(relu, Relu) X(tanh, Tanh) X(sigmoid, Sigmoid)
#define GRAPHRUN_BINARY_EPILOGUES(X) \
  X(relu_gradient, ReluGradient)     \
  X(tanh_gradient, TanhGradient) X(sigmoid_gradient, SigmoidGradient) X(add, Add) X(sub, Sub) X(mul, Mul)

// Whether a step after a product adds one number per column: ProductEpilogue::bias. With one row, the operands have
// the type of the result, and the addition is a last step.
inline bool adds_bias(Op op, const TensorType& first, const TensorType& second, const TensorType& result) {
  return op == Op::add && first == result && !(second == result) && is_bias(second, result);
}

struct MatmulPlan {
  enum class Route : std::uint8_t {
    // The first four read a left factor that is a view (factor_view.h), they and `few_terms` run steps on their result.
    elements,   // one thread per element of the result, short sums (k <= 32)
    rows,       // one thread per row of a narrow result, short sums
    blocks,     // one block per tile of the result, its threads share the sum; `splits` > 1: a second kernel adds them
    wide,       // many multiplications: tiles of blocks on tensor cores, of the whole sum or of `splits` parts
    few_terms,  // short sums (k <= kNarrow) of a wide result; this and the next two are bound by memory
    tall,       // a sum over many rows whose factors are one wide and one of at most kNarrow columns; `splits` as above
    dots,       // at most kDotColumns columns, sums of medium length
    library,    // no extent is small, and no `wide`: other machines, operands rounded to TF32, or several matrices
    many_elements,  // several matrices: one thread per element, for short sums and flat matrices
    many_tiles,     // several matrices: one block per 32 x 32 elements of a matrix
  };
  static constexpr std::int64_t kSkinny = 32;
  static constexpr std::int64_t kManyRows = 16384;    // minimum number of rows for Route::rows
  static constexpr std::int64_t kLong = 4096;         // terms from which a sum is split: a second launch has a cost
  static constexpr std::int64_t kSplit = 1024;        // terms per split
  static constexpr std::int64_t kWideTerms = 32;      // terms of a step of a wide product
  static constexpr std::int64_t kWideWork = 1 << 20;  // multiplications from which a flat product is a wide one
  static constexpr std::int64_t kWideSteps = 8;       // minimum steps of each multiprocessor for the larger tile
  static constexpr std::int64_t kFlat = 8;            // m or n below which a tile would be nearly empty
  static constexpr std::int64_t kNarrow = 8;          // terms of `few_terms`, columns of the narrow factor of `tall`
  static constexpr std::int64_t kDotColumns = 4, kDots = 1024;  // limits of `dots`: columns, terms
  static constexpr std::int64_t kTallRows = 64;                 // minimum rows of a split of `tall`

  Route route = Route::elements;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_m = 0, a_k = 0, b_k = 0, b_n = 0;  // strides in elements
  Dims<2> leading;                                  // dimensions of the matrices, if several
  std::int64_t splits = 1, split = 0;               // number of splits, and terms per split
  std::uint32_t threads = 256;
  std::int64_t tile_m = 8, tile_n = 4;  // per block
  std::uint64_t workspace = 0;

  bool reads_views() const { return route <= Route::wide; }
  bool takes_epilogue(const MatmulParams& params) const { return route <= Route::few_terms && !params.transpose_a; }
  bool is_flat() const { return route == Route::few_terms || route == Route::tall || route == Route::dots; }
  std::int64_t tiles_m() const { return (m + tile_m - 1) / tile_m; }
  std::int64_t tiles_n() const { return (n + tile_n - 1) / tile_n; }
  std::uint32_t blocks(const Machine& machine) const {  // for each split; not for several matrices
    if (route == Route::rows || route == Route::elements)
      return linear_grid(machine, static_cast<std::uint64_t>(route == Route::rows ? m : m * n), threads).x;
    return static_cast<std::uint32_t>(tiles_m() * tiles_n());
  }
  // Cuts the sum into `wanted` parts of a multiple of 32 terms, or fewer.
  void cut(std::int64_t wanted) {
    split = ((k + wanted - 1) / wanted + 31) / 32 * 32;
    splits = (k + split - 1) / split;
    if (splits > 1) workspace = static_cast<std::uint64_t>(splits * m * n) * sizeof(float);
  }
};

// A large product has tiles of 128 x 128 elements, which read each operand least often; a smaller one has tiles of
// 64 x 64. Long sums are cut so that all multiprocessors have a block, and two small ones if each has many steps.
inline void plan_wide(MatmulPlan& plan, const Machine& machine) {
  plan.route = MatmulPlan::Route::wide;
  const auto set_tile = [&](std::int64_t size) {
    plan.tile_m = plan.tile_n = size;
    plan.threads = static_cast<std::uint32_t>(2 * size);
    return plan.tiles_m() * plan.tiles_n();
  };
  const std::int64_t steps = (plan.k + MatmulPlan::kWideTerms - 1) / MatmulPlan::kWideTerms;
  const bool large =
      std::min(plan.m, plan.n) > 64 && set_tile(128) * steps >= MatmulPlan::kWideSteps * machine.multiprocessors;
  const std::int64_t tiles = set_tile(large ? 128 : 64);
  const std::int64_t one_each = std::min(machine.multiprocessors / tiles, steps / 2);
  const std::int64_t two_each = large ? 1 : std::min(2 * machine.multiprocessors / tiles, steps / 8);
  plan.cut(std::max<std::int64_t>({one_each, two_each, 1}));
}

// Plans a product that is bound by memory (matmul_flat.cu): false for all others. A tile has up to 256 columns, and
// tiles are equally wide. With fewer than kLong rows, blocks that share no sum are as fast and need no second launch.
inline bool plan_flat(MatmulPlan& plan, const MatmulParams& params, const Machine& machine) {
  using Route = MatmulPlan::Route;
  const std::int64_t narrow = std::min(plan.m, plan.n), wide = std::max(plan.m, plan.n);
  const std::int64_t blocks = std::int64_t{4} * machine.multiprocessors;
  const auto columns = [](std::int64_t n) {
    const std::int64_t groups = (n + 3) / 4, tiles = (groups + 63) / 64;
    return (groups + tiles - 1) / tiles * 4;
  };
  const auto rows = [&](std::int64_t tiles, std::int64_t at_once) {
    const std::int64_t share = std::max<std::int64_t>(blocks / tiles, 1);
    return ((plan.m + share - 1) / share + at_once - 1) / at_once * at_once;
  };
  if (params.transpose_a) {
    if (params.transpose_b || narrow > MatmulPlan::kNarrow || wide < MatmulPlan::kSkinny || plan.k < MatmulPlan::kLong)
      return false;
    plan.route = Route::tall;
    plan.tile_m = plan.n >= plan.m ? plan.m : columns(plan.m);
    plan.tile_n = plan.n >= plan.m ? columns(plan.n) : plan.n;
    const std::int64_t room = std::max<std::int64_t>(blocks / 2 / (plan.tiles_m() * plan.tiles_n()), 1);
    plan.cut(std::min(plan.k / MatmulPlan::kTallRows, room));
  } else if (plan.k <= MatmulPlan::kNarrow && plan.n >= MatmulPlan::kSkinny) {
    plan.route = Route::few_terms;
    plan.tile_n = columns(plan.n);
    plan.tile_m = rows(plan.tiles_n(), 256 / (plan.tile_n / 4));
  } else if (plan.n <= MatmulPlan::kDotColumns && plan.k > MatmulPlan::kSkinny && plan.k <= MatmulPlan::kDots &&
             plan.m >= MatmulPlan::kLong) {
    plan.route = Route::dots;
    plan.tile_n = plan.n;
    plan.tile_m = rows(1, 32);
  } else {
    return false;
  }
  return true;
}

// With `reads_view`, a is a view of a single matrix; the matrix library does not read views.
inline MatmulPlan plan_matmul(const MatmulParams& params, const TensorType& a, const TensorType& b,
                              const Machine& machine, bool reads_view = false) {
  const int ra = a.shape.rank();
  const int rb = b.shape.rank();
  MatmulPlan plan;
  plan.m = a.shape[ra - (params.transpose_a ? 1 : 2)];
  plan.k = a.shape[ra - (params.transpose_a ? 2 : 1)];
  plan.n = b.shape[rb - (params.transpose_b ? 2 : 1)];
  plan.a_m = params.transpose_a ? 1 : plan.k;
  plan.a_k = params.transpose_a ? plan.m : 1;
  plan.b_k = params.transpose_b ? 1 : plan.n;
  plan.b_n = params.transpose_b ? plan.k : 1;
  plan.split = plan.k;
  plan.leading = matrices_of(dense(a.shape), dense(b.shape));
  const bool short_sum = plan.k <= MatmulPlan::kSkinny;
  if (rb == 2 && !params.transpose_a) {  // one tall matrix
    plan.m *= plan.leading.count;
    plan.leading = {};
  }
  const bool leads = (a.rows > 0 && ra > 2) || (b.rows > 0 && rb > 2);
  if (plan.leading.count != 1 || (leads && rb > 2) || (leads && params.transpose_a)) {
    if (short_sum || std::min(plan.m, plan.n) < MatmulPlan::kFlat) {
      plan.route = MatmulPlan::Route::many_elements;
    } else if (plan.leading.rank > 1 || std::min(plan.m, plan.n) <= MatmulPlan::kSkinny) {
      plan.route = MatmulPlan::Route::many_tiles;
    } else {
      plan.route = MatmulPlan::Route::library;
      plan.workspace = machine.library_workspace;
    }
    return plan;
  }
  const std::int64_t narrow = std::min(plan.m, plan.n);
  const bool library = !short_sum && narrow > MatmulPlan::kSkinny;
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  const bool is_small = std::max({plan.m, plan.n, plan.k}) <= kMax;
  if (!reads_view && is_small && plan.m > 0 && plan.n > 0 && plan_flat(plan, params, machine)) return plan;
  if (machine.warpgroups && (reads_view || params.precision != Precision::tf32) && is_small &&
      (library || (narrow >= MatmulPlan::kFlat && plan.m * plan.n * plan.k >= MatmulPlan::kWideWork))) {
    plan_wide(plan, machine);
    return plan;
  }
  if (short_sum) {
    plan.threads = 128;
    if (!params.transpose_a && plan.n <= MatmulPlan::kSkinny && plan.m >= MatmulPlan::kManyRows)
      plan.route = MatmulPlan::Route::rows;
    return plan;
  }
  if (library && !reads_view) {
    plan.route = MatmulPlan::Route::library;
    plan.workspace = machine.library_workspace;
    return plan;
  }
  plan.route = MatmulPlan::Route::blocks;
  // As wide as a narrow result, so that the other operand is read once.
  plan.tile_n = plan.n <= 4 ? 4 : plan.n <= 8 ? 8 : plan.n <= 12 ? 12 : plan.n <= 16 ? 16 : 8;
  // Enough terms per thread to amortize its part in the block's reduction.
  plan.threads = static_cast<std::uint32_t>(std::clamp<std::int64_t>((plan.k / 4 + 31) / 32 * 32, 32, 256));
  // A long sum over few tiles leaves most of the machine idle, so split it into parts that depend on shapes only.
  const std::int64_t tiles = std::max<std::int64_t>(plan.tiles_m() * plan.tiles_n(), 1);
  const std::int64_t room = std::max<std::int64_t>(2 * machine.multiprocessors / tiles, 1);
  const std::int64_t parts = plan.k >= MatmulPlan::kLong ? (plan.k + MatmulPlan::kSplit - 1) / MatmulPlan::kSplit : 1;
  plan.cut(std::min(parts, room));
  return plan;
}

}  // namespace graphrun::cuda
