#include "executors/cuda_planner/print/scalar_text.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"

namespace graphrun::cuda {
namespace {

// Syntax of scalar ops in a kernel: formats of operands {0} to {2}, attributes {3} and {4}, compute type {5} and
// functor {6}; names of functions.
struct ScalarForms {
  std::string_view unary, binary, compare, logical, from_bits, to_boolean, to_float;
};
constexpr ScalarForms kForms[] = {
    {"unary<scalar::{6}, {5}>({0}, {3}, {4})", "binary<scalar::{6}, {5}>({0}, {1})", "compare<scalar::{6}>({0}, {1})",
     "compare<scalar::{6}>({0} != 0, {1} != 0)", "scalar::from_bits", "u8", "float"},
    {"scalar::{6}::apply({0}, {3}, {4})", "scalar::{6}::apply({0}, {1})",
     "static_cast<u8>(scalar::{6}::apply({0}, {1}) ? 1 : 0)",
     "static_cast<u8>(scalar::{6}::apply({0} != 0, {1} != 0) ? 1 : 0)", "__int_as_float", "static_cast<u8>",
     "static_cast<float>"},
};

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
    // in the order of CombineOp
    {Op::sum, "0.0f", "[](float x, float y) { return x + y; }", "x + y"},
    {Op::prod, "1.0f", "[](float x, float y) { return x * y; }", "x * y"},
    {Op::max, "-infinity()", "larger", "larger(x, y)"},
    {Op::min, "infinity()", "smaller", "smaller(x, y)"},
};

std::string number_text(double value, const ScalarForms& forms = kForms[0]) {
  return fmt::format("{}({:#x})", forms.from_bits, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
}
std::string cast_text(std::string_view x, DType from, DType to, const ScalarForms& forms) {
  if (from == to) return std::string(x);
  if (to == DType::boolean) return fmt::format("{}({} != 0 ? 1 : 0)", forms.to_boolean, x);
  return fmt::format("{}({})", to == DType::f32 ? forms.to_float : to == DType::i32 ? "to_i32" : "to_u64", x);
}

std::string key_text(const TextCall& call, std::uint64_t key) {
  return call.key.empty() ? fmt::format("{:#x}u", key) : call.key;
}

std::string draw_text(const TextCall& call, std::string_view position, std::string_view x) {
  const auto& p = call.params->as<RandomParams>();
  const bool drops = call.op == Op::dropout;
  const std::string word =
      fmt::format("bits::word({}, {}, {})", key_text(call, p.key), call.inputs[drops ? 1 : 0].name, position);
  if (drops)
    return fmt::format("bits::unit({}) < {:a} ? 0.0f : {} / {}", word, p.a, x,
                       number_text(static_cast<float>(1 - p.a)));
  return fmt::format("bits::{}({}, {:a}, {:a})", call.op == family_op::random_normal ? "normal" : "uniform", word, p.a,
                     p.b);
}

// Row `index` of a table, or 0 if the table has no such row.
std::string gathered_text(const TextOperand& table, std::string_view index) {
  const std::int64_t width = table.type.shape[1];
  const std::string x =
      table.number ? table.name : fmt::format("{}[{} + k * {} + i % {}]", table.name, table.view.offset, width, width);
  return fmt::format("const int k = {}; return k >= 0 && k < {} ? {} : {}(0);", index, table.type.shape[0], x,
                     type_name(table.type.dtype));
}

// Element i of operand `input` of a pad or concat, whose place along the axis is k - start.
std::string joined_element(const TextCall& call, std::size_t input, int axis, std::int64_t start, const Around& out) {
  const TextOperand& operand = call.inputs[input];
  const View view = seen(operand);
  const Around in(view.extents, axis);
  if (operand.number) return operand.name;
  return fmt::format("{}[{}i / {} * {} + (k - {}) * {} + i % {}]", operand.name,
                     view.offset == 0 ? "" : fmt::format("{} + ", view.offset), out.along * out.after,
                     in.along * in.after, start, out.after, out.after);
}

std::string joined_text(const TextCall& call, const Shape& space) {
  const bool pads = call.op == Op::pad;
  const int axis = pads ? call.params->as<PadParams>().axis : call.params->as<AxisParams>().axis;
  const Around out(space, axis);
  std::string text = fmt::format("const int k = i / {} % {};", out.after, out.along);
  if (pads) {
    const auto& p = call.params->as<PadParams>();
    return text + fmt::format(" if (k < {} || k >= {}) return {}; return {};", p.before,
                              p.before + seen(call.inputs[0]).extents[axis],
                              call.output.dtype == DType::f32
                                  ? number_text(p.value)
                                  : fmt::format("{}({})", type_name(call.output.dtype), p.value),
                              joined_element(call, 0, axis, p.before, out));
  }
  std::int64_t start = 0;
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    const std::string x = joined_element(call, k, axis, start, out);
    start += seen(call.inputs[k]).extents[axis];
    text += start < out.along ? fmt::format(" if (k < {}) return {};", start, x) : fmt::format(" return {};", x);
  }
  return text;
}

}  // namespace

bool is_scalar(Op op) {
  return op == Op::cast || op == Op::row_count || op == family_op::divide_step ||
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

std::string scalar_text(const TextCall& call, std::vector<std::string> x, TextDialect dialect) {
  const ScalarForms& forms = kForms[static_cast<std::size_t>(dialect)];
  if (call.op == Op::cast) return cast_text(x[0], call.inputs[0].type.dtype, call.output.dtype, forms);
  if (call.op == Op::row_count) {
    const auto& p = call.params->as<MinibatchParams>();
    return fmt::format("batch_rows({}, {}u, {}u, {}u)", x[0], p.total, p.capacity,
                       std::max<std::int64_t>(p.batches(), 1));
  }
  if (call.op == family_op::divide_step) return fmt::format("{} / {}u", x[0], call.params->as<ScalarParams>().a);
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

const Fold& fold_of(CombineOp op) {
  return kFolds[static_cast<std::size_t>(op)];
}

std::string text_of(const Index& index) {
  std::string text = index.offset == 0 ? std::string() : fmt::format("{}", index.offset);
  for (const Index::Term& term : index.terms) {
    text += fmt::format("{}{}", text.empty() ? "" : " + ", term.variable);
    if (term.divisor != 1) text += fmt::format(" / {}", term.divisor);
    if (term.modulus != 0) text += fmt::format(" % {}", term.modulus);
    if (term.stride != 1) text += fmt::format(" * {}", term.stride);
  }
  return text.empty() ? "0" : text;
}
std::string element_at(const TextOperand& operand, const Index& index) {
  return operand.number ? operand.name : fmt::format("{}[{}]", operand.name, text_of(index));
}
std::string element(const TextOperand& operand, const Shape& space) {
  return element_at(operand, index_in(operand, space));
}

bool is_by_element(Op op) {
  const auto others = {family_op::one_hot, family_op::gather, Op::transpose, Op::slice, Op::pad, Op::concat};
  return is_draw(op) || is_scalar(op) || std::ranges::find(others, op) != others.end();
}

ElementText element_text(const TextCall& call, const Shape& space, std::string_view position, const ElementAccess& at) {
  const auto x = [&](std::size_t k) { return at(call.inputs[k], index_in(call.inputs[k], space)); };
  if (is_draw(call.op)) return {draw_text(call, position, call.op == Op::dropout ? x(0) : "")};
  if (call.op == Op::pad || call.op == Op::concat) return {joined_text(call, space), true};
  if (call.op == family_op::gather)
    return {gathered_text(call.inputs[0], at(call.inputs[1], {0, {{'i', call.inputs[0].type.shape[1]}}})), true};
  if (call.op == family_op::one_hot)
    return {fmt::format("{} == i % {} ? 1.0f : 0.0f", at(call.inputs[0], {0, {{'i', last_extent(space)}}}),
                        last_extent(space))};
  if (call.op == Op::transpose)
    return {at(call.inputs[0], index_of(permuted(seen(call.inputs[0]), call.params->as<PermuteParams>().axes)))};
  if (call.op == Op::slice) {
    const auto& p = call.params->as<SliceParams>();
    return {at(call.inputs[0], index_of(sliced(seen(call.inputs[0]), p.axis, p.start, space[p.axis])))};
  }
  std::vector<std::string> operands;
  for (std::size_t k = 0; k < call.inputs.size(); ++k)
    operands.push_back(is_only_written(call.op, k) ? std::string() : x(k));
  return {scalar_text(call, std::move(operands))};
}

std::string_view type_name(DType dtype) {
  constexpr std::string_view kNames[] = {"float", "double", "int", "u64", "u8"};
  return kNames[static_cast<std::size_t>(dtype)];
}

std::string batches_text(const TextCall& call) {
  const auto& p = call.params->as<MinibatchParams>();
  return fmt::format("Batches{{{}u, {}u, {}u, {}, {}}}", p.total, p.capacity, std::max<std::int64_t>(p.batches(), 1),
                     p.shuffle, key_text(call, p.key));
}
std::string batch_row_text(const TextCall& call, std::string_view r) {
  if (!call.picked.empty()) return fmt::format("{}.row(epoch, {})", call.picked, r);
  return fmt::format("{}.row({}, {})", batches_text(call), call.inputs[1].name, r);
}

}  // namespace graphrun::cuda
