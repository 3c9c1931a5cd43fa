// make.h: short names for the nodes that gradients are written with.
#pragma once

#include <string>
#include <vector>

#include "graph/ops/op_def.h"

namespace graphrun::make {

using ir::NodeId;

inline NodeId add(NodeFactory& f, NodeId a, NodeId b) {
  return f.add("add", {a, b});
}
inline NodeId sub(NodeFactory& f, NodeId a, NodeId b) {
  return f.add("sub", {a, b});
}
inline NodeId mul(NodeFactory& f, NodeId a, NodeId b) {
  return f.add("mul", {a, b});
}
inline NodeId div(NodeFactory& f, NodeId a, NodeId b) {
  return f.add("div", {a, b});
}
inline NodeId neg(NodeFactory& f, NodeId a) {
  return f.add("neg", {a});
}
inline NodeId square(NodeFactory& f, NodeId a) {
  return f.add("square", {a});
}
inline NodeId like(NodeFactory& f, double value, NodeId of) {
  return f.scalar(value, f.type(of).dtype);
}
inline NodeId scale(NodeFactory& f, NodeId a, double factor) {
  return mul(f, a, like(f, factor, a));
}
inline NodeId sum(NodeFactory& f, NodeId a, std::vector<std::int64_t> axes, bool keepdims) {
  return f.add("sum", {a}, {{"axes", std::move(axes)}, {"keepdims", keepdims}});
}
inline std::vector<std::int64_t> dims(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}
inline NodeId reshape(NodeFactory& f, NodeId a, const Shape& shape) {
  return f.type(a).shape == shape ? a : f.add("reshape", {a}, {{"shape", dims(shape)}});
}
inline NodeId broadcast_to(NodeFactory& f, NodeId a, const TensorType& type) {
  return f.add("broadcast_to", {a}, {{"shape", dims(type.shape)}, {"rows", type.rows}});
}
inline NodeId cast(NodeFactory& f, NodeId a, DType dtype) {
  return f.type(a).dtype == dtype ? a : f.add("cast", {a}, {{"dtype", std::string(name_of(dtype))}});
}

}  // namespace graphrun::make
