// scalar_text.h: a step's element as an expression of CUDA C++, of operands that have names: what the texts of rows
// (row_text.h, warp_text.h) and of what all rows share have in common.
// Contract: pure functions of types and parameters. Numbers are variables, other operands pointers, arrays or rows.
// Leaves to others: what a name stands for (step_kernel.h), the functions that texts call (kernels/cuda/tile).
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
  bool number = false;  // one element, in a variable of its own
  View view = {};       // of the elements, from `name` on; of operands without rows
  bool has_rows() const { return type.rows > 0; }
};

struct TextCall {
  Op op;
  const Params* params = nullptr;
  std::vector<TextOperand> inputs;
  TensorType output;
  std::string_view number = "Number";  // the type its functions compute in: "float" where they must be exact
  std::string picked = {};  // of a shuffled minibatch: the table of its rows (kernels/cuda/tile/picks.h), if there is
};

// A sample's part of a value with rows, as a shape: dimension 0 counts its rows.
Shape features_of(const TensorType& type);
std::int64_t feature_count(const TensorType& type);
std::int64_t last_extent(const Shape& shape);  // 1 of a number

bool has_f64(const TextCall& call);  // which no step kernel computes in
// The transpose of x times y, x and y of as many rows: (features of x, features of y), summed over rows.
bool is_product_over_rows(const TextCall& call);

std::string_view type_name(DType dtype);
std::string double_text(double value);

// Where element `i` of `extents` lies in a view of them, as an expression.
std::string index_text(const View& view, std::string_view i);
// The elements of an operand as it is read: of one with rows a sample's features.
View seen(const TextOperand& operand);
// Element `i` of a view of an operand; of one that broadcasts to `space`.
std::string at(const TextOperand& operand, const View& view, std::string_view i);
std::string element(const TextOperand& operand, const Shape& space);

bool is_draw(Op op);
// Of element number `i` of all; x: the element that dropout keeps or not.
std::string draw_text(const TextCall& call, std::string_view i, std::string_view x);

// Whose operands broadcast to its output: of operands that are expressions.
bool is_scalar(Op op);
bool is_approximate(Op op);  // whose functions have other bits with --math=fast
std::string scalar_text(const TextCall& call, std::vector<std::string> x);
// How a kernel writes scalar ops: formats of operands {0} to {2}, attributes {3} and {4}, the type {5} that the functor
// {6} computes in; names of functions.
struct ScalarForms {
  std::string_view unary, binary, compare, logical, from_bits, to_boolean, to_float;
};
std::string scalar_text(const TextCall& call, std::vector<std::string> x, const ScalarForms& forms);

// Ops that only say which element of an operand goes where: element i of `space`. Empty: none of them.
std::string moved_text(const TextCall& call, const Shape& space);
// Statements that return element i of the row of a table that the expression `index` says, 0 if there is none.
std::string gathered_text(const TextOperand& table, std::string_view index);
// As statements that return element i.
std::string joined_text(const TextCall& call, const Shape& space);
// The batches of a minibatch step, and the row of the data that row `r` of one is.
std::string batches_text(const TextCall& call);
std::string batch_row_text(const TextCall& call, std::string_view r);

// How terms become one along features: what they start from, and the function of two.
struct Fold {
  Op op;
  std::string_view start, function;
};
const Fold* fold_of(Op op);  // null: none

// Sizes around an axis: (before, along, after).
struct Around {
  std::int64_t before = 1, along = 1, after = 1;
  Around(const Shape& shape, int axis) {
    for (int i = 0; i < shape.rank(); ++i) (i < axis ? before : i == axis ? along : after) *= shape[i];
  }
};

}  // namespace graphrun::cuda
