// tile_steps.h: helpers shared by the families of tile steps: operands and features.
// Contract: each family creates the step of a call, or returns null: without a reason for another family's op, with a
// reason for unsupported operands.
#pragma once

#include "kernels/cpu/batch/families.h"
#include "kernels/cpu/tiles/tile.h"
#include "kernels/dims.h"

namespace graphrun::cpu {

TileStep make_product_tile(const TileCall& call, Isa isa, std::string& reason);    // matmul
TileStep make_reduction_tile(const TileCall& call, Isa isa, std::string& reason);  // over rows
TileStep make_move_tile(const TileCall& call, Isa isa, std::string& reason);
TileStep make_draw_tile(const TileCall& call, Isa isa, std::string& reason);

inline bool in_tile(const TileOperand& operand) {
  return operand.type.rows > 0;
}

// Address of the tile's first row in a data set.
inline const std::byte* first_of(const DataVectors& data, const TileContext& context) {
  const std::uint64_t batch = data.step != nullptr ? *data.step % data.batches : 0;
  return data.data + batch * data.batch_bytes + static_cast<std::uint64_t>(context.first / kLanes) * data.vector_bytes;
}

// Address of an operand's first element in this tile.
template <class T>
const T* read(const TileOperand& operand, const TileContext& context) {
  if (operand.vectors.data != nullptr) return reinterpret_cast<const T*>(first_of(operand.vectors, context));
  return reinterpret_cast<const T*>(in_tile(operand) ? context.tile + operand.offset : operand.address);
}
template <class T>
T* written(const TileOperand& operand, const TileContext& context) {
  return reinterpret_cast<T*>((in_tile(operand) ? context.tile : context.accumulators) + operand.offset);
}

// Rows of a real operand.
template <class Real>
TileRowsOf<Real> rows_of(const TileOperand& operand, const TileContext& context) {
  const Real* const first = read<Real>(operand, context);
  if (operand.vectors.data == nullptr) return {first, context.stride, kLanesOf<Real>};
  return {first, kLanesOf<Real>, static_cast<std::int64_t>(operand.vectors.vector_bytes / sizeof(Real))};
}

// Features of an operand, or its elements if it has no rows.
View features(const TileOperand& operand);
// Indices of a view's elements, in row-major order.
std::vector<std::int32_t> elements_of(const Dims<1>& dims, std::int64_t offset = 0);
inline std::vector<std::int32_t> elements_of(const View& view) {
  return elements_of(merged<1>({view}), view.offset);
}

}  // namespace graphrun::cpu
