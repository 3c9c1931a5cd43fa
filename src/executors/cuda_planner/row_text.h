// row_text.h: a step as an expression of CUDA C++: over the row of a thread, and over one element of what all rows
// share. Contract: pure functions of types and parameters. A text is empty where there is none, and `reason` says why;
// a step that has a text for its types has one for any names. Row operands are variables of type Row, numbers are
// variables, other operands are pointers or arrays. Leaves to others: what a name stands for (step_kernel.h), the
// functions that texts call (kernels/cuda/tile).
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
};

// A sample's part of a value with rows, as a shape: dimension 0 counts its rows.
Shape features_of(const TensorType& type);
std::int64_t feature_count(const TensorType& type);

// Where element `i` of `extents` lies in a view of them, as an expression.
std::string index_text(const View& view, std::string_view i);
std::string_view type_name(DType dtype);

// The Row that a row step computes for sample `r`; of a reduced value a statement that adds the row's part to the
// numbers from `at` on of the thread's `sums`.
std::string row_text(const TextCall& call, std::int64_t at, std::string& reason);

// Element `i` of a step without rows.
std::string element_text(const TextCall& call, std::string& reason);

}  // namespace graphrun::cuda
