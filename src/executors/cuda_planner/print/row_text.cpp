#include "executors/cuda_planner/print/row_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::cuda {
namespace {

ElementText feature(const TextCall& call) {
  return element_text(call, features_of(call.output), fmt::format("u64(r) * {} + i", feature_count(call.output)));
}
RowTerms axis_terms(const TextCall& call) {
  return row_terms(call.inputs[0], is_position(call.op) ? 1u << call.params->as<AxisParams>().axis
                                                        : call.params->as<ReduceParams>().axes);
}

std::string_view sum_fault(const TextCall& call) {
  const auto have_rows = [&] { return std::ranges::all_of(call.inputs, &TextOperand::has_rows); };
  if (call.output.dtype != DType::f32) return "its operand is not f32";
  if (call.op == Op::matmul) return is_product_over_rows(call) ? "" : "it is not a sum over rows of their products";
  if (call.op == Op::scatter_add) return have_rows() ? "" : "its places are not of the rows";
  return fold_of(call.op) != nullptr && have_rows() ? "" : "it is not a sum, product or extremum over rows";
}

// Contribution of this row to a reduced value.
std::string sum_text(const TextCall& call, std::int64_t at) {
  const TextOperand &x = call.inputs[0], &y = call.inputs.back();
  if (call.op == Op::matmul)
    return fmt::format("add_product<{}, {}, {}, {}>(sums, {}, {}, live);", at, x.type.rows, x.type.shape[1],
                       y.type.shape[1], x.name, y.name);
  if (call.op == Op::scatter_add)
    return fmt::format(
        "combine<{0}, {1}, {2}>(sums, 0.0f, [&](int n, int m) {{ return {3}[m] == n / {4} ? {5}[m * {4} + n % {4}] : "
        "0.0f; }}, {6}, live);",
        at, call.output.shape.elements(), feature_count(x.type), x.name, call.output.shape[1], y.name,
        fold_of(Op::sum)->function);
  const Fold& fold = *fold_of(call.op);
  const RowTerms t = axis_terms(call);
  return fmt::format("combine<{}, {}, {}>(sums, {}, {}, {}, live);", at, t.kept, t.reduced, fold.start, t.text,
                     fold.function);
}

std::string product_text(const TextCall& call) {
  const TextOperand &a = call.inputs[0], &b = call.inputs[1];
  if (b.number) return mapped_text(call, scaled_text(call));
  const bool transposed = call.params->as<MatmulParams>().transpose_b;
  const std::int64_t k = last_extent(features_of(a.type)), rows = feature_count(a.type) / std::max<std::int64_t>(k, 1);
  return fmt::format("matmul{}<{}, {}, {}>({}, {} + {})", transposed ? "_transposed" : "", rows, k,
                     b.type.shape[transposed ? 0 : 1], a.name, b.name, b.view.offset);
}

std::string batch_text(const TextCall& call) {
  const TextOperand& data = call.inputs[0];
  if (data.number) return mapped_text(call, fmt::format("return {};", data.name));
  return fmt::format("load<{0}>({1}{2} + {3} * {0})", feature_count(call.output), data.name, offset_text(data),
                     batch_row_text(call, "r"));
}

// The call of a function along an axis; `of_row`: of a whole row, without template arguments for sizes.
std::string along_text(const TextCall& call, std::string_view to, bool of_row) {
  const TextOperand& x = call.inputs[0];
  const Shape space = features_of(x.type);
  if (is_softmax(call.op)) {
    const Around axis(space, call.params->as<AxisParams>().axis);
    const std::string sizes = fmt::format(", {}, {}, {}", axis.before, axis.along, axis.after);
    return fmt::format("{}<{}{}>({}{})", name_of(call.op), call.number, of_row ? "" : sizes, to, x.name);
  }
  if (call.op == family_op::softmax_cross_entropy) {
    const std::string sizes = fmt::format(", {}, {}", feature_count(x.type) / last_extent(space), last_extent(space));
    return fmt::format("{}<{}{}>({}{}, {})", name_of(call.op), call.number, of_row ? "" : sizes, to, x.name,
                       call.inputs[1].name);
  }
  const RowTerms t = axis_terms(call);
  const std::string sizes = fmt::format("{}, {}", t.kept, t.reduced), alone = fmt::format("<{}>", sizes);
  const std::string& terms = of_row ? x.name : t.text;
  if (const Fold* const fold = fold_of(call.op))
    return fmt::format("reduce{}({}{}, {}, {})", of_row ? "" : alone, to, fold->start, terms, fold->function);
  if (is_position(call.op))
    return fmt::format("position{}({}{}, {})", of_row ? "" : alone, to, call.op == Op::argmax ? "1.0f" : "-1.0f",
                       terms);
  return fmt::format("logsumexp<{}{}>({}{})", call.number, of_row ? "" : ", " + sizes, to, terms);
}

}  // namespace

std::string mapped_text(const TextCall& call, std::string_view statements, std::string_view index) {
  return fmt::format("map<{}>([&]({}) {{ {} }})", feature_count(call.output), index, statements);
}
std::string scaled_text(const TextCall& call) {
  return fmt::format("return scalar::fma({}[i], {}, 0.0f);", call.inputs[0].name, call.inputs[1].name);
}
std::string offset_text(const TextOperand& x) {
  return x.view.offset == 0 ? std::string() : fmt::format(" + {}", x.view.offset);
}

std::string fault_text(const TextCall& call, std::string_view of, std::string_view why) {
  return why.empty() ? std::string() : fmt::format("'{}' is not part of {}: {}", name_of(call.op), of, why);
}

std::string_view product_fault(const TextCall& call) {
  const TextOperand &a = call.inputs[0], &b = call.inputs[1];
  if (b.has_rows() || !a.has_rows() || b.type.shape.rank() != 2 || call.params->as<MatmulParams>().transpose_a)
    return "it multiplies values of one sample with each other";
  return b.is_whole() ? "" : "its weights are a part of a value";
}
std::string_view gather_fault(const TextCall& call) {
  const TextOperand& table = call.inputs[0];
  return table.has_rows() || !call.inputs[1].has_rows() || !table.is_whole() ? "its table has rows of samples" : "";
}

std::string row_fault(const TextCall& call) {
  const auto fault = [&]() -> std::string_view {
    if (has_f64(call)) return "it computes in f32";
    if (call.output.rows == 0) return sum_fault(call);
    if (call.op == Op::matmul) {
      const TextOperand& b = call.inputs[1];
      const bool aligned = b.number || b.view.offset % 4 == 0;
      const std::string_view why = product_fault(call);
      return why.empty() && !aligned ? "its weights are a part of a value" : why;
    }
    if (call.op == family_op::gather) return gather_fault(call);
    return call.op == Op::minibatch || is_by_element(call.op) || is_along_axis(call) ? "" : "it has no text over rows";
  };
  return fault_text(call, "a step kernel", fault());
}

std::string row_text(const TextCall& call, std::int64_t at) {
  if (call.output.rows == 0) return sum_text(call, at);
  if (call.op == Op::matmul) return product_text(call);
  if (call.op == Op::minibatch) return batch_text(call);
  return is_along_axis(call) ? axis_text(call) : mapped_text(call, feature(call).statements());
}

bool is_by_feature(const TextCall& call) {
  return call.output.rows > 0 && is_by_element(call.op) && row_fault(call).empty();
}
std::string feature_text(const TextCall& call) {
  return feature(call).expression();
}

bool may_be_along_axis(Op op) {
  return is_softmax(op) || fold_of(op) != nullptr || is_position(op) || op == Op::logsumexp ||
         op == family_op::softmax_cross_entropy;
}
bool is_along_axis(const TextCall& call) {
  if (!call.inputs[0].has_rows() || !may_be_along_axis(call.op)) return false;
  if (call.op == family_op::softmax_cross_entropy) return call.inputs[1].has_rows();
  return is_softmax(call.op) || fold_of(call.op) != nullptr || axis_terms(call).reduced > 0;
}

std::string axis_text(const TextCall& call, std::string_view to) {
  return along_text(call, to.empty() ? std::string() : fmt::format("{}, ", to), false);
}
std::string whole_row_text(const TextCall& call) {
  return along_text(call, "", true);
}

RowTerms row_terms(const TextOperand& x, std::uint32_t axes) {
  const AxisGroups<1> split({seen(x)}, axes);
  return {split.kept.count, split.reduced.count,
          fmt::format("[&](int n, int m) {{ return {}[{} + {}]; }}", x.name, text_of(index_of(split.kept, 'n')),
                      text_of(index_of(split.reduced, 'm')))};
}

std::string element_fault(const TextCall& call) {
  const auto fault = [&]() -> std::string_view {
    if (has_f64(call)) return "it computes in f32";
    if (std::ranges::any_of(call.inputs, &TextOperand::has_rows)) return "it reads rows of samples, and computes none";
    if (call.op == Op::matmul)
      return std::ranges::all_of(call.inputs, [](const TextOperand& x) { return x.type.shape.rank() == 2; })
                 ? ""
                 : "it is a product of several matrices";
    const auto is_plain = [](const TextOperand& x) { return x.number || (is_dense(x.view) && x.view.offset == 0); };
    const bool of_rows = call.op == family_op::gather || (call.op == family_op::one_hot && !is_plain(call.inputs[0]));
    return (is_by_element(call.op) && !of_rows) || fold_of(call.op) != nullptr
               ? ""
               : "it has no code for values shared by all rows";
  };
  return fault_text(call, "a step kernel", fault());
}

std::string fold_text(const TextCall& call, std::string_view head) {
  const TextOperand& x = call.inputs[0];
  const AxisGroups<1> split({seen(x)}, call.params->as<ReduceParams>().axes);
  const Fold& fold = *fold_of(call.op);
  return fmt::format("{}{}, [&](int m) {{ return {}[{} + {} + {}]; }}, {})", head, fold.start, x.name, x.view.offset,
                     text_of(index_of(split.kept, 'i')), text_of(index_of(split.reduced, 'm')), fold.function);
}

std::string element_text(const TextCall& call) {
  if (call.op == Op::matmul) {
    const TextOperand &x = call.inputs[0], &y = call.inputs[1];
    const auto& p = call.params->as<MatmulParams>();
    const View a = p.transpose_a ? transposed(seen(x)) : seen(x), b = p.transpose_b ? transposed(seen(y)) : seen(y);
    const auto term = [&](const TextOperand& of, const View& view, int outer, std::string_view part) {
      return of.number ? of.name
                       : fmt::format("{}[{} + (i {} {}) * {} + m * {}]", of.name, view.offset, part, b.extents[1],
                                     view.strides[outer], view.strides[1 - outer]);
    };
    return fmt::format("dot<{}>([&](int m) {{ return {}; }}, [&](int m) {{ return {}; }})", a.extents[1],
                       term(x, a, 0, "/"), term(y, b, 1, "%"));
  }
  if (fold_of(call.op) != nullptr) {
    const TextOperand& x = call.inputs[0];
    if (x.number) return x.name;
    return fold_text(call, fmt::format("fold<{}>(", x.type.shape.elements() /
                                                        std::max<std::int64_t>(call.output.shape.elements(), 1)));
  }
  const Shape& space = call.op == Op::record ? call.inputs[1].type.shape : call.output.shape;
  return element_text(call, space, "u64(i)").expression();
}

}  // namespace graphrun::cuda
