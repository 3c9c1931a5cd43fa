#include "executors/cpu/bound_step.h"

#include <variant>

#include "kernels/cpu/isa_names.h"
#include "kernels/cpu/parallel.h"

namespace graphrun {

void BoundStep::find_loop(std::string_view op, Isa isa) {
  const TensorType& out = args.out_type;
  elements = out.shape.elements();
  const bool small = elements > 0 && cpu::parts_for(elements) == 1;
  if (out.rows > 0 || out.dtype != DType::f32 || !small || !std::holds_alternative<NoParams>(args.params)) return;
  cpu::Strided<float> operands[2];
  if (args.inputs < 1 || args.inputs > 2) return;
  for (int i = 0; i < args.inputs; ++i) {
    const TensorType& in = args.in_type[i];
    const bool whole = in.shape == out.shape;
    if (in.dtype != DType::f32 || in.rows > 0 || (!whole && in.shape.elements() != 1)) return;
    operands[i] = {args.input<float>(i), 0, whole ? 1 : 0};
  }
  x = operands[0];
  y = operands[1];
  const cpu::IsaTable& table = cpu::isa_table(isa);
  if (const int index = cpu::index_of(cpu::kBinaryNames, op); index >= 0 && args.inputs == 2) {
    binary = table.binary[index];
  } else if (const int one = cpu::index_of(cpu::kUnaryNames, op); one >= 0 && args.inputs == 1 && x.column == 1) {
    unary = table.unary[one];
  }
}

}  // namespace graphrun
