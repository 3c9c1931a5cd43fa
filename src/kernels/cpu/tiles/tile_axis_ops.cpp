// tile_axis_ops.cpp: ops along the features of a row: softmax and its kin, sums and extrema of a row.
#include <algorithm>
#include <limits>

#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "kernels/cpu/tiles/tile_steps.h"

namespace graphrun::cpu {
namespace {

using i64 = std::int64_t;

// The lines of `x` along the axes of the mask, as features.
struct Lines {
  std::vector<std::int32_t> first, terms;

  Lines(const TileOperand& x, std::uint32_t axes) {
    const Split<1> split({features(x)}, axes);
    first = elements_of(split.kept);
    terms = elements_of(split.reduced);
  }
  FeatureLines in(const TileContext& c) const {
    return {first.data(), terms.data(), static_cast<i64>(first.size()), static_cast<i64>(terms.size()), c.stride};
  }
};

template <class Out>
class LineStep final : public TileStep {
 public:
  using Loop = void (*)(Out*, const float*, const FeatureLines&);
  LineStep(const TileCall& call, std::uint32_t axes, Loop loop)
      : x_(call.inputs[0]), out_(call.output), lines_(x_, axes), loop_(loop) {}
  void run(const TileContext& c) const override { loop_(written<Out>(out_, c), read<float>(x_, c), lines_.in(c)); }

 private:
  TileOperand x_, out_;
  Lines lines_;
  Loop loop_;
};
template <class Out>
std::unique_ptr<TileStep> line_step(const TileCall& call, std::uint32_t axes,
                                    void (*loop)(Out*, const float*, const FeatureLines&)) {
  return std::make_unique<LineStep<Out>>(call, axes, loop);
}

// Extrema and products: the elementwise op between a line's terms, one after the other.
class FoldStep final : public TileStep {
 public:
  FoldStep(const TileCall& call, std::uint32_t axes, BinaryFn<float> combine, float start)
      : x_(call.inputs[0]), out_(call.output), lines_(x_, axes), combine_(combine), start_(start) {}
  void run(const TileContext& c) const override {
    float* out = written<float>(out_, c);
    const float* const x = read<float>(x_, c);
    for (const std::int32_t line : lines_.first) {
      std::fill_n(out, c.stride, start_);
      for (const std::int32_t term : lines_.terms)
        combine_(out, 1, c.stride, {out, 0, 1}, {x + (line + term) * c.stride, 0, 1});
      out += c.stride;
    }
  }

 private:
  TileOperand x_, out_;
  Lines lines_;
  BinaryFn<float> combine_;
  float start_;
};

class CrossEntropy final : public TileStep {
 public:
  CrossEntropy(const TileCall& call, const TileTable& table)
      : x_(call.inputs[0]),
        target_(call.inputs[1]),
        out_(call.output),
        lines_(x_, 1u << (x_.type.shape.rank() - 1)),
        table_(table) {}
  void run(const TileContext& c) const override {
    float* const out = written<float>(out_, c);
    const float* const x = read<float>(x_, c);
    if (target_.type.dtype == DType::i32)
      table_.cross_entropy_classes(out, x, read<std::int32_t>(target_, c), lines_.in(c));
    else
      table_.cross_entropy(out, x, read<float>(target_, c), lines_.in(c));
  }

 private:
  TileOperand x_, target_, out_;
  Lines lines_;
  const TileTable& table_;
};

}  // namespace

std::unique_ptr<TileStep> make_line_tile(const TileCall& call, Isa isa, std::string& reason) {
  if (!in_tile(call.output)) return nullptr;
  const TileTable& table = tile_table(isa);
  if (const auto* reduce = call.params->get_if<ReduceParams>()) {
    const std::uint32_t axes = reduce->axes;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    if (call.op == Op::sum) return line_step(call, axes, table.sum_features);
    if (call.op == Op::logsumexp) return line_step(call, axes, table.log_sum_exp);
    const auto fold = [&](Op op, float start) {
      return std::make_unique<FoldStep>(call, axes, binary_loop(isa_table(isa), op), start);
    };
    if (call.op == Op::max) return fold(Op::maximum, -kInfinity);
    if (call.op == Op::min) return fold(Op::minimum, kInfinity);
    if (call.op == Op::prod) return fold(Op::mul, 1.0f);
    return nullptr;
  }
  if (call.op == Op::softmax_cross_entropy) {
    if (in_tile(call.inputs[1])) return std::make_unique<CrossEntropy>(call, table);
    reason = "targets without rows";
    return nullptr;
  }
  const auto* axis = call.params->get_if<AxisParams>();
  if (axis == nullptr) return nullptr;
  const std::uint32_t mask = 1u << axis->axis;
  if (call.op == Op::softmax) return line_step(call, mask, table.softmax);
  if (call.op == Op::log_softmax) return line_step(call, mask, table.log_softmax);
  if (call.op == Op::argmax) return line_step(call, mask, table.argmax);
  if (call.op == Op::argmin) return line_step(call, mask, table.argmin);
  return nullptr;
}

}  // namespace graphrun::cpu
