#include "graphrun/tensor.h"

#include <fmt/format.h>

#include "graphrun/error.h"

namespace graphrun {

void HostTensor::reject_count(std::size_t given) const {
  throw Error(ErrorKind::input, "tensor.values",
              fmt::format("{} values do not fill a tensor of shape {}, which has {}", given, to_string(shape_),
                          shape_.elements()));
}

void HostTensor::reject_dtype(DType wanted) const {
  throw Error(ErrorKind::input, "tensor.dtype",
              fmt::format("a tensor of {} elements is read as {}", name_of(dtype_), name_of(wanted)));
}

}  // namespace graphrun
