// scalar_text.h: an element of a step as a CUDA C++ expression of named operands: the common part of the code of rows
// (row_text.h, warp_text.h) and of values shared by all rows.
// Contract: pure functions of types and parameters. Scalars are variables, other operands pointers, arrays or rows.
// Not here: the meaning of a name (step_kernel.h), functions that the code calls (kernels/cuda/tile).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/params.h"
#include "graphrun/types.h"
#include "graphrun/view.h"

namespace graphrun::cuda {

struct TextOperand {
  TensorType type;
  std::string name;
  bool number = false;  // one element, stored in a variable
  View view = {};       // elements, relative to `name`; only without rows
  bool has_rows() const { return type.rows > 0; }
};

struct TextCall {
  Op op;
  const Params* params = nullptr;
  std::vector<TextOperand> inputs;
  TensorType output;
  std::string_view number = "Number";  // type that its functions compute in; "float" if they must be exact
  std::string picked = {};             // shuffled minibatch: table of its rows (kernels/cuda/tile/picks.h), if any
};

// Shape of one sample of a value with rows; dimension 0 counts the sample's rows.
Shape features_of(const TensorType& type);
std::int64_t feature_count(const TensorType& type);
std::int64_t last_extent(const Shape& shape);  // 1 for a scalar

bool has_f64(const TextCall& call);  // not supported by step kernels
// Whether the call is x^T y for x and y with equally many rows: (features of x, features of y), summed over rows.
bool is_product_over_rows(const TextCall& call);

std::string_view type_name(DType dtype);
std::string double_text(double value);

// Expression for the position of element `i` of a view.
std::string index_text(const View& view, std::string_view i);
// View of an operand as it is read: the features of one sample if the operand has rows.
View seen(const TextOperand& operand);
// Element `i` of a view of an operand; element `i` of an operand broadcast to `space`.
std::string at(const TextOperand& operand, const View& view, std::string_view i);
std::string element(const TextOperand& operand, const Shape& space);

bool is_draw(Op op);
// Random element number `i`; `x` is the element that dropout keeps or drops.
std::string draw_text(const TextCall& call, std::string_view i, std::string_view x);

// Whether the op works on elements of its broadcast operands. scalar_text() takes operands that are expressions.
bool is_scalar(Op op);
bool is_approximate(Op op);  // results have other bits with --math=fast
std::string scalar_text(const TextCall& call, std::vector<std::string> x);
// Syntax of scalar ops in a kernel: formats of operands {0} to {2}, attributes {3} and {4}, compute type {5} and
// functor {6}; names of functions.
struct ScalarForms {
  std::string_view unary, binary, compare, logical, from_bits, to_boolean, to_float;
};
std::string scalar_text(const TextCall& call, std::vector<std::string> x, const ScalarForms& forms);

// Element i of `space`, for ops that only rearrange elements; empty for other ops.
std::string moved_text(const TextCall& call, const Shape& space);
// Statements that return element i of row `index` (an expression) of a table, or 0 if the table has no such row.
std::string gathered_text(const TextOperand& table, std::string_view index);
// Statements that return element i of a pad or concat; empty for other ops.
std::string joined_text(const TextCall& call, const Shape& space);
// Batches of a minibatch step, and the data row that is row `r` of a batch.
std::string batches_text(const TextCall& call);
std::string batch_row_text(const TextCall& call, std::string_view r);

// Reduction along features: its initial value and its function of two values.
struct Fold {
  Op op;
  std::string_view start, function;
};
const Fold* fold_of(Op op);  // null if the op is not a fold

// Sizes around an axis: (before, along, after).
struct Around {
  std::int64_t before = 1, along = 1, after = 1;
  Around(const Shape& shape, int axis) {
    for (int i = 0; i < shape.rank(); ++i) (i < axis ? before : i == axis ? along : after) *= shape[i];
  }
};

}  // namespace graphrun::cuda
