// The layout with 16 rows in the registers of a warp (warp tiles), whose lanes divide the features.

#include "executors/cuda_planner/tiles/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "executors/cuda_planner/print/row_text.h"
#include "executors/cuda_planner/tiles/row_stage.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"
#include "kernels/cuda/tile/shapes.h"

namespace graphrun::cuda {
namespace {

using tile::is_narrow, tile::blocks_of, tile::columns_of;

std::string each_feature(const TextCall& call, std::string_view statements) {
  return mapped_text(call, statements, "Index i");
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
  return call.inputs[0].has_rows() && may_be_along_axis(call.op);
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

std::string_view tile_sum_fault(const TextCall& call) {
  const TextOperand& x = call.inputs[0];
  if (call.output.dtype != DType::f32) return "its operand is not f32";
  if (call.op == Op::matmul)
    return is_product_over_rows(call) && (x.type.rows == 1 || sums_parts(call))
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

std::string weights_text(const TextCall& call) {
  const TextOperand &a = call.inputs[0], &b = call.inputs[1];
  const bool transposed = call.params->as<MatmulParams>().transpose_b;
  return fmt::format("weights{}<{}, {}>({}{})", transposed ? "_transposed" : "", feature_count(a.type),
                     b.type.shape[transposed ? 0 : 1], b.name, offset_text(b));
}

// A tile of a row step; `weights`: those of a product.
std::string tile_text(const TextCall& call, std::string_view weights) {
  if (is_along_row(call)) return whole_row_text(call);
  const TextOperand& a = call.inputs[0];
  const std::int64_t n = feature_count(call.output);
  if (call.op == Op::matmul && call.inputs[1].number) return each_feature(call, scaled_text(call));
  if (call.op == Op::matmul) return fmt::format("matmul({}, {})", a.name, weights);
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

}  // namespace

bool joins_parts(const TextCall& call) {
  const auto is_part = [&](const TextOperand& x) {
    return x.has_rows() && x.type.rows == 1 && feature_count(x.type) == feature_count(call.inputs[0].type);
  };
  return call.op == Op::concat && call.params->as<AxisParams>().axis == 1 && call.output.shape.rank() == 2 &&
         std::ssize(call.inputs) <= kMaxParts && std::ranges::all_of(call.inputs, is_part);
}
bool sums_parts(const TextCall& call) {
  const std::int64_t rows = call.op == Op::matmul && call.output.rows == 0 ? call.inputs[0].type.rows : 0;
  return rows > 1 && rows <= kMaxParts;
}

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
    if (joins_parts(call)) return "";
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

std::int64_t max_numbers(std::uint32_t threads) {
  return threads > 256 ? 56 : 114;  // the lane has 128 or 255 registers
}

WarpShape warp_shape(const TextCall& call) {
  WarpShape shape;
  const bool joins = joins_parts(call);
  const std::int64_t parts = sums_parts(call) ? call.inputs[0].type.rows : 1;
  if (call.output.rows > 0 && !joins) shape.features = feature_count(call.output);
  for (const TextOperand& operand : call.inputs)
    if (operand.has_rows()) shape.features = std::max(shape.features, feature_count(operand.type) / parts);
  shape.instructions = joins ? 0 : 2 * columns_of(shape.features);
  constexpr std::int64_t kSplit = 3, kProduct = 3;  // instructions per element; per block
  if (call.output.rows == 0) {
    const bool product = call.op == Op::matmul;
    shape.sum_rows = product ? feature_count(call.inputs[0].type) / parts : 1;
    shape.sum_columns = product ? feature_count(call.inputs[1].type) / parts : call.output.shape.elements();
    const std::int64_t k = shape.sum_rows, n = shape.sum_columns;
    const tile::SumShape sum = tile::sum_shape(k, n);
    shape.sum_numbers = sum.numbers;
    shape.scratch = sum.scratch;
    shape.instructions = sum.blocks ? 2 * (columns_of(k) + columns_of(n)) + sum.wide * (1 + 4 * kSplit) +
                                          sum.tall * 2 * (1 + 4 * kSplit + sum.wide * kProduct) + shape.sum_numbers
                                    : 2 * shape.sum_numbers;
    shape.instructions *= parts;
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

namespace {

class WarpStage : public RowStage {
 public:
  explicit WarpStage(RowStage of) : RowStage(std::move(of)), held_left_(max_numbers(tiling().threads)) {}

  void run() {
    fetch_data();
    find_sums();
    find_parts();
    for (const Step& step : rows()) held_left_ -= warp_shape(frame.once.call(step)).live_numbers;
    write_rows();
    const std::uint32_t blocks = tiling().blocks(), warps = tiling().threads / 32;
    std::string begin;
    if (!sums_.empty()) {
      types = fmt::format("using Sums{} = Sums<{}>;\n", number, sums_);
      shared =
          fmt::format("  alignas(16) float scratch{}[{}][{}];\n", number, warps, std::max<std::int64_t>(scratch_, 4));
      begin = fmt::format("    Sums{0} sums(s.scratch{0}[thread_index() / 32]);\n", number);
    }
    text = fmt::format(
        "{}{}    struct Data {{\n{}    }};\n    const auto fetch = [&](const auto& r) GRAPHRUN_TILE_INLINE {{\n      "
        "(void)r;\n      Data data;\n{}      return data;\n    }};\n    const auto row = [&](const auto& r, const "
        "Data& data) GRAPHRUN_TILE_INLINE {{\n      (void)r, (void)data;\n{}    }};\n"
        "    for_rows<{}u, {}u, {}>(thread_index() / 32 * {}u + block_index(), {}, fetch, row);\n",
        begin, held_, members_, fetches_, text, frame.phase.capacity, warps * blocks, frame.count != kNoBuffer, blocks,
        frame.count_text());
    if (!sums_.empty()) text += fmt::format("    sums.finish({}.row());\n", reduce());
  }

 private:
  // Rows of data, requested one tile ahead.
  std::string member(DType dtype, std::int64_t features, std::string_view name, std::string_view from,
                     std::string_view comment) {
    members_ += fmt::format("      Row<{}, {}> {};\n", type_name(dtype), features, name);
    fetches_ += fmt::format("      data.{} = {};  // {}\n", name, from, comment);
    return fmt::format("data.{}", name);
  }
  void fetch_data() {
    const auto fetch = [&](BufferId out, const std::string& from, std::string_view comment) {
      names[root(out)] = member(buffer(out).type.dtype, features(out), fmt::format("v{}", out), from, comment);
    };
    for (const TileMove& move : stage.loads)
      fetch(move.tile, fmt::format("load<{}>({}, r)", features(move.tile), pointer(move.arena, "const ")),
            printable_name(buffer(move.tile).name));
    for (const Step& step : rows())
      if (step.op == Op::minibatch) fetch(step.output, fetch_text(row_call(step)), comment_of(step));
  }

  // Declares the sums in the order of their elements.
  void find_sums() {
    for (const Combine& combine : stage.combines) {
      const std::int64_t numbers = elements(combine.value);
      values.push_back({&combine, sums, numbers});
      if (const Step* const step = maker(combine.value); step != nullptr && numbers > 0) {
        const WarpShape shape = warp_shape(frame.once.call(*step));
        sums_ += fmt::format("{}Sum<{}, {}, {}>", sums_.empty() ? "" : ", ", sums, shape.sum_rows, shape.sum_columns);
        scratch_ += shape.scratch;
        held_left_ -= shape.sum_numbers;
      }
      sums += numbers;
    }
  }

  // Part of a product's operand: a tile that a concat joins, or a loaded variable.
  struct Part {
    BufferId tile = kNoBuffer;
    std::string variable = {};
  };
  struct PartProduct {
    const Step* step;
    Part x, y;
  };

  const Step* concat_of(BufferId tile) const {
    const auto joins = [&](const Step& step) { return step.op == Op::concat && root(step.output) == root(tile); };
    const auto found = std::ranges::find_if(rows(), joins);
    return found == rows().end() ? nullptr : &*found;
  }
  const std::vector<Part>& parts_of(BufferId operand) {
    std::vector<Part>& parts = parts_[operand];
    if (!parts.empty()) return parts;
    if (const Step* const concat = concat_of(operand)) {
      for (const BufferId input : concat->inputs) parts.push_back({input});
      return parts;
    }
    const TensorType& type = buffer(operand).type;
    const std::int64_t n = feature_count(type) / type.rows;
    for (std::int64_t p = 0; p < type.rows; ++p)
      for (const TileMove& move : stage.loads)
        if (root(move.tile) == root(operand))
          parts.push_back({kNoBuffer, member(type.dtype, n, fmt::format("v{}_{}", operand, p),
                                             fmt::format("load<{}, {}>({} + {}, r)", n, n * type.rows,
                                                         pointer(move.arena, "const "), n * p),
                                             printable_name(buffer(move.tile).name))});
    return parts;
  }
  void find_parts() {
    for (const Step& step : rows()) {
      if (!sums_parts(frame.once.call(step)) || elements(step.output) == 0) continue;
      const std::vector<Part>&x = parts_of(step.inputs[0]), &y = parts_of(step.inputs[1]);
      for (std::size_t p = 0; p < x.size(); ++p) products_.push_back({&step, x[p], y[p]});
    }
  }
  // Adds the products of parts that are computed. At once, because a value that waits for a sum takes registers.
  void add_parts() {
    std::erase_if(products_, [&](const PartProduct& product) {
      const auto name = [&](const Part& part) {
        return part.tile != kNoBuffer && names.contains(root(part.tile)) ? names.at(root(part.tile)) : part.variable;
      };
      const std::string x = name(product.x), y = name(product.y);
      if (x.empty() || y.empty()) return false;
      text += fmt::format("      warp_barrier();\n      sums.add_product<{}>({}, {}, r);{}", value_of(*product.step).at,
                          x, y, step_comment(*product.step));
      return true;
    });
  }

  void write_rows() {
    const std::span<const Step> steps = rows();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      if (step.op == Op::minibatch) continue;
      add_parts();
      const TextCall call = frame.once.call(step);
      if (joins_parts(call) || sums_parts(call)) continue;
      if (i + 1 < steps.size() && adds_bias(step, steps[i + 1])) {
        const TextCall product = row_call(step), add = row_call(steps[++i]);
        const TextOperand& bias = add.inputs[root(steps[i].inputs[0]) == root(step.output) ? 1 : 0];
        let(steps[i].output,
            fmt::format("affine({}, {}, {}{})", product.inputs[0].name, weights_of(step), bias.name, offset_text(bias)),
            fmt::format("{}, {}", comment_of(step), comment_of(steps[i])));
      } else if (is_tile(step.output)) {
        const std::string weights = step.op == Op::matmul ? weights_of(step) : std::string();
        let(step.output, tile_text(row_call(step), weights), comment_of(step));
      } else if (elements(step.output) > 0) {
        text += fmt::format("      {}{}", tile_sum_text(row_call(step), value_of(step).at), step_comment(step));
      }
    }
    add_parts();
    for (const TileMove& move : stage.stores) {
      const Step* const concat = concat_of(move.tile);
      if (concat == nullptr)
        text += fmt::format("      store({}, r, {});\n", pointer(move.arena, ""), names.at(root(move.tile)));
      for (std::size_t p = 0; concat != nullptr && p < concat->inputs.size(); ++p)
        text +=
            fmt::format("      store<{}>({} + {}, r, {});\n", features(move.tile), pointer(move.arena, ""),
                        static_cast<std::int64_t>(p) * features(concat->inputs[p]), names.at(root(concat->inputs[p])));
    }
  }

  // Whether the step after a product only adds a value shared by all rows to it, and nothing else reads the product.
  bool adds_bias(const Step& product, const Step& add) {
    const BufferId of = root(product.output);
    if (product.op != Op::matmul || add.op != scalar_op::add || !is_tile(product.output) || !is_tile(add.output))
      return false;
    std::int64_t readers = 0;
    for (const Step& step : rows())
      readers += std::ranges::count_if(step.inputs, [&](BufferId input) { return root(input) == of; });
    readers += std::ranges::count_if(stage.stores, [&](const TileMove& move) { return root(move.tile) == of; });
    const bool first = root(add.inputs[0]) == of;
    if (readers != 1 || (!first && root(add.inputs[1]) != of)) return false;
    names[of] = fmt::format("v{}", product.output);
    const TextOperand bias = row_call(add).inputs[first ? 1 : 0];
    const std::int64_t n = features(product.output);
    return !is_narrow(features(product.inputs[0])) && !is_narrow(n) && features(add.output) == n && !bias.has_rows() &&
           !bias.number && is_dense(bias.view) && bias.type.shape.elements() == n && bias.view.offset % 2 == 0 &&
           bias.type.dtype == DType::f32;
  }

  // Weights of a product, in registers if they fit there and are then read once for all rows of a step.
  std::string weights_of(const Step& step) {
    const TextCall call = row_call(step);
    const std::int64_t numbers = warp_shape(call).held_numbers;
    if (call.inputs[1].number || numbers > held_left_) return weights_text(call);
    held_left_ -= numbers;
    held_ += fmt::format("    const auto w{} = held({});{}", step.output, weights_text(call), step_comment(step));
    return fmt::format("w{}", step.output);
  }

  std::map<BufferId, std::vector<Part>> parts_;  // keyed by the operand
  std::vector<PartProduct> products_;            // not added yet
  std::string members_, fetches_, held_, sums_;
  std::int64_t scratch_ = 0, held_left_;
};

}  // namespace

RowStage warp_stage(RowStage stage) {
  WarpStage warp(std::move(stage));
  warp.run();
  return warp;
}

}  // namespace graphrun::cuda
