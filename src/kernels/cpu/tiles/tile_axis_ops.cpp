// tile_axis_ops.cpp: ops along the features of a row: softmax and related ops, sums and extrema.
#include <algorithm>
#include <limits>

#include "graphrun/family_op.h"
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
TileStep line_step(const TileCall& call, std::uint32_t axes, void (*loop)(Out*, const float*, const FeatureLines&)) {
  return [x = call.inputs[0], out = call.output, lines = Lines(call.inputs[0], axes), loop](const TileContext& c) {
    loop(written<Out>(out, c), read<float>(x, c), lines.in(c));
  };
}

// Extrema and products: applies the elementwise op to a line's terms in order.
TileStep fold_step(const TileCall& call, std::uint32_t axes, ElementFn combine, float start) {
  return [x = call.inputs[0], result = call.output, lines = Lines(call.inputs[0], axes), combine,
          start](const TileContext& c) {
    float* out = written<float>(result, c);
    const float* const from = read<float>(x, c);
    for (const std::int32_t line : lines.first) {
      std::fill_n(out, c.stride, start);
      for (const std::int32_t term : lines.terms)
        apply(combine, out, c.stride, {{out, 0, 1}, {from + (line + term) * c.stride, 0, 1}});
      out += c.stride;
    }
  };
}

TileStep cross_entropy(const TileCall& call, const TileTable& table) {
  const TileOperand x = call.inputs[0];
  return [x, target = call.inputs[1], out = call.output, lines = Lines(x, 1u << (x.type.shape.rank() - 1)),
          &table](const TileContext& c) {
    float* const to = written<float>(out, c);
    if (target.type.dtype == DType::i32)
      table.cross_entropy_classes(to, read<float>(x, c), read<std::int32_t>(target, c), lines.in(c));
    else
      table.cross_entropy(to, read<float>(x, c), read<float>(target, c), lines.in(c));
  };
}

}  // namespace

TileStep make_line_tile(const TileCall& call, Isa isa, std::string& reason) {
  if (!in_tile(call.output)) return nullptr;
  const TileTable& table = tile_table(isa);
  if (const auto* reduce = call.params->get_if<ReduceParams>()) {
    const std::uint32_t axes = reduce->axes;
    constexpr float kInfinite = std::numeric_limits<float>::infinity();
    if (call.op == Op::sum) return line_step(call, axes, table.sum_features);
    if (call.op == Op::logsumexp) return line_step(call, axes, table.log_sum_exp);
    const auto fold = [&](Op op, float start) { return fold_step(call, axes, scalar_loop(isa_table(isa), op), start); };
    if (call.op == Op::max) return fold(Op::maximum, -kInfinite);
    if (call.op == Op::min) return fold(Op::minimum, kInfinite);
    if (call.op == Op::prod) return fold(Op::mul, 1.0f);
    return nullptr;
  }
  if (call.op == family_op::softmax_cross_entropy) {
    if (in_tile(call.inputs[1])) return cross_entropy(call, table);
    reason = "targets without rows";
    return nullptr;
  }
  const auto* axis = call.params->get_if<AxisParams>();
  if (axis == nullptr) return nullptr;
  const std::uint32_t mask = 1u << axis->axis;
  if (call.op == family_op::softmax) return line_step(call, mask, table.softmax);
  if (call.op == family_op::log_softmax) return line_step(call, mask, table.log_softmax);
  if (call.op == Op::argmax) return line_step(call, mask, table.argmax);
  if (call.op == Op::argmin) return line_step(call, mask, table.argmin);
  return nullptr;
}

}  // namespace graphrun::cpu
