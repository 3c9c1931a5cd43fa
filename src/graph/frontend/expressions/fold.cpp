#include "graph/frontend/expressions/fold.h"

#include <algorithm>
#include <cmath>

#include "graphrun/scalar_op_list.h"

namespace graphrun {

std::optional<double> fold_scalar(std::string_view op, double x, double y) {
#define GRAPHRUN_FOLD(name, functor, ulps, result, meaning) \
  if (op == #name) return meaning;
  GRAPHRUN_PLAIN_OPS(GRAPHRUN_FOLD)
  GRAPHRUN_BINARY_OPS(GRAPHRUN_FOLD)
#undef GRAPHRUN_FOLD
  return std::nullopt;
}

}  // namespace graphrun
