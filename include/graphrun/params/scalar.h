// params/scalar.h: parameters of scalar ops with attributes.
// Contract: see params.h. Not here: the list of these ops (scalar_op_list.h).
#pragma once

#include "graphrun/params.h"

namespace graphrun {

// Scalar ops with attributes: up to two numbers, in the order of the op's schema (leaky_relu: slope; clip: low, high).
struct ScalarParams {
  static constexpr ParamsKind kKind = params_kind("scalar");
  double a = 0;
  double b = 0;
  constexpr void describe(auto&& f) const { f("a", a), f("b", b); }
  friend bool operator==(const ScalarParams&, const ScalarParams&) = default;
};

using ScalarParamsList = ParamsList<ScalarParams>;

}  // namespace graphrun
