// params/matmul.h: parameters of matrix products.
// Contract: see params.h. Not here: shapes (src/types/op_rules.cpp).
#pragma once

#include "graphrun/params.h"
#include "graphrun/types.h"

namespace graphrun {

// matmul: out(m, n) = op(a) @ op(b), where op() transposes the last two axes if the flag is set.
struct MatmulParams {
  static constexpr ParamsKind kKind = params_kind("matmul");
  bool transpose_a = false;
  bool transpose_b = false;
  Precision precision = Precision::fp32;
  constexpr void describe(auto&& f) const {
    f("transpose_a", transpose_a), f("transpose_b", transpose_b);
    if (precision == Precision::tf32) f("tf32", true);
  }
  friend bool operator==(const MatmulParams&, const MatmulParams&) = default;
};

using MatmulParamsList = ParamsList<MatmulParams>;

}  // namespace graphrun
