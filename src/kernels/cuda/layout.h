// layout.h: element layout of a broadcast or reduced operand, as plain numbers that a kernel can receive.
// Contract: pure; strides are in elements. The few patterns used by nearly all models have a name and a fast path; all
// others are `strided` and cost a division per axis.
#pragma once

#include <cstdint>

#include "kernels/dims.h"

namespace graphrun::cuda {

enum class Access : std::uint8_t {
  same,     // element i of the result reads element i
  scalar,   // one element for all
  period,   // a trailing vector: element i mod extent
  repeat,   // a leading column: element i / extent
  strided,  // general case: the strides of each axis
};

struct Operand {
  const void* data = nullptr;
  Access access = Access::same;
  bool aligned = false;  // packs of four elements can be loaded at multiples of four
  std::uint64_t extent = 1;
  Dims<1> dims;  // for the result's elements
};

// `in` broadcast to `out`.
inline Operand operand_of(const View& in, const Shape& out, const void* data) {
  Operand operand;
  operand.data = data;
  operand.dims = merged<1>({broadcast(in, out)});
  const Dims<1>& dims = operand.dims;
  const auto is = [&](int axis, std::int64_t stride) { return dims.dim[axis].stride[0] == stride; };
  if (is_dense(in) && in.extents.elements() == out.elements()) {
    operand.access = Access::same;  // including single elements and empty operands
  } else if (dims.rank == 0 || (dims.rank == 1 && is(0, 0))) {
    operand.access = Access::scalar;
  } else if (dims.rank == 1 && is(0, 1)) {
    operand.access = Access::same;
  } else if (dims.rank == 2 && ((is(0, 0) && is(1, 1)) || (is(0, 1) && is(1, 0)))) {
    operand.access = is(0, 0) ? Access::period : Access::repeat;
    operand.extent = static_cast<std::uint64_t>(dims.dim[1].extent);
  } else {
    operand.access = Access::strided;
  }
  return operand;
}

}  // namespace graphrun::cuda
