// infer.h: type inference of a node: reads its attributes, then applies the op's rule (types/op_rules.h).
// Contract: a type includes `rows`. Functions that take an OpCall throw Error through it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "graph/ops/op_def.h"

namespace graphrun::infer {

// Infers the type of a node from its inputs in the graph. Throws Error, also if the type exceeds a limit of types.h.
TensorType type_of(const ir::Graph& graph, const ir::Node& node);
// Also works while a pass is building the graph, if the node's operands are in it.
Params params_of(const ir::Graph& graph, const ir::Node& node);

DType dtype_attribute(const OpCall& call);
Shape declared_shape(const OpCall& call);  // the attribute "shape"; dimension 0 may be the batch

// An axis or element that negative numbers count from the end.
inline std::int64_t from_front(std::int64_t index, std::int64_t extent) {
  return index < 0 ? index + extent : index;
}
// Axes of operand 0 as bits; an empty list means all. Both fail on out-of-range axes, axes() also on duplicates.
std::uint32_t axes(const std::vector<std::int64_t>& given, int rank, const OpCall& call);
int one_axis(const OpCall& call);  // the attribute "axis" as an index >= 0
// The real attributes in schema order, at most two, padded with 0.
std::array<double, 2> two_reals(const ir::Attrs& attrs);
Params pack_axis(const OpCall& call);

}  // namespace graphrun::infer
