#include "executors/cuda_planner/scalar_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/matmul.h"
#include "graphrun/params/minibatch.h"
#include "graphrun/params/movement.h"
#include "graphrun/params/random.h"
#include "graphrun/params/scalar.h"
#include "graphrun/scalar_op.h"
#include "kernels/dims.h"

namespace graphrun::cuda {
namespace {

// A scalar op: the form of its code and its functor {6}, or the complete code.
struct ScalarText {
  Op op;
  std::string_view ScalarForms::*form;
  std::string_view text;
  double ulps = 0;
};
#define GRAPHRUN_UNARY_TEXT(name, Functor, ulps, ...) {scalar_op::name, &ScalarForms::unary, #Functor, ulps},
#define GRAPHRUN_BINARY_TEXT(name, Functor, ulps, ...) {scalar_op::name, &ScalarForms::binary, #Functor, ulps},
#define GRAPHRUN_COMPARE_TEXT(name, Functor, ...) {scalar_op::name, &ScalarForms::compare, #Functor},
#define GRAPHRUN_LOGICAL_TEXT(name, Functor, ...) {scalar_op::name, &ScalarForms::logical, #Functor},
constexpr ScalarText kScalarTexts[] = {
    // clang-format off
    GRAPHRUN_UNARY_OPS(GRAPHRUN_UNARY_TEXT)
    GRAPHRUN_BINARY_OPS(GRAPHRUN_BINARY_TEXT)
    GRAPHRUN_COMPARE_OPS(GRAPHRUN_COMPARE_TEXT)
    GRAPHRUN_LOGICAL_OPS(GRAPHRUN_LOGICAL_TEXT)
    {Op::where, nullptr, "{0} != 0 ? {1} : {2}"}, {Op::broadcast_to, nullptr, "{0}"},
    {Op::increment, nullptr, "{0} + 1"}, {Op::assign, nullptr, "{1}"}, {Op::record, nullptr, "{1}"},
    // clang-format on
};

constexpr Fold kFolds[] = {
    {Op::sum, "0.0f", "[](float x, float y) { return x + y; }"},
    {Op::prod, "1.0f", "[](float x, float y) { return x * y; }"},
    {Op::max, "-infinity()", "larger"},
    {Op::min, "infinity()", "smaller"},
};

constexpr ScalarForms kStepForms = {"unary<scalar::{6}, {5}>({0}, {3}, {4})",
                                    "binary<scalar::{6}, {5}>({0}, {1})",
                                    "compare<scalar::{6}>({0}, {1})",
                                    "compare<scalar::{6}>({0} != 0, {1} != 0)",
                                    "scalar::from_bits",
                                    "u8",
                                    "float"};

std::string number_text(double value, const ScalarForms& forms = kStepForms) {
  return fmt::format("{}({:#x})", forms.from_bits, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
}
std::string cast_text(std::string_view x, DType from, DType to, const ScalarForms& forms) {
  if (from == to) return std::string(x);
  if (to == DType::boolean) return fmt::format("{}({} != 0 ? 1 : 0)", forms.to_boolean, x);
  return fmt::format("{}({})", to == DType::f32 ? forms.to_float : to == DType::i32 ? "to_i32" : "to_u64", x);
}

}  // namespace

std::string double_text(double value) {
  return fmt::format("{:a}", value);
}

bool is_draw(Op op) {
  return op == family_op::random_uniform || op == family_op::random_normal || op == Op::dropout;
}

std::string draw_text(const TextCall& call, std::string_view i, std::string_view x) {
  const auto& p = call.params->as<RandomParams>();
  const bool drops = call.op == Op::dropout;
  const std::string word = fmt::format("bits::word({:#x}u, {}, {})", p.key, call.inputs[drops ? 1 : 0].name, i);
  if (drops)
    return fmt::format("bits::unit({}) < {} ? 0.0f : {} / {}", word, double_text(p.a), x,
                       number_text(static_cast<float>(1 - p.a)));
  return fmt::format("bits::{}({}, {}, {})", call.op == family_op::random_normal ? "normal" : "uniform", word,
                     double_text(p.a), double_text(p.b));
}

bool is_scalar(Op op) {
  return op == Op::cast || op == Op::row_count ||
         std::ranges::find(kScalarTexts, op, &ScalarText::op) != std::end(kScalarTexts);
}

bool is_approximate(Op op) {
  const auto row = std::ranges::find(kScalarTexts, op, &ScalarText::op);
  const auto others = {Op::div,
                       scalar_op::reciprocal,
                       scalar_op::sqrt,
                       family_op::softmax,
                       family_op::log_softmax,
                       family_op::softmax_cross_entropy,
                       Op::logsumexp};
  return (row != std::end(kScalarTexts) && row->ulps > 0.5) || std::ranges::find(others, op) != others.end();
}

std::string scalar_text(const TextCall& call, std::vector<std::string> x) {
  return scalar_text(call, std::move(x), kStepForms);
}
std::string scalar_text(const TextCall& call, std::vector<std::string> x, const ScalarForms& forms) {
  if (call.op == Op::cast) return cast_text(x[0], call.inputs[0].type.dtype, call.output.dtype, forms);
  if (call.op == Op::row_count) {
    const auto& p = call.params->as<MinibatchParams>();
    return fmt::format("batch_rows({}, {}u, {}u, {}u)", x[0], p.total, p.capacity,
                       std::max<std::int64_t>(p.batches(), 1));
  }
  const auto row = std::ranges::find(kScalarTexts, call.op, &ScalarText::op);
  if (row == std::end(kScalarTexts)) throw std::logic_error(fmt::format("{} is not a scalar op", name_of(call.op)));
  x.resize(3, "0");  // logical_not ignores its second operand
  const auto* scalars = call.params->get_if<ScalarParams>();
  return fmt::format(fmt::runtime(row->form == nullptr ? row->text : forms.*(row->form)), x[0], x[1], x[2],
                     number_text(scalars != nullptr ? scalars->a : 0, forms),
                     number_text(scalars != nullptr ? scalars->b : 0, forms), call.number, row->text);
}

const Fold* fold_of(Op op) {
  const auto* const found = std::ranges::find(kFolds, op, &Fold::op);
  return found == std::end(kFolds) ? nullptr : found;
}

View seen(const TextOperand& operand) {
  return operand.has_rows() ? dense(features_of(operand.type)) : operand.view;
}
std::string at(const TextOperand& operand, const View& view, std::string_view i) {
  return operand.number ? operand.name : fmt::format("{}[{}]", operand.name, index_text(view, i));
}
std::string element(const TextOperand& operand, const Shape& space) {
  return at(operand, broadcast(seen(operand), space), "i");
}

std::string moved_text(const TextCall& call, const Shape& space) {
  const auto reading = [&](const View& view) { return at(call.inputs[0], view, "i"); };
  switch (call.op) {
    case Op::transpose:
      return reading(permuted(seen(call.inputs[0]), call.params->as<PermuteParams>().axes));
    case Op::slice: {
      const auto& p = call.params->as<SliceParams>();
      return reading(sliced(seen(call.inputs[0]), p.axis, p.start, space[p.axis]));
    }
    default:
      return {};
  }
}

std::string gathered_text(const TextOperand& table, std::string_view index) {
  const std::int64_t width = table.type.shape[1];
  const std::string x =
      table.number ? table.name : fmt::format("{}[{} + k * {} + i % {}]", table.name, table.view.offset, width, width);
  return fmt::format("const int k = {}; return k >= 0 && k < {} ? {} : {}(0);", index, table.type.shape[0], x,
                     type_name(table.type.dtype));
}

std::string joined_text(const TextCall& call, const Shape& space) {
  const auto part = [](const TextOperand& operand, const std::string& index) {
    const std::int64_t offset = operand.has_rows() ? 0 : operand.view.offset;
    return operand.number
               ? operand.name
               : fmt::format("{}[{}{}]", operand.name, offset == 0 ? "" : fmt::format("{} + ", offset), index);
  };
  if (call.op == Op::pad) {
    const auto& p = call.params->as<PadParams>();
    const std::string value = call.output.dtype == DType::f32
                                  ? number_text(p.value)
                                  : fmt::format("{}({})", type_name(call.output.dtype), p.value);
    const Shape from = seen(call.inputs[0]).extents;
    const Around out(space, p.axis), in(from, p.axis);
    const std::string index = fmt::format("i / {0} * {1} + (k - {2}) * {3} + i % {3}", out.along * out.after,
                                          in.along * in.after, p.before, out.after);
    const std::string x = part(call.inputs[0], index);
    return fmt::format("const int k = i / {} % {}; if (k < {} || k >= {}) return {}; return {};", out.after, out.along,
                       p.before, p.before + in.along, value, x);
  }
  if (call.op != Op::concat) return {};
  const int axis = call.params->as<AxisParams>().axis;
  const Around out(space, axis);
  std::string text = fmt::format("const int k = i / {} % {};", out.after, out.along);
  std::int64_t start = 0;
  for (const TextOperand& operand : call.inputs) {
    const Around in(seen(operand).extents, axis);
    const std::string index = fmt::format("i / {0} * {1} + (k - {2}) * {3} + i % {3}", out.along * out.after,
                                          in.along * in.after, start, out.after);
    start += in.along;
    const std::string x = part(operand, index);
    text += start < out.along ? fmt::format(" if (k < {}) return {};", start, x) : fmt::format(" return {};", x);
  }
  return text;
}

Shape features_of(const TensorType& type) {
  Shape shape = type.shape;
  shape[0] = type.rows;
  return shape;
}
std::int64_t feature_count(const TensorType& type) {
  return features_of(type).elements();
}

std::int64_t last_extent(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
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

std::string_view type_name(DType dtype) {
  constexpr std::string_view kNames[] = {"float", "double", "int", "u64", "u8"};
  return kNames[static_cast<std::size_t>(dtype)];
}

std::string index_text(const View& view, std::string_view i) {
  const Dims<1> dims = merged<1>({view});
  std::string text = view.offset == 0 ? std::string() : fmt::format("{}", view.offset);
  std::int64_t inner = 1;
  for (int d = dims.rank - 1; d >= 0; inner *= dims.dim[d--].extent) {
    const std::int64_t stride = dims.dim[d].stride[0];
    if (stride == 0) continue;
    std::string term(i);
    if (inner != 1) term += fmt::format(" / {}", inner);
    if (d > 0) term += fmt::format(" % {}", dims.dim[d].extent);
    if (stride != 1) term += fmt::format(" * {}", stride);
    text += (text.empty() ? "" : " + ") + term;
  }
  return text.empty() ? "0" : text;
}

std::string batches_text(const TextCall& call) {
  const auto& p = call.params->as<MinibatchParams>();
  return fmt::format("Batches{{{}u, {}u, {}u, {}, {:#x}u}}", p.total, p.capacity,
                     std::max<std::int64_t>(p.batches(), 1), p.shuffle, p.key);
}
std::string batch_row_text(const TextCall& call, std::string_view r) {
  if (!call.picked.empty()) return fmt::format("{}.row(epoch, {})", call.picked, r);
  return fmt::format("{}.row({}, {})", batches_text(call), call.inputs[1].name, r);
}

}  // namespace graphrun::cuda
