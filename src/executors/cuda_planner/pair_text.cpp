#include "executors/cuda_planner/pair_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/matmul.h"
#include "kernels/cuda/tile/shapes.h"

namespace graphrun::cuda {
namespace {

using tile::half_of;

// Whether output feature i reads feature i of x, or x has only one feature.
bool is_aligned(const TextOperand& x, const Shape& space) {
  if (!x.has_rows() || feature_count(x.type) == 1) return true;
  return feature_count(x.type) == space.elements() && index_in(x, space).is_variable();
}

}  // namespace

bool PairText::is_product() const {
  if (call_.op != Op::matmul || call_.output.rows == 0) return false;
  return call_.output.rows == 1 &&
         feature_count(call_.inputs[0].type) == last_extent(features_of(call_.inputs[0].type));
}

// Whether each lane multiplies its half of a row and the lanes add their results. Otherwise the row is made whole
// first, where that takes at most as many messages between lanes: sums over rows often need it, too.
bool PairText::sums_halves() const {
  return is_product() && halves_[0] && feature_count(call_.inputs[0].type) > feature_count(call_.output);
}

bool PairText::is_elementwise() const {
  if (call_.output.rows == 0 || !is_scalar(call_.op) || feature_count(call_.output) < 2) return false;
  if (call_.output.dtype != DType::f32 && call_.output.dtype != DType::boolean) return false;
  const Shape space = features_of(call_.output);
  return std::ranges::all_of(call_.inputs, [&](const TextOperand& x) { return is_aligned(x, space); });
}

bool PairText::makes_half() const {
  if (is_product()) return feature_count(call_.output) >= 2;
  return is_elementwise() && std::ranges::find(halves_, true) != halves_.end();
}

bool PairText::fits() const {
  return !is_product_over_rows(call_) || (call_.inputs[0].type.rows == 1 && call_.inputs[1].type.rows == 1);
}

// Splits the operand that is already a half, or the longer one if both or neither are.
bool PairText::sums_columns() const {
  const std::int64_t k = call_.inputs[0].type.shape[1], n = call_.inputs[1].type.shape[1];
  if (halves_[0] != halves_[1]) return halves_[1];
  return n >= k;
}

PairSums PairText::sums() const {
  if (call_.op != Op::matmul) {
    const std::int64_t n = call_.output.shape.elements();
    return {half_of(n), fmt::format("of_rows<{}, 1>", n)};
  }
  const std::int64_t k = call_.inputs[0].type.shape[1], n = call_.inputs[1].type.shape[1];
  if (sums_columns()) return {k * half_of(n), fmt::format("of_columns<{}>", n)};
  return {half_of(k) * n, fmt::format("of_rows<{}, {}>", k, n)};
}

// Form in which the code reads an operand with rows.
PairText::Form PairText::wanted(std::size_t input) const {
  if (is_product()) return sums_halves() ? Form::half : Form::whole;
  if (is_product_over_rows(call_)) return (input == 1) == sums_columns() ? Form::half : Form::whole;
  if (call_.output.rows == 0) {  // sum over rows, feature by feature
    if (call_.op == Op::scatter_add || !halves_[input]) return Form::whole;
    const RowTerms terms = row_terms(call_.inputs[input], call_.params->as<ReduceParams>().axes);
    return terms.reduced == 1 ? Form::half : Form::whole;
  }
  return makes_half() && feature_count(call_.inputs[input].type) > 1 ? Form::half : Form::whole;
}

std::string PairText::name(std::size_t input) const {
  const TextOperand& x = call_.inputs[input];
  if (!x.has_rows()) return x.name;
  const bool half = wanted(input) == Form::half;
  return half == halves_[input] ? x.name : fmt::format("{}_{}", x.name, half ? "half" : "whole");
}

std::string PairText::before(std::set<std::string>& there) const {
  std::string text;
  for (std::size_t i = 0; i < call_.inputs.size(); ++i) {
    const std::string needed = name(i);
    if (needed == call_.inputs[i].name || !there.insert(needed).second) continue;
    text += fmt::format("      const auto {} = {}({});\n", needed, wanted(i) == Form::half ? "half" : "whole",
                        call_.inputs[i].name);
  }
  return text;
}

std::string PairText::text(std::int64_t at) const {
  TextCall call = call_;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) call.inputs[i].name = name(i);
  if (is_product() && makes_half() && !sums_halves()) {
    const bool transposed = call.params->as<MatmulParams>().transpose_b;
    return fmt::format("matmul{}_halves<{}, {}>({}, {} + {})", transposed ? "_transposed" : "",
                       feature_count(call.inputs[0].type), feature_count(call.output), call.inputs[0].name,
                       call.inputs[1].name, call.inputs[1].view.offset);
  }
  if (!is_product() && makes_half())
    return fmt::format("halves<{0}>([&](const At<{0}>& i) {{ return {1}; }})", feature_count(call.output),
                       feature_text(call));
  const Fold* const fold = fold_of(call.op);
  if (call.output.rows == 0 && fold != nullptr && wanted(0) == Form::half)
    return fmt::format("combine<{}, {}>(sums, {}, {}, {}, live);", at, call.output.shape.elements(), fold->start,
                       call.inputs[0].name, fold->function);
  return row_text(call, at);
}

}  // namespace graphrun::cuda
