#include "graph/ops/infer.h"

#include <fmt/format.h>

#include <bit>

#include "graphrun/params.h"

namespace graphrun::infer {
namespace {

void check_size(const Shape& shape) {
  try {
    (void)shape.with_batch(1).elements();
  } catch (const Error& error) {
    Diagnostic cause = error.diagnostics().front();
    if (shape.rank() > 0 && batch_rows(shape[0]) > 0) cause.message = "of one sample, " + cause.message;
    throw Error(error.kind(), {std::move(cause)});
  }
}

// Checks every value once, so that later code may multiply extents and sizes without overflow checks.
void check_limits(const TensorType& type) {
  check_size(type.shape);
  const std::int64_t first = type.shape.rank() == 0 ? 0 : type.shape[0];
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
  const std::vector<TensorType> inputs = ir::input_types(graph, node);
  const OpCall call{{inputs, names}, node.attrs};
  TensorType type = node.def->declare != nullptr ? node.def->declare(call) : TensorType();
  if (node.def->state == nullptr) {
    check_size(type.shape);
    const Params params = node.def->pack != nullptr ? node.def->pack(call) : Params();
    type = infer_type(node.op, {{inputs, names}, params, type});
  }
  check_limits(type);
  return type;
}

Params params_of(const ir::Graph& graph, const ir::Node& node) {
  if (node.def->pack == nullptr) return {};
  return node.def->pack({{ir::input_types(graph, node)}, node.attrs});
}

DType dtype_attribute(const OpCall& call) {
  DType dtype{};
  (void)parse_dtype(call.attrs.string("dtype"), dtype);  // the schema lists the valid names
  return dtype;
}

Shape declared_shape(const OpCall& call) {
  const Shape shape(call.attrs.integers("shape"));
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] < 0 && (axis > 0 || batch_rows(shape[axis]) == 0))
      call.fail("shape.extent", fmt::format("an extent must be >= 0, got {}", shape[axis]));
  }
  return shape;
}

std::uint32_t axes(const std::vector<std::int64_t>& given, int rank, const OpCall& call) {
  std::uint32_t mask = 0;
  for (const std::int64_t axis : given) {
    const std::int64_t positive = from_front(axis, rank);
    if (positive < 0 || positive >= rank) {
      call.fail("attribute.axis", fmt::format("axis {} is out of range for {}", axis, call.operand(0)));
    }
    if ((mask >> positive & 1u) != 0) call.fail("attribute.axis", fmt::format("axis {} is named twice", axis));
    mask |= 1u << positive;
  }
  return given.empty() ? (1u << rank) - 1u : mask;
}

int one_axis(const OpCall& call) {
  return std::countr_zero(axes({call.attrs.integer("axis")}, call.inputs[0].shape.rank(), call));
}

std::array<double, 2> two_reals(const ir::Attrs& attrs) {
  std::array<double, 2> reals{};
  std::size_t count = 0;
  for (const auto& [name, value] : attrs.list()) {
    if (const auto* real = std::get_if<double>(&value)) reals.at(count++) = *real;
  }
  return reals;
}

Params pack_axis(const OpCall& call) {
  return AxisParams{one_axis(call)};
}

}  // namespace graphrun::infer
