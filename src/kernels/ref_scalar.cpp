// Reference kernels of scalar ops, from the last column of scalar_op_list.h, and of where().
#include <cmath>

#include "graphrun/params.h"
#include "graphrun/scalar_op.h"
#include "kernels/ref_access.h"
#include "kernels/ref_families.h"

namespace graphrun::ref {
namespace {

#define GRAPHRUN_REF_UNARY(name, Functor, ulps, result, reference)                    \
  void name##_kernel(const KernelArgs& args) {                                        \
    const auto* scalars = args.params.get_if<ScalarParams>();                         \
    [[maybe_unused]] const double a = scalars != nullptr ? scalars->a : 0;            \
    [[maybe_unused]] const double b = scalars != nullptr ? scalars->b : 0;            \
    elementwise(args, [&](double x, double, double) -> double { return reference; }); \
  }
#define GRAPHRUN_REF_BINARY(name, Functor, ulps, result, reference)                                     \
  void name##_kernel(const KernelArgs& args) {                                                          \
    elementwise(args, [](double x, [[maybe_unused]] double y, double) -> double { return reference; }); \
  }
GRAPHRUN_UNARY_OPS(GRAPHRUN_REF_UNARY)
GRAPHRUN_BINARY_OPS(GRAPHRUN_REF_BINARY)
GRAPHRUN_COMPARE_OPS(GRAPHRUN_REF_BINARY)
GRAPHRUN_LOGICAL_OPS(GRAPHRUN_REF_BINARY)  // logical_not ignores y

void where(const KernelArgs& args) {
  elementwise(args, [](double condition, double x, double y) { return condition != 0 ? x : y; });
}

#define GRAPHRUN_REF_ENTRY(name, ...) {scalar_op::name, name##_kernel},
constexpr Entry kKernels[] = {GRAPHRUN_SCALAR_OPS(GRAPHRUN_REF_ENTRY){Op::where, where}};

}  // namespace

std::span<const Entry> scalar_ops() {
  return kKernels;
}

}  // namespace graphrun::ref
