#include "executors/cpu/bound_step.h"

#include "kernels/cpu/threads/parallel.h"

namespace graphrun {

void BoundStep::find_loop(Op op, Isa isa) {
  const TensorType& out = args.out_type;
  loop = {};
  elements = 0;
  if (args.inputs < 1 || args.inputs > cpu::kElementInputs) return;
  for (int i = 0; i < args.inputs; ++i) {
    const TensorType& type = args.in_type[i];
    const bool whole = type.shape == out.shape && type.rows == out.rows;
    if (args.in_strides[i] != nullptr || (!whole && (type.rows > 0 || type.shape.elements() != 1))) return;
    in[i] = {args.in[i], 0, whole ? 1 : 0};
  }
  loop = cpu::element_loop(cpu::isa_table(isa), op, args.params, args.in_type[0].dtype, out.dtype);
  const std::int64_t n = out.shape.elements();
  if (loop.run != nullptr && out.rows == 0 && cpu::parts_for(n) == 1) elements = n;
}

}  // namespace graphrun
