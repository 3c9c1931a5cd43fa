#include "executors/cuda_planner/ir/expr.h"

#include <algorithm>

#include "graphrun/family_op.h"
#include "graphrun/op.h"

namespace graphrun::cuda {

Index index_of(const Dims<1>& dims, char variable) {
  Index index;
  std::int64_t inner = 1;
  for (int d = dims.rank - 1; d >= 0; inner *= dims.dim[d--].extent) {
    const Dim<1>& dim = dims.dim[d];
    if (dim.stride[0] != 0) index.terms.push_back({variable, inner, d > 0 ? dim.extent : 0, dim.stride[0]});
  }
  return index;
}
Index index_of(const View& view) {
  Index index = index_of(merged<1>({view}), 'i');
  index.offset = view.offset;
  return index;
}

View seen(const TextOperand& operand) {
  return operand.has_rows() ? dense(features_of(operand.type)) : operand.view;
}
Index index_in(const TextOperand& operand, const Shape& space) {
  return index_of(broadcast(seen(operand), space));
}

bool has_f64(const TextCall& call) {
  return call.output.dtype == DType::f64 ||
         std::ranges::any_of(call.inputs, [](const TextOperand& x) { return x.type.dtype == DType::f64; });
}

bool is_product_over_rows(const TextCall& call) {
  if (call.op != Op::matmul || call.output.rows != 0) return false;
  const auto& p = call.params->as<MatmulParams>();
  return p.transpose_a && !p.transpose_b && std::ranges::all_of(call.inputs, [](const TextOperand& x) {
           return x.has_rows() && x.type.shape.rank() == 2;
         });
}

bool is_only_written(Op op, std::size_t input) {
  return input == 0 && (op == Op::assign || op == Op::record);
}
bool is_draw(Op op) {
  return op == family_op::random_uniform || op == family_op::random_normal || op == Op::dropout;
}
bool is_position(Op op) {
  return op == Op::argmax || op == Op::argmin;
}
bool is_softmax(Op op) {
  return op == family_op::softmax || op == family_op::log_softmax;
}

}  // namespace graphrun::cuda
