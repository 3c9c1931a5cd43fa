// types.h: converts dtypes and shapes between c.h and the library.
#pragma once

#include "graphrun/c.h"
#include "graphrun/error.h"
#include "graphrun/types.h"

namespace graphrun::c_api {

inline TensorType type_of(const gr_type& type) {
  if (type.dtype < GR_F32 || type.dtype > GR_BOOL)
    throw Error(ErrorKind::input, "c.dtype", "there is no dtype " + std::to_string(static_cast<int>(type.dtype)));
  if (type.rank < 0 || type.rank > GR_MAX_RANK)
    throw Error(ErrorKind::input, "c.rank", "a rank of " + std::to_string(type.rank) + " is not from 0 to 8");
  TensorType result;
  result.dtype = static_cast<DType>(type.dtype);
  for (int axis = 0; axis < type.rank; ++axis) {
    if (type.shape[axis] < 0)
      throw Error(ErrorKind::input, "c.shape", "an extent of " + std::to_string(type.shape[axis]) + " is negative");
    result.shape.push_back(type.shape[axis]);
  }
  return result;
}

inline gr_type c_type(const TensorType& type) {
  gr_type result{};
  result.dtype = static_cast<gr_dtype>(type.dtype);
  result.rank = type.shape.rank();
  for (int axis = 0; axis < result.rank; ++axis) result.shape[axis] = type.shape[axis];
  return result;
}
static_assert(static_cast<int>(DType::f32) == GR_F32 && static_cast<int>(DType::f64) == GR_F64 &&
              static_cast<int>(DType::i32) == GR_I32 && static_cast<int>(DType::u64) == GR_U64 &&
              static_cast<int>(DType::boolean) == GR_BOOL && kMaxRank == GR_MAX_RANK);

}  // namespace graphrun::c_api
