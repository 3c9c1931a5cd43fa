// make.h: operators on nodes, so that gradients and functions can be written as formulas.
// Contract: an operator adds one node. A number operand first becomes a constant of the other operand's dtype.
// C++ leaves the evaluation order of operands unspecified. If both operands add nodes, store the second in a variable
// first, so that every compiler builds the same graph.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "graph/ops/op_def.h"

namespace graphrun {
namespace make {

inline Var op(std::string_view name, std::initializer_list<Var> operands, const AttrList& attrs = {}) {
  std::vector<ir::NodeId> ids;
  for (const Var& operand : operands) ids.push_back(operand.id);
  ir::Builder* const factory = operands.begin()->make;
  return {factory, factory->add(name, std::move(ids), attrs)};
}
inline Var like(double value, Var of) {
  return {of.make, of.make->scalar(value, of.type().dtype)};
}
inline std::vector<std::int64_t> dims(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}
inline AttrValue dtype(DType dtype) {
  return std::string(name_of(dtype));
}
// A node without operands: an input, a state, a parameter, a constant. Pass `rows` in `attrs`, not in `type`.
inline Var source(ir::Builder& f, std::string_view op, const TensorType& type, AttrList attrs = {}) {
  attrs.insert(attrs.begin(), {{"dtype", dtype(type.dtype)}, {"shape", dims(type.shape)}});
  return {&f, f.add(op, {}, attrs)};
}
inline Var square(Var x) {
  return op("square", {x});
}
inline Var sum(Var x, std::vector<std::int64_t> axes, bool keepdims) {
  return op("sum", {x}, {{"axes", std::move(axes)}, {"keepdims", keepdims}});
}
// Any number of parts: a tree of concat nodes, each of at most kMaxOperands operands.
inline Var concat(std::vector<Var> parts, std::int64_t axis) {
  while (parts.size() > 1) {
    std::vector<Var> joined;
    for (std::size_t first = 0; first < parts.size(); first += kMaxOperands) {
      std::vector<ir::NodeId> ids;
      for (std::size_t i = first; i < parts.size() && i < first + kMaxOperands; ++i) ids.push_back(parts[i].id);
      const bool one = ids.size() == 1;
      joined.push_back(one ? parts[first] : Var{parts[0].make, parts[0].make->add("concat", ids, {{"axis", axis}})});
    }
    parts = std::move(joined);
  }
  return parts.front();
}
inline Var reshape(Var x, const Shape& shape) {
  return x.type().shape == shape ? x : op("reshape", {x}, {{"shape", dims(shape)}});
}
inline Var broadcast_to(Var x, const TensorType& type) {
  return op("broadcast_to", {x}, {{"shape", dims(type.shape)}, {"rows", type.rows}});
}
inline Var cast(Var x, DType to) {
  return x.type().dtype == to ? x : op("cast", {x}, {{"dtype", dtype(to)}});
}

}  // namespace make

inline Var operator+(Var a, Var b) {
  return make::op("add", {a, b});
}
inline Var operator-(Var a, Var b) {
  return make::op("sub", {a, b});
}
inline Var operator*(Var a, Var b) {
  return make::op("mul", {a, b});
}
inline Var operator/(Var a, Var b) {
  return make::op("div", {a, b});
}
inline Var operator-(Var a) {
  return make::op("neg", {a});
}
inline Var operator+(Var a, double b) {
  return a + make::like(b, a);
}
inline Var operator-(Var a, double b) {
  return a - make::like(b, a);
}
inline Var operator*(Var a, double b) {
  return a * make::like(b, a);
}
inline Var operator/(Var a, double b) {
  return a / make::like(b, a);
}
inline Var operator-(double a, Var b) {
  return make::like(a, b) - b;
}
inline Var operator/(double a, Var b) {
  return make::like(a, b) / b;
}

}  // namespace graphrun
