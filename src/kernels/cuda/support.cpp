#include "kernels/cuda/support.h"

#include <fmt/format.h>

#include "graphrun/op.h"
#include "graphrun/params/matmul.h"
#include "kernels/cuda/matmul_plan.h"
#include "kernels/cuda/reduce_plan.h"
#include "kernels/cuda/scatter_plan.h"

namespace graphrun::cuda {
namespace {

std::string misfit(Op op, std::span<const TensorType> inputs, const TensorType& output) {
  if (find_kernel(op) == nullptr) return fmt::format("there is no CUDA kernel for '{}'", name_of(op));
  if (inputs.size() > kMaxInputs) {
    return fmt::format("{}: the CUDA kernel takes up to {} inputs, got {}", name_of(op), kMaxInputs, inputs.size());
  }
  for (std::size_t i = 0; i <= inputs.size(); ++i) {
    if ((i < inputs.size() ? inputs[i] : output).dtype != DType::f64) continue;
    const std::string role = i < inputs.size() ? fmt::format("input {}", i + 1) : "output";
    return fmt::format("{}: the CUDA kernels compute in f32, its {} is f64", name_of(op), role);
  }
  const std::string fault = operand_fault(op, inputs, output);
  return fault.empty() ? fault : fmt::format("{}: there is no CUDA kernel for it: {}", name_of(op), fault);
}

}  // namespace

Verdict verdict(Op op, const Params& params, std::span<const TensorType> inputs, const TensorType& output,
                const Machine& machine) {
  if (std::string reason = misfit(op, inputs, output); !reason.empty()) return {std::move(reason), 0};
  if (op == Op::matmul) {
    return {{}, plan_matmul(params.as<MatmulParams>(), inputs[0], inputs[1], machine).workspace};
  }
  if (const std::uint64_t state = reduce_state(op); state > 0) {
    return {{}, plan_reduce(reduced_axes(params), inputs[0].shape, machine, state).workspace};
  }
  if (op == Op::scatter_add) {
    const ScatterPlan plan = plan_scatter(inputs[0], output);
    if (plan.places > ScatterPlan::kMost)
      return {fmt::format("{}: the CUDA kernel takes up to {} indices, got {}", name_of(op), ScatterPlan::kMost,
                          plan.places),
              0};
    return {{}, plan.workspace};
  }
  return {};
}

}  // namespace graphrun::cuda
