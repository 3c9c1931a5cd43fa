// family_op.h: the list and numbers of structured ops that only files of their family name, as family_op::softmax.
// Contract: constants of type Op, which a switch over Op does not take for enumerators: compare, or look ops up in a
// table. An op that a pass or an executor has to know belongs into op.h.
#pragma once

#include "graphrun/op.h"

// X(name of the op)
// clang-format off
#define GRAPHRUN_FAMILY_OPS(X)                          \
  X(softmax) X(log_softmax) X(softmax_cross_entropy)    \
  X(one_hot) X(gather) X(stop_gradient) X(solve_spd)    \
  X(windows) X(fold)                                    \
  X(random_uniform) X(random_normal) X(permutation)     \
  X(varying_minibatch) X(varying_row_count)             \
  X(divide_step)
// clang-format on

namespace graphrun::family_op {
#define GRAPHRUN_NAME(name) name,
enum class Place : std::uint16_t { GRAPHRUN_FAMILY_OPS(GRAPHRUN_NAME) end };
#undef GRAPHRUN_NAME
static_assert(kFirstFamilyOp + static_cast<std::uint16_t>(Place::end) <= kFirstScalarOp);

#define GRAPHRUN_NUMBER(name) \
  inline constexpr Op name = static_cast<Op>(kFirstFamilyOp + static_cast<std::uint16_t>(Place::name));
GRAPHRUN_FAMILY_OPS(GRAPHRUN_NUMBER)
#undef GRAPHRUN_NUMBER
}  // namespace graphrun::family_op
