// params/movement.h: parameters of transpose, slice and pad.
// Contract: see params.h. Not here: the check that they fit the operand (src/types/op_rules.cpp).
#pragma once

#include <cstdint>
#include <span>

#include "graphrun/params.h"
#include "graphrun/types.h"

namespace graphrun {

// transpose: axis i of the output is axis axes[i] of the input; entries beyond the rank are 0.
struct PermuteParams {
  static constexpr ParamsKind kKind = params_kind("permute");
  std::int32_t axes[kMaxRank] = {};
  constexpr void describe(auto&& f) const { f("axes", std::span<const std::int32_t>(axes)); }
  friend bool operator==(const PermuteParams&, const PermuteParams&) = default;
};

// slice: the output starts at index `start` of the input along the axis.
struct SliceParams {
  static constexpr ParamsKind kKind = params_kind("slice");
  std::int32_t axis = 0;
  std::int64_t start = 0;
  constexpr void describe(auto&& f) const { f("axis", axis), f("start", start); }
  friend bool operator==(const SliceParams&, const SliceParams&) = default;
};

// pad: the input starts at index `before` of the output along the axis; all other elements are `value`.
struct PadParams {
  static constexpr ParamsKind kKind = params_kind("pad");
  std::int32_t axis = 0;
  std::int64_t before = 0;
  double value = 0;
  constexpr void describe(auto&& f) const { f("axis", axis), f("before", before), f("value", value); }
  friend bool operator==(const PadParams&, const PadParams&) = default;
};

using MovementParamsList = ParamsList<PermuteParams, SliceParams, PadParams>;

}  // namespace graphrun
