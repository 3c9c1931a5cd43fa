#include "types/op_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "graphrun/family_op.h"
#include "graphrun/limits.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/matmul.h"
#include "graphrun/params/minibatch.h"
#include "graphrun/params/movement.h"
#include "graphrun/params/random.h"
#include "graphrun/params/scalar.h"
#include "graphrun/program.h"
#include "graphrun/scalar_op.h"

namespace graphrun {
namespace {

using Fault = std::string;
const Fault kFine;

Fault types_differ(const TensorType& a, const TensorType& b) {
  return fmt::format("{} does not go with {}", to_string(a), to_string(b));
}
bool same_shape(const TensorType& a, const TensorType& b) {
  return a.shape == b.shape && a.rows == b.rows;
}
bool has_axis(const TensorType& type, std::int64_t axis) {
  return axis >= 0 && axis < type.shape.rank();
}
Fault no_axis(const TensorType& type, std::int64_t axis) {
  return fmt::format("{} has no axis {}", to_string(type), axis);
}
TensorType with_extent(TensorType type, int axis, std::int64_t extent) {
  type.shape[axis] = extent;
  return type;
}
Fault expect(const TensorType& wanted, const TensorType& given) {
  return same_shape(wanted, given) ? kFine : types_differ(wanted, given);
}
// Expects `wanted` with `extent` appended as the last axis.
Fault expect_longer(TensorType wanted, std::int64_t extent, const TensorType& given) {
  if (wanted.shape.rank() == kMaxRank) return types_differ(wanted, given);
  wanted.shape.push_back(extent);
  return expect(wanted, given);
}

// ---- elements

bool broadcasts(const TensorType& in, const TensorType& out) {
  const int shift = out.shape.rank() - in.shape.rank();
  if (shift < 0 || (in.rows > 0 && (shift > 0 || in.rows != out.rows))) return false;
  for (int axis = 0; axis < in.shape.rank(); ++axis) {
    if (in.shape[axis] != 1 && in.shape[axis] != out.shape[axis + shift]) return false;
  }
  return true;
}

Fault broadcast_to(const StepTypes& step) {
  for (const TensorType& in : step.inputs) {
    if (!broadcasts(in, step.output)) return types_differ(in, step.output);
  }
  return kFine;
}

// Each extent of the output must occur in an operand, and it has rows exactly if an operand has.
Fault elementwise(const StepTypes& step) {
  if (Fault fault = broadcast_to(step); !fault.empty()) return fault;
  const Shape& out = step.output.shape;
  std::int64_t rows = 0;
  int rank = 0;
  for (const TensorType& in : step.inputs) {
    rows = std::max(rows, in.rows);
    rank = std::max(rank, in.shape.rank());
  }
  bool whole = rows == step.output.rows && rank == out.rank();
  for (int axis = 0; whole && axis < rank; ++axis) {
    whole = std::any_of(step.inputs.begin(), step.inputs.end(), [&](const TensorType& in) {
      const int own = axis - (rank - in.shape.rank());
      return own >= 0 && in.shape[own] == out[axis];
    });
  }
  return whole ? kFine : fmt::format("its operands do not broadcast to {}", to_string(step.output));
}

Fault scalars(const StepTypes& step) {
  const auto& [a, b] = step.params.as<ScalarParams>();
  if (!std::isfinite(a) || !std::isfinite(b)) return fmt::format("parameters {} and {}", a, b);
  return elementwise(step);
}
Fault clip(const StepTypes& step) {
  const auto& [low, high] = step.params.as<ScalarParams>();
  if (!(low <= high)) return fmt::format("bounds {} and {}", low, high);
  return scalars(step);
}

// The output has the shape of operand 0.
Fault same(const StepTypes& step) {
  return expect(step.inputs[0], step.output);
}
Fault assign(const StepTypes& step) {
  for (const TensorType& in : step.inputs) {
    if (!(in == step.output)) return types_differ(in, step.output);
  }
  return kFine;
}

Fault reshape(const StepTypes& step) {
  const TensorType& in = step.inputs[0];
  const bool rows = (in.rows == 0) == (step.output.rows == 0);
  return rows && in.shape.elements() == step.output.shape.elements() ? kFine : types_differ(in, step.output);
}

// ---- products and reductions

Fault matmul(const StepTypes& step) {
  const auto& [transpose_a, transpose_b, precision] = step.params.as<MatmulParams>();
  const TensorType& a = step.inputs[0];
  const TensorType& b = step.inputs[1];
  const TensorType& out = step.output;
  const int ra = a.shape.rank(), rb = b.shape.rank(), rank = std::max(ra, rb);
  if (precision != Precision::fp32 && precision != Precision::tf32) return "it has no such precision";
  Fault fault = fmt::format("{} @ {} is not {}", to_string(a), to_string(b), to_string(out));
  if (ra < 2 || rb < 2 || out.shape.rank() != rank) return fault;
  if (a.shape[ra - (transpose_a ? 2 : 1)] != b.shape[rb - (transpose_b ? 1 : 2)] ||
      out.shape[rank - 2] != a.shape[ra - (transpose_a ? 1 : 2)] ||
      out.shape[rank - 1] != b.shape[rb - (transpose_b ? 2 : 1)]) {
    return fault;
  }
  for (int axis = 0; axis < rank - 2; ++axis) {
    const std::int64_t of_a = axis < rank - ra ? 1 : a.shape[axis - (rank - ra)];
    const std::int64_t of_b = axis < rank - rb ? 1 : b.shape[axis - (rank - rb)];
    if ((of_a != of_b && of_a != 1 && of_b != 1) || out.shape[axis] != (of_a == 1 ? of_b : of_a)) return fault;
  }
  if (rank > 2) {  // the batch is dimension 0 of each operand with rows
    for (const TensorType* x : {&a, &b}) {
      if (x->rows > 0 && (x->shape.rank() != rank || x->rows != out.rows)) return fault;
    }
    return out.rows == std::max(a.rows, b.rows) ? kFine : fault;
  }
  // The batch is contracted away, or it is the rows of the left operand.
  if (a.rows > 0 && transpose_a) return b.rows == a.rows && !transpose_b && out.rows == 0 ? kFine : fault;
  return b.rows == 0 && out.rows == a.rows ? kFine : fault;
}

Fault reduce(const StepTypes& step) {
  const auto& [axes, keepdims] = step.params.as<ReduceParams>();
  const TensorType& in = step.inputs[0];
  if (axes >> in.shape.rank() != 0) return fmt::format("{} has not all of the axes {:#b}", to_string(in), axes);
  TensorType wanted{step.output.dtype, {}, (axes & 1u) != 0 ? 0 : in.rows};
  for (int axis = 0; axis < in.shape.rank(); ++axis) {
    const bool reduced = (axes >> axis & 1u) != 0;
    if (!reduced) wanted.shape.push_back(in.shape[axis]);
    if (reduced && keepdims) wanted.shape.push_back(1);
  }
  return expect(wanted, step.output);
}

// ---- ops along one axis other than the batch

Fault axis_of(const TensorType& in, std::int64_t axis) {
  if (!has_axis(in, axis)) return no_axis(in, axis);
  return axis == 0 && in.rows > 0 ? Fault("it looks along the batch") : kFine;
}

Fault along_axis(const StepTypes& step) {
  if (Fault fault = axis_of(step.inputs[0], step.params.as<AxisParams>().axis); !fault.empty()) return fault;
  return same(step);
}

Fault position(const StepTypes& step) {
  const std::int64_t axis = step.params.as<AxisParams>().axis;
  const TensorType& in = step.inputs[0];
  if (Fault fault = axis_of(in, axis); !fault.empty()) return fault;
  if (in.shape[static_cast<int>(axis)] == 0) return "it looks for a place in nothing";
  TensorType wanted{step.output.dtype, {}, in.rows};
  for (int i = 0; i < in.shape.rank(); ++i) {
    if (i != axis) wanted.shape.push_back(in.shape[i]);
  }
  return expect(wanted, step.output);
}

Fault cross_entropy(const StepTypes& step) {
  const TensorType& logits = step.inputs[0];
  const TensorType& target = step.inputs[1];
  const int last = logits.shape.rank() - 1;
  if (last < 0 || (last == 0 && logits.rows > 0)) return fmt::format("{} has no classes", to_string(logits));
  TensorType wanted{step.output.dtype, Shape(logits.shape.dims().first(static_cast<std::size_t>(last))), logits.rows};
  if (!same_shape(wanted, step.output)) return types_differ(wanted, step.output);
  return same_shape(target, target.dtype == DType::i32 ? wanted : logits) ? kFine : types_differ(logits, target);
}

Fault permute(const StepTypes& step) {
  const auto& axes = step.params.as<PermuteParams>().axes;
  const TensorType& in = step.inputs[0];
  if (step.output.shape.rank() != in.shape.rank()) return types_differ(in, step.output);
  std::uint32_t seen = 0;
  for (int i = 0; i < in.shape.rank(); ++i) {
    if (!has_axis(in, axes[i])) return no_axis(in, axes[i]);
    if (in.shape[axes[i]] != step.output.shape[i]) return types_differ(in, step.output);
    seen |= 1u << axes[i];
  }
  if (seen != (1u << in.shape.rank()) - 1u) return "it names an axis twice";
  return in.rows == step.output.rows && (in.rows == 0 || axes[0] == 0) ? kFine : types_differ(in, step.output);
}

// `part` fits in `whole` at offset `first` along the axis, and the other extents are equal.
Fault holds(const TensorType& whole, const TensorType& part, int axis, std::int64_t first) {
  if (Fault fault = axis_of(whole, axis); !fault.empty()) return fault;
  if (part.shape.rank() != whole.shape.rank() || !same_shape(with_extent(whole, axis, part.shape[axis]), part))
    return types_differ(whole, part);
  const std::int64_t extent = whole.shape[axis];
  return first >= 0 && first <= extent && part.shape[axis] <= extent - first
             ? kFine
             : fmt::format("{} does not fit in {} at {}", to_string(part), to_string(whole), first);
}
Fault slice(const StepTypes& step) {
  const auto& [axis, start] = step.params.as<SliceParams>();
  return holds(step.inputs[0], step.output, axis, start);
}
Fault pad(const StepTypes& step) {
  const auto& [axis, before, value] = step.params.as<PadParams>();
  return holds(step.output, step.inputs[0], axis, before);
}

Fault concat(const StepTypes& step) {
  const int axis = step.params.as<AxisParams>().axis;
  if (Fault fault = axis_of(step.output, axis); !fault.empty()) return fault;
  std::int64_t extent = 0;
  for (const TensorType& in : step.inputs) {
    if (!has_axis(in, axis) || !same_shape(with_extent(in, axis, step.output.shape[axis]), step.output))
      return types_differ(in, step.output);
    extent += in.shape[axis];
  }
  return extent == step.output.shape[axis] ? kFine : fmt::format("its operands do not fill {}", to_string(step.output));
}

// ---- tables

Fault one_hot(const StepTypes& step) {
  const Shape& out = step.output.shape;
  if (out.rank() == 0) return types_differ(step.inputs[0], step.output);
  return expect_longer(step.inputs[0], out[out.rank() - 1], step.output);
}

// `rows` must have one table row per index.
Fault rows_of(const TensorType& table, const TensorType& indices, const TensorType& rows) {
  if (table.shape.rank() != 2 || table.rows > 0) return fmt::format("{} is not a table", to_string(table));
  return expect_longer(indices, table.shape[1], rows);
}
Fault gather(const StepTypes& step) {
  return rows_of(step.inputs[0], step.inputs[1], step.output);
}
Fault scatter_add(const StepTypes& step) {
  return rows_of(step.output, step.inputs[0], step.inputs[1]);
}

// ---- batches, counters, random samples

Fault batches(const StepTypes& step) {
  const auto& params = step.params.as<MinibatchParams>();
  if (params.capacity < 1 || params.capacity > kMaxBatch || params.total < 1 || params.total > kMaxElements ||
      params.batches() < 1) {
    return fmt::format("{} rows in batches of {}", params.total, params.capacity);
  }
  return kFine;
}

Fault minibatch(const StepTypes& step) {
  if (Fault fault = batches(step); !fault.empty()) return fault;
  const auto& params = step.params.as<MinibatchParams>();
  const TensorType& data = step.inputs[0];
  if (data.shape.rank() == 0 || data.rows > 0 || data.shape[0] != params.total)
    return fmt::format("{} are not {} rows", to_string(data), params.total);
  TensorType wanted = with_extent(data, 0, params.capacity);
  wanted.rows = 1;
  return expect(wanted, step.output);
}

Fault scalar(const StepTypes& step) {
  return step.output.shape.rank() == 0 ? kFine : fmt::format("{} is not a scalar", to_string(step.output));
}
Fault row_count(const StepTypes& step) {
  Fault fault = batches(step);
  return fault.empty() ? scalar(step) : fault;
}

Fault record(const StepTypes& step) {
  const TensorType& ring = step.inputs[0];
  if (ring.shape.rank() != 1 || ring.shape[0] == 0 || ring.rows > 0)
    return fmt::format("{} is not a ring buffer", to_string(ring));
  if (step.inputs[1].shape.rank() != 0) return fmt::format("{} is not a scalar", to_string(step.inputs[1]));
  return same(step);
}

Fault draw(const StepTypes& step) {
  const auto& params = step.params.as<RandomParams>();
  return std::isfinite(params.a) && std::isfinite(params.b) ? kFine
                                                            : fmt::format("parameters {} and {}", params.a, params.b);
}
Fault dropout(const StepTypes& step) {
  const double rate = step.params.as<RandomParams>().a;
  if (!(rate >= 0 && rate < 1)) return fmt::format("a rate of {}", rate);
  return same(step);
}
Fault permutation(const StepTypes& step) {
  const bool counts = step.output.shape.rank() == 1 && step.output.rows == 0 &&
                      step.output.shape[0] <= std::numeric_limits<std::int32_t>::max();
  return counts ? kFine : fmt::format("{} is not a list of i32 numbers", to_string(step.output));
}

// `fault` describes a violation in the shapes, rows or parameter ranges of a step.
struct OpRule {
  OpTraits traits = {};
  Fault (*fault)(const StepTypes&) = nullptr;
  bool elementwise = false;
};
struct NamedRule {
  Op op;
  OpRule rule;
};
constexpr NamedRule kStructured[] = {
    {Op::minibatch, {{"TU>T", MinibatchParams::kKind}, minibatch}},
    {Op::row_count, {{"U>I", MinibatchParams::kKind}, row_count, true}},
    {Op::increment, {{"U>U", NoParams::kKind, Overlay::reuse}, scalar, true}},
    {Op::record, {{"SSU>S", NoParams::kKind, Overlay::state}, record, true}},
    {Op::assign, {{"TT>T", NoParams::kKind, Overlay::state}, assign, true}},
    {Op::where, {{"BTT>T", NoParams::kKind, Overlay::reuse}, elementwise, true}},
    {Op::matmul, {{"FF>F", MatmulParams::kKind, Overlay::none, CombineOp::sum}, matmul}},
    {Op::sum, {{"F>F", ReduceParams::kKind, Overlay::none, CombineOp::sum}, reduce}},
    {Op::max, {{"F>F", ReduceParams::kKind, Overlay::none, CombineOp::max}, reduce}},
    {Op::min, {{"F>F", ReduceParams::kKind, Overlay::none, CombineOp::min}, reduce}},
    {Op::prod, {{"F>F", ReduceParams::kKind, Overlay::none, CombineOp::product}, reduce}},
    {Op::logsumexp, {{"F>F", ReduceParams::kKind}, reduce}},
    {Op::argmax, {{"F>I", AxisParams::kKind}, position}},
    {Op::argmin, {{"F>I", AxisParams::kKind}, position}},
    {family_op::softmax, {{"F>F", AxisParams::kKind, Overlay::reuse}, along_axis}},
    {family_op::log_softmax, {{"F>F", AxisParams::kKind, Overlay::reuse}, along_axis}},
    {family_op::softmax_cross_entropy, {{"FL>F"}, cross_entropy}},
    {Op::reshape, {{"T>T"}, reshape}},
    {family_op::stop_gradient, {{"T>T"}, same}},
    {Op::broadcast_to, {{"T>T"}, broadcast_to, true}},
    {Op::cast, {{"A>A"}, same, true}},
    {Op::transpose, {{"T>T", PermuteParams::kKind}, permute}},
    {Op::slice, {{"T>T", SliceParams::kKind}, slice}},
    {Op::pad, {{"F>F", PadParams::kKind}, pad}},
    {Op::concat, {{"T+>T", AxisParams::kKind}, concat}},
    {family_op::varying_minibatch, {{"TUU>T", MinibatchParams::kKind}, minibatch}},
    {family_op::varying_row_count, {{"UU>I", MinibatchParams::kKind}, row_count}},
    {family_op::one_hot, {{"I>S"}, one_hot}},
    {family_op::gather, {{"TI>T"}, gather}},
    {Op::scatter_add, {{"IF>F", NoParams::kKind, Overlay::none, CombineOp::sum}, scatter_add}},
    {family_op::random_uniform, {{"U>S", RandomParams::kKind}, draw}},
    {family_op::random_normal, {{"U>S", RandomParams::kKind}, draw}},
    {family_op::permutation, {{"U>I", RandomParams::kKind}, permutation}},
    {Op::dropout, {{"FU>F", RandomParams::kKind, Overlay::reuse}, dropout}},
};

// The table below evaluates this at compile time, so a missing op is a compile error.
constexpr OpRule rule(Op op) {
  switch (static_cast<std::uint16_t>(op)) {
#define GRAPHRUN_SOURCE(name) case static_cast<std::uint16_t>(Op::name):
#define GRAPHRUN_CASE(name, ...) case static_cast<std::uint16_t>(scalar_op::name):
    GRAPHRUN_SOURCE_OPS(GRAPHRUN_SOURCE)
    return {};
    GRAPHRUN_PLAIN_OPS(GRAPHRUN_CASE)
    return {{"F>F", NoParams::kKind, Overlay::reuse}, elementwise, true};
    GRAPHRUN_PARAMETRIC_OPS(GRAPHRUN_CASE)
    return {{"F>F", ScalarParams::kKind, Overlay::reuse}, op == scalar_op::clip ? clip : scalars, true};
    GRAPHRUN_BINARY_OPS(GRAPHRUN_CASE)
    return {{"FF>F", NoParams::kKind, Overlay::reuse}, elementwise, true};
    GRAPHRUN_COMPARE_OPS(GRAPHRUN_CASE)
    return {{"TT>B"}, elementwise, true};
    GRAPHRUN_LOGICAL_OPS(GRAPHRUN_CASE)
    return {{op == scalar_op::logical_not ? "B>B" : "BB>B", NoParams::kKind, Overlay::reuse}, elementwise, true};
#undef GRAPHRUN_CASE
#undef GRAPHRUN_SOURCE
    default:
      for (const NamedRule& one : kStructured)
        if (one.op == op) return one.rule;
      throw std::logic_error("an op without traits");
  }
}

constexpr std::string_view kNoOp = "?";
struct Row {
  std::string_view name = kNoOp;
  OpRule rule = {};
};
// Indexed by op number; the last row is for all unknown, larger numbers.
constexpr auto kRows = [] {
  std::array<Row, kOps + 1> rows;
#define GRAPHRUN_ROW(list, name) rows[static_cast<std::size_t>(list::name)] = {#name, rule(list::name)};
#define GRAPHRUN_CORE_ROW(name) GRAPHRUN_ROW(Op, name)
#define GRAPHRUN_FAMILY_ROW(name) GRAPHRUN_ROW(family_op, name)
#define GRAPHRUN_SCALAR_ROW(name, ...) GRAPHRUN_ROW(scalar_op, name)
  GRAPHRUN_SOURCE_OPS(GRAPHRUN_CORE_ROW)
  GRAPHRUN_STRUCTURED_OPS(GRAPHRUN_CORE_ROW)
  GRAPHRUN_FAMILY_OPS(GRAPHRUN_FAMILY_ROW)
  GRAPHRUN_SCALAR_OPS(GRAPHRUN_SCALAR_ROW)
#undef GRAPHRUN_ROW
#undef GRAPHRUN_CORE_ROW
#undef GRAPHRUN_FAMILY_ROW
#undef GRAPHRUN_SCALAR_ROW
  return rows;
}();

const Row& row_of(Op op) {
  return kRows[std::min(static_cast<std::size_t>(op), kOps)];
}

// Matches types against the letters of a signature; F and T bind to the first dtype they match.
class DTypes {
 public:
  bool take(char letter, const TensorType& type) {
    const DType dtype = type.dtype;
    if (letter == 'A') return true;
    if (letter == 'T') return bind(any_, dtype);
    if (letter == 'S') return dtype == DType::f32;
    if (letter == 'I' || (letter == 'L' && dtype == DType::i32)) return dtype == DType::i32;
    if (letter == 'B') return dtype == DType::boolean;
    if (letter == 'U') return dtype == DType::u64 && type.shape.rank() == 0;
    return (letter == 'F' || letter == 'L') && is_float(dtype) && bind(float_, dtype);
  }

 private:
  static bool bind(std::optional<DType>& bound, DType dtype) {
    if (!bound) bound = dtype;
    return bound == dtype;
  }
  std::optional<DType> float_, any_;
};

}  // namespace

std::string_view name_of(Op op) {
  return row_of(op).name;
}

std::optional<Op> find_op(std::string_view name) {
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const Row& row) { return row.name == name; });
  return found == kRows.end() || name == kNoOp ? std::nullopt : std::optional(static_cast<Op>(found - kRows.begin()));
}

const OpTraits& traits_of(Op op) {
  return row_of(op).rule.traits;
}

bool is_elementwise(Op op) {
  return row_of(op).rule.elementwise;
}

std::string operand_fault(Op op, std::span<const TensorType> inputs, const TensorType& output) {
  const std::string_view wanted = traits_of(op).dtypes;
  if (wanted.empty()) return "it is not an op of a step";
  const std::size_t arrow = wanted.find('>');
  const bool more = wanted[arrow - 1] == '+';
  const std::size_t operands = arrow - (more ? 1 : 0);
  if (more ? inputs.size() < operands : inputs.size() != operands) {
    return fmt::format("it takes {}{} operands, {} are given", more ? "at least " : "", operands, inputs.size());
  }
  DTypes dtypes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!dtypes.take(wanted[std::min(i, operands - 1)], inputs[i])) {
      return fmt::format("operand {} is {}", i + 1, to_string(inputs[i]));
    }
  }
  return dtypes.take(wanted[arrow + 1], output) ? std::string() : fmt::format("its output is {}", to_string(output));
}

std::string fault_of(Op op, std::span<const TensorType> inputs, const TensorType& output, const Params& params) {
  const OpRule& rule = row_of(op).rule;
  if (Fault fault = operand_fault(op, inputs, output); !fault.empty()) return fault;
  return params.kind() == rule.traits.params ? rule.fault({inputs, output, params})
                                             : "its parameters are those of another op";
}

}  // namespace graphrun
