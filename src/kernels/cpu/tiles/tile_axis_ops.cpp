// tile_axis_ops.cpp: ops along the features of a row: softmax and related ops, sums and extrema.
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cpu/tiles/tile_steps.h"

namespace graphrun::cpu {
namespace {

using i64 = std::int64_t;

// The lines of `x` along the axes of the mask, as features.
struct FeatureLines {
  std::vector<std::int32_t> first, terms;

  FeatureLines(const TileOperand& x, std::uint32_t axes) {
    const AxisGroups<1> split({features(x)}, axes);
    first = elements_of(split.kept);
    terms = elements_of(split.reduced);
  }
};

// Maps the elements of a line, or reduces it to one feature.
TileStep line_step(const TileCall& call, std::uint32_t axes, const LineLoop& loop) {
  const FeatureLines lines(call.inputs[0], axes);
  const bool reduces = feature_count(call.output.type) == static_cast<i64>(lines.first.size());
  const bool classes = call.inputs.back().type.dtype == DType::i32;
  return [=, x = call.inputs[0], other = call.inputs.back(), out = call.output,
          run = loop.across](const TileContext& c) {
    Lines one{nullptr, nullptr, nullptr, c.stride, static_cast<i64>(lines.terms.size()), c.stride, lines.terms.data()};
    i64 line = 0;
    for (const std::int32_t feature : lines.first) {
      const i64 first = feature * c.stride;
      one.x = read<float>(x, c) + first;
      one.out = written<float>(out, c) + (reduces ? line : first);
      one.other = read<float>(other, c) + (classes ? line : first);
      run(one);
      line += c.stride;
    }
  };
}

}  // namespace

TileStep make_line_tile(const TileCall& call, Isa isa, std::string& reason) {
  if (!in_tile(call.output)) return nullptr;
  const IsaTable& table = isa_table(isa);
  if (const auto* reduce = call.params->get_if<ReduceParams>()) {
    if (call.op == Op::sum) return line_step(call, reduce->axes, table.sum);
    if (call.op == Op::logsumexp) return line_step(call, reduce->axes, table.logsumexp);
    if (call.op == Op::max) return line_step(call, reduce->axes, table.max);
    if (call.op == Op::min) return line_step(call, reduce->axes, table.min);
    if (call.op == Op::prod) return line_step(call, reduce->axes, table.prod);
    return nullptr;
  }
  if (call.op == family_op::softmax_cross_entropy) {
    const TensorType& targets = call.inputs[1].type;
    if (targets.rows > 0)
      return line_step(call, 1u << (call.inputs[0].type.shape.rank() - 1),
                       targets.dtype == DType::i32 ? table.class_entropy : table.cross_entropy);
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
