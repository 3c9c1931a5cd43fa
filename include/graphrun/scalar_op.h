// scalar_op.h: the numbers of scalar ops, as scalar_op::tanh, and how many ops there are.
// Contract: they go on where those of op.h end, in the order of scalar_op_list.h. They are constants of type Op, which
// a switch over Op does not take for enumerators: compare, or look ops up in a table.
#pragma once

#include <cstddef>

#include "graphrun/op.h"
#include "graphrun/scalar_op_list.h"

namespace graphrun {

namespace scalar_op {
#define GRAPHRUN_NAME(name, ...) name,
enum class Place : std::uint16_t { GRAPHRUN_SCALAR_OPS(GRAPHRUN_NAME) end };
#undef GRAPHRUN_NAME
constexpr Op number(Place place) {
  return static_cast<Op>(static_cast<std::uint16_t>(Op::add) + static_cast<std::uint16_t>(place));
}
#define GRAPHRUN_NUMBER(name, ...) inline constexpr Op name = number(Place::name);
GRAPHRUN_SCALAR_OPS(GRAPHRUN_NUMBER)
#undef GRAPHRUN_NUMBER
static_assert(add == Op::add && sub == Op::sub && mul == Op::mul && div == Op::div && minimum == Op::minimum &&
              maximum == Op::maximum);
}  // namespace scalar_op

inline constexpr auto kOps = static_cast<std::size_t>(scalar_op::number(scalar_op::Place::end));

}  // namespace graphrun
