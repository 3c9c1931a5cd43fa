#include "graph/ops/infer.h"

#include <fmt/format.h>

#include <algorithm>

#include "graphrun/params/axes.h"

namespace graphrun::infer {
namespace {

std::string operand_list(const InferContext& context, std::size_t first) {
  std::string text;
  for (std::size_t i = first; i < context.inputs.size(); ++i) {
    text += (text.empty() ? "" : i + 1 == context.inputs.size() ? " and " : ", ") + context.operand(i);
  }
  return text;
}

// Rows of a broadcast result. Only declared rows identify the batch; extents are never compared to find it.
std::int64_t broadcast_rows(const InferContext& context, std::size_t first, int rank) {
  std::int64_t rows = 0;
  for (std::size_t i = first; i < context.inputs.size(); ++i) {
    const TensorType& operand = context.inputs[i];
    if (operand.rows == 0) continue;
    if (operand.shape.rank() < rank) {
      context.fail("shape.rows",
                   fmt::format("{}: broadcasting would pair every row with every other", operand_list(context, first)),
                   fmt::format("give {} the shape (batch, 1), for instance with reshape({}, shape=[-1, 1])",
                               context.operand_names[i], context.operand_names[i]));
    }
    if (rows != 0 && rows != operand.rows) {
      context.fail("shape.rows",
                   fmt::format("{} have different numbers of rows a sample", operand_list(context, first)));
    }
    rows = operand.rows;
  }
  if (rows == 0) return 0;
  for (std::size_t i = first; i < context.inputs.size(); ++i) {
    const TensorType& operand = context.inputs[i];
    if (operand.rows == 0 && operand.shape.rank() == rank && operand.shape[0] != 1) {
      context.fail("shape.rows", fmt::format("{}: {} has no batch dimension, but its dimension 0 would meet the batch",
                                             operand_list(context, first), context.operand(i)));
    }
  }
  return rows;
}

// Checks every value once, so that later code may multiply extents and sizes without overflow checks.
void check_limits(const TensorType& type) {
  const std::int64_t first = type.shape.rank() == 0 ? 0 : type.shape[0];
  try {
    (void)type.shape.with_batch(1).elements();
  } catch (const Error& error) {
    Diagnostic told = error.diagnostics().front();
    if (batch_rows(first) > 0) told.message = "of one sample, " + told.message;
    throw Error(error.kind(), {std::move(told)});
  }
  const bool agrees = batch_rows(first) > 0
                          ? batch_rows(first) == type.rows
                          : type.rows == 0 || (type.rows > 0 && type.shape.rank() > 0 && first % type.rows == 0);
  if (!agrees) {
    throw Error(ErrorKind::input, "shape.rows",
                fmt::format("{} cannot have {} rows a sample", to_string(type.shape), type.rows));
  }
}

}  // namespace

TensorType type_of(const ir::Graph& graph, const ir::Node& node) {
  std::vector<std::string> names;
  for (const ir::NodeId input : node.inputs) names.push_back(graph[input].name);
  const TensorType type = node.def->infer({ir::input_types(graph, node), node.attrs, names});
  check_limits(type);
  return type;
}

TensorType broadcast(const InferContext& context, std::size_t first) {
  int rank = 0;
  for (std::size_t i = first; i < context.inputs.size(); ++i) {
    rank = std::max(rank, context.inputs[i].shape.rank());
    if (context.inputs[i].dtype != context.inputs[first].dtype) {
      context.fail("dtype.mismatch", fmt::format("{} must have the same dtype", operand_list(context, first)));
    }
  }
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank), 1);
  for (std::size_t i = first; i < context.inputs.size(); ++i) {
    const Shape& shape = context.inputs[i].shape;
    const int shift = rank - shape.rank();
    for (int axis = 0; axis < shape.rank(); ++axis) {
      std::int64_t& extent = dims[static_cast<std::size_t>(axis + shift)];
      if (shape[axis] == 1 || shape[axis] == extent) continue;
      if (extent != 1) {
        context.fail("shape.mismatch",
                     fmt::format("{} do not broadcast: dimension {} of the result would need two extents",
                                 operand_list(context, first), axis + shift));
      }
      extent = shape[axis];
    }
  }
  return {context.inputs[first].dtype, Shape(dims), broadcast_rows(context, first, rank)};
}

void require_float(const InferContext& context, std::size_t i) {
  if (!is_float(context.inputs[i].dtype)) {
    context.fail("dtype.float", fmt::format("{} must be f32 or f64", context.operand(i)),
                 "cast(…, dtype=f32) converts");
  }
}

TensorType float_broadcast(const InferContext& context) {
  for (std::size_t i = 0; i < context.inputs.size(); ++i) require_float(context, i);
  return broadcast(context);
}

TensorType same_float(const InferContext& context) {
  require_float(context, 0);
  return context.inputs[0];
}

void require_scalar(const InferContext& context, std::size_t i, DType dtype) {
  const TensorType& type = context.inputs[i];
  if (type.dtype != dtype || type.shape.rank() != 0) {
    context.fail("shape.scalar", fmt::format("{} must be a scalar {}", context.operand(i), name_of(dtype)));
  }
}

DType dtype_attribute(const InferContext& context) {
  DType dtype{};
  if (!parse_dtype(context.attrs.string("dtype"), dtype)) {
    context.fail("attribute.value",
                 fmt::format("'dtype' must be f32, f64, i32, u64 or bool, got '{}'", context.attrs.string("dtype")));
  }
  return dtype;
}

Shape declared_shape(const InferContext& context) {
  const Shape shape(context.attrs.integers("shape"));
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] < 0 && (axis > 0 || batch_rows(shape[axis]) == 0))
      context.fail("shape.extent", fmt::format("an extent must be >= 0, got {}", shape[axis]));
  }
  return shape;
}

std::vector<int> axes(const std::vector<std::int64_t>& given, int rank, const InferContext& context) {
  std::vector<int> result;
  for (const std::int64_t axis : given) {
    const std::int64_t positive = axis < 0 ? axis + rank : axis;
    if (positive < 0 || positive >= rank) {
      context.fail("attribute.axis", fmt::format("axis {} is out of range for {}", axis, context.operand(0)));
    }
    if (std::find(result.begin(), result.end(), static_cast<int>(positive)) != result.end()) {
      context.fail("attribute.axis", fmt::format("axis {} is named twice", axis));
    }
    result.push_back(static_cast<int>(positive));
  }
  if (given.empty()) {
    for (int axis = 0; axis < rank; ++axis) result.push_back(axis);
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::uint32_t axis_mask(const std::vector<std::int64_t>& given, int rank) {
  if (given.empty()) return (1u << rank) - 1u;
  std::uint32_t mask = 0;
  for (const std::int64_t axis : given) mask |= 1u << (axis < 0 ? axis + rank : axis);
  return mask;
}

int axis_of(const ir::Attrs& attrs, int rank) {
  const std::int64_t axis = attrs.integer("axis");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

int one_axis(const InferContext& context, std::string_view why) {
  const TensorType& in = context.inputs[0];
  const int axis = axes({context.attrs.integer("axis")}, in.shape.rank(), context).front();
  if (axis == 0 && in.rows > 0) {
    context.fail("shape.rows", fmt::format("{}: axis 0 is the batch{}", context.operand(0), why));
  }
  return axis;
}

std::array<double, 2> two_reals(const ir::Attrs& attrs) {
  std::array<double, 2> reals{};
  std::size_t count = 0;
  for (const auto& [name, value] : attrs.list()) {
    if (const auto* real = std::get_if<double>(&value)) reals.at(count++) = *real;
  }
  return reals;
}

Params pack_axis(const ir::Attrs& attrs, std::span<const TensorType> inputs, const TensorType&) {
  return AxisParams{axis_of(attrs, inputs[0].shape.rank())};
}

std::int64_t regrouped_rows(const InferContext& context, const TensorType& operand, const Shape& shape) {
  if (operand.rows == 0) return 0;
  if (operand.shape[0] == 0) return operand.rows;
  const std::int64_t first = shape.rank() == 0 ? 0 : shape[0];
  const bool symbolic = batch_rows(operand.shape[0]) > 0;
  const std::int64_t batch = operand.shape[0] / operand.rows;
  const std::int64_t rows = symbolic ? batch_rows(first) : first % batch == 0 ? first / batch : 0;
  if (rows <= 0) {
    context.fail("shape.rows",
                 fmt::format("{} cannot become {}: dimension 0 must stay a multiple of the batch", context.operand(0),
                             to_string(shape)),
                 "-1 as the first extent is inferred, the batch included");
  }
  return rows;
}

}  // namespace graphrun::infer
