// fold.h: what a scalar op gives of numbers, in double, before anything is rounded to the type of the graph.
// Contract: pure, and from the same column as the reference kernels. Leaves to others: which parts of an expression are
// numbers (expression_build.cpp), rounding.
#pragma once

#include <optional>
#include <string_view>

namespace graphrun {

// By the reference column of scalar_op_list.h; an op of one operand ignores y. None: no op of that name, or one with
// attributes.
std::optional<double> fold_scalar(std::string_view op, double x, double y);

}  // namespace graphrun
