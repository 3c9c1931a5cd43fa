// infer.h: type inference of a node: reads its attributes, then applies the op's rule (types/op_rules.h).
// Contract: a type includes `rows`. Functions that take an OpCall throw Error through it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "graph/ops/op_def.h"

namespace graphrun::infer {

// Infers the type of a node from its inputs in the graph. Throws Error, also if the type exceeds limits.h.
TensorType type_of(const ir::Graph& graph, const ir::Node& node);
// Also works while a pass is building the graph, if the node's operands are in it.
Params params_of(const ir::Graph& graph, const ir::Node& node);

DType dtype_attribute(const OpCall& call);
Shape declared_shape(const OpCall& call);  // the attribute "shape"; dimension 0 may be the batch

// Axes as bits; an empty list means all. axes() fails on duplicates and out-of-range axes.
std::uint32_t axes(const std::vector<std::int64_t>& given, int rank, const OpCall& call);
std::uint32_t axis_mask(const std::vector<std::int64_t>& given, int rank);

// The attribute "axis" as an index >= 0, unchecked.
int axis_of(const ir::Attrs& attrs, int rank);
int one_axis(const OpCall& call);  // fails unless it is an axis of operand 0
// The real attributes in schema order, at most two, padded with 0.
std::array<double, 2> two_reals(const ir::Attrs& attrs);
Params pack_axis(const OpCall& call);

}  // namespace graphrun::infer
