// row_text.h: CUDA C++ of a step over the row of a thread, or over an element of a value shared by all rows, and the
// steps that have no such code.
// Contract: pure functions of types and parameters. Faults depend on types, not on names; the code of a step with a
// fault is undefined. Row operands are variables of type Row, scalars are variables, others are pointers or arrays.
// Not here: the meaning of a name (step_kernel.h), functions called (kernels/cuda/tile).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "executors/cuda_planner/print/scalar_text.h"

namespace graphrun::cuda {

// Reason why a row step, or a step without rows, has no code; "" if it has.
std::string row_fault(const TextCall& call);
std::string element_fault(const TextCall& call);
std::string fault_text(const TextCall& call, std::string_view of, std::string_view why);  // "" if `why` is empty
// Reason why the rows of no layout can compute a product with weights, or rows of a table; "" if they can.
std::string_view product_fault(const TextCall& call);
std::string_view gather_fault(const TextCall& call);

// The Row that a row step computes for sample `r`; for a reduced value, a statement that adds the row's contribution to
// the thread's `sums`, starting at `at`.
std::string row_text(const TextCall& call, std::int64_t at);

// A row whose feature `i` is returned by the statements, and those of a product with a number.
std::string mapped_text(const TextCall& call, std::string_view statements, std::string_view index = "int i");
std::string scaled_text(const TextCall& call);
std::string offset_text(const TextOperand& x);  // " + 5"; "" at the start of a value

// Softmax, its variants, and reductions along features. The call returns a row, or writes one to memory at `to`.
bool may_be_along_axis(Op op);
bool is_along_axis(const TextCall& call);
std::string axis_text(const TextCall& call, std::string_view to = "");
std::string whole_row_text(const TextCall& call);  // the same along a whole row, whose type has the size of the axis

// Feature `i` of the result of a row step for sample `r`, if the step computes each feature by itself; operands are
// rows in memory or functions of a feature.
bool is_by_feature(const TextCall& call);
std::string feature_text(const TextCall& call);

// Reduction of a row along `axes`: `kept` results of `reduced` terms each, and the code of term (n, m).
struct RowTerms {
  std::int64_t kept, reduced;
  std::string text;
};
RowTerms row_terms(const TextOperand& x, std::uint32_t axes);

// Element `i` of a step without rows.
std::string element_text(const TextCall& call);
// A reduction that is one number or element `i` of a result; `head` is the call up to its value for no terms.
std::string fold_text(const TextCall& call, std::string_view head);

}  // namespace graphrun::cuda
