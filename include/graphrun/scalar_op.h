// scalar_op.h: the numbers of scalar ops, as scalar_op::tanh, in the order of scalar_op_list.h.
// Contract: constants of type Op, which a switch over Op does not take for enumerators: compare, or look ops up in a
// table.
#pragma once

#include "graphrun/op.h"
#include "graphrun/scalar_op_list.h"

namespace graphrun::scalar_op {
#define GRAPHRUN_NAME(name, ...) name,
enum class Place : std::uint16_t { GRAPHRUN_SCALAR_OPS(GRAPHRUN_NAME) end };
#undef GRAPHRUN_NAME
static_assert(kFirstScalarOp + static_cast<std::size_t>(Place::end) <= kOps);

#define GRAPHRUN_NUMBER(name, ...) \
  inline constexpr Op name = static_cast<Op>(kFirstScalarOp + static_cast<std::uint16_t>(Place::name));
GRAPHRUN_SCALAR_OPS(GRAPHRUN_NUMBER)
#undef GRAPHRUN_NUMBER
static_assert(add == Op::add && sub == Op::sub && mul == Op::mul && div == Op::div && minimum == Op::minimum &&
              maximum == Op::maximum);
}  // namespace graphrun::scalar_op
