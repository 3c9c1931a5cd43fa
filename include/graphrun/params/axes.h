// params/axes.h: parameters of reductions and of ops along one axis.
// Contract: see params.h. Not here: the check that axes fit the operand (src/types/op_rules.cpp).
#pragma once

#include <cstdint>

#include "graphrun/params.h"

namespace graphrun {

// Reductions. Bit i of `axes` is set if the op reduces axis i of the input.
struct ReduceParams {
  static constexpr ParamsKind kKind = params_kind("reduce");
  std::uint32_t axes = 0;
  bool keepdims = false;
  constexpr void describe(auto&& f) const { f("axes", axes), f("keepdims", keepdims); }
  friend bool operator==(const ReduceParams&, const ReduceParams&) = default;
};

// Ops along one axis, counted from 0: softmax, log_softmax, argmax, argmin, concat.
struct AxisParams {
  static constexpr ParamsKind kKind = params_kind("axis");
  std::int32_t axis = 0;
  constexpr void describe(auto&& f) const { f("axis", axis); }
  friend bool operator==(const AxisParams&, const AxisParams&) = default;
};

using AxesParamsList = ParamsList<ReduceParams, AxisParams>;

}  // namespace graphrun
