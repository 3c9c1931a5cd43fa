// infer.h: type inference rules shared by several ops.
// Contract: each returns the full type of the output, including `rows`, or fails through the context.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/ops/op_def.h"

namespace graphrun::infer {

// Infers the type of a node from its inputs in the graph. Throws Error, also if the type exceeds limits.h.
TensorType type_of(const ir::Graph& graph, const ir::Node& node);

// NumPy broadcasting of the operands from index `first` on; their dtypes must be equal. Row operands must align at
// dimension 0: a row operand of smaller rank would pair every row with every other, so it is an error.
TensorType broadcast(const InferContext& context, std::size_t first = 0);

TensorType float_broadcast(const InferContext& context);  // broadcast() of floats
TensorType same_float(const InferContext& context);       // one float operand, same type out

void require_scalar(const InferContext& context, std::size_t i, DType dtype);
void require_float(const InferContext& context, std::size_t i);
DType dtype_attribute(const InferContext& context);
Shape declared_shape(const InferContext& context);  // the attribute "shape"; dimension 0 may be the batch

// Axes of a reduction, >= 0 and sorted; an empty list means all. Fails on duplicates and out-of-range axes.
std::vector<int> axes(const std::vector<std::int64_t>& given, int rank, const InferContext& context);
std::uint32_t axis_mask(const std::vector<std::int64_t>& given, int rank);  // unchecked

// The attribute "axis" as an index >= 0, unchecked.
int axis_of(const ir::Attrs& attrs, int rank);
// Checked variant for operand 0. `why` ends the error message for the batch axis, which is not allowed.
int one_axis(const InferContext& context, std::string_view why);
// The real attributes in schema order, at most two, padded with 0.
std::array<double, 2> two_reals(const ir::Attrs& attrs);
Params pack_axis(const ir::Attrs& attrs, std::span<const TensorType> inputs, const TensorType&);

// Rows per sample after a reshape to `shape`. Fails if dimension 0 is not a multiple of the batch.
std::int64_t regrouped_rows(const InferContext& context, const TensorType& operand, const Shape& shape);

}  // namespace graphrun::infer
