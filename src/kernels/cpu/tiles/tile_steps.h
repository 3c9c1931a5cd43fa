// tile_steps.h: what the families of tile steps share: operands, features, and the tables of an instruction set.
// Contract: each family makes its step for a call, or gives none for an op that is not its own; for operands that it
// does not take it gives none and a reason.
#pragma once

#include "kernels/cpu/simd/scalar_loops.h"
#include "kernels/cpu/tiles/tile.h"
#include "kernels/cpu/tiles/tile_isa.h"
#include "kernels/dims.h"

namespace graphrun::cpu {

TileStep make_elementwise_tile(const TileCall& call, Isa isa, std::string& reason);
TileStep make_product_tile(const TileCall& call, Isa isa, std::string& reason);    // matmul
TileStep make_reduction_tile(const TileCall& call, Isa isa, std::string& reason);  // over rows
TileStep make_line_tile(const TileCall& call, Isa isa, std::string& reason);       // over features
TileStep make_move_tile(const TileCall& call, Isa isa, std::string& reason);
TileStep make_draw_tile(const TileCall& call, Isa isa, std::string& reason);

const TileTable& tile_table(Isa isa);

inline bool in_tile(const TileOperand& operand) {
  return operand.type.rows > 0;
}

// Where the tile's first row lies in a data set.
inline const std::byte* first_of(const DataVectors& data, const TileContext& context) {
  const std::uint64_t batch = data.step != nullptr ? *data.step % data.batches : 0;
  return data.data + batch * data.batch_bytes + static_cast<std::uint64_t>(context.first / kLanes) * data.vector_bytes;
}

// Where an operand's first element lies now.
template <class T>
const T* read(const TileOperand& operand, const TileContext& context) {
  if (operand.vectors.data != nullptr) return reinterpret_cast<const T*>(first_of(operand.vectors, context));
  return reinterpret_cast<const T*>(in_tile(operand) ? context.tile + operand.offset : operand.address);
}
template <class T>
T* written(const TileOperand& operand, const TileContext& context) {
  return reinterpret_cast<T*>((in_tile(operand) ? context.tile : context.accumulators) + operand.offset);
}

// The rows of an operand of f32.
inline TileRows rows_of(const TileOperand& operand, const TileContext& context) {
  const float* const first = read<float>(operand, context);
  if (operand.vectors.data == nullptr) return {first, context.stride, kLanes};
  return {first, kLanes, static_cast<std::int64_t>(operand.vectors.vector_bytes / sizeof(float))};
}

// A sample's part of a value with rows, as a shape: dimension 0 counts its rows.
Shape features_of(const TensorType& type);
std::int64_t feature_count(const TensorType& type);

// The features of an operand, or its elements if it has no rows.
View features(const TileOperand& operand);
// Which elements are shown, in row-major order.
std::vector<std::int32_t> elements_of(const Dims<1>& dims, std::int64_t offset = 0);
inline std::vector<std::int32_t> elements_of(const View& view) {
  return elements_of(merged<1>({view}), view.offset);
}

}  // namespace graphrun::cpu
