#include "kernels/cuda/support.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cuda/matmul_plan.h"
#include "kernels/cuda/reduce_plan.h"
#include "kernels/cuda/scatter_plan.h"
#include "kernels/scalar_ops.h"

namespace graphrun::cuda {
namespace {

// What the operands of an op must be. `first` and `rest` list dtypes as a string of letters: f i u b.
struct Rule {
  std::string_view op;
  std::size_t inputs;  // 0: any number that a kernel takes
  std::string_view first, rest, output;
};

#define GRAPHRUN_UNARY_RULE(op, Functor, reference) {#op, 1, "f", "", "f"},
#define GRAPHRUN_BINARY_RULE(op, Functor, reference) {#op, 2, "f", "f", "f"},
#define GRAPHRUN_COMPARE_RULE(op, Functor, reference) {#op, 2, "fiub", "fiub", "b"},
#define GRAPHRUN_LOGICAL_RULE(op, Functor, reference) \
  {#op, std::string_view(#op) == "logical_not" ? 1u : 2u, "b", "b", "b"},
constexpr Rule kRules[] = {
    // clang-format off
    GRAPHRUN_UNARY_OPS(GRAPHRUN_UNARY_RULE)
    GRAPHRUN_BINARY_OPS(GRAPHRUN_BINARY_RULE)
    GRAPHRUN_COMPARE_OPS(GRAPHRUN_COMPARE_RULE)
    GRAPHRUN_LOGICAL_OPS(GRAPHRUN_LOGICAL_RULE)
    // clang-format on
    {"where", 3, "b", "fiub", "fiub"},
    {"matmul", 2, "f", "f", "f"},
    {"sum", 1, "f", "", "f"},
    {"prod", 1, "f", "", "f"},
    {"max", 1, "f", "", "f"},
    {"min", 1, "f", "", "f"},
    {"logsumexp", 1, "f", "", "f"},
    {"argmax", 1, "f", "", "i"},
    {"argmin", 1, "f", "", "i"},
    {"softmax", 1, "f", "", "f"},
    {"log_softmax", 1, "f", "", "f"},
    {"softmax_cross_entropy", 2, "f", "fi", "f"},
    {"transpose", 1, "fiub", "", "fiub"},
    {"slice", 1, "fiub", "", "fiub"},
    {"pad", 1, "f", "", "f"},
    {"concat", 0, "fiub", "fiub", "fiub"},
    {"one_hot", 1, "i", "", "f"},
    {"gather", 2, "fiub", "i", "fiub"},
    {"scatter_add", 2, "i", "f", "f"},
    {"random_uniform", 1, "u", "", "f"},
    {"random_normal", 1, "u", "", "f"},
    {"permutation", 1, "u", "", "i"},
    {"dropout", 2, "f", "u", "f"},
    {"broadcast_to", 1, "fiub", "", "fiub"},
    {"cast", 1, "fiub", "", "fiub"},
    {"assign", 2, "fiub", "fiub", "fiub"},
    {"minibatch", 2, "fiub", "u", "fiub"},
    {"row_count", 1, "u", "", "i"},
    {"increment", 1, "u", "", "u"},
    {"record", 3, "f", "fu", "f"},
};

char letter(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 'f';
    case DType::f64:
      return 'd';
    case DType::i32:
      return 'i';
    case DType::u64:
      return 'u';
    case DType::boolean:
      return 'b';
  }
  return '?';
}

std::string unfit(std::string_view op, std::string_view role, const TensorType& type) {
  if (type.dtype == DType::f64) return fmt::format("{}: the CUDA kernels compute in f32, its {} is f64", op, role);
  return fmt::format("{}: there is no CUDA kernel for {} {}", op, role, to_string(type));
}

std::string misfit(const Rule& rule, std::span<const TensorType> inputs, const TensorType& output) {
  if (rule.inputs == 0 && inputs.size() > kMaxInputs) {
    return fmt::format("{}: the CUDA kernel takes up to {} inputs, got {}", rule.op, kMaxInputs, inputs.size());
  }
  if (rule.inputs > 0 && inputs.size() != rule.inputs) {
    return fmt::format("{}: the CUDA kernel takes {} inputs, got {}", rule.op, rule.inputs, inputs.size());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string_view allowed = i == 0 ? rule.first : rule.rest;
    if (allowed.find(letter(inputs[i].dtype)) == allowed.npos) {
      return unfit(rule.op, fmt::format("input {}", i + 1), inputs[i]);
    }
  }
  if (rule.output.find(letter(output.dtype)) == rule.output.npos) return unfit(rule.op, "output", output);
  return {};
}

}  // namespace

Verdict verdict(std::string_view op, const Params& params, std::span<const TensorType> inputs, const TensorType& output,
                const Machine& machine) {
  const auto* rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) { return r.op == op; });
  if (rule == std::end(kRules)) return {fmt::format("there is no CUDA kernel for '{}'", op), 0};
  if (std::string reason = misfit(*rule, inputs, output); !reason.empty()) return {std::move(reason), 0};
  if (op == "matmul") {
    return {{}, plan_matmul(std::get<MatmulParams>(params), inputs[0], inputs[1], machine).workspace};
  }
  if (const std::uint64_t state = reduce_state(op); state > 0) {
    return {{}, plan_reduce(reduced_axes(params), inputs[0].shape, machine, state).workspace};
  }
  if (op == "scatter_add") {
    const ScatterPlan plan = plan_scatter(inputs[0], output);
    if (plan.places > ScatterPlan::kMost)
      return {fmt::format("{}: the CUDA kernel takes up to {} indices, got {}", op, ScatterPlan::kMost, plan.places),
              0};
    return {{}, plan.workspace};
  }
  return {};
}

std::vector<std::string_view> supported_ops() {
  std::vector<std::string_view> names;
  for (const Rule& rule : kRules) names.push_back(rule.op);
  return names;
}

}  // namespace graphrun::cuda
