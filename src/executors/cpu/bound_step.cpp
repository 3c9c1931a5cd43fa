#include "executors/cpu/bound_step.h"

#include "graphrun/params/scalar.h"
#include "kernels/cpu/simd/scalar_loops.h"
#include "kernels/cpu/threads/parallel.h"

namespace graphrun {

void BoundStep::find_loop(Op op, Isa isa) {
  const TensorType& out = args.out_type;
  if (out.dtype != DType::f32 || args.inputs < 1 || args.inputs > 2) return;
  for (int i = 0; i < args.inputs; ++i) {
    const TensorType& in = args.in_type[i];
    const bool whole = in.shape == out.shape && in.rows == out.rows;
    if (args.in_strides[i] != nullptr || in.dtype != DType::f32 ||
        (!whole && (in.rows > 0 || in.shape.elements() != 1)))
      return;
    loops.column[i] = whole ? 1 : 0;
  }
  const auto* scalars = args.params.get_if<ScalarParams>();
  if (scalars != nullptr) {
    loops.a = static_cast<float>(scalars->a);
    loops.b = static_cast<float>(scalars->b);
  } else if (args.params.get_if<NoParams>() == nullptr) {
    return;
  }
  const cpu::IsaTable& table = cpu::isa_table(isa);
  if (args.inputs == 2)
    loops.binary = cpu::binary_loop(table, op);
  else if (loops.column[0] == 1)
    loops.unary = cpu::unary_loop(table, op);

  elements = out.shape.elements();
  if (out.rows > 0 || scalars != nullptr || elements == 0 || cpu::parts_for(elements) > 1) return;
  binary = loops.binary;
  unary = loops.unary;
  x = {args.input<float>(0), 0, loops.column[0]};
  if (args.inputs == 2) y = {args.input<float>(1), 0, loops.column[1]};
}

}  // namespace graphrun
