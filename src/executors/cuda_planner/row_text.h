// row_text.h: a step as a CUDA C++ expression over the row of a thread, or over an element of a value shared by all
// rows. Contract: pure functions of types and parameters. The code is empty if the step is not supported, and `reason`
// says why. Support depends on types, not on names. Row operands are variables of type Row, scalars are variables,
// others are pointers or arrays. Not here: the meaning of a name (step_kernel.h), functions called (kernels/cuda/tile).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "executors/cuda_planner/scalar_text.h"

namespace graphrun::cuda {

// The Row that a row step computes for sample `r`; for a reduced value, a statement that adds the row's contribution to
// the thread's `sums`, starting at `at`.
std::string row_text(const TextCall& call, std::int64_t at, std::string& reason);

// Call for softmax, its variants, and reductions along features. It returns a row, or writes one to memory at `to`.
// Empty for other steps.
std::string axis_text(const TextCall& call, std::string_view to = "");

// Feature `i` of the result of a row step for sample `r`; operands are rows in memory or functions of a feature. Empty
// for steps that do not compute each feature by itself: reductions, products, and reads of a whole row.
std::string feature_text(const TextCall& call, std::string& reason);

// Reduction of a row along `axes`: `kept` results of `reduced` terms each, and the code of term (n, m).
struct RowTerms {
  std::int64_t kept, reduced;
  std::string text;
};
RowTerms row_terms(const TextOperand& x, std::uint32_t axes);

// Element `i` of a step without rows.
std::string element_text(const TextCall& call, std::string& reason);

// Calls text(reason) for a step that the plan accepted. Throws std::logic_error if the text is empty.
std::string made_text(std::string_view step, const std::function<std::string(std::string&)>& text);

}  // namespace graphrun::cuda
