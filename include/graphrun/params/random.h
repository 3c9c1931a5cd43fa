// params/random.h: parameters of random ops.
// Contract: see params.h. Not here: the random bits (base/random_bits.h).
#pragma once

#include <cstdint>

#include "graphrun/params.h"

namespace graphrun {

// Random ops: element i at a step comes from word (key, step, i) of base/random_bits.h. random_uniform: range [a, b);
// random_normal: mean a, standard deviation b; dropout: rate a; permutation: neither a nor b.
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
