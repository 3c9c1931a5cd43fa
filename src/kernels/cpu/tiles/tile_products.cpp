// tile_products.cpp: matrix products and reductions over rows, on tiles.
#include <algorithm>
#include <limits>

#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"
#include "kernels/cpu/tiles/tile_steps.h"

namespace graphrun::cpu {
namespace {

using i64 = std::int64_t;

struct EpilogueEntry {
  Op op;
  int input;
};
#define GRAPHRUN_EPILOGUE(name, input, expression) EpilogueEntry{scalar_op::name, input},
constexpr EpilogueEntry kEpilogues[] = {GRAPHRUN_EPILOGUES(GRAPHRUN_EPILOGUE)};
#undef GRAPHRUN_EPILOGUE

Epilogue epilogue_of(std::optional<Op> op) {
  int i = 0;
  while (i < static_cast<int>(Epilogue::none) && kEpilogues[i].op != op) ++i;
  return static_cast<Epilogue>(i);
}

// x @ W for each row of the sample.
template <class Real>
TileStep dense(const TileCall& call, const IsaTableOf<Real>& table) {
  const TileOperand x = call.inputs[0], w = call.inputs[1], out = call.output;
  const TileOperand with = in_tile(call.epilogue.with) ? call.epilogue.with : out;
  DenseTileOf<Real> dense{};
  dense.bias = reinterpret_cast<const Real*>(call.epilogue.bias);
  dense.epilogue = epilogue_of(call.epilogue.op);
  const bool transposed = call.params->as<MatmulParams>().transpose_b;
  dense.w_k = transposed ? 1 : w.type.shape[1];
  dense.w_n = transposed ? w.type.shape[1] : 1;
  dense.k = x.type.shape[x.type.shape.rank() - 1];
  dense.n = out.type.shape[out.type.shape.rank() - 1];
  const i64 rows = dense.n == 0 ? 0 : feature_count(out.type) / dense.n;
  return [=, &table](const TileContext& c) {
    DenseTileOf<Real> tile = dense;
    tile.in = rows_of<Real>(x, c);
    tile.w = read<Real>(w, c);
    tile.with = read<Real>(with, c);
    tile.out = written<Real>(out, c);
    tile.stride = c.stride;
    for (i64 r = 0; r < rows; ++r) {
      table.dense(tile);
      tile.in.data += tile.k * tile.in.feature;
      tile.with += tile.n * c.stride;
      tile.out += tile.n * c.stride;
    }
  };
}

// Destination of a sum over rows: the partition's lanes, if it has them.
template <class Real>
struct Sums {
  Real* out;
  bool lanes;
};
template <class Real>
Real* lanes_of(std::uint64_t accumulators_at, const TileContext& c) {
  return reinterpret_cast<Real*>(c.lanes) + accumulators_at / sizeof(Real) * kLanesOf<Real>;
}
template <class Real>
Sums<Real> sums_of(const TileOperand& out, const TileContext& c) {
  if (c.lanes == nullptr) return {written<Real>(out, c), false};
  return {lanes_of<Real>(out.offset, c), true};
}

// Returns whether a gradient is faster with outputs as lanes, if the partition has no lanes. With 64 rows per tile it
// is twice (784 x 8) to five times (128 x 32) as fast. With 4 outputs or 2 inputs, most of each register or of the
// transposed outputs would be unused; both methods then take about the same time, and rows as lanes gain with more
// rows.
bool outputs_as_lanes(i64 inputs, i64 outputs) {
  return outputs >= 8 && inputs >= 4;
}

// x^T @ g, summed over the rows of the batch.
template <class Real>
TileStep dense_gradient(const TileCall& call, const IsaTableOf<Real>& table) {
  return [x = call.inputs[0], g = call.inputs[1], out = call.output, sums_at = call.sums_at,
          &table](const TileContext& c) {
    const i64 m = x.type.shape[1], n = g.type.shape[1];
    const Sums to = sums_of<Real>(out, c);
    DenseGradientTileOf<Real> tile{rows_of<Real>(x, c),
                                   rows_of<Real>(g, c),
                                   to.out,
                                   m,
                                   n,
                                   c.rows,
                                   to.lanes,
                                   sums_at ? lanes_of<Real>(*sums_at, c) : nullptr};
    const auto gradient = !to.lanes && outputs_as_lanes(m, n) ? table.wide_gradient : table.dense_gradient;
    for (i64 r = 0; r < x.type.rows; ++r, tile.a.data += m * tile.a.feature, tile.b.data += n * tile.b.feature)
      gradient(tile);
  };
}

// Maps features to the elements of the output that they are reduced to.
std::vector<std::int32_t> targets(const TileCall& call) {
  const View from = features(call.inputs[0]);
  const std::uint32_t axes = call.params->as<ReduceParams>().axes;
  View to{from.extents};  // strides of the reduced axes are 0
  i64 stride = 1;
  for (int axis = from.extents.rank() - 1; axis >= 0; --axis) {
    if ((axes >> axis & 1u) != 0) continue;
    to.strides[axis] = stride;
    stride *= from.extents[axis];
  }
  return elements_of(to);
}

template <class Real>
TileStep sum_rows(const TileCall& call, const IsaTableOf<Real>& table) {
  const std::vector<std::int32_t> to = targets(call);
  bool direct = true;
  for (std::size_t i = 0; i < to.size(); ++i) direct = direct && to[i] == static_cast<std::int32_t>(i);
  return [=, from = call.inputs[0], out = call.output, &table](const TileContext& c) {
    TileRowsOf<Real> x = rows_of<Real>(from, c);
    const Sums sums = sums_of<Real>(out, c);
    if (direct) return table.sum_rows(sums.out, sums.lanes, x, static_cast<i64>(to.size()), c.rows);
    for (const std::int32_t target : to) {
      table.sum_rows(sums.out + (sums.lanes ? target * kLanesOf<Real> : target), sums.lanes, x, 1, c.rows);
      x.data += x.feature;
    }
  };
}

// Extrema and products are rare in models, so plain loops suffice. NaN propagates.
template <class Real, class F>
TileStep fold_rows(const TileCall& call, F fold) {
  return [from = call.inputs[0], result = call.output, to = targets(call), fold](const TileContext& c) {
    const Real* x = read<Real>(from, c);
    Real* const out = written<Real>(result, c);
    for (const std::int32_t target : to) {
      for (i64 r = 0; r < c.rows; ++r) out[target] = fold(out[target], x[r]);
      x += c.stride;
    }
  };
}

// Adds rows to the output rows selected by the indices.
template <class Real>
TileStep scatter_rows(const TileCall& call) {
  return [indices = call.inputs[0], updates = call.inputs[1], out = call.output](const TileContext& c) {
    const std::int32_t* index = read<std::int32_t>(indices, c);
    const Real* x = read<Real>(updates, c);
    const Sums to = sums_of<Real>(out, c);
    const i64 rows = out.type.shape[0], width = out.type.shape[1];
    const i64 apart = to.lanes ? kLanesOf<Real> : 1;
    for (i64 i = feature_count(indices.type); i > 0; --i, index += c.stride, x += width * c.stride) {
      for (i64 r = 0; r < c.rows; ++r) {
        if (index[r] < 0 || index[r] >= rows) continue;
        Real* const sums = to.out + index[r] * width * apart + (to.lanes ? r % kLanesOf<Real> : 0);
        for (i64 j = 0; j < width; ++j) sums[j * apart] += x[j * c.stride + r];
      }
    }
  };
}

template <class Real>
TileStep product(const TileCall& call, const IsaTableOf<Real>& table, std::string& reason) {
  const auto& params = call.params->as<MatmulParams>();
  const TensorType& a = call.inputs[0].type;
  const TensorType& b = call.inputs[1].type;
  if (in_tile(call.output)) {
    // One matrix for all rows: op(a) keeps the batch first, b is a plain matrix.
    if (a.rows > 0 && b.rows == 0 && b.shape.rank() == 2 && !params.transpose_a) return dense(call, table);
    reason = "the product of two row values, or by several matrices, has no tile kernel";
    return nullptr;
  }
  if (a.rows > 0 && a.rows == b.rows && a.shape.rank() == 2 && b.shape.rank() == 2 && params.transpose_a &&
      !params.transpose_b)
    return dense_gradient(call, table);
  reason = "this product over the batch has no tile kernel";
  return nullptr;
}

template <class Real>
TileStep reduction(const TileCall& call, const IsaTableOf<Real>& table, std::string& reason) {
  if (call.op == Op::sum) return sum_rows(call, table);
  if (call.op == Op::max) return fold_rows<Real>(call, [](Real x, Real y) { return x >= y || x != x ? x : y; });
  if (call.op == Op::min) return fold_rows<Real>(call, [](Real x, Real y) { return x <= y || x != x ? x : y; });
  if (call.op == Op::prod) return fold_rows<Real>(call, [](Real x, Real y) { return x * y; });
  reason = "partial results of '" + std::string(name_of(call.op)) + "' cannot be combined";
  return nullptr;
}

}  // namespace

int epilogue_input(Op op) {
  const Epilogue epilogue = epilogue_of(op);
  return epilogue == Epilogue::none ? -1 : kEpilogues[static_cast<int>(epilogue)].input;
}

TileStep make_product_tile(const TileCall& call, Isa isa, std::string& reason) {
  if (call.op != Op::matmul) return nullptr;
  return for_type(call.output.type.dtype, isa_table(isa),
                  [&](auto, const auto& table) { return product(call, table, reason); });
}

TileStep make_reduction_tile(const TileCall& call, Isa isa, std::string& reason) {
  if (in_tile(call.output)) return nullptr;
  return for_type(call.output.type.dtype, isa_table(isa), [&]<class Real>(Real, const IsaTableOf<Real>& table) {
    if (call.op == Op::scatter_add) return scatter_rows<Real>(call);
    return call.params->get_if<ReduceParams>() == nullptr ? nullptr : reduction(call, table, reason);
  });
}

}  // namespace graphrun::cpu
