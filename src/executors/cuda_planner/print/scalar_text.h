// scalar_text.h: CUDA C++ of the elements and scalar ops of an expression (ir/expr.h): one table for the kernels of
// steps and of regions over elements.
// Contract: pure functions. Scalars are variables, other operands pointers, arrays or rows.
// Not here: rows and reductions (row_text.h), functions that the code calls (kernels/cuda/tile).
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "executors/cuda_planner/ir/expr.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

std::string_view type_name(DType dtype);

std::string text_of(const Index& index);
// Element of an operand, and element i of it broadcast to `space`, in memory or in the row of a thread.
std::string element_at(const TextOperand& operand, const Index& index);
std::string element(const TextOperand& operand, const Shape& space);

// Whether the op works on elements of its broadcast operands. scalar_text() takes operands that are expressions.
bool is_scalar(Op op);
bool is_approximate(Op op);  // results have other bits with --math=fast
enum class TextDialect { step_kernel, element_kernel };
std::string scalar_text(const TextCall& call, std::vector<std::string> x,
                        TextDialect dialect = TextDialect::step_kernel);

// Whether the op computes each element of its result by itself.
bool is_by_element(Op op);
// Element i of the result of such an op: an expression, or statements that return it.
struct ElementText {
  std::string text;
  bool returns = false;
  std::string expression() const { return returns ? fmt::format("[&] {{ {} }}()", text) : text; }
  std::string statements() const { return returns ? text : fmt::format("return {};", text); }
};
using ElementAccess = std::function<std::string(const TextOperand&, const Index&)>;  // text of an element in a layout
// Element i of `space`. Random numbers have the element's position among those of all rows, an expression.
ElementText element_text(const TextCall& call, const Shape& space, std::string_view position,
                         const ElementAccess& at = element_at);

// Batches of a minibatch step, and the data row that is row `r` of a batch.
std::string batches_text(const TextCall& call);
std::string batch_row_text(const TextCall& call, std::string_view r);

// Reduction along features: its initial value, and its function of two values or of `x` and `y`.
struct Fold {
  Op op;
  std::string_view start, function, result;
};
const Fold* fold_of(Op op);  // null if the op is not a fold
const Fold& fold_of(CombineOp op);

}  // namespace graphrun::cuda
