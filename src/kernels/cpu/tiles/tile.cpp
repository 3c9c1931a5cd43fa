#include "kernels/cpu/tiles/tile.h"

#include "kernels/cpu/tiles/tile_steps.h"

namespace graphrun::cpu {

std::vector<std::int32_t> elements_of(const Dims<1>& dims, std::int64_t offset) {
  std::vector<std::int32_t> elements;
  for_elements(
      dims, [&](std::int64_t, const Offsets<1>& at) { elements.push_back(static_cast<std::int32_t>(offset + at[0])); });
  return elements;
}

View features(const TileOperand& operand) {
  return dense(in_tile(operand) ? features_of(operand.type) : operand.type.shape);
}

TileStep make_tile_step(const TileCall& call, Isa isa, std::string& reason) {
  reason.clear();
  for (const TileOperand& input : call.inputs) {
    if (input.type.dtype == DType::f64) reason = "tiles hold no f64";
    if (in_tile(input) && input.type.dtype == DType::u64) reason = "tiles hold no u64";
  }
  if (call.output.type.dtype == DType::f64 || call.output.type.dtype == DType::u64)
    reason = "tiles hold no 64-bit values";
  if (!reason.empty()) return nullptr;
  for (const auto make : {make_elementwise_tile, make_product_tile, make_reduction_tile, make_line_tile, make_move_tile,
                          make_draw_tile}) {
    TileStep step = make(call, isa, reason);
    if (step != nullptr || !reason.empty()) return step;
  }
  reason = "no kernel runs '" + std::string(name_of(call.op)) + "' over tiles";
  return nullptr;
}

}  // namespace graphrun::cpu
