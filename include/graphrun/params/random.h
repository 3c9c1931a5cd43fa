// params/random.h: parameters of draws.
// Contract: that of params.h. Leaves to others: the bits that are drawn (base/random_bits.h).
#pragma once

#include <cstdint>

#include "graphrun/params.h"

namespace graphrun {

// Draws: element i at a step is word (key, step, i) of base/random_bits.h. random_uniform: [a, b); random_normal: mean
// a, deviation b; dropout: rate a; permutation: none.
struct RandomParams {
  static constexpr ParamsKind kKind = params_kind("random");
  std::uint64_t key = 0;
  double a = 0;
  double b = 0;
  constexpr void describe(auto&& f) const { f("key", key), f("a", a), f("b", b); }
  friend bool operator==(const RandomParams&, const RandomParams&) = default;
};

using RandomParamsList = ParamsList<RandomParams>;

}  // namespace graphrun
