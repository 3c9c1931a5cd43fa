#include "executors/cuda_planner/row_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/matmul.h"
#include "kernels/dims.h"

namespace graphrun::cuda {
namespace {

std::string dims_text(const Dims<1>& dims, std::string_view i) {
  View view;
  for (int d = 0; d < dims.rank; ++d) {
    view.extents.push_back(dims.dim[d].extent);
    view.strides[d] = dims.dim[d].stride[0];
  }
  return index_text(view, i);
}

bool dense_operand(const TextOperand& operand) {
  return operand.has_rows() || operand.number || is_dense(operand.view);
}

class RowText {
 public:
  RowText(const TextCall& call, std::int64_t at, std::string& reason) : call_(call), at_(at), reason_(reason) {}

  std::string run() {
    if (has_f64(call_)) return no("it computes in f32");
    if (call_.output.rows == 0) return reduced();
    const std::int64_t n = feature_count(call_.output);
    if (call_.op == Op::matmul) return product();
    if (call_.op == Op::minibatch) return selected(n);
    if (std::string text = joined_text(call_, features_of(call_.output)); !text.empty())
      return fmt::format("map<{}>([&](int i) {{ {} }})", n, text);
    if (std::string text = axis_text(call_); !text.empty()) return text;
    const std::string text = feature();
    return text.empty() ? text : mapped(n, text);
  }

  // Code of one feature, for a step that computes each feature by itself.
  std::string feature() {
    if (has_f64(call_)) return no("it computes in f32");
    const std::int64_t n = feature_count(call_.output);
    const Shape space = features_of(call_.output);
    if (is_draw(call_.op))
      return draw_text(call_, fmt::format("u64(r) * {} + i", n),
                       call_.op == Op::dropout ? element(call_.inputs[0], space) : "");
    if (call_.op == family_op::one_hot)
      return fmt::format("{}[i / {}] == i % {} ? 1.0f : 0.0f", call_.inputs[0].name, last_extent(space),
                         last_extent(space));
    if (call_.op == family_op::gather) return gathered();
    if (std::string text = moved_text(call_, space); !text.empty()) return text;
    if (std::string text = joined_text(call_, space); !text.empty()) return fmt::format("[&] {{ {} }}()", text);
    if (!is_scalar(call_.op)) return no("it has no text over rows");
    std::vector<std::string> x;
    for (const TextOperand& operand : call_.inputs) x.push_back(element(operand, space));
    return scalar_text(call_, x);
  }

 private:
  std::string no(std::string_view why) {
    reason_ = fmt::format("'{}' is not part of a step kernel: {}", name_of(call_.op), why);
    return {};
  }
  static std::string mapped(std::int64_t n, std::string_view text) {
    return fmt::format("map<{}>([&](int i) {{ return {}; }})", n, text);
  }

  std::string selected(std::int64_t n) {
    if (call_.inputs[0].number) return mapped(n, call_.inputs[0].name);
    const std::int64_t offset = call_.inputs[0].view.offset;
    return fmt::format("load<{0}>({1}{2} + {3} * {0})", n, call_.inputs[0].name,
                       offset == 0 ? "" : fmt::format(" + {}", offset), batch_row_text(call_, "r"));
  }

  std::string product() {
    const TextOperand &a = call_.inputs[0], &b = call_.inputs[1];
    const auto& p = call_.params->as<MatmulParams>();
    if (b.has_rows() || !a.has_rows() || b.type.shape.rank() != 2 || p.transpose_a)
      return no("it multiplies values of one sample with each other");
    if (b.number)
      return mapped(feature_count(call_.output), fmt::format("scalar::fma({}[i], {}, 0.0f)", a.name, b.name));
    if (!is_dense(b.view) || b.view.offset % 4 != 0) return no("its weights are a part of a value");
    const Shape space = features_of(a.type);
    const std::int64_t k = last_extent(space), rows = feature_count(a.type) / std::max<std::int64_t>(k, 1);
    const std::int64_t n = b.type.shape[p.transpose_b ? 0 : 1];
    return fmt::format("matmul{}<{}, {}, {}>({}, {} + {})", p.transpose_b ? "_transposed" : "", rows, k, n, a.name,
                       b.name, b.view.offset);
  }

  std::string gathered() {
    const TextOperand &table = call_.inputs[0], &index = call_.inputs[1];
    if (table.has_rows() || !index.has_rows() || !dense_operand(table)) return no("its table has rows of samples");
    return fmt::format("[&] {{ {} }}()",
                       gathered_text(table, fmt::format("{}[i / {}]", index.name, table.type.shape[1])));
  }

  // Contribution of this row to a reduced value.
  std::string reduced() {
    const TextOperand& x = call_.inputs[0];
    if (call_.output.dtype != DType::f32) return no("its operand is not f32");
    if (call_.op == Op::matmul) {
      const TextOperand& y = call_.inputs[1];
      if (!is_product_over_rows(call_)) return no("it is not a sum over rows of their products");
      const std::int64_t k = x.type.shape[1], n = y.type.shape[1];
      return fmt::format("add_product<{}, {}, {}, {}>(sums, {}, {}, live);", at_, x.type.rows, k, n, x.name, y.name);
    }
    if (call_.op == Op::scatter_add) {
      const TextOperand& y = call_.inputs[1];
      if (!x.has_rows() || !y.has_rows()) return no("its places are not of the rows");
      const std::int64_t width = call_.output.shape[1];
      return fmt::format(
          "combine<{}, {}, {}>(sums, 0.0f, [&](int n, int m) {{ return {}[m] == n / {} ? {}[m * {} + n % {}] : 0.0f; "
          "}}, "
          "{}, live);",
          at_, call_.output.shape.elements(), feature_count(x.type), x.name, width, y.name, width, width,
          fold_of(Op::sum)->function);
    }
    const Fold* const fold = fold_of(call_.op);
    if (fold == nullptr || !x.has_rows()) return no("it is not a sum, product or extremum over rows");
    const RowTerms t = row_terms(x, call_.params->as<ReduceParams>().axes);
    return fmt::format("combine<{}, {}, {}>(sums, {}, {}, {}, live);", at_, t.kept, t.reduced, fold->start, t.text,
                       fold->function);
  }

  const TextCall& call_;
  std::int64_t at_;
  std::string& reason_;
};

}  // namespace

std::string row_text(const TextCall& call, std::int64_t at, std::string& reason) {
  return RowText(call, at, reason).run();
}

std::string feature_text(const TextCall& call, std::string& reason) {
  return RowText(call, 0, reason).feature();
}

std::string axis_text(const TextCall& call, std::string_view to) {
  const TextOperand& x = call.inputs[0];
  if (!x.has_rows()) return {};
  const std::string first = to.empty() ? std::string() : fmt::format("{}, ", to);
  const Shape space = features_of(x.type);
  if (call.op == family_op::softmax || call.op == family_op::log_softmax) {
    const Around axis(space, call.params->as<AxisParams>().axis);
    return fmt::format("{}<{}, {}, {}, {}>({}{})", name_of(call.op), call.number, axis.before, axis.along, axis.after,
                       first, x.name);
  }
  if (call.op == family_op::softmax_cross_entropy) {
    if (!call.inputs[1].has_rows()) return {};
    return fmt::format("softmax_cross_entropy<{}, {}, {}>({}{}, {})", call.number,
                       feature_count(x.type) / last_extent(space), last_extent(space), first, x.name,
                       call.inputs[1].name);
  }
  const bool position = call.op == Op::argmax || call.op == Op::argmin;
  const Fold* const fold = fold_of(call.op);
  if (!position && fold == nullptr && call.op != Op::logsumexp) return {};
  const RowTerms t =
      row_terms(x, position ? 1u << call.params->as<AxisParams>().axis : call.params->as<ReduceParams>().axes);
  if (fold != nullptr)
    return fmt::format("reduce<{}, {}>({}{}, {}, {})", t.kept, t.reduced, first, fold->start, t.text, fold->function);
  if (t.reduced == 0) return {};
  if (position)
    return fmt::format("position<{}, {}>({}{}, {})", t.kept, t.reduced, first, call.op == Op::argmax ? "1.0f" : "-1.0f",
                       t.text);
  return fmt::format("logsumexp<{}, {}, {}>({}{})", call.number, t.kept, t.reduced, first, t.text);
}

RowTerms row_terms(const TextOperand& x, std::uint32_t axes) {
  const Split<1> split({seen(x)}, axes);
  return {split.kept.count, split.reduced.count,
          fmt::format("[&](int n, int m) {{ return {}[{} + {}]; }}", x.name, dims_text(split.kept, "n"),
                      dims_text(split.reduced, "m"))};
}

std::string made_text(std::string_view step, const std::function<std::string(std::string&)>& text) {
  std::string reason, made = text(reason);
  if (made.empty()) throw std::logic_error(fmt::format("{}: {}", step, reason));
  return made;
}

std::string element_text(const TextCall& call, std::string& reason) {
  const auto no = [&](std::string_view why) {
    reason = fmt::format("'{}' is not part of a step kernel: {}", name_of(call.op), why);
    return std::string();
  };
  if (has_f64(call)) return no("it computes in f32");
  for (const TextOperand& operand : call.inputs)
    if (operand.has_rows()) return no("it reads rows of samples, and computes none");
  const Shape& space = call.op == Op::record ? call.inputs[1].type.shape : call.output.shape;
  if (is_draw(call.op)) return draw_text(call, "u64(i)", call.op == Op::dropout ? element(call.inputs[0], space) : "");
  if (std::string text = moved_text(call, space); !text.empty()) return text;
  if (std::string text = joined_text(call, space); !text.empty()) return fmt::format("[&] {{ {} }}()", text);
  if (call.op == Op::matmul) {
    const TextOperand &a = call.inputs[0], &b = call.inputs[1];
    const auto& p = call.params->as<MatmulParams>();
    if (a.type.shape.rank() != 2 || b.type.shape.rank() != 2) return no("it is a product of several matrices");
    const View x = p.transpose_a ? transposed(seen(a)) : seen(a), y = p.transpose_b ? transposed(seen(b)) : seen(b);
    const auto term = [](const TextOperand& o, const View& view, int outer, int inner, std::string_view i) {
      return o.number ? o.name
                      : fmt::format("{}[{} + {} * {} + m * {}]", o.name, view.offset, i, view.strides[outer],
                                    view.strides[inner]);
    };
    return fmt::format("dot<{}>([&](int m) {{ return {}; }}, [&](int m) {{ return {}; }})", x.extents[1],
                       term(a, x, 0, 1, fmt::format("(i / {})", y.extents[1])),
                       term(b, y, 1, 0, fmt::format("(i % {})", y.extents[1])));
  }
  if (const Fold* const fold = fold_of(call.op)) {
    const View x = seen(call.inputs[0]);
    const Split<1> split({x}, call.params->as<ReduceParams>().axes);
    if (call.inputs[0].number) return call.inputs[0].name;
    return fmt::format("fold<{}>({}, [&](int m) {{ return {}[{} + {} + {}]; }}, {})", split.reduced.count, fold->start,
                       call.inputs[0].name, x.offset, dims_text(split.kept, "i"), dims_text(split.reduced, "m"),
                       fold->function);
  }
  if (!is_scalar(call.op)) return no("it has no code for values shared by all rows");
  std::vector<std::string> x;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const bool only_written = i == 0 && (call.op == Op::assign || call.op == Op::record);
    x.push_back(only_written ? std::string() : element(call.inputs[i], space));
  }
  return scalar_text(call, x);
}

}  // namespace graphrun::cuda
