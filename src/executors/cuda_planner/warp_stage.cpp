#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "executors/cuda_planner/row_stage.h"
#include "executors/cuda_planner/warp_text.h"
#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

class WarpStage {
 public:
  explicit WarpStage(const StageCall& call) : call_(call), held_left_(max_numbers(call.tiling.threads)) {}

  RowStage run() {
    const std::string& number = call_.number;
    for (const Combine& combine : call_.stage.combines) {
      const std::int64_t elements = call_.buffer(combine.value).type.shape.elements();
      out_.values.push_back({&combine, out_.sums, elements});
      out_.sums += elements;
    }
    const std::string loads = fetched();
    find_sums();
    for (const Step& step : call_.rows()) held_left_ -= warp_shape(call_.once.call(step)).live_numbers;
    const std::string rows = this->rows();
    std::string& text = out_.text;
    if (!sums_.empty()) {
      out_.types = fmt::format("using Sums{} = Sums<{}>;\n", number, sums_);
      out_.shared = fmt::format("  alignas(16) float scratch{}[{}][{}];\n", number, call_.tiling.threads / 32,
                                std::max<std::int64_t>(scratch_, 4));
      text += fmt::format("    Sums{0} sums(s.scratch{0}[thread_index() / 32]);\n", number);
    }
    text += held_;
    text += fmt::format(
        "    struct Data {{\n{}    }};\n    const auto fetch = [&](const auto& r) GRAPHRUN_TILE_INLINE {{\n      "
        "(void)r;\n      Data data;\n{}      return data;\n    }};\n",
        members_, loads);
    text +=
        "    const auto row = [&](const auto& r, const Data& data) GRAPHRUN_TILE_INLINE {\n      (void)r, "
        "(void)data;\n" +
        rows + "    };\n";
    const std::uint32_t blocks = call_.tiling.blocks();
    text += fmt::format("    for_rows<{}u, {}u, {}>(thread_index() / 32 * {}u + block_index(), {}, fetch, row);\n",
                        call_.frame.phase.capacity, call_.tiling.threads / 32 * blocks, call_.frame.count != kNoBuffer,
                        blocks, call_.frame.count_text());
    if (!sums_.empty()) text += fmt::format("    sums.finish({}.row());\n", call_.reduce());
    return std::move(out_);
  }

 private:
  bool is_fetched(const Step& step) const { return step.op == Op::minibatch; }
  void name(BufferId out, std::string text) { values_[call_.root(out)] = std::move(text); }

  // Rows of data, requested one tile ahead.
  std::string fetched() {
    std::string text;
    const auto fetch = [&](BufferId out, const std::string& from, std::string_view comment) {
      const TensorType& type = call_.buffer(out).type;
      members_ += fmt::format("      Row<{}, {}> v{};\n", type_name(type.dtype), feature_count(type), out);
      text += fmt::format("      data.v{} = {};  // {}\n", out, from, comment);
      name(out, fmt::format("data.v{}", out));
    };
    for (const TileMove& move : call_.stage.loads)
      fetch(move.tile,
            fmt::format("load<{}>({}, r)", feature_count(call_.buffer(move.tile).type),
                        call_.pointer(move.arena, "const ")),
            printable_name(call_.buffer(move.tile).name));
    for (const Step& step : call_.rows()) {
      if (is_fetched(step)) fetch(step.output, made(step, 0, ""), comment_of(step));
    }
    return text;
  }

  // Declares the sums in the order of their elements.
  void find_sums() {
    for (const RowStage::Value& value : out_.values) {
      for (const Step& step : call_.rows()) {
        if (step.output != value.combine->value || call_.buffer(step.output).type.shape.elements() == 0) continue;
        const WarpShape shape = warp_shape(call_.once.call(step));
        sums_ +=
            fmt::format("{}Sum<{}, {}, {}>", sums_.empty() ? "" : ", ", value.at, shape.sum_rows, shape.sum_columns);
        scratch_ += shape.scratch;
        held_left_ -= shape.sum_numbers;
      }
    }
  }

  std::string rows() {
    std::string text;
    const std::span<const Step> steps = call_.rows();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      if (is_fetched(step)) continue;
      if (std::string affine = i + 1 < steps.size() ? this->affine(step, steps[i + 1]) : ""; !affine.empty()) {
        text += affine;
        ++i;
        continue;
      }
      if (call_.is_tile(step.output)) {
        text += fmt::format("      const auto v{} = {};  // {}\n", step.output, made(step, 0, held(step)),
                            comment_of(step));
        name(step.output, fmt::format("v{}", step.output));
        continue;
      }
      if (call_.buffer(step.output).type.shape.elements() == 0) continue;
      std::int64_t at = 0;
      for (const RowStage::Value& value : out_.values)
        if (value.combine->value == step.output) at = value.at;
      text += fmt::format("      {}  // {}\n", made(step, at, ""), comment_of(step));
    }
    for (const TileMove& move : call_.stage.stores)
      text +=
          fmt::format("      store({}, r, {});\n", call_.pointer(move.arena, ""), values_.at(call_.root(move.tile)));
    return text;
  }

  // Fused code of a product and of the next step, which adds a bias to it; "" if the steps do not match.
  std::string affine(const Step& product, const Step& add) {
    if (product.op != Op::matmul || !call_.is_tile(product.output)) return {};
    if (!call_.is_tile(add.output) || readers(product.output) != 1) return {};
    const std::string of_product = fmt::format("v{}", product.output);
    name(product.output, of_product);
    const TextCall first = row_call(call_, product, values_), second = row_call(call_, add, values_);
    if (affine_text(first, second, of_product, "").empty()) return {};
    std::string text =
        fmt::format("      const auto v{} = {};  // {}, {}\n", add.output,
                    affine_text(first, second, of_product, held(product)), comment_of(product), comment_of(add));
    name(add.output, fmt::format("v{}", add.output));
    return text;
  }
  // Number of times that row steps and stores read the value.
  std::size_t readers(BufferId value) const {
    const BufferId of = call_.root(value);
    std::size_t readers = 0;
    for (const Step& step : call_.rows())
      for (const BufferId input : step.inputs) readers += call_.root(input) == of ? 1u : 0u;
    for (const TileMove& move : call_.stage.stores) readers += call_.root(move.tile) == of ? 1u : 0u;
    return readers;
  }

  // Name of the weights if they fit registers, where they are read once for all rows of a step; "" if they do not.
  std::string held(const Step& step) {
    if (step.op != Op::matmul) return {};
    const TextCall call = row_call(call_, step, values_);
    if (call.inputs[1].number) return {};  // already in a variable
    const std::int64_t numbers = warp_shape(call).held_numbers;
    if (numbers > held_left_) return {};
    held_left_ -= numbers;
    std::string name = fmt::format("w{}", step.output);
    held_ += fmt::format("    const auto {} = held({});  // {}\n", name, weights_text(call), comment_of(step));
    return name;
  }

  std::string made(const Step& step, std::int64_t at, const std::string& held) {
    const TextCall call = row_call(call_, step, values_);
    return warp_text(call, at, held);
  }

  const StageCall& call_;
  RowStage out_;
  std::map<BufferId, std::string> values_;  // names by root of the tile's storage
  std::string members_, held_, sums_;
  std::int64_t scratch_ = 0, held_left_;
};

}  // namespace

RowStage warp_stage(const StageCall& call) {
  return WarpStage(call).run();
}

}  // namespace graphrun::cuda
