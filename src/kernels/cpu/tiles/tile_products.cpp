// tile_products.cpp: matrix products and reductions over rows, on tiles.
#include <algorithm>
#include <limits>

#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/matmul.h"
#include "kernels/cpu/tiles/tile_steps.h"

namespace graphrun::cpu {
namespace {

using i64 = std::int64_t;

struct EpilogueEntry {
  Op op;
  int input;
};
#define GRAPHRUN_EPILOGUE(name, input, expression) EpilogueEntry{Op::name, input},
constexpr EpilogueEntry kEpilogues[] = {GRAPHRUN_EPILOGUES(GRAPHRUN_EPILOGUE)};
#undef GRAPHRUN_EPILOGUE

Epilogue epilogue_of(std::optional<Op> op) {
  int i = 0;
  while (i < static_cast<int>(Epilogue::none) && kEpilogues[i].op != op) ++i;
  return static_cast<Epilogue>(i);
}

// x @ W for each row of the sample.
class Dense final : public TileStep {
 public:
  Dense(const TileCall& call, const TileTable& table)
      : x_(call.inputs[0]),
        w_(call.inputs[1]),
        out_(call.output),
        bias_(reinterpret_cast<const float*>(call.epilogue.bias)),
        epilogue_(epilogue_of(call.epilogue.op)),
        with_(in_tile(call.epilogue.with) ? call.epilogue.with : call.output),
        table_(table) {
    const Shape& x = x_.type.shape;
    const Shape& w = w_.type.shape;
    k_ = x[x.rank() - 1];
    n_ = out_.type.shape[out_.type.shape.rank() - 1];
    rows_ = n_ == 0 ? 0 : feature_count(out_.type) / n_;
    const bool transposed = call.params->as<MatmulParams>().transpose_b;
    w_k_ = transposed ? 1 : w[1];
    w_n_ = transposed ? w[1] : 1;
  }
  void run(const TileContext& c) const override {
    DenseTile call{rows_of(x_, c),
                   read<float>(w_, c),
                   bias_,
                   epilogue_,
                   read<float>(with_, c),
                   written<float>(out_, c),
                   w_k_,
                   w_n_,
                   k_,
                   n_,
                   c.stride};
    for (i64 r = 0; r < rows_; ++r) {
      table_.dense(call);
      call.in.data += k_ * call.in.feature;
      call.with += n_ * c.stride;
      call.out += n_ * c.stride;
    }
  }

 private:
  TileOperand x_, w_, out_;
  const float* bias_;
  Epilogue epilogue_;
  TileOperand with_;
  const TileTable& table_;
  i64 k_, n_, rows_, w_k_, w_n_;
};

// Where a sum over rows goes: to the lanes of the partition where it has them.
struct Sums {
  float* out;
  bool lanes;
};
float* lanes_of(std::uint64_t accumulators_at, const TileContext& c) {
  return c.lanes + accumulators_at / sizeof(float) * kLanes;
}
Sums sums_of(const TileOperand& out, const TileContext& c) {
  if (c.lanes == nullptr) return {written<float>(out, c), false};
  return {lanes_of(out.offset, c), true};
}

// The shapes that are faster with outputs as lanes, when there are no lanes for rows to keep apart: with 64 rows to a
// tile twice (784 x 8) to five times (128 x 32) as fast. With 4 outputs, or 2 inputs, most of each register or of
// the transposed outputs would go unused; the two ways take about the same time there, and rows as lanes gain with
// more rows.
bool outputs_as_lanes(i64 inputs, i64 outputs) {
  return outputs >= 8 && inputs >= 4;
}

// x^T @ g, summed over the rows of the batch.
class DenseGradient final : public TileStep {
 public:
  DenseGradient(const TileCall& call, const TileTable& table)
      : x_(call.inputs[0]), g_(call.inputs[1]), out_(call.output), sums_at_(call.sums_at), table_(table) {}
  void run(const TileContext& c) const override {
    const i64 m = x_.type.shape[1];
    const i64 n = g_.type.shape[1];
    const Sums to = sums_of(out_, c);
    float* const sums = sums_at_ ? lanes_of(*sums_at_, c) : nullptr;
    DenseGradientTile call{rows_of(x_, c), rows_of(g_, c), to.out, m, n, c.rows, to.lanes, sums};
    const auto gradient = !to.lanes && outputs_as_lanes(m, n) ? table_.wide_gradient : table_.dense_gradient;
    for (i64 r = 0; r < x_.type.rows; ++r, call.a.data += m * call.a.feature, call.b.data += n * call.b.feature)
      gradient(call);
  }

 private:
  TileOperand x_, g_, out_;
  std::optional<std::uint64_t> sums_at_;
  const TileTable& table_;
};

// Features to elements of the output that they are reduced to.
std::vector<std::int32_t> targets(const TileOperand& x, std::uint32_t axes) {
  const Shape features = features_of(x.type);
  std::vector<std::int32_t> result(static_cast<std::size_t>(features.elements()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    i64 rest = static_cast<i64>(i), stride = 1, element = 0;
    for (int axis = features.rank() - 1; axis >= 0; --axis) {
      const i64 at = rest % features[axis];
      rest /= features[axis];
      if ((axes >> axis & 1u) != 0) continue;
      element += at * stride;
      stride *= features[axis];
    }
    result[i] = static_cast<std::int32_t>(element);
  }
  return result;
}

class SumRows final : public TileStep {
 public:
  SumRows(const TileCall& call, const TileTable& table)
      : x_(call.inputs[0]),
        out_(call.output),
        table_(table),
        targets_(targets(x_, call.params->as<ReduceParams>().axes)) {
    for (std::size_t i = 0; i < targets_.size(); ++i) direct_ = direct_ && targets_[i] == static_cast<std::int32_t>(i);
  }
  void run(const TileContext& c) const override {
    TileRows x = rows_of(x_, c);
    const Sums to = sums_of(out_, c);
    if (direct_) return table_.sum_rows(to.out, to.lanes, x, static_cast<i64>(targets_.size()), c.rows);
    for (const std::int32_t target : targets_) {
      table_.sum_rows(to.out + (to.lanes ? target * kLanes : target), to.lanes, x, 1, c.rows);
      x.data += x.feature;
    }
  }

 private:
  TileOperand x_, out_;
  const TileTable& table_;
  std::vector<std::int32_t> targets_;
  bool direct_ = true;
};

// Extrema and products, of which no model computes much: plain loops. NaN wins.
template <class F>
class FoldRows final : public TileStep {
 public:
  FoldRows(const TileCall& call, F fold)
      : x_(call.inputs[0]),
        out_(call.output),
        targets_(targets(x_, call.params->as<ReduceParams>().axes)),
        fold_(fold) {}
  void run(const TileContext& c) const override {
    const float* x = read<float>(x_, c);
    float* const out = written<float>(out_, c);
    for (const std::int32_t target : targets_) {
      for (i64 r = 0; r < c.rows; ++r) out[target] = fold_(out[target], x[r]);
      x += c.stride;
    }
  }

 private:
  TileOperand x_, out_;
  std::vector<std::int32_t> targets_;
  F fold_;
};
template <class F>
std::unique_ptr<TileStep> fold_step(const TileCall& call, F fold) {
  return std::make_unique<FoldRows<F>>(call, fold);
}

// Rows added to the rows of the output that they name.
class ScatterRows final : public TileStep {
 public:
  explicit ScatterRows(const TileCall& call) : indices_(call.inputs[0]), x_(call.inputs[1]), out_(call.output) {}
  void run(const TileContext& c) const override {
    const std::int32_t* index = read<std::int32_t>(indices_, c);
    const float* x = read<float>(x_, c);
    const Sums to = sums_of(out_, c);
    const i64 rows = out_.type.shape[0];
    const i64 width = out_.type.shape[1];
    const i64 apart = to.lanes ? kLanes : 1;
    for (i64 i = feature_count(indices_.type); i > 0; --i, index += c.stride, x += width * c.stride) {
      for (i64 r = 0; r < c.rows; ++r) {
        if (index[r] < 0 || index[r] >= rows) continue;
        float* const sums = to.out + index[r] * width * apart + (to.lanes ? r % kLanes : 0);
        for (i64 j = 0; j < width; ++j) sums[j * apart] += x[j * c.stride + r];
      }
    }
  }

 private:
  TileOperand indices_, x_, out_;
};

}  // namespace

int epilogue_input(Op op) {
  const Epilogue epilogue = epilogue_of(op);
  return epilogue == Epilogue::none ? -1 : kEpilogues[static_cast<int>(epilogue)].input;
}

std::unique_ptr<TileStep> make_product_tile(const TileCall& call, Isa isa, std::string& reason) {
  if (call.op != Op::matmul) return nullptr;
  const auto& params = call.params->as<MatmulParams>();
  const TensorType& a = call.inputs[0].type;
  const TensorType& b = call.inputs[1].type;
  if (in_tile(call.output)) {
    // One matrix for all rows: op(a) keeps the batch first, b is a plain matrix.
    if (a.rows > 0 && b.rows == 0 && b.shape.rank() == 2 && !params.transpose_a)
      return std::make_unique<Dense>(call, tile_table(isa));
    reason = "the product of two row values, or by several matrices, has no tile kernel";
    return nullptr;
  }
  if (a.rows > 0 && a.rows == b.rows && a.shape.rank() == 2 && b.shape.rank() == 2 && params.transpose_a &&
      !params.transpose_b)
    return std::make_unique<DenseGradient>(call, tile_table(isa));
  reason = "this product over the batch has no tile kernel";
  return nullptr;
}

std::unique_ptr<TileStep> make_reduction_tile(const TileCall& call, Isa isa, std::string& reason) {
  if (in_tile(call.output)) return nullptr;
  if (call.op == Op::scatter_add) return std::make_unique<ScatterRows>(call);
  if (call.params->get_if<ReduceParams>() == nullptr) return nullptr;
  if (call.op == Op::sum) return std::make_unique<SumRows>(call, tile_table(isa));
  if (call.op == Op::max) return fold_step(call, [](float x, float y) { return x >= y || x != x ? x : y; });
  if (call.op == Op::min) return fold_step(call, [](float x, float y) { return x <= y || x != x ? x : y; });
  if (call.op == Op::prod) return fold_step(call, [](float x, float y) { return x * y; });
  reason = "partial results of '" + std::string(name_of(call.op)) + "' cannot be combined";
  return nullptr;
}

}  // namespace graphrun::cpu
