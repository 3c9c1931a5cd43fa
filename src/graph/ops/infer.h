// infer.h: the inference rules that several ops share.
// Contract: each returns the full type of the output, `rows` included, or fails through the context.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/ops/op_def.h"

namespace graphrun::infer {

// The type of a node from its inputs in the graph, within the limits. Throws Error.
TensorType type_of(const ir::Graph& graph, const ir::Node& node);

// NumPy broadcasting of all operands from index `first` on; their dtypes must be equal. Row operands must meet at
// dimension 0: a row operand of smaller rank would pair every row with every other, and is an error.
TensorType broadcast(const InferContext& context, std::size_t first = 0);

TensorType float_broadcast(const InferContext& context);  // and the dtype must be a float
TensorType same_float(const InferContext& context);       // one float operand, same type out

void require_scalar(const InferContext& context, std::size_t i, DType dtype);
void require_float(const InferContext& context, std::size_t i);
DType dtype_attribute(const InferContext& context);
Shape declared_shape(const InferContext& context);  // the attribute "shape"; dimension 0 may be the batch

// Axes of a reduction: negative ones counted from the end, none = all. Fails on duplicates and out-of-range axes.
std::vector<int> axes(const std::vector<std::int64_t>& given, int rank, const InferContext& context);
std::uint32_t axis_mask(const std::vector<std::int64_t>& given, int rank);  // of axes that were inferred before

// The attribute "axis" of an op that looks along one axis, counted from 0.
int axis_of(const ir::Attrs& attrs, int rank);
// The same of operand 0, checked. `why`: what speaks against the axis of the batch.
int one_axis(const InferContext& context, std::string_view why);
// The real attributes in the order of the schema, at most two; 0 for what is not there.
std::array<double, 2> two_reals(const ir::Attrs& attrs);
Params pack_axis(const ir::Attrs& attrs, std::span<const TensorType> inputs, const TensorType&);

// The multiplicity of a shape that regroups an operand with rows: follows dimension 0; fails when it does not divide.
std::int64_t regrouped_rows(const InferContext& context, const TensorType& operand, const Shape& shape);

}  // namespace graphrun::infer
