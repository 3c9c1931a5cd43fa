// layout.h: how the elements of a broadcast or reduced operand lie, as plain numbers a kernel can carry.
// Contract: pure; strides are in elements. The few patterns that nearly all models use have a name and a fast path,
// everything else is `strided` and costs a division an axis.
#pragma once

#include <cstdint>

#include "graphrun/types.h"

namespace graphrun::cuda {

enum class Access : std::uint8_t {
  same,     // element i of the result reads element i
  scalar,   // one element for all
  period,   // a trailing vector: element i mod extent
  repeat,   // a leading column: element i / extent
  strided,  // by axis
};

// The extents of an index space, outermost first.
struct Space {
  int rank = 0;
  std::uint64_t extent[kMaxRank] = {};
};

struct Operand {
  const void* data = nullptr;
  Access access = Access::same;
  bool aligned = false;  // packs of four elements can be loaded at multiples of four
  std::uint64_t extent = 1;
  std::uint64_t stride[kMaxRank] = {};
};

inline Space space_of(const Shape& shape) {
  Space space;
  space.rank = shape.rank();
  for (int axis = 0; axis < space.rank; ++axis) space.extent[axis] = static_cast<std::uint64_t>(shape[axis]);
  return space;
}

// `in` broadcast to `out`: NumPy's rule, aligned at the right.
inline Operand operand_of(const Shape& in, const Shape& out, const void* data) {
  Operand operand;
  operand.data = data;
  const int shift = out.rank() - in.rank();
  std::uint64_t step = 1;
  for (int axis = in.rank() - 1; axis >= 0; --axis) {
    operand.stride[axis + shift] = in[axis] == 1 ? 0 : step;
    step *= static_cast<std::uint64_t>(in[axis]);
  }
  const auto count = static_cast<std::uint64_t>(in.elements());
  const auto total = static_cast<std::uint64_t>(out.elements());
  if (count == total) {
    operand.access = Access::same;
    return operand;
  }
  if (count == 1) {
    operand.access = Access::scalar;
    return operand;
  }
  // From the right: extents that agree, then only ones; or only ones, then extents that agree.
  const auto extent_in = [&](int axis) { return axis >= shift ? in[axis - shift] : 1; };
  int axis = out.rank() - 1;
  while (axis >= 0 && extent_in(axis) == out[axis]) --axis;
  int rest = axis;
  while (rest >= 0 && extent_in(rest) == 1) --rest;
  if (rest < 0) {
    operand.access = Access::period;
    operand.extent = count;
    return operand;
  }
  axis = out.rank() - 1;
  std::uint64_t inner = 1;
  for (; axis >= 0 && extent_in(axis) == 1; --axis) inner *= static_cast<std::uint64_t>(out[axis]);
  while (axis >= 0 && extent_in(axis) == out[axis]) --axis;
  if (axis < 0) {
    operand.access = Access::repeat;
    operand.extent = inner;
    return operand;
  }
  operand.access = Access::strided;
  return operand;
}

}  // namespace graphrun::cuda
