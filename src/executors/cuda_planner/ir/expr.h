// expr.h: the expressions of a step kernel: a step over operands, and the element of an operand that it reads.
// Contract: pure functions of types and parameters. An index is built from views and never read back from text.
// Not here: the text of an expression (scalar_text.h, row_text.h), the meaning of a name (step_kernel.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/params.h"
#include "graphrun/types.h"
#include "graphrun/view.h"
#include "kernels/dims.h"

namespace graphrun::cuda {

// Position of an element: a constant plus strides times parts of variables.
struct Index {
  struct Term {  // variable / divisor % modulus * stride
    char variable = 'i';
    std::int64_t divisor = 1, modulus = 0, stride = 1;  // modulus 0: none
    bool operator==(const Term&) const = default;
  };
  std::int64_t offset = 0;
  std::vector<Term> terms;

  bool is_constant() const { return terms.empty(); }
  bool is_variable() const { return offset == 0 && terms == std::vector{Term{}}; }  // i itself
};
// Element number `variable`, in row-major order.
Index index_of(const Dims<1>& dims, char variable);
Index index_of(const View& view);  // variable i

struct TextOperand {
  TensorType type;
  std::string name;
  bool number = false;  // one element, stored in a variable
  View view = {};       // elements, relative to `name`; only without rows
  bool has_rows() const { return type.rows > 0; }
  bool is_whole() const { return has_rows() || number || is_dense(view); }
};

struct TextCall {
  Op op;
  const Params* params = nullptr;
  std::vector<TextOperand> inputs;
  TensorType output;
  std::string_view number = "Number";  // type that its functions compute in; "float" if they must be exact
  std::string key = {};                // key of random numbers, a variable; "" for a literal
  std::string picked = {};             // shuffled minibatch: table of its rows (kernels/cuda/tile/picks.h), if any
};

// View of an operand as it is read: the features of one sample if the operand has rows.
View seen(const TextOperand& operand);
// Element that element i of `space` reads from an operand that is broadcast to it.
Index index_in(const TextOperand& operand, const Shape& space);

bool has_f64(const TextCall& call);  // not supported by step kernels
// Whether the call is x^T y for x and y with equally many rows: (features of x, features of y), summed over rows.
bool is_product_over_rows(const TextCall& call);
bool is_only_written(Op op, std::size_t input);  // the input is a state whose value the step does not read
bool is_draw(Op op);
bool is_position(Op op);  // argmax or argmin
bool is_softmax(Op op);

// Sizes around an axis: (before, along, after).
struct Around {
  std::int64_t before = 1, along = 1, after = 1;
  Around(const Shape& shape, int axis) {
    for (int i = 0; i < shape.rank(); ++i) (i < axis ? before : i == axis ? along : after) *= shape[i];
  }
};

}  // namespace graphrun::cuda
