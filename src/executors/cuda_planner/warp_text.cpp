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

std::string offset_text(const TextOperand& x) {
  return x.view.offset == 0 ? std::string() : fmt::format(" + {}", x.view.offset);
}

std::string each_feature(const TextCall& call, std::string_view statements) {
  return fmt::format("map<{}>([&](Index i) {{ {} }})", feature_count(call.output), statements);
}

// Whether the lane that computes feature i of a row has the feature of the operand that it reads.
bool is_own(const TextCall& call, const TextOperand& x) {
  if (!x.has_rows() || x.number) return true;
  const std::int64_t n = feature_count(call.output), features = feature_count(x.type);
  const Index index = index_in(x, features_of(call.output));
  return (index.is_variable() && features == n) || (is_narrow(features) && (index.is_constant() || is_narrow(n)));
}

// Whether the step reads all features of a row.
bool is_along_row(const TextCall& call) {
  return call.inputs[0].has_rows() && (is_softmax(call.op) || is_position(call.op) || fold_of(call.op) != nullptr ||
                                       call.op == family_op::softmax_cross_entropy || call.op == Op::logsumexp);
}

std::string_view along_row_fault(const TextCall& call) {
  const TextOperand& x = call.inputs[0];
  const std::int64_t features = feature_count(x.type);
  if (x.type.dtype != DType::f32 || features == 0) return "its operand is not f32";
  const bool whole = is_softmax(call.op)
                         ? Around(features_of(x.type), call.params->as<AxisParams>().axis).along == features
                         : feature_count(call.output) == 1;
  if (!whole) return "it combines some features of a row";
  return call.op == family_op::softmax_cross_entropy && !call.inputs[1].has_rows() ? "its targets are not rows" : "";
}

std::string along_row_text(const TextCall& call) {
  const std::string& x = call.inputs[0].name;
  if (is_softmax(call.op) || call.op == Op::logsumexp)
    return fmt::format("{}<{}>({})", name_of(call.op), call.number, x);
  if (call.op == family_op::softmax_cross_entropy)
    return fmt::format("softmax_cross_entropy<{}>({}, {})", call.number, x, call.inputs[1].name);
  if (is_position(call.op)) return fmt::format("position({}, {})", call.op == Op::argmax ? "1.0f" : "-1.0f", x);
  const Fold& fold = *fold_of(call.op);
  return fmt::format("reduce({}, {}, {})", fold.start, x, fold.function);
}

std::string_view tile_sum_fault(const TextCall& call) {
  const TextOperand& x = call.inputs[0];
  if (call.output.dtype != DType::f32) return "its operand is not f32";
  if (call.op == Op::matmul)
    return is_product_over_rows(call) && x.type.rows == 1 && call.inputs[1].type.rows == 1
               ? ""
               : "it is not a sum over rows of their products";
  if (!x.has_rows() || x.type.dtype != DType::f32 || call.op != Op::sum) return "it is not a sum over rows";
  const std::int64_t kept = call.output.shape.elements();
  return kept == feature_count(x.type) || kept == 1 ? "" : "it sums some features of a row";
}

// Contribution of a tile to a reduced value.
std::string tile_sum_text(const TextCall& call, std::int64_t at) {
  const TextOperand& x = call.inputs[0];
  if (call.op == Op::matmul) return fmt::format("sums.add_product<{}>({}, {}, r);", at, x.name, call.inputs[1].name);
  const bool sums_row = call.output.shape.elements() != feature_count(x.type);
  return fmt::format("sums.add<{}>({}, r);", at, sums_row ? fmt::format("sum_of({})", x.name) : x.name);
}

std::string fetch_text(const TextCall& call) {
  const TextOperand& data = call.inputs[0];
  if (data.number) return each_feature(call, fmt::format("return {};", data.name));
  return fmt::format("load<{}>({}{}, r, [&](u32 row) {{ return {}; }})", feature_count(call.output), data.name,
                     offset_text(data), batch_row_text(call, "row"));
}

}  // namespace

std::string warp_fault(const TextCall& call) {
  const auto fault = [&]() -> std::string_view {
    if (has_f64(call)) return "it computes in f32";
    if (call.output.rows == 0) return tile_sum_fault(call);
    const std::int64_t n = feature_count(call.output);
    if (n == 0) return "it has no features";
    if (call.op == Op::matmul)
      return call.inputs[0].type.rows > 1 ? "it multiplies values of one sample with each other" : product_fault(call);
    if (call.op == family_op::one_hot)
      return n == last_extent(features_of(call.output)) ? "" : "it makes classes of several numbers";
    if (call.op == family_op::gather) {
      const std::string_view why = gather_fault(call);
      return why.empty() && feature_count(call.inputs[1].type) != 1 ? "it takes several rows of its table" : why;
    }
    if (is_along_row(call)) return along_row_fault(call);
    const bool moves = !is_scalar(call.op) && !is_draw(call.op) && call.op != Op::minibatch;
    if (moves) return "it moves features between lanes";
    const auto reads = [&](const TextOperand& x) { return is_own(call, x); };
    const std::size_t read = call.op == Op::dropout ? 1 : is_scalar(call.op) ? call.inputs.size() : 0;
    return std::ranges::all_of(call.inputs.begin(), call.inputs.begin() + static_cast<std::ptrdiff_t>(read), reads)
               ? ""
               : "it spreads some features over others";
  };
  return fault_text(call, "a warp's rows", fault());
}

std::string warp_text(const TextCall& call, std::int64_t at, std::string_view held) {
  if (call.output.rows == 0) return tile_sum_text(call, at);
  if (call.op == Op::minibatch) return fetch_text(call);
  if (is_along_row(call)) return along_row_text(call);
  const TextOperand& a = call.inputs[0];
  const std::int64_t n = feature_count(call.output);
  if (call.op == Op::matmul && call.inputs[1].number)
    return each_feature(call, fmt::format("return scalar::fma({}[i], {}, 0.0f);", a.name, call.inputs[1].name));
  if (call.op == Op::matmul) return fmt::format("matmul({}, {})", a.name, held.empty() ? weights_text(call) : held);
  const auto access = [&](const TextOperand& x, const Index& index) {
    if (!x.has_rows() || x.number) return element_at(x, index);
    const std::int64_t features = feature_count(x.type);
    if (features == 1) return fmt::format("{}[at(i, 0)]", x.name);
    if (index.is_variable() && features == n) return fmt::format("{}[i]", x.name);
    return fmt::format("{}[at(i, {})]", x.name, text_of(index));
  };
  const std::string position = fmt::format("u64(r.row(i.half)) * {} + static_cast<u32>(i.feature)", n);
  return each_feature(call, element_text(call, features_of(call.output), position, access).statements());
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
  return fmt::format("affine({}, {}, {}{})", product.inputs[0].name, held.empty() ? weights_text(product) : held,
                     bias.name, offset_text(bias));
}

std::string weights_text(const TextCall& call) {
  const TextOperand &a = call.inputs[0], &b = call.inputs[1];
  const bool transposed = call.params->as<MatmulParams>().transpose_b;
  return fmt::format("weights{}<{}, {}>({}{})", transposed ? "_transposed" : "", feature_count(a.type),
                     b.type.shape[transposed ? 0 : 1], b.name, offset_text(b));
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
