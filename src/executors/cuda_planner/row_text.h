// row_text.h: a step as an expression of CUDA C++: over the row of a thread, and over one element of what all rows
// share. Contract: pure functions of types and parameters. A text is empty where there is none, and `reason` says why;
// a step that has a text for its types has one for any names. Row operands are variables of type Row, numbers are
// variables, other operands are pointers or arrays. Leaves to others: what a name stands for (step_kernel.h), the
// functions that texts call (kernels/cuda/tile).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "executors/cuda_planner/scalar_text.h"

namespace graphrun::cuda {

// The Row that a row step computes for sample `r`; of a reduced value a statement that adds the row's part to the
// numbers from `at` on of the thread's `sums`.
std::string row_text(const TextCall& call, std::int64_t at, std::string& reason);

// Softmax and its kin, and reductions along features, as a call: of a row that it returns, or of one in memory that it
// writes `to`. "" where the step is none of them.
std::string axis_text(const TextCall& call, std::string_view to = "");

// Feature `i` of what a row step computes for sample `r`, of operands that are rows in memory or functions of a
// feature; "" where it is no function of a feature: reductions, products, and what reads a whole row.
std::string feature_text(const TextCall& call, std::string& reason);

// Terms of a row's reduction along `axes`: `kept` results of `reduced` terms each, and term (n, m) of them.
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
