// flat_vector.h: all parameters as one vector, and formulas on vectors, for optimizers that update them jointly.
#pragma once

#include <string_view>
#include <vector>

#include "graph/ops/make.h"

namespace graphrun {

inline Var dot(Var a, Var b) {
  return make::sum(a * b, {}, false);
}
inline Var choose(Var condition, Var yes, Var no) {
  return make::op("where", {condition, yes, no});
}
inline Var both(Var a, Var b) {
  return make::op("logical_and", {a, b});
}
inline Var negated(Var a) {
  return make::op("logical_not", {a});
}
inline Var is_below(Var a, Var b) {
  return make::op("less", {a, b});
}

// Number of trained numbers. Throws Error for more than 2,048, whose matrix takes 16 MiB.
std::int64_t joint_size(std::string_view optimizer, const std::vector<Var>& parameters);
// All elements as one vector.
Var flat(const std::vector<Var>& values);
// The part of a flat vector that starts at `start`, in the shape of `like`.
Var part_of(Var vector, std::int64_t start, const Shape& like);
// Calls f(parameter, its part of the vector) for each parameter.
template <class F>
void each_part(Var vector, const std::vector<Var>& parameters, F f) {
  std::int64_t start = 0;
  for (const Var parameter : parameters) {
    const Shape shape = parameter.type().shape;
    f(parameter, part_of(vector, start, shape));
    start += shape.elements();
  }
}
// The identity matrix in f32, for vectors of this length.
Var identity_like(Var vector);
// A state "train:<name>" that starts at zero.
Var joint_slot(ir::Builder& make, std::string_view name, const TensorType& type);

}  // namespace graphrun
