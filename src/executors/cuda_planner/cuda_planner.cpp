#include "executors/cuda_planner/cuda_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "executors/cuda_planner/cost/tile_costs.h"
#include "executors/cuda_planner/print/step_kernel.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"
#include "kernels/cuda/factor_view.h"
#include "kernels/cuda/launcher.h"
#include "kernels/cuda/matmul_plan.h"
#include "kernels/cuda/reduce_plan.h"
#include "kernels/cuda/scatter_plan.h"
#include "kernels/dims.h"

namespace graphrun::cuda {
namespace {

// Ops of steps for which find_kernel() has no kernel. List a new op until it has one: supports() then reports it.
constexpr Op kWithoutKernel[] = {Op::reshape, family_op::stop_gradient, family_op::solve_spd};

std::string misfit(const StepSignature& step) {
  const std::string_view op = name_of(step.op);
  const std::span<const TensorType> inputs = step.inputs;
  if (!has_kernel(step.op)) return fmt::format("there is no CUDA kernel for '{}'", op);
  for (std::size_t i = 0; i <= inputs.size(); ++i) {
    if ((i < inputs.size() ? inputs[i] : step.output).dtype != DType::f64) continue;
    const std::string role = i < inputs.size() ? fmt::format("input {}", i + 1) : "output";
    return fmt::format("{}: the CUDA kernels compute in f32, its {} is f64", op, role);
  }
  const auto dims = step.output.shape.dims();
  if (step.op == family_op::fold && std::ranges::any_of(dims, [](std::int64_t extent) { return extent >> 31 != 0; }))
    return "fold: the CUDA kernel takes axes of fewer than 2^31 elements";
  const std::string fault = step_fault(step.op, inputs, step.output, step.params);
  return fault.empty() ? fault : fmt::format("{}: there is no CUDA kernel for it: {}", op, fault);
}

// Reason why a product does not run the steps after it in its kernel (ProductEpilogue); "" if it does.
std::string product_fault(const RegionSignature& region, const Machine& machine) {
#define GRAPHRUN_OP(name, F) scalar_op::name,
  constexpr Op kEpilogues[] = {GRAPHRUN_UNARY_EPILOGUES(GRAPHRUN_OP) GRAPHRUN_BINARY_EPILOGUES(GRAPHRUN_OP)};
#undef GRAPHRUN_OP
  const std::vector<StepSignature>& steps = region.rows;
  const auto& params = steps[0].params.as<MatmulParams>();
  if (region.chains.size() > 1 ||
      !plan_matmul(params, steps[0].inputs[0], steps[0].inputs[1], machine).takes_epilogue(params))
    return "gradients of weights, products of several matrices and those of the matrix library run no other steps";
  std::size_t next = 1;
  if (next < steps.size() && steps[next].inputs.size() == 2 &&
      adds_bias(steps[next].op, steps[next].inputs[0], steps[next].inputs[1], steps[0].output))
    ++next;
  if (next < steps.size() && std::ranges::find(kEpilogues, steps[next].op) != std::end(kEpilogues) &&
      std::ranges::all_of(steps[next].inputs, [&](const TensorType& type) { return type == steps[0].output; }))
    ++next;
  for (const StepSignature& step : std::span(steps).subspan(1))
    for (const View& view : step.views)
      if (!is_dense(view)) return "the steps after a product read dense operands";
  return next == steps.size() ? ""
                              : fmt::format("'{}' does not run in the kernel of a product", name_of(steps[next].op));
}

}  // namespace

Machine machine_of(const Target& target) {
  return {target.multiprocessors, target.library_workspace, target.compute_capability == 90};
}

bool has_kernel(Op op) {
  return std::ranges::find(kWithoutKernel, op) == std::end(kWithoutKernel);
}

Support supports(const StepSignature& step, const Machine& machine) {
  if (std::string reason = misfit(step); !reason.empty()) return Support::no(std::move(reason));
  if (step.op == Op::matmul) {
    const auto& params = step.params.as<MatmulParams>();
    const auto bytes = [&](bool reads_view) {
      return plan_matmul(params, step.inputs[0], step.inputs[1], machine, reads_view).workspace;
    };
    return Support::with_workspace(std::max(bytes(false), bytes(true)));  // views are found later
  }
  if (const std::uint64_t state = reduce_state(step.op); state > 0) {
    return Support::with_workspace(
        plan_reduce(reduced_axes(step.params), step.inputs[0].shape, machine, state).workspace);
  }
  if (step.op == Op::scatter_add) {
    const ScatterPlan plan = plan_scatter(step.inputs[0], step.output);
    if (plan.places > ScatterPlan::kMax)
      return Support::no(fmt::format("{}: the CUDA kernel takes up to {} indices, got {}", name_of(step.op),
                                     ScatterPlan::kMax, plan.places));
    return Support::with_workspace(plan.workspace);
  }
  return Support::with_workspace(0);
}

Support CudaPlanner::supports(const StepSignature& step, const Target& target) const {
  if (target.multiprocessors <= 0) return Support::no("the target is not a CUDA device");
  return cuda::supports(step, machine_of(target));
}

// Elementwise kernels and reductions read views in place. A large transpose is copied by tiles first: its neighbors are
// far apart. Products read a left factor that is a view, in any shape.
bool CudaPlanner::takes_views(const StepSignature& step) const {
  const auto is_near = [](const View& view) {
    const Dims<1> dims = merged<1>({view});
    const auto side_by_side = [](const Dim<1>& dim) { return dim.stride[0] <= 1; };
    return static_cast<std::uint64_t>(dims.count) < kPacked || dims.rank == 0 ||
           side_by_side(dims.dim[dims.rank - 1]) || std::none_of(dims.dim, dims.dim + dims.rank, side_by_side);
  };
  if (step.op == Op::matmul) {
    const auto& params = step.params.as<MatmulParams>();
    const Machine any{1, 0, true};
    const MatmulPlan plan = plan_matmul(params, step.inputs[0], step.inputs[1], any, true);
    return plan.reads_views() && is_dense(step.views[1]) && is_near(step.views[0]) &&
           factor_view(step.views[0], params.transpose_a ? plan.k : plan.m, params.transpose_a);
  }
  return (is_elementwise(step.op) || reduce_state(step.op) > 0) && step.views_keep_axes() &&
         std::ranges::all_of(step.views, is_near);
}

std::string CudaPlanner::region_fault(const RegionSignature& region, const Target& target) const {
  if (!region.over_elements()) return row_fault(region, target);
  const bool product = !region.rows.empty() && region.rows[0].op == Op::matmul;
  for (const StepSignature& step : region.rows) {
    if (!is_elementwise(step.op) && !(product && &step == region.rows.data()))
      return fmt::format("'{}' is not elementwise", name_of(step.op));
    if (Support support = supports(step, target); !support.yes) return support.reason;
  }
  return product ? product_fault(region, machine_of(target)) : std::string();
}

RegionPlan CudaPlanner::region_choices(const RegionSignature& region, const Target& target) const {
  if (!region.over_elements()) return row_choices(region, target);
  if (std::string fault = region_fault(region, target); !fault.empty()) return RegionPlan::no(std::move(fault));
  GpuTiling tiling;
  if (!region.rows.empty() && region.rows[0].op == Op::matmul) {
    const StepSignature& first = region.rows[0];
    const MatmulPlan plan =
        plan_matmul(first.params.as<MatmulParams>(), first.inputs[0], first.inputs[1], machine_of(target));
    return RegionPlan::with(GpuTiling{plan.threads, plan.blocks(machine_of(target))});
  }
  tiling.threads = kElementThreads;
  for (const std::int64_t elements : region.chains)
    tiling.blocks += element_grid(static_cast<std::uint64_t>(elements), machine_of(target)).blocks;
  return RegionPlan::with(tiling);
}

std::string CudaPlanner::generated_source(const Program& program) const {
  return step_source(program);
}

}  // namespace graphrun::cuda
