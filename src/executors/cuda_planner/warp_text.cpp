#include "executors/cuda_planner/warp_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/matmul.h"
#include "graphrun/scalar_op.h"
#include "kernels/cuda/tile/shapes.h"

namespace graphrun::cuda {
namespace {

using tile::is_narrow, tile::blocks_of, tile::columns_of;

bool is_row_sum(const TextCall& call) {
  return call.output.rows == 0 && call.inputs[0].has_rows() && call.inputs[0].type.dtype == DType::f32 &&
         call.op == Op::sum;
}

class WarpText {
 public:
  WarpText(const TextCall& call, std::int64_t at, std::string_view held, std::string& reason)
      : call_(call), at_(at), held_(held), reason_(reason) {}

  std::string run() {
    if (has_f64(call_)) return no("it computes in f32");
    if (call_.output.rows == 0) return reduced();
    n_ = feature_count(call_.output);
    if (n_ == 0) return no("it has no features");
    const Shape space = features_of(call_.output);
    if (call_.op == Op::matmul) return product();
    if (call_.op == Op::minibatch) return selected();
    if (is_draw(call_.op)) return drawn(space);
    if (call_.op == family_op::one_hot) {
      const std::int64_t classes = last_extent(space);
      if (n_ != classes) return no("it makes classes of several numbers");
      return mapped(fmt::format("{}[at(i, 0)] == i % {} ? 1.0f : 0.0f", call_.inputs[0].name, classes));
    }
    if (call_.op == family_op::gather) return gathered();
    if (std::string text = along_axis(); !text.empty() || !reason_.empty()) return text;
    if (!is_scalar(call_.op)) return no("it moves features between lanes");
    std::vector<std::string> x;
    for (const TextOperand& operand : call_.inputs) {
      x.push_back(own_element(operand, space));
      if (x.back().empty()) return no("it spreads some features over others");
    }
    return mapped(scalar_text(call_, x));
  }

 private:
  std::string no(std::string_view why) {
    reason_ = fmt::format("'{}' is not part of a warp's rows: {}", name_of(call_.op), why);
    return {};
  }
  std::string mapped(std::string_view text) const {
    return fmt::format("map<{}>([&](Index i) {{ return {}; }})", n_, text);
  }

  // Element i if the lane has it, else empty.
  std::string own_element(const TextOperand& operand, const Shape& space) const {
    if (!operand.has_rows() || operand.number) return element(operand, space);
    const std::string index = index_text(broadcast(seen(operand), space), "i");
    const std::int64_t n = feature_count(operand.type);
    if (index == "i" && n == n_) return fmt::format("{}[i]", operand.name);
    const bool constant = index.find('i') == std::string::npos;
    if (!is_narrow(n) || !(constant || is_narrow(n_))) return {};
    return fmt::format("{}[at(i, {})]", operand.name, index);
  }

  std::string drawn(const Shape& space) {
    const bool drops = call_.op == Op::dropout;
    const std::string x = drops ? own_element(call_.inputs[0], space) : "0";
    if (x.empty()) return no("it spreads some features over others");
    return mapped(draw_text(call_, fmt::format("u64(r.row(i.half)) * {} + static_cast<u32>(i.feature)", n_), x));
  }

  std::string selected() {
    const TextOperand& data = call_.inputs[0];
    if (data.number) return mapped(data.name);
    return fmt::format("load<{}>({}{}, r, [&](u32 row) {{ return {}; }})", n_, data.name,
                       data.view.offset == 0 ? "" : fmt::format(" + {}", data.view.offset),
                       batch_row_text(call_, "row"));
  }

  std::string product() {
    const TextOperand &a = call_.inputs[0], &b = call_.inputs[1];
    const auto& p = call_.params->as<MatmulParams>();
    if (b.has_rows() || !a.has_rows() || b.type.shape.rank() != 2 || p.transpose_a || a.type.rows != 1)
      return no("it multiplies values of one sample with each other");
    if (b.number) return mapped(fmt::format("scalar::fma({}[i], {}, 0.0f)", a.name, b.name));
    if (!is_dense(b.view)) return no("its weights are a part of a value");
    return fmt::format("matmul({}, {})", a.name, held_.empty() ? weights_text(call_) : held_);
  }

  std::string gathered() {
    const TextOperand &table = call_.inputs[0], &index = call_.inputs[1];
    if (table.has_rows() || !index.has_rows() || !(table.number || is_dense(table.view)))
      return no("its table has rows of samples");
    if (feature_count(index.type) != 1) return no("it takes several rows of its table");
    return fmt::format("map<{}>([&](Index i) {{ {} }})", n_, gathered_text(table, index.name + "[at(i, 0)]"));
  }

  // Code of a step over all features of a row.
  std::string along_axis() {
    const TextOperand& x = call_.inputs[0];
    if (!x.has_rows()) return {};
    const bool softmax = call_.op == family_op::softmax || call_.op == family_op::log_softmax;
    const bool position = call_.op == Op::argmax || call_.op == Op::argmin;
    const Fold* const fold = fold_of(call_.op);
    if (!softmax && !position && fold == nullptr && call_.op != family_op::softmax_cross_entropy &&
        call_.op != Op::logsumexp)
      return {};
    const std::int64_t features = feature_count(x.type), out = softmax ? last_extent(features_of(x.type)) : n_;
    if (x.type.dtype != DType::f32 || features == 0) return no("its operand is not f32");
    if (softmax) {
      const Around axis(features_of(x.type), call_.params->as<AxisParams>().axis);
      return axis.along == features && out > 0 ? fmt::format("{}<{}>({})", name_of(call_.op), call_.number, x.name)
                                               : no("it combines some features of a row");
    }
    if (n_ != 1) return no("it combines some features of a row");
    if (call_.op == family_op::softmax_cross_entropy) {
      if (!call_.inputs[1].has_rows()) return no("its targets are not rows");
      return fmt::format("softmax_cross_entropy<{}>({}, {})", call_.number, x.name, call_.inputs[1].name);
    }
    if (position) return fmt::format("position({}, {})", call_.op == Op::argmax ? "1.0f" : "-1.0f", x.name);
    if (call_.op == Op::logsumexp) return fmt::format("logsumexp<{}>({})", call_.number, x.name);
    return fmt::format("reduce({}, {}, {})", fold->start, x.name, fold->function);
  }

  // Contribution of a tile to a reduced value.
  std::string reduced() {
    const TextOperand& x = call_.inputs[0];
    if (call_.output.dtype != DType::f32) return no("its operand is not f32");
    if (call_.op == Op::matmul) {
      const TextOperand& y = call_.inputs[1];
      if (!is_product_over_rows(call_) || x.type.rows != 1 || y.type.rows != 1)
        return no("it is not a sum over rows of their products");
      return fmt::format("sums.add_product<{}>({}, {}, r);", at_, x.name, y.name);
    }
    if (!is_row_sum(call_)) return no("it is not a sum over rows");
    const std::int64_t n = feature_count(x.type), kept = call_.output.shape.elements();
    if (kept == n) return fmt::format("sums.add<{}>({}, r);", at_, x.name);
    if (kept == 1) return fmt::format("sums.add<{}>(sum_of({}), r);", at_, x.name);
    return no("it sums some features of a row");
  }

  const TextCall& call_;
  std::int64_t at_;
  std::string held_;
  std::string& reason_;
  std::int64_t n_ = 0;
};

}  // namespace

std::string warp_text(const TextCall& call, std::int64_t at, std::string_view held, std::string& reason) {
  return WarpText(call, at, held, reason).run();
}

std::string affine_text(const TextCall& product, const TextCall& add, std::string_view product_name,
                        std::string_view held) {
  const std::int64_t k = feature_count(product.inputs[0].type), n = feature_count(product.output);
  if (product.op != Op::matmul || add.op != scalar_op::add || is_narrow(k) || is_narrow(n) ||
      feature_count(add.output) != n)
    return {};
  const bool first = add.inputs[0].name == product_name;
  const TextOperand& bias = add.inputs[first ? 1 : 0];
  if (add.inputs[first ? 0 : 1].name != product_name || bias.has_rows() || bias.number || !is_dense(bias.view) ||
      bias.type.shape.elements() != n || bias.view.offset % 2 != 0 || bias.type.dtype != DType::f32)
    return {};
  const std::string offset = bias.view.offset == 0 ? "" : fmt::format(" + {}", bias.view.offset);
  return fmt::format("affine({}, {}, {}{})", product.inputs[0].name, held.empty() ? weights_text(product) : held,
                     bias.name, offset);
}

std::string weights_text(const TextCall& call) {
  const TextOperand &a = call.inputs[0], &b = call.inputs[1];
  const bool transposed = call.params->as<MatmulParams>().transpose_b;
  const std::string offset = b.view.offset == 0 ? "" : fmt::format(" + {}", b.view.offset);
  return fmt::format("weights{}<{}, {}>({}{})", transposed ? "_transposed" : "", feature_count(a.type),
                     b.type.shape[transposed ? 0 : 1], b.name, offset);
}

std::int64_t max_numbers(std::uint32_t threads) {
  return threads > 256 ? 56 : 114;  // the lane has 128 or 255 registers
}

WarpShape warp_shape(const TextCall& call) {
  WarpShape shape;
  std::int64_t features = call.output.rows > 0 ? feature_count(call.output) : 0;
  for (const TextOperand& operand : call.inputs)
    if (operand.has_rows()) features = std::max(features, feature_count(operand.type));
  shape.instructions = 2 * columns_of(features);
  constexpr std::int64_t kSplit = 3, kProduct = 3;  // instructions per element; per block
  if (call.output.rows == 0) {
    const bool product = call.op == Op::matmul;
    shape.sum_rows = product ? feature_count(call.inputs[0].type) : 1;
    shape.sum_columns = product ? feature_count(call.inputs[1].type) : call.output.shape.elements();
    const std::int64_t k = shape.sum_rows, n = shape.sum_columns;
    const tile::SumShape sum = tile::sum_shape(k, n);
    shape.sum_numbers = sum.numbers;
    shape.scratch = sum.scratch;
    shape.instructions = sum.blocks ? 2 * (columns_of(k) + columns_of(n)) + sum.wide * (1 + 4 * kSplit) +
                                          sum.tall * 2 * (1 + 4 * kSplit + sum.wide * kProduct) + shape.sum_numbers
                                    : 2 * shape.sum_numbers;
    return shape;
  }
  if (call.op != Op::matmul) return shape;
  const std::int64_t k = feature_count(call.inputs[0].type), n = feature_count(call.output);
  if (!call.params->as<MatmulParams>().transpose_b) shape.live_numbers = 2 * columns_of(k);
  if (is_narrow(k) || is_narrow(n)) {
    shape.held_numbers = columns_of(k) * columns_of(n);
    shape.instructions = 2 * shape.held_numbers + (is_narrow(k) ? 0 : 8 * n);
  } else {
    shape.held_numbers = 4 * blocks_of(k) * blocks_of(n);
    shape.instructions = blocks_of(k) * (4 * kSplit + blocks_of(n) * kProduct);
  }
  return shape;
}

}  // namespace graphrun::cuda
